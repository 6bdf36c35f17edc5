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

// DefaultProtectedNamespaces are the namespaces that nothing goes to or comes from unless the hub is told otherwise: those of
// Kubernetes itself, the one of kcp, for targets that are workspaces, and those of hubs and their identities.
var DefaultProtectedNamespaces = NamespacePatterns{"kube-*", kcpSystemNamespace, "synchub", "synchub-*"}

// NamespacePatterns are names of namespaces. One that ends in "*" stands for all that begin with the rest.
type NamespacePatterns []string

// ParseNamespacePatterns checks patterns. The error names the first that no namespace can match.
func ParseNamespacePatterns(texts []string) (NamespacePatterns, error) {
	for _, text := range texts {
		name, isPrefix := strings.CutSuffix(text, "*")
		if isPrefix {
			// Any letter will do for the rest.
			name += "x"
		}
		if problems := content.IsDNS1123Label(name); len(problems) > 0 {
			return nil, fmt.Errorf("%q is neither the name of a namespace nor the beginning of one with a * after it: %s", text, problems[0])
		}
	}
	return NamespacePatterns(texts), nil
}

// Match tells whether a namespace is one of those that the patterns stand for.
func (p NamespacePatterns) Match(namespace string) bool {
	return slices.ContainsFunc(p, func(pattern string) bool {
		if prefix, ok := strings.CutSuffix(pattern, "*"); ok {
			return strings.HasPrefix(namespace, prefix)
		}
		return namespace == pattern
	})
}

// NamespacePolicy says which namespaces of one target the hub uses, in both directions. It never changes. Nil stands for all.
type NamespacePolicy struct {
	// Protected are those that are used only if Allowed names them as well, or a PublishedResource allows it.
	Protected, Allowed NamespacePatterns
	// Only are all that are used; empty stands for any.
	Only []string
}

// Check returns a [*DeniedError] if objects in a namespace of the target neither come nor go; protectedToo is true if the
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

// NamespaceNotAllowed says that a target is bound to other namespaces.
func NamespaceNotAllowed(namespace string) *DeniedError {
	return &DeniedError{ReasonNamespaceNotAllowed, fmt.Sprintf(
		"nothing goes to or comes from the namespace %s of the target, since spec.namespaces.only of the SyncTarget does not list it: choose another namespace, or have it added there", namespace)}
}

// CheckProtected is Check for a namespace of the mailbox.
func (n *NamespacePolicy) CheckProtected(namespace string, protectedToo bool) error {
	if n == nil || protectedToo || !n.Protected.Match(namespace) || n.Allowed.Match(namespace) {
		return nil
	}
	return &DeniedError{ReasonNamespaceProtected, fmt.Sprintf(
		"the namespace %s is protected, nothing goes to it or comes from it: choose another one, or have it allowed by spec.namespaces.allowProtected of the SyncTarget or spec.protectedNamespaces of the PublishedResource", namespace)}
}

// Equal tells whether both decide alike.
func (n *NamespacePolicy) Equal(other *NamespacePolicy) bool { return n.String() == other.String() }

// String is equal for two that decide alike.
func (n *NamespacePolicy) String() string {
	if n == nil {
		return ""
	}
	return fmt.Sprintf("%q %q %q", n.Protected, n.Allowed, n.Only)
}
