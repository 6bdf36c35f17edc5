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

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/internal/watch"
)

func TestPlacementChanges(t *testing.T) {
	now := metav1.Now()
	ready := func(status metav1.ConditionStatus) func(*edgev2alpha1.SyncTarget) {
		return func(s *edgev2alpha1.SyncTarget) { s.Status.Conditions[0].Status = status }
	}
	for name, test := range map[string]struct {
		change func(*edgev2alpha1.SyncTarget)
		passes bool
	}{
		"a heartbeat":               {func(s *edgev2alpha1.SyncTarget) { s.Status.LastSyncerHeartbeatTime = &now }, false},
		"counts":                    {func(s *edgev2alpha1.SyncTarget) { s.Status.Counts = &edgev2alpha1.TargetCounts{Synced: 2} }, false},
		"the message of Ready":      {func(s *edgev2alpha1.SyncTarget) { s.Status.Conditions[0].Message = "x" }, false},
		"Ready from True to False":  {ready(metav1.ConditionFalse), true},
		"Ready from True to none":   {func(s *edgev2alpha1.SyncTarget) { s.Status.Conditions = nil }, true},
		"MailboxReady":              {func(s *edgev2alpha1.SyncTarget) { s.Status.Conditions[1].Status = metav1.ConditionTrue }, true},
		"another condition":         {func(s *edgev2alpha1.SyncTarget) { s.Status.Conditions[2].Status = metav1.ConditionTrue }, false},
		"a label":                   {func(s *edgev2alpha1.SyncTarget) { s.Labels["env"] = "test" }, true},
		"a label less":              {func(s *edgev2alpha1.SyncTarget) { s.Labels = nil }, true},
		"an annotation":             {func(s *edgev2alpha1.SyncTarget) { s.Annotations = map[string]string{"a": "b"} }, true},
		"its deletion":              {func(s *edgev2alpha1.SyncTarget) { s.DeletionTimestamp = &now }, true},
		"another object":            {func(s *edgev2alpha1.SyncTarget) { s.UID = "other" }, true},
		"cordoned":                  {func(s *edgev2alpha1.SyncTarget) { s.Spec.Unschedulable = true }, true},
		"drained":                   {func(s *edgev2alpha1.SyncTarget) { s.Spec.Drain = true }, true},
		"suspended":                 {func(s *edgev2alpha1.SyncTarget) { s.Spec.Suspend = true }, true},
		"another field of the spec": {func(s *edgev2alpha1.SyncTarget) { s.Spec.Adoption, s.Generation = edgev2alpha1.AdoptionAlways, 7 }, false},
	} {
		before := &edgev2alpha1.SyncTarget{}
		before.UID, before.ResourceVersion, before.Labels = "1", "1", map[string]string{"env": "prod"}
		before.Status.Conditions = []metav1.Condition{
			{Type: edgev2alpha1.ConditionReady, Status: metav1.ConditionTrue},
			{Type: edgev2alpha1.ConditionMailboxReady, Status: metav1.ConditionFalse},
			{Type: edgev2alpha1.ConditionSyncerReady, Status: metav1.ConditionFalse},
		}
		after := before.DeepCopy()
		after.ResourceVersion = "2"
		test.change(after)
		update := event.UpdateEvent{ObjectOld: before, ObjectNew: after}
		predicate := watch.PlacementChanges()
		if passes := predicate.Update(update); passes != test.passes {
			t.Errorf("%s: want %v, got %v", name, test.passes, passes)
		}
		if allocations := testing.AllocsPerRun(10, func() { predicate.Update(update) }); allocations > 0 {
			t.Errorf("%s: the comparison allocates %v times", name, allocations)
		}
	}
}

func TestIgnoreLocationStatus(t *testing.T) {
	now, one := metav1.Now(), int32(1)
	for name, test := range map[string]struct {
		change func(*edgev2alpha1.Location)
		passes bool
	}{
		"its status":     {func(l *edgev2alpha1.Location) { l.Status.Instances = &one }, false},
		"its spec":       {func(l *edgev2alpha1.Location) { l.Generation = 2 }, true},
		"a label":        {func(l *edgev2alpha1.Location) { l.Labels = map[string]string{"a": "b"} }, true},
		"an annotation":  {func(l *edgev2alpha1.Location) { l.Annotations = map[string]string{"a": "b"} }, true},
		"its deletion":   {func(l *edgev2alpha1.Location) { l.DeletionTimestamp = &now }, true},
		"another object": {func(l *edgev2alpha1.Location) { l.UID = "other" }, true},
	} {
		before := &edgev2alpha1.Location{}
		before.Generation, before.UID = 1, "1"
		after := before.DeepCopy()
		test.change(after)
		if passes := watch.IgnoreLocationStatus().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}); passes != test.passes {
			t.Errorf("%s: want %v, got %v", name, test.passes, passes)
		}
	}
}
