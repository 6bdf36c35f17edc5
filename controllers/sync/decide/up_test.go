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

// upTable is every decision there is on the way up, in the form of downTable. ours says whether what the mailbox holds came
// up at all.
const upTable = `
state       held ours source policy            wanted proven retain going content         action   cause
Unknown     -    -    -      -                 -      -      -      -     -               None     Unknown
Suspended   -    -    -      -                 -      -      -      -     -               None     Suspended

InStep      no   -    -      -                 -      -      -      -     -               Create   Missing
InStep      yes  no   -      -                 -      -      -      -     -               Conflict Taken
InStep      yes  yes  other  -                 -      -      -      -     -               Conflict Taken
InStep      yes  yes  same   -                 -      -      -      yes   -               None     Going
InStep      yes  yes  same   -                 other  -      -      no    -               Update   Changed
InStep      yes  yes  same   -                 same   -      -      no    changed         Update   Changed
InStep      yes  yes  same   -                 same   -      -      no    drifted         Update   Drifted
InStep      yes  yes  same   -                 same   -      -      no    same|dropped    None     InStep

Vanished    no   -    -      -                 -      -      -      -     -               None     Vanished
Vanished    yes  no   -      -                 -      -      -      -     -               None     Vanished
Vanished    yes  yes  -      -                 -      -      -      yes   -               None     Going
Vanished    yes  yes  -      -                 -      no     -      no    -               Prove    Vanished
Vanished    yes  yes  -      Delete            -      yes    no     no    -               Delete   Vanished
Vanished    yes  yes  -      Delete            -      yes    yes    no    -               Release  Vanished
Vanished    yes  yes  -      Orphan|CreateOnly -      yes    -      no    -               Release  Vanished

Deselected  no   -    -      -                 -      -      -      -     -               None     Deselected
Deselected  yes  no   -      -                 -      -      -      -     -               None     Deselected
Deselected  yes  yes  -      -                 -      -      -      yes   -               None     Going
Deselected  yes  yes  -      -                 -      no     -      no    -               Prove    Deselected
Deselected  yes  yes  -      Delete            -      yes    no     no    -               Delete   Deselected
Deselected  yes  yes  -      Delete            -      yes    yes    no    -               Release  Deselected
Deselected  yes  yes  -      Orphan|CreateOnly -      yes    -      no    -               Release  Deselected
`

var upColumns = [][]string{
	{"Unknown", "Suspended", "InStep", "Vanished", "Deselected"}, // state
	{"no", "yes"},                      // held
	{"no", "yes"},                      // ours
	{"same", "other"},                  // source
	{"Delete", "Orphan", "CreateOnly"}, // policy
	{"same", "other"},                  // wanted
	{"no", "yes"},                      // proven
	{"no", "yes"},                      // retain
	{"no", "yes"},                      // going
	{"same", "changed", "drifted", "dropped"}, // content
}

// situationAbove makes of a combination what is to be decided about the mailbox.
func situationAbove(values []string) (decide.Source, *decide.Held, []string) {
	yes := func(column int) bool { return values[column] == "yes" }
	tolerated := []string{droppedPath}
	source, observed, _ := situation(inStep())
	mark := observed.Mark
	mark.Direction, mark.Policy = ownership.DirectionUp, ownership.Policy(values[4])
	if values[0] == "InStep" {
		source.Desired.Mark = mark
		if values[5] == "other" {
			next := map[ownership.Policy]ownership.Policy{ownership.PolicyDelete: ownership.PolicyOrphan, ownership.PolicyOrphan: ownership.PolicyCreateOnly, ownership.PolicyCreateOnly: ownership.PolicyDelete}
			source.Desired.Mark.Policy = next[mark.Policy]
		}
		if values[9] == "changed" {
			source.Desired.Mark.Hash = "1:b"
		}
	} else {
		source = decide.Source{State: decide.Cause(values[0])}
	}
	source.Proven = yes(6)
	if !yes(1) {
		return source, nil, tolerated
	}
	if values[3] == "other" {
		mark.Source.Name = "y"
	}
	held := &decide.Held{UID: "7", Ours: yes(2), Retain: yes(7), Terminating: yes(8)}
	if held.Ours {
		held.Mark = mark
		held.Missing = map[string][]string{"drifted": {".spec.dropped", ".spec.kept"}, "dropped": {droppedPath}}[values[9]]
	}
	return source, held, tolerated
}

func TestUpTable(t *testing.T) {
	checkTable(t, upTable, upColumns, func(values []string) (decide.Decision, error) {
		source, held, tolerated := situationAbove(values)
		return decide.Up(source, held, tolerated)
	})
}

// allowedAbove says for each action when it may be taken at all on the way up.
var allowedAbove = map[decide.Action]func(source decide.Source, held *decide.Held) bool{
	decide.None: func(decide.Source, *decide.Held) bool { return true },
	decide.Create: func(source decide.Source, held *decide.Held) bool {
		return source.State == decide.InStep && held == nil
	},
	decide.Update: cameFrom,
	decide.Conflict: func(source decide.Source, held *decide.Held) bool {
		return source.State == decide.InStep && held != nil && !cameFrom(source, held)
	},
	decide.Prove: func(source decide.Source, held *decide.Held) bool {
		return isAbsent(source) && held != nil && held.Ours && !held.Terminating && !source.Proven
	},
	decide.Delete: func(source decide.Source, held *decide.Held) bool {
		return isAbsent(source) && held != nil && held.Ours && !held.Terminating && source.Proven &&
			!held.Retain && held.Mark.Policy == ownership.PolicyDelete
	},
	decide.Release: func(source decide.Source, held *decide.Held) bool {
		return isAbsent(source) && held != nil && held.Ours && !held.Terminating && source.Proven
	},
}

// cameFrom tells whether the mailbox holds what came up of the source, which still comes up, to stay.
func cameFrom(source decide.Source, held *decide.Held) bool {
	if source.State != decide.InStep || held == nil || !held.Ours || held.Terminating {
		return false
	}
	from := held.Mark.Source
	from.UID = source.Desired.Mark.Source.UID
	return from == source.Desired.Mark.Source
}

// checkAbove fails the test unless a decision may be taken, and leaves nothing to do once a faithful mailbox has carried it
// out.
func checkAbove(t *testing.T, source decide.Source, held *decide.Held, got decide.Decision) {
	t.Helper()
	if rule, ok := allowedAbove[got.Action]; !ok || !rule(source, held) {
		t.Errorf("%v for a source that is %s (proven: %v) and for %+v", got, source.State, source.Proven, held)
	}
	checkReasons(t, got)
	var after *decide.Held
	switch got.Action {
	case decide.Create, decide.Update:
		after = &decide.Held{UID: "7", Ours: true, Mark: source.Desired.Mark}
	case decide.Release:
		after = &decide.Held{UID: "7", Retain: held.Retain}
	case decide.Delete:
	default:
		return
	}
	again, err := decide.Up(source, after, nil)
	if want := (decide.Decision{Action: decide.None, Cause: source.State}); err != nil || !reflect.DeepEqual(again, want) {
		t.Errorf("after %v: want %v, got %v, %v", got, want, again, err)
	}
}

func TestWhatNoDecisionMayDoAbove(t *testing.T) {
	tried := combinations(upColumns, func(values []string) {
		source, held, tolerated := situationAbove(values)
		got, err := decide.Up(source, held, tolerated)
		if err != nil {
			t.Fatalf("%v: %v", values, err)
		}
		checkAbove(t, source, held, got)
		if held == nil || !held.Ours {
			return
		}
		held.Mark.Adopted = true
		if adopted, err := decide.Up(source, held, tolerated); err != nil || !reflect.DeepEqual(adopted, got) {
			t.Errorf("%v: %v, but once it is adopted %v, %v", values, got, adopted, err)
		}
	})
	if tried != 5*2*2*2*3*2*2*2*2*4 {
		t.Errorf("tried only %d combinations", tried)
	}
}

func TestDriftAboveNamesItsFields(t *testing.T) {
	for name, test := range map[string]struct{ missing, tolerated, want []string }{
		"nothing is missing":     {nil, nil, nil},
		"one is":                 {[]string{".spec.a"}, nil, []string{".spec.a"}},
		"one is, another known":  {[]string{".spec.a", ".spec.b"}, []string{".spec.b"}, []string{".spec.a", ".spec.b"}},
		"the known one is":       {[]string{".spec.b"}, []string{".spec.b"}, nil},
		"fewer than are known":   {[]string{".spec.b"}, []string{".spec.a", ".spec.b"}, nil},
		"one is and none of all": {[]string{".spec.c"}, []string{".spec.a", ".spec.b"}, []string{".spec.c"}},
	} {
		source, held, _ := situationAbove([]string{"InStep", "yes", "yes", "same", "Delete", "same", "no", "no", "no", "same"})
		held.Missing = test.missing
		got, err := decide.Up(source, held, test.tolerated)
		want := decide.Decision{Action: decide.None, Cause: decide.InStep}
		if test.want != nil {
			want = decide.Decision{Action: decide.Update, Cause: decide.Drifted, Fields: test.want}
		}
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: want %v, got %v, %v", name, want, got, err)
		}
	}
}

func FuzzUp(f *testing.F) {
	f.Add([]byte{2, 1, 1, 0, 0, 0, 0, 0, 0, 0}, ".spec.dropped", ".spec.dropped", "Delete", "1:a", "x")
	f.Add([]byte{3, 1, 1, 0, 0, 0, 1, 0, 0, 0}, "", "", "", "", "x")
	f.Add([]byte{2, 1, 1, 0, 0, 0, 0, 0, 0, 0}, ".", "", "delete", "\x00", "y")
	f.Fuzz(func(t *testing.T, choices []byte, missing, tolerated, policy, hash, name string) {
		source, held, _ := situationAbove(chosen(upColumns, choices))
		if held != nil {
			held.Mark.Policy, held.Mark.Hash, held.Mark.Source.Name = ownership.Policy(policy), hash, name
			held.Missing = slices.DeleteFunc([]string{missing}, func(path string) bool { return path == "" })
		}
		got, err := decide.Up(source, held, []string{tolerated})
		if err != nil {
			t.Fatal(err)
		}
		checkAbove(t, source, held, got)
		if again, err := decide.Up(source, held, []string{tolerated}); err != nil || !reflect.DeepEqual(again, got) {
			t.Errorf("%v, then %v, %v", got, again, err)
		}
	})
}
