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

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/plan/transform"
)

// Settings are how entries sync the objects that they select. They are immutable. Nil settings change nothing.
type Settings struct {
	// Drift is empty if no entry sets it.
	Drift         edgev2alpha1.DriftPolicy
	IgnoredFields []transform.IgnoredField
}

// equal reports whether two settings have the same effect.
func (s *Settings) equal(other *Settings) bool {
	if s == nil || other == nil || s == other {
		return s == other
	}
	return s.Drift == other.Drift && slices.EqualFunc(s.IgnoredFields, other.IgnoredFields, func(a, b transform.IgnoredField) bool {
		return a.OnCreate == b.OnCreate && a.Path.String() == b.Path.String()
	})
}

// compileSettings compiles the settings of an entry; nil if it has none. ok is false if they are invalid.
func (m *Matcher) compileSettings(config *config, field string, of edgev2alpha1.SyncSettings) (settings *Settings, ok bool) {
	if of.Drift == "" && len(of.IgnoreFields) == 0 {
		return nil, true
	}
	switch of.Drift {
	case "", edgev2alpha1.DriftRepair, edgev2alpha1.DriftReport:
	default:
		m.addProblem(config, field+".drift", "it is neither Repair nor Report")
		return nil, false
	}
	ignored, err := transform.ParseIgnored(of.IgnoreFields)
	if err != nil {
		m.addProblem(config, field+".ignoreFields", err.Error())
		return nil, false
	}
	m.size += settingsSize + ignoredSize*int64(len(ignored))
	for _, path := range of.IgnoreFields {
		m.size += ignoredByteSize * int64(len(path))
	}
	return &Settings{Drift: of.Drift, IgnoredFields: ignored}, true
}

// mergeSettings returns the settings of all rules that select an object, the oldest first: Report if any rule reports drift, and the
// ignored fields of all.
func mergeSettings(rules []*rule) *Settings {
	if !slices.ContainsFunc(rules, func(rule *rule) bool { return rule.settings != nil }) {
		return nil
	}
	rules = slices.DeleteFunc(slices.Clone(rules), func(rule *rule) bool { return rule.settings == nil })
	// Rules of one config are in no order.
	slices.SortFunc(rules, func(a, b *rule) int {
		return cmp.Or(cmp.Compare(a.config.age, b.config.age), cmp.Compare(a.field, b.field))
	})
	var merged *Settings
	for _, rule := range rules {
		switch settings := rule.settings; {
		case settings == merged:
		case merged == nil:
			merged = settings
		default:
			both := &Settings{Drift: cmp.Or(merged.Drift, settings.Drift), IgnoredFields: transform.UnionIgnored(merged.IgnoredFields, settings.IgnoredFields)}
			if settings.Drift == edgev2alpha1.DriftReport {
				both.Drift = settings.Drift
			}
			merged = both
		}
	}
	return merged
}
