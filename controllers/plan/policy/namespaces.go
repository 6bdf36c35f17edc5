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

package policy

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
)

// DefaultProtectedNamespaces are the namespaces that the hub does not sync unless an operator allows it: Kubernetes' namespaces,
// kcp's namespace for targets that are workspaces, and the namespaces of hubs and their identities.
var DefaultProtectedNamespaces = NamespacePatterns{"kube-*", kcpSystemNamespace, "synchub", "synchub-*"}

// NamespacePatterns are names of namespaces. A pattern that ends in "*" matches all names that begin with the rest.
type NamespacePatterns []string

// ParseNamespacePatterns validates patterns. The error names the first pattern that no namespace can match.
func ParseNamespacePatterns(texts []string) (NamespacePatterns, error) {
	for _, text := range texts {
		name, isPrefix := strings.CutSuffix(text, "*")
		if isPrefix {
			// Any letter can stand for the rest.
			name += "x"
		}
		if problems := content.IsDNS1123Label(name); len(problems) > 0 {
			return nil, fmt.Errorf("%q is neither the name of a namespace nor the beginning of one with a * after it: %s", text, problems[0])
		}
	}
	return NamespacePatterns(texts), nil
}

// Match reports whether a pattern matches a namespace.
func (p NamespacePatterns) Match(namespace string) bool {
	return slices.ContainsFunc(p, func(pattern string) bool {
		if prefix, ok := strings.CutSuffix(pattern, "*"); ok {
			return strings.HasPrefix(namespace, prefix)
		}
		return namespace == pattern
	})
}

// NamespacePolicy decides which namespaces of one target the hub uses, in both directions. It is immutable. Nil allows all.
type NamespacePolicy struct {
	// Protected namespaces are used only if Allowed names them as well, or a PublishedResource allows it.
	Protected, Allowed NamespacePatterns
	// Only lists all namespaces that the hub may use; empty stands for any.
	Only []string
}

// Check returns a [*DeniedError] if the hub syncs no objects of a namespace of the target; protectedToo is true if the
// PublishedResource allows protected namespaces.
func (n *NamespacePolicy) Check(namespace string, protectedToo bool) error {
	if n == nil {
		return nil
	}
	if len(n.Only) > 0 && !slices.Contains(n.Only, namespace) {
		return NamespaceNotAllowed(namespace)
	}
	return n.CheckProtected(namespace, protectedToo)
}

// NamespaceNotAllowed is the error for a namespace that the SyncTarget may not use.
func NamespaceNotAllowed(namespace string) *DeniedError {
	return &DeniedError{ReasonNamespaceNotAllowed, fmt.Sprintf(
		"nothing goes to or comes from the namespace %s of the target, since spec.namespaces.only of the SyncTarget does not list it: choose another namespace, or have it added there", namespace)}
}

// CheckProtected does the same for a namespace of the mailbox.
func (n *NamespacePolicy) CheckProtected(namespace string, protectedToo bool) error {
	if n == nil || protectedToo || !n.Protected.Match(namespace) || n.Allowed.Match(namespace) {
		return nil
	}
	return &DeniedError{ReasonNamespaceProtected, fmt.Sprintf(
		"the namespace %s is protected, nothing goes to it or comes from it: choose another one, or have it allowed by spec.namespaces.allowProtected of the SyncTarget or spec.protectedNamespaces of the PublishedResource", namespace)}
}

// Equal reports whether two policies make the same decisions.
func (n *NamespacePolicy) Equal(other *NamespacePolicy) bool { return n.String() == other.String() }

// String returns the same text for policies that make the same decisions.
func (n *NamespacePolicy) String() string {
	if n == nil {
		return ""
	}
	return fmt.Sprintf("%q %q %q", n.Protected, n.Allowed, n.Only)
}
