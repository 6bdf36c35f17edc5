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
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/placement/rollout"
	"github.com/synchub-dev/synchub/controllers/plan"
)

// decideRollouts decides for each placement of a workspace which destinations may get the present content of the objects.
func (c *Controller) decideRollouts(ctx context.Context, cluster logicalcluster.Name) (reconcile.Result, error) {
	w := c.findWorkspace(cluster)
	if w == nil || !w.hasRollouts() {
		return reconcile.Result{}, nil
	}
	if !w.hasSelectedEverything() {
		return reconcile.Result{RequeueAfter: startupPoll}, nil
	}
	var result reconcile.Result
	var errs []error
	for _, one := range w.resolvedPlacements() {
		if one.rollout == nil {
			continue
		}
		after, succeeded, err := w.decideRollout(one)
		if err != nil {
			// The handler refuses a strategy that the schema and the compiler accepted.
			log.FromContext(ctx).Error(err, "cannot decide about a rollout", "placement", one.Name)
			continue
		}
		if succeeded {
			again, err := w.keepRevision(ctx, one)
			errs, after = append(errs, err), sooner(after, again)
		}
		result.RequeueAfter = sooner(result.RequeueAfter, after)
	}
	if err := errors.Join(errs...); err != nil {
		return reconcile.Result{}, err
	}
	return result, nil
}

// sooner returns the shorter of two durations; zero means never.
func sooner(a, b time.Duration) time.Duration { return cmp.Or(min(a, b), a, b) }

// decideRollout decides for one placement. It returns the delay before the next decision without an event, zero
// for never, and whether all destinations are successful.
func (w *workspace) decideRollout(one *resolvedPlacement) (recheckAfter time.Duration, succeeded bool, err error) {
	now := w.Clock.Now()
	w.lock.Lock()
	state := one.rollout
	if state.unobserved > 0 {
		// The pass for the last pair requests a decision again.
		w.lock.Unlock()
		return 0, false, nil
	}
	if recheckAfter, ok := state.isCurrent(now); ok {
		defer w.lock.Unlock()
		return recheckAfter, state.succeeded, nil
	}
	destinations, changes := state.updateProgress(one.Destinations, one.Rollout.GroupBy, now), state.changes
	w.lock.Unlock()
	decision, err := one.Rollout.Decide(destinations, now)
	if err != nil {
		return 0, false, fmt.Errorf("placement %s: %w", one.Name, err)
	}
	w.lock.Lock()
	defer w.lock.Unlock()
	if state.changes != changes {
		return 0, false, nil
	}
	admitted := state.admit(decision, one.Destinations, now)
	w.reportRequests.Publish(w.cluster)
	if len(admitted) > 0 {
		w.enqueueWaiting(one, admitted)
		// The deadlines of the admitted destinations start now.
		state.scheduleRecheck(false, minRetryDelay, now)
		return minRetryDelay, false, nil
	}
	succeeded = len(destinations) > 0 && !slices.ContainsFunc(destinations, func(of rollout.Destination) bool { return of.Progress != rollout.Succeeded })
	state.scheduleRecheck(succeeded, decision.RecheckAfter, now)
	return decision.RecheckAfter, succeeded, nil
}

// enqueueWaiting enqueues the pairs of some mailboxes that wait for a placement's rollout. It requires the lock.
func (w *workspace) enqueueWaiting(one *resolvedPlacement, mailboxes map[logicalcluster.Name]struct{}) {
	for key, entry := range w.objects {
		if !slices.ContainsFunc(entry.selectedBy, func(other *resolvedPlacement) bool { return other.UID == one.UID }) {
			continue
		}
		for mailbox := range mailboxes {
			if found := entry.pairs[mailbox]; found != nil && found.waiting {
				w.enqueue(pairKey{key, mailbox}.task())
			}
		}
	}
}

// hasRollouts reports whether an active placement has a rollout.
func (w *workspace) hasRollouts() bool {
	return slices.ContainsFunc(w.resolvedPlacements(), func(one *resolvedPlacement) bool { return one.rollout != nil })
}

// resolvedPlacements returns the active placements.
func (w *workspace) resolvedPlacements() []*resolvedPlacement {
	w.lock.Lock()
	defer w.lock.Unlock()
	if w.placements == nil {
		return nil
	}
	return w.placements.all
}

// hasSelectedEverything reports whether the hub knows all objects of the workspace, and the placements that
// select them. Before that, a destination could count as successful although an object is not listed yet.
func (w *workspace) hasSelectedEverything() bool {
	w.lock.Lock()
	allSelected, isReselecting := w.allSelected, w.reselecting || w.placements == nil || !w.placements.fleetSynced
	w.lock.Unlock()
	if isReselecting {
		return false
	}
	if !allSelected && w.knowsSources() && w.hasSelectedAll() {
		w.lock.Lock()
		defer w.lock.Unlock()
		w.allSelected = w.placements != nil
		return w.allSelected
	}
	return allSelected
}

// change changes a pair of an object, and updates its phase in the rollouts. It requires the lock.
func (w *workspace) change(entry *object, mailbox logicalcluster.Name, change func()) {
	found := entry.pairs[mailbox]
	before := found.phase()
	change()
	w.count(entry.selectedBy, mailbox, before, found.phase())
}

// count moves a pair from one phase to another in the rollouts of the placements that select its object. It requires the lock.
func (w *workspace) count(selectedBy []*resolvedPlacement, mailbox logicalcluster.Name, from, to pairPhase) {
	if from == to {
		return
	}
	for _, one := range selectedBy {
		if _, ok := one.mailboxes[mailbox]; ok && one.rollout != nil && one.rollout.move(mailbox, from, to) {
			w.rolloutRequests.Publish(w.cluster)
		}
	}
}

// contentChanged records that the content of an object at a mailbox may have changed. Rollouts admit nothing
// before a pass has been made for each pair. It requires the lock.
func (w *workspace) contentChanged(entry *object, mailbox logicalcluster.Name) {
	found := entry.pairs[mailbox]
	w.change(entry, mailbox, func() { found.changes++ })
	entry.resetRollouts()
}

// resetRollouts invalidates the decisions about the object. It requires the lock.
func (o *object) resetRollouts() {
	for _, one := range o.selectedBy {
		if one.rollout != nil {
			one.rollout.reset()
		}
	}
}

// beginPass returns the number of changes of a pair so far, for [workspace.endPass].
func (w *workspace) beginPass(key pairKey) uint32 {
	w.lock.Lock()
	defer w.lock.Unlock()
	_, found := w.pairAt(key)
	if found == nil {
		return 0
	}
	found.inPass = true
	return found.changes
}

// endPass records that a pass for a pair has processed a number of changes. decided is false if the pass could
// not decide whether the mailbox has the present content. It returns plan.CacheTimeout if the pair is not
// desired and a write is pending, since the cache may never show that copy; else zero.
func (w *workspace) endPass(key pairKey, changes uint32, decided bool) (again time.Duration) {
	w.lock.Lock()
	defer w.lock.Unlock()
	entry, found := w.pairAt(key)
	if found == nil {
		return 0
	}
	found.inPass = false
	if found.observedChanges != changes {
		// The status was not returned before, see statusRequestOf.
		w.enqueueWantedStatus(key.objectKey, entry)
	}
	w.change(entry, key.mailbox, func() {
		found.undecided = !decided && (found.undecided || found.observedChanges != changes)
		found.observedChanges = changes
	})
	w.dropIfUnused(key)
	if !found.desired && !found.hasCopy && w.writes.IsPending(key) {
		return plan.CacheTimeout
	}
	return 0
}

// rolloutSummary holds the reported state of a rollout.
type rolloutSummary struct {
	paused, stopped bool
	// decided is true if the counts come from a valid decision.
	decided bool
	// counts are the numbers of destinations by their progress. Destinations that missed the deadline count as
	// failed.
	counts [rollout.Failed + 1]int
	// failed are the names of the failed SyncTargets.
	failed []string
	// revision is the last PlacementRevision; nil if it is unknown.
	revision *edgev2alpha1.RevisionReference
	// notKept is why no PlacementRevision keeps the present objects; empty if one does, or if none has failed
	// to.
	notKept string
}

// summarizeRollout returns the reported state of the placement's rollout; nil if it has none. It requires the lock.
func (p *resolvedPlacement) summarizeRollout() *rolloutSummary {
	if p.rollout == nil {
		return nil
	}
	state := p.rollout
	summed := &rolloutSummary{
		paused: p.Rollout.Paused, stopped: state.decided && state.decision.Stopped, decided: state.decided && !state.due,
		revision: state.lastRevision, notKept: state.notKept,
	}
	for i := range p.Destinations {
		of := &p.Destinations[i]
		progress := state.progressOf(of)
		if progress == rollout.Progressing && state.decided && state.decision.TimedOut.Has(of.UID) {
			progress = rollout.Failed
		}
		summed.counts[progress]++
		if progress == rollout.Failed {
			summed.failed = append(summed.failed, of.Name)
		}
	}
	slices.Sort(summed.failed)
	return summed
}
