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

package watch_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/internal/watch"
)

func TestIgnoreHeartbeats(t *testing.T) {
	now := metav1.Now()
	earlier := metav1.NewTime(now.Add(-time.Minute))
	for name, test := range map[string]struct {
		change func(*edgev2alpha1.SyncTarget)
		passes bool
	}{
		"a heartbeat": {func(s *edgev2alpha1.SyncTarget) { s.Status.LastSyncerHeartbeatTime = &now }, false},
		"counts": {func(s *edgev2alpha1.SyncTarget) {
			s.Status.Counts, s.Status.PendingSince = &edgev2alpha1.TargetCounts{Synced: 2}, &now
		}, false},
		"the first heartbeat": {func(s *edgev2alpha1.SyncTarget) {
			s.Status.LastSyncerHeartbeatTime = &now
			s.Status.Conditions[0].Status = metav1.ConditionTrue
		}, true},
		"who wrote it": {func(s *edgev2alpha1.SyncTarget) { s.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "x"}} }, false},
		"a resync":     {func(s *edgev2alpha1.SyncTarget) { s.ResourceVersion = "1" }, true},
		"its spec":     {func(s *edgev2alpha1.SyncTarget) { s.Spec.Drain, s.Generation = true, 2 }, true},
		"a label":      {func(s *edgev2alpha1.SyncTarget) { s.Labels = map[string]string{"env": "prod"} }, false},
		"a parameter":  {func(s *edgev2alpha1.SyncTarget) { s.Annotations = map[string]string{"shop.example/city": "Gouda"} }, false},
		"an annotation": {func(s *edgev2alpha1.SyncTarget) {
			s.Annotations = map[string]string{edgev2alpha1.AnnotationForceRemoval: "true"}
		}, true},
		"a finalizer":    {func(s *edgev2alpha1.SyncTarget) { s.Finalizers = nil }, true},
		"its deletion":   {func(s *edgev2alpha1.SyncTarget) { s.DeletionTimestamp = &now }, true},
		"another object": {func(s *edgev2alpha1.SyncTarget) { s.UID = "other" }, true},
		"a condition":    {func(s *edgev2alpha1.SyncTarget) { s.Status.Conditions[0].Message = "x" }, true},
		"its mailbox":    {func(s *edgev2alpha1.SyncTarget) { s.Status.Mailbox = nil }, true},
		"a resource":     {func(s *edgev2alpha1.SyncTarget) { s.Status.SyncedResources = nil }, true},
	} {
		before := &edgev2alpha1.SyncTarget{}
		before.Name, before.UID, before.ResourceVersion, before.Generation, before.Finalizers = "florin", "1", "1", 1, []string{"f"}
		before.Status.LastSyncerHeartbeatTime = &earlier
		before.Status.Conditions = []metav1.Condition{{Type: edgev2alpha1.ConditionReady, Status: metav1.ConditionFalse}}
		before.Status.Mailbox = &edgev2alpha1.MailboxStatus{Cluster: "m"}
		before.Status.SyncedResources = []edgev2alpha1.SyncedResource{{Resource: "configmaps"}}
		after := before.DeepCopy()
		after.ResourceVersion = "2"
		test.change(after)
		untouched := before.DeepCopy()
		if passes := watch.IgnoreHeartbeats().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}); passes != test.passes {
			t.Errorf("%s: want %v, got %v", name, test.passes, passes)
		}
		if before.ResourceVersion != untouched.ResourceVersion || before.Status.LastSyncerHeartbeatTime == nil {
			t.Errorf("%s: the cache's object was changed", name)
		}
	}
}
