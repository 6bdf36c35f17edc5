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
	"fmt"
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

// Absent is the result of a function given to Change for a value to remove.
var Absent any = absent{}

type absent struct{}

// Error reports the location in an object where a change failed.
type Error struct {
	// Location is a path of names and numbers only.
	Location string
	Err      error
}

func (e *Error) Error() string { return fmt.Sprintf("%s: %v", e.Location, e.Err) }
func (e *Error) Unwrap() error { return e.Err }

// Delete removes the fields and items at the path, and reports whether there were any. An empty map or list stays.
func (p Path) Delete(object map[string]any) bool {
	found := false
	// A deletion creates nothing, so it cannot fail.
	_ = p.Change(object, false, func(any, bool) (any, error) {
		found = true
		return Absent, nil
	})
	return found
}

// Change replaces each value at the path by the result of change, or removes the value if the result is Absent.
//
// If create is true, Change also calls change for a missing field, with nil and false, and sets the field to the result. It
// creates missing maps along the path, but never an item of a list. A null along the path counts as missing. If a value along the
// path has a type that the path cannot enter, Change returns an error if create is true, and otherwise changes nothing.
//
// Change writes after it has called change for all values, so change may read the object. If there is an error, an *Error with
// the location, Change writes nothing.
func (p Path) Change(object map[string]any, create bool, change func(value any, present bool) (any, error)) error {
	if len(p.steps) == 0 {
		return nil
	}
	walker := walker{create: create, change: change}
	if _, failed := walker.walk(object, true, p.steps); failed != nil {
		slices.Reverse(failed.reversed)
		return &Error{Location: formatSteps(failed.reversed), Err: failed.err}
	}
	for _, write := range walker.writes {
		write.apply()
	}
	return nil
}

type walker struct {
	create bool
	change func(value any, present bool) (any, error)
	writes []assignment
}

// assignment sets a field of the object.
type assignment struct {
	fields map[string]any
	name   string
	value  any
}

func (w assignment) apply() {
	if w.value == Absent {
		delete(w.fields, w.name)
		return
	}
	w.fields[w.name] = w.value
}

// failure is an error with the steps to its location, the last one first.
type failure struct {
	reversed []step
	err      error
}

func (f *failure) prepend(position step) *failure {
	f.reversed = append(f.reversed, position)
	return f
}

// walk returns the new value, or Absent for none. It returns a map itself, and adds assignments to the walker.
func (w *walker) walk(value any, present bool, steps []step) (any, *failure) {
	if len(steps) == 0 {
		if !present && !w.create {
			return Absent, nil
		}
		changed, err := w.change(value, present)
		if err != nil {
			return nil, &failure{err: err}
		}
		return changed, nil
	}
	switch typed := value.(type) {
	case map[string]any:
		if steps[0].kind == field {
			return w.walkMap(typed, steps)
		}
	case []any:
		if steps[0].kind != field {
			return w.walkList(typed, steps)
		}
	case nil:
		if w.create && onlyFields(steps) {
			return w.createMap(value, present, steps)
		}
		return unchanged(value, present), nil
	}
	if w.create {
		return nil, &failure{err: typeMismatch(value, steps[0])}
	}
	return value, nil
}

func unchanged(value any, present bool) any {
	if !present {
		return Absent
	}
	return value
}

func (w *walker) walkMap(fields map[string]any, steps []step) (any, *failure) {
	child, present := fields[steps[0].name]
	changed, failed := w.walk(child, present, steps[1:])
	if failed != nil {
		return nil, failed.prepend(steps[0])
	}
	if present || changed != Absent {
		w.writes = append(w.writes, assignment{fields: fields, name: steps[0].name, value: changed})
	}
	return fields, nil
}

// createMap returns a new map if there is none, unless it would be empty.
func (w *walker) createMap(value any, present bool, steps []step) (any, *failure) {
	child, failed := w.walk(nil, false, steps[1:])
	switch {
	case failed != nil:
		return nil, failed.prepend(steps[0])
	case child == Absent:
		return unchanged(value, present), nil
	default:
		return map[string]any{steps[0].name: child}, nil
	}
}

func (w *walker) walkList(items []any, steps []step) (any, *failure) {
	result := make([]any, 0, len(items))
	for position, item := range items {
		if !steps[0].selects(position, item) {
			result = append(result, item)
			continue
		}
		changed, failed := w.walk(item, true, steps[1:])
		if failed != nil {
			return nil, failed.prepend(step{kind: index, position: position})
		}
		if changed != Absent {
			result = append(result, changed)
		}
	}
	return result, nil
}

// typeMismatch is the error for a value that a step cannot enter.
func typeMismatch(value any, next step) error {
	need := "a list"
	if next.kind == field {
		need = "a map"
	}
	return fmt.Errorf("is %s, but the path needs %s here", TypeName(value), need)
}

// TypeName returns the JSON type of a value, for messages.
func TypeName(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case map[string]any:
		return "a map"
	case []any:
		return "a list"
	case string:
		return "text"
	case bool:
		return "a boolean"
	default:
		return "a number"
	}
}
