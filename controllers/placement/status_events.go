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

package placement

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/internal/status"
	"github.com/synchub-dev/synchub/controllers/placement/rules"
	"github.com/synchub-dev/synchub/provider/mailboxes"
	"github.com/synchub-dev/synchub/provider/wording"
)

// Reasons of events on EdgePlacements.
const (
	ReasonPlaced         = "Placed"
	ReasonRolloutStopped = "RolloutStopped"
)

// eventsTimeout bounds all events of one report: an admission webhook of the workspace must not keep its statuses from being written.
const eventsTimeout = 10 * time.Second

// statusEvent is an event about a change of an EdgePlacement's status. object names an object of the workspace; nil is the EdgePlacement
// itself.
type statusEvent struct {
	status.Event
	object *edgev2alpha1.ObjectFailure
}

// statusEvents returns the events about the changes from one status of an EdgePlacement to the next one. The stored status is the
// memory: each change has one event, and a restarted hub writes none. Lists in the status are short, so the events are few.
// onClusters are the first failures that happened on clusters; failures in mailboxes have had their events.
func statusEvents(before, next *edgev2alpha1.EdgePlacementStatus, onClusters []edgev2alpha1.PlacementPair) (events []statusEvent) {
	pending := meta.FindStatusCondition(next.Conditions, edgev2alpha1.ConditionWithdrawalPending)
	if pending != nil && meta.FindStatusCondition(before.Conditions, pending.Type) == nil {
		events = append(events, statusEvent{Event: status.Event{Type: corev1.EventTypeWarning, Reason: pending.Type, Message: pending.Message}})
	}
	wasStopped, isStopped := stoppedRollout(before), stoppedRollout(next)
	if wasStopped == nil && isStopped != nil {
		events = append(events, statusEvent{Event: status.Event{Type: corev1.EventTypeWarning, Reason: ReasonRolloutStopped, Message: isStopped.Message}})
	}
	for _, one := range addedPairs(before.Failures, next.Failures) {
		if slices.ContainsFunc(onClusters, func(other edgev2alpha1.PlacementPair) bool {
			return comparePairs(one.PlacementPair, other) == 0 && one.Reason == other.Reason
		}) {
			events = append(events, statusEvent{status.Event{
				Type: corev1.EventTypeWarning, Reason: one.Reason, Message: fmt.Sprintf("On %s: %s", strings.Join(one.syncTargets, ", "), one.Message),
			}, &one.ObjectFailure})
		}
	}
	if isStopped == nil {
		return events
	}
	var waitedBefore []edgev2alpha1.PlacementPair
	if wasStopped != nil {
		waitedBefore = before.Progressing
	}
	for _, one := range addedPairs(waitedBefore, next.Progressing) {
		if one.Reason == rules.ReasonWaitingForRollout {
			events = append(events, statusEvent{status.Event{Type: corev1.EventTypeWarning, Reason: one.Reason, Message: fmt.Sprintf(
				"The change does not go to %s, because the rollout is stopped. %s", strings.Join(one.syncTargets, ", "), isStopped.Message)}, &one.ObjectFailure})
		}
	}
	return events
}

// stoppedRollout returns the condition RolledOut of a rollout that is stopped, else nil.
func stoppedRollout(of *edgev2alpha1.EdgePlacementStatus) *metav1.Condition {
	found := meta.FindStatusCondition(of.Conditions, edgev2alpha1.ConditionRolledOut)
	if found == nil || found.Reason != rules.ReasonStopped {
		return nil
	}
	return found
}

// changedPair is a pair of an object that a list begins to name with a reason. syncTargets are all SyncTargets with the object and the
// reason.
type changedPair struct {
	edgev2alpha1.PlacementPair
	syncTargets []string
}

// addedPairs returns the pairs of a list whose object and reason another list does not name.
func addedPairs(before, next []edgev2alpha1.PlacementPair) (added []changedPair) {
	isSame := func(a, b *edgev2alpha1.PlacementPair) bool {
		return a.Group == b.Group && a.Resource == b.Resource && a.Namespace == b.Namespace && a.Name == b.Name && a.Reason == b.Reason
	}
	for _, one := range next {
		if slices.ContainsFunc(before, func(other edgev2alpha1.PlacementPair) bool { return isSame(&one, &other) }) {
			continue
		}
		if at := slices.IndexFunc(added, func(other changedPair) bool { return isSame(&one, &other.PlacementPair) }); at >= 0 {
			added[at].syncTargets = append(added[at].syncTargets, one.SyncTarget)
			continue
		}
		added = append(added, changedPair{one, []string{one.SyncTarget}})
	}
	return added
}

// announcedState is what the event Placed is about: the destinations that have all objects, and whether there are any.
type announcedState struct {
	destinations []string
	hasObjects   bool
}

// forgetAnnounced drops the state of placements that are gone.
func (r *reporter) forgetAnnounced(placements []*unstructured.Unstructured) {
	maps.DeleteFunc(r.announced, func(placement types.UID, _ announcedState) bool {
		return !slices.ContainsFunc(placements, func(object *unstructured.Unstructured) bool { return object.GetUID() == placement })
	})
}

// placedEvents returns the event about new destinations, or the first objects, once all clusters have all objects. A new or changed object
// beside existing ones has none: an event for each would be another write for each.
func (r *reporter) placedEvents(placement types.UID, before, next *edgev2alpha1.EdgePlacementStatus, found outcome) []statusEvent {
	ready := meta.FindStatusCondition(next.Conditions, edgev2alpha1.ConditionReady)
	known, isKnown := r.announced[placement]
	if ready == nil || ready.Status != metav1.ConditionTrue {
		if !isKnown && !meta.IsStatusConditionTrue(before.Conditions, edgev2alpha1.ConditionReady) {
			r.announced[placement] = announcedState{}
		}
		return nil
	}
	now := announcedState{hasObjects: next.Selected > 0}
	var gained []string
	for _, destination := range found.resolution.Destinations {
		now.destinations = append(now.destinations, destination.Name)
		if !slices.Contains(known.destinations, destination.Name) {
			gained = append(gained, destination.Name)
		}
	}
	r.announced[placement] = now
	switch {
	case !isKnown && meta.IsStatusConditionTrue(before.Conditions, edgev2alpha1.ConditionReady):
		// The former leader has written the event.
		return nil
	case !now.hasObjects, len(gained) == 0 && known.hasObjects:
		return nil
	case len(gained) == 0:
		gained = now.destinations
	}
	slices.Sort(gained)
	return []statusEvent{{Event: status.Event{Type: corev1.EventTypeNormal, Reason: ReasonPlaced, Message: fmt.Sprintf(
		"%s on %s.", count(int(next.Selected), "object is", "objects are"), wording.First(maxNamed, gained))}}}
}

// recordEvents writes events about an EdgePlacement and objects of its workspace. It only logs an error, because the status shows
// the state too: the namespace default, in which cluster-scoped objects have their events, may be missing.
func (r *reporter) recordEvents(ctx context.Context, placement *unstructured.Unstructured, events []statusEvent) {
	ctx, cancel := context.WithTimeout(ctx, eventsTimeout)
	defer cancel()
	// If the write of the status fails, the hub compares with the same version again.
	occurrence := string(placement.GetUID()) + "/" + placement.GetResourceVersion()
	for _, one := range events {
		about := placement
		if one.object != nil {
			about = r.sources.find(one.object)
		}
		r.recordEvent(ctx, about, one.Event, occurrence)
	}
}

// recordEvent writes one event about an object of the workspace, which may be nil, unless one with its reason and occurrence exists.
func (r *reporter) recordEvent(ctx context.Context, about *unstructured.Unstructured, event status.Event, occurrence string) {
	client, ok := r.sources.workloads.Client(r.sources.cluster)
	if about == nil || !ok {
		return
	}
	if err := status.RecordObject(ctx, client, about, event, r.clock.Now(), occurrence); err != nil {
		log.FromContext(ctx).Info("cannot write an event to the workload workspace", "reason", event.Reason, "error", err.Error())
	}
}

// find returns an object of the workspace; nil if the cache does not have it.
func (s *sources) find(named *edgev2alpha1.ObjectFailure) *unstructured.Unstructured {
	for of := range s.policy.published() {
		if of.Group == named.Group && of.Resource == named.Resource {
			if object, state := s.get(objectKey{of, types.NamespacedName{Namespace: named.Namespace, Name: named.Name}}); state == mailboxes.Present {
				return object
			}
		}
	}
	return nil
}

// recordWithdrawn writes the events about withdrawn copies, one for each placement and cause. It returns when the next ones are due;
// zero for never.
func (r *reporter) recordWithdrawn(ctx context.Context) (again time.Duration) {
	due, again := r.withdrawn.take(r.clock.Now())
	ctx, cancel := context.WithTimeout(ctx, eventsTimeout)
	defer cancel()
	for key, copies := range due {
		// The placement itself may be gone.
		about := &unstructured.Unstructured{}
		about.SetGroupVersionKind(edgev2alpha1.SchemeGroupVersion.WithKind("EdgePlacement"))
		about.SetName(key.placement.name)
		about.SetUID(key.placement.uid)
		r.recordEvent(ctx, about, copies.event(key, r.awayOf(copies)), fmt.Sprint(key.cause, r.clock.Now().UnixNano()))
	}
	return again
}

// awayOf returns the SyncTargets of withdrawn copies that are not Ready, sorted by name.
func (r *reporter) awayOf(copies *withdrawnCopies) (away []string) {
	for uid, name := range copies.names {
		if _, isAway := r.readiness.NotReadySince(uid); isAway {
			away = append(away, name)
		}
	}
	slices.Sort(away)
	return away
}

// awayDestinations returns the destinations of a placement that are not Ready, sorted by name, with the time since when.
func (r *reporter) awayDestinations(found outcome) (away []string) {
	for i := range found.resolution.Destinations {
		destination := &found.resolution.Destinations[i]
		if since, isAway := r.readiness.NotReadySince(destination.UID); isAway {
			text := destination.Name
			if !since.IsZero() {
				text += " since " + since.UTC().Format(time.RFC3339)
			}
			away = append(away, text)
		}
	}
	slices.Sort(away)
	return away
}
