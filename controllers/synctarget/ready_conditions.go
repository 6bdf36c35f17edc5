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
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/internal/status"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/syncmanager"
	"github.com/synchub-dev/synchub/provider/targets"
	"github.com/synchub-dev/synchub/provider/wording"
)

// isSynced reports whether the hub syncs the target, by the conditions that it has just set. ConditionReady
// also depends on a condition that the mailbox controller sets, and that a user may have changed in between.
func isSynced(syncTarget *edgev2alpha1.SyncTarget) bool {
	return meta.IsStatusConditionTrue(syncTarget.Status.Conditions, edgev2alpha1.ConditionHeartbeatHealthy) &&
		meta.IsStatusConditionTrue(syncTarget.Status.Conditions, edgev2alpha1.ConditionSyncerReady)
}

// readyChangedAt returns when the condition Ready of a SyncTarget last changed; zero if it has none.
func readyChangedAt(syncTarget *edgev2alpha1.SyncTarget) time.Time {
	return find(syncTarget.Status.Conditions, edgev2alpha1.ConditionReady).LastTransitionTime.Time
}

// notSyncedOf returns why the SyncTarget is not synced, for the status of its configs. It returns the zero value if the mailbox
// exceeds its limits, because the status of the configs then has a more precise reason.
func notSyncedOf(syncTarget *edgev2alpha1.SyncTarget, mailbox logicalcluster.Name) syncmanager.NotSynced {
	syncer := meta.FindStatusCondition(syncTarget.Status.Conditions, edgev2alpha1.ConditionSyncerReady)
	if mailbox == "" || syncer == nil || syncer.Status == metav1.ConditionTrue || syncer.Reason == plan.ReasonMailboxLimitExceeded {
		return syncmanager.NotSynced{}
	}
	return syncmanager.NotSynced{SyncTarget: syncTarget.Name, Mailbox: mailbox, Reason: syncer.Reason}
}

// verifiedGeneration returns the generation of the SyncTarget if all its conditions were found to be True, zero if one is not. It
// returns before while a condition is pending.
func (v statusView) verifiedGeneration(syncTarget *edgev2alpha1.SyncTarget, before int64) int64 {
	health := withTokenExpiry(v.health, v.token, v.hasToken, syncTarget.Name, v.now.Add(v.clockSkew))
	if v.conflictingTarget != nil || v.mailbox == "" {
		return 0
	}
	for _, condition := range []metav1.Condition{
		heartbeatCondition(health, v.problem), syncerReadyCondition(syncTarget, v, health), authorizedCondition(syncTarget.Spec.Tenancy, v.permissions, health, v.problem),
	} {
		switch {
		case slices.Contains(pendingReasons, condition.Reason):
			return before
		case condition.Status != metav1.ConditionTrue:
			return 0
		}
	}
	return syncTarget.Generation
}

func heartbeatCondition(health targets.Health, problem *blocker) metav1.Condition {
	condition := metav1.Condition{Type: edgev2alpha1.ConditionHeartbeatHealthy, Status: metav1.ConditionFalse}
	if problem != nil {
		condition.Status, condition.Reason, condition.Message = metav1.ConditionUnknown, problem.reason, problem.message
		return condition
	}
	condition.Reason, condition.Message = health.Reason, health.Message
	switch {
	case health.Up:
		condition.Status = metav1.ConditionTrue
	case health.Reason == targets.ReasonConnecting:
		condition.Status = metav1.ConditionUnknown
	}
	return condition
}

// syncerReadyCondition returns whether the hub syncs the target now.
func syncerReadyCondition(syncTarget *edgev2alpha1.SyncTarget, v statusView, health targets.Health) metav1.Condition {
	condition := metav1.Condition{Type: edgev2alpha1.ConditionSyncerReady, Status: metav1.ConditionFalse}
	switch {
	case syncTarget.Spec.Suspend:
		condition.Reason, condition.Message = ReasonSuspended, "Nothing is synced while spec.suspend is true."
	case syncTarget.Spec.Drain:
		condition.Reason, condition.Message = ReasonDraining, "Nothing is synced while spec.drain is true; see the condition Drained for the progress."
	case v.mailbox == "":
		condition.Reason, condition.Message = ReasonMailboxNotReady, "The mailbox workspace is not ready."
	case v.problem != nil:
		condition.Reason, condition.Message = v.problem.reason, v.problem.message
		if v.problem.reason == ReasonCredentialsMissing {
			condition.Status = metav1.ConditionUnknown
		}
	case !health.Up:
		condition.Reason, condition.Message = health.Reason, health.Message
		if health.Reason == targets.ReasonConnecting {
			condition.Status = metav1.ConditionUnknown
		}
	case !v.ConfigsKnown:
		condition.Reason, condition.Message = ReasonStarting, "The hub has not read the mailbox yet."
	case v.Evicted:
		condition.Reason, condition.Message = plan.ReasonMailboxLimitExceeded, "Nothing is synced, because the mailbox exceeds its limits; see the condition MailboxLimitExceeded for the numbers and the remedy."
	case v.Rebound:
		condition.Status, condition.Reason = metav1.ConditionTrue, ReasonMailboxRebound
		condition.Message = fmt.Sprintf("The hub syncs the target with its mailbox, but removes nothing from it: the mailbox was bound again, and kcp deleted the objects of the former binding, "+
			"such as configs. Restore the missing objects. To allow removals again, delete the workspace %s: the hub creates another one, and takes over the objects that are restored there.", v.mailboxPath)
	case v.Hidden.Count > 0:
		example := v.Hidden.Example
		condition.Status, condition.Reason = metav1.ConditionTrue, ReasonObjectsHidden
		condition.Message = fmt.Sprintf("The hub syncs the target with its mailbox, but kcp does not show it %s there, such as %s %s, since their claim was rejected for a while. "+
			"Their copies stay as they are. Change something of each in the mailbox, such as an annotation: then kcp shows it again.",
			wording.Count(v.Hidden.Count, "object that is", "objects that are"), example.Resource.GroupResource(), strings.TrimPrefix(example.Key.String(), "/"))
	default:
		condition.Status, condition.Reason, condition.Message = metav1.ConditionTrue, ReasonSyncing, "The hub syncs the target with its mailbox; status.counts and status.failures show the progress."
	}
	return condition
}

// setSuspendedCondition sets the condition Suspended while spec.suspend is true, else removes it.
func setSuspendedCondition(syncTarget *edgev2alpha1.SyncTarget) {
	status.SetConditionIf(syncTarget.Spec.Suspend, &syncTarget.Status.Conditions, metav1.Condition{
		Type: edgev2alpha1.ConditionSuspended, Reason: ReasonSuspended, ObservedGeneration: syncTarget.Generation,
		Message: "Nothing is synced while spec.suspend is true; objects on the target stay as they are.",
	})
}

// readyCondition summarizes the other conditions. Its observedGeneration is the lowest of theirs.
func readyCondition(syncTarget *edgev2alpha1.SyncTarget, heartbeat, syncer metav1.Condition) metav1.Condition {
	condition := metav1.Condition{Type: edgev2alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: ReasonReady, Message: "The hub syncs the target with its mailbox."}
	condition.ObservedGeneration = min(heartbeat.ObservedGeneration, syncer.ObservedGeneration)
	if mailbox := meta.FindStatusCondition(syncTarget.Status.Conditions, edgev2alpha1.ConditionMailboxReady); mailbox == nil || mailbox.Status != metav1.ConditionTrue {
		condition.Status, condition.Reason, condition.Message = metav1.ConditionFalse, ReasonMailboxNotReady, "The mailbox workspace is not ready."
	}
	if unreadable := meta.FindStatusCondition(syncTarget.Status.Conditions, edgev2alpha1.ConditionResourcesUnreadable); unreadable != nil && unreadable.Status == metav1.ConditionTrue {
		condition.Status, condition.Reason, condition.Message = metav1.ConditionFalse, unreadable.Reason, unreadable.Message
	}
	for _, part := range []metav1.Condition{syncer, heartbeat} {
		if part.Status != metav1.ConditionTrue {
			condition.Status, condition.Reason, condition.Message = part.Status, part.Reason, part.Message
		}
	}
	return condition
}
