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

package wording

import "testing"

func TestFirst(t *testing.T) {
	for _, test := range []struct {
		limit         int
		items         []string
		want, clauses string
	}{
		{2, nil, "", ""},
		{2, []string{"a"}, "a", "a"},
		{2, []string{"a", "b"}, "a, b", "a; b"},
		{2, []string{"a", "b", "c"}, "a, b and 1 more", "a; b; and 1 more"},
		{1, []string{"a", "b", "c"}, "a and 2 more", "a; and 2 more"},
	} {
		if got := First(test.limit, test.items); got != test.want {
			t.Errorf("First(%d, %q) is %q, want %q", test.limit, test.items, got, test.want)
		}
		if got := FirstClauses(test.limit, test.items); got != test.clauses {
			t.Errorf("FirstClauses(%d, %q) is %q, want %q", test.limit, test.items, got, test.clauses)
		}
	}
}
