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

package watch

import (
	"maps"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
)

func changesLabelsOrAnnotations(before, after client.Object) bool {
	return !maps.Equal(before.GetLabels(), after.GetLabels()) || !maps.Equal(before.GetAnnotations(), after.GetAnnotations())
}

// PlacementChanges returns a predicate that drops updates of SyncTargets which change nothing that placement reads: the
// labels, whether the SyncTarget is terminating or too large to read, the conditions Ready and MailboxReady, and the fields
// of the spec that keep objects away. Nearly all updates of a fleet are heartbeats, so the comparison allocates nothing.
func PlacementChanges() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(update event.UpdateEvent) bool {
		before, is := update.ObjectOld.(*edgev2alpha1.SyncTarget)
		after, are := update.ObjectNew.(*edgev2alpha1.SyncTarget)
		return !is || !are || changesPlacement(before, after)
	}}
}

func changesPlacement(before, after *edgev2alpha1.SyncTarget) bool {
	return before.UID != after.UID || (before.DeletionTimestamp == nil) != (after.DeletionTimestamp == nil) ||
		before.Spec.Unschedulable != after.Spec.Unschedulable || before.Spec.Drain != after.Spec.Drain || before.Spec.Suspend != after.Spec.Suspend ||
		changesCondition(before, after, edgev2alpha1.ConditionReady) || changesCondition(before, after, edgev2alpha1.ConditionMailboxReady) ||
		!apiequality.Semantic.DeepEqual(before.Spec.Tenancy, after.Spec.Tenancy) ||
		// The annotations contain parameters, and whether the cache could read the SyncTarget.
		changesLabelsOrAnnotations(before, after)
}

func changesCondition(before, after *edgev2alpha1.SyncTarget, conditionType string) bool {
	return meta.IsStatusConditionTrue(before.Status.Conditions, conditionType) != meta.IsStatusConditionTrue(after.Status.Conditions, conditionType)
}

// IgnoreLocationStatus returns a predicate that drops updates of Locations which only change the status.
func IgnoreLocationStatus() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(update event.UpdateEvent) bool {
		before, after := update.ObjectOld, update.ObjectNew
		return before.GetUID() != after.GetUID() || before.GetGeneration() != after.GetGeneration() ||
			(before.GetDeletionTimestamp() == nil) != (after.GetDeletionTimestamp() == nil) ||
			changesLabelsOrAnnotations(before, after)
	}}
}
