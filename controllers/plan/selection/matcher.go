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
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/synchub-dev/synchub/controllers/plan/ownership"
)

// Matcher decides which objects of a mailbox and its target are selected. It is immutable. The nil Matcher selects nothing.
type Matcher struct {
	// down has the rules for mailbox objects, and up the rules for target objects.
	down, up index
	// configs are all configs, the oldest first.
	configs  []*config
	entries  []Entry
	problems map[string][]Problem
	// configsWithRules holds the configs with at least one rule.
	configsWithRules map[string]struct{}
	// reachedNamespaces are the namespaces in entries for downsync.
	reachedNamespaces nameSet
	// crdNames are the names of CustomResourceDefinitions in entries for downsync.
	crdNames map[string]struct{}
	// emptyEntries holds, by config, the entries that select nothing because a list is empty.
	emptyEntries map[string][]string
	// partial is true if the mailbox has further configs with unknown rules.
	partial bool
	// size is the result of Size.
	size int64
	// unresolvedDown and unresolvedUp are the invalid entries.
	unresolvedDown, unresolvedUp unresolved
}

// config holds the properties that all entries of one config share.
type config struct {
	id string
	// age orders the configs of a mailbox: the oldest has the lowest.
	age          int
	policy       ownership.Policy
	statusReturn bool
	suspended    bool
	conversions  conversions
	// invalidConversions may be meant to rename objects. Such objects do not change.
	invalidConversions invalidConversions
}

// Match returns how a mailbox object is selected for downsync; ok is false if it is not.
func (m *Matcher) Match(mailbox Object) (selection Selection, ok bool) {
	if m == nil {
		return Selection{}, false
	}
	return merge(m.down.rulesMatching(mailbox), mailbox, (*conversions).down, invalidConversions.mayConvertDown)
}

// AsPartial returns a matcher with the same rules for a mailbox with further configs, which may select more objects.
func (m *Matcher) AsPartial() *Matcher {
	partial := *m
	partial.partial = true
	return &partial
}

// IsPartial reports whether further configs may select more objects. Then selected objects are known, but it is unknown whether
// any other object is selected.
func (m *Matcher) IsPartial() bool { return m != nil && m.partial }

// HasConfig reports whether the matcher was compiled with a config.
func (m *Matcher) HasConfig(id string) bool {
	return m != nil && slices.ContainsFunc(m.configs, func(one *config) bool { return one.id == id })
}

// IsSuspended reports whether all entries that can select objects of this name, with any labels, are suspended or in unknown
// configs. Copies then do not change, even if the object is gone or no longer selected.
func (m *Matcher) IsSuspended(mailbox Object) bool {
	if m == nil {
		return false
	}
	rules := m.down.rulesWhere(mailbox, func(rule *rule) bool { return rule.matchesName(mailbox) })
	if len(rules) == 0 {
		return m.partial
	}
	return !slices.ContainsFunc(rules, func(rule *rule) bool { return !rule.config.suspended })
}

// ConfigsNaming returns the configs, sorted, with entries for downsync that can select objects of this name, with any labels.
func (m *Matcher) ConfigsNaming(mailbox Object) (ids []string) {
	if m == nil {
		return nil
	}
	for _, rule := range m.down.rulesWhere(mailbox, func(rule *rule) bool { return rule.matchesName(mailbox) }) {
		ids = append(ids, rule.config.id)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// MatchUp returns how a target object is selected for upsync; ok is false if it is not.
func (m *Matcher) MatchUp(target Object) (selection Selection, ok bool) {
	if m == nil {
		return Selection{}, false
	}
	return merge(m.up.rulesMatching(target), target, (*conversions).up, invalidConversions.mayConvertUp)
}

// SelectsDown reports whether an entry for downsync names a resource of the mailbox.
func (m *Matcher) SelectsDown(resource schema.GroupResource, kind string) bool {
	return m != nil && len(m.down.rulesFor(resource, kind)) > 0
}

// SelectsInNamespace reports whether an entry for downsync names objects in a namespace.
func (m *Matcher) SelectsInNamespace(name string) bool {
	return m != nil && name != "" && (m.reachedNamespaces.has(name) || m.reachedNamespaces.all && !isSystemNamespace(name))
}

// SelectsUp reports whether an entry for upsync names a resource of the target.
func (m *Matcher) SelectsUp(resource schema.GroupResource, kind string) bool {
	return m != nil && len(m.up.rulesFor(resource, kind)) > 0
}

// NamedVersions returns the versions that entries name for a resource of the mailbox and of the target, by precedence: the
// oldest config first, in one config downsync first, then in the order of the entries. "*" is no version.
func (m *Matcher) NamedVersions(mailbox, target API) []NamedVersion {
	if m == nil {
		return nil
	}
	naming := slices.Concat(m.down.rulesNaming(mailbox), m.up.rulesNaming(target))
	slices.SortStableFunc(naming, func(a, b *rule) int { return cmp.Compare(a.config.age, b.config.age) })
	var named []NamedVersion
	for _, rule := range naming {
		one := NamedVersion{Version: rule.version, Config: rule.config.id, Field: rule.field}
		// An entry with several scopes has as many rules.
		if rule.version != "" && !slices.Contains(named, one) {
			named = append(named, one)
		}
	}
	return named
}

// HasRules reports whether a config has an entry that can select objects.
func (m *Matcher) HasRules(config string) bool {
	if m == nil {
		return false
	}
	_, ok := m.configsWithRules[config]
	return ok
}

// EmptyEntries returns the entries of a config that select nothing because one of their lists is absent or empty.
func (m *Matcher) EmptyEntries(config string) []string {
	if m == nil {
		return nil
	}
	return m.emptyEntries[config]
}

// Problems returns the entries of a config that could not be compiled.
func (m *Matcher) Problems(config string) []Problem {
	if m == nil {
		return nil
	}
	return m.problems[config]
}

// NamesCRD reports whether an entry for downsync, of a config that is not suspended, lists a CustomResourceDefinition by its
// name. It ignores the labels and annotations in the entry.
func (m *Matcher) NamesCRD(name string) bool {
	if m == nil {
		return false
	}
	_, ok := m.crdNames[name]
	return ok
}

// Entries returns every resource that any config names.
func (m *Matcher) Entries() []Entry {
	if m == nil {
		return nil
	}
	return m.entries
}

// merge returns the union of all rules that select the object. An object is not selected while its name on the other side is
// unknown.
func merge(rules []*rule, object Object, convert convertFunc, isUnknown func(invalidConversions, Object) bool) (selection Selection, ok bool) {
	if len(rules) == 0 || slices.ContainsFunc(rules, func(rule *rule) bool { return isUnknown(rule.config.invalidConversions, object) }) {
		return Selection{}, false
	}
	slices.SortFunc(rules, func(a, b *rule) int { return cmp.Compare(a.config.age, b.config.age) })
	selection = Selection{Policy: ownership.PolicyDelete, Suspended: true, Settings: mergeSettings(rules)}
	name := object.conversionName()
	oldest, conversion := convert(&rules[0].config.conversions, name)
	selection.Conversion = conversion
	for i, rule := range rules {
		config := rule.config
		if i > 0 && config == rules[i-1].config {
			continue
		}
		if config.policy == ownership.PolicyOrphan {
			selection.Policy = ownership.PolicyOrphan
		}
		selection.StatusReturn = selection.StatusReturn || config.statusReturn
		selection.Suspended = selection.Suspended && config.suspended
		selection.Configs = append(selection.Configs, config.id)
		if other, _ := convert(&config.conversions, name); other != oldest {
			selection.Overruled = append(selection.Overruled, config.id)
		}
	}
	slices.Sort(selection.Configs)
	slices.Sort(selection.Overruled)
	return selection, true
}
