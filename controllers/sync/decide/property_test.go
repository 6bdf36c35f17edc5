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

// allowed says for each action when it may be taken at all.
var allowed = map[decide.Action]func(source decide.Source, observed *decide.Observed) bool{
	decide.None: func(decide.Source, *decide.Observed) bool { return true },
	decide.Create: func(source decide.Source, observed *decide.Observed) bool {
		return source.State == decide.InStep && observed == nil
	},
	decide.Apply: func(source decide.Source, observed *decide.Observed) bool {
		return source.State == decide.InStep && observed != nil && !observed.Terminating
	},
	decide.Prove: func(source decide.Source, observed *decide.Observed) bool {
		return isAbsent(source) && observed != nil && !observed.Terminating && !source.Proven
	},
	decide.Delete: func(source decide.Source, observed *decide.Observed) bool {
		return isAbsent(source) && observed != nil && !observed.Terminating && source.Proven &&
			!observed.Retain && observed.Mark.Policy == ownership.PolicyDelete
	},
	decide.Release: func(source decide.Source, observed *decide.Observed) bool {
		return isAbsent(source) && observed != nil && !observed.Terminating && source.Proven
	},
}

func isAbsent(source decide.Source) bool {
	return slices.Contains([]decide.Cause{decide.Vanished, decide.Terminating, decide.Deselected}, source.State)
}

func checkDecision(t *testing.T, source decide.Source, observed *decide.Observed, got decide.Decision) {
	t.Helper()
	if rule, ok := allowed[got.Action]; !ok || !rule(source, observed) {
		t.Errorf("%v for a source that is %s (proven: %v) and for %+v", got, source.State, source.Proven, observed)
	}
	if (got.Cause == decide.Drifted) != (len(got.Fields) > 0) {
		t.Errorf("fields %v with cause %s", got.Fields, got.Cause)
	}
	if got.Cause == "" {
		t.Errorf("%s without a cause", got.Action)
	}
}

// checkSettles carries out a create or an apply as a faithful target does: nothing may be left to do.
func checkSettles(t *testing.T, source decide.Source, got decide.Decision) {
	t.Helper()
	if got.Action != decide.Create && got.Action != decide.Apply {
		return
	}
	after := &decide.Observed{UID: "7", Mark: source.Desired.Mark, Labelled: true, Fields: []byte(`{"f:spec":{"f:kept":{},"f:dropped":{}}}`)}
	again, err := decide.Down(source, after, nil)
	if want := (decide.Decision{Action: decide.None, Cause: decide.InStep}); err != nil || !reflect.DeepEqual(again, want) {
		t.Errorf("after %v: want %v, got %v, %v", got, want, again, err)
	}
}

func TestWhatNoDecisionMayDo(t *testing.T) {
	tried := 0
	combinations(func(values []string) {
		source, observed, tolerated := situation(values)
		got, err := decide.Down(source, observed, tolerated)
		if err != nil {
			t.Fatalf("%v: %v", values, err)
		}
		checkDecision(t, source, observed, got)
		checkSettles(t, source, got)
		tried++
	})
	if tried != 6*2*3*2*2*2*2*2*4 {
		t.Errorf("tried only %d combinations", tried)
	}
}

func FuzzDown(f *testing.F) {
	f.Add([]byte{2, 1, 0, 0, 0, 0, 1, 0, 0}, []byte(`{"f:spec":{"f:kept":{}}}`), ".spec.dropped", "Delete", "1:a")
	f.Add([]byte{3, 1, 0, 0, 1, 0, 1, 0, 0}, []byte(nil), "", "", "")
	f.Add([]byte{2, 1, 0, 0, 1, 0, 1, 0, 0}, []byte("{"), "", "delete", "\x00")
	f.Fuzz(func(t *testing.T, choices, fields []byte, tolerated, policy, hash string) {
		values := make([]string, len(columns))
		for column, offered := range columns {
			choice := 0
			if column < len(choices) {
				choice = int(choices[column]) % len(offered)
			}
			values[column] = offered[choice]
		}
		source, observed, _ := situation(values)
		if observed != nil {
			observed.Fields, observed.Mark.Policy, observed.Mark.Hash = fields, ownership.Policy(policy), hash
		}
		got, err := decide.Down(source, observed, []string{tolerated})
		if err != nil {
			if source.State != decide.InStep || observed == nil || !reflect.DeepEqual(got, decide.Decision{}) {
				t.Errorf("%v: %v with %v", values, got, err)
			}
			return
		}
		checkDecision(t, source, observed, got)
		checkSettles(t, source, got)
		if again, err := decide.Down(source, observed, []string{tolerated}); err != nil || !reflect.DeepEqual(again, got) {
			t.Errorf("%v, then %v, %v", got, again, err)
		}
	})
}
