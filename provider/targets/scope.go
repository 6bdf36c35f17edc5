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
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/provider/notfound"
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

// Namespaces returns the sorted namespaces to which the connection is bound; none if it covers the whole cluster.
func (c *Connection) Namespaces() []string { return c.namespaces }

// namespacesToList returns the namespaces in which the hub lists and watches a resource; the empty namespace is the whole
// cluster. The connection's namespaces do not restrict cluster-scoped resources.
func (c *Connection) namespacesToList(namespaced bool) []string {
	if !namespaced || len(c.namespaces) == 0 {
		return allNamespaces
	}
	return c.namespaces
}

// WatchesNamespace reports whether the hub lists and watches a namespace. It is true for the empty one.
func (c *Connection) WatchesNamespace(namespace string) bool {
	return namespace == metav1.NamespaceNone || len(c.namespaces) == 0 || slices.Contains(c.namespaces, namespace)
}

// RestrictScope returns the part of a scope that is in the connection's namespaces.
func (c *Connection) RestrictScope(scope Scope, namespaced bool) Scope {
	if !namespaced || len(c.namespaces) == 0 {
		return scope
	}
	if scope.All {
		return Scope{Namespaces: c.namespaces}
	}
	return Scope{
		Namespaces: slices.DeleteFunc(slices.Clone(scope.Namespaces), func(namespace string) bool { return !c.WatchesNamespace(namespace) }),
		Names:      slices.DeleteFunc(slices.Clone(scope.Names), func(key types.NamespacedName) bool { return !c.WatchesNamespace(key.Namespace) }),
	}
}

// IsNamespaceMissing reports whether the target has no namespace of this name. It returns false if the request fails.
func (c *Connection) IsNamespaceMissing(ctx context.Context, name string) bool {
	ctx, done := withTimeout(ctx, requestTimeout)
	defer done()
	_, err := c.metadata.Resource(namespacesResource).Get(ctx, name, metav1.GetOptions{})
	return notfound.Proves(err, namespacesResource.GroupResource(), name)
}

func inNamespace(namespace string) string {
	if namespace == metav1.NamespaceAll {
		return ""
	}
	return " in the namespace " + namespace
}
