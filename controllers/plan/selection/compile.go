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
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/plan/conversion"
)

// Entry is one resource that a config names. The status of configs uses it to report resources that are not served.
type Entry struct {
	// Config is the config's id, Kind/name.
	Config string
	// Field is the entry's path in the config.
	Field string
	// Up is true if the entry selects objects of the target. The other fields then have the target's names.
	Up bool
	// Group and Version, with either Resource or Kind.
	Group, Version, Resource, Kind string
	// Namespaces and Names are copied from the config's entry for upsync. They are empty in other entries.
	Namespaces, Names []string

	settings *Settings
}

// Problem is an invalid entry. It selects and converts no object, and objects that it may be meant for do not change (see
// [Matcher.IsUnresolved]). All other entries stay effective.
type Problem struct {
	Field, Message string
}

// SyncerConfigID returns the id of a SyncerConfig in reports.
func SyncerConfigID(name string) string { return "SyncerConfig/" + name }

// EdgeSyncConfigID returns the id of an EdgeSyncConfig in reports.
func EdgeSyncConfigID(name string) string { return "EdgeSyncConfig/" + name }

// Compile returns the matcher of a mailbox for all its configs, in any order. It never fails: an invalid entry selects
// nothing, and [Matcher.Problems] lists it.
func Compile(syncerConfigs []*edgev2alpha1.SyncerConfig, edgeSyncConfigs []*edgev2alpha1.EdgeSyncConfig) *Matcher {
	return CompileWithin(math.MaxInt64, syncerConfigs, edgeSyncConfigs)
}

// CompileWithin is Compile with a limit in bytes. If the matcher exceeds the limit, it omits the youngest configs, and is
// partial.
func CompileWithin(limit int64, syncerConfigs []*edgev2alpha1.SyncerConfig, edgeSyncConfigs []*edgev2alpha1.EdgeSyncConfig) *Matcher {
	matcher := &Matcher{
		down:              newIndex(false),
		up:                newIndex(true),
		problems:          map[string][]Problem{},
		configsWithRules:  map[string]struct{}{},
		reachedNamespaces: newNameSet(nil),
		emptyEntries:      map[string][]string{},
		crdNames:          map[string]struct{}{},
	}
	for _, source := range oldestFirst(syncerConfigs, edgeSyncConfigs) {
		if matcher.size > limit {
			matcher.partial = true
			break
		}
		source.add(matcher)
	}
	return matcher
}

// configSource is a config to compile.
type configSource struct {
	id      string
	created time.Time
	add     func(*Matcher)
}

// oldestFirst orders the configs by creation, then by kind and name, so that every hub makes the same decisions.
func oldestFirst(syncerConfigs []*edgev2alpha1.SyncerConfig, edgeSyncConfigs []*edgev2alpha1.EdgeSyncConfig) []configSource {
	sources := make([]configSource, 0, len(syncerConfigs)+len(edgeSyncConfigs))
	for _, config := range syncerConfigs {
		sources = append(sources, configSource{SyncerConfigID(config.Name), config.CreationTimestamp.Time, func(m *Matcher) { m.addSyncerConfig(config) }})
	}
	for _, config := range edgeSyncConfigs {
		sources = append(sources, configSource{EdgeSyncConfigID(config.Name), config.CreationTimestamp.Time, func(m *Matcher) { m.addEdgeSyncConfig(config) }})
	}
	slices.SortStableFunc(sources, func(a, b configSource) int {
		return cmp.Or(a.created.Compare(b.created), strings.Compare(a.id, b.id))
	})
	return sources
}

// addConfig adds a config that is younger than all configs added before.
func (m *Matcher) addConfig(added *config, specs []edgev2alpha1.Conversion) *config {
	added.age = len(m.configs)
	m.configs = append(m.configs, added)
	var all []*conversion.Conversion
	for i, spec := range specs {
		compiled, err := conversion.New(spec)
		if err != nil {
			m.addProblem(added, fmt.Sprintf("spec.conversions[%d]", i), err.Error())
			added.invalidConversions = append(added.invalidConversions, spec)
			continue
		}
		all = append(all, &compiled)
	}
	added.conversions = newConversions(all)
	return added
}

func (m *Matcher) addProblem(config *config, field, message string) {
	m.problems[config.id] = append(m.problems[config.id], Problem{Field: field, Message: message})
}

// nameScope is the set of objects that an entry names: each of the names in each of the namespaces.
type nameScope struct {
	namespaces, names nameSet
	// scan is true if an index of the names would have many more keys than the config has lines: a small config must not compile
	// to a large matcher.
	scan bool
	// size is the memory of the scope that no matcher has counted yet.
	size *int64
	// invalidNamespace and invalidName are elements that are no valid names; empty if there are none.
	invalidNamespace, invalidName string
}

// problem returns why a part of the scope is invalid; empty if all are valid.
func (s nameScope) problem() string {
	switch {
	case s.invalidNamespace != "":
		return fmt.Sprintf("no namespace can be called %q; only \"*\" alone stands for all", s.invalidNamespace)
	case s.invalidName != "":
		return fmt.Sprintf("no object can be called %q; only \"*\" alone stands for all", s.invalidName)
	default:
		return ""
	}
}

// newNameScope returns a scope that a number of resources share.
func newNameScope(namespaces, names []string, resources int) nameScope {
	made := nameScope{
		namespaces: newNameSet(namespaces), names: newNameSet(names),
		invalidNamespace: invalidNamespaceIn(namespaces), invalidName: invalidNameIn(names),
	}
	// No object has an empty name.
	delete(made.names.names, "")
	keys := len(made.namespaces.names) * len(made.names.names) * resources
	lines := len(made.namespaces.names) + len(made.names.names) + resources
	made.scan = made.namespaces.all || made.names.all || keys > 2*lines
	made.size = new(sizeOfScope(made))
	return made
}

// metadataSelector restricts an entry to objects with labels and annotations.
type metadataSelector struct {
	labels      labels.Selector
	annotations map[string]string
}

// compileMetadataSelector returns nil, which selects no object, for an invalid selector.
func (m *Matcher) compileMetadataSelector(config *config, field string, selector *metav1.LabelSelector, annotations map[string]string) *metadataSelector {
	compiled, at, problem := selectorProblem(selector, annotations)
	if problem != "" {
		m.addProblem(config, field+at, problem)
		return nil
	}
	if compiled != nil {
		m.size += sizeOfSelector(compiled)
	}
	return &metadataSelector{labels: compiled, annotations: annotations}
}

// addEntry adds the rules of one entry. limits are nil if a selector or a setting of the entry is invalid.
func (m *Matcher) addEntry(entry Entry, config *config, limits *metadataSelector, scopes ...nameScope) {
	entry.Config = config.id
	m.entries = append(m.entries, entry)
	m.size += entrySize
	direction, unresolved := m.down, &m.unresolvedDown
	if entry.Up {
		direction, unresolved = m.up, &m.unresolvedUp
	}
	if problem := apiProblem(entry); problem != "" {
		m.addProblem(config, entry.Field, problem)
		unresolved.everything = true
		return
	}
	invalid := limits == nil
	if problem := versionProblem(entry.Version); problem != "" {
		m.addProblem(config, entry.Field, problem)
		invalid = true
	}
	idle := true
	for _, place := range scopes {
		if problem := place.problem(); problem != "" {
			m.addProblem(config, entry.Field, problem)
			unresolved.add(entry, place)
		} else if invalid {
			unresolved.add(entry, place)
		}
		if place.namespaces.empty() || place.names.empty() {
			continue
		}
		idle = false
		if !entry.Up {
			m.reachedNamespaces = m.reachedNamespaces.with(place.namespaces)
		}
		if !invalid {
			m.configsWithRules[config.id] = struct{}{}
			if !entry.Up {
				m.addCRDNames(entry, config, place.names)
			}
			added := &rule{config: config, field: entry.Field, version: entry.Version, nameScope: place, metadataSelector: *limits, settings: entry.settings}
			direction.add(entry, added)
			m.countRule(added)
		}
	}
	if idle && !invalid {
		m.emptyEntries[config.id] = append(m.emptyEntries[config.id], entry.Field)
	}
}

// addCRDNames records the names in an entry for CustomResourceDefinitions.
func (m *Matcher) addCRDNames(entry Entry, config *config, names nameSet) {
	if config.suspended || entry.Group != "apiextensions.k8s.io" || entry.Resource != "customresourcedefinitions" && entry.Kind != "CustomResourceDefinition" {
		return
	}
	for name := range names.names {
		m.crdNames[name] = struct{}{}
	}
}
