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
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/sync/ownership"
)

// Entry is one resource that a config names, for reports about resources that are not published.
type Entry struct {
	// Config is the config's id, Kind/name.
	Config string
	// Field is the entry's path in the config.
	Field string
	// Group and Version, with either Resource or Kind.
	Group, Version, Resource, Kind string
}

// Problem is an entry that cannot be compiled. It selects nothing; all other entries stand.
type Problem struct {
	Field, Message string
}

// SyncerConfigID names a SyncerConfig in reports.
func SyncerConfigID(name string) string { return "SyncerConfig/" + name }

// EdgeSyncConfigID names an EdgeSyncConfig in reports.
func EdgeSyncConfigID(name string) string { return "EdgeSyncConfig/" + name }

// Compile makes the matcher of a mailbox from all its configs. It never fails: what cannot be understood selects
// nothing and is listed by [Matcher.Problems].
func Compile(syncerConfigs []*edgev2alpha1.SyncerConfig, edgeSyncConfigs []*edgev2alpha1.EdgeSyncConfig) *Matcher {
	matcher := &Matcher{
		byResource: map[schema.GroupResource]*rules{},
		byKind:     map[schema.GroupKind]*rules{},
		problems:   map[string][]Problem{},
		active:     map[string]struct{}{},
	}
	for _, syncerConfig := range syncerConfigs {
		matcher.addSyncerConfig(syncerConfig)
	}
	for _, edgeSyncConfig := range edgeSyncConfigs {
		matcher.addEdgeSyncConfig(edgeSyncConfig)
	}
	return matcher
}

// Problems returns the entries of a config that could not be compiled.
func (m *Matcher) Problems(config string) []Problem {
	if m == nil {
		return nil
	}
	return m.problems[config]
}

// Entries returns every resource that any config names.
func (m *Matcher) Entries() []Entry {
	if m == nil {
		return nil
	}
	return m.entries
}

func (m *Matcher) addSyncerConfig(syncerConfig *edgev2alpha1.SyncerConfig) {
	spec := syncerConfig.Spec
	config := &config{
		id:           SyncerConfigID(syncerConfig.Name),
		policy:       ownership.PolicyDelete,
		statusReturn: spec.StatusReturn == nil || *spec.StatusReturn,
		suspended:    spec.Suspend,
	}
	if spec.DeletionPolicy == edgev2alpha1.DeletionPolicyOrphan {
		config.policy = ownership.PolicyOrphan
	}
	for i, entry := range spec.NamespaceScope.Resources {
		m.add(Entry{Config: config.id, Field: fmt.Sprintf("spec.namespaceScope.resources[%d]", i), Group: entry.Group, Version: entry.APIVersion, Resource: entry.Resource},
			config, entry.LabelSelector, entry.Annotations, place{spec.NamespaceScope.Namespaces, []string{All}})
	}
	for i, entry := range spec.NamespacedObjects {
		places := make([]place, 0, len(entry.ObjectsByNamespace))
		for _, objects := range entry.ObjectsByNamespace {
			places = append(places, place{[]string{objects.Namespace}, objects.Names})
		}
		m.add(Entry{Config: config.id, Field: fmt.Sprintf("spec.namespacedObjects[%d]", i), Group: entry.Group, Version: entry.APIVersion, Resource: entry.Resource},
			config, entry.LabelSelector, entry.Annotations, places...)
	}
	for i, entry := range spec.ClusterScope {
		m.add(Entry{Config: config.id, Field: fmt.Sprintf("spec.clusterScope[%d]", i), Group: entry.Group, Version: entry.APIVersion, Resource: entry.Resource},
			config, entry.LabelSelector, entry.Annotations, place{clusterScoped, entry.Objects})
	}
}

func (m *Matcher) addEdgeSyncConfig(edgeSyncConfig *edgev2alpha1.EdgeSyncConfig) {
	config := &config{id: EdgeSyncConfigID(edgeSyncConfig.Name), policy: ownership.PolicyDelete, statusReturn: true}
	for i, entry := range edgeSyncConfig.Spec.DownSyncedResources {
		m.add(Entry{Config: config.id, Field: fmt.Sprintf("spec.downSyncedResources[%d]", i), Group: entry.Group, Version: entry.Version, Kind: entry.Kind},
			config, nil, nil, place{[]string{entry.Namespace}, []string{entry.Name}})
	}
}

// place is where an entry looks for objects: each of the names in each of the namespaces.
type place struct{ namespaces, names []string }

// clusterScoped are the namespaces of objects that are in none.
var clusterScoped = []string{""}

func (m *Matcher) add(entry Entry, config *config, selector *metav1.LabelSelector, annotations map[string]string, places ...place) {
	m.entries = append(m.entries, entry)
	var compiled labels.Selector
	if selector != nil {
		var err error
		if compiled, err = metav1.LabelSelectorAsSelector(selector); err != nil {
			m.problems[config.id] = append(m.problems[config.id], Problem{Field: entry.Field + ".labelSelector", Message: err.Error()})
			return
		}
	}
	if entry.Resource == "" && entry.Kind == "" {
		m.problems[config.id] = append(m.problems[config.id], Problem{Field: entry.Field, Message: "it names neither a resource nor a kind"})
		return
	}
	for _, place := range places {
		added := &rule{config: config, version: entry.Version, namespaces: newNameSet(place.namespaces), names: newNameSet(place.names), labels: compiled, annotations: annotations}
		// No object has an empty name.
		delete(added.names.names, "")
		if !added.namespaces.empty() && !added.names.empty() {
			m.addRule(entry, added)
		}
	}
}

func (m *Matcher) addRule(entry Entry, added *rule) {
	m.active[added.config.id] = struct{}{}
	var target *rules
	if entry.Resource != "" {
		target = getOrNew(m.byResource, schema.GroupResource{Group: entry.Group, Resource: entry.Resource})
	} else {
		target = getOrNew(m.byKind, schema.GroupKind{Group: entry.Group, Kind: entry.Kind})
	}
	if added.namespaces.all || added.names.all {
		target.wildcard = append(target.wildcard, added)
		return
	}
	for namespace := range added.namespaces.names {
		for name := range added.names.names {
			key := objectName{namespace, name}
			target.named[key] = append(target.named[key], added)
		}
	}
}

func getOrNew[K comparable](all map[K]*rules, key K) *rules {
	found, ok := all[key]
	if !ok {
		found = &rules{named: map[objectName][]*rule{}}
		all[key] = found
	}
	return found
}

// HasRules tells whether a config has an entry that can select something.
func (m *Matcher) HasRules(config string) bool {
	if m == nil {
		return false
	}
	_, ok := m.active[config]
	return ok
}
