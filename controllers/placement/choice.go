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
	"k8s.io/apimachinery/pkg/types"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/placement/rules"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
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
func (r *resolver) applyChoice(ctx context.Context, one *resolvedPlacement, next *placements, result *outcome) {
	if one.Choice == nil {
		return
	}
	result.choice, next.choosing = one.Choice, true
	before, matching := r.outcomeBefore(one.UID, one.Name), result.resolution.Destinations
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
		Choice: one.Choice, Placement: one.UID, Previous: map[types.UID]bool{}, Missing: r.missingTargets(ctx, one, former, matching, !next.unresolvedPaths),
		Readiness: r.readiness, Now: r.clock.Now(),
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
func (r *resolver) missingTargets(ctx context.Context, one *resolvedPlacement, former chosenTargets, matching []rules.Destination, resolved bool) map[types.UID]time.Time {
	missing := map[types.UID]time.Time{}
	for syncTarget, target := range former {
		isMatching := slices.ContainsFunc(matching, func(destination rules.Destination) bool { return destination.UID == syncTarget })
		switch {
		case isMatching, resolved && r.verifier.isUnmatched(ctx, one, target.inventory, syncTarget):
		case target.missingSince.IsZero():
			missing[syncTarget] = r.clock.Now()
		default:
			missing[syncTarget] = target.missingSince
		}
	}
	return missing
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

// sealChoice returns the value of [ownership.ChoiceAnnotation] for the destinations of a placement of a workspace.
func (m marks) sealChoice(workspace logicalcluster.Name, placement types.UID, destinations []edgev2alpha1.SinglePlacement) string {
	return m.sealer.SealText(m.purpose("choice", workspace.String(), string(placement)), choiceText(destinations))
}

// verifyChoice returns the destinations in a slice; none if this hub did not choose them for this placement.
func (m marks) verifyChoice(workspace logicalcluster.Name, placement types.UID, slice *edgev2alpha1.SinglePlacementSlice) chosenTargets {
	if !m.sealer.VerifyText(slice.Annotations[ownership.ChoiceAnnotation], m.purpose("choice", workspace.String(), string(placement)), choiceText(slice.Destinations)) {
		return nil
	}
	chosen := chosenTargets{}
	for _, destination := range slice.Destinations {
		chosen[destination.SyncTargetUID] = chosenTarget{inventory: logicalcluster.Name(destination.Cluster)}
	}
	return chosen
}

func choiceText(destinations []edgev2alpha1.SinglePlacement) string {
	var text strings.Builder
	for _, destination := range destinations {
		text.WriteString(destination.Cluster + "/" + string(destination.SyncTargetUID) + ",")
	}
	return text.String()
}
