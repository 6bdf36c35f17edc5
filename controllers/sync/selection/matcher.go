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
	"slices"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/synchub-dev/synchub/controllers/sync/ownership"
)

// All selects every name, namespace or resource where it stands in a list.
const All = "*"

// Object is what the matcher needs to know of an object.
type Object struct {
	// Resource and Kind name the object's API on the mailbox's side.
	Resource schema.GroupVersionResource
	Kind     string
	// Namespace is empty for cluster-scoped objects.
	Namespace, Name     string
	Labels, Annotations map[string]string
	// SecretType is the type of a core Secret, else empty.
	SecretType string
}

// Selection says how an object is selected.
type Selection struct {
	// Policy is what becomes of the target's object when the selection ends: Orphan if any config asks for it.
	Policy ownership.Policy
	// StatusReturn is true if any config asks for the status.
	StatusReturn bool
	// Suspended is true if every config that selects the object is suspended.
	Suspended bool
	// Configs names the configs that select the object, as Kind/name, sorted.
	Configs []string
}

// Equal tells whether two selections have the same effect on an object.
func (s Selection) Equal(other Selection) bool {
	return s.Policy == other.Policy && s.StatusReturn == other.StatusReturn && s.Suspended == other.Suspended
}

// Matcher answers which objects of a mailbox are selected. It never changes. The nil Matcher selects nothing.
type Matcher struct {
	byResource map[schema.GroupResource]*rules
	byKind     map[schema.GroupKind]*rules
	entries    []Entry
	problems   map[string][]Problem
	// active holds the configs with at least one rule.
	active map[string]struct{}
}

// rules are the rules for one resource.
type rules struct {
	named    map[objectName][]*rule
	wildcard []*rule
}

type objectName struct{ namespace, name string }

// rule is one entry of a config.
type rule struct {
	config      *config
	version     string
	namespaces  nameSet
	names       nameSet
	labels      labels.Selector
	annotations map[string]string
}

// config is what the entries of one config share.
type config struct {
	id           string
	policy       ownership.Policy
	statusReturn bool
	suspended    bool
}

// nameSet is a list of names as a set; all is true if the list holds "*".
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

func (s nameSet) empty() bool { return !s.all && len(s.names) == 0 }

func (s nameSet) has(name string) bool {
	_, ok := s.names[name]
	return ok
}

// Match returns how the object is selected; ok is false if it is not.
func (m *Matcher) Match(object Object) (selection Selection, ok bool) {
	if m == nil {
		return Selection{}, false
	}
	selection = Selection{Policy: ownership.PolicyDelete, Suspended: true}
	for _, rules := range m.rulesFor(object.Resource.GroupResource(), object.Kind) {
		for _, rule := range rules.named[objectName{object.Namespace, object.Name}] {
			ok = rule.addTo(&selection, object) || ok
		}
		for _, rule := range rules.wildcard {
			ok = rule.addTo(&selection, object) || ok
		}
	}
	if !ok {
		return Selection{}, false
	}
	slices.Sort(selection.Configs)
	selection.Configs = slices.Compact(selection.Configs)
	return selection, true
}

// Selects tells whether any entry speaks of the resource.
func (m *Matcher) Selects(resource schema.GroupResource, kind string) bool {
	return m != nil && len(m.rulesFor(resource, kind)) > 0
}

// rulesFor returns the rules that name the resource, its kind, or all of its group.
func (m *Matcher) rulesFor(resource schema.GroupResource, kind string) []*rules {
	var found []*rules
	for _, name := range []string{resource.Resource, All} {
		if rules, ok := m.byResource[schema.GroupResource{Group: resource.Group, Resource: name}]; ok {
			found = append(found, rules)
		}
	}
	for _, name := range []string{kind, All} {
		if rules, ok := m.byKind[schema.GroupKind{Group: resource.Group, Kind: name}]; ok {
			found = append(found, rules)
		}
	}
	return found
}

// addTo merges the rule into the selection if it matches the object.
func (r *rule) addTo(selection *Selection, object Object) bool {
	if !r.matches(object) {
		return false
	}
	if r.config.policy == ownership.PolicyOrphan {
		selection.Policy = ownership.PolicyOrphan
	}
	selection.StatusReturn = selection.StatusReturn || r.config.statusReturn
	selection.Suspended = selection.Suspended && r.config.suspended
	selection.Configs = append(selection.Configs, r.config.id)
	return true
}

func (r *rule) matches(object Object) bool {
	if r.version != "" && r.version != object.Resource.Version {
		return false
	}
	// "*" stands for every namespace; a cluster-scoped object is in none.
	if !r.namespaces.has(object.Namespace) && (!r.namespaces.all || object.Namespace == "") {
		return false
	}
	if !r.names.has(object.Name) && (!r.names.all || IsSystem(object)) {
		return false
	}
	if r.labels != nil && !r.labels.Matches(labels.Set(object.Labels)) {
		return false
	}
	for key, value := range r.annotations {
		if actual, ok := object.Annotations[key]; !ok || actual != value {
			return false
		}
	}
	return true
}
