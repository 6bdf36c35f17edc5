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

package withdrawal_test

import (
	"testing"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/placement/fleet"
	"github.com/synchub-dev/synchub/controllers/placement/rules"
	"github.com/synchub-dev/synchub/controllers/placement/withdrawal"
)

const team = "root:team"

var noon = time.Unix(1_000_000, 0)

// newInventory returns an inventory with the SyncTargets florin and guilder, and a Location that selects them.
func newInventory() *fleet.Inventory {
	inventory := &fleet.Inventory{Name: "inventory", Locations: []fleet.Location{{
		Inventory: "inventory", Name: "prod", Labels: map[string]string{"env": "prod"},
		Spec: edgev2alpha1.LocationSpec{InstanceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"env": "prod"}}, AvailableTo: edgev2alpha1.AvailableTo{Workspaces: []string{team}}},
	}}}
	for _, name := range []string{"florin", "guilder"} {
		inventory.SyncTargets = append(inventory.SyncTargets, fleet.SyncTarget{
			Inventory: "inventory", Name: name, UID: types.UID(name), Mailbox: logicalcluster.Name("mailbox-" + name), Labels: map[string]string{"env": "prod"},
		})
	}
	return inventory
}

// newPlacement returns a placement that selects the Locations of an environment.
func newPlacement(t *testing.T, generation int64, env string) *rules.Placement {
	t.Helper()
	placement := &edgev2alpha1.EdgePlacement{Spec: edgev2alpha1.EdgePlacementSpec{
		LocationSelectors: []metav1.LabelSelector{{MatchLabels: map[string]string{"env": env}}}, Downsync: []edgev2alpha1.DownsyncObjectTest{{}},
	}}
	placement.UID, placement.Generation = "placement", generation
	compiled, err := rules.Compile(placement)
	if err != nil {
		t.Fatal(err)
	}
	return compiled
}

func forbid(inventory *fleet.Inventory) { inventory.Locations[0].Spec.AvailableTo.Workspaces = nil }

// scenario is a change of an inventory, and how the hub learns of it.
type scenario struct {
	change func(*fleet.Inventory)
	// placement replaces the placement; nil keeps it.
	placement *rules.Placement
	// restarted is true if the former destinations come from a slice of the generation, or zero for the placement's.
	restarted  bool
	generation int64
	// until is the end of a wait that has begun.
	until     time.Time
	copies    int
	unsettled bool
	noGrace   bool
}

// decide returns the SyncTargets that keep their copies, with the ends of their waits.
func (s scenario) decide(t *testing.T) map[string]time.Time {
	t.Helper()
	before, workspace := newPlacement(t, 1, "prod"), rules.Workspace{Cluster: "team", Path: team}
	var former []withdrawal.Former
	for _, destination := range before.ResolveDestinations(fleet.NewSnapshot(newInventory()), workspace, nil).Destinations {
		if s.restarted {
			destination = rules.Destination{SyncTarget: fleet.SyncTarget{Inventory: destination.Inventory, Name: destination.Name, UID: destination.UID}, Location: destination.Location}
		}
		former = append(former, withdrawal.Former{Destination: destination, Generation: max(1, s.generation), Until: s.until})
	}
	inventory, placement := newInventory(), before
	s.change(inventory)
	if s.placement != nil {
		placement = s.placement
	}
	view := fleet.NewSnapshot(inventory)
	decider := &withdrawal.Decider{Placement: placement, Workspace: workspace, View: view, Settled: !s.unsettled, Grace: time.Minute, Now: noon}
	decider.Copies = func(mailboxes map[logicalcluster.Name]bool) (int, bool) {
		return s.copies * len(mailboxes), !s.restarted
	}
	if s.noGrace {
		decider.Grace = 0
	}
	held := map[string]time.Time{}
	for _, one := range decider.Decide(former, placement.ResolveDestinations(view, workspace, nil).Destinations) {
		held[one.Name] = one.Until
	}
	return held
}

func TestDecide(t *testing.T) {
	relabel := func(name string) func(*fleet.Inventory) {
		return func(i *fleet.Inventory) {
			for n := range i.SyncTargets {
				if i.SyncTargets[n].Name == name {
					i.SyncTargets[n].Labels = map[string]string{"env": "test"}
				}
			}
		}
	}
	both := func(until time.Time) map[string]time.Time {
		return map[string]time.Time{"florin": until, "guilder": until}
	}
	end := noon.Add(time.Minute)
	for name, test := range map[string]struct {
		scenario
		want map[string]time.Time
	}{
		"nothing has changed":                   {scenario{change: func(*fleet.Inventory) {}, copies: 9}, nil},
		"the Location is not available":         {scenario{change: forbid, copies: 9}, both(end)},
		"the Location is gone":                  {scenario{change: func(i *fleet.Inventory) { i.Locations = nil }, copies: 9}, both(end)},
		"the Location is being deleted":         {scenario{change: func(i *fleet.Inventory) { i.Locations[0].Terminating = true }, copies: 9}, both(end)},
		"the Location has other labels":         {scenario{change: func(i *fleet.Inventory) { i.Locations[0].Labels = nil }, copies: 9}, both(end)},
		"a label of a SyncTarget":               {scenario{change: relabel("florin"), copies: 9}, map[string]time.Time{"florin": end}},
		"a few copies":                          {scenario{change: relabel("florin"), copies: 3}, nil},
		"few copies, which are all":             {scenario{change: forbid, copies: 1}, both(end)},
		"no copies":                             {scenario{change: forbid, copies: 0}, nil},
		"without a grace":                       {scenario{change: forbid, copies: 9, noGrace: true}, nil},
		"the wait has begun":                    {scenario{change: forbid, copies: 9, until: noon.Add(time.Second)}, both(noon.Add(time.Second))},
		"the wait is over":                      {scenario{change: forbid, copies: 9, until: noon}, nil},
		"a wait that is undone":                 {scenario{change: func(*fleet.Inventory) {}, copies: 9, until: noon.Add(time.Second)}, nil},
		"unsettled":                             {scenario{change: forbid, copies: 9, unsettled: true}, both(time.Time{})},
		"unsettled, and the wait is over":       {scenario{change: forbid, copies: 9, unsettled: true, until: noon}, both(noon)},
		"an unusable Location":                  {scenario{change: func(i *fleet.Inventory) { i.Locations[0].Unusable = "it is too large" }, copies: 9}, both(time.Time{})},
		"unknown labels of a SyncTarget":        {scenario{change: func(i *fleet.Inventory) { i.SyncTargets[0].LabelsUnknown = true }, copies: 9}, map[string]time.Time{"florin": {}}},
		"a SyncTarget is being deleted":         {scenario{change: func(i *fleet.Inventory) { i.SyncTargets[0].Terminating = true }, copies: 9}, nil},
		"a SyncTarget is gone":                  {scenario{change: func(i *fleet.Inventory) { i.SyncTargets = i.SyncTargets[1:] }, copies: 9}, nil},
		"the team selects another Location":     {scenario{change: func(*fleet.Inventory) {}, placement: newPlacement(t, 2, "test"), copies: 9}, nil},
		"the team edits something else":         {scenario{change: forbid, placement: newPlacement(t, 2, "prod"), copies: 9}, both(end)},
		"the team narrows during the wait":      {scenario{change: forbid, placement: newPlacement(t, 2, "test"), copies: 9, until: end}, nil},
		"after a restart":                       {scenario{change: forbid, restarted: true}, both(end)},
		"after a restart, one has other labels": {scenario{change: relabel("florin"), restarted: true}, map[string]time.Time{"florin": end}},
		"after a restart, labels of a Location": {scenario{change: func(i *fleet.Inventory) { i.Locations[0].Labels = nil }, restarted: true}, both(end)},
		"the team narrowed during the restart":  {scenario{change: func(*fleet.Inventory) {}, placement: newPlacement(t, 2, "test"), restarted: true}, nil},
		"both changed during the restart":       {scenario{change: func(i *fleet.Inventory) { i.Locations = nil }, placement: newPlacement(t, 2, "test"), restarted: true}, both(end)},
	} {
		t.Run(name, func(t *testing.T) {
			got := test.decide(t)
			for _, syncTarget := range []string{"florin", "guilder"} {
				until, held := got[syncTarget]
				want, wantHeld := test.want[syncTarget]
				if held != wantHeld || !until.Equal(want) {
					t.Errorf("%s: held %v until %s, want %v until %s", syncTarget, held, until, wantHeld, want)
				}
			}
		})
	}
}

// A placement that chooses other SyncTargets of the Location withdraws at once.
func TestChoiceDoesNotWait(t *testing.T) {
	placement, workspace, view := newPlacement(t, 1, "prod"), rules.Workspace{Cluster: "team", Path: team}, fleet.NewSnapshot(newInventory())
	all := placement.ResolveDestinations(view, workspace, nil).Destinations
	decider := &withdrawal.Decider{Placement: placement, Workspace: workspace, View: view, Settled: true, Grace: time.Minute, Now: noon}
	if held := decider.Decide([]withdrawal.Former{{Destination: all[0], Generation: 1}}, all[1:]); len(held) > 0 {
		t.Errorf("got %v", held)
	}
}

// A wait that has begun does not end because few copies are left.
func TestTheWaitIsNotShortened(t *testing.T) {
	for _, copies := range []int{0, 1, 9} {
		held := scenario{change: forbid, copies: copies, until: noon.Add(time.Second)}.decide(t)
		if len(held) != 2 {
			t.Errorf("%d copies: got %v", copies, held)
		}
	}
}

func TestCause(t *testing.T) {
	workspace := rules.Workspace{Cluster: "team", Path: team}
	before := newPlacement(t, 1, "prod")
	former := withdrawal.Former{Destination: before.ResolveDestinations(fleet.NewSnapshot(newInventory()), workspace, nil).Destinations[0], Generation: 1}
	for name, test := range map[string]struct {
		change    func(*fleet.Inventory)
		placement *rules.Placement
		unsettled bool
		want      withdrawal.Cause
	}{
		"the Location is no longer available": {forbid, before, false, withdrawal.InventoryChanged},
		"the Location is deleted":             {func(i *fleet.Inventory) { i.Locations = nil }, before, false, withdrawal.InventoryChanged},
		"the placement selects other ones":    {func(*fleet.Inventory) {}, newPlacement(t, 2, "test"), false, withdrawal.PlacementChanged},
		"the placement has chosen other ones": {func(*fleet.Inventory) {}, before, false, withdrawal.PlacementChanged},
		"some placements are unknown":         {forbid, before, true, withdrawal.DestinationLost},
		"the SyncTarget is gone":              {func(i *fleet.Inventory) { i.SyncTargets = nil }, before, false, withdrawal.DestinationLost},
	} {
		inventory := newInventory()
		test.change(inventory)
		decider := &withdrawal.Decider{Placement: test.placement, Workspace: workspace, View: fleet.NewSnapshot(inventory), Settled: !test.unsettled, Now: noon}
		if got := decider.Cause(&former); got != test.want {
			t.Errorf("%s: %s", name, string(got))
		}
	}
}
