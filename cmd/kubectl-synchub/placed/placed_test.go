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

package placed_test

import (
	"reflect"
	"testing"

	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/placed"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
)

func object(name string) placed.Object {
	return placed.Object{GroupResource: schema.GroupResource{Group: "apps", Resource: "deployments"}, NamespacedName: types.NamespacedName{Namespace: "shop", Name: name}}
}

func pair(name, syncTarget, reason string) edgev2alpha1.PlacementPair {
	return edgev2alpha1.PlacementPair{
		ObjectFailure: edgev2alpha1.ObjectFailure{Group: "apps", Resource: "deployments", Namespace: "shop", Name: name, Reason: reason, Message: "why"},
		SyncTarget:    syncTarget,
	}
}

// Two objects at two destinations: one fails, one is on its way.
func settled() (*edgev2alpha1.EdgePlacement, *edgev2alpha1.SinglePlacementSlice) {
	placement := &edgev2alpha1.EdgePlacement{}
	placement.Generation = 3
	placement.Status = edgev2alpha1.EdgePlacementStatus{
		SpecGeneration: 3, Selected: 2, Destinations: 2, Placed: 3, Synced: 2, Healthy: 2, Failed: 1,
		Failures: []edgev2alpha1.PlacementPair{pair("a", "florin", "Conflict")}, Progressing: []edgev2alpha1.PlacementPair{pair("b", "guilder", "InProgress")},
	}
	return placement, &edgev2alpha1.SinglePlacementSlice{Destinations: []edgev2alpha1.SinglePlacement{{Cluster: "x", SyncTargetName: "guilder"}, {Cluster: "x", SyncTargetName: "florin"}}}
}

func TestStates(t *testing.T) {
	type change func(*edgev2alpha1.EdgePlacement, *edgev2alpha1.SinglePlacementSlice)
	for name, test := range map[string]struct {
		change change
		// undescribed is the state of the pairs that the status does not describe.
		undescribed string
	}{
		"the status describes all":        {func(*edgev2alpha1.EdgePlacement, *edgev2alpha1.SinglePlacementSlice) {}, placed.Healthy},
		"more fail than it describes":     {func(p *edgev2alpha1.EdgePlacement, _ *edgev2alpha1.SinglePlacementSlice) { p.Status.Healthy = 1 }, placed.Unknown},
		"it is about an older generation": {func(p *edgev2alpha1.EdgePlacement, _ *edgev2alpha1.SinglePlacementSlice) { p.Generation = 4 }, placed.Unknown},
		"a copy cannot be withdrawn": {func(p *edgev2alpha1.EdgePlacement, _ *edgev2alpha1.SinglePlacementSlice) {
			p.Status.Healthy, p.Status.Failures = 1, append(p.Status.Failures, pair("old", "", "MailboxRefused"))
		}, placed.Unknown},
		"a destination is new": {func(_ *edgev2alpha1.EdgePlacement, s *edgev2alpha1.SinglePlacementSlice) {
			s.Destinations = append(s.Destinations, edgev2alpha1.SinglePlacement{SyncTargetName: "krone"})
		}, placed.Unknown},
		"two inventories have the cluster": {func(_ *edgev2alpha1.EdgePlacement, s *edgev2alpha1.SinglePlacementSlice) {
			s.Destinations[0].SyncTargetName = "florin"
		}, placed.Unknown},
	} {
		placement, slice := settled()
		test.change(placement, slice)
		view := placed.NewView(placement, slice)
		if got, want := view.StateOf(object("a"), "florin"), (placed.State{State: "Conflict", Message: "why", Failed: true}); got != want {
			t.Errorf("%s: the failed pair is %+v", name, got)
		}
		if got, want := view.StateOf(object("b"), "guilder"), (placed.State{State: "InProgress", Message: "why"}); got != want {
			t.Errorf("%s: the pair on its way is %+v", name, got)
		}
		if got := view.StateOf(object("b"), "florin"); got.State != test.undescribed {
			t.Errorf("%s: another pair is %+v", name, got)
		}
	}
	placement, slice := settled()
	if got := placed.NewView(placement, slice).SyncTargets; !reflect.DeepEqual(got, []string{"florin", "guilder"}) {
		t.Errorf("destinations: %v", got)
	}
	if view := placed.NewView(placement, nil); view.Complete || len(view.SyncTargets) > 0 {
		t.Errorf("without a slice: %+v", view)
	}
}
