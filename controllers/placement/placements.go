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
	"fmt"
	"slices"
	gosync "sync"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/placement/customization"
	"github.com/synchub-dev/synchub/controllers/placement/fleet"
	"github.com/synchub-dev/synchub/controllers/placement/rules"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/provider/wording"
)

// outcome is the result of resolving one EdgePlacement. A non-empty reason overrides the reason that
// placementCounts give for the condition Ready.
type outcome struct {
	generation      int64
	reason, message string
	resolution      rules.Resolution
	// byLabels is true if the labels of objects decide which of them the placement selects.
	byLabels bool
	// choice is the rule that limits the destinations, and chosen are the chosen SyncTargets; both nil if the
	// placement takes all.
	choice *rules.Choice
	chosen chosenTargets
	// upsyncDenied are the names of the SyncTargets that spec.upsync does not apply to.
	upsyncDenied []string
	// missingAPIs are the APIs that the placement can select and that the workspace lacks.
	missingAPIs missingAPIs
	// former are former destinations whose copies stay for now. lost holds why SyncTargets are no longer destinations.
	former formerDestinations
	lost   map[types.UID]lostDestination
}

// resolvedPlacement is an active placement with its destinations. It is immutable, except rollout.
type resolvedPlacement struct {
	*rules.Placement
	rules.Resolution
	// chosen are the SyncTargets that the placement has chosen, including missing ones that keep their places;
	// nil if it takes all.
	chosen chosenTargets
	// workspace and inventories are the arguments that the destinations were resolved with.
	workspace   rules.Workspace
	inventories []logicalcluster.Name
	// mailboxes are the destinations that have a mailbox, by mailbox.
	mailboxes map[logicalcluster.Name]rules.Destination
	// rollout is the state of the placement's rollout; nil if it has none.
	rollout *rolloutState
}

// awaitsMailbox reports whether a destination of the placement has no mailbox yet.
func (p *resolvedPlacement) awaitsMailbox() bool {
	return slices.ContainsFunc(p.Destinations, func(one rules.Destination) bool { return one.Mailbox == "" })
}

// upsyncDenied returns the names of the destinations that some entry for upsync does not apply to.
func (p *resolvedPlacement) upsyncDenied() (names []string) {
	for _, destination := range p.Destinations {
		if slices.ContainsFunc(p.Upsync, func(entry edgev2alpha1.PlacementUpsync) bool { return !destination.MayUpsyncTo(entry.To) }) {
			names = append(names, destination.Name)
		}
	}
	return names
}

// verifiedSelects reports whether the placement has a SyncTarget as a destination. inventory is the verified
// view of the inventory. A SyncTarget that the placement has not chosen is no destination.
func (p *resolvedPlacement) verifiedSelects(inventory *fleet.Inventory, syncTarget *fleet.SyncTarget) (selected, mayUpsync bool) {
	if _, isChosen := p.chosen[syncTarget.UID]; p.Choice != nil && !isChosen {
		return false, false
	}
	return p.SelectsSyncTarget(inventory, syncTarget, p.workspace, p.inventories)
}

// samePlacements reports whether the same placements select an object as before, with the same policies. If a
// placement loses its rollout, all of its waiting pairs must continue.
func samePlacements(before, after []*resolvedPlacement) bool {
	return slices.EqualFunc(before, after, func(a, b *resolvedPlacement) bool {
		return a.Name == b.Name && a.DeletionPolicy == b.DeletionPolicy && (a.rollout == nil) == (b.rollout == nil)
	})
}

// wantsStatus reports whether one of the placements requests the status of its objects.
func wantsStatus(selectedBy []*resolvedPlacement) bool {
	return slices.ContainsFunc(selectedBy, func(one *resolvedPlacement) bool { return one.SingletonStatus || one.AggregateStatus })
}

// deletionPolicyOf returns the deletion policy of the withdrawn copies of an object: Orphan if any placement
// has it.
func deletionPolicyOf(selectedBy []*resolvedPlacement) ownership.Policy {
	if slices.ContainsFunc(selectedBy, func(p *resolvedPlacement) bool { return p.DeletionPolicy == ownership.PolicyOrphan }) {
		return ownership.PolicyOrphan
	}
	return ownership.PolicyDelete
}

// placements are the placements of a workspace. They are immutable once active, except the rollouts.
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
	// path is the path of the workspace; empty if it is not verified.
	path string
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

// find returns the placement of a UID; nil if there is none.
func (p *placements) find(uid types.UID) *resolvedPlacement {
	if i := slices.IndexFunc(p.all, func(one *resolvedPlacement) bool { return one.UID == uid }); i >= 0 {
		return p.all[i]
	}
	return nil
}

// hasDestination reports whether one of the SyncTargets is a destination of a placement.
func (p *placements) hasDestination(syncTargets map[types.UID]bool) bool {
	return slices.ContainsFunc(p.all, func(one *resolvedPlacement) bool {
		return slices.ContainsFunc(one.Destinations, func(destination rules.Destination) bool { return syncTargets[destination.UID] })
	})
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
			return one.Mailbox == two.Mailbox && one.UID == two.UID && one.Location == two.Location && one.MayUpsync == two.MayUpsync && apiequality.Semantic.DeepEqual(one.Tenancy, two.Tenancy)
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

// requireNewDecisions makes the next decision about each rollout be made again, because the strategies or
// the destinations may have changed. It requires the lock of the [pairs].
func (p *placements) requireNewDecisions() {
	for _, one := range p.all {
		if one.rollout != nil {
			one.rollout.evaluated = false
		}
	}
}

// mailboxesWithOtherParameters returns the mailboxes whose parameters may differ in the next placements,
// because the parameters of a placement changed or because another placement is now responsible. p may be nil.
func (p *placements) mailboxesWithOtherParameters(next *placements) (changed map[logicalcluster.Name]struct{}) {
	if p == nil {
		return nil
	}
	changed = map[logicalcluster.Name]struct{}{}
	for _, one := range next.all {
		old := p.find(one.UID)
		if old == nil {
			// All objects that a new placement selects are enqueued.
			continue
		}
		for mailbox, destination := range one.mailboxes {
			if known, ok := old.mailboxes[mailbox]; !ok || !known.Parameters().Equal(destination.Parameters()) {
				changed[mailbox] = struct{}{}
			}
		}
		for mailbox := range old.mailboxes {
			if _, ok := one.mailboxes[mailbox]; !ok {
				changed[mailbox] = struct{}{}
			}
		}
	}
	return changed
}

// parametersAt returns the parameters of a mailbox for an object: the parameters of the oldest placement that
// selects both. known is false if no placement does any more. The object may have been selected by an older view of the same
// placement. p may be nil.
func (p *placements) parametersAt(mailbox logicalcluster.Name, selectedBy []*resolvedPlacement) (parameters customization.Parameters, known bool) {
	if p == nil {
		return nil, false
	}
	for _, one := range selectedBy {
		current := p.find(one.UID)
		if current == nil {
			continue
		}
		if destination, ok := current.mailboxes[mailbox]; ok {
			return destination.Parameters(), true
		}
	}
	return nil, false
}

// activePlacements are the placements that select the objects of a workspace. Its lock may be taken while the lock of the [pairs] is held.
type activePlacements struct {
	lock  gosync.Mutex
	state selectionState
}

// selectionState is the progress of the active placements with the selection of objects.
type selectionState struct {
	// placements are nil before they are known.
	placements *placements
	// mustReselect is true if all objects must be selected again, whether or not the placements change.
	mustReselect bool
	// isReselecting is true while all objects are selected again. allSelected is true once all objects are known and selected.
	isReselecting, allSelected bool
}

// isCertain returns false while further placements may select an object: while all are selected again, the state of an object
// may still come from the previous placements.
func (s selectionState) isCertain() bool {
	return s.placements != nil && !s.isReselecting && !s.placements.partial && s.placements.fleetSynced
}

// get returns the active placements; nil before they are known.
func (a *activePlacements) get() *placements { return a.read().placements }

// read returns the state.
func (a *activePlacements) read() selectionState {
	a.lock.Lock()
	defer a.lock.Unlock()
	return a.state
}

// update calls a function with the state, under the lock.
func (a *activePlacements) update(do func(*selectionState)) {
	a.lock.Lock()
	defer a.lock.Unlock()
	do(&a.state)
}

// requireReselect makes the next resolve select all objects again.
func (a *activePlacements) requireReselect() {
	a.update(func(s *selectionState) { s.mustReselect = true })
}

// replace replaces the active placements, see [placements.reselection].
func (a *activePlacements) replace(next *placements) (before *placements, changed, all bool) {
	a.update(func(s *selectionState) {
		before = s.placements
		changed, all = before.reselection(next, s.mustReselect)
		s.placements, s.mustReselect, s.isReselecting = next, false, true
	})
	return before, changed, all
}

// maxCost bounds the cost of testing one object by all placements of a workspace, see [rules.Placement.Cost]. It is about a millisecond.
const maxCost = 8_192

// costLimit returns a function that reports whether a placement, together with the earlier ones that it admitted, costs at
// most maxCost.
func costLimit() (admits func(*rules.Placement) bool) {
	total := 0
	return func(one *rules.Placement) bool {
		cost := one.Cost()
		if total+cost > maxCost {
			return false
		}
		total += cost
		return true
	}
}

// exclude removes the placements that exceed a limit. why returns the reason for one of them, or empty.
func (p *placements) exclude(why func(i int, one *resolvedPlacement) string) {
	var within []*resolvedPlacement
	for i, one := range p.all {
		message := why(i, one)
		if message == "" {
			within = append(within, one)
			continue
		}
		result := p.outcomes[one.UID]
		result.reason, result.message = rules.ReasonLimitExceeded, message
		p.outcomes[one.UID], p.partial = result, true
	}
	if len(within) < len(p.all) {
		p.setAll(within)
	}
}

// excludeCostly removes the placements whose selectors, together with the selectors of older placements, cost
// more than maxCost.
func (p *placements) excludeCostly() {
	isWithin := costLimit()
	p.exclude(func(_ int, one *resolvedPlacement) string {
		if isWithin(one.Placement) {
			return ""
		}
		return fmt.Sprintf("The label selectors in spec.downsync have %d terms and values, and all placements of the workspace together may have %d. "+
			"Nothing new of this placement is placed: select by fewer labels and values, or by namespaces and names.", one.Cost(), maxCost)
	})
}

// excludeBeyondLimit removes placements that would exceed the limit of pairs or of upsync entries, and checks
// the oldest first. added are the pairs that each placement adds. An active placement stays if it exceeds only the
// limit of pairs: setDesired then limits its objects.
func (p *placements) excludeBeyondLimit(added []int, maxPairs int, wasActive map[types.UID]bool) {
	pairs, upsync := 0, 0
	p.exclude(func(i int, one *resolvedPlacement) string {
		switch {
		case pairs+added[i] > maxPairs && !wasActive[one.UID]:
			return fmt.Sprintf("The placement adds %s of an object and a destination to older placements, and the workspace may have %d in all. "+
				"Nothing new of it is placed: select fewer objects or Locations, or ask the operator of the hub for a larger --max-placed-objects.", wording.Count(added[i], "pair", "pairs"), maxPairs)
		case upsync+len(one.Upsync) > maxUpsync:
			return fmt.Sprintf("The placements of the workspace have more than %d entries in spec.upsync. Nothing new of this one is placed: remove some.", maxUpsync)
		}
		pairs, upsync = pairs+added[i], upsync+len(one.Upsync)
		return ""
	})
}

// countPairs returns how many pairs each placement adds to the pairs of the placements before it.
func (p *placements) countPairs(of *sources) []int {
	added := make([]int, len(p.all))
	for _, described := range of.placeable() {
		var known map[logicalcluster.Name]struct{}
		positions, _ := p.index.PlacementsFor(described)
		for _, i := range positions {
			one := p.all[i]
			if known == nil {
				known = make(map[logicalcluster.Name]struct{}, len(one.mailboxes))
			}
			before := len(known)
			for mailbox := range one.mailboxes {
				known[mailbox] = struct{}{}
			}
			added[i] += len(known) - before
		}
	}
	return added
}
