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

package cli

import "testing"

func TestFirstOf(t *testing.T) {
	t.Parallel()
	items := []string{"a", "b", "c", "d"}
	if got := FirstOf(4, items); got != "a, b, c, d" {
		t.Errorf("got %s", got)
	}
	if got := FirstOf(2, items); got != "a, b and 2 more" || items[2] != "c" {
		t.Errorf("got %s, and the argument is %v", got, items)
	}
}
