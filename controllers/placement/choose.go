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
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/placement/fleet"
	"github.com/synchub-dev/synchub/controllers/placement/rules"
)

// choose restricts the resolution of a placement to the SyncTargets that the placement chooses. The others are part of next.
func (w *workspace) choose(placement *rules.Placement, next *placements, result *outcome) {
	if placement.Choice == nil {
		return
	}
	chooser := rules.Chooser{
		Choice: placement.Choice, Placement: placement.UID, Previous: w.previousChoice(placement),
		KeepOnly: !next.fleetSeen, Readiness: w.Fleet, Now: w.Clock.Now(),
	}
	var recheckAt time.Time
	result.resolution.Destinations, recheckAt = chooser.Choose(result.resolution.Destinations)
	result.wanted, next.choosing = placement.Choice, true
	if !recheckAt.IsZero() && (next.recheckAt.IsZero() || recheckAt.Before(next.recheckAt)) {
		next.recheckAt = recheckAt
	}
}

// previousChoice returns the SyncTargets of a placement that is in force. After a start they are those of the slice, until all
// inventories are seen: no status is written before. Users may write the slice, but only SyncTargets count that match anyway.
func (w *workspace) previousChoice(placement *rules.Placement) map[types.UID]bool {
	previous := map[types.UID]bool{}
	w.lock.Lock()
	inForce := w.placements
	w.lock.Unlock()
	if inForce != nil && inForce.fleetSeen {
		if found, ok := inForce.outcomes[placement.UID]; ok {
			for _, destination := range found.resolution.Destinations {
				previous[destination.UID] = true
			}
			return previous
		}
	}
	// Only slices of the same placement count, not of an earlier one of that name.
	listed, _ := w.Workloads.List(slicesResource, w.cluster)
	for _, object := range listed {
		if object.GetName() != placement.Name || !isOwnedBy(object, placement.UID) {
			continue
		}
		var slice edgev2alpha1.SinglePlacementSlice
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &slice); err != nil {
			continue
		}
		for _, destination := range slice.Destinations {
			previous[destination.SyncTargetUID] = true
		}
	}
	return previous
}

func isOwnedBy(object *unstructured.Unstructured, owner types.UID) bool {
	for _, reference := range object.GetOwnerReferences() {
		if reference.UID == owner {
			return true
		}
	}
	return false
}

// chooses reports whether a placement in force chooses some of many SyncTargets.
func (w *workspace) chooses() bool {
	w.lock.Lock()
	defer w.lock.Unlock()
	return w.placements != nil && w.placements.choosing
}

// verifiedSelects reports whether the placement has a SyncTarget as a destination, by an inventory as kcp itself shows it and by the
// choice in force.
func (p *placementInForce) verifiedSelects(inventory *fleet.Inventory, syncTarget *fleet.SyncTarget) (selected, mayUpsync bool) {
	if p.Choice != nil && !p.hasDestination(syncTarget.Inventory, syncTarget.UID) {
		return false, false
	}
	return p.SelectsSyncTarget(inventory, syncTarget, p.workspace, p.inventories)
}

func (p *placementInForce) hasDestination(inventory logicalcluster.Name, syncTarget types.UID) bool {
	for _, destination := range p.Destinations {
		if destination.Inventory == inventory && destination.UID == syncTarget {
			return true
		}
	}
	return false
}
