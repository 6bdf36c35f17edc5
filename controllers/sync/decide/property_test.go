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

package decide_test

import (
	"reflect"
	"slices"
	"testing"

	"github.com/synchub-dev/synchub/controllers/sync/decide"
	"github.com/synchub-dev/synchub/controllers/sync/ownership"
)

// allowed says for each action when it may be taken at all on the way down.
var allowed = map[decide.Action]func(source decide.Source, observed *decide.Observed) bool{
	decide.None: func(decide.Source, *decide.Observed) bool { return true },
	decide.Create: func(source decide.Source, observed *decide.Observed) bool {
		return source.State == decide.InStep && observed == nil
	},
	decide.Apply: func(source decide.Source, observed *decide.Observed) bool {
		return isOurs(source, observed) && source.Desired.Mark.Policy != ownership.PolicyCreateOnly
	},
	decide.Remark: func(source decide.Source, observed *decide.Observed) bool {
		return isOurs(source, observed) && source.Desired.Mark.Policy == ownership.PolicyCreateOnly
	},
	decide.Conflict: func(source decide.Source, observed *decide.Observed) bool {
		return source.State == decide.InStep && observed != nil && !isOurs(source, observed)
	},
	decide.Prove: func(source decide.Source, observed *decide.Observed) bool {
		return isAbsent(source) && observed != nil && !observed.Former && !observed.Terminating && !source.Proven
	},
	decide.Delete: func(source decide.Source, observed *decide.Observed) bool {
		return isAbsent(source) && observed != nil && !observed.Former && !observed.Terminating && source.Proven &&
			!observed.Retain && observed.Mark.Policy == ownership.PolicyDelete
	},
	decide.Release: func(source decide.Source, observed *decide.Observed) bool {
		return isAbsent(source) && observed != nil && !observed.Former && !observed.Terminating && source.Proven
	},
}

func isAbsent(source decide.Source) bool {
	return slices.Contains([]decide.Cause{decide.Vanished, decide.Terminating, decide.Deselected}, source.State)
}

// isOurs tells whether the target holds what the source, which goes down, placed there, to stay.
func isOurs(source decide.Source, observed *decide.Observed) bool {
	if source.State != decide.InStep || observed == nil || observed.Terminating {
		return false
	}
	placed := observed.Mark.Source
	placed.UID = source.Desired.Mark.Source.UID
	return placed == source.Desired.Mark.Source
}

func checkDecision(t *testing.T, source decide.Source, observed *decide.Observed, got decide.Decision) {
	t.Helper()
	if rule, ok := allowed[got.Action]; !ok || !rule(source, observed) {
		t.Errorf("%v for a source that is %s (proven: %v) and for %+v", got, source.State, source.Proven, observed)
	}
	checkReasons(t, got)
}

func checkReasons(t *testing.T, got decide.Decision) {
	t.Helper()
	if (got.Cause == decide.Drifted) != (len(got.Fields) > 0) {
		t.Errorf("fields %v with cause %s", got.Fields, got.Cause)
	}
	if got.Cause == "" {
		t.Errorf("%s without a cause", got.Action)
	}
}

// afterDown carries out a decision as a faithful target does.
func afterDown(source decide.Source, observed *decide.Observed, got decide.Decision) *decide.Observed {
	after := &decide.Observed{UID: "7", Labelled: true, Fields: []byte(`{"f:spec":{"f:kept":{},"f:dropped":{}}}`)}
	switch got.Action {
	case decide.Create, decide.Apply:
		after.Mark = source.Desired.Mark
	case decide.Remark:
		after.Mark, after.Fields = source.Desired.Mark, observed.Fields
		after.Mark.Hash, after.Mark.Adopted = observed.Mark.Hash, observed.Mark.Adopted
	case decide.Delete, decide.Release:
		return nil
	default:
		return observed
	}
	return after
}

// checkSettles fails the test unless nothing is left to do once a decision has been carried out.
func checkSettles(t *testing.T, source decide.Source, observed *decide.Observed, got decide.Decision) {
	t.Helper()
	if slices.Contains([]decide.Action{decide.None, decide.Conflict, decide.Prove}, got.Action) {
		return
	}
	again, err := decide.Down(source, afterDown(source, observed, got), nil)
	if want := (decide.Decision{Action: decide.None, Cause: source.State}); err != nil || !reflect.DeepEqual(again, want) {
		t.Errorf("after %v: want %v, got %v, %v", got, want, again, err)
	}
}

func TestWhatNoDecisionMayDo(t *testing.T) {
	tried := combinations(downColumns, func(values []string) {
		source, observed, tolerated := situation(values)
		got, err := decide.Down(source, observed, tolerated)
		if err != nil {
			t.Fatalf("%v: %v", values, err)
		}
		checkDecision(t, source, observed, got)
		checkSettles(t, source, observed, got)
		if observed == nil {
			return
		}
		// Whether an object was adopted decides nothing here: what follows of it is in Retain.
		observed.Mark.Adopted = true
		if adopted, err := decide.Down(source, observed, tolerated); err != nil || !reflect.DeepEqual(adopted, got) {
			t.Errorf("%v: %v, but once it is adopted %v, %v", values, got, adopted, err)
		}
	})
	if tried != 7*2*2*3*3*2*2*2*2*2*4 {
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
			observed.Fields, observed.Mark.Policy, observed.Mark.Hash, observed.Mark.Source.Name = fields, ownership.Policy(policy), hash, name
		}
		got, err := decide.Down(source, observed, []string{tolerated})
		if err != nil {
			if !isOurs(source, observed) || !reflect.DeepEqual(got, decide.Decision{}) {
				t.Errorf("%v: %v with %v", values, got, err)
			}
			return
		}
		checkDecision(t, source, observed, got)
		checkSettles(t, source, observed, got)
		if again, err := decide.Down(source, observed, []string{tolerated}); err != nil || !reflect.DeepEqual(again, got) {
			t.Errorf("%v, then %v, %v", got, again, err)
		}
	})
}
