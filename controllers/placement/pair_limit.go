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
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/placement/rules"
	"github.com/synchub-dev/synchub/controllers/plan"
)

// limitRecheck is the delay before placements and objects beyond the limit are tried again: other pairs may be
// gone by then.
const limitRecheck = 30 * time.Second

// pairLimitMessage is the message of an object that the limit of pairs excludes from a destination.
const pairLimitMessage = "the workspace has as many pairs of an object and a destination as it may have: nothing new is placed until there are fewer; ask the operator of the hub for a larger --max-placed-objects"

// maxCost bounds the cost of testing one object by all placements of a workspace, see [rules.Placement.Cost]. It is about a millisecond.
const maxCost = 8_192

// excludeCostly removes the placements whose selectors, together with the selectors of older placements, cost
// more than maxCost.
func (p *placements) excludeCostly() {
	within := withinCost(p.all, func(one *resolvedPlacement) *rules.Placement { return one.Placement })
	p.restrictTo(within, func(one *resolvedPlacement) string {
		return fmt.Sprintf("The label selectors in spec.downsync have %d terms and values, and those of all placements of the workspace may have %d. "+
			"Nothing new of this placement is placed: select by fewer labels and values, or by namespaces and names.", one.Cost(), maxCost)
	})
}

// restrictTo removes all placements except some, because they exceed a limit. messageOf returns the reason for one of them.
func (p *placements) restrictTo(within []*resolvedPlacement, messageOf func(*resolvedPlacement) string) {
	if len(within) == len(p.all) {
		return
	}
	for _, one := range p.all {
		if slices.Contains(within, one) {
			continue
		}
		result := p.outcomes[one.UID]
		result.reason, result.message = rules.ReasonLimitExceeded, messageOf(one)
		p.outcomes[one.UID] = result
		p.partial = true
	}
	p.setAll(within)
}

// withinCost returns the first of the sorted placements that cost at most maxCost together.
func withinCost[P any](sorted []P, placementOf func(P) *rules.Placement) (within []P) {
	total := 0
	for _, one := range sorted {
		if cost := placementOf(one).Cost(); total+cost <= maxCost {
			total += cost
			within = append(within, one)
		}
	}
	return within
}

// excludeBeyondLimit removes placements that would exceed the limit of pairs or of upsync entries, and checks
// the oldest first. added are the pairs that each placement adds. An active placement stays if it exceeds only the
// limit of pairs: setDesired then limits its objects.
func (p *placements) excludeBeyondLimit(added []int, maxPairs int, wasActive map[types.UID]bool) {
	pairs, upsync, messages := 0, 0, map[types.UID]string{}
	var within []*resolvedPlacement
	for i, one := range p.all {
		switch {
		case pairs+added[i] > maxPairs && !wasActive[one.UID]:
			messages[one.UID] = fmt.Sprintf("The placement has %d pairs of an object and a destination beside those of older placements, and the workspace may have %d in all. "+
				"Nothing new of it is placed: select fewer objects or Locations, or ask the operator of the hub for a larger --max-placed-objects.", added[i], maxPairs)
		case upsync+len(one.Upsync) > maxUpsync:
			messages[one.UID] = fmt.Sprintf("The placements of the workspace have more than %d entries in spec.upsync. Nothing new of this one is placed: remove some.", maxUpsync)
		default:
			pairs, upsync = pairs+added[i], upsync+len(one.Upsync)
			within = append(within, one)
		}
	}
	p.restrictTo(within, func(one *resolvedPlacement) string { return messages[one.UID] })
}

// activeBefore returns the placements that were active before this resolve. After a start, it returns the
// placements whose status.placed is above zero. A user who sets status.placed only gets a part of their own
// placement placed, within the limit.
func (w *workspace) activeBefore(observed []*unstructured.Unstructured) map[types.UID]bool {
	active := map[types.UID]bool{}
	w.lock.Lock()
	defer w.lock.Unlock()
	if w.placements != nil {
		for _, one := range w.placements.all {
			active[one.UID] = true
		}
		return active
	}
	for _, object := range observed {
		placed, _, _ := unstructured.NestedInt64(object.Object, "status", "placed")
		active[object.GetUID()] = placed > 0
	}
	return active
}

// countPairs returns how many pairs each placement adds to the pairs of the placements before it.
func (w *workspace) countPairs(next *placements) []int {
	added := make([]int, len(next.all))
	w.forEachObject(func(resource plan.Resource, source *unstructured.Unstructured) {
		if source.GetDeletionTimestamp() != nil || !rules.IsPlaceable(resource, source) {
			return
		}
		described := ruleObject(w.Workloads, w.cluster, resource, source)
		var known map[logicalcluster.Name]struct{}
		positions, _ := next.index.PlacementsFor(described)
		for _, i := range positions {
			one := next.all[i]
			if known == nil {
				known = make(map[logicalcluster.Name]struct{}, len(one.mailboxes))
			}
			before := len(known)
			for mailbox := range one.mailboxes {
				known[mailbox] = struct{}{}
			}
			added[i] += len(known) - before
		}
	})
	return added
}

// updateBeyondLimit updates isBeyondLimit. It reports whether all objects must be selected again, because some
// lack pairs and the workspace is below the limit again. It schedules another resolve as long as some objects
// lack pairs. It requires the lock.
func (w *workspace) updateBeyondLimit(next *placements) bool {
	if !w.isBeyondLimit {
		return false
	}
	next.resolveBy(w.Clock.Now().Add(limitRecheck))
	w.isBeyondLimit = w.isFull()
	return !w.isBeyondLimit
}

// isFull reports whether the workspace has reached MaxPairs. It requires the lock.
func (w *workspace) isFull() bool { return w.desired >= w.MaxPairs }

// setBeyondLimit records that an object lacks pairs. It requires the lock.
func (w *workspace) setBeyondLimit(entry *object) {
	entry.isBeyondLimit = true
	if !w.isBeyondLimit {
		w.isBeyondLimit = true
		// The next resolve schedules a recheck: other pairs may be gone then.
		w.resolveRequests.Publish(w.cluster)
	}
}

// addBeyondLimit counts the destinations where an object has no pair as failed, and lists the first of them.
func (t *placementCounts) addBeyondLimit(key objectKey, object *object, placement *resolvedPlacement) {
	isDesired := func(mailbox logicalcluster.Name) bool {
		return object.pairs[mailbox] != nil && object.pairs[mailbox].desired
	}
	lacking := len(placement.mailboxes)
	for mailbox := range object.pairs {
		if _, ok := placement.mailboxes[mailbox]; ok && isDesired(mailbox) {
			lacking--
		}
	}
	t.failed += int64(lacking)
	if first := slices.IndexFunc(placement.Destinations, func(of rules.Destination) bool { return of.Mailbox != "" && !isDesired(of.Mailbox) }); first >= 0 {
		addFirst(&t.failures, key, placement.Destinations[first].Name, failure{rules.ReasonLimitExceeded, pairLimitMessage})
	}
}
