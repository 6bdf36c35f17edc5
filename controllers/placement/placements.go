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
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/placement/rules"
)

// placements are the active placements of a workspace. They do not change once active, except rollout, which
// the workspace's lock guards.
type placements struct {
	// all are sorted, the oldest first. index finds the placements that select an object; see setAll.
	all   []*resolvedPlacement
	index rules.Index
	// partial is true if the workspace has other placements, whose rules or destinations are unknown. Nothing is withdrawn then.
	partial bool
	// unresolvedPaths is true if the path of the workspace is not verified, or if the path of an inventory is
	// not found.
	unresolvedPaths bool
	// withdrawAll is true if a user deletes the binding or the workspace: all copies are then withdrawn.
	withdrawAll       bool
	byNamespaceLabels bool
	// choosing is true if a placement chooses some of many SyncTargets. recheckAt is when to resolve again without an event; zero for never.
	choosing  bool
	recheckAt time.Time
	// fleetSynced is true if the placements were resolved with a view of all inventories, see isFleetSynced.
	fleetSynced bool
	// outcomes holds the outcome of each placement of the workspace, by its UID.
	outcomes map[types.UID]outcome
}

// setAll sets the placements, and indexes them.
func (p *placements) setAll(all []*resolvedPlacement) {
	compiled := make([]*rules.Placement, len(all))
	for i, one := range all {
		compiled[i] = one.Placement
	}
	p.all, p.index = all, *rules.NewIndex(compiled)
}

// forObject returns the placements that select an object, the oldest first; known is false if the labels of its Namespace are
// unknown.
func (p *placements) forObject(object *rules.Object) (selected []*resolvedPlacement, known bool) {
	positions, known := p.index.PlacementsFor(object)
	for _, position := range positions {
		selected = append(selected, p.all[position])
	}
	return selected, known
}

// equal reports whether two sets of placements place the same objects in the same mailboxes.
func (p *placements) equal(other *placements) bool {
	return p.partial == other.partial && p.withdrawAll == other.withdrawAll && slices.EqualFunc(p.all, other.all, func(a, b *resolvedPlacement) bool {
		return a.UID == b.UID && a.Generation == b.Generation && slices.EqualFunc(a.Destinations, b.Destinations, func(one, two rules.Destination) bool {
			return one.Mailbox == two.Mailbox && one.UID == two.UID && one.Location == two.Location && one.MayUpsync == two.MayUpsync
		})
	})
}

// reselection reports whether all objects must be selected again when the next placements become active, and whether
// all of their pairs must be enqueued then, because passes may have skipped a pair or kept a copy. p may be nil.
func (p *placements) reselection(next *placements, mustReselect bool) (changed, all bool) {
	if p == nil || mustReselect {
		return true, true
	}
	return p.fleetSynced != next.fleetSynced || !p.equal(next), p.partial != next.partial || p.withdrawAll != next.withdrawAll
}

// resolveBy makes the controller resolve the placements again at the given time, or at an earlier one already set.
func (p *placements) resolveBy(at time.Time) {
	if p.recheckAt.IsZero() || at.Before(p.recheckAt) {
		p.recheckAt = at
	}
}

// resolveDelay returns after which delay the placements must be resolved again without an event, zero if never.
func (p *placements) resolveDelay(now time.Time) (after time.Duration) {
	switch {
	case !p.fleetSynced:
		return startupPoll
	case !p.recheckAt.IsZero():
		return max(p.recheckAt.Sub(now), minRetryDelay)
	default:
		return 0
	}
}

// requireNewDecisions makes the next decideRollouts decide about all rollouts again, because the strategies or
// the destinations may have changed. It requires the lock of the workspace.
func (p *placements) requireNewDecisions() {
	for _, one := range p.all {
		if one.rollout != nil {
			one.rollout.evaluated = false
		}
	}
}
