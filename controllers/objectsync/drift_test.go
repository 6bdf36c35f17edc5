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

package objectsync

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/plan/transform"
)

// A cluster determines paths, managers and values, so the report of an object has a limit for each.
func TestReportsAreBounded(t *testing.T) {
	var differences []transform.Difference
	for i := range edgev2alpha1.MaxDifferences + 2 {
		managers := []string{strings.Repeat("m", 2*maxDriftManager), "b", "c", "d", "e"}
		differences = append(differences, transform.Difference{
			Path: fmt.Sprintf(".data.%d%s", i, strings.Repeat("x", 2*maxDriftPath)), Managers: managers, Desired: strings.Repeat("y", 2*maxDriftValue), Observed: map[string]any{"auth": "Bearer hunter2hunter2"},
		})
	}
	drifted := newDriftedError(differences, false)
	if len(drifted.first) != edgev2alpha1.MaxDifferences || drifted.total != len(differences) {
		t.Errorf("%d of %d differences", len(drifted.first), drifted.total)
	}
	for i, one := range drifted.first {
		if !strings.HasPrefix(one.Path, fmt.Sprintf(".data.%dx", i)) || len(one.Path) > maxDriftPath {
			t.Errorf("the path has %d bytes: %s", len(one.Path), one.Path)
		}
		if len(one.Managers) != maxDriftManagers || len(one.Managers[0]) > maxDriftManager || one.Managers[1] != "b" {
			t.Errorf("the managers are %q", one.Managers)
		}
		if len(one.Desired) > maxDriftValue || len(one.Observed) > maxDriftValue || strings.Contains(one.Observed, "hunter2") {
			t.Errorf("the values are %s and %s", one.Desired, one.Observed)
		}
	}
	if text := drifted.Error(); !strings.Contains(text, ", 2 more") || strings.Contains(text, "yyy") {
		t.Errorf("the message is %s", text)
	}
}

func TestReportedValues(t *testing.T) {
	differences := []transform.Difference{{Path: ".a", Desired: int64(1), IsAbsent: true}, {Path: ".b", Desired: false, Observed: nil}}
	shown := newDriftedError(differences, false).first
	if shown[0].Desired != "1" || shown[0].Observed != "" || shown[1].Desired != "false" || shown[1].Observed != "null" {
		t.Errorf("got %+v", shown)
	}
	for _, one := range newDriftedError(differences, true).first {
		if one.Desired != "" || one.Observed != "" {
			t.Errorf("a value is shown: %+v", one)
		}
	}
	secrets, configMaps := schema.GroupVersionResource{Version: "v1", Resource: "secrets"}, schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	for _, c := range []struct {
		mailbox, target schema.GroupVersionResource
		hides           bool
	}{{configMaps, configMaps, false}, {secrets, configMaps, true}, {configMaps, secrets, true}} {
		writer := &targetWriter{resource: &plan.Resource{GroupVersionResource: c.mailbox}}
		if got := writer.hidesValues(c.target.GroupResource()); got != c.hides {
			t.Errorf("%s as %s: hides values is %t", c.mailbox.Resource, c.target.Resource, got)
		}
	}
}

func TestDriftMessages(t *testing.T) {
	field := []transform.Difference{{Path: ".data.a", Managers: []string{"kubectl-edit", "helm"}}, {Path: ".data.b"}}
	taken := &nameTakenError{ref: plan.Ref{}}
	adopts := newDriftedError(field, true)
	adopts.taken = taken
	equal := &driftedError{taken: taken}
	for _, c := range []struct {
		err          *driftedError
		reason, text string
		awaitsName   bool
	}{
		{newDriftedError(field, true), plan.ReasonDrifted, "These fields differ: .data.a (kubectl-edit, helm), .data.b. Set drift to Repair", false},
		{adopts, plan.ReasonAdoptionReported, "It would change .data.a (kubectl-edit, helm), .data.b. Set drift to Repair", true},
		{equal, plan.ReasonAdoptionReported, "It would change nothing but its marks.", true},
	} {
		if got := newFailure(fmt.Errorf("a pass: %w", c.err)); got.Reason != c.reason || !strings.Contains(got.Message, c.text) {
			t.Errorf("got %+v", got)
		}
		if (c.err.asNameTaken() != nil) != c.awaitsName {
			t.Errorf("%s: it waits for the name %v", c.err, c.err.asNameTaken())
		}
	}
	for _, none := range []*driftReport{nil, {state: "x"}} {
		if err := none.asError(); err != nil {
			t.Errorf("a pass without differences fails: %v", err)
		}
	}
	if err := (&driftReport{err: equal}).asError(); !errors.Is(err, equal) {
		t.Errorf("got %v", err)
	}
}

// The hub reads a copy again only if that may change the report.
func TestStateOfReports(t *testing.T) {
	type copied struct {
		uid, version, hash string
		generation         int64
		fields             []string
	}
	stateOfCopy := func(c copied) string {
		object := &unstructured.Unstructured{}
		object.SetResourceVersion(c.version)
		object.SetGeneration(c.generation)
		observed := &plan.TargetObject{}
		observed.UID = "u"
		if c.uid != "" {
			observed.UID = "other"
		}
		return stateOf(plan.Operation{
			Copy: plan.Copy{Object: object, Observed: observed}, Desired: &transform.Desired{Mark: ownership.Mark{Hash: c.hash}}, Decision: plan.Decision{Fields: c.fields},
		})
	}
	for name, c := range map[string]struct {
		before, after copied
		isSame        bool
	}{
		"a new status":            {copied{version: "1", generation: 1}, copied{version: "2", generation: 1}, true},
		"a new spec":              {copied{version: "1", generation: 1}, copied{version: "2", generation: 2}, false},
		"a kind without a spec":   {copied{version: "1"}, copied{version: "2"}, false},
		"another field":           {copied{fields: []string{".a"}}, copied{fields: []string{".a", ".b"}}, false},
		"fields with other names": {copied{fields: []string{".a", ".b"}}, copied{fields: []string{`.a" ".b`}}, false},
		"a new source":            {copied{hash: "a"}, copied{hash: "b"}, false},
		"another object":          {copied{generation: 1}, copied{generation: 1, uid: "other"}, false},
		"nothing":                 {copied{version: "1", fields: []string{".a"}}, copied{version: "1", fields: []string{".a"}}, true},
	} {
		if before, after := stateOfCopy(c.before), stateOfCopy(c.after); (before == after) != c.isSame {
			t.Errorf("%s: %s, then %s", name, before, after)
		}
	}
}
