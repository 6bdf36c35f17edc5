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

package rules

import (
	"cmp"
	"slices"

	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/synchub-dev/synchub/controllers/location/selection"
	"github.com/synchub-dev/synchub/controllers/placement/customization"
	"github.com/synchub-dev/synchub/controllers/placement/fleet"
)

// Workspace is the workload workspace of a placement.
type Workspace struct {
	Cluster logicalcluster.Name
	// Path is verified (see [selection.IsAvailableTo]); empty while it is unknown.
	Path string
}

// Destination is a SyncTarget that a placement selects.
type Destination struct {
	fleet.SyncTarget
	// Location is the first Location, by name, that selects the SyncTarget.
	Location string
	// location is the Location that the field Location names.
	location *fleet.Location
	// MayUpsync is true if one of the Locations that select the SyncTarget lets the workspace upsync.
	MayUpsync bool
}

// Parameters returns the parameters of the destination: labels before annotations, and the SyncTarget's before
// the Location's.
func (d *Destination) Parameters() customization.Parameters {
	return ParametersOf(&d.SyncTarget, d.location)
}

// ParametersOf returns the parameters of a SyncTarget that a Location selects. The Location may be nil.
func ParametersOf(syncTarget *fleet.SyncTarget, location *fleet.Location) customization.Parameters {
	parameters := customization.Parameters{syncTarget.Labels, syncTarget.Annotations}
	if location != nil {
		parameters = append(parameters, location.Labels, location.Annotations)
	}
	return parameters
}

// Group returns the value of a label: the SyncTarget's, else the Location's, else the empty value.
func (d *Destination) Group(label string) string {
	if value, ok := d.Labels[label]; ok || d.location == nil {
		return value
	}
	return d.location.Labels[label]
}

// Resolution are the destinations of a placement.
type Resolution struct {
	// Destinations are sorted by inventory, Location and SyncTarget.
	Destinations []Destination
	// Locations is the number of Locations that the placement selects and may use.
	Locations int
	// Matching is the number of SyncTargets of these Locations, before a Choice.
	Matching int
}

// ResolveDestinations returns the SyncTargets of the Locations that the placement selects and that are available to its workspace.
// inventories are the logical clusters of [Placement.Inventories]; they count only if the placement names any.
func (p *Placement) ResolveDestinations(view *fleet.Snapshot, workspace Workspace, inventories []logicalcluster.Name) (resolved Resolution) {
	for inventory := range view.Inventories() {
		// found maps the names of SyncTargets to the positions of their destinations.
		found := map[string]int{}
		for _, from := range p.locationsOf(inventory, workspace, inventories) {
			resolved.Locations++
			selector := from.Selector()
			for _, syncTarget := range inventory.SyncTargets {
				if !isSelected(&syncTarget, selector) {
					continue
				}
				position, known := found[syncTarget.Name]
				if !known {
					position = len(resolved.Destinations)
					found[syncTarget.Name] = position
					resolved.Destinations = append(resolved.Destinations, Destination{SyncTarget: syncTarget, Location: from.Name, location: from})
				}
				destination := &resolved.Destinations[position]
				destination.MayUpsync = destination.MayUpsync || workspace.mayUpsync(from)
			}
		}
	}
	slices.SortFunc(resolved.Destinations, func(a, b Destination) int {
		return cmp.Or(cmp.Compare(a.Inventory, b.Inventory), cmp.Compare(a.Location, b.Location), cmp.Compare(a.Name, b.Name))
	})
	resolved.Matching = len(resolved.Destinations)
	return resolved
}

// SelectsSyncTarget reports whether the placement selects one SyncTarget of an inventory, and may upsync from its cluster.
func (p *Placement) SelectsSyncTarget(inventory *fleet.Inventory, syncTarget *fleet.SyncTarget, workspace Workspace, inventories []logicalcluster.Name) (selected, mayUpsync bool) {
	for _, from := range p.locationsOf(inventory, workspace, inventories) {
		if isSelected(syncTarget, from.Selector()) {
			selected, mayUpsync = true, mayUpsync || workspace.mayUpsync(from)
		}
	}
	return selected, mayUpsync
}

// locationsOf returns the Locations of an inventory that the placement selects and its workspace may use, sorted by name.
func (p *Placement) locationsOf(inventory *fleet.Inventory, workspace Workspace, inventories []logicalcluster.Name) (selected []*fleet.Location) {
	if len(p.InventoryPaths) > 0 && !slices.Contains(inventories, inventory.Name) {
		return nil
	}
	for i := range inventory.Locations {
		from := &inventory.Locations[i]
		if from.Unusable == "" && !from.Terminating && workspace.mayUse(from) && matchesAny(p.locations, labels.Set(from.Labels)) {
			selected = append(selected, from)
		}
	}
	return selected
}

// SelectsLocation reports whether the placement selects a Location, apart from whether its workspace may use it.
func (p *Placement) SelectsLocation(from *fleet.Location, inventories []logicalcluster.Name) bool {
	return (len(p.InventoryPaths) == 0 || slices.Contains(inventories, from.Inventory)) && matchesAny(p.locations, labels.Set(from.Labels))
}

// SelectsLocationOf reports whether the placement selects the Location of a destination, with the labels that it had when the
// destination was resolved. known is false if these are unknown.
func (p *Placement) SelectsLocationOf(destination *Destination, inventories []logicalcluster.Name) (selects, known bool) {
	if destination.location == nil {
		return false, false
	}
	return p.SelectsLocation(destination.location, inventories), true
}

func isSelected(syncTarget *fleet.SyncTarget, selector labels.Selector) bool {
	return !syncTarget.Terminating && !syncTarget.LabelsUnknown && selector.Matches(labels.Set(syncTarget.Labels))
}

// mayUse reports whether a Location is available to the workspace: it belongs to the workspace, or names it.
func (w Workspace) mayUse(from *fleet.Location) bool {
	return from.Inventory == w.Cluster || selection.IsAvailableTo(&from.Spec.AvailableTo, w.Path)
}

// mayUpsync reports whether a Location that the workspace may use lets it upsync from its clusters.
func (w Workspace) mayUpsync(from *fleet.Location) bool {
	return from.Inventory == w.Cluster || from.Spec.AvailableTo.Upsync
}
