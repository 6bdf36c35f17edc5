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

// kinds are the kinds of values that a schema takes, beside null.
type kinds uint8

const (
	text kinds = 1 << iota
	boolean
	integer
	fraction // a number that is no integer
	list
	object

	anything = text | boolean | integer | fraction | list | object
)

// names of the kinds, as schemas call them.
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

// kindsOf returns what a schema takes by its type.
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

// acceptsNull tells whether a server that has only the schema takes null for a value. By an enum it never does.
func acceptsNull(s *schema) bool {
	return (s.Nullable || s.Type == "" && !s.XIntOrString) && len(s.Enum) == 0
}

// mayBeNull tells whether a field may be null. A server drops such a null unless the schema allows it by name, or says nothing
// about the field.
func mayBeNull(s *schema) bool {
	return s.Nullable && len(s.Enum) == 0 || s == anyValue || s == prunedValue
}

// preserves tells whether fields are kept that the schema does not name.
func preserves(s *schema) bool { return s.XPreserveUnknownFields != nil && *s.XPreserveUnknownFields }

// What there may be where a schema says nothing. They are told by their addresses, and never compared with themselves, since
// there is no end to what is inside of them.
var (
	// anyValue is any value, which is kept as it is.
	anyValue = &schema{XPreserveUnknownFields: new(true)}
	// prunedValue is any value, of which the fields of objects are dropped.
	prunedValue = &schema{}
)

func orAnyValue(s *schema) *schema {
	if s != nil {
		return s
	}
	return anyValue
}
