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

package plan

import (
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

// Only a certain absence removes an object from the mailbox. The object does not change if a cache may lack the source, a rule
// denies the source, or a claim may be missing.
func TestDecideMissing(t *testing.T) {
	renamed, denied := types.NamespacedName{Namespace: "shop", Name: "vault"}, errors.New("denied")
	selected := MissingSource{IsSelected: true, IsCacheComplete: true}
	related := MissingSource{IsRelated: true, IsCacheComplete: true, IsClaimsComplete: true}
	with := func(m MissingSource, change func(*MissingSource)) MissingSource {
		change(&m)
		return m
	}
	answered := func(m MissingSource, state State, err error) MissingSource {
		return with(m, func(m *MissingSource) { m.Answer = &MissingAnswer{State: state, Err: err} })
	}
	for name, test := range map[string]struct {
		source   MissingSource
		state    State
		verified bool
		err      error
		confirm  bool
	}{
		"no config selects it":                       {MissingSource{IsCacheComplete: true, IsDeleted: true}, Deselected, false, nil, false},
		"no config selects it, which is verified":    {MissingSource{AbsenceVerified: true}, Deselected, true, nil, false},
		"no config selects it, but a primary may":    {MissingSource{MayBeClaimed: true, AbsenceVerified: true, IsDeleted: true}, Unknown, false, nil, false},
		"a config may select it":                     {MissingSource{IsUnresolved: true, AbsenceVerified: true}, Unknown, false, nil, false},
		"it is suspended":                            {with(selected, func(m *MissingSource) { m.IsSuspended, m.IsDeleted = true, true }), Suspended, false, nil, false},
		"it is denied":                               {with(selected, func(m *MissingSource) { m.Denied, m.IsDeleted = denied, true }), Unknown, false, denied, false},
		"the cache may lack it":                      {with(selected, func(m *MissingSource) { m.IsCacheComplete, m.IsDeleted = false, true }), Unknown, false, nil, false},
		"it appeared":                                {with(selected, func(m *MissingSource) { m.IsCached, m.IsIndexed = true, true }), Unknown, false, nil, false},
		"it has another name":                        {with(selected, func(m *MissingSource) { m.IsCached = true }), Deselected, true, nil, false},
		"it is to have another name":                 {with(selected, func(m *MissingSource) { m.IsCached, m.RenameTo = true, &renamed }), Unknown, false, nil, false},
		"its deletion was observed":                  {with(selected, func(m *MissingSource) { m.IsDeleted = true }), SourceNotFound, true, nil, false},
		"its deletion was not observed":              {selected, Unknown, false, nil, true},
		"the target has it":                          {answered(selected, Unknown, nil), Unknown, false, nil, false},
		"the target does not have it":                {answered(selected, SourceNotFound, nil), SourceNotFound, true, nil, false},
		"the target has another object":              {answered(selected, Deselected, nil), Deselected, true, nil, false},
		"the target does not answer":                 {answered(selected, Unknown, denied), Unknown, false, denied, false},
		"its relation is not published":              {with(related, func(m *MissingSource) { m.IsUnpublished, m.IsDeleted = true, true }), Unknown, false, nil, false},
		"related, and the cache may lack it":         {with(related, func(m *MissingSource) { m.IsCacheComplete, m.IsDeleted = false, true }), Unknown, false, nil, false},
		"related, and denied":                        {with(related, func(m *MissingSource) { m.Denied, m.IsDeleted = denied, true }), Unknown, false, denied, false},
		"a primary may claim it":                     {with(related, func(m *MissingSource) { m.IsClaimsComplete, m.IsDeleted = false, true }), Unknown, false, nil, false},
		"related, and its deletion was observed":     {with(related, func(m *MissingSource) { m.IsDeleted, m.IsCached = true, true }), SourceNotFound, true, nil, false},
		"no primary claims it":                       {with(related, func(m *MissingSource) { m.IsCached, m.IsUnclaimed = true, true }), Deselected, false, nil, false},
		"no primary claims it, which is verified":    {with(related, func(m *MissingSource) { m.IsCached, m.IsUnclaimed, m.AbsenceVerified = true, true, true }), Deselected, true, nil, false},
		"a primary claims it":                        {with(related, func(m *MissingSource) { m.IsCached, m.AbsenceVerified = true, true }), Unknown, false, nil, false},
		"related, and its deletion was not observed": {related, Unknown, false, nil, true},
		"related, and the target does not have it":   {answered(related, SourceNotFound, nil), SourceNotFound, true, nil, false},
		"related, and the target does not answer":    {answered(related, Unknown, denied), Unknown, false, denied, false},
		"related, and the target has another object": {answered(related, Deselected, nil), Deselected, true, nil, false},
	} {
		test.source.IsClaimed = func() bool { return false }
		got, p := decideMissing(&test.source)
		if got.State != test.state || got.AbsenceVerified != test.verified || !errors.Is(p.Err, test.err) || p.Confirm != test.confirm {
			t.Errorf("%s: got %+v, %+v", name, got, p)
		}
		wants := p.Wants
		if (wants.Claims != nil) != (name == "a primary may claim it") || (p.RenameTo != nil) != (name == "it is to have another name") ||
			(wants.TakeAbsence != "") != (test.state == Deselected && test.source.AbsenceVerified) {
			t.Errorf("%s: wants %+v", name, wants)
		}
	}
}
