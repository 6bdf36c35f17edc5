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

package bindcompute

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	apisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/provider/wording"
)

// maxNames is the number of names that one message lists.
const maxNames = 10

// Selection selects the objects that [Workspace.PlanRemoval] removes.
type Selection struct {
	// Inventory is the path that was given to Bind, and Name the name of the EdgePlacement. At most one of them is set.
	// Without both, All selects each EdgePlacement that Bind made.
	Inventory, Name string
	// All selects the APIBinding too.
	All bool
}

// Removal lists the objects to remove from a workload workspace.
type Removal struct {
	Placements []edgev2alpha1.EdgePlacement
	// Binding is nil if it stays or does not exist.
	Binding *apisv1alpha2.APIBinding
	// Effects describe the consequences, one line each.
	Effects []string
}

// PlanRemoval finds the objects to remove. It returns an error if the selection selects nothing, if it selects an
// EdgePlacement that Bind did not make, or if it selects the APIBinding while another EdgePlacement would remain.
func (w *Workspace) PlanRemoval(ctx context.Context, selection Selection) (*Removal, error) {
	removal := &Removal{}
	isUnbound := false
	if selection.All {
		binding, err := w.Find(ctx)
		if err != nil {
			return nil, err
		}
		removal.Binding = binding
		isUnbound = binding != nil && !hasPlacements(binding)
	}
	if !isUnbound {
		all, err := w.listPlacements(ctx)
		if err != nil {
			return nil, err
		}
		if removal.Placements, err = selectPlacements(all, selection); err != nil {
			return nil, err
		}
		if err := checkRemaining(all, removal); err != nil {
			return nil, err
		}
	}
	if len(removal.Placements) == 0 && removal.Binding == nil {
		return nil, fmt.Errorf("there is nothing to undo: the workspace has neither an EdgePlacement of `kubectl synchub bind compute` nor an APIBinding of the export %s", Export)
	}
	for i := range removal.Placements {
		removal.Effects = append(removal.Effects, w.describePlacement(ctx, &removal.Placements[i]))
	}
	if removal.Binding != nil {
		removal.Effects = append(removal.Effects, w.describeBinding(ctx, removal.Binding))
	}
	return removal, nil
}

// hasPlacements reports whether the workspace may have EdgePlacements. kcp never takes a bound API back. If the name of one
// API is taken, the binding stays in phase Binding with all other APIs bound, so its phase does not count.
func hasPlacements(binding *apisv1alpha2.APIBinding) bool {
	return slices.ContainsFunc(binding.Status.BoundResources, func(bound apisv1alpha2.BoundAPIResource) bool {
		return bound.Group == edgev2alpha1.GroupName && bound.Resource == "edgeplacements"
	})
}

func (w *Workspace) listPlacements(ctx context.Context) ([]edgev2alpha1.EdgePlacement, error) {
	var list edgev2alpha1.EdgePlacementList
	err := w.Client.List(ctx, &list)
	switch {
	case isNotServed(err):
		return nil, fmt.Errorf("the current context leads to no workload workspace: it serves no EdgePlacements. Choose another with --context or --workspace: %w", err)
	case err != nil:
		return nil, fmt.Errorf("cannot list the EdgePlacements of the workspace: %w", err)
	}
	return list.Items, nil
}

// selectPlacements returns the selected EdgePlacements.
func selectPlacements(all []edgev2alpha1.EdgePlacement, selection Selection) ([]edgev2alpha1.EdgePlacement, error) {
	found := slices.DeleteFunc(slices.Clone(all), func(placement edgev2alpha1.EdgePlacement) bool {
		inventory := InventoryOf(&placement)
		switch {
		case selection.Name != "":
			return placement.Name != selection.Name
		case selection.Inventory != "":
			return inventory != selection.Inventory
		default:
			return inventory == ""
		}
	})
	switch {
	case selection.Name != "" && len(found) == 0:
		return nil, fmt.Errorf("there is no EdgePlacement %s in the workspace: see `kubectl get edgeplacements`", selection.Name)
	case selection.Inventory != "" && len(found) == 0:
		return nil, fmt.Errorf("there is no EdgePlacement that `kubectl synchub bind compute` made for the inventory workspace %s: see `kubectl get edgeplacements`", selection.Inventory)
	case selection.Inventory != "" && len(found) > 1:
		return nil, fmt.Errorf("several EdgePlacements are for the inventory workspace %s: choose one of %s with --name", selection.Inventory, namesOf(found))
	case selection.Name != "" && InventoryOf(&found[0]) == "":
		return nil, fmt.Errorf("the EdgePlacement %s was not made by `kubectl synchub bind compute` and is left as it is: delete it with `kubectl delete edgeplacement %s`", selection.Name, selection.Name)
	}
	return found, nil
}

// InventoryOf returns the path of the inventory workspace for which Bind made an EdgePlacement. It is empty if Bind did not make it.
func InventoryOf(placement client.Object) string {
	return placement.GetAnnotations()[edgev2alpha1.AnnotationBindCompute]
}

// checkRemaining returns an error if the APIBinding is to be removed and an EdgePlacement would remain: kcp would delete the
// EdgePlacement with the APIBinding, although the user did not select it.
func checkRemaining(all []edgev2alpha1.EdgePlacement, removal *Removal) error {
	if removal.Binding == nil {
		return nil
	}
	remaining := slices.DeleteFunc(slices.Clone(all), func(placement edgev2alpha1.EdgePlacement) bool {
		return slices.ContainsFunc(removal.Placements, func(removed edgev2alpha1.EdgePlacement) bool { return removed.Name == placement.Name })
	})
	if len(remaining) == 0 {
		return nil
	}
	return fmt.Errorf("nothing was changed: the EdgePlacements %s would be deleted with the APIBinding %s, and their objects withdrawn from the clusters. Remove them first, with `kubectl synchub unbind compute` or `kubectl delete edgeplacement`",
		namesOf(remaining), removal.Binding.Name)
}

// namesOf returns the first names.
func namesOf(placements []edgev2alpha1.EdgePlacement) string {
	names := make([]string, 0, len(placements))
	for i := range placements {
		names = append(names, placements[i].Name)
	}
	return wording.First(maxNames, names)
}

// describePlacement describes the effect of deleting an EdgePlacement.
func (w *Workspace) describePlacement(ctx context.Context, placement *edgev2alpha1.EdgePlacement) string {
	status := placement.Status
	if status.Placed == 0 {
		return fmt.Sprintf("The EdgePlacement %s goes. It reports no placed objects.", placement.Name)
	}
	where := wording.Count(status.Destinations, "cluster", "clusters")
	var slice edgev2alpha1.SinglePlacementSlice
	if err := w.Client.Get(ctx, client.ObjectKeyFromObject(placement), &slice); err == nil && len(slice.Destinations) > 0 {
		names := make([]string, 0, len(slice.Destinations))
		for _, destination := range slice.Destinations {
			names = append(names, destination.SyncTargetName)
		}
		where = wording.First(maxNames, names)
	}
	if placement.Spec.DeletionPolicy == edgev2alpha1.DeletionPolicyOrphan {
		return fmt.Sprintf("The EdgePlacement %s goes. On %[3]s stays %[2]s of its objects, since its deletionPolicy is Orphan.", placement.Name, wording.Count(status.Placed, "copy", "copies"), where)
	}
	return fmt.Sprintf("The EdgePlacement %s goes. The hub withdraws %s from %s, except those that another EdgePlacement places there.", placement.Name, wording.Of(status.Selected, "its object", fmt.Sprintf("its %s objects", strconv.FormatInt(status.Selected, 10))), where)
}

// describeBinding describes the effect of deleting the APIBinding, which kcp extends to all objects of its APIs.
func (w *Workspace) describeBinding(ctx context.Context, binding *apisv1alpha2.APIBinding) string {
	var counts []string
	for _, bound := range binding.Status.BoundResources {
		if bound.Group == edgev2alpha1.GroupName {
			continue
		}
		resource := schema.GroupResource{Group: bound.Group, Resource: bound.Resource}
		switch count, err := w.Count(ctx, resource); {
		case err != nil:
			counts = append(counts, resource.String()+" (not counted)")
		case count > 0:
			counts = append(counts, fmt.Sprintf("%s (%d)", resource, count))
		}
	}
	effect := fmt.Sprintf("The APIBinding %s goes. With it, kcp deletes all objects of its APIs in the workspace", binding.Name)
	if len(counts) == 0 {
		return effect + "; there are none."
	}
	return effect + ": " + strings.Join(counts, ", ") + "."
}

// Unbind deletes the objects of a removal. It deletes the APIBinding only after all EdgePlacements are gone. With wait it
// returns when all objects are gone.
func (w *Workspace) Unbind(ctx context.Context, removal *Removal, wait bool) error {
	for i := range removal.Placements {
		placement := &removal.Placements[i]
		if err := w.Remove(ctx, "EdgePlacement", placement, wait || removal.Binding != nil); err != nil {
			return err
		}
	}
	if removal.Binding == nil {
		return nil
	}
	if err := w.checkNoneLeft(ctx, removal); err != nil {
		return err
	}
	return w.Remove(ctx, "APIBinding", removal.Binding, wait)
}

// checkNoneLeft returns an error if somebody has created an EdgePlacement since the removal was planned.
func (w *Workspace) checkNoneLeft(ctx context.Context, removal *Removal) error {
	if w.DryRun || !hasPlacements(removal.Binding) {
		return nil
	}
	left, err := w.listPlacements(ctx)
	if err != nil {
		return err
	}
	return checkRemaining(left, &Removal{Binding: removal.Binding})
}
