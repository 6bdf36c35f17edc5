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
	"strings"
)

// kinds is a set of the kinds of values that a schema accepts, besides null.
type kinds uint8

const (
	text kinds = 1 << iota
	boolean
	integer
	fraction // a number that is not an integer
	list
	object

	anything = text | boolean | integer | fraction | list | object
)

// names of the kinds, as in schemas.
var names = []struct {
	kinds kinds
	name  string
}{
	{object, "object"}, {list, "array"}, {text, "string"}, {boolean, "boolean"}, {integer | fraction, "number"}, {integer, "integer"},
}

func (k kinds) String() string {
	if k == anything {
		return "anything"
	}
	var all []string
	for _, candidate := range names {
		if k&candidate.kinds == candidate.kinds {
			all = append(all, candidate.name)
			k &^= candidate.kinds
		}
	}
	if len(all) == 0 {
		return "nothing"
	}
	return strings.Join(all, " or ")
}

// kindsOf returns the kinds of values that a schema accepts by its type.
func kindsOf(s *schema) kinds {
	if s.XIntOrString {
		return integer | text
	}
	if s.Type == "" {
		return anything
	}
	for _, candidate := range names {
		if candidate.name == s.Type {
			return candidate.kinds
		}
	}
	return 0
}

// acceptsNull reports whether a server accepts null for a value, by the schema of the value alone. With an enum it
// never does.
func acceptsNull(s *schema) bool {
	return (s.Nullable || s.Type == "" && !s.XIntOrString) && len(s.Enum) == 0
}

// mayBeNull reports whether a stored field may be null. A server drops a null unless the schema explicitly allows it,
// or does not describe the field.
func mayBeNull(s *schema) bool {
	return s.Nullable && len(s.Enum) == 0 || s == anyValue || s == prunedValue
}

// preserves reports whether a server keeps fields that the schema does not name.
func preserves(s *schema) bool { return s.XPreserveUnknownFields != nil && *s.XPreserveUnknownFields }

// Schemas for values that a schema does not describe. Code identifies them by their addresses and never compares them
// with themselves, because their nesting is infinite.
var (
	// anyValue accepts any value and keeps it unchanged.
	anyValue = &schema{XPreserveUnknownFields: new(true)}
	// prunedValue accepts any value and drops the fields of objects.
	prunedValue = &schema{}
)

func orAnyValue(s *schema) *schema {
	if s != nil {
		return s
	}
	return anyValue
}
