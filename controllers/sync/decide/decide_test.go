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
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/synchub-dev/synchub/controllers/sync/decide"
	"github.com/synchub-dev/synchub/controllers/sync/ownership"
	"github.com/synchub-dev/synchub/controllers/sync/transform"
)

// table is every decision there is; "-" stands for any value. Exactly one line must hold for each combination.
//
// policy is that of the observed mark, and wanted says whether the desired one has the same. content says how the
// observed object compares: same, changed (the source's hash is another), drifted (a field was taken), or dropped (a
// field that the target is known not to keep).
const table = `
state       observed policy            wanted proven retain labelled going content         action  cause
Unknown     -        -                 -      -      -      -        -     -               None    Unknown
Suspended   -        -                 -      -      -      -        -     -               None    Suspended

InStep      no       -                 -      -      -      -        -     -               Create  Missing
InStep      yes      -                 -      -      -      -        yes   -               None    Going
InStep      yes      CreateOnly        same   -      -      -        no    -               None    InStep
InStep      yes      -                 other  -      -      -        no    -               Apply   Changed
InStep      yes      Delete|Orphan     same   -      -      -        no    changed         Apply   Changed
InStep      yes      Delete|Orphan     same   -      -      no       no    same            Apply   Drifted
InStep      yes      Delete|Orphan     same   -      -      no       no    drifted         Apply   Drifted
InStep      yes      Delete|Orphan     same   -      -      no       no    dropped         Apply   Drifted
InStep      yes      Delete|Orphan     same   -      -      yes      no    drifted         Apply   Drifted
InStep      yes      Delete|Orphan     same   -      -      yes      no    same|dropped    None    InStep

Vanished    no       -                 -      -      -      -        -     -               None    Vanished
Vanished    yes      -                 -      -      -      -        yes   -               None    Going
Vanished    yes      -                 -      no     -      -        no    -               Prove   Vanished
Vanished    yes      Delete            -      yes    no     -        no    -               Delete  Vanished
Vanished    yes      Delete            -      yes    yes    -        no    -               Release Vanished
Vanished    yes      Orphan|CreateOnly -      yes    -      -        no    -               Release Vanished

Terminating no       -                 -      -      -      -        -     -               None    Terminating
Terminating yes      -                 -      -      -      -        yes   -               None    Going
Terminating yes      -                 -      no     -      -        no    -               Prove   Terminating
Terminating yes      Delete            -      yes    no     -        no    -               Delete  Terminating
Terminating yes      Delete            -      yes    yes    -        no    -               Release Terminating
Terminating yes      Orphan|CreateOnly -      yes    -      -        no    -               Release Terminating

Deselected  no       -                 -      -      -      -        -     -               None    Deselected
Deselected  yes      -                 -      -      -      -        yes   -               None    Going
Deselected  yes      -                 -      no     -      -        no    -               Prove   Deselected
Deselected  yes      Delete            -      yes    no     -        no    -               Delete  Deselected
Deselected  yes      Delete            -      yes    yes    -        no    -               Release Deselected
Deselected  yes      Orphan|CreateOnly -      yes    -      -        no    -               Release Deselected
`

var columns = [][]string{
	{"Unknown", "Suspended", "InStep", "Vanished", "Terminating", "Deselected"}, // state
	{"no", "yes"},                      // observed
	{"Delete", "Orphan", "CreateOnly"}, // policy
	{"same", "other"},                  // wanted
	{"no", "yes"},                      // proven
	{"no", "yes"},                      // retain
	{"no", "yes"},                      // labelled
	{"no", "yes"},                      // going
	{"same", "changed", "drifted", "dropped"}, // content
}

// combinations calls visit with every combination of what columns offer.
func combinations(visit func(values []string)) {
	var extend func(values []string)
	extend = func(values []string) {
		if len(values) == len(columns) {
			visit(slices.Clone(values))
			return
		}
		for _, value := range columns[len(values)] {
			extend(append(values, value))
		}
	}
	extend(nil)
}

const droppedPath = ".spec.dropped"

// situation makes of a combination what is to be decided.
func situation(values []string) (decide.Source, *decide.Observed, []string) {
	yes := func(column int) bool { return values[column] == "yes" }
	mark := ownership.Mark{
		Version: ownership.MarkVersion, Hub: "hub", SyncTarget: "target", Mailbox: "mailbox", Hash: "1:a",
		Source: ownership.Source{Resource: "configmaps", Namespace: "a", Name: "x", UID: "1"},
		Self:   ownership.Self{Kind: "ConfigMap", Namespace: "a", Name: "x"},
		Policy: ownership.Policy(values[2]),
	}
	source := decide.Source{State: decide.Cause(values[0]), Proven: yes(4)}
	if source.State == decide.InStep {
		wanted := mark
		if values[3] == "other" {
			next := map[ownership.Policy]ownership.Policy{ownership.PolicyDelete: ownership.PolicyOrphan, ownership.PolicyOrphan: ownership.PolicyCreateOnly, ownership.PolicyCreateOnly: ownership.PolicyDelete}
			wanted.Policy = next[mark.Policy]
		}
		if values[8] == "changed" {
			wanted.Hash = "1:b"
		}
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
	return source, &decide.Observed{
		UID: "7", Mark: mark, Retain: yes(5), Labelled: yes(6), Terminating: yes(7), Fields: []byte(fields[values[8]]),
	}, []string{droppedPath}
}

func TestTable(t *testing.T) {
	var lines [][]string
	for line := range strings.Lines(table) {
		if fields := strings.Fields(line); len(fields) > 0 && fields[0] != "state" {
			if len(fields) != len(columns)+2 {
				t.Fatalf("malformed line: %s", line)
			}
			lines = append(lines, fields)
		}
	}
	used := make([]bool, len(lines))
	combinations(func(values []string) {
		var found []int
		for number, line := range lines {
			if holds(line, values) {
				found = append(found, number)
			}
		}
		if len(found) != 1 {
			t.Fatalf("%v: %d lines of the table hold", values, len(found))
		}
		used[found[0]] = true
		line := lines[found[0]]
		source, observed, tolerated := situation(values)
		got, err := decide.Down(source, observed, tolerated)
		if err != nil {
			t.Fatalf("%v: %v", values, err)
		}
		if want := line[len(columns):]; string(got.Action) != want[0] || string(got.Cause) != want[1] {
			t.Errorf("%v: want %v, got %v", values, want, got)
		}
	})
	if number := slices.Index(used, false); number >= 0 {
		t.Errorf("no combination for the line %v", lines[number])
	}
}

func holds(line, values []string) bool {
	for column, value := range values {
		if line[column] != "-" && !slices.Contains(strings.Split(line[column], "|"), value) {
			return false
		}
	}
	return true
}

func TestDriftNamesItsFields(t *testing.T) {
	base := []string{"InStep", "yes", "Delete", "same", "no", "no", "yes", "no"}
	for name, test := range map[string]struct {
		content, labelled string
		tolerated, want   []string
	}{
		"one lost":                        {"drifted", "yes", nil, []string{".spec.dropped", ".spec.kept"}},
		"one lost, one known":             {"drifted", "yes", []string{droppedPath}, []string{".spec.dropped", ".spec.kept"}},
		"the known one is not known":      {"dropped", "yes", nil, []string{".spec.dropped"}},
		"another one is known":            {"dropped", "yes", []string{".spec.other"}, []string{".spec.dropped"}},
		"all are known":                   {"drifted", "yes", []string{".spec.kept", ".spec.other", ".spec.dropped"}, nil},
		"the label, whatever was dropped": {"dropped", "no", nil, []string{".metadata.labels." + ownership.OwnerLabel}},
		"the label of all":                {"same", "no", []string{droppedPath}, []string{".metadata.labels." + ownership.OwnerLabel}},
	} {
		t.Run(name, func(t *testing.T) {
			values := append(slices.Clone(base), test.content)
			values[6] = test.labelled
			source, observed, _ := situation(values)
			got, err := decide.Down(source, observed, test.tolerated)
			want := decide.Decision{Action: decide.None, Cause: decide.InStep}
			if test.want != nil {
				want = decide.Decision{Action: decide.Apply, Cause: decide.Drifted, Fields: test.want}
			}
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("want %v, got %v, %v", want, got, err)
			}
		})
	}
}

// Every difference between the marks counts, not only that of the hash.
func TestEveryChangeOfTheMarkIsApplied(t *testing.T) {
	for name, change := range map[string]func(*ownership.Mark){
		"source re-created":  func(m *ownership.Mark) { m.Source.UID = "2" },
		"mailbox re-created": func(m *ownership.Mark) { m.Mailbox = "other" },
		"source's version":   func(m *ownership.Mark) { m.Hash = "2:a" },
		"source's resource":  func(m *ownership.Mark) { m.Source.Resource = "other" },
		"policy":             func(m *ownership.Mark) { m.Policy = ownership.PolicyOrphan },
	} {
		source, observed, _ := situation([]string{"InStep", "yes", "Delete", "same", "no", "no", "yes", "no", "same"})
		change(&observed.Mark)
		got, err := decide.Down(source, observed, nil)
		if want := (decide.Decision{Action: decide.Apply, Cause: decide.Changed}); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: want %v, got %v, %v", name, want, got, err)
		}
	}
}

func TestRefuses(t *testing.T) {
	source, observed, _ := situation([]string{"InStep", "yes", "Delete", "same", "no", "no", "yes", "no", "same"})
	observed.Fields = []byte("{")
	if got, err := decide.Down(source, observed, nil); err == nil || !reflect.DeepEqual(got, decide.Decision{}) {
		t.Errorf("decided %v by fields that cannot be read", got)
	}
	// A state that does not exist must never end as an absence.
	for _, state := range []decide.Cause{"", "Present", decide.Changed, decide.Missing, decide.Going, decide.Drifted} {
		for _, observed := range []*decide.Observed{nil, observed} {
			if got, err := decide.Down(decide.Source{State: state, Proven: true}, observed, nil); err == nil || !reflect.DeepEqual(got, decide.Decision{}) {
				t.Errorf("state %q: decided %v", state, got)
			}
		}
	}
}

func TestString(t *testing.T) {
	for want, decision := range map[string]decide.Decision{
		"None (InStep)":                 {Action: decide.None, Cause: decide.InStep},
		"Apply (Drifted: [.spec.a .b])": {Action: decide.Apply, Cause: decide.Drifted, Fields: []string{".spec.a", ".b"}},
	} {
		if got := decision.String(); got != want {
			t.Errorf("want %s, got %s", want, got)
		}
	}
}
