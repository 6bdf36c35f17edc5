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

// Texts of validation messages that identify two faults whose cause is not at the reported location.
const (
	contributes = "contributed to estimated rule cost total"
	definedIn   = "because it is defined in "
)

// Maximum lengths of a rule, and of the reason, in a note.
const (
	ruleLength   = 80
	reasonLength = 300
)

// removeFaults removes the parts of the schema that the faults name, as far as these parts only restrict values, and
// returns notes about them. If rules are only together too expensive, removeFaults removes the first of them, or with
// aggressive all rules.
func removeFaults(root *apiextensionsv1.JSONSchemaProps, all field.ErrorList, aggressive bool) (notes []Note) {
	single, together := removable(all)
	if len(single) == 0 && len(together) > 0 && aggressive {
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

// withoutRules removes all rules.
func withoutRules(root *apiextensionsv1.JSONSchemaProps) (notes []Note) {
	walk(root, position{}, func(node *apiextensionsv1.JSONSchemaProps, at position) {
		if len(node.XValidations) > 0 {
			node.XValidations = nil
			notes = append(notes, Note{at.path, "the rules are left out: all rules of the schema together are too expensive"})
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

// faultMessage returns the message of a fault on one line.
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

// removable assigns faults to their causes. It separates the faults of rules that are only together too expensive:
// the caller removes the first of these rules, which costs most, and only when no other fault is left. The remaining
// rules may be acceptable then.
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

// sortedFaults are sorted by their fields for binary search.
type sortedFaults field.ErrorList

func sorted(faults field.ErrorList) sortedFaults {
	slices.SortStableFunc(faults, func(a, b *field.Error) int { return cmp.Compare(a.Field, b.Field) })
	return sortedFaults(faults)
}

// find returns the first fault at a path, or else the first fault below the path.
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

// summary lists the first faults without the schemas that they concern.
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
