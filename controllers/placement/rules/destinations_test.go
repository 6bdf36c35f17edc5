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

package rules_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/kcp-dev/logicalcluster/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/placement/customization"
	"github.com/synchub-dev/synchub/controllers/placement/fleet"
	"github.com/synchub-dev/synchub/controllers/placement/rules"
)

func syncTarget(inventory, name, env string) fleet.SyncTarget {
	return fleet.SyncTarget{
		Inventory: logicalcluster.Name(inventory), Name: name, UID: types.UID(inventory + "-" + name),
		Labels: map[string]string{"env": env}, Mailbox: logicalcluster.Name("mb-" + inventory + "-" + name),
	}
}

func locationOf(inventory, name, env string, availableTo ...string) fleet.Location {
	selector := labelled("env", env)
	return fleet.Location{
		Inventory: logicalcluster.Name(inventory), Name: name, Labels: map[string]string{"env": env},
		Spec: edgev2alpha1.LocationSpec{InstanceSelector: &selector, AvailableTo: edgev2alpha1.AvailableTo{Workspaces: availableTo}},
	}
}

// view has two inventories: own is a workload workspace too, and shared makes all available to root:team, which
// may upsync from dev.
func view() *fleet.Snapshot {
	terminating := syncTarget("shared", "leaving", "prod")
	terminating.Terminating = true
	unknown := syncTarget("shared", "large", "prod")
	unknown.LabelsUnknown = true
	all := fleet.Location{Inventory: "shared", Name: "every", Labels: map[string]string{"env": "prod"}, Spec: edgev2alpha1.LocationSpec{
		AvailableTo: edgev2alpha1.AvailableTo{Workspaces: []string{"root:team"}},
	}}
	reports := fleet.Location{Inventory: "shared", Name: "reports", Labels: map[string]string{"env": "prod"}, Spec: edgev2alpha1.LocationSpec{
		InstanceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"env": "dev"}},
		AvailableTo:      edgev2alpha1.AvailableTo{Workspaces: []string{"root:team"}, Upsync: true},
	}}
	// This Location selects the same SyncTargets as reports, and sorts after it.
	rest := locationOf("shared", "rest", "prod", "root:team")
	rest.Spec.InstanceSelector = reports.Spec.InstanceSelector
	broken, ending := locationOf("shared", "broken", "prod", "root:team"), locationOf("shared", "ending", "prod", "root:team")
	broken.Unusable = "its selector is invalid"
	ending.Terminating = true
	return fleet.NewSnapshot(
		&fleet.Inventory{Name: "own", SyncTargets: []fleet.SyncTarget{syncTarget("own", "a", "prod")}, Locations: []fleet.Location{locationOf("own", "prod", "prod")}},
		&fleet.Inventory{
			Name:        "shared",
			SyncTargets: []fleet.SyncTarget{syncTarget("shared", "b", "prod"), syncTarget("shared", "c", "dev"), unknown, terminating},
			Locations:   []fleet.Location{broken, ending, locationOf("shared", "dev", "dev"), all, locationOf("shared", "prod", "prod", "root:team"), reports, rest},
		},
	)
}

func TestResolve(t *testing.T) {
	prod := []metav1.LabelSelector{labelled("env", "prod")}
	for name, c := range map[string]struct {
		spec        edgev2alpha1.EdgePlacementSpec
		workspace   rules.Workspace
		inventories []logicalcluster.Name
		locations   int
		want        string
	}{
		"its own Location":                   {edgev2alpha1.EdgePlacementSpec{LocationSelectors: prod}, rules.Workspace{Cluster: "own"}, nil, 1, "own/prod/a"},
		"nobody else's by default":           {edgev2alpha1.EdgePlacementSpec{LocationSelectors: prod}, rules.Workspace{Cluster: "other", Path: "root:other"}, nil, 0, ""},
		"no selector selects no Location":    {edgev2alpha1.EdgePlacementSpec{}, rules.Workspace{Cluster: "own"}, nil, 0, ""},
		"an empty selector selects all":      {edgev2alpha1.EdgePlacementSpec{LocationSelectors: []metav1.LabelSelector{{}}}, rules.Workspace{Cluster: "own"}, nil, 1, "own/prod/a"},
		"what others lend, each once":        {edgev2alpha1.EdgePlacementSpec{LocationSelectors: prod}, rules.Workspace{Cluster: "team", Path: "root:team"}, nil, 4, "shared/every/b shared/every/c"},
		"only of the inventories it names":   {edgev2alpha1.EdgePlacementSpec{LocationSelectors: prod, InventoryWorkspaces: []string{"root:own"}}, rules.Workspace{Cluster: "team", Path: "root:team"}, []logicalcluster.Name{"own"}, 0, ""},
		"of an inventory that was not found": {edgev2alpha1.EdgePlacementSpec{LocationSelectors: prod, InventoryWorkspaces: []string{"root:gone"}}, rules.Workspace{Cluster: "team", Path: "root:team"}, nil, 0, ""},
		"of one of them":                     {edgev2alpha1.EdgePlacementSpec{LocationSelectors: prod, InventoryWorkspaces: []string{"root:shared"}}, rules.Workspace{Cluster: "team", Path: "root:team"}, []logicalcluster.Name{"shared"}, 4, "shared/every/b shared/every/c"},
	} {
		placement := compile(t, c.spec)
		resolved := placement.ResolveDestinations(view(), c.workspace, c.inventories)
		var got []string
		for _, destination := range resolved.Destinations {
			got = append(got, fmt.Sprintf("%s/%s/%s", destination.Inventory, destination.Location, destination.Name))
		}
		if strings.Join(got, " ") != c.want || resolved.Locations != c.locations {
			t.Errorf("%s: %d Locations, %v", name, resolved.Locations, got)
		}
	}
}

// ResolveDestinations and SelectsSyncTarget agree about each SyncTarget.
func TestSelectsSyncTarget(t *testing.T) {
	for _, workspace := range []rules.Workspace{{Cluster: "own"}, {Cluster: "team", Path: "root:team"}, {Cluster: "other", Path: "root:other"}} {
		placement := compile(t, edgev2alpha1.EdgePlacementSpec{LocationSelectors: []metav1.LabelSelector{labelled("env", "prod")}})
		destinations, upsyncs := map[types.UID]bool{}, map[types.UID]bool{}
		for _, destination := range placement.ResolveDestinations(view(), workspace, nil).Destinations {
			destinations[destination.UID], upsyncs[destination.UID] = true, destination.MayUpsync
		}
		if upsyncs["shared-b"] || workspace.Cluster == "team" != upsyncs["shared-c"] || workspace.Cluster == "own" != upsyncs["own-a"] {
			t.Errorf("%s may upsync from %v", workspace.Cluster, upsyncs)
		}
		for inventory := range view().Inventories() {
			for _, one := range inventory.SyncTargets {
				if selected, mayUpsync := placement.SelectsSyncTarget(inventory, &one, workspace, nil); selected != destinations[one.UID] || mayUpsync != upsyncs[one.UID] {
					t.Errorf("%s, %s: %v, %v", workspace.Cluster, one.UID, selected, mayUpsync)
				}
			}
		}
	}
}

// A destination has the parameters of its SyncTarget, then the parameters of the Location that the slice names,
// and no other ones.
func TestParametersOfADestination(t *testing.T) {
	till := syncTarget("own", "till", "prod")
	till.Annotations = map[string]string{"city": "Gouda"}
	first, second := locationOf("own", "a", "prod"), locationOf("own", "b", "prod")
	first.Annotations, second.Annotations = map[string]string{"tier": "gold"}, map[string]string{"tier": "lead"}
	placement, err := rules.Compile(&edgev2alpha1.EdgePlacement{Spec: edgev2alpha1.EdgePlacementSpec{LocationSelectors: []metav1.LabelSelector{{}}}})
	if err != nil {
		t.Fatal(err)
	}
	inventory := &fleet.Inventory{Name: "own", SyncTargets: []fleet.SyncTarget{till}, Locations: []fleet.Location{first, second}}
	resolved := placement.ResolveDestinations(fleet.NewSnapshot(inventory), rules.Workspace{Cluster: "own"}, nil)
	if len(resolved.Destinations) != 1 || resolved.Destinations[0].Location != "a" {
		t.Fatalf("got %+v", resolved.Destinations)
	}
	want := customization.Parameters{till.Labels, till.Annotations, first.Labels, first.Annotations}
	if got := resolved.Destinations[0].Parameters(); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// A label of the SyncTarget, even an empty one, takes precedence over its Location's label.
func TestGroupOfADestination(t *testing.T) {
	till := syncTarget("own", "till", "prod")
	till.Labels["wave"] = ""
	from := locationOf("own", "a", "prod")
	from.Labels["wave"], from.Labels["region"] = "last", "eu"
	placement := compile(t, edgev2alpha1.EdgePlacementSpec{LocationSelectors: []metav1.LabelSelector{{}}})
	inventory := &fleet.Inventory{Name: "own", SyncTargets: []fleet.SyncTarget{till}, Locations: []fleet.Location{from}}
	resolved := placement.ResolveDestinations(fleet.NewSnapshot(inventory), rules.Workspace{Cluster: "own"}, nil).Destinations
	if len(resolved) != 1 {
		t.Fatalf("got %+v", resolved)
	}
	for label, want := range map[string]string{"env": "prod", "region": "eu", "wave": "", "other": ""} {
		if got := resolved[0].Group(label); got != want {
			t.Errorf("%s: want %q, got %q", label, want, got)
		}
	}
	if got := (&rules.Destination{SyncTarget: till}).Group("region"); got != "" {
		t.Errorf("without a Location: got %q", got)
	}
}
