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

package plan_test

import (
	"slices"
	"testing"

	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
)

// The relation in a mark decides later whether the copy may be deleted, so a changed relation is written.
func TestRelationsInMarks(t *testing.T) {
	for name, test := range map[string]struct {
		desired, observed string
		same              bool
	}{
		"by itself":                         {"", "", true},
		"by one relation":                   {"a/x", "a/x", true},
		"by another relation":               {"a/y", "a/x", false},
		"by itself, formerly by a relation": {"", "a/x", false},
		"by a relation, formerly by itself": {"a/x", "", false},
	} {
		checkMarks(t, name, test.same, func(desired, observed *ownership.Mark) {
			desired.Relation, observed.Relation = test.desired, test.observed
		})
	}
}

// The hash in a mark is valid only together with the ignored fields.
func TestIgnoredInMarks(t *testing.T) {
	for name, test := range map[string]struct {
		desired, observed string
		same              bool
	}{
		"the same":     {"spec.a", "spec.a", true},
		"one more":     {"spec.a\nspec.b", "spec.a", false},
		"one less":     {"", "spec.a", false},
		"the first":    {"spec.a", "", false},
		"in new order": {"spec.b\nspec.a", "spec.a\nspec.b", false},
	} {
		checkMarks(t, name, test.same, func(desired, observed *ownership.Mark) {
			desired.Ignored, observed.Ignored = test.desired, test.observed
		})
	}
}

// checkMarks fails the test unless objects that differ only in their marks, as change makes them, are in sync, or not in sync, in
// both directions and for each policy.
func checkMarks(t *testing.T, name string, same bool, change func(desired, observed *ownership.Mark)) {
	t.Helper()
	for _, policy := range []ownership.Policy{ownership.PolicyDelete, ownership.PolicyOrphan, ownership.PolicyCreateOnly} {
		values := inSync()
		values[3], values[4] = string(policy), string(policy)
		source, observed, _ := situation(values)
		// An adopted object can be in sync.
		observed.Mark.Adopted = true
		change(&source.Desired.Mark, &observed.Mark)
		got, err := plan.DecideDown(source, observed, nil)
		want := plan.Decision{Action: plan.None, Cause: plan.InSync}
		switch {
		case !same && policy == ownership.PolicyCreateOnly:
			want = plan.Decision{Action: plan.UpdateMark, Cause: plan.Changed}
		case !same:
			want = plan.Decision{Action: plan.Apply, Cause: plan.Changed}
		}
		if err != nil || got.String() != want.String() {
			t.Errorf("%s, down, %s: want %v, got %v, %v", name, policy, want, got, err)
		}
		if policy == ownership.PolicyCreateOnly {
			continue
		}
		inMailbox := &plan.MailboxObject{Owned: true, Mark: observed.Mark}
		if want.Action == plan.Apply {
			want.Action = plan.Update
		}
		if got, err := plan.DecideUp(source, inMailbox, nil); err != nil || got.String() != want.String() {
			t.Errorf("%s, up, %s: want %v, got %v, %v", name, policy, want, got, err)
		}
	}
}

func TestAbsences(t *testing.T) {
	absences := []plan.State{plan.SourceNotFound, plan.Terminating, plan.Deselected}
	for _, state := range []plan.State{plan.Selected, plan.Suspended, plan.Unknown, plan.SourceNotFound, plan.Terminating, plan.Deselected, ""} {
		if want := slices.Contains(absences, state); state.IsAbsence() != want {
			t.Errorf("%q: want %v", state, want)
		}
	}
}
