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

package synctarget

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/internal/status"
)

// ReasonResumed is the reason of the event about a SyncTarget that is no longer suspended. The other events about changed conditions
// have the reasons of the conditions.
const ReasonResumed = "Resumed"

// eventsTimeout bounds the events of one reconcile: an admission webhook of the inventory must not keep the status from being written.
const eventsTimeout = 10 * time.Second

// transition is a change of a condition that gets an event. occurrence identifies it: it is the same however often the hub tries to
// write the status.
type transition struct {
	status.Event
	occurrence string
}

// recordTransitions writes an event and a line of the log for each change of a condition that people ask about later. The condition
// shows the state too, so an event that kcp refuses is only logged: the namespace default may be missing in the workspace.
func (c *Controller) recordTransitions(ctx context.Context, inventory client.Client, stored, syncTarget *edgev2alpha1.SyncTarget) {
	ctx, cancel := context.WithTimeout(ctx, eventsTimeout)
	defer cancel()
	for _, one := range transitionsOf(stored.Status.Conditions, syncTarget.Status.Conditions) {
		fields := []any{"syncTarget", syncTarget.Name, "type", one.Type, "reason", one.Reason, "message", one.Message}
		if err := status.RecordSyncTarget(ctx, inventory, c.Clock.Now(), syncTarget, one.Event, one.occurrence); err != nil {
			fields = append(fields, "eventError", err.Error())
		}
		log.FromContext(ctx).Info("the state of a SyncTarget changed", fields...)
	}
}

// transitionsOf returns the changes of conditions that get events.
func transitionsOf(before, now []metav1.Condition) (changes []transition) {
	if ready, changed := readyTransition(find(before, edgev2alpha1.ConditionReady), find(now, edgev2alpha1.ConditionReady)); changed {
		changes = append(changes, ready)
	}
	for _, kind := range []string{edgev2alpha1.ConditionSuspended, edgev2alpha1.ConditionDrained, edgev2alpha1.ConditionTunnelRefused} {
		old, next := find(before, kind), find(now, kind)
		switch was, is := old.Status == metav1.ConditionTrue, next.Status == metav1.ConditionTrue; {
		case !was && is && kind == edgev2alpha1.ConditionTunnelRefused:
			changes = append(changes, newTransition(corev1.EventTypeWarning, old, next, next.Message))
		case !was && is:
			changes = append(changes, newTransition(corev1.EventTypeNormal, old, next, next.Message))
		case was && !is && kind == edgev2alpha1.ConditionSuspended:
			next.Reason = ReasonResumed
			changes = append(changes, newTransition(corev1.EventTypeNormal, old, next, "spec.suspend is no longer true, so the hub syncs the target again."))
		}
	}
	return changes
}

// find returns a condition; the zero value if there is none.
func find(conditions []metav1.Condition, kind string) metav1.Condition {
	if found := meta.FindStatusCondition(conditions, kind); found != nil {
		return *found
	}
	return metav1.Condition{Type: kind}
}

// ownEvents are the reasons of the condition Ready whose events have another origin: the condition Suspended, or the removal itself.
var ownEvents = []string{ReasonSuspended, ReasonRemovalForced}

// deliberateReasons are the reasons why a SyncTarget is not Ready because somebody wanted that.
var deliberateReasons = []string{ReasonDraining, ReasonCleaningUp, ReasonCleanedUp}

// isReported reports whether a change of the condition Ready has an event. A SyncTarget that has not been Ready yet, and whose state is
// unknown, has nothing to report.
func isReported(before, now metav1.Condition) bool {
	was, is := before.Status == metav1.ConditionTrue, now.Status == metav1.ConditionTrue
	switch {
	case before.Status == now.Status && before.Reason == now.Reason, slices.Contains(pendingReasons, now.Reason), slices.Contains(ownEvents, now.Reason):
		return false
	case is:
		return !was && before.Reason != ReasonSuspended
	default:
		return was || now.Status == metav1.ConditionFalse && now.Reason != ReasonMailboxNotReady
	}
}

// readyTransition returns the event about the condition Ready, if there is one.
func readyTransition(before, now metav1.Condition) (change transition, changed bool) {
	if !isReported(before, now) {
		return change, false
	}
	was, is, since := before.Status == metav1.ConditionTrue, now.Status == metav1.ConditionTrue, before.LastTransitionTime.UTC().Format(time.RFC3339)
	switch {
	case is && before.Status == metav1.ConditionFalse && !slices.Contains(pendingReasons, before.Reason):
		return newTransition(corev1.EventTypeNormal, before, now, fmt.Sprintf("%s It was not Ready since %s: %s.", now.Message, since, before.Reason)), true
	case is, slices.Contains(deliberateReasons, now.Reason):
		return newTransition(corev1.EventTypeNormal, before, now, now.Message), true
	case was:
		return newTransition(corev1.EventTypeWarning, before, now, fmt.Sprintf("The SyncTarget was Ready since %s, and is not any more. %s", since, now.Message)), true
	default:
		return newTransition(corev1.EventTypeWarning, before, now, now.Message), true
	}
}

// newTransition returns a transition with the reason of the condition now.
func newTransition(eventType string, before, now metav1.Condition, message string) transition {
	return transition{
		Event:      status.Event{Type: eventType, Reason: now.Reason, Message: message},
		occurrence: fmt.Sprint(now.Type, before.Status, before.Reason, before.LastTransitionTime.UTC().Unix()),
	}
}
