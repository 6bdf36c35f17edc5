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

package plan

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/plan/transform"
)

// kindNamed parses "GROUP/VERSION KIND".
func kindNamed(text string) schema.GroupVersionKind {
	version, kind, _ := strings.Cut(text, " ")
	return schema.FromAPIVersionAndKind(version, kind)
}

// A copy that vanished is created again as a repair. An object that has run to completion is not run again until it changes.
func TestPlanOfARemovedCopy(t *testing.T) {
	owner := ownership.Owner{Hub: "hub", SyncTarget: "target", Sealer: ownership.NewSealer([]byte("key"))}
	newJob := func(kind string) *unstructured.Unstructured {
		job := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"parallelism": int64(1), "ttlSecondsAfterFinished": int64(0)}}}
		job.SetGroupVersionKind(kindNamed(kind))
		job.SetNamespace("default")
		job.SetName("migrate")
		job.SetUID("source")
		return job
	}
	down := transform.Down{Owner: owner, Mailbox: "mailbox", Namespaced: true, Hasher: ownership.NewHasher([]byte("key"))}
	planner := Planner{Down: down}
	spec := transform.SyncSpec{Policy: ownership.PolicyDelete}
	note := func(job *unstructured.Unstructured) {
		run, _ := down.RunOf(job)
		job.SetAnnotations(map[string]string{ownership.FinishedAnnotation: owner.FinishedValue(run)})
	}
	const finished, running, never = "finished", "running", "never"
	for name, test := range map[string]struct {
		kind, removed string
		// before changes the Job before the copy was created, and after changes it afterwards.
		before, after func(*unstructured.Unstructured)
		want          string
		repair, note  bool
	}{
		"new":                           {kind: "batch/v1 Job", removed: never, want: "Create (Missing)"},
		"running":                       {kind: "batch/v1 Job", removed: running, want: "Create (Removed)", repair: true},
		"running, changed since":        {kind: "batch/v1 Job", removed: running, after: func(o *unstructured.Unstructured) { o.SetLabels(map[string]string{"a": "b"}) }, want: "Create (Missing)"},
		"running, made again":           {kind: "batch/v1 Job", removed: running, after: func(o *unstructured.Unstructured) { o.SetUID("other") }, want: "Create (Missing)"},
		"finished":                      {kind: "batch/v1 Job", removed: finished, want: "None (Finished)", note: true},
		"a finished Pod":                {kind: "v1 Pod", removed: finished, want: "None (Finished)", note: true},
		"finished, made again":          {kind: "batch/v1 Job", removed: finished, after: func(o *unstructured.Unstructured) { o.SetUID("other") }, want: "Create (Missing)"},
		"finished before a restart":     {kind: "batch/v1 Job", removed: never, after: note, want: "None (Finished)"},
		"noted, and removed again":      {kind: "batch/v1 Job", removed: finished, after: note, want: "None (Finished)"},
		"noted, and with another label": {kind: "batch/v1 Job", removed: never, after: func(o *unstructured.Unstructured) { note(o); o.SetLabels(map[string]string{"a": "b"}) }, want: "None (Finished)"},
		"noted, and made again":         {kind: "batch/v1 Job", removed: never, after: func(o *unstructured.Unstructured) { note(o); o.SetUID("other") }, want: "Create (Missing)"},
		"noted, and with another spec":  {kind: "batch/v1 Job", removed: never, after: func(o *unstructured.Unstructured) { note(o); o.Object["spec"] = map[string]any{} }, want: "Create (Missing)"},
		"noted on an object of a kind that does not run": {kind: "v1 ConfigMap", removed: never, after: func(o *unstructured.Unstructured) {
			o.SetAnnotations(map[string]string{ownership.FinishedAnnotation: owner.FinishedValue(ownership.Run{Source: o.GetUID()})})
		}, want: "Create (Missing)"},
		"noted by somebody else": {kind: "batch/v1 Job", removed: never, after: func(o *unstructured.Unstructured) {
			o.SetAnnotations(map[string]string{ownership.FinishedAnnotation: "true"})
		}, want: "Create (Missing)"},
	} {
		t.Run(name, func(t *testing.T) {
			source := newJob(test.kind)
			made, err := down.Desired(source, spec)
			if err != nil {
				t.Fatal(err)
			}
			d := &DownSnapshot{State: Selected, Spec: spec, Destination: Copy{Key: types.NamespacedName{Namespace: "default", Name: "migrate"}}}
			if test.removed != never {
				d.Removed = &Removal{Mark: made.Mark}
			}
			if test.removed == finished {
				d.Removed.Finished = made.Object
			}
			if test.after != nil {
				test.after(source)
			}
			got := planner.PlanDown(&Snapshot{InMailbox: source, Readable: true, Down: d})
			repair := len(got.Operations) > 0 && got.Operations[0].Repair
			if got.Err != nil || got.Decision.String() != test.want || repair != test.repair || (got.FinishedMark != "") != test.note {
				t.Errorf("want %s, repair %v, note %v; got %s, %v, %v, %v", test.want, test.repair, test.note, got.Decision, repair, got.FinishedMark, got.Err)
			}
		})
	}
}

// A finished copy that its cluster will delete is recorded in time, since the hub may not be running when it is deleted.
func TestPlanOfAFinishedCopy(t *testing.T) {
	owner := ownership.Owner{Hub: "hub", SyncTarget: "target", Sealer: ownership.NewSealer([]byte("key"))}
	down := transform.Down{Owner: owner, Namespaced: true, Hasher: ownership.NewHasher([]byte("key"))}
	for name, test := range map[string]struct {
		finished, expires, terminating, noted bool
		returned, note                        bool
	}{
		"running":                     {expires: true, returned: true},
		"finished":                    {finished: true, returned: true},
		"finished, and expires":       {finished: true, expires: true, returned: true, note: true},
		"finished, expires, noted":    {finished: true, expires: true, noted: true, returned: true},
		"running, and being deleted":  {terminating: true},
		"finished, and being deleted": {finished: true, terminating: true, returned: true},
	} {
		source := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "batch/v1", "kind": "Job", "metadata": map[string]any{"name": "migrate", "uid": "source"}, "spec": map[string]any{},
		}}
		if test.expires {
			_ = unstructured.SetNestedField(source.Object, int64(60), "spec", "ttlSecondsAfterFinished")
		}
		if test.noted {
			run, _ := down.RunOf(source)
			source.SetAnnotations(map[string]string{ownership.FinishedAnnotation: owner.FinishedValue(run)})
		}
		spec := transform.SyncSpec{Policy: ownership.PolicyOrphan}
		desired, err := down.Desired(source, spec)
		if err != nil {
			t.Fatal(err)
		}
		observed := &TargetObject{Mark: desired.Mark, HasOwnerLabel: true, Finished: test.finished, Terminating: test.terminating, AppliedFields: []byte(`{"f:spec":{"f:ttlSecondsAfterFinished":{}}}`)}
		got := Planner{Down: down}.PlanDown(&Snapshot{InMailbox: source, Readable: true, Down: &DownSnapshot{State: Selected, Spec: spec, Destination: Copy{Observed: observed}, DroppedPaths: []string{".metadata", ".spec"}}})
		if got.ReturnStatus != test.returned || (got.FinishedMark != "") != test.note {
			t.Errorf("%s: returned %v, noted %v (%s)", name, got.ReturnStatus, got.FinishedMark, got.Decision)
		}
	}
}

// An object restored from a backup of a copy is another object. It is taken over if its source exists, and otherwise not deleted.
func TestRestoredCopy(t *testing.T) {
	owner := ownership.Owner{Hub: "hub", SyncTarget: "target", Sealer: ownership.NewSealer([]byte("key"))}
	manager := ownership.FieldManager(owner.Hub)
	self := ownership.Self{Kind: "ConfigMap", Name: "prices"}
	created := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	identity := func(uid types.UID) string { return owner.SealIdentity(ownership.Identity{Copy: uid}, self) }
	for name, test := range map[string]struct {
		written  time.Duration
		manager  string
		identity string
		want     bool
	}{
		"as the hub made it":                 {0, manager, "", false},
		"as the hub made it, a second later": {-time.Second, manager, "", false},
		"as the hub changed it":              {time.Hour, manager, identity("copy"), false},
		"changed by a hub of an earlier one": {time.Hour, manager, "", false},
		"made again with its managedFields":  {-time.Minute, manager, "", true},
		"made again without managedFields":   {0, "kubectl", "", true},
		"made again after a change":          {time.Hour, manager, identity("former"), true},
		"made again, its identity is forged": {-time.Hour, manager, `{"copy":"copy","seal":"x"}`, true},
		"made again, with another one's":     {-time.Hour, manager, owner.SealIdentity(ownership.Identity{Copy: "copy"}, ownership.Self{Kind: "ConfigMap", Name: "other"}), true},
	} {
		object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
		object.SetName("prices")
		object.SetUID("copy")
		object.SetCreationTimestamp(metav1.NewTime(created))
		if test.identity != "" {
			object.SetAnnotations(map[string]string{ownership.IdentityAnnotation: test.identity})
		}
		at := metav1.NewTime(created.Add(test.written))
		object.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: test.manager, Operation: metav1.ManagedFieldsOperationApply, Time: &at, FieldsV1: metav1.NewFieldsV1("{}")}})
		mark := ownership.Mark{Self: self, Policy: ownership.PolicyDelete, Source: ownership.Source{UID: "source"}}
		observed := Resource{}.NewTargetObject(owner, "", object, mark)
		observed.HasOwnerLabel = true
		if observed.Restored != test.want {
			t.Errorf("%s: restored %v", name, observed.Restored)
		}
		absent, err := DecideDown(SourceState{State: SourceNotFound, AbsenceVerified: true}, observed, nil)
		if want := map[bool]string{true: "None (Restored)", false: "Delete (SourceNotFound)"}[test.want]; err != nil || absent.String() != want {
			t.Errorf("%s: want %s, got %s, %v", name, want, absent, err)
		}
		present, err := DecideDown(SourceState{State: Selected, Desired: &transform.Desired{Object: object, Mark: mark}}, observed, nil)
		if want := map[bool]string{true: "Apply (Restored)", false: "None (InSync)"}[test.want]; err != nil || present.String() != want {
			t.Errorf("%s: want %s, got %s, %v", name, want, present, err)
		}
	}
}

// An upsynced object that vanished from the mailbox is created again as a repair, unless its source is another object now.
func TestPlanOfARemovedUpsyncedObject(t *testing.T) {
	owner := ownership.Owner{Hub: "hub", SyncTarget: "target", Sealer: ownership.NewSealer([]byte("key"))}
	up := transform.Up{Owner: owner, Mailbox: "mailbox", Namespaced: true, Version: "v1", Kind: "ConfigMap", Resource: schema.GroupResource{Resource: "configmaps"}, Hasher: ownership.NewHasher([]byte("key"))}
	planner := Planner{Up: up}
	source := func(uid types.UID, entry string) *unstructured.Unstructured {
		object := &unstructured.Unstructured{Object: map[string]any{"data": map[string]any{"entry": entry}}}
		object.SetGroupVersionKind(kindNamed("v1 ConfigMap"))
		object.SetNamespace("default")
		object.SetName("theirs")
		object.SetUID(uid)
		return object
	}
	spec := transform.SyncSpec{Policy: ownership.PolicyDelete}
	removed, err := up.Desired(source("one", "a"), up.Resource, spec)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		source  *unstructured.Unstructured
		removed *Removal
		want    string
		repair  bool
	}{
		"new":                {source("one", "a"), nil, "Create (Missing)", false},
		"removed":            {source("one", "a"), &Removal{Mark: removed.Mark}, "Create (Removed)", true},
		"changed since":      {source("one", "b"), &Removal{Mark: removed.Mark}, "Create (Missing)", false},
		"another source now": {source("two", "a"), &Removal{Mark: removed.Mark}, "Create (Missing)", false},
	} {
		key := types.NamespacedName{Namespace: "default", Name: "theirs"}
		u := &UpSnapshot{Object: test.source, State: Selected, Spec: spec, Name: key, API: TargetAPI{GroupVersionResource: up.Resource.WithVersion("v1")}, Removed: test.removed}
		plan := planner.PlanUp(&Snapshot{Key: key, Up: u})
		if plan.Err != nil || plan.Decision.String() != test.want || plan.Repair != test.repair {
			t.Errorf("%s: %v, repair %v, %v", name, plan.Decision, plan.Repair, plan.Err)
		}
	}
}
