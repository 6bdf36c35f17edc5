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

package diff

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/suggest"
)

// syncTargetNames are the names that --sync-targets may have in a question about workload workspaces: the destinations before and after
// the change, by inventory workspace.
type syncTargetNames map[logicalcluster.Name]sets.Set[string]

// addInventory adds an inventory workspace with names of SyncTargets.
func (n syncTargetNames) addInventory(inventory logicalcluster.Name, names ...string) {
	if n[inventory] == nil {
		n[inventory] = sets.New[string]()
	}
	n[inventory].Insert(names...)
}

// addPlacements adds the destinations of EdgePlacements.
func (n syncTargetNames) addPlacements(placements []*selecting) {
	for _, one := range placements {
		for _, destination := range one.destinations {
			n.addInventory(logicalcluster.Name(destination.Cluster), destination.SyncTargetName)
		}
	}
}

// addWorkspace adds the destinations of a workload workspace, before and after the change, and the workspace itself if it is an
// inventory workspace too.
func (n syncTargetNames) addWorkspace(of *workload, after []*selecting) {
	n.addPlacements(of.placements)
	n.addPlacements(after)
	if of.here.Serves("synctargets") {
		n.addInventory(of.self.Cluster)
	}
}

// checkSyncTargets returns an error if --sync-targets has a name that is no destination and no other SyncTarget that the user may list: a
// mistyped name would look like a cluster where nothing changes. Destinations that could not be found out are problems already.
func (o *options) checkSyncTargets(ctx context.Context, found *scope, known syncTargetNames) error {
	if len(found.problems) > 0 {
		return nil
	}
	all := sets.New[string]()
	for _, names := range known {
		all = all.Union(names)
	}
	if all.HasAll(o.syncTargets...) {
		return nil
	}
	inventories := inventories{options: o}
	for name := range known {
		inventory := inventories.of(name)
		inventory.read(ctx)
		all.Insert(slices.Collect(maps.Keys(inventory.syncTargets))...)
	}
	for _, name := range o.syncTargets {
		if !all.Has(name) {
			return fmt.Errorf("--sync-targets: the cluster %s is no destination before or after the change, and no SyncTarget that you may list%s", name, suggest.Names(name, sets.List(all)))
		}
	}
	return nil
}
