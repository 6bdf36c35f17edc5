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

package rollout

import (
	"context"
	"fmt"
	"slices"

	apisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/bindcompute"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/cli"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/placed"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/suggest"
	"github.com/synchub-dev/synchub/controllers/placement/rules"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/publishedresource"
)

// PlacedObjects returns the objects of the workspace that an EdgePlacement selects, sorted, with the fingerprint of their content. It reads
// only their metadata.
func PlacedObjects(ctx context.Context, r *cli.Reader, placement *edgev2alpha1.EdgePlacement) (found []placed.Object, fingerprint rules.Fingerprint, err error) {
	compiled, err := rules.Compile(placement)
	if err != nil {
		return nil, fingerprint, err
	}
	resources, err := PlaceableResources(ctx, r.Client, placement.Status.UnplacedResources)
	if err != nil {
		return nil, fingerprint, err
	}
	namespaceLabels := namespaceLabels(ctx, r)
	for _, resource := range resources {
		if !compiled.MaySelect(resource.Group, resource.Resource) {
			continue
		}
		served, err := r.Mapper.ResourceFor(resource.WithVersion(""))
		if meta.IsNoMatchError(err) {
			// kcp has not bound it yet.
			continue
		}
		if err != nil {
			return nil, fingerprint, err
		}
		err = r.EachMetadata(ctx, served, metav1.ListOptions{}, func(item *metav1.PartialObjectMetadata) error {
			content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(item)
			object := &unstructured.Unstructured{Object: content}
			if err == nil && item.DeletionTimestamp == nil && selects(compiled, served, object, namespaceLabels) {
				found = append(found, placed.Object{GroupResource: resource, NamespacedName: types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}})
				fingerprint.Add(rules.ContentHash(resource, object))
			}
			return err
		})
		if err != nil {
			return nil, fingerprint, fmt.Errorf("cannot list %s: %w", resource, err)
		}
	}
	slices.SortFunc(found, placed.Object.Compare)
	return found, fingerprint, nil
}

// selects reports whether an EdgePlacement selects an object, as the hub decides it.
func selects(placement *rules.Placement, resource schema.GroupVersionResource, object *unstructured.Unstructured, namespaceLabels func(string) (labels.Labels, bool)) bool {
	if !rules.IsPlaceable(plan.Resource{GroupVersionResource: resource}, object) {
		return false
	}
	selected, _ := placement.Selects(rules.ObjectOf(resource.GroupResource(), object, func() (labels.Labels, bool) { return namespaceLabels(object.GetNamespace()) }))
	return selected
}

// namespaceLabels returns a function that returns the labels of a Namespace; known is false if the user may not read it.
func namespaceLabels(ctx context.Context, r *cli.Reader) func(name string) (set labels.Labels, known bool) {
	read := map[string]labels.Labels{}
	return func(name string) (labels.Labels, bool) {
		if _, ok := read[name]; !ok {
			read[name] = nil
			if found, err := r.Metadata.Resource(cli.NamespacesResource).Get(ctx, name, metav1.GetOptions{}); err == nil {
				read[name] = labels.Set(found.Labels)
			}
		}
		return read[name], read[name] != nil
	}
}

// PlaceableResources returns the resources whose objects placements may select: the workspace has them through the workload
// export, as its own or by an accepted claim that the export still makes, and they are none of unplaced.
func PlaceableResources(ctx context.Context, workspace client.Client, unplaced []string) (found []schema.GroupResource, err error) {
	var bindings apisv1alpha2.APIBindingList
	if err := workspace.List(ctx, &bindings); err != nil {
		return nil, fmt.Errorf("cannot list the APIBindings of the workspace: %w", err)
	}
	add := func(group, resource string) {
		one := schema.GroupResource{Group: group, Resource: resource}
		// The hub's own resources are in the list of bound ones, and a workspace without EdgePlacements has no list of unplaced ones.
		isUnplaced := group == edgev2alpha1.SchemeGroupVersion.Group || publishedresource.IsUnpublishable(one) || slices.Contains(unplaced, one.String())
		if !isUnplaced && !slices.Contains(found, one) {
			found = append(found, one)
		}
	}
	for _, binding := range bindings.Items {
		if export := binding.Spec.Reference.Export; export == nil || export.Name != bindcompute.Export {
			continue
		}
		for _, bound := range binding.Status.BoundResources {
			add(bound.Group, bound.Resource)
		}
		for _, claim := range binding.Spec.PermissionClaims {
			isRequested := func(requested apisv1alpha2.PermissionClaim) bool {
				return requested.GroupResource == claim.GroupResource
			}
			if claim.State == apisv1alpha2.ClaimAccepted && slices.ContainsFunc(binding.Status.ExportPermissionClaims, isRequested) {
				add(claim.Group, claim.Resource)
			}
		}
	}
	return found, nil
}

// GetEdgePlacement returns an EdgePlacement with its slice, which is nil if there is none yet.
func GetEdgePlacement(ctx context.Context, workspace client.Client, name string) (*edgev2alpha1.EdgePlacement, *edgev2alpha1.SinglePlacementSlice, error) {
	placement, slice := &edgev2alpha1.EdgePlacement{}, &edgev2alpha1.SinglePlacementSlice{}
	err := workspace.Get(ctx, types.NamespacedName{Name: name}, placement)
	switch {
	case meta.IsNoMatchError(err):
		return nil, nil, fmt.Errorf("the current workspace is no workload workspace; choose one, or make it one with `kubectl synchub bind compute`: %w", err)
	case apierrors.IsNotFound(err):
		return nil, nil, fmt.Errorf("there is no EdgePlacement %q in the current workspace%s: see `kubectl get edgeplacements`: %w",
			name, suggest.Objects(ctx, workspace, &edgev2alpha1.EdgePlacementList{}, name), err)
	case err != nil:
		return nil, nil, fmt.Errorf("cannot get the EdgePlacement: %w", err)
	}
	err = workspace.Get(ctx, types.NamespacedName{Name: name}, slice)
	switch {
	case apierrors.IsNotFound(err):
		return placement, nil, nil
	case err != nil:
		return nil, nil, fmt.Errorf("cannot get the SinglePlacementSlice: %w", err)
	default:
		return placement, slice, nil
	}
}
