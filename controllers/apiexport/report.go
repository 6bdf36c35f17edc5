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

package apiexport

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientevents "k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/log"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/internal/status"
	"github.com/synchub-dev/synchub/controllers/syncmanager"
	"github.com/synchub-dev/synchub/provider/wording"
)

// ReasonUnpublished is the reason of the event on a PublishedResource that was deleted.
const ReasonUnpublished = "Unpublished"

// maxNamed limits how many SyncTargets a message names.
const maxNamed = 5

// updateStatus writes the conditions and counts of a PublishedResource if they changed, and returns when to try again. It
// keeps the status of the same generation while discovery fails, and the counts while they are not known. Otherwise a hub
// that has just become the leader would replace the report of the previous leader and soon restore it.
func (c *Controller) updateStatus(ctx context.Context, candidate *resourcePlan) (requeueAfter time.Duration, err error) {
	resource := candidate.published
	if candidate.notExported == nil && candidate.discoveryFailed && resource.Status.ObservedGeneration == resource.Generation {
		return pollInterval, nil
	}
	stored := resource.DeepCopy()
	c.Hub.SetOwner(resource)
	exported, ready := candidate.conditions()
	meta.SetStatusCondition(&resource.Status.Conditions, exported)
	meta.SetStatusCondition(&resource.Status.Conditions, ready)
	candidate.setMutatedReferenceCondition(&resource.Status.Conditions)
	candidate.setNotPlaceableCondition(&resource.Status.Conditions)
	resource.Status.ObservedGeneration = resource.Generation
	requeueAfter = c.updateCounts(candidate)
	if apiequality.Semantic.DeepEqual(stored.Status, resource.Status) {
		return requeueAfter, nil
	}
	written, err := status.Patch(ctx, c.Hosting, stored, resource)
	if err != nil || written.RequeueAfter > 0 {
		return written.RequeueAfter, err
	}
	if !candidate.isReportedElsewhere(ready) {
		status.RecordConditionEvent(c.Recorder, resource, stored.Status.Conditions, ready.Type)
	}
	return requeueAfter, nil
}

// updateCounts sets the counts and the condition APIsMissing if the counts are known. Otherwise it returns when to count
// again.
func (c *Controller) updateCounts(candidate *resourcePlan) (requeueAfter time.Duration) {
	var counts syncmanager.Counts
	var missing []string
	if candidate.notExported == nil {
		var known bool
		if counts, known = c.Counter.Count(candidate.groupResource); !known {
			return pollInterval
		}
		missing = c.Counter.SyncTargetsMissingAPI(candidate.groupResource)
	}
	resource := candidate.published
	setAPIsMissing(resource, candidate.groupResource, missing)
	resource.Status.Mailboxes, resource.Status.Targets, resource.Status.Objects = counts.Mailboxes, counts.Targets, counts.Objects
	return 0
}

// setAPIsMissing sets or removes the condition APIsMissing, which names SyncTargets whose mailboxes lack the API.
func setAPIsMissing(resource *synchubv1alpha1.PublishedResource, groupResource schema.GroupResource, syncTargets []string) {
	names := wording.First(maxNamed, syncTargets)
	status.SetConditionIf(len(syncTargets) > 0, &resource.Status.Conditions, metav1.Condition{
		Type: synchubv1alpha1.ConditionAPIsMissing, Reason: edgev2alpha1.ReasonNamingConflict, ObservedGeneration: resource.Generation,
		Message: fmt.Sprintf("kcp does not bind %s in %s, because a name is taken there. See the condition %[4]s of the SyncTargets %[3]s for the remedy.",
			groupResource, wording.Count(len(syncTargets), "mailbox", "mailboxes"), names, edgev2alpha1.ConditionAPIsMissing),
	})
}

// unpublished is a deleted PublishedResource with the counts of the objects that stay behind.
type unpublished struct {
	publishedState
	uid    types.UID
	counts syncmanager.Counts
	// successor is the PublishedResource that now publishes the same API, or empty.
	successor string
}

// findUnpublished returns the PublishedResources that are in the last plan but not in this one. Call it before the sync
// controllers stop, since it counts the objects that stay.
func (c *Controller) findUnpublished(plan *exportPlan) []unpublished {
	present := map[types.UID]bool{}
	for _, resource := range plan.resources {
		present[resource.published.UID] = true
	}
	var deleted []unpublished
	for uid, previous := range c.planner.previous {
		if present[uid] {
			continue
		}
		state := unpublished{publishedState: previous, uid: uid}
		state.counts, _ = c.Counter.Count(previous.groupResource)
		for _, resource := range plan.resources {
			if resource.notExported == nil && resource.groupResource == previous.groupResource {
				state.successor = resource.published.Name
			}
		}
		deleted = append(deleted, state)
	}
	return deleted
}

// recordEvent records the remaining objects in an event and in the log: the object itself was deleted, so there is no status to
// read.
func (d unpublished) recordEvent(ctx context.Context, recorder clientevents.EventRecorder) {
	message := fmt.Sprintf("%s is no longer published. Nothing was deleted: the export keeps %s, mailboxes their objects, and targets (%d) the objects (%d) that were placed there.",
		d.groupResource, d.entry, d.counts.Targets, d.counts.Objects)
	if d.successor != "" {
		message = fmt.Sprintf("%s is published by the PublishedResource %s now.", d.groupResource, d.successor)
	}
	log.FromContext(ctx).Info("unpublished", "publishedResource", d.name, "resource", d.groupResource.String(), "kept", d.entry.String(),
		"targets", d.counts.Targets, "objects", d.counts.Objects, "successor", d.successor)
	gone := &synchubv1alpha1.PublishedResource{}
	gone.Name, gone.UID = d.name, d.uid
	status.RecordEvent(recorder, gone, corev1.EventTypeNormal, ReasonUnpublished, message)
}
