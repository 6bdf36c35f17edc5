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
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/cli"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/rollout"
	"github.com/synchub-dev/synchub/controllers/placement/fleet"
	"github.com/synchub-dev/synchub/controllers/placement/rules"
)

const placementLong = `Show which objects of the current workload workspace would come to clusters, and which would go, if the EdgePlacements were as in the
files. Nothing is written.

The clusters are found by the Locations of the inventory workspaces that the EdgePlacements use now or name in spec.inventories, as far
as you may read them. The choice of spec.numberOfClusters is the hub's, by the readiness in the status of SyncTargets.

Output, access to clusters and exit status are as with kubectl synchub diff.`

const placementExample = `  kubectl synchub diff placement -f placement.yaml`

func newPlacementCommand(streams genericiooptions.IOStreams) *cobra.Command {
	command, options := newCommand(streams, &cobra.Command{
		Use: "placement -f FILE", Aliases: []string{"edgeplacement", "epl"},
		Short: "Show what a change of EdgePlacements would do to each cluster", Long: placementLong, Example: placementExample,
	}, "EdgePlacements", diffPlacements)
	options.addFieldManager(command)
	return command
}

// diffPlacements finds the items of other EdgePlacements: all objects that come to a cluster, or go.
func diffPlacements(ctx context.Context, o *options, here *cli.Reader, objects []*unstructured.Unstructured) (*scope, error) {
	if !here.Serves("edgeplacements") {
		return nil, errors.New("the current workspace is no workload workspace")
	}
	for _, object := range objects {
		if object.GroupVersionKind() != edgev2alpha1.SchemeGroupVersion.WithKind("EdgePlacement") {
			return nil, fmt.Errorf("%s %s is no EdgePlacement", object.GetKind(), object.GetName())
		}
	}
	w, err := newWorkload(ctx, o, here)
	if err != nil {
		return nil, err
	}
	found, err := w.changesIn(ctx, here, objects)
	if err != nil {
		return nil, err
	}
	after, problems, err := w.placementsAfter(ctx, found.changes)
	if err != nil {
		return nil, err
	}
	changes, err := w.movesBetween(ctx, w.placements, after)
	if err != nil {
		return nil, err
	}
	all := &scope{problems: append(found.problems, problems...)}
	if err := w.addItems(ctx, all, changes, nil); err != nil {
		return nil, err
	}
	known := syncTargetNames{}
	known.addWorkspace(w, after)
	return all, w.checkSyncTargets(ctx, all, known)
}

// placementsAfter returns the EdgePlacements of the workspace after changes of some. Only changed ones are resolved again.
func (w *workload) placementsAfter(ctx context.Context, changes []*change) (after []*selecting, problems []Remark, err error) {
	after = slices.Clone(w.placements)
	for _, one := range changes {
		placement := &edgev2alpha1.EdgePlacement{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(one.after.Object, placement); err != nil {
			return nil, nil, fmt.Errorf("the EdgePlacement %s: %w", one.key.Name, err)
		}
		compiled, err := rules.Compile(placement)
		if err != nil {
			return nil, nil, fmt.Errorf("the EdgePlacement %s: %w", one.key.Name, err)
		}
		index := slices.IndexFunc(after, func(other *selecting) bool { return other.Name == placement.Name })
		var before []edgev2alpha1.SinglePlacement
		if index >= 0 {
			before = after[index].destinations
		}
		resolved := &selecting{Placement: compiled}
		var unread []Remark
		resolved.destinations, unread = w.resolve(ctx, compiled, before)
		problems = append(problems, unread...)
		if index >= 0 {
			after[index] = resolved
		} else {
			after = append(after, resolved)
		}
	}
	return after, problems, nil
}

// resolve returns the destinations of an EdgePlacement, as the hub resolves them from the inventory workspaces that the user may read.
// Of an inventory that cannot be read, the destinations before the change stay. further are inventories that it may use beside those that
// are known from the destinations of the workspace.
func (w *workload) resolve(ctx context.Context, placement *rules.Placement, before []edgev2alpha1.SinglePlacement, further ...logicalcluster.Name) (destinations []edgev2alpha1.SinglePlacement, problems []Remark) {
	about := Object{Kind: "EdgePlacement", Name: placement.Name}
	names, named, problems := w.inventoriesFor(ctx, placement, before, about)
	if len(placement.InventoryPaths) == 0 {
		for _, name := range further {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	var views []*fleet.Inventory
	for _, name := range names {
		view, err := w.inventories.of(name).view(ctx)
		if err != nil {
			problems = append(problems, Remark{Object: about, Message: "which of its clusters are destinations is unknown: " + err.Error()})
			for _, one := range before {
				if one.Cluster == name.String() {
					destinations = append(destinations, one)
				}
			}
			continue
		}
		views = append(views, view)
	}
	resolved := placement.ResolveDestinations(fleet.NewSnapshot(views...), w.self, named)
	if placement.Choice != nil {
		chooser := rules.Chooser{Choice: placement.Choice, Placement: placement.UID, Previous: map[types.UID]bool{}, Readiness: readiness{w}, Now: time.Now()}
		for _, one := range before {
			chooser.Previous[one.SyncTargetUID] = true
		}
		resolved.Destinations = chooser.Choose(resolved.Destinations).Destinations
	}
	for i := range resolved.Destinations {
		one := &resolved.Destinations[i]
		destinations = append(destinations, edgev2alpha1.SinglePlacement{
			Cluster: one.Inventory.String(), LocationName: one.Location, SyncTargetName: one.Name, SyncTargetUID: one.UID, NamespaceTemplate: string(one.Tenancy.Naming),
		})
	}
	return destinations, problems
}

// inventoriesFor returns the logical clusters of the inventory workspaces that an EdgePlacement may use: those that it names, or else the
// workspace itself and the inventories of all its present destinations. named are the ones that it names.
func (w *workload) inventoriesFor(ctx context.Context, placement *rules.Placement, before []edgev2alpha1.SinglePlacement, about Object) (names, named []logicalcluster.Name, problems []Remark) {
	add := func(name logicalcluster.Name) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, path := range placement.InventoryPaths {
		name, err := w.clusterOf(ctx, path)
		if err != nil {
			problems = append(problems, Remark{Object: about, Message: fmt.Sprintf("the inventory workspace %s cannot be read: %v", path, err)})
			continue
		}
		named = append(named, name)
		add(name)
	}
	if len(placement.InventoryPaths) > 0 {
		return names, named, problems
	}
	if w.here.Serves("locations") {
		add(w.self.Cluster)
	}
	for _, one := range before {
		add(logicalcluster.Name(one.Cluster))
	}
	for _, other := range w.placements {
		for _, one := range other.destinations {
			add(logicalcluster.Name(one.Cluster))
		}
	}
	return names, named, problems
}

// clusterOf returns the logical cluster of a workspace.
func (w *workload) clusterOf(ctx context.Context, path string) (logicalcluster.Name, error) {
	reader, err := w.ReaderIn(path)
	if err != nil {
		return "", err
	}
	var list edgev2alpha1.LocationList
	if err := reader.Client.List(ctx, &list); err != nil {
		return "", err
	}
	for i := range list.Items {
		return logicalcluster.From(&list.Items[i]), nil
	}
	return "", errors.New("it has no Location")
}

// readiness reads the readiness of SyncTargets from their status.
type readiness struct{ workload *workload }

// Of implements the interface of [rules.Chooser].
func (r readiness) Of(uid types.UID) (ready bool, since time.Time, known bool) {
	for _, inventory := range r.workload.inventories.open {
		for _, syncTarget := range inventory.syncTargets {
			if syncTarget.UID != uid {
				continue
			}
			condition := meta.FindStatusCondition(syncTarget.Status.Conditions, edgev2alpha1.ConditionReady)
			if condition == nil {
				return false, time.Time{}, false
			}
			return condition.Status == metav1.ConditionTrue, condition.LastTransitionTime.Time, true
		}
	}
	return false, time.Time{}, false
}

// movesBetween returns the objects of the workspace whose destinations differ between two sets of EdgePlacements.
func (w *workload) movesBetween(ctx context.Context, before, after []*selecting) (changes []*placedChange, err error) {
	resources, err := rollout.PlaceableResources(ctx, w.here.Client, nil)
	if err != nil {
		return nil, err
	}
	for _, resource := range resources {
		maySelect := func(one *selecting) bool { return one.MaySelect(resource.Group, resource.Resource) }
		if !slices.ContainsFunc(before, maySelect) && !slices.ContainsFunc(after, maySelect) {
			continue
		}
		served, err := w.here.Served(resource)
		if err != nil {
			return nil, err
		}
		if served == nil {
			// kcp has not bound it yet.
			continue
		}
		err = each(ctx, w.here, served.GroupVersionResource, func(object *unstructured.Unstructured) error {
			one := &change{served: served, key: types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}, before: object, after: object}
			if !rules.IsPlaceable(*newResource(one), object) {
				return nil
			}
			namespace := w.namespaceOf(ctx, one.key.Namespace)
			moved := &placedChange{one, wantedBy(before, one, object, namespace), wantedBy(after, one, object, namespace)}
			for at := range moved.before {
				if moved.after[at] != nil {
					delete(moved.before, at)
					delete(moved.after, at)
				}
			}
			if len(moved.before)+len(moved.after) > 0 {
				changes = append(changes, moved)
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("cannot list %s of the workspace: %w", resource, err)
		}
	}
	return changes, nil
}
