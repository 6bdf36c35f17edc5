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
	"slices"
	"strings"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/placement/fleet"
	"github.com/synchub-dev/synchub/controllers/placement/rules"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/provider/requestclass"
)

// chosenTargets are the SyncTargets that a placement has chosen, by UID.
type chosenTargets map[types.UID]chosenTarget

type chosenTarget struct {
	inventory logicalcluster.Name
	// missingSince is when the SyncTarget stopped matching, while kcp has not confirmed that; zero if it
	// matches.
	missingSince time.Time
}

// applyChoice restricts the resolution of a placement to the SyncTargets that the placement chooses. next must
// contain the placement in the end.
func (w *workspace) applyChoice(ctx context.Context, one *resolvedPlacement, next *placements, result *outcome) {
	if one.Choice == nil {
		return
	}
	result.choice, next.choosing = one.Choice, true
	before, matching := w.outcomeBefore(one.UID, one.Name), result.resolution.Destinations
	former := before.chosenOrAll()
	if !next.fleetSynced {
		// Before the hub has read all inventories, the placement keeps its choice.
		result.chosen = former
		result.resolution.Destinations = slices.DeleteFunc(matching, func(destination rules.Destination) bool {
			_, ok := former[destination.UID]
			return !ok
		})
		return
	}
	chooser := rules.Chooser{
		Choice: one.Choice, Placement: one.UID, Previous: map[types.UID]bool{}, Missing: w.missingTargets(ctx, one, former, matching, !next.unresolvedPaths),
		Readiness: w.Readiness, Now: w.Clock.Now(),
	}
	for syncTarget := range former {
		chooser.Previous[syncTarget] = true
	}
	chosen := chooser.Choose(matching)
	result.resolution.Destinations, result.chosen = chosen.Destinations, chosenTargets{}
	for _, destination := range chosen.Destinations {
		result.chosen[destination.UID] = chosenTarget{inventory: destination.Inventory}
	}
	for _, missing := range chosen.Missing {
		result.chosen[missing] = chosenTarget{former[missing].inventory, chooser.Missing[missing]}
		// If kcp did not answer, no event follows.
		next.resolveBy(chooser.Now.Add(pathRetryDelay))
	}
	if !chosen.RecheckAt.IsZero() {
		next.resolveBy(chosen.RecheckAt)
	}
}

// missingTargets returns the chosen SyncTargets that the view no longer matches, with the time when they
// stopped matching, as long as kcp has not confirmed that. If resolved is false, some paths are unresolved, and
// a SyncTarget that does not match may still be selected.
func (w *workspace) missingTargets(ctx context.Context, one *resolvedPlacement, former chosenTargets, matching []rules.Destination, resolved bool) map[types.UID]time.Time {
	missing := map[types.UID]time.Time{}
	for syncTarget, target := range former {
		isMatching := slices.ContainsFunc(matching, func(destination rules.Destination) bool { return destination.UID == syncTarget })
		switch {
		case isMatching, resolved && w.isProvenUnmatched(ctx, one, target.inventory, syncTarget):
		case target.missingSince.IsZero():
			missing[syncTarget] = w.Clock.Now()
		default:
			missing[syncTarget] = target.missingSince
		}
	}
	return missing
}

// isProvenUnmatched reports whether kcp itself shows that a placement does not match a SyncTarget of an inventory.
func (w *workspace) isProvenUnmatched(ctx context.Context, one *resolvedPlacement, inventory logicalcluster.Name, syncTarget types.UID) bool {
	if err := w.Fleet.Verify(requestclass.With(ctx, requestclass.Extra), inventory); err != nil {
		return false
	}
	verified := w.Fleet.Snapshot().Inventory(inventory)
	if verified == nil || !verified.Verified {
		return false
	}
	position := slices.IndexFunc(verified.SyncTargets, func(other fleet.SyncTarget) bool { return other.UID == syncTarget })
	if position < 0 {
		return true
	}
	found := &verified.SyncTargets[position]
	matches, _ := one.SelectsSyncTarget(verified, found, one.workspace, one.inventories)
	return !matches && !found.LabelsUnknown
}

// outcomeBefore returns the outcome of a placement from the last resolve. After a start the outcome contains
// only the choice, which comes from the slice.
func (w *workspace) outcomeBefore(placement types.UID, name string) outcome {
	w.lock.Lock()
	active := w.placements
	w.lock.Unlock()
	if active != nil {
		if found, ok := active.outcomes[placement]; ok {
			return found
		}
	}
	listed, _ := w.Workloads.List(slicesResource, w.cluster)
	for _, object := range listed {
		var slice edgev2alpha1.SinglePlacementSlice
		if object.GetName() == name && runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &slice) == nil {
			return outcome{chosen: w.verifiedChoice(placement, &slice)}
		}
	}
	return outcome{}
}

// chosenOrAll returns the SyncTargets that the placement has chosen, or all destinations if it has no choice.
func (o *outcome) chosenOrAll() chosenTargets {
	if o.chosen != nil {
		return o.chosen
	}
	chosen := chosenTargets{}
	for _, destination := range o.resolution.Destinations {
		chosen[destination.UID] = chosenTarget{inventory: destination.Inventory}
	}
	return chosen
}

// hasMissingTarget reports whether a chosen SyncTarget does not match now, and kcp has not confirmed that.
func (o *outcome) hasMissingTarget() bool {
	for _, target := range o.chosen {
		if !target.missingSince.IsZero() {
			return true
		}
	}
	return false
}

// choiceSeal returns the value of [ownership.ChoiceAnnotation] for the destinations of a placement.
func (w *workspace) choiceSeal(placement types.UID, destinations []edgev2alpha1.SinglePlacement) string {
	return w.Sealer.SealText(w.choicePurpose(placement), choiceText(destinations))
}

// verifiedChoice returns the destinations in a slice; none if this hub did not choose them for this placement.
func (w *workspace) verifiedChoice(placement types.UID, slice *edgev2alpha1.SinglePlacementSlice) chosenTargets {
	if !w.Sealer.VerifyText(slice.Annotations[ownership.ChoiceAnnotation], w.choicePurpose(placement), choiceText(slice.Destinations)) {
		return nil
	}
	chosen := chosenTargets{}
	for _, destination := range slice.Destinations {
		chosen[destination.SyncTargetUID] = chosenTarget{inventory: logicalcluster.Name(destination.Cluster)}
	}
	return chosen
}

func (w *workspace) choicePurpose(placement types.UID) string {
	return strings.Join([]string{"choice", string(w.Hub), w.cluster.String(), string(placement)}, "/")
}

func choiceText(destinations []edgev2alpha1.SinglePlacement) string {
	var text strings.Builder
	for _, destination := range destinations {
		text.WriteString(destination.Cluster + "/" + string(destination.SyncTargetUID) + ",")
	}
	return text.String()
}

// chooses reports whether an active placement chooses some of the matching SyncTargets.
func (w *workspace) chooses() bool {
	w.lock.Lock()
	defer w.lock.Unlock()
	return w.placements != nil && w.placements.choosing
}

// verifiedSelects reports whether the placement has a SyncTarget as a destination. inventory is the verified
// view of the inventory. A SyncTarget that the placement has not chosen is no destination.
func (p *resolvedPlacement) verifiedSelects(inventory *fleet.Inventory, syncTarget *fleet.SyncTarget) (selected, mayUpsync bool) {
	if _, isChosen := p.chosen[syncTarget.UID]; p.Choice != nil && !isChosen {
		return false, false
	}
	return p.SelectsSyncTarget(inventory, syncTarget, p.workspace, p.inventories)
}
