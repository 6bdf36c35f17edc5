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

import (
	"fmt"
	"strings"
)

// First lists the first items, and the number of the remaining ones: "a, b and 3 more".
func First(limit int, items []string) string { return first(limit, items, ", ", " and ") }

// FirstClauses is First for items that may contain commas: "a; b; and 3 more".
func FirstClauses(limit int, items []string) string { return first(limit, items, "; ", "; and ") }

func first(limit int, items []string, separator, last string) string {
	text := strings.Join(items[:min(len(items), limit)], separator)
	if more := len(items) - limit; more > 0 {
		text += fmt.Sprintf("%s%d more", last, more)
	}
	return text
}
