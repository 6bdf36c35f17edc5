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
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// index holds the rules for one direction.
type index struct {
	byResource map[schema.GroupResource]*rules
	byKind     map[schema.GroupKind]*rules
	// namespacesByNameOnly is true if Namespace objects are selected only by rules that name their resource.
	namespacesByNameOnly bool
}

// rules are the rules for one resource: an index by name, and the rules to scan.
type rules struct {
	byName  map[objectName][]*rule
	scanned []*rule
	all     []*rule
}

type objectName struct{ namespace, name string }

// rule is one entry of a config. Cluster-scoped objects are in the namespace "".
type rule struct {
	config *config
	// field is the entry's path in the config.
	field   string
	version string
	nameScope
	metadataSelector
	settings *Settings
}

// nameSet is a set of names; all is true if the list holds "*".
type nameSet struct {
	all   bool
	names map[string]struct{}
}

func newNameSet(names []string) nameSet {
	set := nameSet{names: make(map[string]struct{}, len(names))}
	for _, name := range names {
		if name == All {
			set.all = true
			continue
		}
		set.names[name] = struct{}{}
	}
	return set
}

// with returns the union with another set.
func (s nameSet) with(other nameSet) nameSet {
	maps.Copy(s.names, other.names)
	s.all = s.all || other.all
	return s
}

func (s nameSet) empty() bool { return !s.all && len(s.names) == 0 }

func (s nameSet) has(name string) bool {
	_, ok := s.names[name]
	return ok
}

func (s nameSet) sorted() []string { return slices.Sorted(maps.Keys(s.names)) }

func newIndex(sparesNamespaces bool) index {
	return index{
		byResource:           map[schema.GroupResource]*rules{},
		byKind:               map[schema.GroupKind]*rules{},
		namespacesByNameOnly: sparesNamespaces,
	}
}

func (i index) add(entry Entry, added *rule) {
	var target *rules
	if entry.Resource != "" {
		target = getOrNew(i.byResource, schema.GroupResource{Group: entry.Group, Resource: entry.Resource})
	} else {
		target = getOrNew(i.byKind, schema.GroupKind{Group: entry.Group, Kind: entry.Kind})
	}
	target.all = append(target.all, added)
	if added.scan {
		target.scanned = append(target.scanned, added)
		return
	}
	for namespace := range added.namespaces.names {
		for name := range added.names.names {
			key := objectName{namespace, name}
			target.byName[key] = append(target.byName[key], added)
		}
	}
}

func getOrNew[K comparable](all map[K]*rules, key K) *rules {
	found, ok := all[key]
	if !ok {
		found = &rules{byName: map[objectName][]*rule{}}
		all[key] = found
	}
	return found
}

// rulesFor returns the rules that name the resource, its kind, or all of its group.
func (i index) rulesFor(resource schema.GroupResource, kind string) []*rules {
	if strings.Contains(resource.Resource, "/") {
		return nil
	}
	resources, kinds := []string{resource.Resource, All}, []string{kind, All}
	if i.namespacesByNameOnly && resource == (schema.GroupResource{Resource: "namespaces"}) {
		resources, kinds = resources[:1], kinds[:1]
	}
	var found []*rules
	for _, name := range resources {
		if rules, ok := i.byResource[schema.GroupResource{Group: resource.Group, Resource: name}]; ok {
			found = append(found, rules)
		}
	}
	for _, name := range kinds {
		if rules, ok := i.byKind[schema.GroupKind{Group: resource.Group, Kind: name}]; ok {
			found = append(found, rules)
		}
	}
	return found
}

// rulesNaming returns the rules that name the resource or its kind.
func (i index) rulesNaming(api API) []*rule {
	var found []*rule
	if rules, ok := i.byResource[api.GroupResource]; ok {
		found = append(found, rules.all...)
	}
	if rules, ok := i.byKind[schema.GroupKind{Group: api.Group, Kind: api.Kind}]; ok {
		found = append(found, rules.all...)
	}
	return found
}

// rulesMatching returns the rules that match the object, in any order.
func (i index) rulesMatching(object Object) []*rule {
	return i.rulesWhere(object, func(rule *rule) bool { return rule.matches(object) })
}

// rulesWhere returns the rules that can select an object of this name and satisfy the predicate, in any order.
func (i index) rulesWhere(object Object, is func(*rule) bool) []*rule {
	var found []*rule
	for _, rules := range i.rulesFor(object.Resource.GroupResource(), object.Kind) {
		for _, candidates := range [][]*rule{rules.byName[objectName{object.Namespace, object.Name}], rules.scanned} {
			for _, rule := range candidates {
				if is(rule) {
					found = append(found, rule)
				}
			}
		}
	}
	return found
}

func (r *rule) matches(object Object) bool {
	return r.matchesName(object) && r.matchesMetadata(object)
}

// matchesName reports whether the rule names objects of this name.
func (r *rule) matchesName(object Object) bool {
	return r.hasVersion(object) && r.hasNamespace(object) && r.hasName(object)
}

func (r *rule) hasVersion(object Object) bool {
	return r.version == "" || r.version == object.Resource.Version || slices.Contains(object.Versions, r.version)
}

func (r *rule) hasNamespace(object Object) bool {
	return r.namespaces.has(object.Namespace) || r.namespaces.all && inEveryNamespace(object)
}

func (r *rule) hasName(object Object) bool {
	return r.names.has(object.Name) || r.names.all && !IsSystem(object)
}

// matchesMetadata reports whether the object has the labels and annotations of the rule.
func (r *rule) matchesMetadata(object Object) bool {
	return r.hasLabels(object) && r.hasAnnotations(object)
}

func (r *rule) hasLabels(object Object) bool {
	return r.labels == nil || r.labels.Matches(object.Labels)
}

func (r *rule) hasAnnotations(object Object) bool {
	for key, value := range r.annotations {
		if actual, ok := object.Annotations.Lookup(key); !ok || actual != value {
			return false
		}
	}
	return true
}

// inEveryNamespace reports whether "*" matches the object's namespace. A cluster-scoped object has none.
func inEveryNamespace(object Object) bool {
	return object.Namespace != "" && !inSystemNamespace(object)
}
