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
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// maxListedScopes is the maximum length of a list of names or namespaces: one more than the maximum number of single watches.
const maxListedScopes = 9

// scopeCounter counts the claims for each name and namespace, to find where originals can be.
type scopeCounter struct {
	names              map[types.NamespacedName]int
	searchedNamespaces map[string]int
	// namespacesOfNames are the namespaces of names.
	namespacesOfNames map[string]int
	selectedCount     int
}

func newScopeCounter() scopeCounter {
	return scopeCounter{names: map[types.NamespacedName]int{}, searchedNamespaces: map[string]int{}, namespacesOfNames: map[string]int{}}
}

// add adds a query, or removes it if change is -1.
func (p *scopeCounter) add(query Query, change int) {
	for _, name := range query.Names {
		addCount(p.names, name, change)
		addCount(p.namespacesOfNames, name.Namespace, change)
	}
	if query.searchesNamespaces() {
		for _, namespace := range query.Namespaces {
			addCount(p.searchedNamespaces, namespace, change)
		}
	}
	if query.usesNamespaceSelector() {
		p.selectedCount += change
	}
}

func (p *scopeCounter) list() (names []types.NamespacedName, namespaces []string, all bool) {
	names = appendKeys(p.names, nil)
	namespaces = appendKeys(p.searchedNamespaces, nil)
	if len(names) >= maxListedScopes {
		namespaces = appendKeys(p.namespacesOfNames, namespaces)
	}
	return names, namespaces, p.selectedCount > 0
}

func addCount[K comparable](counts map[K]int, key K, change int) {
	if counts[key] += change; counts[key] == 0 {
		delete(counts, key)
	}
}

// appendKeys appends counted keys to the list until it is long enough.
func appendKeys[K comparable](counts map[K]int, listed []K) []K {
	for key := range counts {
		if len(listed) >= maxListedScopes {
			break
		}
		if !slices.Contains(listed, key) {
			listed = append(listed, key)
		}
	}
	return listed
}
