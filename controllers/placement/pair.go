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
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/synchub-dev/synchub/controllers/internal/driftbackoff"
	"github.com/synchub-dev/synchub/controllers/internal/mailboxwrite"
	"github.com/synchub-dev/synchub/controllers/objectsync"
	"github.com/synchub-dev/synchub/controllers/placement/fleet"
	"github.com/synchub-dev/synchub/controllers/placement/rules"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/plan/policy"
	"github.com/synchub-dev/synchub/controllers/plan/transform"
	"github.com/synchub-dev/synchub/provider/mailboxes"
	"github.com/synchub-dev/synchub/provider/requestclass"
)

// ownerOf returns the owner of the copies in the mailbox of a SyncTarget.
func (c *Controller) ownerOf(syncTarget types.UID) ownership.Owner {
	return ownership.Owner{Hub: c.Hub, SyncTarget: syncTarget, Sealer: c.Sealer}.ForPlacements()
}

// creatorOf returns the creator of copies that the hub has released. Only the same workspace may take them
// over. The creator of Namespaces and CustomResourceDefinitions is [workspace.ownerOf].
func (w *workspace) creatorOf(syncTarget types.UID) ownership.Owner {
	creator := w.ownerOf(syncTarget)
	creator.SyncTarget += "/" + types.UID(w.cluster)
	return creator
}

// pairSnapshot holds all facts about a pair in one pass.
type pairSnapshot struct {
	plan.Snapshot
	resource   plan.Resource
	syncTarget fleet.SyncTarget
	// owner owns the copies. creator is the result of [workspace.creatorOf].
	owner, creator ownership.Owner
	desired        bool
}

// reconcilePair makes one pass for a pair, and records the number of changes that the pass has processed.
func (w *workspace) reconcilePair(ctx context.Context, key pairKey) (reconcile.Result, error) {
	changes := w.beginPass(key)
	result, decided, err := w.pass(requestclass.With(ctx, requestclass.Object), key)
	if again := w.endPass(key, changes, decided); err == nil {
		result.RequeueAfter = sooner(result.RequeueAfter, again)
	}
	return result, err
}

// pass makes one pass for a pair: it observes the source and the copy, plans, and makes at most one write to
// the mailbox. It creates a missing Namespace first. decided is false if nothing could be decided.
func (w *workspace) pass(ctx context.Context, key pairKey) (result reconcile.Result, decided bool, err error) {
	if w.isInstalled(key) {
		return reconcile.Result{}, w.passInstalled(key), nil
	}
	s, err := w.observe(ctx, key)
	if s == nil {
		return reconcile.Result{}, false, err
	}
	if err != nil {
		return reconcile.Result{}, true, w.recordFailure(ctx, key, s, err)
	}
	planner := plan.Planner{Resource: s.resource, Up: transform.Up{
		Owner: s.owner, Mailbox: w.cluster.String(), SyncTarget: s.syncTarget.Name, Hasher: w.Hasher,
		Resource: s.resource.GroupResource(), Version: s.resource.Version, Kind: s.resource.Kind, Namespaced: s.resource.Namespaced,
	}}
	planned := planner.PlanUp(&s.Snapshot)
	switch {
	case planned.Err != nil:
		return reconcile.Result{}, true, w.recordFailure(ctx, key, s, planned.Err)
	case planned.Decision.Cause == plan.Cause(plan.Unknown):
		// The pair keeps its result until an event brings the missing facts.
		return reconcile.Result{}, false, nil
	case losesState(planned.Decision) && w.History.Holds(s.syncTarget.UID):
		return w.recordHeld(ctx, key, s), true, nil
	case w.mustWait(key, s, planned):
		w.recordResult(key, passResult{waiting: true})
		return reconcile.Result{}, true, nil
	}
	if wait := w.crdWait(key, planned); wait > 0 {
		w.recordResult(key, passResult{})
		return reconcile.Result{RequeueAfter: wait}, true, nil
	}
	isRemoved := planned.Decision.Action == plan.Create && w.wasPlaced(key)
	if wait := w.repairDelay(ctx, key, s, planned, isRemoved); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, true, nil
	}
	log.FromContext(ctx).V(1).Info("decided about a pair", "decision", planned.Decision.String())
	planned.Decision, err = w.executeOrReplace(ctx, key, s, planner, planned)
	if err != nil && isRemoved {
		w.refundRepair(key)
	}
	switch {
	case errors.Is(err, mailboxwrite.ErrOutdated):
		// The cache is about to show the newer copy.
		return reconcile.Result{RequeueAfter: plan.CacheTimeout}, false, nil
	case err != nil:
		return reconcile.Result{}, true, w.recordFailure(ctx, key, s, err)
	}
	w.recordSuccess(key, s, planned.Decision)
	return reconcile.Result{RequeueAfter: planned.RequeueAfter}, true, nil
}

// repairDelay returns how long a repair must wait, because somebody keeps undoing it; 0 for any other decision.
func (w *workspace) repairDelay(ctx context.Context, key pairKey, s *pairSnapshot, planned plan.UpPlan, isRemoved bool) time.Duration {
	if !planned.Repair && !isRemoved {
		return 0
	}
	wait := w.countRepair(key)
	if wait > 0 {
		_ = w.recordFailure(ctx, key, s, contendedError(isRemoved, planned.Decision.Fields))
	}
	return wait
}

// executeOrReplace executes a plan. If kcp refuses to update the copy of a source that was deleted and created
// again, it deletes the copy. It returns the decision that was executed.
func (w *workspace) executeOrReplace(ctx context.Context, key pairKey, s *pairSnapshot, planner plan.Planner, planned plan.UpPlan) (plan.Decision, error) {
	err := w.execute(ctx, key, s, planned)
	if planned.Decision.Action == plan.Update && objectsync.IsImmutable(err) && planner.SupersedesInMailbox(&s.Snapshot, planned.Desired) {
		planned.Decision = plan.Decision{Action: plan.Delete, Cause: plan.Superseded}
		err = w.execute(requestclass.With(ctx, requestclass.Extra), key, s, planned)
	}
	return planned.Decision, err
}

// observe reads all facts that one pass needs. It returns nil if nothing can be done about the pair now. If it
// returns a snapshot and an error, the error is why the object cannot be placed.
func (w *workspace) observe(ctx context.Context, key pairKey) (*pairSnapshot, error) {
	resource, published := w.resource(key.resource)
	syncTarget, known := w.Fleet.Snapshot().SyncTargetOf(key.mailbox)
	cached, copyState := w.Mailboxes.Get(key.resource, key.mailbox, key.name)
	source, sourceState := w.Workloads.Get(key.resource, w.cluster, key.name)
	switch {
	case !published, !known, syncTarget.Terminating:
		// The mailbox of a SyncTarget that is being deleted is deleted with all its objects. The SyncTarget's
		// deletionPolicy decides whether the target keeps them.
		return nil, nil
	case w.Mailboxes.IsKnownNotServed(key.mailbox, key.resource.GroupResource()):
		return w.unserved(key, resource, syncTarget)
	case copyState == mailboxes.Unknown, sourceState == mailboxes.Unknown:
		return nil, nil
	}
	inMailbox, deleted := w.writes.Current(key, cached)
	if deleted {
		return nil, nil
	}
	s := &pairSnapshot{resource: resource, syncTarget: syncTarget, owner: w.ownerOf(syncTarget.UID), creator: w.creatorOf(syncTarget.UID)}
	s.Snapshot = plan.Snapshot{Key: key.name, InMailbox: inMailbox, Readable: true, Up: &plan.UpSnapshot{
		API: resource.TargetAPI(), Name: key.name, DroppedPaths: w.writes.DroppedPaths(key),
	}}
	if inMailbox != nil {
		if mark, err := plan.MailboxMark(s.owner, inMailbox); err == nil && mark.Mailbox == w.cluster.String() {
			s.Up.Mark = &mark
		}
	}
	selectedBy, ok := w.observeSelection(key, s, source != nil)
	switch {
	case !ok:
		return nil, nil
	case s.desired:
		if err := w.observeSource(s, source); err != nil {
			return s, err
		}
		return s, w.customize(key, s, selectedBy)
	case len(selectedBy) > 0:
		// Placements select the object, but no Location selects the SyncTarget.
		if isProven, err := w.isDestinationGone(ctx, key.mailbox, selectedBy); !isProven {
			return nil, err
		}
		s.Up.AbsenceVerified = true
	}
	return s, nil
}

// unserved returns the failure of an object whose API the mailbox does not serve.
func (w *workspace) unserved(key pairKey, resource plan.Resource, syncTarget fleet.SyncTarget) (*pairSnapshot, error) {
	w.lock.Lock()
	defer w.lock.Unlock()
	if _, found := w.pairAt(key); found == nil || !found.desired {
		return nil, nil
	}
	return &pairSnapshot{resource: resource, syncTarget: syncTarget, desired: true}, &notServedError{resource: key.resource.GroupResource()}
}

// observeSelection reads whether the pair is desired, or why it is not and whether that is verified. selectedBy
// are the placements that select the object. ok is false if the pair must stay as it is for now.
func (w *workspace) observeSelection(key pairKey, s *pairSnapshot, hasSource bool) (selectedBy []*resolvedPlacement, ok bool) {
	w.lock.Lock()
	defer w.lock.Unlock()
	entry, found := w.pairAt(key)
	if found == nil || w.placements == nil {
		return nil, false
	}
	switch {
	case found.desired:
		s.desired, s.Up.State, s.Up.Spec = true, plan.Selected, transform.SyncSpec{Policy: deletionPolicyOf(entry.selectedBy)}
		return entry.selectedBy, true
	case s.Up.Mark == nil:
		return nil, false
	case entry.mustSelect(hasSource):
		w.enqueue(task{resource: key.resource, name: key.name})
		return nil, false
	}
	// While objects are selected again, selectedBy and absence may still come from the previous placements.
	isCertain := !w.reselecting && !w.placements.partial && w.placements.fleetSynced
	s.Up.State, s.Up.AbsenceVerified = entry.withdrawal(isCertain), entry.verified
	return entry.selectedBy, s.Up.State != ""
}

// mustSelect reports whether the object must be selected before its copies are withdrawn: a mailbox showed the copy before the hub
// selected its source, or the source exists again.
func (o *object) mustSelect(hasSource bool) bool {
	return o.absence == "" && len(o.selectedBy) == 0 || o.absence == plan.SourceNotFound && hasSource
}

// withdrawal returns why a copy of the object that is not desired is withdrawn; empty if it must stay for now. isCertain is false while
// further placements may select the object.
func (o *object) withdrawal(isCertain bool) plan.State {
	switch {
	case o.absence == plan.SourceNotFound:
		return plan.SourceNotFound
	case o.absence == plan.Terminating:
		// The source is visible, and somebody deletes it.
		return plan.Deselected
	case !isCertain, o.absence == "" && o.isMoving():
		return ""
	default:
		return plan.Deselected
	}
}

// isDestinationGone reports whether kcp itself confirms that none of the placements selects the SyncTarget of a
// mailbox any more. The error is why that is unknown.
func (c *Controller) isDestinationGone(ctx context.Context, mailbox logicalcluster.Name, selectedBy []*resolvedPlacement) (bool, error) {
	syncTarget, inventory, err := c.verifiedSyncTarget(ctx, mailbox)
	if inventory == nil || err != nil {
		return false, err
	}
	return !slices.ContainsFunc(selectedBy, func(one *resolvedPlacement) bool {
		selected, _ := one.verifiedSelects(inventory, &syncTarget)
		return selected
	}), nil
}

// verifiedSyncTarget returns the SyncTarget of a mailbox with its verified inventory; the inventory is nil if
// the hub does not know it.
func (c *Controller) verifiedSyncTarget(ctx context.Context, mailbox logicalcluster.Name) (fleet.SyncTarget, *fleet.Inventory, error) {
	view := c.Fleet.Snapshot()
	if syncTarget, ok := view.SyncTargetOf(mailbox); ok && !view.IsVerified(mailbox) {
		if err := c.Fleet.Verify(requestclass.With(ctx, requestclass.Extra), syncTarget.Inventory); err != nil {
			return syncTarget, nil, fmt.Errorf("cannot withdraw anything from the mailbox of %s now, because it is not certain which Locations select it: %w", syncTarget.Name, err)
		}
		view = c.Fleet.Snapshot()
	}
	syncTarget, ok := view.SyncTargetOf(mailbox)
	if !ok || !view.IsVerified(mailbox) {
		return syncTarget, nil, nil
	}
	return syncTarget, view.Inventory(syncTarget.Inventory), nil
}

// isMoving reports whether withdrawn copies must stay because the object has not arrived at its new
// destinations. All new mailboxes must have the object, and at least one new cluster. A failed copy counts as
// arrived, unless a placement chooses its clusters. A copy that waits for a rollout of new content has arrived.
// It requires the lock.
func (o *object) isMoving() bool {
	if slices.ContainsFunc(o.selectedBy, (*resolvedPlacement).awaitsMailbox) {
		return true
	}
	chooses := slices.ContainsFunc(o.selectedBy, func(one *resolvedPlacement) bool { return one.Choice != nil })
	hasDesired, hasArrived := false, false
	for _, found := range o.pairs {
		if !found.desired {
			continue
		}
		if !found.placed && (!found.waiting || !found.hasCopy) && (found.failure == nil || chooses) {
			return true
		}
		hasDesired = true
		hasArrived = hasArrived || found.failure != nil || found.waiting || found.syncStatus.hasArrived(chooses)
	}
	return hasDesired && !hasArrived
}

// awaitsMailbox reports whether a destination of the placement has no mailbox yet.
func (p *resolvedPlacement) awaitsMailbox() bool {
	return slices.ContainsFunc(p.Destinations, func(one rules.Destination) bool { return one.Mailbox == "" })
}

// observeSource reads the source of a desired copy. The error is why it cannot be placed.
func (w *workspace) observeSource(s *pairSnapshot, source *unstructured.Unstructured) error {
	u := s.Up
	if source == nil {
		// The event for the deletion of the object is still to come.
		u.State = plan.Unknown
		return nil
	}
	switch mailboxes.ProjectionOf(source) {
	case mailboxes.FullObject:
		u.Object = source
	case mailboxes.MetadataOnly:
		// An event follows when the rest has been fetched.
		u.State = plan.Unknown
		return nil
	case mailboxes.IdentityOnly:
		return errWorkspaceLimit
	}
	// If the hub does not own the mailbox object, only its name matters.
	u.Incomplete = u.Mark != nil && mailboxes.ProjectionOf(s.InMailbox) != mailboxes.FullObject
	if !s.resource.Allowed.PrivilegedUpsync {
		if err := policy.CheckUpsync(s.resource.GroupResource(), s.resource.GroupResource()); err != nil {
			return privilegedError(s.resource.GroupResource())
		}
	}
	if policy.CheckReservedName(s.resource.GroupResource(), s.Key) != nil {
		return reservedNameError(s.resource.GroupResource(), s.Key)
	}
	return nil
}

// wasPlaced reports whether the mailbox had the copy after the last pass, or whether that pass delayed creating
// the copy again.
func (w *workspace) wasPlaced(key pairKey) bool {
	w.lock.Lock()
	defer w.lock.Unlock()
	_, found := w.pairAt(key)
	return found != nil && (found.placed || found.failure != nil && found.failure.Reason == plan.ReasonContended)
}

// refundRepair removes a repair that failed from the count.
func (w *workspace) refundRepair(key pairKey) {
	w.lock.Lock()
	defer w.lock.Unlock()
	if _, found := w.pairAt(key); found != nil && found.backoff != nil {
		found.backoff.Refund()
	}
}

// countRepair counts a repair of a copy that somebody else changed, and returns how long it must wait.
func (w *workspace) countRepair(key pairKey) time.Duration {
	w.lock.Lock()
	defer w.lock.Unlock()
	_, found := w.pairAt(key)
	if found == nil {
		return 0
	}
	if found.backoff == nil {
		found.backoff = &driftbackoff.Backoff{}
	}
	return found.backoff.Next(w.Clock.Now())
}
