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

	"github.com/kcp-dev/logicalcluster/v3"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/objectsync"
	"github.com/synchub-dev/synchub/controllers/syncmanager"
	"github.com/synchub-dev/synchub/controllers/syncmanager/schemacheck"
	"github.com/synchub-dev/synchub/provider/ledger"
	"github.com/synchub-dev/synchub/provider/storehistory"
	"github.com/synchub-dev/synchub/provider/targets"
	"github.com/synchub-dev/synchub/provider/targets/kubeconfig"
)

// observedState contains one reconcile's observations of a SyncTarget. updateStatus derives the conditions from
// it.
type observedState struct {
	connection *targets.Connection
	problem    *blocker
	// trustedUntil is until when findings of the previous leader count.
	trustedUntil time.Time
	// mailbox is the logical cluster of the mailbox, empty until the mailbox is ready. mailboxPath is its workspace path.
	mailbox     logicalcluster.Name
	mailboxPath string
	// identified is true once the ledger contains which cluster the SyncTarget stands for.
	identified bool
	// conflictingTarget is an older SyncTarget of the same cluster. While there is one, the hub does not sync
	// this one.
	conflictingTarget *clusterIdentity
	// clusterShared is true if a SyncTarget of another inventory workspace leads to a cluster that claims the same identity.
	clusterShared bool
	// drain is nil unless the target is being drained.
	drain *drainRun
}

// updateStatus writes the status if it changed. A healthy target's heartbeat, with its counts, changes once per heartbeatInterval.
func (c *Controller) updateStatus(ctx context.Context, inventory cluster.Cluster, syncTarget *edgev2alpha1.SyncTarget, observed observedState, state *syncTargetState) (reconcile.Result, error) {
	stored := syncTarget.DeepCopy()
	view := c.newView(syncTarget, observed)
	result := reconcile.Result{RequeueAfter: view.apply(syncTarget, state)}
	c.Readiness.Set(syncTarget.UID, isSynced(syncTarget), view.now, readyChangedAt(syncTarget))
	c.Sync.SetNotSynced(syncTarget.UID, notSyncedOf(syncTarget, observed.mailbox))
	if err := c.setRecordedStatus(ctx, syncTarget, view); err != nil {
		return reconcile.Result{}, err
	}
	c.store.setConditions(state, syncTarget.Status.Conditions)
	if apiequality.Semantic.DeepEqual(stored.Status, syncTarget.Status) && !state.isForgedHub(stored.Status.Hub, c.Replica) {
		return result, nil
	}
	written, err := c.patchStatus(ctx, inventory, stored, syncTarget)
	if err != nil || written.RequeueAfter > 0 {
		return written, err
	}
	return result, nil
}

// newView returns the snapshot of all that the status of a SyncTarget is derived from.
func (c *Controller) newView(syncTarget *edgev2alpha1.SyncTarget, observed observedState) statusView {
	view := statusView{observedState: observed, Status: c.Sync.Status(syncTarget.UID), now: c.Clock.Now()}
	if observed.connection != nil {
		// Health is read once, so that the conditions cannot contradict each other.
		view.health = observed.connection.Health.Get()
		view.token, view.hasToken = observed.connection.Token.Claims()
		view.clockSkew = observed.connection.Health.ClockSkew()
		if view.health.Up {
			view.unreadable = observed.connection.Watches.UnreadableResources()
		}
	}
	view.permissions = c.permissions(syncTarget, observed)
	if c.History.Holds(syncTarget.UID) {
		view.rewind = c.History.Current()
	}
	if hasTunnel(syncTarget) {
		view.tunnel, view.tunnelRefusal = c.Tunnel, c.Registry.TunnelRefusal(syncTarget.UID)
	}
	view.countObjects = func() (objectsync.Summary, bool) { return c.Sync.Summary(syncTarget.UID) }
	view.setCounted = func(progress objectsync.Progress) {
		c.store.update(syncTarget.UID, func(found *entry) { found.counted = &progress })
	}
	view.progress = c.Sync.Progress(syncTarget.UID)
	if counted := c.store.get(syncTarget.UID).counted; counted != nil {
		view.counted = *counted
	} else {
		view.counted = countedBefore(syncTarget.Status.Counts)
		view.setCounted(view.counted)
	}
	return view
}

// setRecordedStatus sets the parts of the status that show the ledger, and records which generation is verified.
func (c *Controller) setRecordedStatus(ctx context.Context, syncTarget *edgev2alpha1.SyncTarget, view statusView) error {
	known := c.Ledger.Get(syncTarget.UID)
	view.setLedgerStatus(syncTarget, known, c.Sync.States(syncTarget.UID))
	setNamespacesLeftCondition(syncTarget, known.FormerNamespaces(namespacesOf(syncTarget)))
	return c.Ledger.Update(ctx, syncTarget.UID, func(entry *ledger.Entry) {
		entry.VerifiedGeneration = view.verifiedGeneration(syncTarget, entry.VerifiedGeneration)
	})
}

// statusView is a snapshot of all that the status of a SyncTarget is derived from.
type statusView struct {
	observedState
	syncmanager.Status
	health      targets.Health
	token       kubeconfig.Token
	hasToken    bool
	permissions targets.Permissions
	// countObjects counts the objects, which visits each of them. It returns false while some of them are not observed yet.
	countObjects func() (objectsync.Summary, bool)
	// progress is the progress of the objects, and counted the one at the last count. setCounted records the next one.
	progress, counted objectsync.Progress
	setCounted        func(objectsync.Progress)
	// tunnel is where the cluster opens its tunnel, and tunnelRefusal why another cluster's was refused. They are empty with a direct connection.
	tunnel        *edgev2alpha1.TunnelStatus
	tunnelRefusal error
	// rewind is set while nothing is removed from the target, or overwritten there, because kcp went back to an earlier state.
	rewind *storehistory.Rewind
	now    time.Time
	// clockSkew is the difference between the clocks; positive if the target's clock is ahead of the hub's.
	clockSkew time.Duration
	// unreadable are the resources that the target serves but that the hub cannot read now, with the reasons.
	unreadable map[schema.GroupResource]string
}

// apply sets the status. It returns when the status must be computed again without an event, zero if never.
func (v statusView) apply(syncTarget *edgev2alpha1.SyncTarget, state *syncTargetState) (requeueAfter time.Duration) {
	status := &syncTarget.Status
	health := withTokenExpiry(v.health, v.token, v.hasToken, syncTarget.Name, v.now.Add(v.clockSkew))
	heartbeat := heartbeatCondition(health, v.problem)
	syncer := syncerReadyCondition(syncTarget, v, health)
	if v.conflictingTarget != nil && syncer.Reason != ReasonSuspended {
		syncer.Status, syncer.Reason, syncer.Message = metav1.ConditionFalse, ReasonSharedCluster, v.conflictingTarget.conflictMessage()
	}
	if state.renewal.problem != "" {
		syncer.Message += " " + state.renewal.problem
	}
	authorized := authorizedCondition(syncTarget.Spec.Tenancy, v.permissions, health, v.problem)
	requeueAfter = max(v.trustedUntil.Sub(v.now), 0)
	for _, condition := range []*metav1.Condition{&heartbeat, &syncer, &authorized} {
		condition.ObservedGeneration = syncTarget.Generation
		before := meta.FindStatusCondition(status.Conditions, condition.Type)
		if wait := restartGrace(before, *condition, status.LastSyncerHeartbeatTime, state.since, v.now); wait > 0 {
			*condition, requeueAfter = *before, shortestDelay(requeueAfter, wait)
		}
		requeueAfter = shortestDelay(requeueAfter, state.throttleMessage(before, condition, v.now))
	}
	v.setUnreadableCondition(syncTarget)
	for _, condition := range []metav1.Condition{heartbeat, syncer, authorized, readyCondition(syncTarget, heartbeat, syncer)} {
		meta.SetStatusCondition(&status.Conditions, condition)
	}
	v.setAPIsMissingCondition(syncTarget)
	v.setTenancyCondition(syncTarget)
	setSuspendedCondition(syncTarget)
	setDrainedCondition(syncTarget, health, v.observedState)
	setNotImplementedCondition(&status.Conditions, syncTarget.Generation, unsupportedFields(&syncTarget.Spec))
	v.setClusterSharedCondition(syncTarget)
	v.setCredentialsStatus(status, state.renewal)
	// The hub never sets these fields, so another client has set them.
	status.Allocatable, status.Capacity, status.VirtualWorkspaces = nil, nil, nil //nolint:staticcheck // other writers may set them
	if health.Version != "" {
		status.Versions = &edgev2alpha1.TargetVersions{Kubernetes: health.Version}
	}
	last := status.LastSyncerHeartbeatTime
	if health.Up {
		requeueAfter = shortestDelay(requeueAfter, v.updateHeartbeat(syncTarget, syncer, state))
	}
	v.setMailboxLimitCondition(syncTarget, status.LastSyncerHeartbeatTime != last)
	setStoreWentBack(syncTarget, v.rewind)
	v.setTunnelStatus(syncTarget)
	return requeueAfter
}

// setLedgerStatus sets the fields of the status that show the ledger, and the observed cluster ID.
func (v statusView) setLedgerStatus(syncTarget *edgev2alpha1.SyncTarget, known ledger.Entry, states map[schema.GroupResource]schemacheck.State) {
	status := &syncTarget.Status
	status.SyncedResources = syncedResources(known.Resources, states, v.unreadable)
	status.FormerClusters = formerClusters(known.FormerClusters)
	status.ClusterID = known.Cluster.ID
	switch other := v.health.OtherCluster; {
	case other != (targets.Cluster{}):
		status.ObservedClusterID = other.ConfirmationID()
	case v.health.Reason != targets.ReasonConnecting:
		status.ObservedClusterID = ""
	}
}

// setCredentialsStatus sets when the token ends, and its hash. They stay in the status while there is no connection.
func (v statusView) setCredentialsStatus(status *edgev2alpha1.SyncTargetStatus, renewal renewal) {
	if v.health.Reason == "" {
		return
	}
	if !v.hasToken {
		status.Credentials = nil
		return
	}
	if status.Credentials == nil {
		status.Credentials = &edgev2alpha1.CredentialsStatus{}
	}
	status.Credentials.ExpiresAt, status.Credentials.TokenHash = &metav1.Time{Time: v.token.ExpiresAt}, v.token.Hash
	if renewed := status.Credentials.RenewedAt; renewed != nil && renewed.After(v.now) {
		status.Credentials.RenewedAt = nil
	}
	if done := renewal.renewedAt.Truncate(time.Second); !done.IsZero() && (status.Credentials.RenewedAt == nil || status.Credentials.RenewedAt.Time.Before(done)) {
		status.Credentials.RenewedAt = &metav1.Time{Time: done}
	}
}

// shortestDelay returns the shorter of two delays. Zero means no delay.
func shortestDelay(a, b time.Duration) time.Duration {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}
