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

package filter

import (
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/plan/expression"
)

// selfVariable is the name of the object in the expression.
const selfVariable = "self"

// Filter decides which objects may be downsynced. It is immutable and safe for concurrent use. The nil Filter allows all objects.
type Filter struct {
	// Each is nil if the filter does not have that part.
	object, namespace labels.Selector
	condition         *expression.Expression
}

// Compile compiles a filter. It returns nil for nil. The error names the field.
func Compile(spec *synchubv1alpha1.Filter) (*Filter, error) {
	if spec == nil {
		return nil, nil
	}
	object, err := compileSelector("resource", spec.Resource)
	if err != nil {
		return nil, err
	}
	namespace, err := compileSelector("namespace", spec.Namespace)
	if err != nil {
		return nil, err
	}
	condition, err := compileCondition(spec.CEL)
	if err != nil {
		return nil, fmt.Errorf("cel: %w", err)
	}
	return &Filter{object: object, namespace: namespace, condition: condition}, nil
}

func compileSelector(field string, spec *metav1.LabelSelector) (labels.Selector, error) {
	if spec == nil {
		return nil, nil
	}
	compiled, err := metav1.LabelSelectorAsSelector(spec)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", field, err)
	}
	return compiled, nil
}

func compileCondition(text string) (*expression.Expression, error) {
	if text == "" {
		return nil, nil
	}
	compiled, err := expression.CompileCEL(text, selfVariable)
	if err != nil {
		return nil, err
	}
	if !compiled.ReturnsBool() {
		return nil, errors.New("the expression must yield true or false")
	}
	return compiled, nil
}

// UsesNamespaceLabels reports whether the filter reads the labels of an object's namespace.
func (f *Filter) UsesNamespaceLabels() bool { return f != nil && f.namespace != nil }

// Matches reports whether an object passes. It reads the labels of the object's namespace only if [Filter.UsesNamespaceLabels] is
// true. Cluster-scoped objects pass the condition on namespaces.
func (f *Filter) Matches(object *unstructured.Unstructured, namespaceLabels map[string]string) (bool, error) {
	if f == nil {
		return true, nil
	}
	if f.object != nil && !f.object.Matches(labels.Set(object.GetLabels())) ||
		f.namespace != nil && object.GetNamespace() != "" && !f.namespace.Matches(labels.Set(namespaceLabels)) {
		return false, nil
	}
	if f.condition == nil {
		return true, nil
	}
	result, err := f.condition.Evaluate(map[string]any{selfVariable: object.Object})
	if err != nil {
		return false, fmt.Errorf("spec.filter.cel: %w", err)
	}
	passes, ok := result.(bool)
	if !ok {
		// The result may be a part of a Secret, so the error does not contain it.
		return false, errors.New("spec.filter.cel: the expression yields neither true nor false")
	}
	return passes, nil
}
