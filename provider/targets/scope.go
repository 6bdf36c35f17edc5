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

package targets

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Scope is the part of a cluster to watch: everything, or namespaces and names. Each namespace and name costs a watch. The
// zero value is empty.
type Scope struct {
	All        bool
	Namespaces []string
	Names      []types.NamespacedName
}

// allNamespaces stands for the whole cluster.
var allNamespaces = []string{metav1.NamespaceAll}

// Namespaces are the sorted namespaces to which a connection is bound; none if it covers the whole cluster.
type Namespaces []string

// toList returns the namespaces in which the hub lists and watches a resource; the empty namespace is the whole cluster.
// Namespaces do not restrict cluster-scoped resources.
func (n Namespaces) toList(namespaced bool) []string {
	if !namespaced || len(n) == 0 {
		return allNamespaces
	}
	return n
}

// Contain reports whether the hub lists and watches a namespace. It is true for the empty one.
func (n Namespaces) Contain(namespace string) bool {
	return namespace == metav1.NamespaceNone || len(n) == 0 || slices.Contains(n, namespace)
}

// Restrict returns the part of a scope that is in the namespaces.
func (n Namespaces) Restrict(scope Scope, namespaced bool) Scope {
	if !namespaced || len(n) == 0 {
		return scope
	}
	if scope.All {
		return Scope{Namespaces: n}
	}
	return Scope{
		Namespaces: slices.DeleteFunc(slices.Clone(scope.Namespaces), func(namespace string) bool { return !n.Contain(namespace) }),
		Names:      slices.DeleteFunc(slices.Clone(scope.Names), func(key types.NamespacedName) bool { return !n.Contain(key.Namespace) }),
	}
}
