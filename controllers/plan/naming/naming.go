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

package naming

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/plan/expression"
)

// The fields that an [InvalidNameError] names.
const (
	nameField      = "spec.naming.name"
	namespaceField = "spec.naming.namespace"
)

// Namer computes the names of objects on the other side. It is immutable and safe for concurrent use. The nil Namer changes no
// name.
type Namer struct {
	// name and namespace are nil if that part does not change.
	name, namespace *expression.Template
}

// InvalidNameError means that a template yields no valid name.
type InvalidNameError struct {
	// Field is the field of the PublishedResource that holds the template.
	Field string
	// Value is the invalid name, shortened if it was too long.
	Value string
	// Message is the reason why the name is invalid.
	Message string
}

func (e *InvalidNameError) Error() string {
	return fmt.Sprintf("%s yields %q: %s", e.Field, e.Value, e.Message)
}

// Compile parses naming templates over the variables, by default Object, Mailbox and SyncTarget. It returns nil for nil. The
// error names the field.
func Compile(spec *synchubv1alpha1.Naming, variables ...string) (*Namer, error) {
	if spec == nil {
		return nil, nil
	}
	if len(variables) == 0 {
		variables = []string{"Object", "Mailbox", "SyncTarget"}
	}
	compile := func(field, text string) (*expression.Template, error) {
		if text == "" {
			return nil, nil
		}
		template, err := expression.ParseTemplate(text, variables...)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", field, err)
		}
		return template, nil
	}
	name, err := compile("name", spec.Name)
	if err != nil {
		return nil, err
	}
	namespace, err := compile("namespace", spec.Namespace)
	if err != nil {
		return nil, err
	}
	return &Namer{name: name, namespace: namespace}, nil
}

// Name returns the name of an object on the other side, where it has the given kind. A part without a template is the same as in
// unchanged. Cluster-scoped objects have no namespace.
func (n *Namer) Name(variables map[string]any, unchanged types.NamespacedName, namespaced bool, kind schema.GroupKind) (types.NamespacedName, error) {
	result := unchanged
	if !namespaced {
		result.Namespace = ""
	}
	if n == nil {
		return result, nil
	}
	var err error
	if n.name != nil {
		if result.Name, err = render(n.name, variables, nameField, rulesFor(kind)); err != nil {
			return types.NamespacedName{}, err
		}
	}
	if n.namespace != nil && namespaced {
		if result.Namespace, err = render(n.namespace, variables, namespaceField, labelRules); err != nil {
			return types.NamespacedName{}, err
		}
	}
	return result, nil
}

// Uses reports whether a template refers to the variable.
func (n *Namer) Uses(variable string) bool {
	return n != nil && (n.name != nil && n.name.Uses(variable) || n.namespace != nil && n.namespace.Uses(variable))
}

// HasNameTemplate reports whether names change.
func (n *Namer) HasNameTemplate() bool { return n != nil && n.name != nil }

// HasNamespaceTemplate reports whether namespaces change.
func (n *Namer) HasNamespaceTemplate() bool { return n != nil && n.namespace != nil }

// render returns the valid name that a template yields.
func render(template *expression.Template, variables map[string]any, field string, rules nameRules) (string, error) {
	text, err := template.Render(variables)
	if err != nil {
		return "", fmt.Errorf("%s: %w", field, err)
	}
	name, message := rules.apply(text)
	if message != "" {
		return "", &InvalidNameError{Field: field, Value: name, Message: message}
	}
	return name, nil
}
