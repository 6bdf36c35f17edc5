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

	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/internal/status"
	"github.com/synchub-dev/synchub/controllers/mailbox"
	"github.com/synchub-dev/synchub/controllers/plan/cleanup"
	"github.com/synchub-dev/synchub/controllers/syncmanager"
	"github.com/synchub-dev/synchub/provider/ledger"
	"github.com/synchub-dev/synchub/provider/requestclass"
	"github.com/synchub-dev/synchub/provider/targets"
	"github.com/synchub-dev/synchub/provider/wording"
)

const (
	// forceGracePeriod is how long a forced removal waits for the cleanup of a target that responds.
	forceGracePeriod = 30 * time.Second
	// pingTimeout is how long a target may take to respond before a forced removal treats it as gone.
	pingTimeout = 3 * time.Second
	// repeatCleanedUpAfter is how long the leader may take from the deletion of an entry in the ledger to the end of the SyncTarget.
	repeatCleanedUpAfter = 15 * time.Second
	// reconcileTimeout bounds one reconcile of a SyncTarget, with its requests to kcp and the target.
	reconcileTimeout = 2 * time.Minute
)

// reconcileDelete cleans up the target of a SyncTarget that is being deleted, or reports the obstacle in the status. Afterwards the
// mailbox controller deletes the mailbox and removes the finalizer of the SyncTarget.
func (c *Controller) reconcileDelete(ctx context.Context, request mcreconcile.Request, inventory cluster.Cluster, syncTarget *edgev2alpha1.SyncTarget) (reconcile.Result, error) {
	uid := syncTarget.UID
	if !controllerutil.ContainsFinalizer(syncTarget, mailbox.Finalizer) {
		c.Stop(uid)
		return reconcile.Result{}, nil
	}
	if c.IsCleanedUp(uid) {
		c.Sync.StopSync(uid)
		return c.repeatCleanedUp(ctx, syncTarget)
	}
	terminatingReason, err := mailbox.InventoryTerminating(ctx, inventory)
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("cannot find out whether the inventory workspace itself is being deleted: %w", err)
	}
	if terminatingReason != "" {
		// The inventory workspace is being deleted. Nobody requested the removal of this target's workload.
		c.Stop(uid)
		return reconcile.Result{}, nil
	}
	c.Sync.StopSync(uid)
	c.Sync.SetNotSynced(uid, syncmanager.NotSynced{SyncTarget: syncTarget.Name, Mailbox: logicalcluster.Name(c.Ledger.Get(uid).Mailbox), Reason: ReasonCleaningUp})
	if c.quotaState(request, uid) != mailbox.QuotaGranted {
		return c.finishCleanup(ctx, inventory, syncTarget, ReasonCleanedUp, "It had no mailbox.")
	}
	return c.cleanUpTarget(ctx, request, inventory, syncTarget)
}

// cleanUpTarget cleans up the target of a SyncTarget that is being deleted, over the hub's own connection.
func (c *Controller) cleanUpTarget(ctx context.Context, request mcreconcile.Request, inventory cluster.Cluster, syncTarget *edgev2alpha1.SyncTarget) (reconcile.Result, error) {
	state := c.store.stateOf(syncTarget.UID)
	c.expectCluster(syncTarget, state)
	connection, problem, err := c.connect(ctx, inventory, syncTarget, state)
	if err != nil {
		return reconcile.Result{}, err
	}
	if connection == nil || !connection.Health.IsUp() {
		return c.waitForTarget(ctx, inventory, syncTarget, connection, problem)
	}
	if c.History.Holds(syncTarget.UID) {
		c.store.stopDrain(syncTarget.UID)
		return c.updateDeletingStatus(ctx, inventory, syncTarget, ReasonCleanupBlocked, "The SyncTarget is being deleted. "+storeWentBackMessage(syncTarget.Name, nil), heartbeatCondition(connection.Health.Get(), nil))
	}
	running, err := c.startDrain(ctx, request, inventory, syncTarget, connection, drainModeOf(syncTarget))
	switch {
	case err != nil:
		return reconcile.Result{}, err
	case running == nil:
		return reconcile.Result{RequeueAfter: time.Second}, nil
	case running.isFinished():
		return c.finishCleanup(ctx, inventory, syncTarget, ReasonCleanedUp, "Nothing is left to be done on the target.")
	case !isForced(syncTarget):
		return c.updateDeletingStatus(ctx, inventory, syncTarget, ReasonCleaningUp, "The SyncTarget is being deleted. "+running.progressMessage(), heartbeatCondition(connection.Health.Get(), nil))
	}
	if remaining := forceGracePeriod - c.Clock.Since(running.startedAt); remaining > 0 && isResponding(ctx, connection) {
		return reconcile.Result{RequeueAfter: remaining}, nil
	}
	return c.forceRemoval(ctx, inventory, syncTarget, running.progressMessage())
}

// isResponding reports whether the target responds now. A hanging target counts as up until some probes have
// failed.
func isResponding(ctx context.Context, connection *targets.Connection) bool {
	ctx, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	return connection.Discovery.RESTClient().Get().AbsPath("/version").MaxRetries(0).Do(requestclass.With(ctx, requestclass.Background)).Error() == nil
}

// waitForTarget handles a target that cannot be reached. The hub keeps the SyncTarget while objects may be left on the target,
// unless the SyncTarget has the annotation that forces the removal.
func (c *Controller) waitForTarget(ctx context.Context, inventory cluster.Cluster, syncTarget *edgev2alpha1.SyncTarget, connection *targets.Connection, problem *blocker) (reconcile.Result, error) {
	current, err := getFromServer(ctx, inventory, syncTarget)
	if err != nil {
		return reconcile.Result{}, err
	}
	var health targets.Health
	if connection != nil {
		health = connection.Health.Get()
	}
	why := health.Message
	if problem != nil {
		why = problem.message
	}
	remaining := remainingMessage(c.Ledger.Get(syncTarget.UID).Resources, current.Status.Cleanup)
	switch {
	case remaining == "":
		return c.finishCleanup(ctx, inventory, syncTarget, ReasonCleanedUp, "Nothing was left on the target.")
	case isForced(syncTarget):
		return c.forceRemoval(ctx, inventory, syncTarget, remaining)
	default:
		return c.updateDeletingStatus(ctx, inventory, syncTarget, ReasonCleanupBlocked, fmt.Sprintf("%s The target cannot be reached: %s The hub waits until it can, or until the annotation %s=true is set.",
			remaining, why, edgev2alpha1.AnnotationForceRemoval), heartbeatCondition(health, problem))
	}
}

// forceRemoval ends the cleanup although objects may be left on the target, and lists them in an event and in
// the status.
func (c *Controller) forceRemoval(ctx context.Context, inventory cluster.Cluster, syncTarget *edgev2alpha1.SyncTarget, remaining string) (reconcile.Result, error) {
	c.store.stopDrain(syncTarget.UID)
	if err := status.WarnSyncTarget(ctx, inventory.GetClient(), c.Clock.Now(), syncTarget, ReasonRemovalForced, "The SyncTarget is let go. "+remaining); err != nil {
		return reconcile.Result{}, err
	}
	return c.finishCleanup(ctx, inventory, syncTarget, ReasonRemovalForced, "The SyncTarget is let go by force. "+remaining)
}

// finishCleanup marks the SyncTarget as cleaned up, so that the mailbox controller deletes the mailbox.
func (c *Controller) finishCleanup(ctx context.Context, inventory cluster.Cluster, syncTarget *edgev2alpha1.SyncTarget, reason, message string) (reconcile.Result, error) {
	if err := c.recordCleanedUp(ctx, syncTarget); err != nil {
		return reconcile.Result{}, err
	}
	return c.updateDeletingStatus(ctx, inventory, syncTarget, reason, message)
}

// updateDeletingStatus sets Ready and SyncerReady of a SyncTarget that is being deleted to False, together with conditions.
func (c *Controller) updateDeletingStatus(ctx context.Context, inventory cluster.Cluster, syncTarget *edgev2alpha1.SyncTarget, reason, message string, conditions ...metav1.Condition) (reconcile.Result, error) {
	stored := syncTarget.DeepCopy()
	for _, kind := range []string{edgev2alpha1.ConditionReady, edgev2alpha1.ConditionSyncerReady} {
		conditions = append(conditions, metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: reason, Message: message})
	}
	changed := false
	for _, condition := range conditions {
		condition.ObservedGeneration = syncTarget.Generation
		changed = meta.SetStatusCondition(&syncTarget.Status.Conditions, condition) || changed
	}
	if !changed {
		return reconcile.Result{}, nil
	}
	return c.patchStatus(ctx, inventory, stored, syncTarget)
}

// IsCleanedUp reports whether the hub has finished with the target of a SyncTarget that is being deleted.
func (c *Controller) IsCleanedUp(syncTarget types.UID) bool {
	if c.Ledger.Get(syncTarget).CleanedUp {
		// The leader deletes the entry of the ledger before it removes the finalizer, which may take more than one attempt.
		c.store.update(syncTarget, func(found *entry) { found.isCleanedUp = true })
	}
	return c.store.get(syncTarget).isCleanedUp
}

// repeatCleanedUp records again that the target is cleaned up if the entry in the ledger is gone and the
// SyncTarget still exists: the leader ended between the two steps, and the next one does not know about it.
func (c *Controller) repeatCleanedUp(ctx context.Context, syncTarget *edgev2alpha1.SyncTarget) (reconcile.Result, error) {
	if !c.OtherOwners || c.Ledger.Get(syncTarget.UID).CleanedUp {
		return reconcile.Result{}, nil
	}
	state, now := c.store.stateOf(syncTarget.UID), c.Clock.Now()
	if state.cleanedUpMissing.IsZero() {
		state.cleanedUpMissing = now
	}
	if wait := repeatCleanedUpAfter - now.Sub(state.cleanedUpMissing); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	state.cleanedUpMissing = time.Time{}
	return reconcile.Result{}, c.recordCleanedUp(ctx, syncTarget)
}

// recordCleanedUp records that this replica has finished with the target, in the ledger too if another replica may be the leader.
func (c *Controller) recordCleanedUp(ctx context.Context, syncTarget *edgev2alpha1.SyncTarget) error {
	if c.OtherOwners {
		if err := c.Ledger.Update(ctx, syncTarget.UID, func(entry *ledger.Entry) {
			entry.Name, entry.Inventory, entry.CleanedUp = syncTarget.Name, string(logicalcluster.From(syncTarget)), true
		}); err != nil {
			return err
		}
	}
	c.store.update(syncTarget.UID, func(found *entry) { found.isCleanedUp = true })
	return nil
}

func drainModeOf(syncTarget *edgev2alpha1.SyncTarget) cleanup.Mode {
	if syncTarget.Spec.DeletionPolicy == edgev2alpha1.DeletionPolicyDelete {
		return cleanup.ModeDelete
	}
	return cleanup.ModeOrphan
}

func isForced(syncTarget *edgev2alpha1.SyncTarget) bool {
	return syncTarget.Annotations[edgev2alpha1.AnnotationForceRemoval] == "true"
}

// maxNamed is how many resources or objects a message names.
const maxNamed = 5

// remainingMessage returns which objects may be left on a target that the hub cannot list; empty if there are
// none.
func remainingMessage(recorded []ledger.Resource, cleanup *edgev2alpha1.CleanupStatus) string {
	if len(recorded) == 0 {
		return ""
	}
	var resources []string
	for _, resource := range recorded {
		resources = append(resources, schema.GroupResource(resource.GroupResource).String())
	}
	slices.Sort(resources)
	text := fmt.Sprintf("Objects of these resources may be left on the target: %s.", wording.First(maxNamed, resources))
	if cleanup != nil {
		text = cleanupMessage(*cleanup) + " " + text
	}
	return text
}

// cleanupMessage describes the progress of a cleanup or drain.
func cleanupMessage(report edgev2alpha1.CleanupStatus) string {
	text := "The number of remaining objects is unknown."
	if report.Remaining != nil {
		text = fmt.Sprintf("%s still to go, %d gone.", wording.Count(*report.Remaining, "object is", "objects are"), report.Removed)
	}
	if len(report.Left) == 0 {
		return text
	}
	var remaining []string
	for _, object := range report.Left {
		remaining = append(remaining, fmt.Sprintf("%s %s (%s)", object.Resource, types.NamespacedName{Namespace: object.Namespace, Name: object.Name}, object.Reason))
	}
	return fmt.Sprintf("%s %s: %s.", text, wording.Count(len(report.Left)+int(report.LeftMore), "stays", "stay"), wording.First(maxNamed, remaining))
}
