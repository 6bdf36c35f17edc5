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
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxLength is the limit of the API for a v1alpha1.FieldPath, in characters. It also bounds the depth of a path.
const maxLength = 512

// Path leads to fields of an object. It is immutable. The zero Path matches nothing.
type Path struct {
	steps []step
}

// kind is the kind of a step: which values the step enters.
type kind int

const (
	// field: the field of a map with this name.
	field kind = iota
	// index: the item of a list at this position.
	index
	// wildcard: all items of a list.
	wildcard
	// filter: the items of a list whose field of this name has this value.
	filter
)

type step struct {
	kind     kind
	name     string
	position int
	value    string
}

// The steps that v1alpha1.FieldPath allows.
var (
	plainName = regexp.MustCompile(`^[A-Za-z_$][-\w$]*$`)
	firstStep = regexp.MustCompile(`^[A-Za-z_$][-\w$]*`)
	nextStep  = regexp.MustCompile(`^(?:\.([A-Za-z_$][-\w$]*)|\['([^']+)'\]|\[([0-9]+)\]|(\[\*\])|\[\?\(@\.([A-Za-z_][-\w]*)==(?:"([^"]*)"|'([^']*)')\)\])`)
)

// Parse parses a path. The error contains the position of the first invalid step.
func Parse(text string) (Path, error) {
	if length := utf8.RuneCountInString(text); length > maxLength {
		return Path{}, fmt.Errorf("the path has %d characters, at most %d are allowed", length, maxLength)
	}
	first := firstStep.FindString(text)
	if first == "" {
		return Path{}, fmt.Errorf("%q is no path: begin with the name of a field, without a dot, as in spec.replicas", text)
	}
	steps := []step{{kind: field, name: first}}
	for rest := text[len(first):]; rest != ""; {
		next, length, err := parseStep(rest)
		if err != nil {
			return Path{}, fmt.Errorf("%q is no path: after %q %w", text, text[:len(text)-len(rest)], err)
		}
		steps = append(steps, next)
		rest = rest[length:]
	}
	return Path{steps: steps}, nil
}

// jsonStep matches the steps that only a JSONPath may have.
var jsonStep = regexp.MustCompile(`^(?:\.([0-9]+)|\.(\*)|\["([^"]+)"\])`)

// ParseJSONPath parses a path that begins with $, as in $.spec.replicas. It may also have .0 for [0], .* for [*] and ["name"] for
// ['name']. Ranges, lists of steps and descents (..) are no part of it.
func ParseJSONPath(text string) (Path, error) {
	if length := utf8.RuneCountInString(text); length > maxLength {
		return Path{}, fmt.Errorf("the path has %d characters, at most %d are allowed", length, maxLength)
	}
	rest, ok := strings.CutPrefix(text, "$")
	if !ok {
		return Path{}, fmt.Errorf("%q is no JSONPath: begin with $, as in $.spec.replicas", text)
	}
	var steps []step
	for rest != "" {
		next, length, err := parseJSONStep(rest)
		if err != nil {
			return Path{}, fmt.Errorf("%q is no JSONPath: after %q %w", text, text[:len(text)-len(rest)], err)
		}
		steps = append(steps, next)
		rest = rest[length:]
	}
	if len(steps) == 0 || steps[0].kind != field {
		return Path{}, fmt.Errorf("%q does not begin with the name of a field, as $.spec.replicas does", text)
	}
	return Path{steps: steps}, nil
}

func parseJSONStep(text string) (next step, length int, err error) {
	groups := jsonStep.FindStringSubmatch(text)
	if groups == nil {
		return parseStep(text)
	}
	switch number, name := groups[1], groups[3]; {
	case number != "":
		next, err = indexStep(number)
	case name != "":
		next = step{kind: field, name: name}
	default:
		next = step{kind: wildcard}
	}
	return next, len(groups[0]), err
}

// parseStep parses the first step of a text, and returns its length.
func parseStep(text string) (next step, length int, err error) {
	groups := nextStep.FindStringSubmatchIndex(text)
	if groups == nil {
		return step{}, 0, errors.New(`must follow .name, ['name'], [0], [*] or [?(@.name=="value")]`)
	}
	next, err = stepOf(text, groups)
	return next, groups[1], err
}

// stepOf parses a match of nextStep.
func stepOf(text string, groups []int) (step, error) {
	group := func(number int) (string, bool) {
		from, to := groups[2*number], groups[2*number+1]
		if from < 0 {
			return "", false
		}
		return text[from:to], true
	}
	if name, ok := group(1); ok {
		return step{kind: field, name: name}, nil
	}
	if name, ok := group(2); ok {
		return step{kind: field, name: name}, nil
	}
	if digits, ok := group(3); ok {
		return indexStep(digits)
	}
	if _, ok := group(4); ok {
		return step{kind: wildcard}, nil
	}
	name, _ := group(5)
	value, ok := group(6)
	if !ok {
		value, _ = group(7)
	}
	return step{kind: filter, name: name, value: value}, nil
}

func indexStep(digits string) (step, error) {
	position, err := strconv.ParseInt(digits, 10, 32)
	if err != nil {
		return step{}, fmt.Errorf("no list has an item [%s]", digits)
	}
	return step{kind: index, position: int(position)}, nil
}

// String returns the canonical text of the path.
func (p Path) String() string { return formatSteps(p.steps) }

// Child returns the path to a field of the value; with an empty name it is the same.
func (p Path) Child(name string) Path {
	if name == "" {
		return p
	}
	return Path{steps: append(slices.Clip(p.steps), step{kind: field, name: name})}
}

// Overlaps reports whether two paths may lead to the same value, or one of them into the value of the other.
func (p Path) Overlaps(other Path) bool {
	common := min(len(p.steps), len(other.steps))
	for i := range common {
		if !p.steps[i].overlaps(other.steps[i]) {
			return false
		}
	}
	return common > 0
}

func (s step) overlaps(other step) bool {
	switch {
	case s.kind == field || other.kind == field:
		return s.kind == other.kind && s.name == other.name
	case s.kind == index && other.kind == index:
		return s.position == other.position
	case s.kind == filter && other.kind == filter && s.name == other.name:
		return s.value == other.value
	default:
		// Which items of a list they match depends on the object.
		return true
	}
}

func formatSteps(steps []step) string {
	var builder strings.Builder
	for position, next := range steps {
		next.writeTo(&builder, position == 0)
	}
	return builder.String()
}

func (s step) writeTo(builder *strings.Builder, first bool) {
	switch s.kind {
	case field:
		switch {
		case !plainName.MatchString(s.name):
			fmt.Fprintf(builder, "['%s']", s.name)
		case first:
			builder.WriteString(s.name)
		default:
			builder.WriteString("." + s.name)
		}
	case index:
		fmt.Fprintf(builder, "[%d]", s.position)
	case wildcard:
		builder.WriteString("[*]")
	case filter:
		quote := `"`
		if strings.Contains(s.value, quote) {
			quote = "'"
		}
		fmt.Fprintf(builder, "[?(@.%s==%s%s%s)]", s.name, quote, s.value, quote)
	}
}
