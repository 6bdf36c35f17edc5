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

import "fmt"

// Count returns a number with its noun, such as "1 cluster" or "2 clusters".
func Count[N ~int | ~int32 | ~int64](number N, one, many string) string {
	return fmt.Sprintf("%d %s", number, Of(number, one, many))
}

// Of returns the words for a number: one for 1, or else many.
func Of[N ~int | ~int32 | ~int64](number N, one, many string) string {
	if number == 1 {
		return one
	}
	return many
}
