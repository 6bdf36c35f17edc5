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

package relation

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// maxListed is how many names or namespaces are listed: one more than are worth a watch each.
const maxListed = 9

// places counts the claims on each place, to tell where originals can be.
type places struct {
	names    map[types.NamespacedName]int
	searched map[string]int
	// namespaces are those of the names.
	namespaces map[string]int
	anywhere   int
}

func newPlaces() places {
	return places{names: map[types.NamespacedName]int{}, searched: map[string]int{}, namespaces: map[string]int{}}
}

// count adds a claim, or takes it off if change is -1.
func (p *places) count(wanted Wanted, change int) {
	for _, name := range wanted.Names {
		adjust(p.names, name, change)
		adjust(p.namespaces, name.Namespace, change)
	}
	if wanted.searches() {
		for _, namespace := range wanted.Namespaces {
			adjust(p.searched, namespace, change)
		}
	}
	if wanted.anywhere() {
		p.anywhere += change
	}
}

func (p *places) list() (names []types.NamespacedName, namespaces []string, all bool) {
	names = some(p.names, nil)
	namespaces = some(p.searched, nil)
	if len(names) >= maxListed {
		namespaces = some(p.namespaces, namespaces)
	}
	return names, namespaces, p.anywhere > 0
}

func adjust[K comparable](counts map[K]int, key K, change int) {
	if counts[key] += change; counts[key] == 0 {
		delete(counts, key)
	}
}

// some returns keys that are counted, after those that are listed already, until there are enough.
func some[K comparable](counts map[K]int, listed []K) []K {
	for key := range counts {
		if len(listed) >= maxListed {
			break
		}
		if !slices.Contains(listed, key) {
			listed = append(listed, key)
		}
	}
	return listed
}
