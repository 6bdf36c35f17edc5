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

package related

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/plan/expression"
)

// textTemplate is a template whose variable is a primary.
type textTemplate struct {
	// field of the relation, for errors.
	field    string
	template *expression.Template
}

func newTextTemplate(field, template string) (*textTemplate, error) {
	parsed, err := expression.ParseTemplate(template, "Primary", "Mailbox", "SyncTarget")
	if err != nil {
		return nil, fmt.Errorf("%s: %w", field, err)
	}
	return &textTemplate{field: field, template: parsed}, nil
}

func (t *textTemplate) render(primary primaryObject) (string, error) {
	result, err := t.template.Render(primary.variables)
	if err != nil {
		return "", fmt.Errorf("%s: %w", t.field, err)
	}
	return result, nil
}

// values returns the result, unless it is empty.
func (t *textTemplate) values(primary primaryObject, check func(string) error) ([]string, error) {
	result, err := t.render(primary)
	if err != nil || result == "" {
		return nil, err
	}
	if err := check(result); err != nil {
		return nil, fmt.Errorf("%s: %w", t.field, err)
	}
	return []string{result}, nil
}

// selector is a label selector whose values depend on a primary.
type selector struct {
	// labels are sorted by key.
	labels []labelTemplate
	// fixed are the requirements that do not depend on the primary.
	fixed labels.Requirements
}

type labelTemplate struct {
	key   string
	value *textTemplate
}

func newSelector(field string, spec synchubv1alpha1.RelatedSelector) (*selector, error) {
	if len(spec.MatchLabels)+len(spec.MatchExpressions) == 0 {
		return nil, fmt.Errorf("%s: an empty selector would take everything", field)
	}
	made := &selector{}
	for _, key := range slices.Sorted(maps.Keys(spec.MatchLabels)) {
		at := fmt.Sprintf("%s.matchLabels[%s]", field, key)
		if messages := content.IsLabelKey(key); len(messages) > 0 {
			return nil, fmt.Errorf("%s: %w", at, errors.New(strings.Join(messages, "; ")))
		}
		value, err := newTextTemplate(at, spec.MatchLabels[key])
		if err != nil {
			return nil, err
		}
		made.labels = append(made.labels, labelTemplate{key, value})
	}
	fixed, err := metav1.LabelSelectorAsSelector(&metav1.LabelSelector{MatchExpressions: spec.MatchExpressions})
	if err != nil {
		return nil, fmt.Errorf("%s.matchExpressions: %w", field, err)
	}
	made.fixed, _ = fixed.Requirements()
	return made, nil
}

// resolve returns the selector for a primary. If a value is empty, the selector selects nothing.
func (s *selector) resolve(primary primaryObject) (labels.Selector, error) {
	requirements := slices.Clone(s.fixed)
	for _, label := range s.labels {
		value, err := label.value.render(primary)
		switch {
		case err != nil:
			return nil, err
		case value == "":
			return labels.Nothing(), nil
		}
		if err := invalidError("value of a label", content.IsLabelValue(value)); err != nil {
			return nil, fmt.Errorf("%s: %w", label.value.field, err)
		}
		requirement, err := labels.NewRequirement(label.key, selection.Equals, []string{value})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", label.value.field, err)
		}
		requirements = append(requirements, *requirement)
	}
	return labels.NewSelector().Add(requirements...), nil
}
