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
	"testing"

	"k8s.io/apimachinery/pkg/types"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/placement/fleet"
	"github.com/synchub-dev/synchub/controllers/placement/rules"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
)

// A slice restores a choice only if this hub wrote the slice for this placement of this workspace.
func TestSealedChoice(t *testing.T) {
	hub, otherKey := marks{"hub", ownership.NewSealer([]byte("key"))}, marks{"hub", ownership.NewSealer([]byte("forged"))}
	slice := &edgev2alpha1.SinglePlacementSlice{Destinations: []edgev2alpha1.SinglePlacement{{Cluster: "one", SyncTargetUID: "a"}, {Cluster: "two", SyncTargetUID: "b"}}}
	slice.Annotations = map[string]string{ownership.ChoiceAnnotation: hub.sealChoice("team", "placement", slice.Destinations)}
	if got := hub.verifyChoice("team", "placement", slice); !maps.Equal(got, chosenTargets{"a": {inventory: "one"}, "b": {inventory: "two"}}) {
		t.Errorf("got %v", got)
	}
	forged, unsealed := slice.DeepCopy(), slice.DeepCopy()
	forged.Destinations[0].SyncTargetUID, unsealed.Annotations = "c", nil
	for name, got := range map[string]chosenTargets{
		"another placement": hub.verifyChoice("team", "other", slice),
		"another workspace": hub.verifyChoice("other", "placement", slice),
		"another key":       otherKey.verifyChoice("team", "placement", slice),
		"another choice":    hub.verifyChoice("team", "placement", forged),
		"no seal":           hub.verifyChoice("team", "placement", unsealed),
	} {
		if got != nil {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// A placement without a choice counts as having chosen all of its destinations, so that a new
// spec.numberOfClusters keeps some of them.
func TestFormerChoice(t *testing.T) {
	took := outcome{resolution: rules.Resolution{Destinations: []rules.Destination{{SyncTarget: fleet.SyncTarget{UID: "a", Inventory: "one"}}}}}
	if got := took.chosenOrAll(); !maps.Equal(got, chosenTargets{"a": {inventory: "one"}}) {
		t.Errorf("all: %v", got)
	}
	took.chosen = chosenTargets{"b": {inventory: "two"}}
	if got := took.chosenOrAll(); !maps.Equal(got, took.chosen) {
		t.Errorf("some: %v", got)
	}
}

// The old copy stays until the new one is on its cluster. If the placement chooses its clusters, the old copy
// also stays while the new one fails.
func TestMoving(t *testing.T) {
	inSync := &pair{desired: true, placed: true, syncStatus: &syncStatus{synced: true}}
	away := &pair{desired: true, placed: true}
	if (&object{pairs: map[site]*pair{at("m"): inSync, at("away"): away}}).isMigrating() {
		t.Error("a disconnected cluster among several destinations keeps the old copy")
	}
	for name, c := range map[string]struct {
		pair            pair
		chosen, allOver bool
	}{
		"on its way":    {pair{desired: true}, true, true},
		"failing":       {pair{desired: true, failure: &failure{Reason: plan.ReasonConflict}}, true, false},
		"untried":       {pair{desired: true, placed: true}, true, true},
		"not in sync":   {pair{desired: true, placed: true, syncStatus: &syncStatus{}}, true, true},
		"refused":       {pair{desired: true, placed: true, syncStatus: &syncStatus{failure: &failure{Reason: plan.ReasonConflict}}}, true, false},
		"in sync":       {pair{desired: true, placed: true, syncStatus: &syncStatus{synced: true}}, false, false},
		"waiting":       {pair{desired: true, hasCopy: true, waiting: true}, false, false},
		"waiting, new":  {pair{desired: true, waiting: true}, true, true},
		"not desired":   {pair{hasCopy: true}, false, false},
		"placed before": {pair{hasCopy: true, placed: true}, false, false},
	} {
		for choice, want := range map[*rules.Choice]bool{{Number: 1}: c.chosen, nil: c.allOver} {
			moved := &object{selectedBy: []*resolvedPlacement{{Placement: &rules.Placement{Choice: choice}}}, pairs: map[site]*pair{at("m"): &c.pair}}
			if got := moved.isMigrating(); got != want {
				t.Errorf("%s, chosen %v: moving %v", name, choice != nil, got)
			}
			moved.selectedBy[0].Destinations = []rules.Destination{{SyncTarget: fleet.SyncTarget{Name: "new"}}}
			if !moved.isMigrating() {
				t.Errorf("%s, chosen %v: not moving to a SyncTarget without a mailbox", name, choice != nil)
			}
		}
	}
}

// Placements become active before they have selected all objects. A copy that the former placements did not
// select may be desired by the new ones, so it stays until its object is selected again.
func TestNothingIsWithdrawnByAnEarlierSelection(t *testing.T) {
	w, key := newTestWorkspace(), pairKey{objectKey: objectKey{name: types.NamespacedName{Name: "till"}}, site: at("m")}
	w.active.state.placements = &placements{fleetSynced: true}
	w.pairs.objects[key.objectKey] = &object{
		selectedBy: []*resolvedPlacement{{Placement: &rules.Placement{}}},
		pairs:      map[site]*pair{at("m"): {hasCopy: true}},
	}
	w.active.state.isReselecting = true
	if _, state, _ := w.passes.observer.selectionOf(key, true, true); state != "" {
		t.Error("withdrawn while objects are selected again")
	}
	w.selector.endSelection()
	if _, state, _ := w.passes.observer.selectionOf(key, true, true); state != plan.Deselected {
		t.Error("kept after the selection")
	}
}
