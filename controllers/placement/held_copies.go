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
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/internal/findings"
	"github.com/synchub-dev/synchub/controllers/placement/fleet"
	"github.com/synchub-dev/synchub/controllers/placement/rules"
	"github.com/synchub-dev/synchub/controllers/placement/withdrawal"
	"github.com/synchub-dev/synchub/provider/wording"
)

// former are the former destinations of a placement that keep their copies for now, by the UIDs of their SyncTargets.
type formerDestinations map[types.UID]withdrawal.Former

// holdCopies decides for each placement which former destinations keep their copies for now, because an inventory no
// longer offers them. It records why destinations were lost.
func (r *resolver) holdCopies(next *placements, view *fleet.Snapshot, observed []*unstructured.Unstructured) {
	now := r.clock.Now()
	for _, object := range observed {
		uid := object.GetUID()
		result, former := next.outcomes[uid], r.formerDestinations(object)
		result.lost = r.lostBefore(uid)
		if one := next.find(uid); one != nil {
			decider := &withdrawal.Decider{
				Placement: one.Placement, Workspace: one.workspace, Inventories: one.inventories, View: view, Settled: next.fleetSynced && !next.partial,
				Copies: r.copyCounter(uid), Grace: r.grace, Now: now,
			}
			result.lost = lostDestinations(decider, result.lost, former, one.Destinations)
			former = decider.Decide(former, one.Destinations)
		}
		// A placement that is invalid, or beyond a limit, keeps all of them until it is active again.
		result.former = formerDestinations{}
		if r.grace == 0 {
			former = nil
		}
		for _, one := range former {
			result.former[one.UID] = one
			if one.Until.After(now) {
				next.resolveBy(one.Until)
			}
		}
		next.outcomes[uid] = result
	}
}

// lostDestination is why a SyncTarget is no longer a destination.
type lostDestination struct {
	withdrawal.Cause
	inventory logicalcluster.Name
}

// lostBefore returns why a placement had lost destinations by the last resolve.
func (r *resolver) lostBefore(placement types.UID) map[types.UID]lostDestination {
	if active := r.active.get(); active != nil {
		return active.outcomes[placement].lost
	}
	return nil
}

// lostDestinations returns why SyncTargets are no longer destinations of a placement, by their UIDs. before are the causes of the last
// resolve. A deleted SyncTarget has none.
func lostDestinations(decider *withdrawal.Decider, before map[types.UID]lostDestination, former []withdrawal.Former, current []rules.Destination) map[types.UID]lostDestination {
	causes := maps.Clone(before)
	for _, one := range former {
		if causes == nil {
			causes = map[types.UID]lostDestination{}
		}
		causes[one.UID] = lostDestination{decider.Cause(&one), one.Inventory}
	}
	maps.DeleteFunc(causes, func(syncTarget types.UID, lost lostDestination) bool {
		inventory := decider.View.Inventory(lost.inventory)
		isKnown := inventory != nil && slices.ContainsFunc(inventory.SyncTargets, func(one fleet.SyncTarget) bool { return one.UID == syncTarget })
		return !isKnown || slices.ContainsFunc(current, func(one rules.Destination) bool { return one.UID == syncTarget })
	})
	return causes
}

// formerDestinations returns the destinations of a placement in the last resolve, and those that kept their copies. After a
// start it reads them from the status and the slice, which the users of the workspace may have changed: they can only make
// copies of their own wait.
func (r *resolver) formerDestinations(object *unstructured.Unstructured) []withdrawal.Former {
	if active := r.active.get(); active != nil {
		before := active.outcomes[object.GetUID()]
		former := slices.Collect(maps.Values(before.former))
		for _, destination := range before.resolution.Destinations {
			former = append(former, withdrawal.Former{Destination: destination, Generation: before.generation})
		}
		return former
	}
	slice := r.sources.slice(object.GetName())
	if slice == nil {
		return nil
	}
	generation, _, _ := unstructured.NestedInt64(object.Object, "status", "specGeneration")
	var former []withdrawal.Former
	for _, one := range append(slice.Destinations, parseFormer(slice.Annotations[edgev2alpha1.AnnotationFormerDestinations])...) {
		syncTarget := fleet.SyncTarget{Inventory: logicalcluster.Name(one.Cluster), Name: one.SyncTargetName, UID: one.SyncTargetUID}
		former = append(former, withdrawal.Former{Destination: rules.Destination{SyncTarget: syncTarget, Location: one.LocationName}, Generation: generation})
	}
	return former
}

// copyCounter returns a function that counts the copies of a placement's objects in some mailboxes. Soon after a start, some
// objects or copies may be unknown.
func (r *resolver) copyCounter(placement types.UID) func(map[logicalcluster.Name]bool) (int, bool) {
	return func(mailboxes map[logicalcluster.Name]bool) (count int, known bool) {
		if !r.active.read().allSelected {
			return 0, false
		}
		for mailbox := range mailboxes {
			if !r.startup.areCopiesSyncedIn(mailbox) {
				return 0, false
			}
		}
		r.pairs.locked(func(objects map[objectKey]*object) {
			for _, entry := range objects {
				if !entry.isSelectedBy(placement) {
					continue
				}
				for at, found := range entry.pairs {
					if found.hasCopy && mailboxes[at.mailbox] {
						count++
					}
				}
			}
		})
		return count, true
	}
}

// holds reports whether one of the placements that selected an object keeps the copies on a SyncTarget for now, after a change
// in the inventory. p may be nil.
func (p *placements) holds(syncTarget types.UID, selectedBy []*resolvedPlacement) bool {
	return p != nil && slices.ContainsFunc(selectedBy, func(one *resolvedPlacement) bool {
		_, holds := p.outcomes[one.UID].former[syncTarget]
		return holds
	})
}

// format returns the value of [edgev2alpha1.AnnotationFormerDestinations]; empty if no wait has begun.
func (f formerDestinations) format() string {
	var entries []string
	for _, one := range f {
		if !one.Until.IsZero() {
			entries = append(entries, strings.Join([]string{one.Inventory.String(), one.Location, one.Name, string(one.UID)}, "/"))
		}
	}
	slices.Sort(entries)
	return strings.Join(entries, ",")
}

// parseFormer returns the destinations in the value of the annotation, and skips what it cannot read.
func parseFormer(text string) (destinations []edgev2alpha1.SinglePlacement) {
	for entry := range strings.SplitSeq(text, ",") {
		if parts := strings.Split(entry, "/"); len(parts) == 4 {
			destinations = append(destinations, edgev2alpha1.SinglePlacement{
				Cluster: parts[0], LocationName: parts[1], SyncTargetName: parts[2], SyncTargetUID: types.UID(parts[3]),
			})
		}
	}
	return destinations
}

// heldCopies counts the copies of a placement that wait for their withdrawal, by SyncTarget. locations are the Locations that offered
// the SyncTargets.
type heldCopies struct {
	count       int
	syncTargets map[string]int
	locations   map[string]struct{}
	// at is when the first of them go.
	at time.Time
}

// addHeld counts an undesired copy of an object if a placement makes it wait.
func (s *summary) addHeld(entry *object, view *fleet.Snapshot, mailbox logicalcluster.Name) {
	syncTarget, known := view.SyncTargetOf(mailbox)
	if !known {
		return
	}
	isCounted := false
	for _, placement := range slices.Concat(entry.selectedBy, entry.containerFor) {
		former := s.outcomes[placement.UID].former[syncTarget.UID]
		if former.Until.IsZero() {
			continue
		}
		counted := s.counts[placement.UID]
		if counted == nil {
			counted = &placementCounts{}
			s.counts[placement.UID] = counted
		}
		if counted.held == nil {
			counted.held = &heldCopies{syncTargets: map[string]int{}, locations: map[string]struct{}{}, at: former.Until}
		}
		counted.held.locations[former.Location] = struct{}{}
		counted.held.count++
		counted.held.syncTargets[syncTarget.Name]++
		if former.Until.Before(counted.held.at) {
			counted.held.at = former.Until
		}
		if !isCounted {
			s.pendingWithdrawals[findings.PendingWithdrawal{Inventory: former.Inventory, Location: former.Location, SyncTarget: syncTarget.Name, At: former.Until}]++
		}
		isCounted = true
	}
}

// publishWithdrawals shows the pending withdrawals of the workspace to the administrators of the inventories.
func (r *reporter) publishWithdrawals(counts map[findings.PendingWithdrawal]int) {
	workspace := r.sources.cluster.String()
	if active := r.active.get(); active != nil && len(active.all) > 0 && active.all[0].workspace.Path != "" {
		workspace = active.all[0].workspace.Path
	}
	var pending []findings.PendingWithdrawal
	for one, copies := range counts {
		one.Workspace, one.Copies = workspace, copies
		pending = append(pending, one)
	}
	r.withdrawals.Set(r.sources.cluster, pending)
}

// withdrawalCondition returns the condition WithdrawalPending of a placement; an empty Reason means that there is none.
func withdrawalCondition(counted *placementCounts) metav1.Condition {
	held := counted.held
	if held == nil {
		return metav1.Condition{Type: edgev2alpha1.ConditionWithdrawalPending}
	}
	return condition(edgev2alpha1.ConditionWithdrawalPending, metav1.ConditionTrue, edgev2alpha1.ReasonInventoryChanged,
		"An inventory no longer offers these destinations to the placement, so the hub withdraws %s at %s: %s. "+
			"They were offered by the Location %s, which was changed or deleted, unless a label of a SyncTarget was. "+
			"The copies stay if an administrator of the inventory undoes the change before.",
		wording.Count(held.count, "copy", "copies"), held.at.UTC().Format(time.RFC3339), firstUnsynced(held.syncTargets), wording.First(maxNamed, slices.Sorted(maps.Keys(held.locations))))
}
