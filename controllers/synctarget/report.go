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
	"github.com/synchub-dev/synchub/controllers/compatibility"
	"github.com/synchub-dev/synchub/controllers/patch"
	"github.com/synchub-dev/synchub/controllers/sync"
	"github.com/synchub-dev/synchub/controllers/syncmanager"
	"github.com/synchub-dev/synchub/controllers/unimplemented"
	"github.com/synchub-dev/synchub/provider/ledger"
	"github.com/synchub-dev/synchub/provider/mailboxes"
	"github.com/synchub-dev/synchub/provider/rights"
	"github.com/synchub-dev/synchub/provider/targets"
)

// Reasons of conditions of a SyncTarget, beside those of [targets.Health].
const (
	ReasonCredentialsMissing = "CredentialsMissing"
	ReasonCredentialsRefused = "CredentialsRefused"
	// ReasonCredentialsNotAllowed: the Secret does not name the SyncTarget as one that may use it.
	ReasonCredentialsNotAllowed = "CredentialsNotAllowed"
	ReasonTokenExpired          = "TokenExpired"
	ReasonMailboxNotReady       = "MailboxNotReady"
	ReasonStarting              = "Starting"
	ReasonSuspended             = "Suspended"
	ReasonSyncing               = "Syncing"
	// ReasonMailboxRebound: the hub syncs, but removes nothing from the target.
	ReasonMailboxRebound = "MailboxRebound"
	// ReasonObjectsHidden: the hub syncs, but kcp does not show it all objects of the mailbox.
	ReasonObjectsHidden = "ObjectsHidden"
	ReasonReady         = "Ready"
	// ReasonSharedCluster: another SyncTarget stands for the same cluster.
	ReasonSharedCluster = "SharedCluster"
	// ReasonOtherInventory: a SyncTarget of another inventory workspace leads to what says to be the same cluster.
	ReasonOtherInventory = "OtherInventory"
	// ReasonNamespacesUnlisted: the hub used other namespaces before.
	ReasonNamespacesUnlisted = "NamespacesUnlisted"
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
	// trusted is for how long what the hub before has found out counts.
	trusted syncmanager.Trust
	// mailbox is the logical cluster of the mailbox, empty while that is not ready, and path where it is.
	mailbox logicalcluster.Name
	path    string
	// identified is true once the ledger says which cluster the SyncTarget stands for.
	identified bool
	// rival is another SyncTarget of the same cluster, because of which this one is not synced.
	rival *claim
	// shared is true if a SyncTarget of another inventory workspace leads to what says to be the same cluster.
	shared bool
	// drain is nil unless the target is being drained.
	drain *departing
}

// report writes the conditions if they changed, and the heartbeat once in a while.
func (c *Controller) report(ctx context.Context, inventory cluster.Cluster, syncTarget *edgev2alpha1.SyncTarget, found circumstances, memory *memory) (reconcile.Result, error) {
	stored := syncTarget.DeepCopy()
	now := view{circumstances: found, known: c.sync.Known(syncTarget.UID), now: c.clock.Now()}
	if found.connection != nil {
		// Once, so that the conditions cannot contradict each other.
		now.health = found.connection.Health()
		now.token, now.hasToken = found.connection.Token()
		now.ahead = found.connection.Ahead()
	}
	now.access = c.access(syncTarget, found)
	now.missing, now.missingKnown = c.sync.Missing(syncTarget.UID)
	now.beyondReason, now.beyond = c.sync.BeyondLimits(syncTarget.UID)
	now.rebound = c.sync.Rebound(syncTarget.UID)
	now.hidden = c.sync.Hidden(syncTarget.UID)
	now.holdsNothing = c.sync.HoldsNothing(syncTarget.UID)
	now.sum = func() (sync.Sum, bool) { return c.sync.Sum(syncTarget.UID) }
	result := reconcile.Result{RequeueAfter: now.describe(syncTarget, memory)}
	c.sync.SetHalt(syncTarget.UID, haltOf(syncTarget, found.mailbox))
	known := c.ledger.Get(syncTarget.UID)
	now.describeLedger(syncTarget, known, c.sync.States(syncTarget.UID))
	describeLeft(syncTarget, known.LeftIn(namespacesOf(syncTarget)))
	if err := c.ledger.Update(ctx, syncTarget.UID, func(entry *ledger.Entry) { entry.Verified = now.verified(syncTarget, entry.Verified) }); err != nil {
		return reconcile.Result{}, err
	}
	if apiequality.Semantic.DeepEqual(stored.Status, syncTarget.Status) {
		return result, nil
	}
	written, err := patch.Status(ctx, inventory.GetClient(), stored, syncTarget)
	if err != nil || written.RequeueAfter > 0 {
		return written, err
	}
	return result, nil
}

// view is what is known of a SyncTarget at one moment.
type view struct {
	circumstances
	health   targets.Health
	token    targets.Token
	hasToken bool
	access   targets.Access
	// sum counts the objects, which takes a look at each; false if none are synced now.
	sum func() (sync.Sum, bool)
	// known is true if the mailbox was read.
	known bool
	// missing are the APIs that the mailbox does not have; missingKnown is false until that was looked at.
	missing      syncmanager.MissingAPIs
	missingKnown bool
	// beyond says what of the mailbox is beyond its limits, and beyondReason what may be concerned; empty if nothing is.
	beyond, beyondReason string
	// rebound is true if the mailbox was bound again, and so nothing is removed from the target.
	rebound bool
	// hidden is what kcp hides of the mailbox.
	hidden mailboxes.Hidden
	// holdsNothing is true if the mailbox is so far beyond its limits that nothing of it is synced.
	holdsNothing bool
	now          time.Time
	// ahead is how far the target's clock is ahead of the hub's.
	ahead time.Duration
}

// describe takes what is known over into the status, and returns when that must be done again; zero if only after a change.
func (v view) describe(syncTarget *edgev2alpha1.SyncTarget, memory *memory) (again time.Duration) {
	status := &syncTarget.Status
	health := withToken(v.health, v.token, v.hasToken, syncTarget.Name, v.now.Add(v.ahead))
	heartbeat := heartbeatCondition(health, v.problem)
	syncer := syncerCondition(syncTarget, v, health)
	if v.rival != nil && syncer.Reason != ReasonSuspended {
		syncer.Status, syncer.Reason, syncer.Message = metav1.ConditionFalse, ReasonSharedCluster, v.rival.message()
	}
	if memory.renewal.problem != "" {
		syncer.Message += " " + memory.renewal.problem
	}
	authorized := authorizedCondition(v.access, health, v.problem)
	again = soonest(again, max(v.trusted.Until.Sub(v.now), 0))
	for _, condition := range []*metav1.Condition{&heartbeat, &syncer, &authorized} {
		condition.ObservedGeneration = syncTarget.Generation
		before := meta.FindStatusCondition(status.Conditions, condition.Type)
		if wait := heldFor(before, *condition, status.LastSyncerHeartbeatTime, memory.since, v.now); wait > 0 {
			*condition, again = *before, soonest(again, wait)
		}
		again = soonest(again, memory.reword(before, condition, v.now))
	}
	for _, condition := range []metav1.Condition{heartbeat, syncer, authorized, readyCondition(syncTarget, heartbeat, syncer)} {
		meta.SetStatusCondition(&status.Conditions, condition)
	}
	v.describeMissing(syncTarget)
	reportSuspended(syncTarget)
	reportDrain(syncTarget, health, v.circumstances)
	unimplemented.SetCondition(&status.Conditions, syncTarget.Generation, unimplemented.SyncTarget(&syncTarget.Spec))
	v.describeShared(syncTarget)
	v.describeToken(status, memory.renewal)
	// The hub never sets these, so somebody else has.
	status.Allocatable, status.Capacity, status.VirtualWorkspaces = nil, nil, nil //nolint:staticcheck // others may set them all the same
	if health.Version != "" {
		status.Versions = &edgev2alpha1.TargetVersions{Kubernetes: health.Version}
	}
	last := status.LastSyncerHeartbeatTime
	if health.Up {
		again = soonest(again, v.beat(syncTarget, syncer, memory.since))
	}
	v.describeLimits(syncTarget, status.LastSyncerHeartbeatTime != last)
	return again
}

// beat takes over the heartbeat of a target that is up, with the counts, if it is time for it, and returns when that is next.
func (v view) beat(syncTarget *edgev2alpha1.SyncTarget, syncer metav1.Condition, since time.Time) (again time.Duration) {
	status := &syncTarget.Status
	last := status.LastSyncerHeartbeatTime
	again = beat(status, v.health, firstBeat(syncTarget.UID, since, last), v.now)
	isSynced := syncer.Status == metav1.ConditionTrue || slices.Contains(begun, syncer.Reason)
	switch isDue := status.LastSyncerHeartbeatTime != last; {
	case isSynced && (!isDue || v.count(status)):
		return again
	case isSynced && lateBeat(last).After(v.now):
		status.LastSyncerHeartbeatTime = last
		return min(lateBeat(last).Sub(v.now), countAgain)
	}
	// No object is observed any more, or not all are yet.
	status.Counts, status.Failures, status.PendingSince = nil, nil, nil
	return again
}

// haltOf returns why a SyncTarget is not synced. Where that is because its mailbox is beyond its limits, its configs say more than that.
func haltOf(syncTarget *edgev2alpha1.SyncTarget, mailbox logicalcluster.Name) syncmanager.Halt {
	syncer := meta.FindStatusCondition(syncTarget.Status.Conditions, edgev2alpha1.ConditionSyncerReady)
	if mailbox == "" || syncer == nil || syncer.Status == metav1.ConditionTrue || syncer.Reason == sync.ReasonMailboxLimitExceeded {
		return syncmanager.Halt{}
	}
	return syncmanager.Halt{SyncTarget: syncTarget.Name, Mailbox: mailbox, Reason: syncer.Reason}
}

// describeLimits sets or removes the condition MailboxLimitExceeded. Its numbers change with each object of the mailbox, so
// they are written along with a heartbeat, and at once only what may be concerned.
func (v view) describeLimits(syncTarget *edgev2alpha1.SyncTarget, beats bool) {
	conditions := &syncTarget.Status.Conditions
	switch {
	case v.beyond == "":
		meta.RemoveStatusCondition(conditions, edgev2alpha1.ConditionMailboxLimitExceeded)
	case beats || !isTrueBecause(*conditions, edgev2alpha1.ConditionMailboxLimitExceeded, v.beyondReason):
		meta.SetStatusCondition(conditions, metav1.Condition{
			Type: edgev2alpha1.ConditionMailboxLimitExceeded, Status: metav1.ConditionTrue, Reason: v.beyondReason,
			Message: v.beyond, ObservedGeneration: syncTarget.Generation,
		})
	}
}

func isTrueBecause(conditions []metav1.Condition, kind, reason string) bool {
	found := meta.FindStatusCondition(conditions, kind)
	return found != nil && found.Status == metav1.ConditionTrue && found.Reason == reason
}

// describeShared sets or removes the condition ClusterShared. It does not name the other SyncTarget, which may be another
// tenant's.
func (v view) describeShared(syncTarget *edgev2alpha1.SyncTarget) {
	if !v.shared {
		meta.RemoveStatusCondition(&syncTarget.Status.Conditions, edgev2alpha1.ConditionClusterShared)
		return
	}
	meta.SetStatusCondition(&syncTarget.Status.Conditions, metav1.Condition{
		Type: edgev2alpha1.ConditionClusterShared, Status: metav1.ConditionTrue, Reason: ReasonOtherInventory, ObservedGeneration: syncTarget.Generation,
		Message: "A SyncTarget of another inventory workspace leads to a cluster that says to be the same one. Neither is stopped by that. " +
			"If this cluster is not meant to be shared, ask the hub's operator: its log names both.",
	})
}

// describeLeft sets or removes the condition NamespacesLeft.
func describeLeft(syncTarget *edgev2alpha1.SyncTarget, left []string) {
	if len(left) == 0 {
		meta.RemoveStatusCondition(&syncTarget.Status.Conditions, edgev2alpha1.ConditionNamespacesLeft)
		return
	}
	where := rights.NameNamespaces(left)
	if slices.Contains(left, ledger.Everywhere) {
		where = "other namespaces"
	}
	meta.SetStatusCondition(&syncTarget.Status.Conditions, metav1.Condition{
		Type: edgev2alpha1.ConditionNamespacesLeft, Status: metav1.ConditionTrue, Reason: ReasonNamespacesUnlisted, ObservedGeneration: syncTarget.Generation,
		Message: fmt.Sprintf("The hub used %s of the target before, which spec.namespaces.only does not list. What it placed there, if anything, stays as it is, and the hub does not look at it. "+
			"List them again to have it kept in step, or removed with its originals.", where),
	})
}

// describeLedger shows what the ledger has.
func (v view) describeLedger(syncTarget *edgev2alpha1.SyncTarget, known ledger.Entry, states map[schema.GroupResource]compatibility.State) {
	status := &syncTarget.Status
	status.SyncedResources = syncedResources(known.Resources, states)
	status.FormerClusters = formerClusters(known.FormerClusters)
	status.ClusterID = known.Cluster.ID
	switch other := v.health.Other; {
	case other != (targets.Cluster{}):
		status.ObservedClusterID = other.Token()
	case v.health.Reason != targets.ReasonConnecting:
		status.ObservedClusterID = ""
	}
}

// verified returns the generation of the SyncTarget for which all was found to be well, zero if it is not. As long as that is
// being found out, what was known before stays.
func (v view) verified(syncTarget *edgev2alpha1.SyncTarget, before int64) int64 {
	health := withToken(v.health, v.token, v.hasToken, syncTarget.Name, v.now.Add(v.ahead))
	if v.rival != nil || v.mailbox == "" {
		return 0
	}
	for _, condition := range []metav1.Condition{
		heartbeatCondition(health, v.problem), syncerCondition(syncTarget, v, health), authorizedCondition(v.access, health, v.problem),
	} {
		switch {
		case slices.Contains(begun, condition.Reason):
			return before
		case condition.Status != metav1.ConditionTrue:
			return 0
		}
	}
	return syncTarget.Generation
}

// describeMissing sets the condition APIsMissing, as long as there is need for it.
func (v view) describeMissing(syncTarget *edgev2alpha1.SyncTarget) {
	switch {
	case !v.missingKnown:
	case len(v.missing.Resources) == 0:
		meta.RemoveStatusCondition(&syncTarget.Status.Conditions, edgev2alpha1.ConditionAPIsMissing)
	default:
		meta.SetStatusCondition(&syncTarget.Status.Conditions, metav1.Condition{
			Type: edgev2alpha1.ConditionAPIsMissing, Status: metav1.ConditionTrue, Reason: edgev2alpha1.ReasonNamingConflict,
			Message: v.missing.Message, ObservedGeneration: syncTarget.Generation,
		})
	}
}

// count takes over how many objects are in step, and tells whether that is known. It goes along with a heartbeat, so that it costs no
// write of its own.
func (v view) count(status *edgev2alpha1.SyncTargetStatus) (known bool) {
	if v.sum == nil {
		return true
	}
	sum, known := v.sum()
	if !known {
		return false
	}
	bounded := func(count int) int32 { return int32(min(count, math.MaxInt32)) } //nolint:gosec // no target holds more
	status.Counts = &edgev2alpha1.TargetCounts{Synced: bounded(sum.Synced), Failed: bounded(sum.Failed), Former: bounded(sum.Former)}
	status.Failures = sync.FirstFailures(sum.Failures, edgev2alpha1.MaxTargetFailures)
	status.PendingSince = nil
	if !sum.PendingSince.IsZero() {
		status.PendingSince = &metav1.Time{Time: sum.PendingSince}
	}
	return true
}

// describeToken says when the token ends; it stays said while there is no connection.
func (v view) describeToken(status *edgev2alpha1.SyncTargetStatus, renewal renewal) {
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
	if done := renewal.done.Truncate(time.Second); !done.IsZero() && (status.Credentials.RenewedAt == nil || status.Credentials.RenewedAt.Time.Before(done)) {
		status.Credentials.RenewedAt = &metav1.Time{Time: done}
	}
}

// soonest returns the shorter of two waits, of which zero is none.
func soonest(a, b time.Duration) time.Duration {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}

// beat takes over the heartbeat if the one so far is old enough, and not before the first is due, and returns when the
// next is.
func beat(status *edgev2alpha1.SyncTargetStatus, health targets.Health, first, now time.Time) time.Duration {
	if last := status.LastSyncerHeartbeatTime; last != nil {
		if wait := first.Sub(now); wait > 0 {
			return max(wait, time.Second)
		}
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
func syncerCondition(syncTarget *edgev2alpha1.SyncTarget, v view, health targets.Health) metav1.Condition {
	condition := metav1.Condition{Type: edgev2alpha1.ConditionSyncerReady, Status: metav1.ConditionFalse}
	switch {
	case syncTarget.Spec.Suspend:
		condition.Reason, condition.Message = ReasonSuspended, "Nothing is synced while spec.suspend is true."
	case syncTarget.Spec.Drain:
		condition.Reason, condition.Message = ReasonDraining, "Nothing is synced while spec.drain is true; the condition Drained tells how far that is."
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
	case !v.known:
		condition.Reason, condition.Message = ReasonStarting, "The hub has not read the mailbox yet."
	case v.holdsNothing:
		condition.Reason, condition.Message = sync.ReasonMailboxLimitExceeded, "Nothing is synced, since the mailbox has too much; the condition MailboxLimitExceeded says how much, and what to do."
	case v.rebound:
		condition.Status, condition.Reason = metav1.ConditionTrue, ReasonMailboxRebound
		condition.Message = fmt.Sprintf("The hub syncs the target with its mailbox, but removes nothing from it: the mailbox was bound again, after kcp had deleted with the former binding "+
			"what it stored, such as configs. Put back what is missing. To have removals again, delete the workspace %s: the hub makes another, and takes over what is put there.", v.path)
	case v.hidden.Count > 0:
		example := v.hidden.Example
		condition.Status, condition.Reason = metav1.ConditionTrue, ReasonObjectsHidden
		condition.Message = fmt.Sprintf("The hub syncs the target with its mailbox, but kcp does not show it %d objects that are there, such as %s %s, since their claim was rejected for a while. "+
			"Their copies stay as they are. Change something of each in the mailbox, such as an annotation: then kcp shows it again.",
			v.hidden.Count, example.Resource.GroupResource(), strings.TrimPrefix(example.Key.String(), "/"))
	default:
		condition.Status, condition.Reason, condition.Message = metav1.ConditionTrue, ReasonSyncing, "The hub syncs the target with its mailbox; status.counts and status.failures tell how far it is."
	}
	return condition
}

// reportSuspended sets the condition Suspended while that is what the SyncTarget asks for.
func reportSuspended(syncTarget *edgev2alpha1.SyncTarget) {
	if !syncTarget.Spec.Suspend {
		meta.RemoveStatusCondition(&syncTarget.Status.Conditions, edgev2alpha1.ConditionSuspended)
		return
	}
	meta.SetStatusCondition(&syncTarget.Status.Conditions, metav1.Condition{
		Type: edgev2alpha1.ConditionSuspended, Status: metav1.ConditionTrue, Reason: ReasonSuspended, ObservedGeneration: syncTarget.Generation,
		Message: "Nothing is synced while spec.suspend is true; what is on the target stays as it is.",
	})
}

// readyCondition sums up the others. It is no newer than they are.
func readyCondition(syncTarget *edgev2alpha1.SyncTarget, heartbeat, syncer metav1.Condition) metav1.Condition {
	condition := metav1.Condition{Type: edgev2alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: ReasonReady, Message: "The hub syncs the target with its mailbox."}
	condition.ObservedGeneration = min(heartbeat.ObservedGeneration, syncer.ObservedGeneration)
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
