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
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/synchub-dev/synchub/controllers/internal/status"
	"github.com/synchub-dev/synchub/controllers/internal/writes"
	"github.com/synchub-dev/synchub/controllers/objectsync"
	"github.com/synchub-dev/synchub/controllers/placement/fleetcache"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/plan/transform"
	"github.com/synchub-dev/synchub/controllers/plan/waves"
	"github.com/synchub-dev/synchub/provider/requestclass"
	"github.com/synchub-dev/synchub/provider/storehistory"
)

const (
	// maxCRDWait is how long an object waits at a destination for the CRDs of its workspace, which it may need.
	maxCRDWait = 10 * time.Second
	// heldRetryInterval is how often the hub checks whether an operator has confirmed that kcp was restored.
	heldRetryInterval = 30 * time.Second
)

// pairReconciler makes the passes for the pairs of a workspace.
type pairReconciler struct {
	copies   *copies
	pairs    *pairs
	tasks    *tasks
	fleet    *fleetcache.Fleet
	observer *observer
	executor *executor
	history  *storehistory.Guard
	hasher   ownership.Hasher
	sync     SyncStatuses
	// withdrawn and journal record what is withdrawn, and what fails.
	withdrawn *withdrawn
	journal   *status.Journal
	clock     clock.PassiveClock
}

// reconcile makes one pass for a pair, and records the number of changes that the pass has processed.
func (r *pairReconciler) reconcile(ctx context.Context, key pairKey) (reconcile.Result, error) {
	changes := r.pairs.beginPass(key)
	result, decided, err := r.pass(requestclass.With(ctx, requestclass.Object), key)
	if again := r.pairs.endPass(key, changes, decided); err == nil {
		result.RequeueAfter = sooner(result.RequeueAfter, again)
	}
	return result, err
}

// pass makes one pass for a pair: it observes the source and the copy, plans, and makes at most one write to
// the mailbox. It creates a missing Namespace first. decided is false if nothing could be decided.
func (r *pairReconciler) pass(ctx context.Context, key pairKey) (result reconcile.Result, decided bool, err error) {
	if r.copies.isInstalled(key) {
		return reconcile.Result{}, r.passInstalled(key), nil
	}
	s, err := r.observer.observe(ctx, key)
	if s == nil {
		return reconcile.Result{}, false, err
	}
	if err != nil {
		return reconcile.Result{}, true, r.fail(ctx, key, s, err)
	}
	planner := plan.Planner{Resource: s.resource, Up: transform.Up{
		Owner: s.owner, Mailbox: r.copies.cluster.String(), SyncTarget: s.syncTarget.Name, Hasher: r.hasher,
		Resource: s.resource.GroupResource(), Version: s.resource.Version, Kind: s.resource.Kind, Namespaced: s.resource.Namespaced,
		KeepsSettings: true,
	}}
	planned := planner.PlanUp(&s.Snapshot)
	switch {
	case planned.Err != nil:
		return reconcile.Result{}, true, r.fail(ctx, key, s, planned.Err)
	case planned.Decision.Cause == plan.Cause(plan.Unknown):
		// The pair keeps its result until an event brings the missing facts.
		return reconcile.Result{}, false, nil
	}
	isRemoved := planned.Decision.Action == plan.Create && r.wasPlaced(key)
	if wait, waits := r.delay(ctx, key, s, planned, isRemoved); waits {
		return reconcile.Result{RequeueAfter: wait}, true, nil
	}
	log.FromContext(ctx).V(1).Info("decided about a pair", "decision", planned.Decision.String())
	recordWithdrawal := r.recordWithdrawal(key, s, planned.Decision)
	planned.Decision, err = r.executor.executeOrReplace(ctx, key, s, planned)
	if err != nil && isRemoved {
		// A repair that failed does not count.
		r.pairs.inspect(key, func(_ *object, found *pair) {
			if found.backoff != nil {
				found.backoff.Refund()
			}
		})
	}
	switch {
	case errors.Is(err, writes.ErrOutdated):
		// The cache is about to show the newer copy.
		return reconcile.Result{RequeueAfter: plan.CacheTimeout}, false, nil
	case err != nil:
		return reconcile.Result{}, true, r.fail(ctx, key, s, err)
	}
	recordWithdrawal()
	r.succeed(key, s, planned.Decision)
	return reconcile.Result{RequeueAfter: planned.RequeueAfter}, true, nil
}

// delay records why a plan must wait, if it must, and returns when the pair is reconciled again without an event; zero
// for never.
func (r *pairReconciler) delay(ctx context.Context, key pairKey, s *pairSnapshot, planned plan.UpPlan, isRemoved bool) (wait time.Duration, waits bool) {
	if losesState(planned.Decision) && r.history.Holds(s.syncTarget.UID) {
		// The error is recorded in the pair's failure. No event reports the confirmation.
		_ = r.fail(ctx, key, s, errStoreWentBack)
		return heldRetryInterval, true
	}
	if r.awaitsRollout(key, s, planned) {
		r.pairs.setResult(key, passResult{waiting: true})
		return 0, true
	}
	if mayNeedCRDs(key, planned.Decision) {
		if wait = r.crdWait(key); wait > 0 {
			r.pairs.setResult(key, passResult{})
			return wait, true
		}
	}
	if planned.Repair || isRemoved {
		if wait = r.countRepair(key); wait > 0 {
			_ = r.fail(ctx, key, s, contendedError(isRemoved, planned.Decision.Fields))
			return wait, true
		}
	}
	return 0, false
}

// losesState reports whether a decision removes a copy, or overwrites its content. It must wait if kcp went back to an earlier state.
func losesState(decision plan.Decision) bool {
	switch decision.Action {
	case plan.Delete, plan.Release, plan.VerifyAbsence:
		return true
	case plan.Update:
		return decision.Cause == plan.Changed
	default:
		return false
	}
}

// mayNeedCRDs reports whether a new copy must wait for the CRDs of its workspace: an operator that starts before its CRDs are served fails.
func mayNeedCRDs(key pairKey, decision plan.Decision) bool {
	return decision.Action == plan.Create && waves.Of(key.resource.GroupResource()) >= waves.Workloads
}

// crdWait returns how long a copy waits for the CRDs of its workspace at the destination; zero if it may be created.
func (r *pairReconciler) crdWait(key pairKey) (wait time.Duration) {
	r.pairs.inspect(key, func(_ *object, found *pair) {
		if !r.pairs.awaitsCRDs(key.mailbox) {
			return
		}
		if found.heldSince.IsZero() {
			found.heldSince = r.clock.Now()
		}
		wait = max(0, maxCRDWait-r.clock.Since(found.heldSince))
	})
	return wait
}

// awaitsRollout reports whether a pass would write new content to a destination that no placement's rollout admits
// yet.
func (r *pairReconciler) awaitsRollout(key pairKey, s *pairSnapshot, planned plan.UpPlan) (awaits bool) {
	if !s.desired || !bringsNewContent(s.Up.Mark, planned) {
		return false
	}
	r.pairs.inspect(key, func(entry *object, _ *pair) { awaits = !entry.isAdmitted(key) })
	return awaits
}

// bringsNewContent reports whether a plan brings new content to a destination. mark is the mark of the copy; nil if there is none.
func bringsNewContent(mark *ownership.Mark, planned plan.UpPlan) bool {
	switch action := planned.Decision.Action; {
	case planned.Desired == nil:
		return false
	case action == plan.Update:
		// With the same content, somebody changed the copy, or only other parts of the mark differ.
		return mark == nil || mark.Hash != planned.Desired.Mark.Hash
	case action == plan.Delete:
		return planned.Decision.Cause == plan.Superseded
	default:
		return action == plan.Create || action == plan.Conflict
	}
}

// wasPlaced reports whether the mailbox had the copy after the last pass, or whether that pass delayed creating
// the copy again.
func (r *pairReconciler) wasPlaced(key pairKey) (was bool) {
	r.pairs.inspect(key, func(_ *object, found *pair) {
		was = found.placed || found.failure != nil && found.failure.Reason == plan.ReasonContended
	})
	return was
}

// countRepair counts a repair of a copy that somebody else changed, and returns how long it must wait.
func (r *pairReconciler) countRepair(key pairKey) (wait time.Duration) {
	r.pairs.inspect(key, func(_ *object, found *pair) {
		if found.backoff == nil {
			found.backoff = &writes.DriftBackoff{}
		}
		wait = found.backoff.Next(r.clock.Now())
	})
	return wait
}

// passInstalled makes a pass for a CustomResourceDefinition of an API that is published with installCRD. It gets no copy in
// the mailbox, where it would take effect: the hub's SyncerConfig names it instead, and the sync manager installs the
// published CRD on the target. So passInstalled only records the sync status, and [configs] makes the write.
func (r *pairReconciler) passInstalled(key pairKey) (decided bool) {
	syncTarget, known := r.fleet.Snapshot().SyncTargetOf(key.mailbox)
	if !known || syncTarget.Terminating {
		return false
	}
	var result passResult
	r.pairs.inspect(key, func(_ *object, found *pair) { result.placed = found.desired })
	if result.placed {
		// The target's installer has a status for the CRD as soon as it has read the config that names the CRD.
		result.syncStatus = r.syncStatusOf(syncTarget.UID, key, objectsync.InstalledCRD, false)
		result.placed = result.syncStatus != nil
	}
	r.pairs.setResult(key, result)
	return true
}

// fail records why a copy cannot be as desired. It returns only errors to retry, and reports a refusal, which its user must mend: for
// other failures an event follows when the cause changes.
func (r *pairReconciler) fail(ctx context.Context, key pairKey, s *pairSnapshot, err error) error {
	if ctx.Err() != nil && !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		// The hub is stopping, which is no failure of the object.
		return nil
	}
	err = fmt.Errorf("%s %s in the mailbox of %s: %w", key.resource.Resource, key.copyName(), s.syncTarget.Name, err)
	why := newFailure(err)
	isNew := r.pairs.setResult(key, passResult{failure: &why})
	if why.Reason == plan.ReasonConflict {
		if inMailbox, _, _ := r.copies.get(key); inMailbox == nil {
			// The name is free already, so no event follows.
			r.tasks.add(key.task())
		}
	}
	if isNew {
		r.journal.Record(r.journalEntry(status.JournalFailingPlacement, key, s, why.Reason), key.name, why.Message)
		// A task of its own writes the event, because the workspace may be slow to accept it, and must not
		// delay the mailbox.
		r.tasks.add(task{resource: key.resource, name: key.name, warning: why})
	}
	return errorToRetry(err, why.Reason == plan.ReasonMailboxRefused)
}

// succeed records that the mailbox of a pair is in the desired state.
func (r *pairReconciler) succeed(key pairKey, s *pairSnapshot, decision plan.Decision) {
	result := passResult{placed: s.desired && (decision.Cause == plan.InSync || decision.Action == plan.Create || decision.Action == plan.Update)}
	if result.placed {
		// If this pass has written the copy, the sync controller does not have the new content yet.
		result.syncStatus = r.syncStatusOf(s.syncTarget.UID, key, objectsync.CopyVersionOf(s.InMailbox), decision.Action.Writes())
	}
	r.pairs.setResult(key, result)
}

// syncStatusOf returns the sync status of a version of a copy; nil if no sync controller has tried it.
func (r *pairReconciler) syncStatusOf(syncTarget types.UID, key pairKey, version objectsync.CopyVersion, isOutdated bool) *syncStatus {
	state, known := r.sync.SyncStatus(syncTarget, r.copies.policy.copyOf(key.resource).GroupResource(), key.copyName(), version)
	if !known {
		return nil
	}
	state.Synced = state.Synced && !isOutdated
	return newSyncStatus(state)
}
