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
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/patch"
	"github.com/synchub-dev/synchub/controllers/unimplemented"
	"github.com/synchub-dev/synchub/provider/targets"
)

// Reasons of conditions of a SyncTarget, beside those of [targets.Health].
const (
	ReasonCredentialsMissing = "CredentialsMissing"
	ReasonCredentialsRefused = "CredentialsRefused"
	ReasonMailboxNotReady    = "MailboxNotReady"
	ReasonStarting           = "Starting"
	ReasonSuspended          = "Suspended"
	ReasonSyncing            = "Syncing"
	ReasonReady              = "Ready"
	// ReasonSharedCluster: another SyncTarget stands for the same cluster.
	ReasonSharedCluster = "SharedCluster"
	// ReasonDraining and ReasonDrained: what the hub placed is being removed, or has been.
	ReasonDraining = "Draining"
	ReasonDrained  = "Drained"
	// ReasonDeparting: the SyncTarget is being deleted, and its target brought to the end. ReasonDepartureWaiting: that
	// cannot go on now. ReasonDeparted: it is at its end.
	ReasonDeparting        = "Departing"
	ReasonDepartureWaiting = "DepartureWaiting"
	ReasonDeparted         = "Departed"
	// ReasonForced: the SyncTarget is let go although something may be left on its target.
	ReasonForced = "RemovalForced"
)

// circumstances are what the conditions of a SyncTarget follow from, beside its status.
type circumstances struct {
	connection *targets.Connection
	problem    *credentialsError
	// rival is another SyncTarget of the same cluster, because of which this one is not synced.
	rival *claim
	// drain is nil unless the target is being drained.
	drain *departing
}

// report writes the conditions if they changed, and the heartbeat once in a while.
func (c *Controller) report(ctx context.Context, inventory cluster.Cluster, syncTarget *edgev2alpha1.SyncTarget, found circumstances) (reconcile.Result, error) {
	connection, problem := found.connection, found.problem
	stored := syncTarget.DeepCopy()
	status := &syncTarget.Status
	var health targets.Health
	if connection != nil {
		// Once, so that the conditions cannot contradict each other.
		health = connection.Health()
	}
	heartbeat := heartbeatCondition(health, problem)
	syncer := syncerCondition(syncTarget, health, problem, c.sync.Known(syncTarget.UID))
	if found.rival != nil && syncer.Reason != ReasonSuspended {
		syncer.Status, syncer.Reason, syncer.Message = metav1.ConditionFalse, ReasonSharedCluster, found.rival.message()
	}
	for _, condition := range []metav1.Condition{heartbeat, syncer, readyCondition(syncTarget, heartbeat, syncer)} {
		condition.ObservedGeneration = syncTarget.Generation
		meta.SetStatusCondition(&status.Conditions, condition)
	}
	reportDrain(syncTarget, health, found)
	unimplemented.SetCondition(&status.Conditions, syncTarget.Generation, unimplemented.SyncTarget(&syncTarget.Spec))
	if connection != nil {
		if id, known := connection.KnownClusterID(); known {
			status.ClusterID = id
		}
	}
	result := reconcile.Result{}
	if health.Version != "" {
		status.Versions = &edgev2alpha1.TargetVersions{Kubernetes: health.Version}
	}
	if health.Up {
		result.RequeueAfter = beat(status, health)
	}
	if apiequality.Semantic.DeepEqual(stored.Status, *status) {
		return result, nil
	}
	written, err := patch.Status(ctx, inventory.GetClient(), stored, syncTarget)
	if err != nil || written.RequeueAfter > 0 {
		return written, err
	}
	return result, nil
}

// beat takes over the heartbeat if the one so far is old enough, and returns when the next is due.
func beat(status *edgev2alpha1.SyncTargetStatus, health targets.Health) time.Duration {
	if last := status.LastSyncerHeartbeatTime; last != nil {
		// One from the future is that of another replica, whose clock was ahead.
		if age := health.LastSeen.Sub(last.Time); age >= 0 && age < heartbeatInterval {
			return max(heartbeatInterval-age, time.Second)
		}
	}
	status.LastSyncerHeartbeatTime = &metav1.Time{Time: health.LastSeen}
	return heartbeatInterval
}

func heartbeatCondition(health targets.Health, problem *credentialsError) metav1.Condition {
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

// syncerCondition tells whether the hub syncs the target now.
func syncerCondition(syncTarget *edgev2alpha1.SyncTarget, health targets.Health, problem *credentialsError, known bool) metav1.Condition {
	condition := metav1.Condition{Type: edgev2alpha1.ConditionSyncerReady, Status: metav1.ConditionFalse}
	switch {
	case syncTarget.Spec.Suspend:
		condition.Reason, condition.Message = ReasonSuspended, "Nothing is synced while spec.suspend is true."
	case syncTarget.Spec.Drain:
		condition.Reason, condition.Message = ReasonDraining, "Nothing is synced while spec.drain is true; the condition Drained tells how far that is."
	case syncTarget.Status.Mailbox == nil:
		condition.Reason, condition.Message = ReasonMailboxNotReady, "The mailbox workspace is not ready."
	case problem != nil:
		condition.Reason, condition.Message = problem.reason, problem.message
	case !health.Up:
		condition.Reason, condition.Message = health.Reason, health.Message
	case !known:
		condition.Reason, condition.Message = ReasonStarting, "The hub has not read the mailbox yet."
	default:
		condition.Status, condition.Reason, condition.Message = metav1.ConditionTrue, ReasonSyncing, "The hub keeps the target in step with its mailbox."
	}
	return condition
}

// readyCondition sums up the others.
func readyCondition(syncTarget *edgev2alpha1.SyncTarget, heartbeat, syncer metav1.Condition) metav1.Condition {
	condition := metav1.Condition{Type: edgev2alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: ReasonReady, Message: "The target is in step with its mailbox."}
	if mailbox := meta.FindStatusCondition(syncTarget.Status.Conditions, edgev2alpha1.ConditionMailboxReady); mailbox == nil || mailbox.Status != metav1.ConditionTrue {
		condition.Status, condition.Reason, condition.Message = metav1.ConditionFalse, ReasonMailboxNotReady, "The mailbox workspace is not ready."
	}
	for _, part := range []metav1.Condition{syncer, heartbeat} {
		if part.Status != metav1.ConditionTrue {
			condition.Status, condition.Reason, condition.Message = part.Status, part.Reason, part.Message
		}
	}
	return condition
}
