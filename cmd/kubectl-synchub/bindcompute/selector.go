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

package bindcompute

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// selectorOperators are the operators of kubectl's selectors that an object can hold, except those for equality.
var selectorOperators = map[selection.Operator]metav1.LabelSelectorOperator{
	selection.In:           metav1.LabelSelectorOpIn,
	selection.NotIn:        metav1.LabelSelectorOpNotIn,
	selection.NotEquals:    metav1.LabelSelectorOpNotIn,
	selection.Exists:       metav1.LabelSelectorOpExists,
	selection.DoesNotExist: metav1.LabelSelectorOpDoesNotExist,
}

// ParseSelector parses a selector that kubectl accepts, such as "env=prod,tier!=db". The function of the same purpose in
// package metav1 knows no "!=". It returns an error for "<" and ">", which objects cannot hold.
func ParseSelector(text string) (*metav1.LabelSelector, error) {
	parsed, err := labels.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%q is not a selector: %w", text, err)
	}
	requirements, _ := parsed.Requirements()
	selector := &metav1.LabelSelector{}
	for _, requirement := range requirements {
		key, values := requirement.Key(), slices.Sorted(slices.Values(requirement.ValuesUnsorted()))
		operator, isExpression := selectorOperators[requirement.Operator()]
		switch requirement.Operator() { //nolint:exhaustive // the map contains all other operators
		case selection.Equals, selection.DoubleEquals:
			if _, isSet := selector.MatchLabels[key]; !isSet {
				metav1.AddLabelToSelector(selector, key, values[0])
				continue
			}
			operator, isExpression = metav1.LabelSelectorOpIn, true
		}
		if !isExpression {
			return nil, fmt.Errorf("%q: an EdgePlacement has no operator %q", text, requirement.Operator())
		}
		selector.MatchExpressions = append(selector.MatchExpressions, metav1.LabelSelectorRequirement{Key: key, Operator: operator, Values: values})
	}
	return selector, nil
}
