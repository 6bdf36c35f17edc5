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

package reflection_test

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/synchub-dev/synchub/controllers/placement/reflection"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/plan/transform"
)

// newSnapshot returns the snapshot of a Pod that has a reflection in sync.
func newSnapshot(t *testing.T) *reflection.Snapshot {
	t.Helper()
	up := transform.Up{
		Owner:   ownership.Owner{Hub: "hub", SyncTarget: "uid", Sealer: ownership.NewSealer([]byte("key"))}.ForWorkspace("team", "inventory"),
		Mailbox: "mailbox", SyncTarget: "florin", Resource: schema.GroupResource{Resource: "pods"}, Version: "v1", Kind: "Pod", Namespaced: true,
		Hasher: ownership.NewHasher([]byte("key")),
	}
	origin := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "web", "namespace": "shop-1", "uid": "origin", "labels": map[string]any{"app": "web"}},
		"spec": map[string]any{"nodeName": "one"},
	}}
	desired, err := up.Desired(origin, up.Resource, transform.SyncSpec{Policy: ownership.PolicyDelete, Namespace: "shop", Name: "web.florin"})
	if err != nil {
		t.Fatal(err)
	}
	object, mark := desired.Object.DeepCopy(), desired.Mark
	object.Object["status"] = map[string]any{"phase": "Running"}
	object.SetUID("reflection")
	return &reflection.Snapshot{
		Resource: plan.Resource{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "pods"}, Kind: "Pod", StatusSubresource: true},
		State:    plan.Selected, Desired: desired, Status: map[string]any{"phase": "Running"}, Owners: reflection.OwnerPresent, Object: object, Mark: &mark,
		AddedPaths: []string{},
	}
}

func TestDecide(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*reflection.Snapshot)
		want   string
	}{
		"in sync":            {func(*reflection.Snapshot) {}, "None (InSync)"},
		"missing":            {func(s *reflection.Snapshot) { s.Object, s.Mark = nil, nil }, "Create (Missing)"},
		"a user's object":    {func(s *reflection.Snapshot) { s.Mark = nil }, "Conflict (NameTaken)"},
		"another origin":     {func(s *reflection.Snapshot) { s.Mark.Source.Name = "other" }, "Conflict (NameTaken)"},
		"a new origin":       {func(s *reflection.Snapshot) { s.Mark.Source.UID = "former" }, "Delete (Superseded)"},
		"without its mark":   {func(s *reflection.Snapshot) { s.Mark = &ownership.Mark{} }, "Update (Changed)"},
		"another content":    {func(s *reflection.Snapshot) { s.Mark.Hash = "former" }, "Update (Changed)"},
		"another status":     {func(s *reflection.Snapshot) { s.Status = map[string]any{"phase": "Failed"} }, "None (InSync), status"},
		"content and status": {func(s *reflection.Snapshot) { s.Mark.Hash, s.Status = "former", nil }, "Update (Changed), status"},
		"an edited field":    {func(s *reflection.Snapshot) { s.Object.Object["spec"] = map[string]any{"nodeName": "two"} }, "Update (Drifted: [.spec.nodeName])"},
		"an added field":     {func(s *reflection.Snapshot) { s.Object.Object["spec"].(map[string]any)["priority"] = int64(7) }, "Update (Drifted: [.spec.priority])"},
		"the workspace's own": {func(s *reflection.Snapshot) {
			s.Object.Object["spec"].(map[string]any)["priority"], s.AddedPaths = int64(7), nil
		}, "None (InSync)"},
		"an added label":      {func(s *reflection.Snapshot) { s.Object.SetLabels(with(s.Object.GetLabels(), "mine")) }, "Update (Drifted: [.metadata.labels])"},
		"kcp's label":         {func(s *reflection.Snapshot) { s.Object.SetLabels(with(s.Object.GetLabels(), "internal.kcp.io/a")) }, "None (InSync)"},
		"an added annotation": {func(s *reflection.Snapshot) { s.Object.SetAnnotations(with(s.Object.GetAnnotations(), "mine")) }, "Update (Drifted: [.metadata.annotations])"},
		"an added owner":      {func(s *reflection.Snapshot) { s.Object.SetOwnerReferences([]metav1.OwnerReference{{Name: "mine"}}) }, "Update (Drifted: [.metadata.ownerReferences])"},
		"an added finalizer":  {func(s *reflection.Snapshot) { s.Object.SetFinalizers([]string{"example.org/mine"}) }, "Update (Drifted: [.metadata.finalizers])"},
		"being deleted": {func(s *reflection.Snapshot) {
			s.Object.SetDeletionTimestamp(&metav1.Time{})
			s.Object.Object["metadata"].(map[string]any)["deletionTimestamp"] = "2026-01-01T00:00:00Z"
		}, "None (BeingDeleted)"},
		"not cached whole": {func(s *reflection.Snapshot) { s.IsOutdated = true }, "None (Unknown)"},
		"an owner is gone": {func(s *reflection.Snapshot) { s.Owners, s.Object, s.Mark = reflection.OwnerGone, nil, nil }, "None (Unknown), waits"},
		"an owner is to come": {func(s *reflection.Snapshot) {
			s.Owners, s.MayWait, s.Object, s.Mark = reflection.OwnerPending, true, nil, nil
		}, "None (Unknown), waits"},
		"it has waited":        {func(s *reflection.Snapshot) { s.Owners, s.Object, s.Mark = reflection.OwnerPending, nil, nil }, "Create (Missing)"},
		"present, owner later": {func(s *reflection.Snapshot) { s.Owners, s.MayWait = reflection.OwnerPending, true }, "None (Unknown), waits"},
		"an owner is unknown":  {func(s *reflection.Snapshot) { s.Owners = reflection.OwnerUnknown }, "None (Unknown)"},
		"the origin is gone":   {func(s *reflection.Snapshot) { s.State, s.Desired = plan.SourceNotFound, nil }, "VerifyAbsence (SourceNotFound)"},
		"verified":             {func(s *reflection.Snapshot) { s.State, s.Desired, s.AbsenceVerified = plan.SourceNotFound, nil, true }, "Delete (SourceNotFound)"},
		"deselected":           {func(s *reflection.Snapshot) { s.State, s.Desired, s.AbsenceVerified = plan.Deselected, nil, true }, "Delete (Deselected)"},
		"a user's, deselected": {func(s *reflection.Snapshot) {
			s.State, s.Desired, s.AbsenceVerified, s.Mark = plan.Deselected, nil, true, nil
		}, "None (Deselected)"},
	} {
		s := newSnapshot(t)
		c.change(s)
		planned, err := reflection.Decide(s)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		got := planned.String()
		if planned.WritesStatus {
			got += ", status"
		}
		if planned.Waits {
			got += ", waits"
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

func with(entries map[string]string, key string) map[string]string {
	entries[key] = "x"
	return entries
}

// A status that is an ordinary field is part of the object, so that one write changes both.
func TestStatusWithoutASubresource(t *testing.T) {
	t.Parallel()
	s := newSnapshot(t)
	s.Resource.StatusSubresource, s.Status = false, map[string]any{"phase": "Failed"}
	planned, err := reflection.Decide(s)
	if got := fmt.Sprint(planned.Decision, planned.WritesStatus); err != nil || got != "Update (Drifted: [.status]) false" {
		t.Errorf("%s, %v", got, err)
	}
}
