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

package customization

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Parameters are the values of a destination's parameters by name. If several maps have a name, the first one
// counts.
type Parameters []map[string]string

func (p Parameters) get(name string) (string, bool) {
	for _, values := range p {
		if value, ok := values[name]; ok {
			return value, true
		}
	}
	return "", false
}

// Equal reports whether two destinations have the same parameters.
func (p Parameters) Equal(other Parameters) bool {
	return slices.EqualFunc(p, other, func(a, b map[string]string) bool { return maps.Equal(a, b) })
}

// expander changes one object.
type expander struct {
	parameters Parameters
	// growth is how many bytes the object may still grow.
	growth int
}

var errGrowth = fmt.Errorf("the object would grow by more than %d bytes", maxGrowth)

// expandObject expands parameters in all texts of an object, except the fields that identify it.
func (e *expander) expandObject(object map[string]any) error {
	for _, field := range slices.Sorted(maps.Keys(object)) {
		var err *Error
		switch field {
		case "apiVersion", "kind", "status":
		case "metadata":
			metadata, _ := object[field].(map[string]any)
			for _, entries := range []string{"labels", "annotations"} {
				if _, ok := metadata[entries]; ok && err == nil {
					metadata[entries], err = e.expandValue(metadata[entries])
					err = err.within("metadata." + entries)
				}
			}
		default:
			object[field], err = e.expandValue(object[field])
			err = err.within(field)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// expandValue returns the value with its texts expanded. It changes maps and lists in place. The error's field
// is the path in the value.
func (e *expander) expandValue(value any) (any, *Error) {
	switch typed := value.(type) {
	case string:
		return e.expand(typed)
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(typed)) {
			expanded, err := e.expandValue(typed[key])
			if err != nil {
				return nil, err.within(pathStep(key))
			}
			typed[key] = expanded
		}
	case []any:
		for position, item := range typed {
			expanded, err := e.expandValue(item)
			if err != nil {
				return nil, err.within(fmt.Sprintf("[%d]", position))
			}
			typed[position] = expanded
		}
	}
	return value, nil
}

// expand replaces %(name) by the value of the parameter, and %% by %. Any other % stays.
func (e *expander) expand(text string) (string, *Error) {
	var expanded strings.Builder
	for rest := text; ; {
		before, after, found := strings.Cut(rest, "%")
		expanded.WriteString(before)
		switch {
		case !found:
			return expanded.String(), nil
		case strings.HasPrefix(after, "%"):
			expanded.WriteByte('%')
			rest = after[1:]
		case strings.HasPrefix(after, "("):
			name, behind, closed := strings.Cut(after[1:], ")")
			if !closed {
				return "", &Error{ReasonInvalid, "", "after %( there is no closing bracket: write %%( for the text %("}
			}
			value, known := e.parameters.get(name)
			if !known {
				return "", unknownParameter(name)
			}
			if e.growth -= len(value); e.growth < 0 {
				return "", &Error{ReasonTooLarge, "", errGrowth.Error()}
			}
			expanded.WriteString(value)
			rest = behind
		default:
			expanded.WriteByte('%')
			rest = after
		}
	}
}

// maxQuoted bounds the name of a parameter in a message, in bytes. The key of a label has at most 317.
const maxQuoted = 320

func unknownParameter(name string) *Error {
	quoted := name
	if len(quoted) > maxQuoted {
		quoted = strings.ToValidUTF8(quoted[:maxQuoted], "") + "…"
	}
	return &Error{ReasonUnknownParameter, "", fmt.Sprintf("neither the SyncTarget nor its Location has a label or an annotation %q", quoted)}
}

// maxField bounds the path in an error, in bytes.
const maxField = 512

// within prepends a step to the path in the error.
func (e *Error) within(step string) *Error {
	if e == nil || len(e.Field) > maxField {
		return e
	}
	if e.Field != "" && e.Field[0] != '[' {
		step += "."
	}
	e.Field = step + e.Field
	return e
}

// pathStep returns the name of a field as a step of a path.
func pathStep(name string) string {
	if strings.ContainsAny(name, "./[]'") {
		return fmt.Sprintf("['%s']", name)
	}
	return name
}
