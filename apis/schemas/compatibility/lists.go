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

package compatibility

import (
	"slices"
)

// Types of lists whose items must differ.
const (
	listSet = "set"
	listMap = "map"
)

func listTypeOf(s *schema) string {
	if s.XListType == nil {
		return ""
	}
	return *s.XListType
}

// list compares the schemas of lists.
func (c *comparison) list(at location, mine, theirs *schema) {
	if !isRangeWithin(mine.MinItems, mine.MaxItems, theirs.MinItems, theirs.MaxItems) {
		c.addFinding(at, ReasonItems, "the target takes %s items, the mailbox %s", formatRange(theirs.MinItems, theirs.MaxItems), formatRange(mine.MinItems, mine.MaxItems))
	}
	if !areItemsDistinct(mine, theirs) {
		c.addFinding(at, ReasonDuplicates, "the target takes no item twice, the mailbox does")
	}
	own, other := itemsOf(mine), itemsOf(theirs)
	at.path += "[]"
	if acceptsNull(own) && !acceptsNull(other) {
		c.addFinding(at, ReasonNull, "the mailbox takes null, the target does not")
	}
	c.compare(at, own, other)
}

func itemsOf(s *schema) *schema {
	switch {
	case s.Items != nil && s.Items.Schema != nil:
		return s.Items.Schema
	case preserves(s):
		return anyValue
	default:
		return prunedValue
	}
}

// areItemsDistinct reports whether the mailbox forbids duplicate items wherever the target does.
func areItemsDistinct(mine, theirs *schema) bool {
	if mine.MaxItems != nil && *mine.MaxItems <= 1 {
		return true
	}
	if theirs.UniqueItems && !mine.UniqueItems {
		return false
	}
	switch listTypeOf(theirs) {
	case listSet:
		return listTypeOf(mine) == listSet
	case listMap:
		isOther := func(key string) bool { return !slices.Contains(theirs.XListMapKeys, key) }
		return listTypeOf(mine) == listMap && len(mine.XListMapKeys) > 0 && !slices.ContainsFunc(mine.XListMapKeys, isOther)
	default:
		return true
	}
}
