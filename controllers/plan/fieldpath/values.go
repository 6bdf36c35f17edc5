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

package fieldpath

import (
	"encoding/json"
	"slices"
	"strconv"
)

// Root returns the first field of the path.
func (p Path) Root() string {
	if len(p.steps) == 0 {
		return ""
	}
	return p.steps[0].name
}

// Values returns the values at the path, in the order of the lists on the way. They are parts of the object, not copies.
func (p Path) Values(object map[string]any) []any {
	if len(p.steps) == 0 {
		return nil
	}
	return appendValues(nil, object, p.steps)
}

func appendValues(values []any, value any, steps []step) []any {
	if len(steps) == 0 {
		return append(values, value)
	}
	next := steps[0]
	switch typed := value.(type) {
	case map[string]any:
		if child, ok := typed[next.name]; ok && next.kind == field {
			values = appendValues(values, child, steps[1:])
		}
	case []any:
		for position, item := range typed {
			if next.selects(position, item) {
				values = appendValues(values, item, steps[1:])
			}
		}
	}
	return values
}

// selects reports whether a step matches an item of a list.
func (s step) selects(position int, item any) bool {
	switch s.kind {
	case wildcard:
		return true
	case index:
		return s.position == position
	case filter:
		fields, _ := item.(map[string]any)
		value, ok := fields[s.name]
		return ok && s.hasValue(value)
	default:
		return false
	}
}

// hasValue reports whether a field has the step's value.
func (s step) hasValue(value any) bool {
	switch typed := value.(type) {
	case string:
		return typed == s.value
	case int64:
		return strconv.FormatInt(typed, 10) == s.value
	case bool:
		return strconv.FormatBool(typed) == s.value
	case float64:
		text, err := json.Marshal(typed)
		return err == nil && string(text) == s.value
	default:
		return false
	}
}

// onlyFields reports whether a path can be created: the content of a new item of a list would be unknown.
func onlyFields(steps []step) bool {
	return !slices.ContainsFunc(steps, func(next step) bool { return next.kind != field })
}
