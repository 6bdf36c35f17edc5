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
	"reflect"
	"slices"
	"testing"

	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
)

// allowed reports for each action whether a downsync may take it.
var allowed = map[plan.Action]func(source plan.SourceState, observed *plan.TargetObject) bool{
	plan.None: func(plan.SourceState, *plan.TargetObject) bool { return true },
	plan.Create: func(source plan.SourceState, observed *plan.TargetObject) bool {
		return source.State == plan.Selected && observed == nil
	},
	plan.Apply: func(source plan.SourceState, observed *plan.TargetObject) bool {
		return isOwned(source, observed) && source.Desired.Mark.Policy != ownership.PolicyCreateOnly
	},
	plan.UpdateMark: func(source plan.SourceState, observed *plan.TargetObject) bool {
		return isOwned(source, observed) && source.Desired.Mark.Policy == ownership.PolicyCreateOnly
	},
	plan.Conflict: func(source plan.SourceState, observed *plan.TargetObject) bool {
		return source.State == plan.Selected && observed != nil && !isOwned(source, observed)
	},
	plan.VerifyAbsence: func(source plan.SourceState, observed *plan.TargetObject) bool {
		return isAbsent(source) && observed != nil && !observed.FormerMailbox && !observed.Terminating && !source.AbsenceVerified
	},
	plan.Delete: func(source plan.SourceState, observed *plan.TargetObject) bool {
		return isAbsent(source) && observed != nil && !observed.FormerMailbox && !observed.Terminating && source.AbsenceVerified &&
			!observed.Retain && observed.Mark.Policy == ownership.PolicyDelete
	},
	plan.Release: func(source plan.SourceState, observed *plan.TargetObject) bool {
		return isAbsent(source) && observed != nil && !observed.FormerMailbox && !observed.Terminating && source.AbsenceVerified
	},
}

func isAbsent(source plan.SourceState) bool {
	return slices.Contains([]plan.State{plan.SourceNotFound, plan.Terminating, plan.Deselected}, source.State)
}

// isOwned reports whether the target has a copy of the source, while the source is selected and the copy is not terminating.
func isOwned(source plan.SourceState, observed *plan.TargetObject) bool {
	if source.State != plan.Selected || observed == nil || observed.Terminating {
		return false
	}
	placed := observed.Mark.Source
	placed.UID = source.Desired.Mark.Source.UID
	return placed == source.Desired.Mark.Source
}

func checkDecision(t *testing.T, source plan.SourceState, observed *plan.TargetObject, got plan.Decision) {
	t.Helper()
	if rule, ok := allowed[got.Action]; !ok || !rule(source, observed) {
		t.Errorf("%v for a source that is %s (verified: %v) and for %+v", got, source.State, source.AbsenceVerified, observed)
	}
	checkReasons(t, got)
}

func checkReasons(t *testing.T, got plan.Decision) {
	t.Helper()
	if (got.Cause == plan.Drifted) != (len(got.Fields) > 0) {
		t.Errorf("fields %v with cause %s", got.Fields, got.Cause)
	}
	if got.Cause == "" {
		t.Errorf("%s without a cause", got.Action)
	}
}

// afterDown returns the target's object after a decision was carried out.
func afterDown(source plan.SourceState, observed *plan.TargetObject, got plan.Decision) *plan.TargetObject {
	after := &plan.TargetObject{UID: "7", HasOwnerLabel: true, AppliedFields: []byte(`{"f:spec":{"f:kept":{},"f:dropped":{}}}`)}
	switch got.Action {
	case plan.Create, plan.Apply:
		after.Mark = source.Desired.Mark
	case plan.UpdateMark:
		after.Mark, after.AppliedFields = source.Desired.Mark, observed.AppliedFields
		after.Mark.Hash, after.Mark.Adopted = observed.Mark.Hash, observed.Mark.Adopted
	case plan.Delete, plan.Release:
		return nil
	default:
		return observed
	}
	return after
}

// settledCause returns the cause of a decision that changes nothing, for a source of this state.
func settledCause(state plan.State) plan.Cause {
	if state == plan.Selected {
		return plan.InSync
	}
	return plan.Cause(state)
}

// checkSettles fails the test unless there is nothing left to do after a decision was carried out.
func checkSettles(t *testing.T, source plan.SourceState, observed *plan.TargetObject, got plan.Decision) {
	t.Helper()
	if slices.Contains([]plan.Action{plan.None, plan.Conflict, plan.VerifyAbsence}, got.Action) {
		return
	}
	again, err := plan.DecideDown(source, afterDown(source, observed, got), nil)
	if want := (plan.Decision{Action: plan.None, Cause: settledCause(source.State)}); err != nil || !reflect.DeepEqual(again, want) {
		t.Errorf("after %v: want %v, got %v, %v", got, want, again, err)
	}
}

func TestForbiddenDecisions(t *testing.T) {
	tried := combinations(downColumns, func(values []string) {
		source, observed, tolerated := situation(values)
		got, err := plan.DecideDown(source, observed, tolerated)
		if err != nil {
			t.Fatalf("%v: %v", values, err)
		}
		checkDecision(t, source, observed, got)
		checkSettles(t, source, observed, got)
		if observed == nil {
			return
		}
		// The adoption of an object decides nothing here: its consequences are in Retain.
		observed.Mark.Adopted = true
		if adopted, err := plan.DecideDown(source, observed, tolerated); err != nil || !reflect.DeepEqual(adopted, got) {
			t.Errorf("%v: %v, but once it is adopted %v, %v", values, got, adopted, err)
		}
	})
	if tried != 6*2*2*3*3*2*2*2*2*2*4 {
		t.Errorf("tried only %d combinations", tried)
	}
}

// chosen returns one value of each column.
func chosen(columns [][]string, choices []byte) []string {
	values := make([]string, len(columns))
	for column, offered := range columns {
		choice := 0
		if column < len(choices) {
			choice = int(choices[column]) % len(offered)
		}
		values[column] = offered[choice]
	}
	return values
}

func FuzzDown(f *testing.F) {
	f.Add([]byte{3, 1, 0, 0, 0, 0, 0, 0, 1, 0, 0}, []byte(`{"f:spec":{"f:kept":{}}}`), ".spec.dropped", "Delete", "1:a", "x")
	f.Add([]byte{4, 1, 0, 0, 0, 1, 0, 0, 1, 0, 0}, []byte(nil), "", "", "", "x")
	f.Add([]byte{3, 1, 0, 0, 2, 0, 0, 0, 1, 0, 0}, []byte("{"), "", "delete", "\x00", "y")
	f.Fuzz(func(t *testing.T, choices, fields []byte, tolerated, policy, hash, name string) {
		values := chosen(downColumns, choices)
		source, observed, _ := situation(values)
		if observed != nil {
			observed.AppliedFields, observed.Mark.Policy, observed.Mark.Hash, observed.Mark.Source.Name = fields, ownership.Policy(policy), hash, name
		}
		got, err := plan.DecideDown(source, observed, []string{tolerated})
		if err != nil {
			if !isOwned(source, observed) || !reflect.DeepEqual(got, plan.Decision{}) {
				t.Errorf("%v: %v with %v", values, got, err)
			}
			return
		}
		checkDecision(t, source, observed, got)
		checkSettles(t, source, observed, got)
		if again, err := plan.DecideDown(source, observed, []string{tolerated}); err != nil || !reflect.DeepEqual(again, got) {
			t.Errorf("%v, then %v, %v", got, again, err)
		}
	})
}
