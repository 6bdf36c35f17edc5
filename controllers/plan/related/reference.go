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
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/plan/expression"
	"github.com/synchub-dev/synchub/controllers/plan/fieldpath"
)

// maxTextBytes is the maximum length in bytes of a text in a primary that contains a name. Some texts are URLs, and the name is a
// part of them.
const maxTextBytes = 4096

// reference reads texts from fields of a primary.
type reference struct {
	// field of the relation, for errors.
	field string
	path  fieldpath.Path
	// nameField and namespaceField are set if the path leads to objects.
	nameField, namespaceField string
	// pattern is nil if the text is the name.
	pattern     *regexp.Regexp
	replacement string
}

func newReference(field string, from synchubv1alpha1.FieldPath, rewrite *synchubv1alpha1.RegexRewrite) (*reference, error) {
	parsed, err := fieldpath.Parse(string(from))
	if err != nil {
		return nil, fmt.Errorf("%s.path: %w", field, err)
	}
	made := &reference{field: field, path: parsed}
	if rewrite == nil {
		return made, nil
	}
	if rewrite.Pattern == "" {
		return nil, fmt.Errorf("%s.regex.pattern: it is required", field)
	}
	if made.pattern, err = regexp.Compile(rewrite.Pattern); err != nil {
		return nil, fmt.Errorf("%s.regex.pattern: %w", field, err)
	}
	made.replacement = rewrite.Replacement
	return made, nil
}

// values returns the texts in the fields. It skips missing and empty fields.
func (r *reference) values(primary primaryObject, check func(string) error) ([]string, error) {
	var found []string
	err := r.forEach(primary, check, func(name string, _ any) error {
		found = append(found, name)
		return nil
	})
	return found, err
}

// names returns the names in the fields, sorted, without duplicates. Each has the namespace in the namespaceField beside it,
// otherwise the primary's own.
func (r *reference) names(primary primaryObject) ([]types.NamespacedName, error) {
	var found []types.NamespacedName
	err := r.forEach(primary, validateName, func(name string, value any) error {
		namespace, err := r.stringField(value, r.namespaceField)
		if err != nil {
			return err
		}
		if namespace == "" {
			namespace = primary.sourceNamespace
		} else if err := validateNamespace(namespace); err != nil {
			return r.errorf("%s: %w", r.namespaceField, err)
		}
		found = append(found, types.NamespacedName{Namespace: namespace, Name: name})
		return nil
	})
	slices.SortFunc(found, compareNames)
	return slices.Compact(found), err
}

// forEach calls found with each name, and with the value that the path leads to.
func (r *reference) forEach(primary primaryObject, check func(string) error, found func(name string, value any) error) error {
	for _, value := range r.path.Values(primary.object) {
		claim, err := r.stringField(value, r.nameField)
		if err != nil {
			return err
		}
		name := r.rewrite(claim)
		if name == "" {
			continue
		}
		if err := check(name); err != nil {
			return r.errorf("%w", err)
		}
		if err := found(name, value); err != nil {
			return err
		}
	}
	return nil
}

// stringField returns the text in a field of a value, or the value itself if field is empty. It is empty if the field is
// missing.
func (r *reference) stringField(value any, field string) (string, error) {
	if field != "" && value != nil {
		object, ok := value.(map[string]any)
		if !ok {
			return "", r.errorf("it must lead to objects with the field %s, and leads to %s", field, fieldpath.TypeName(value))
		}
		value = object[field]
	}
	switch text, ok := value.(string); {
	case value == nil:
		return "", nil
	case !ok && field != "":
		return "", r.errorf("the field %s must be text, and is %s", field, fieldpath.TypeName(value))
	case !ok:
		return "", r.errorf("it must lead to text, and leads to %s", fieldpath.TypeName(value))
	case len(text) > maxTextBytes:
		return "", r.errorf("it leads to a text of %d bytes, and at most %d are read", len(text), maxTextBytes)
	default:
		return text, nil
	}
}

func (r *reference) rewrite(text string) string {
	if r.pattern == nil || text == "" {
		return text
	}
	return r.pattern.ReplaceAllString(text, r.replacement)
}

// errorf returns an error that names the field of the relation and its path.
func (r *reference) errorf(format string, values ...any) error {
	return fmt.Errorf("%s.path: %s: %w", r.field, r.path, fmt.Errorf(format, values...))
}

// validateName returns an error for a text that cannot be the name of an object.
func validateName(text string) error {
	if len(text) > content.DNS1123SubdomainMaxLength {
		return fmt.Errorf("a name of %d characters is too long", len(text))
	}
	return invalidError("name of an object", content.IsPathSegmentName(text))
}

// validateNamespace returns an error for a text that cannot be the name of a namespace.
func validateNamespace(text string) error {
	return invalidError("name of a namespace", content.IsDNS1123Label(text))
}

// invalidError does not repeat the text: a wrong path may lead to a part of a Secret.
func invalidError(what string, messages []string) error {
	if len(messages) == 0 {
		return nil
	}
	return fmt.Errorf("the text cannot be the %s: %s", what, strings.Join(messages, "; "))
}

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
