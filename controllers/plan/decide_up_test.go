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

// upTable contains every decision for an upsync, in the form of downTable. has is whether the mailbox has an object of the name,
// and own whether the hub upsynced it.
const upTable = `
state       has  own  source policy            wanted absent retain term. content         action   cause
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
	{"no", "yes"},                      // has
	{"no", "yes"},                      // own
	{"same", "other"},                  // source
	{"Delete", "Orphan", "CreateOnly"}, // policy
	{"same", "other"},                  // wanted
	{"no", "yes"},                      // absent
	{"no", "yes"},                      // retain
	{"no", "yes"},                      // terminating
	{"same", "changed", "drifted", "dropped"}, // content
}

// upSituation returns the arguments of a decision about the mailbox for a combination.
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
	inMailbox := &plan.MailboxObject{Owned: yes(2), Retain: yes(7), Terminating: yes(8)}
	if inMailbox.Owned {
		inMailbox.Mark = mark
		inMailbox.Missing = map[string][]string{"drifted": {".spec.dropped", ".spec.kept"}, "dropped": {droppedPath}}[values[9]]
	}
	return source, inMailbox, tolerated
}

func TestUpTable(t *testing.T) {
	checkTable(t, upTable, upColumns, func(values []string) (plan.Decision, error) {
		source, inMailbox, tolerated := upSituation(values)
		return plan.DecideUp(source, inMailbox, tolerated)
	})
}

// allowedUp reports for each action whether an upsync may take it.
var allowedUp = map[plan.Action]func(source plan.SourceState, inMailbox *plan.MailboxObject) bool{
	plan.None: func(plan.SourceState, *plan.MailboxObject) bool { return true },
	plan.Create: func(source plan.SourceState, inMailbox *plan.MailboxObject) bool {
		return source.State == plan.Selected && inMailbox == nil
	},
	plan.Update: cameFrom,
	plan.Conflict: func(source plan.SourceState, inMailbox *plan.MailboxObject) bool {
		return source.State == plan.Selected && inMailbox != nil && !cameFrom(source, inMailbox)
	},
	plan.VerifyAbsence: func(source plan.SourceState, inMailbox *plan.MailboxObject) bool {
		return isAbsent(source) && inMailbox != nil && inMailbox.Owned && !inMailbox.Terminating && !source.AbsenceVerified
	},
	plan.Delete: func(source plan.SourceState, inMailbox *plan.MailboxObject) bool {
		return isAbsent(source) && inMailbox != nil && inMailbox.Owned && !inMailbox.Terminating && source.AbsenceVerified &&
			!inMailbox.Retain && inMailbox.Mark.Policy == ownership.PolicyDelete
	},
	plan.Release: func(source plan.SourceState, inMailbox *plan.MailboxObject) bool {
		return isAbsent(source) && inMailbox != nil && inMailbox.Owned && !inMailbox.Terminating && source.AbsenceVerified
	},
}

// cameFrom reports whether the mailbox has an object that was upsynced from the source, while the source is still selected.
func cameFrom(source plan.SourceState, inMailbox *plan.MailboxObject) bool {
	if source.State != plan.Selected || inMailbox == nil || !inMailbox.Owned || inMailbox.Terminating {
		return false
	}
	from := inMailbox.Mark.Source
	from.UID = source.Desired.Mark.Source.UID
	return from == source.Desired.Mark.Source
}

// checkUpDecision fails the test if the decision is not allowed, or if anything is left to do after a mailbox has carried it out.
func checkUpDecision(t *testing.T, source plan.SourceState, inMailbox *plan.MailboxObject, got plan.Decision) {
	t.Helper()
	if rule, ok := allowedUp[got.Action]; !ok || !rule(source, inMailbox) {
		t.Errorf("%v for a source that is %s (verified: %v) and for %+v", got, source.State, source.AbsenceVerified, inMailbox)
	}
	checkReasons(t, got)
	var after *plan.MailboxObject
	switch got.Action {
	case plan.Create, plan.Update:
		after = &plan.MailboxObject{Owned: true, Mark: source.Desired.Mark}
	case plan.Release:
		after = &plan.MailboxObject{Retain: inMailbox.Retain}
	case plan.Delete:
	default:
		return
	}
	again, err := plan.DecideUp(source, after, nil)
	if want := (plan.Decision{Action: plan.None, Cause: settledCause(source.State)}); err != nil || !reflect.DeepEqual(again, want) {
		t.Errorf("after %v: want %v, got %v, %v", got, want, again, err)
	}
}

func TestForbiddenUpDecisions(t *testing.T) {
	tried := combinations(upColumns, func(values []string) {
		source, inMailbox, tolerated := upSituation(values)
		got, err := plan.DecideUp(source, inMailbox, tolerated)
		if err != nil {
			t.Fatalf("%v: %v", values, err)
		}
		checkUpDecision(t, source, inMailbox, got)
		if inMailbox == nil || !inMailbox.Owned {
			return
		}
		inMailbox.Mark.Adopted = true
		if adopted, err := plan.DecideUp(source, inMailbox, tolerated); err != nil || !reflect.DeepEqual(adopted, got) {
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
		source, inMailbox, _ := upSituation([]string{"Selected", "yes", "yes", "same", "Delete", "same", "no", "no", "no", "same"})
		inMailbox.Missing = test.missing
		got, err := plan.DecideUp(source, inMailbox, test.tolerated)
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
		source, inMailbox, _ := upSituation(chosen(upColumns, choices))
		if inMailbox != nil {
			inMailbox.Mark.Policy, inMailbox.Mark.Hash, inMailbox.Mark.Source.Name = ownership.Policy(policy), hash, name
			inMailbox.Missing = slices.DeleteFunc([]string{missing}, func(path string) bool { return path == "" })
		}
		got, err := plan.DecideUp(source, inMailbox, []string{tolerated})
		if err != nil {
			t.Fatal(err)
		}
		checkUpDecision(t, source, inMailbox, got)
		if again, err := plan.DecideUp(source, inMailbox, []string{tolerated}); err != nil || !reflect.DeepEqual(again, got) {
			t.Errorf("%v, then %v, %v", got, again, err)
		}
	})
}
