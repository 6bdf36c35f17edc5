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

package shipped

import (
	"strings"
	"testing"
)

func TestFirstSentence(t *testing.T) {
	long := strings.Repeat("words ", 50)
	for text, want := range map[string]string{
		"":                                  "",
		"One sentence":                      "One sentence",
		"First one. Second one.":            "First one.",
		"First\n one.\nSecond one.":         "First one.",
		"Some, e.g. a. Others, i.e. b":      "Some, e.g. a.",
		"Only some, e.g. a":                 "Only some, e.g. a",
		"A version such as 1.2 of it. More": "A version such as 1.2 of it.",
		long:                                strings.TrimSpace(strings.Repeat("words ", 26)) + "...",
	} {
		if got := firstSentence(text); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}
