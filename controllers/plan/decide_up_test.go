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

// upTable is every decision there is on the way up, in the form of downTable. ours says whether what the mailbox holds came
// up at all.
const upTable = `
state       held ours source policy            wanted proven retain going content         action   cause
Unknown     -    -    -      -                 -      -      -      -     -               None     Unknown
Suspended   -    -    -      -                 -      -      -      -     -               None     Suspended

Selected    no   -    -      -                 -      -      -      -     -               Create   Missing
Selected    yes  no   -      -                 -      -      -      -     -               Conflict NameTaken
Selected    yes  yes  other  -                 -      -      -      -     -               Conflict NameTaken
Selected    yes  yes  same   -                 -      -      -      yes   -               None     BeingDeleted
Selected    yes  yes  same   -                 other  -      -      no    -               Update   Changed
Selected    yes  yes  same   -                 same   -      -      no    changed         Update   Changed
Selected    yes  yes  same   -                 same   -      -      no    drifted         Update   Drifted
Selected    yes  yes  same   -                 same   -      -      no    same|dropped    None     InSync

SourceNotFound    no   -    -      -                 -      -      -      -     -               None     SourceNotFound
SourceNotFound    yes  no   -      -                 -      -      -      -     -               None     SourceNotFound
SourceNotFound    yes  yes  -      -                 -      -      -      yes   -               None     BeingDeleted
SourceNotFound    yes  yes  -      -                 -      no     -      no    -               VerifyAbsence    SourceNotFound
SourceNotFound    yes  yes  -      Delete            -      yes    no     no    -               Delete   SourceNotFound
SourceNotFound    yes  yes  -      Delete            -      yes    yes    no    -               Release  SourceNotFound
SourceNotFound    yes  yes  -      Orphan|CreateOnly -      yes    -      no    -               Release  SourceNotFound

Deselected  no   -    -      -                 -      -      -      -     -               None     Deselected
Deselected  yes  no   -      -                 -      -      -      -     -               None     Deselected
Deselected  yes  yes  -      -                 -      -      -      yes   -               None     BeingDeleted
Deselected  yes  yes  -      -                 -      no     -      no    -               VerifyAbsence    Deselected
Deselected  yes  yes  -      Delete            -      yes    no     no    -               Delete   Deselected
Deselected  yes  yes  -      Delete            -      yes    yes    no    -               Release  Deselected
Deselected  yes  yes  -      Orphan|CreateOnly -      yes    -      no    -               Release  Deselected
`

var upColumns = [][]string{
	{"Unknown", "Suspended", "Selected", "SourceNotFound", "Deselected"}, // state
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

// upSituation makes of a combination what is to be decided about the mailbox.
func upSituation(values []string) (plan.SourceState, *plan.MailboxObject, []string) {
	yes := func(column int) bool { return values[column] == "yes" }
	tolerated := []string{droppedPath}
	source, observed, _ := situation(inSync())
	mark := observed.Mark
	mark.Direction, mark.Policy = ownership.DirectionUp, ownership.Policy(values[4])
	if values[0] == "Selected" {
		source.Desired.Mark = mark
		if values[5] == "other" {
			next := map[ownership.Policy]ownership.Policy{ownership.PolicyDelete: ownership.PolicyOrphan, ownership.PolicyOrphan: ownership.PolicyCreateOnly, ownership.PolicyCreateOnly: ownership.PolicyDelete}
			source.Desired.Mark.Policy = next[mark.Policy]
		}
		if values[9] == "changed" {
			source.Desired.Mark.Hash = "1:b"
		}
	} else {
		source = plan.SourceState{State: plan.State(values[0])}
	}
	source.AbsenceVerified = yes(6)
	if !yes(1) {
		return source, nil, tolerated
	}
	if values[3] == "other" {
		mark.Source.Name = "y"
	}
	held := &plan.MailboxObject{Owned: yes(2), Retain: yes(7), Terminating: yes(8)}
	if held.Owned {
		held.Mark = mark
		held.Missing = map[string][]string{"drifted": {".spec.dropped", ".spec.kept"}, "dropped": {droppedPath}}[values[9]]
	}
	return source, held, tolerated
}

func TestUpTable(t *testing.T) {
	checkTable(t, upTable, upColumns, func(values []string) (plan.Decision, error) {
		source, held, tolerated := upSituation(values)
		return plan.DecideUp(source, held, tolerated)
	})
}

// allowedUp says for each action when it may be taken at all on the way up.
var allowedUp = map[plan.Action]func(source plan.SourceState, held *plan.MailboxObject) bool{
	plan.None: func(plan.SourceState, *plan.MailboxObject) bool { return true },
	plan.Create: func(source plan.SourceState, held *plan.MailboxObject) bool {
		return source.State == plan.Selected && held == nil
	},
	plan.Update: cameFrom,
	plan.Conflict: func(source plan.SourceState, held *plan.MailboxObject) bool {
		return source.State == plan.Selected && held != nil && !cameFrom(source, held)
	},
	plan.VerifyAbsence: func(source plan.SourceState, held *plan.MailboxObject) bool {
		return isAbsent(source) && held != nil && held.Owned && !held.Terminating && !source.AbsenceVerified
	},
	plan.Delete: func(source plan.SourceState, held *plan.MailboxObject) bool {
		return isAbsent(source) && held != nil && held.Owned && !held.Terminating && source.AbsenceVerified &&
			!held.Retain && held.Mark.Policy == ownership.PolicyDelete
	},
	plan.Release: func(source plan.SourceState, held *plan.MailboxObject) bool {
		return isAbsent(source) && held != nil && held.Owned && !held.Terminating && source.AbsenceVerified
	},
}

// cameFrom reports whether the mailbox holds what came up of the source, which still comes up, to stay.
func cameFrom(source plan.SourceState, held *plan.MailboxObject) bool {
	if source.State != plan.Selected || held == nil || !held.Owned || held.Terminating {
		return false
	}
	from := held.Mark.Source
	from.UID = source.Desired.Mark.Source.UID
	return from == source.Desired.Mark.Source
}

// checkUpDecision fails the test unless a decision may be taken, and leaves nothing to do once a faithful mailbox has carried it
// out.
func checkUpDecision(t *testing.T, source plan.SourceState, held *plan.MailboxObject, got plan.Decision) {
	t.Helper()
	if rule, ok := allowedUp[got.Action]; !ok || !rule(source, held) {
		t.Errorf("%v for a source that is %s (proven: %v) and for %+v", got, source.State, source.AbsenceVerified, held)
	}
	checkReasons(t, got)
	var after *plan.MailboxObject
	switch got.Action {
	case plan.Create, plan.Update:
		after = &plan.MailboxObject{Owned: true, Mark: source.Desired.Mark}
	case plan.Release:
		after = &plan.MailboxObject{Retain: held.Retain}
	case plan.Delete:
	default:
		return
	}
	again, err := plan.DecideUp(source, after, nil)
	if want := (plan.Decision{Action: plan.None, Cause: settledCause(source.State)}); err != nil || !reflect.DeepEqual(again, want) {
		t.Errorf("after %v: want %v, got %v, %v", got, want, again, err)
	}
}

func TestWhatNoUpDecisionMayDo(t *testing.T) {
	tried := combinations(upColumns, func(values []string) {
		source, held, tolerated := upSituation(values)
		got, err := plan.DecideUp(source, held, tolerated)
		if err != nil {
			t.Fatalf("%v: %v", values, err)
		}
		checkUpDecision(t, source, held, got)
		if held == nil || !held.Owned {
			return
		}
		held.Mark.Adopted = true
		if adopted, err := plan.DecideUp(source, held, tolerated); err != nil || !reflect.DeepEqual(adopted, got) {
			t.Errorf("%v: %v, but once it is adopted %v, %v", values, got, adopted, err)
		}
	})
	if tried != 5*2*2*2*3*2*2*2*2*4 {
		t.Errorf("tried only %d combinations", tried)
	}
}

func TestUpDriftNamesItsFields(t *testing.T) {
	for name, test := range map[string]struct{ missing, tolerated, want []string }{
		"nothing is missing":     {nil, nil, nil},
		"one is":                 {[]string{".spec.a"}, nil, []string{".spec.a"}},
		"one is, another known":  {[]string{".spec.a", ".spec.b"}, []string{".spec.b"}, []string{".spec.a", ".spec.b"}},
		"the known one is":       {[]string{".spec.b"}, []string{".spec.b"}, nil},
		"fewer than are known":   {[]string{".spec.b"}, []string{".spec.a", ".spec.b"}, nil},
		"one is and none of all": {[]string{".spec.c"}, []string{".spec.a", ".spec.b"}, []string{".spec.c"}},
	} {
		source, held, _ := upSituation([]string{"Selected", "yes", "yes", "same", "Delete", "same", "no", "no", "no", "same"})
		held.Missing = test.missing
		got, err := plan.DecideUp(source, held, test.tolerated)
		want := plan.Decision{Action: plan.None, Cause: plan.InSync}
		if test.want != nil {
			want = plan.Decision{Action: plan.Update, Cause: plan.Drifted, Fields: test.want}
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
		source, held, _ := upSituation(chosen(upColumns, choices))
		if held != nil {
			held.Mark.Policy, held.Mark.Hash, held.Mark.Source.Name = ownership.Policy(policy), hash, name
			held.Missing = slices.DeleteFunc([]string{missing}, func(path string) bool { return path == "" })
		}
		got, err := plan.DecideUp(source, held, []string{tolerated})
		if err != nil {
			t.Fatal(err)
		}
		checkUpDecision(t, source, held, got)
		if again, err := plan.DecideUp(source, held, []string{tolerated}); err != nil || !reflect.DeepEqual(again, got) {
			t.Errorf("%v, then %v, %v", got, again, err)
		}
	})
}
