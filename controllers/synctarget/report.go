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
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/internal/status"
	"github.com/synchub-dev/synchub/controllers/objectsync"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/syncmanager"
	"github.com/synchub-dev/synchub/controllers/syncmanager/schemacheck"
	"github.com/synchub-dev/synchub/provider/ledger"
	"github.com/synchub-dev/synchub/provider/rbac"
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
	c.Readiness.Set(syncTarget.UID, isSynced(syncTarget), view.now)
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

// isSynced reports whether the hub syncs the target, by the conditions that it has just set. ConditionReady
// also depends on a condition that the mailbox controller sets, and that a user may have changed in between.
func isSynced(syncTarget *edgev2alpha1.SyncTarget) bool {
	return meta.IsStatusConditionTrue(syncTarget.Status.Conditions, edgev2alpha1.ConditionHeartbeatHealthy) &&
		meta.IsStatusConditionTrue(syncTarget.Status.Conditions, edgev2alpha1.ConditionSyncerReady)
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
		requeueAfter = shortestDelay(requeueAfter, v.updateHeartbeat(syncTarget, syncer, state.since))
	}
	v.setMailboxLimitCondition(syncTarget, status.LastSyncerHeartbeatTime != last)
	setStoreWentBack(syncTarget, v.rewind)
	v.setTunnelStatus(syncTarget)
	return requeueAfter
}

// updateHeartbeat sets the heartbeat of a target that is up, with the counts, if it is due. It returns when the next one is due.
func (v statusView) updateHeartbeat(syncTarget *edgev2alpha1.SyncTarget, syncer metav1.Condition, since time.Time) (requeueAfter time.Duration) {
	status := &syncTarget.Status
	last := status.LastSyncerHeartbeatTime
	requeueAfter = advanceHeartbeat(status, v.health, firstHeartbeat(syncTarget.UID, since, last), v.now)
	isSynced := (syncer.Status == metav1.ConditionTrue || slices.Contains(pendingReasons, syncer.Reason)) && len(v.unreadable) == 0
	switch isDue := status.LastSyncerHeartbeatTime != last; {
	case isSynced && (!isDue || v.updateCounts(status)):
		return requeueAfter
	case isSynced && latestHeartbeat(last).After(v.now):
		status.LastSyncerHeartbeatTime = last
		return min(latestHeartbeat(last).Sub(v.now), countRetryInterval)
	}
	// The hub does not observe any object of the target, or not all of them yet.
	status.Counts, status.Failures, status.PendingSince = nil, nil, nil
	return requeueAfter
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

// setMailboxLimitCondition sets or removes the condition MailboxLimitExceeded. The numbers in its message change with each object
// of the mailbox, so they are written only with a heartbeat. A changed reason is written at once.
func (v statusView) setMailboxLimitCondition(syncTarget *edgev2alpha1.SyncTarget, isHeartbeatDue bool) {
	stored := meta.FindStatusCondition(syncTarget.Status.Conditions, edgev2alpha1.ConditionMailboxLimitExceeded)
	if v.BeyondLimits == "" || isHeartbeatDue || stored == nil || stored.Status != metav1.ConditionTrue || stored.Reason != v.BeyondLimitsReason {
		status.SetConditionIf(v.BeyondLimits != "", &syncTarget.Status.Conditions, metav1.Condition{
			Type: edgev2alpha1.ConditionMailboxLimitExceeded, Reason: v.BeyondLimitsReason, Message: v.BeyondLimits, ObservedGeneration: syncTarget.Generation,
		})
	}
}

// setClusterSharedCondition sets or removes the condition ClusterShared. Its message does not name the other SyncTarget, which may
// belong to another tenant.
func (v statusView) setClusterSharedCondition(syncTarget *edgev2alpha1.SyncTarget) {
	status.SetConditionIf(v.clusterShared, &syncTarget.Status.Conditions, metav1.Condition{
		Type: edgev2alpha1.ConditionClusterShared, Reason: ReasonOtherInventory, ObservedGeneration: syncTarget.Generation,
		Message: "A SyncTarget of another inventory workspace leads to a cluster with the same identity. That stops neither SyncTarget. " +
			"If this cluster is not meant to be shared, ask the hub's operator: its log names both.",
	})
}

// setTunnelStatus sets where the cluster opens its tunnel, and sets or removes the condition TunnelRefused.
func (v statusView) setTunnelStatus(syncTarget *edgev2alpha1.SyncTarget) {
	syncTarget.Status.Tunnel = v.tunnel.DeepCopy()
	condition := metav1.Condition{Type: edgev2alpha1.ConditionTunnelRefused, Reason: ReasonTunnelNotVerified, ObservedGeneration: syncTarget.Generation}
	if mismatch, ok := errors.AsType[*targets.ClusterMismatchError](v.tunnelRefusal); ok {
		condition.Reason = targets.ReasonClusterChanged
		condition.Message = fmt.Sprintf("A tunnel with this SyncTarget's token was refused: %v. Nothing is synced through it. Remove the Deployment synchub-tunnel from the wrong cluster. "+
			"If you do not know that cluster, rotate the token: kubectl synchub rotate %s.", mismatch, syncTarget.Name)
	} else if v.tunnelRefusal != nil {
		condition.Message = fmt.Sprintf("A tunnel with this SyncTarget's token was refused: %v.", v.tunnelRefusal)
	}
	status.SetConditionIf(v.tunnelRefusal != nil, &syncTarget.Status.Conditions, condition)
}

// setNamespacesLeftCondition sets or removes the condition NamespacesLeft.
func setNamespacesLeftCondition(syncTarget *edgev2alpha1.SyncTarget, left []string) {
	where := rbac.FormatNamespaces(left)
	if slices.Contains(left, ledger.AllNamespaces) {
		where = "other namespaces"
	}
	status.SetConditionIf(len(left) > 0, &syncTarget.Status.Conditions, metav1.Condition{
		Type: edgev2alpha1.ConditionNamespacesLeft, Reason: ReasonNamespacesUnlisted, ObservedGeneration: syncTarget.Generation,
		Message: fmt.Sprintf("The hub used %s of the target before, which spec.namespaces.only does not list. What it placed there, if anything, stays as it is, and the hub does not look at it. "+
			"List them again to have it kept in sync, or removed with its originals.", where),
	})
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

// setUnreadableCondition sets or removes the condition ResourcesUnreadable.
func (v statusView) setUnreadableCondition(syncTarget *edgev2alpha1.SyncTarget) {
	status.SetConditionIf(len(v.unreadable) > 0, &syncTarget.Status.Conditions, metav1.Condition{
		Type: edgev2alpha1.ConditionResourcesUnreadable, Reason: targets.ReasonNotReadable, ObservedGeneration: syncTarget.Generation, Message: v.unreadableMessage(),
	})
}

// unreadableMessage names the resources that the hub cannot read now, with one of the reasons; empty if it can read all.
func (v statusView) unreadableMessage() string {
	if len(v.unreadable) == 0 {
		return ""
	}
	resources := slices.SortedFunc(maps.Keys(v.unreadable), func(a, b schema.GroupResource) int { return strings.Compare(a.String(), b.String()) })
	var names []string
	for _, resource := range resources {
		names = append(names, resource.String())
	}
	return fmt.Sprintf("The hub cannot list or watch %s on the target, and tries again: %s. It does not see what happens to them there, so it does not count objects.",
		joinFirst(names), strings.TrimSuffix(v.unreadable[resources[0]], "."))
}

// setAPIsMissingCondition sets or removes the condition APIsMissing. It leaves the condition alone while the hub does not know.
func (v statusView) setAPIsMissingCondition(syncTarget *edgev2alpha1.SyncTarget) {
	if v.MissingAPIsKnown {
		status.SetConditionIf(len(v.MissingAPIs.Resources) > 0, &syncTarget.Status.Conditions, metav1.Condition{
			Type: edgev2alpha1.ConditionAPIsMissing, Reason: edgev2alpha1.ReasonNamingConflict,
			Message: v.MissingAPIs.Message, ObservedGeneration: syncTarget.Generation,
		})
	}
}

// updateCounts sets the counts of objects, and reports whether they are known. They are written with a heartbeat, so that they
// cost no request of their own.
func (v statusView) updateCounts(status *edgev2alpha1.SyncTargetStatus) (known bool) {
	if v.countObjects == nil {
		return true
	}
	sum, known := v.countObjects()
	if !known {
		return false
	}
	bounded := func(count int) int32 { return int32(min(count, math.MaxInt32)) } //nolint:gosec // no target holds more
	status.Counts = &edgev2alpha1.TargetCounts{Synced: bounded(sum.Synced), Failed: bounded(sum.Failed), Former: bounded(sum.Former)}
	status.Failures = objectsync.FirstFailures(sum.Failures, edgev2alpha1.MaxTargetFailures)
	if v.rewind != nil {
		status.StoreWentBack = storeWentBackStatus(v.rewind)
		status.StoreWentBack.Removals, status.StoreWentBack.Overwrites = bounded(sum.HeldRemovals), bounded(sum.HeldOverwrites)
	}
	status.PendingSince = nil
	if !sum.PendingSince.IsZero() {
		status.PendingSince = &metav1.Time{Time: sum.PendingSince}
	}
	return true
}

// setCredentialsStatus sets when the token ends. The time stays in the status while there is no connection.
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
	status.Credentials.ExpiresAt = &metav1.Time{Time: v.token.ExpiresAt}
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

// advanceHeartbeat sets the heartbeat if the stored one is old enough and now is not before first. It returns when the next one is
// due.
func advanceHeartbeat(status *edgev2alpha1.SyncTargetStatus, health targets.Health, first, now time.Time) time.Duration {
	if last := status.LastSyncerHeartbeatTime; last != nil {
		if wait := first.Sub(now); wait > 0 {
			return max(wait, time.Second)
		}
		// Another replica whose clock was ahead wrote a heartbeat from the future.
		if age := health.LastSeen.Sub(last.Time); age >= 0 && age < heartbeatInterval {
			return max(heartbeatInterval-age, time.Second)
		}
	}
	status.LastSyncerHeartbeatTime = &metav1.Time{Time: health.LastSeen}
	return heartbeatInterval
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
		condition.Message = fmt.Sprintf("The hub syncs the target with its mailbox, but kcp does not show it %d objects that are there, such as %s %s, since their claim was rejected for a while. "+
			"Their copies stay as they are. Change something of each in the mailbox, such as an annotation: then kcp shows it again.",
			v.Hidden.Count, example.Resource.GroupResource(), strings.TrimPrefix(example.Key.String(), "/"))
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
