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
	"slices"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/synchub-dev/synchub/controllers/placement/rollout"
)

// sooner returns the shorter of two durations; zero means never.
func sooner(a, b time.Duration) time.Duration { return cmp.Or(min(a, b), a, b) }

// rollouts decides about the rollouts of a workspace.
type rollouts struct {
	active    *activePlacements
	selector  *selector
	pairs     *pairs
	revisions *revisions
	reports   *reports
	clock     clock.PassiveClock
}

// decide decides for each placement which destinations may get the present content of the objects.
func (r *rollouts) decide(ctx context.Context) (reconcile.Result, error) {
	active := r.active.get()
	// Configs with entries of placements for the workspace, and Namespaces that none selects, wait until everything is selected.
	if active == nil || !slices.ContainsFunc(active.all, func(one *resolvedPlacement) bool {
		return one.rollout != nil || one.UpsyncsToWorkspace() || one.hasOwnNamespacesAnywhere()
	}) {
		return reconcile.Result{}, nil
	}
	if !r.selector.hasSelectedEverything() {
		return reconcile.Result{RequeueAfter: startupPoll}, nil
	}
	var result reconcile.Result
	var errs []error
	for _, one := range active.all {
		if one.rollout == nil {
			continue
		}
		after, succeeded, err := r.decideOne(one)
		if err != nil {
			// The handler refuses a strategy that the schema and the compiler accepted.
			log.FromContext(ctx).Error(err, "cannot decide about a rollout", "placement", one.Name)
			continue
		}
		if succeeded {
			again, err := r.revisions.keep(ctx, one)
			errs, after = append(errs, err), sooner(after, again)
		}
		result.RequeueAfter = sooner(result.RequeueAfter, after)
	}
	if err := errors.Join(errs...); err != nil {
		return reconcile.Result{}, err
	}
	return result, nil
}

// decideOne decides for one placement, unless its last decision is still valid. It returns the delay before the next decision without an
// event, zero for never, and whether all destinations are successful.
func (r *rollouts) decideOne(one *resolvedPlacement) (recheckAfter time.Duration, succeeded bool, err error) {
	state, now := one.rollout, r.clock.Now()
	changes, isCurrent := 0, false
	var destinations []rollout.Destination
	r.pairs.locked(func(map[objectKey]*object) {
		if state.unobserved > 0 {
			// The pass for the last pair requests a decision again.
			isCurrent = true
		} else if recheckAfter, isCurrent = state.isCurrent(now); isCurrent {
			succeeded = state.succeeded
		} else {
			destinations, changes = state.updateProgress(one.Destinations, one.Rollout.GroupBy, now), state.changes
		}
	})
	if isCurrent {
		return recheckAfter, succeeded, nil
	}
	decision, err := one.Rollout.Decide(destinations, now)
	if err != nil {
		return 0, false, err
	}
	r.pairs.locked(func(objects map[objectKey]*object) {
		if state.changes != changes {
			return
		}
		admitted := state.admit(decision, one.Destinations, now)
		r.reports.request()
		recheckAfter = decision.RecheckAfter
		if len(admitted) > 0 {
			r.enqueueWaiting(objects, one, admitted)
			// The deadlines of the admitted destinations start now.
			recheckAfter = minRetryDelay
		} else {
			succeeded = len(destinations) > 0 && !slices.ContainsFunc(destinations, func(of rollout.Destination) bool { return of.Progress != rollout.Succeeded })
		}
		state.scheduleRecheck(succeeded, recheckAfter, now)
	})
	return recheckAfter, succeeded, nil
}

// enqueueWaiting enqueues the pairs of some mailboxes that wait for a placement's rollout. It requires the lock of the pairs.
func (r *rollouts) enqueueWaiting(objects map[objectKey]*object, one *resolvedPlacement, mailboxes map[logicalcluster.Name]struct{}) {
	for key, entry := range objects {
		if !entry.isSelectedBy(one.UID) {
			continue
		}
		for at, found := range entry.pairs {
			if _, isAdmitted := mailboxes[at.mailbox]; isAdmitted && found.waiting {
				r.pairs.tasks.add(pairKey{key, at}.task())
			}
		}
	}
}
