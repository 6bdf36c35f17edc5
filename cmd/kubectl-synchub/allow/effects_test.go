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

package allow

import (
	"errors"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
)

const shop = "root:shop"

func syncTargetOf(name, env string) edgev2alpha1.SyncTarget {
	return edgev2alpha1.SyncTarget{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Labels: map[string]string{"env": env}}}
}

// locationOf returns a Location that selects SyncTargets by a label.
func locationOf(name, env string, availableTo ...string) edgev2alpha1.Location {
	return edgev2alpha1.Location{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"env": env}},
		Spec: edgev2alpha1.LocationSpec{
			InstanceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"env": env}}, AvailableTo: edgev2alpha1.AvailableTo{Workspaces: availableTo},
		},
	}
}

// placementOf returns the EdgePlacement shop of three objects on the Locations of an environment.
func placementOf(env string) edgev2alpha1.EdgePlacement {
	return edgev2alpha1.EdgePlacement{
		ObjectMeta: metav1.ObjectMeta{Name: "shop", Generation: 1},
		Spec: edgev2alpha1.EdgePlacementSpec{
			LocationSelectors: []metav1.LabelSelector{{MatchLabels: map[string]string{"env": env}}}, InventoryWorkspaces: []string{"root:inventory"},
		},
		Status: edgev2alpha1.EdgePlacementStatus{SpecGeneration: 1, Selected: 3},
	}
}

// change returns the effects on a workspace of a change of the first Location.
func change(remove bool, of *team, locations ...edgev2alpha1.Location) []string {
	syncTargets := []edgev2alpha1.SyncTarget{syncTargetOf("florin", "prod"), syncTargetOf("guilder", "prod"), syncTargetOf("thaler", "test")}
	options := &allowOptions{remove: remove}
	after := locations[0].DeepCopy()
	options.apply(after, []string{of.path})
	read := &inventory{
		cluster: "i", paths: []string{"i", "root:inventory"}, before: newView("i", syncTargets, locations),
		after:    newView("i", syncTargets, append([]edgev2alpha1.Location{*after}, locations[1:]...)),
		location: &locations[0], remaining: after.Spec.AvailableTo, remove: remove,
	}
	return read.describe(of)
}

func TestDescribe(t *testing.T) {
	prod, everybody := locationOf("prod", "prod", "root:annex"), locationOf("prod", "prod", shop, "root:*")
	allowed, second := locationOf("prod", "prod", "root:annex", shop), locationOf("second", "prod", shop)
	second.Spec.InstanceSelector.MatchLabels = nil
	invalid, orphan, chosen, uncounted, elsewhere := placementOf("prod"), placementOf("prod"), placementOf("prod"), placementOf("prod"), placementOf("prod")
	invalid.Spec.LocationSelectors[0].MatchLabels = map[string]string{"-": "x"}
	orphan.Spec.DeletionPolicy = edgev2alpha1.DeletionPolicyOrphan
	chosen.Spec.NumberOfClusters = new(int32(1))
	uncounted.Status = edgev2alpha1.EdgePlacementStatus{}
	elsewhere.Spec.InventoryWorkspaces = []string{"root:other"}
	const gains, loses = "root:shop gains the Location prod with the 2 SyncTargets florin and guilder.", "root:shop loses the Location prod with the 2 SyncTargets florin and guilder."
	const none = "No EdgePlacement of root:shop gets other clusters by that."
	forbidden, nowhere := errors.New("forbidden"), map[string]map[types.UID]bool{"shop": {}}
	for name, test := range map[string]struct {
		remove    bool
		team      team
		locations []edgev2alpha1.Location
		want      []string
	}{
		"objects come":                   {false, team{placements: []edgev2alpha1.EdgePlacement{placementOf("prod")}}, []edgev2alpha1.Location{prod}, []string{gains, "3 objects of root:shop come to florin and guilder (EdgePlacement shop)."}},
		"some of them are chosen":        {false, team{placements: []edgev2alpha1.EdgePlacement{chosen}}, []edgev2alpha1.Location{prod}, []string{gains, "3 objects of root:shop may come to florin and guilder (EdgePlacement shop)."}},
		"objects leave":                  {true, team{placements: []edgev2alpha1.EdgePlacement{placementOf("prod")}}, []edgev2alpha1.Location{allowed}, []string{loses, "3 objects of root:shop leave florin and guilder (EdgePlacement shop)."}},
		"objects leave where they are":   {true, team{placements: []edgev2alpha1.EdgePlacement{chosen}, placed: map[string]map[types.UID]bool{"shop": {"florin": true}}}, []edgev2alpha1.Location{allowed}, []string{loses, "3 objects of root:shop leave florin (EdgePlacement shop)."}},
		"nothing is placed":              {true, team{placements: []edgev2alpha1.EdgePlacement{chosen}, placed: nowhere}, []edgev2alpha1.Location{allowed}, []string{loses, none}},
		"copies stay":                    {true, team{placements: []edgev2alpha1.EdgePlacement{orphan}}, []edgev2alpha1.Location{allowed}, []string{loses, "The hub stops syncing 3 objects of root:shop to florin and guilder. The copies stay there, since spec.deletionPolicy of the EdgePlacement shop is Orphan."}},
		"nothing is counted":             {true, team{placements: []edgev2alpha1.EdgePlacement{uncounted}}, []edgev2alpha1.Location{allowed}, []string{loses, "Objects of root:shop leave florin and guilder. The hub has not counted the objects of the EdgePlacement shop yet."}},
		"another Location has them":      {true, team{placements: []edgev2alpha1.EdgePlacement{placementOf("prod")}}, []edgev2alpha1.Location{allowed, second}, []string{loses, none}},
		"other Locations are selected":   {true, team{placements: []edgev2alpha1.EdgePlacement{placementOf("test")}}, []edgev2alpha1.Location{allowed}, []string{loses, none}},
		"another inventory is selected":  {true, team{placements: []edgev2alpha1.EdgePlacement{elsewhere}}, []edgev2alpha1.Location{allowed}, []string{loses, none}},
		"another entry includes it":      {true, team{}, []edgev2alpha1.Location{everybody}, []string{"root:shop may use the Location prod in any case, by the entry root:* of spec.availableTo.workspaces."}},
		"an entry includes it already":   {false, team{}, []edgev2alpha1.Location{locationOf("prod", "prod", "root:*")}, []string{"root:shop may use the Location prod in any case, by the entry root:* of spec.availableTo.workspaces."}},
		"the Location's own workspace":   {false, team{path: "root:inventory"}, []edgev2alpha1.Location{prod}, []string{"root:inventory has the Location prod itself, and may always use it."}},
		"it may not be read":             {false, team{err: forbidden}, []edgev2alpha1.Location{prod}, []string{gains, "The EdgePlacements of root:shop could not be read: forbidden"}},
		"copies are counted":             {true, team{err: forbidden, copies: map[string]int{"florin": 3, "guilder": 0}}, []edgev2alpha1.Location{allowed}, []string{loses, "The EdgePlacements of root:shop could not be read: forbidden", "The mailboxes have copies of objects of root:shop for florin (3). They leave unless another Location offers the clusters."}},
		"there are no copies":            {true, team{err: forbidden}, []edgev2alpha1.Location{allowed}, []string{loses, "The EdgePlacements of root:shop could not be read: forbidden", "The mailboxes have no copy of an object of root:shop."}},
		"a mailbox could not be read":    {true, team{err: forbidden, unread: map[string]error{"guilder": forbidden}}, []edgev2alpha1.Location{allowed}, []string{loses, "The EdgePlacements of root:shop could not be read: forbidden", "Its copies for guilder could not be counted: forbidden"}},
		"a Location without SyncTargets": {false, team{}, []edgev2alpha1.Location{locationOf("empty", "none")}, []string{"root:shop gains the Location empty with no SyncTarget.", none}},
	} {
		t.Run(name, func(t *testing.T) {
			if test.team.path == "" {
				test.team.path = shop
			}
			if got := change(test.remove, &test.team, test.locations...); !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
	if got := change(true, &team{path: shop, placements: []edgev2alpha1.EdgePlacement{invalid}}, allowed); len(got) != 2 || got[1] == none {
		t.Errorf("an invalid EdgePlacement: got %q", got)
	}
}
