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

package selection

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// maxWatches bounds the names or namespaces with a watch of their own. For more, one watch of all objects is cheaper.
const maxWatches = 8

// Scope is where to watch for objects to upsync: Names, otherwise Namespaces, otherwise everywhere. The lists are sorted and have
// at most 8 items. The zero Scope is empty.
type Scope struct {
	Names      []types.NamespacedName
	Namespaces []string
	All        bool
}

// UpScope returns the scope of the objects of a target resource that may be upsynced.
func (m *Matcher) UpScope(resource schema.GroupResource, kind string, namespaced bool) Scope {
	if m == nil {
		return Scope{}
	}
	search := scopeBuilder{names: map[types.NamespacedName]struct{}{}, namespaces: map[string]struct{}{}}
	for _, rules := range m.up.rulesFor(resource, kind) {
		for _, rule := range rules.all {
			if namespaced {
				search.addNamespaced(rule)
			} else if rule.namespaces.has("") {
				search.addNames("", rule.names)
			}
		}
	}
	return search.scope(namespaced)
}

// scopeBuilder collects the scopes of rules.
type scopeBuilder struct {
	// names are all names of the rules, unless anyName is true. namespaces are their namespaces, unless anyNamespace is true.
	names                 map[types.NamespacedName]struct{}
	namespaces            map[string]struct{}
	anyName, anyNamespace bool
}

func (s *scopeBuilder) addNamespaced(rule *rule) {
	if rule.namespaces.all {
		s.anyName, s.anyNamespace = true, true
		return
	}
	for namespace := range rule.namespaces.names {
		if namespace != "" {
			s.namespaces[namespace] = struct{}{}
			s.addNames(namespace, rule.names)
		}
	}
}

func (s *scopeBuilder) addNames(namespace string, names nameSet) {
	s.anyName = s.anyName || names.all
	for name := range names.names {
		// Further names are not needed: too many names have no watch of their own.
		if s.anyName || len(s.names) > maxWatches {
			return
		}
		s.names[types.NamespacedName{Namespace: namespace, Name: name}] = struct{}{}
	}
}

func (s *scopeBuilder) scope(namespaced bool) Scope {
	switch {
	case !s.anyName && len(s.names) == 0:
		return Scope{}
	case !s.anyName && len(s.names) <= maxWatches:
		return Scope{Names: slices.SortedFunc(maps.Keys(s.names), func(a, b types.NamespacedName) int {
			return strings.Compare(a.String(), b.String())
		})}
	case namespaced && !s.anyNamespace && len(s.namespaces) <= maxWatches:
		return Scope{Namespaces: slices.Sorted(maps.Keys(s.namespaces))}
	default:
		return Scope{All: true}
	}
}

// UpHash returns the same hash for two matchers if and only if they have the same entries for the upsync of a target resource,
// and the same names in the mailbox. A cache for one matcher then serves the other.
func (m *Matcher) UpHash(resource schema.GroupResource, kind string) string {
	if m == nil {
		return ""
	}
	var all []string
	involved := map[*config]struct{}{}
	for _, rules := range m.up.rulesFor(resource, kind) {
		for _, rule := range rules.all {
			all = append(all, rule.signature())
			involved[rule.config] = struct{}{}
		}
	}
	if len(all) == 0 {
		return ""
	}
	slices.Sort(all)
	all = slices.Compact(all)
	// The oldest config decides, so the order of conversions matters. The order of entries does not.
	for _, config := range slices.SortedFunc(maps.Keys(involved), func(a, b *config) int { return cmp.Compare(a.age, b.age) }) {
		for _, conversion := range config.conversions.producing(resource.Group, kind) {
			all = append(all, fmt.Sprintf("%q %q", config.id, fmt.Sprint(*conversion)))
		}
	}
	sum := sha256.Sum256([]byte(strings.Join(all, "\n")))
	return hex.EncodeToString(sum[:])
}

// signature returns the same text for rules that select the same objects.
func (r *rule) signature() string {
	selector := ""
	if r.labels != nil {
		selector = r.labels.String()
	}
	// fmt prints maps sorted by key, and quotes their texts.
	return fmt.Sprintf("%q %t %q %t %q %q %q", r.version, r.namespaces.all, r.namespaces.sorted(), r.names.all, r.names.sorted(), selector, r.annotations)
}
