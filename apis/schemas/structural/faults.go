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

package structural

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// The words by which the validation tells two faults that are not where they are reported.
const (
	contributes = "contributed to estimated rule cost total"
	definedIn   = "because it is defined in "
)

// How much of a rule a note shows, and of what is wrong with it.
const (
	ruleLength   = 80
	reasonLength = 300
)

// removeFaults takes out what the faults are about and returns what that was. What restricts nothing but values can go. With hurry
// rules that are only together too expensive all go at once.
func removeFaults(root *apiextensionsv1.JSONSchemaProps, all field.ErrorList, hurry bool) (notes []Note) {
	single, together := removable(all)
	if len(single) == 0 && len(together) > 0 && hurry {
		return withoutRules(root)
	}
	if len(single) == 0 && len(together) > 0 {
		single = together[:1]
	}
	faults := sorted(single)
	walk(root, position{schema: schemaPath}, func(node *apiextensionsv1.JSONSchemaProps, at position) {
		if find(faults, at.schema) == nil {
			return
		}
		drop := func(keyword string, present bool) bool {
			fault := find(faults, at.schema.Child(keyword))
			if !present || fault == nil {
				return false
			}
			notes = append(notes, Note{at.path, keyword + " is left out: " + faultMessage(fault)})
			return true
		}
		if drop("default", node.Default != nil) {
			node.Default = nil
		}
		if drop("pattern", node.Pattern != "") {
			node.Pattern = ""
		}
		if drop("allOf", len(node.AllOf) > 0) {
			node.AllOf = nil
		}
		if drop("anyOf", len(node.AnyOf) > 0) {
			node.AnyOf = nil
		}
		if drop("oneOf", len(node.OneOf) > 0) {
			node.OneOf = nil
		}
		if drop("not", node.Not != nil) {
			node.Not = nil
		}
		notes = append(notes, removeFaultyRules(node, at, faults)...)
	})
	return notes
}

// withoutRules gives up all rules.
func withoutRules(root *apiextensionsv1.JSONSchemaProps) (notes []Note) {
	walk(root, position{}, func(node *apiextensionsv1.JSONSchemaProps, at position) {
		if len(node.XValidations) > 0 {
			node.XValidations = nil
			notes = append(notes, Note{at.path, "the rules are left out: those of the schema are together too expensive"})
		}
	})
	return notes
}

func removeFaultyRules(node *apiextensionsv1.JSONSchemaProps, at position, faults sortedFaults) (notes []Note) {
	var kept apiextensionsv1.ValidationRules
	for i, rule := range node.XValidations {
		path := at.schema.Child("x-kubernetes-validations").Index(i)
		if fault := find(faults, path.Child("messageExpression")); fault != nil {
			notes = append(notes, Note{at.path, fmt.Sprintf("the messageExpression of %s is left out: %s", describeRule(rule), faultMessage(fault))})
			rule.MessageExpression = ""
		} else if fault := find(faults, path); fault != nil {
			notes = append(notes, Note{at.path, fmt.Sprintf("%s is left out: %s", describeRule(rule), faultMessage(fault))})
			continue
		}
		kept = append(kept, rule)
	}
	node.XValidations = kept
	return notes
}

// faultMessage returns what a fault says, on one line.
func faultMessage(fault *field.Error) string {
	return oneLine(cmp.Or(fault.Detail, fault.Type.String()), reasonLength)
}

func describeRule(rule apiextensionsv1.ValidationRule) string {
	return fmt.Sprintf("the rule %q", oneLine(rule.Rule, ruleLength))
}

func oneLine(text string, length int) string {
	line := []rune(strings.Join(strings.Fields(text), " "))
	if len(line) > length {
		line = append(line[:length], '…')
	}
	return string(line)
}

// removable moves faults to what causes them. Of rules that are only together too expensive the first, which costs most,
// is given up, and only when all else is well: the others may be fine then.
func removable(faults field.ErrorList) (single, together field.ErrorList) {
	for _, fault := range faults {
		moved := *fault
		if _, cause, ok := strings.Cut(fault.Detail, definedIn); ok {
			moved.Field = cause
		}
		if strings.Contains(fault.Detail, contributes) {
			together = append(together, &moved)
		} else if fault.Field != schemaPath.String() {
			single = append(single, &moved)
		}
	}
	return single, together
}

// sortedFaults are sorted by their fields, so that one is found without a look at all.
type sortedFaults field.ErrorList

func sorted(faults field.ErrorList) sortedFaults {
	slices.SortStableFunc(faults, func(a, b *field.Error) int { return cmp.Compare(a.Field, b.Field) })
	return sortedFaults(faults)
}

// find returns the first fault at a path, else one below it.
func find(faults sortedFaults, path *field.Path) *field.Error {
	text := path.String()
	for _, below := range []string{"", ".", "["} {
		i, found := slices.BinarySearchFunc(faults, text+below, func(fault *field.Error, prefix string) int { return cmp.Compare(fault.Field, prefix) })
		if found || below != "" && i < len(faults) && strings.HasPrefix(faults[i].Field, text+below) {
			return faults[i]
		}
	}
	return nil
}

// summary lists faults without the schemas that they are about.
func summary(faults field.ErrorList) string {
	const shown = 5
	var lines []string
	for _, fault := range faults[:min(len(faults), shown)] {
		place := strings.TrimPrefix(strings.TrimPrefix(fault.Field, schemaPath.String()), ".")
		lines = append(lines, cmp.Or(place, ".")+": "+faultMessage(fault))
	}
	if more := len(faults) - shown; more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(lines, "; ")
}
