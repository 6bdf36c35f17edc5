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
	"fmt"
	"slices"
	"strings"

	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/types"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/location/selection"
	"github.com/synchub-dev/synchub/controllers/placement/fleet"
	"github.com/synchub-dev/synchub/controllers/placement/rules"
	"github.com/synchub-dev/synchub/provider/wording"
)

// maxNames is the number of names that one message lists.
const maxNames = 10

// errUnknownWorkspace is why the copies in mailboxes cannot be counted for a workspace.
var errUnknownWorkspace = errors.New("its logical cluster is unknown, so copies in mailboxes cannot be attributed to it")

// inventory is an inventory workspace before and after the change of one of its Locations.
type inventory struct {
	cluster logicalcluster.Name
	// paths are the names that placements may use for the workspace.
	paths         []string
	before, after *fleet.Inventory
	location      *edgev2alpha1.Location
	// remaining is spec.availableTo of the Location after the change.
	remaining edgev2alpha1.AvailableTo
	remove    bool
}

// team is a workspace that gains or loses the Location, as far as the user of the command may read it.
type team struct {
	path    string
	cluster logicalcluster.Name
	// placements are the EdgePlacements, and placed the SyncTargets in their slices; err is why they could not be read.
	placements []edgev2alpha1.EdgePlacement
	placed     map[string]map[types.UID]bool
	err        error
	// copies counts the copies in mailboxes by SyncTarget. unread are the SyncTargets whose mailboxes could not be read, with the
	// reasons. They are set only if the placements could not be read.
	copies map[string]int
	unread map[string]error
}

// newView returns an inventory as the rules of placement read it.
func newView(cluster logicalcluster.Name, syncTargets []edgev2alpha1.SyncTarget, locations []edgev2alpha1.Location) *fleet.Inventory {
	view := &fleet.Inventory{Name: cluster}
	for i := range syncTargets {
		one := &syncTargets[i]
		view.SyncTargets = append(view.SyncTargets, fleet.SyncTarget{Inventory: cluster, Name: one.Name, UID: one.UID, Labels: one.Labels, Terminating: one.DeletionTimestamp != nil})
	}
	for i := range locations {
		one := &locations[i]
		view.Locations = append(view.Locations, fleet.Location{
			Inventory: cluster, Name: one.Name, UID: one.UID, Labels: one.Labels, Spec: one.Spec, Terminating: one.DeletionTimestamp != nil,
		})
	}
	return view.Sorted()
}

// syncTargets returns the names of the Location's SyncTargets.
func (i *inventory) syncTargets() (names []string) {
	for _, syncTarget := range i.before.SyncTargets {
		if selects, err := selection.Selects(&i.location.Spec, syncTarget.Labels); err == nil && selects && !syncTarget.Terminating {
			names = append(names, syncTarget.Name)
		}
	}
	return names
}

// describe returns what a workspace gains or loses, one sentence each.
func (i *inventory) describe(of *team) []string {
	if slices.Contains(i.paths, of.path) {
		return []string{fmt.Sprintf("%s has the Location %s itself, and may always use it.", of.path, i.location.Name)}
	}
	if other := i.otherEntry(of.path); other != "" {
		return []string{fmt.Sprintf("%s may use the Location %s in any case, by the entry %s of spec.availableTo.workspaces.", of.path, i.location.Name, other)}
	}
	lines := []string{fmt.Sprintf("%s gains the Location %s with %s.", of.path, i.location.Name, countNames(i.syncTargets(), "SyncTarget"))}
	if i.remove {
		lines[0] = strings.Replace(lines[0], " gains ", " loses ", 1)
	}
	if of.err != nil {
		return append(lines, i.describeUnread(of)...)
	}
	for n := range of.placements {
		if line := i.describePlacement(of, &of.placements[n]); line != "" {
			lines = append(lines, line)
		}
	}
	if len(lines) == 1 {
		lines = append(lines, fmt.Sprintf("No EdgePlacement of %s gets other clusters by that.", of.path))
	}
	return lines
}

// otherEntry returns another entry of the Location that includes the workspace; empty if there is none.
func (i *inventory) otherEntry(path string) string {
	for _, entry := range i.location.Spec.AvailableTo.Workspaces {
		if slices.Contains(i.remaining.Workspaces, entry) && selection.IsAvailableTo(&edgev2alpha1.AvailableTo{Workspaces: []string{entry}}, path) {
			return entry
		}
	}
	return ""
}

// describePlacement returns what changes for the objects of one EdgePlacement; empty if nothing does.
func (i *inventory) describePlacement(of *team, placement *edgev2alpha1.EdgePlacement) string {
	compiled, err := rules.Compile(placement)
	if err != nil {
		return fmt.Sprintf("The EdgePlacement %s of %s is invalid, so it is unknown what it places: %v", placement.Name, of.path, err)
	}
	before, after := i.destinations(of, compiled, i.before), i.destinations(of, compiled, i.after)
	verb := "come to"
	if i.remove {
		before, after, verb = after, before, "leave"
	}
	var names []string
	for uid, name := range after {
		_, stays := before[uid]
		placed, isRead := of.placed[placement.Name]
		if isUnplaced := i.remove && isRead && !placed[uid]; !stays && !isUnplaced {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	status := &placement.Status
	switch {
	case len(names) == 0:
		return ""
	case status.SpecGeneration == 0:
		return fmt.Sprintf("Objects of %s %s %s. The hub has not counted the objects of the EdgePlacement %s yet.", of.path, verb, joinNames(names), placement.Name)
	case i.remove && placement.Spec.DeletionPolicy == edgev2alpha1.DeletionPolicyOrphan:
		return fmt.Sprintf("The hub stops syncing %s of %s to %s. The copies stay there, since spec.deletionPolicy of the EdgePlacement %s is Orphan.", wording.Count(status.Selected, "object", "objects"), of.path, joinNames(names), placement.Name)
	case !i.remove && compiled.Choice != nil:
		verb = "may come to"
	}
	return fmt.Sprintf("%s of %s %s %s (EdgePlacement %s).", wording.Count(status.Selected, "object", "objects"), of.path, verb, joinNames(names), placement.Name)
}

// destinations returns the SyncTargets of the inventory that a placement selects, by UID.
func (i *inventory) destinations(of *team, placement *rules.Placement, view *fleet.Inventory) map[types.UID]string {
	var inventories []logicalcluster.Name
	if slices.ContainsFunc(placement.InventoryPaths, func(path string) bool { return slices.Contains(i.paths, path) }) {
		inventories = []logicalcluster.Name{i.cluster}
	}
	found := map[types.UID]string{}
	for _, destination := range placement.ResolveDestinations(fleet.NewSnapshot(view), rules.Workspace{Cluster: of.cluster, Path: of.path}, inventories).Destinations {
		found[destination.UID] = destination.Name
	}
	return found
}

// describeUnread describes a workspace whose EdgePlacements could not be read.
func (i *inventory) describeUnread(of *team) []string {
	lines := []string{fmt.Sprintf("The EdgePlacements of %s could not be read: %v", of.path, of.err)}
	if !i.remove {
		return lines
	}
	var counted, unread []string
	for _, name := range i.syncTargets() {
		switch err := of.unread[name]; {
		case err != nil:
			unread = append(unread, fmt.Sprintf("Its copies for %s could not be counted: %v", name, err))
		case of.copies[name] > 0:
			counted = append(counted, fmt.Sprintf("%s (%d)", name, of.copies[name]))
		}
	}
	switch {
	case len(counted) > 0:
		lines = append(lines, fmt.Sprintf("The mailboxes have copies of objects of %s for %s. They leave unless another Location offers the clusters.", of.path, joinNames(counted)))
	case len(unread) == 0:
		lines = append(lines, fmt.Sprintf("The mailboxes have no copy of an object of %s.", of.path))
	}
	return append(lines, unread...)
}

// countNames returns names with their number.
func countNames(names []string, kind string) string {
	switch len(names) {
	case 0:
		return "no " + kind
	case 1:
		return "the " + kind + " " + names[0]
	default:
		return fmt.Sprintf("the %d %ss %s", len(names), kind, joinNames(names))
	}
}

// joinNames joins the first names as in a sentence.
func joinNames(names []string) string {
	if len(names) < 2 || len(names) > maxNames {
		return wording.First(maxNames, names)
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " and " + names[last]
}
