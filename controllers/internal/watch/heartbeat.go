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
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/provider/inventories/parameters"
)

// IgnoreHeartbeats returns a predicate that drops updates which only change a heartbeat or parameters.
func IgnoreHeartbeats() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(update event.UpdateEvent) bool {
		before, is := update.ObjectOld.(*edgev2alpha1.SyncTarget)
		after, are := update.ObjectNew.(*edgev2alpha1.SyncTarget)
		return !is || !are || !isHeartbeatOnly(before, after)
	}}
}

// isHeartbeatOnly reports whether two versions of a SyncTarget differ only in the heartbeat, the fields that
// are written with it, the labels, and the annotations that are parameters. Controllers that read labels or
// parameters also use [predicate.LabelChangedPredicate] and [predicate.AnnotationChangedPredicate].
func isHeartbeatOnly(before, after *edgev2alpha1.SyncTarget) bool {
	if before.ResourceVersion == after.ResourceVersion {
		// A resync of the cache requests a reconcile of every object.
		return false
	}
	return apiequality.Semantic.DeepEqual(withoutHeartbeat(before), withoutHeartbeat(after))
}

// withoutHeartbeat returns a shallow copy without parameters, and without the fields that heartbeats change.
func withoutHeartbeat(syncTarget *edgev2alpha1.SyncTarget) *edgev2alpha1.SyncTarget {
	rest := *syncTarget
	rest.ResourceVersion, rest.ManagedFields, rest.Labels = "", nil, nil
	rest.Annotations = map[string]string{}
	for key, value := range syncTarget.Annotations {
		if !parameters.Is(key) {
			rest.Annotations[key] = value
		}
	}
	rest.Status.LastSyncerHeartbeatTime, rest.Status.Counts, rest.Status.PendingSince = nil, nil, nil
	return &rest
}
