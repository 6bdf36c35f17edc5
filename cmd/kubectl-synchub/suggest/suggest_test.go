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

package suggest

import "testing"

func TestNames(t *testing.T) {
	names := []string{"florin", "florin-2", "guilder", "krone", "gilder"}
	for typed, want := range map[string]string{
		"florim": ` (did you mean "florin"?)`, "Florin": ` (did you mean "florin" or "florin-2"?)`, "flor": ` (did you mean "florin" or "florin-2"?)`,
		"gulder": ` (did you mean "guilder" or "gilder"?)`, "zloty": "", "": "",
	} {
		if got := Names(typed, names); got != want {
			t.Errorf("%s: got %q, want %q", typed, got, want)
		}
	}
}
