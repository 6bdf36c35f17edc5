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

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/plan/transform"
)

// downTable contains every decision for a downsync; "-" stands for any value. Exactly one line must match each combination.
//
// The columns: source, whether the observed mark names the same source; policy, the policy in the observed mark, and wanted, in
// the desired mark; absent, whether the absence is verified; former, whether the object is from a former mailbox; term., whether
// the object is terminating; content, how the observed object compares: same, changed (the source's hash differs), drifted
// (another manager took a field), or dropped (a field that the target drops).
const downTable = `
state       observed source policy            wanted     absent former retain labelled term. content              action   cause
Unknown     -        -      -                 -          -      -      -      -        -     -                    None     Unknown
Suspended   -        -      -                 -          -      -      -      -        -     -                    None     Suspended

Selected    no       -      -                 -          -      -      -      -        -     -                    Create   Missing
Selected    yes      other  -                 -          -      -      -      -        -     -                    Conflict NameTaken
Selected    yes      same   -                 -          -      -      -      -        yes   -                    None     BeingDeleted

Selected    yes      same   CreateOnly        CreateOnly -      -      -      yes      no    -                    None     InSync
Selected    yes      same   CreateOnly        CreateOnly -      -      -      no       no    -                    UpdateMark   Changed
Selected    yes      same   Delete|Orphan     CreateOnly -      -      -      -        no    -                    UpdateMark   Changed

Selected    yes      same   Orphan|CreateOnly Delete     -      -      -      -        no    -                    Apply    Changed
Selected    yes      same   Delete            Delete     -      -      -      -        no    changed              Apply    Changed
Selected    yes      same   Delete            Delete     -      -      -      no       no    same|drifted|dropped Apply    Drifted
Selected    yes      same   Delete            Delete     -      -      -      yes      no    drifted              Apply    Drifted
Selected    yes      same   Delete            Delete     -      -      -      yes      no    same|dropped         None     InSync

Selected    yes      same   Delete|CreateOnly Orphan     -      -      -      -        no    -                    Apply    Changed
Selected    yes      same   Orphan            Orphan     -      -      -      -        no    changed              Apply    Changed
Selected    yes      same   Orphan            Orphan     -      -      -      no       no    same|drifted|dropped Apply    Drifted
Selected    yes      same   Orphan            Orphan     -      -      -      yes      no    drifted              Apply    Drifted
Selected    yes      same   Orphan            Orphan     -      -      -      yes      no    same|dropped         None     InSync

SourceNotFound    no       -      -                 -          -      -      -      -        -     -                    None     SourceNotFound
SourceNotFound    yes      -      -                 -          -      -      -      -        yes   -                    None     BeingDeleted
SourceNotFound    yes      -      -                 -          -      yes    -      -        no    -                    None     FormerMailbox
SourceNotFound    yes      -      -                 -          no     no     -      -        no    -                    VerifyAbsence    SourceNotFound
SourceNotFound    yes      -      Delete            -          yes    no     no     -        no    -                    Delete   SourceNotFound
SourceNotFound    yes      -      Delete            -          yes    no     yes    -        no    -                    Release  SourceNotFound
SourceNotFound    yes      -      Orphan|CreateOnly -          yes    no     -      -        no    -                    Release  SourceNotFound

Terminating no       -      -                 -          -      -      -      -        -     -                    None     Terminating
Terminating yes      -      -                 -          -      -      -      -        yes   -                    None     BeingDeleted
Terminating yes      -      -                 -          -      yes    -      -        no    -                    None     FormerMailbox
Terminating yes      -      -                 -          no     no     -      -        no    -                    VerifyAbsence    Terminating
Terminating yes      -      Delete            -          yes    no     no     -        no    -                    Delete   Terminating
Terminating yes      -      Delete            -          yes    no     yes    -        no    -                    Release  Terminating
Terminating yes      -      Orphan|CreateOnly -          yes    no     -      -        no    -                    Release  Terminating

Deselected  no       -      -                 -          -      -      -      -        -     -                    None     Deselected
Deselected  yes      -      -                 -          -      -      -      -        yes   -                    None     BeingDeleted
Deselected  yes      -      -                 -          -      yes    -      -        no    -                    None     FormerMailbox
Deselected  yes      -      -                 -          no     no     -      -        no    -                    VerifyAbsence    Deselected
Deselected  yes      -      Delete            -          yes    no     no     -        no    -                    Delete   Deselected
Deselected  yes      -      Delete            -          yes    no     yes    -        no    -                    Release  Deselected
Deselected  yes      -      Orphan|CreateOnly -          yes    no     -      -        no    -                    Release  Deselected
`

var downColumns = [][]string{
	{"Unknown", "Suspended", "Selected", "SourceNotFound", "Terminating", "Deselected"}, // state
	{"no", "yes"},                             // observed
	{"same", "other"},                         // source
	{"Delete", "Orphan", "CreateOnly"},        // policy
	{"Delete", "Orphan", "CreateOnly"},        // wanted
	{"no", "yes"},                             // absent
	{"no", "yes"},                             // former
	{"no", "yes"},                             // retain
	{"no", "yes"},                             // labelled
	{"no", "yes"},                             // terminating
	{"same", "changed", "drifted", "dropped"}, // content
}

// inSync is a combination in which there is nothing to do.
func inSync() []string {
	return []string{"Selected", "yes", "same", "Delete", "Delete", "no", "no", "no", "yes", "no", "same"}
}

const droppedPath = ".spec.dropped"

// situation returns the arguments of a decision for a combination.
func situation(values []string) (plan.SourceState, *plan.TargetObject, []string) {
	yes := func(column int) bool { return values[column] == "yes" }
	wanted := ownership.Mark{
		Version: ownership.MarkVersion, Hub: "hub", SyncTarget: "target", Mailbox: "mailbox", Hash: "1:a",
		Source: ownership.Source{Resource: "configmaps", Namespace: "a", Name: "x", UID: "1"},
		Self:   ownership.Self{Kind: "ConfigMap", Namespace: "a", Name: "x"},
		Policy: ownership.Policy(values[4]),
	}
	mark := wanted
	mark.Policy = ownership.Policy(values[3])
	if values[2] == "other" {
		mark.Source.Name = "y"
	}
	if values[10] == "changed" {
		wanted.Hash = "1:b"
	}
	source := plan.SourceState{State: plan.State(values[0]), AbsenceVerified: yes(5)}
	if source.State == plan.Selected {
		source.Desired = &transform.Desired{Mark: wanted, Object: &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "x", "namespace": "a"},
			"spec": map[string]any{"kept": "x", "dropped": "x"},
		}}}
	}
	if !yes(1) {
		return source, nil, []string{droppedPath}
	}
	fields := map[string]string{
		"same":    `{"f:spec":{"f:kept":{},"f:dropped":{}}}`,
		"changed": `{"f:spec":{"f:kept":{},"f:dropped":{}}}`,
		"drifted": `{"f:spec":{"f:theirs":{}}}`,
		"dropped": `{"f:spec":{"f:kept":{}}}`,
	}
	return source, &plan.TargetObject{
		UID: "7", Mark: mark, FormerMailbox: yes(6), Retain: yes(7), HasOwnerLabel: yes(8), Terminating: yes(9), AppliedFields: []byte(fields[values[10]]),
	}, []string{droppedPath}
}

func TestDownTable(t *testing.T) {
	checkTable(t, downTable, downColumns, func(values []string) (plan.Decision, error) {
		source, observed, tolerated := situation(values)
		return plan.DecideDown(source, observed, tolerated)
	})
}

func TestDriftNamesItsFields(t *testing.T) {
	for name, test := range map[string]struct {
		content, labelled string
		tolerated, want   []string
	}{
		"one lost":                       {"drifted", "yes", nil, []string{".spec.dropped", ".spec.kept"}},
		"one lost, one known":            {"drifted", "yes", []string{droppedPath}, []string{".spec.dropped", ".spec.kept"}},
		"the known one is not known":     {"dropped", "yes", nil, []string{".spec.dropped"}},
		"another one is known":           {"dropped", "yes", []string{".spec.other"}, []string{".spec.dropped"}},
		"all are known":                  {"drifted", "yes", []string{".spec.kept", ".spec.other", ".spec.dropped"}, nil},
		"the label, and a dropped field": {"dropped", "no", nil, []string{".metadata.labels." + ownership.OwnerLabel}},
		"the label of all":               {"same", "no", []string{droppedPath}, []string{".metadata.labels." + ownership.OwnerLabel}},
	} {
		t.Run(name, func(t *testing.T) {
			values := inSync()
			values[8], values[10] = test.labelled, test.content
			source, observed, _ := situation(values)
			got, err := plan.DecideDown(source, observed, test.tolerated)
			want := plan.Decision{Action: plan.None, Cause: plan.InSync}
			if test.want != nil {
				want = plan.Decision{Action: plan.Apply, Cause: plan.Drifted, Fields: test.want}
			}
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("want %v, got %v, %v", want, got, err)
			}
		})
	}
}

// Every difference between the marks is written, not only a new hash. A create-only object gets only the mark. The field Adopted
// is taken from the observed mark, and is no difference.
func TestEveryChangeOfTheMarkIsWritten(t *testing.T) {
	for name, test := range map[string]struct {
		change          func(*ownership.Mark)
		applied, marked plan.Action
	}{
		"source re-created":  {func(m *ownership.Mark) { m.Source.UID = "2" }, plan.Apply, plan.UpdateMark},
		"mailbox re-created": {func(m *ownership.Mark) { m.Mailbox = "other" }, plan.Apply, plan.UpdateMark},
		"policy":             {func(m *ownership.Mark) { m.Policy = ownership.PolicyOrphan }, plan.Apply, plan.UpdateMark},
		"content":            {func(m *ownership.Mark) { m.Hash = "1:b" }, plan.Apply, plan.None},
		"source's version":   {func(m *ownership.Mark) { m.Hash = "2:a" }, plan.Apply, plan.None},
		"adopted":            {func(m *ownership.Mark) { m.Adopted = true }, plan.None, plan.None},
		"source's group":     {func(m *ownership.Mark) { m.Source.Group = "other" }, plan.Conflict, plan.Conflict},
		"source's resource":  {func(m *ownership.Mark) { m.Source.Resource = "other" }, plan.Conflict, plan.Conflict},
		"source's namespace": {func(m *ownership.Mark) { m.Source.Namespace = "other" }, plan.Conflict, plan.Conflict},
		"source's name":      {func(m *ownership.Mark) { m.Source.Name = "other" }, plan.Conflict, plan.Conflict},
	} {
		for policy, want := range map[string]plan.Action{"Delete": test.applied, "CreateOnly": test.marked} {
			values := inSync()
			values[3], values[4] = policy, policy
			source, observed, _ := situation(values)
			test.change(&observed.Mark)
			got, err := plan.DecideDown(source, observed, nil)
			if err != nil || got.Action != want || len(got.Fields) > 0 {
				t.Errorf("%s, %s: want %v, got %v, %v", name, policy, want, got, err)
			}
		}
	}
}

// KubeStellar's annotation may be set and removed: each change is one write, and the object is not overwritten while it has the
// annotation.
func TestChangesOfCreateOnly(t *testing.T) {
	desired := func(policy, hash string) plan.SourceState {
		values := inSync()
		values[4] = policy
		source, _, _ := situation(values)
		source.Desired.Mark.Hash = hash
		return source
	}
	var observed *plan.TargetObject
	for number, step := range []struct {
		policy, hash string
		want         plan.Action
		// markHash is the hash in the target's mark after the step: the hash of the last apply.
		markHash string
	}{
		{"CreateOnly", "1:a", plan.Create, "1:a"},
		{"CreateOnly", "1:a", plan.None, "1:a"},
		{"CreateOnly", "1:b", plan.None, "1:a"},
		{"Delete", "1:b", plan.Apply, "1:b"},
		{"Delete", "1:c", plan.Apply, "1:c"},
		{"CreateOnly", "1:c", plan.UpdateMark, "1:c"},
		{"CreateOnly", "1:d", plan.None, "1:c"},
		{"CreateOnly", "1:c", plan.None, "1:c"},
		{"Delete", "1:c", plan.Apply, "1:c"},
		{"Delete", "1:c", plan.None, "1:c"},
		{"Orphan", "1:c", plan.Apply, "1:c"},
		{"CreateOnly", "1:e", plan.UpdateMark, "1:c"},
		{"Orphan", "1:e", plan.Apply, "1:e"},
	} {
		source := desired(step.policy, step.hash)
		got, err := plan.DecideDown(source, observed, nil)
		if err != nil || got.Action != step.want {
			t.Fatalf("step %d: want %s, got %v, %v", number, step.want, got, err)
		}
		if observed = afterDown(source, observed, got); observed.Mark.Hash != step.markHash {
			t.Fatalf("step %d: the mark has the hash %s, want %s", number, observed.Mark.Hash, step.markHash)
		}
	}
}

// The copies under a former name are decided about like copies of a deselected object.
func TestStale(t *testing.T) {
	combinations(downColumns, func(values []string) {
		if values[0] != "Deselected" || values[5] != "yes" {
			return
		}
		source, observed, _ := situation(values)
		want, err := plan.DecideDown(source, observed, nil)
		if got := plan.DecideFormerName(observed); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%v: want %v, got %v, %v", values, want, got, err)
		}
	})
}

func TestRefuses(t *testing.T) {
	source, observed, _ := situation(inSync())
	observed.AppliedFields = []byte("{")
	if got, err := plan.DecideDown(source, observed, nil); err == nil || !reflect.DeepEqual(got, plan.Decision{}) {
		t.Errorf("decided %v by fields that cannot be read", got)
	}
	// A state that does not exist must never end as an absence.
	unknown := []plan.State{"", "Present", "InSync", "ExcludedByUpsync", "Changed", "Missing", "BeingDeleted", "Drifted", "NameTaken"}
	for _, state := range unknown {
		for _, observed := range []*plan.TargetObject{nil, observed} {
			if got, err := plan.DecideDown(plan.SourceState{State: state, AbsenceVerified: true}, observed, nil); err == nil || !reflect.DeepEqual(got, plan.Decision{}) {
				t.Errorf("state %q: decided %v", state, got)
			}
		}
	}
	// The deletion of a target object does not end its upsync: the finalizers of a target object are its own.
	for _, state := range slices.Concat(unknown, []plan.State{plan.Terminating}) {
		for _, inMailbox := range []*plan.MailboxObject{nil, {Owned: true, Mark: observed.Mark}} {
			if got, err := plan.DecideUp(plan.SourceState{State: state, AbsenceVerified: true}, inMailbox, nil); err == nil || !reflect.DeepEqual(got, plan.Decision{}) {
				t.Errorf("state %q: decided %v about the mailbox", state, got)
			}
		}
	}
}

func TestString(t *testing.T) {
	for want, decision := range map[string]plan.Decision{
		"None (InSync)":                 {Action: plan.None, Cause: plan.InSync},
		"Apply (Drifted: [.spec.a .b])": {Action: plan.Apply, Cause: plan.Drifted, Fields: []string{".spec.a", ".b"}},
	} {
		if got := decision.String(); got != want {
			t.Errorf("want %s, got %s", want, got)
		}
	}
}
