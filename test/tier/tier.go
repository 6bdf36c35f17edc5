/*
Copyright 2026 The synchub Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package tier

import "testing"

// Thorough skips a test in `make test`, which calls `go test -short`. `make test-all`, `make test-unit` and `go test`
// run it, and `make test-part` if its package is in the part.
func Thorough(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("thorough: `make test-all` runs it")
	}
}
