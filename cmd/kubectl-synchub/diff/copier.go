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

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/cli"
	"github.com/synchub-dev/synchub/controllers/placement/customization"
	"github.com/synchub-dev/synchub/controllers/placement/fleet"
	"github.com/synchub-dev/synchub/controllers/placement/rules"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/plan/policy"
	"github.com/synchub-dev/synchub/controllers/plan/transform"
)

// copier makes the copies of objects of a workload workspace that the hub would put into mailboxes.
type copier struct {
	workload *workload
	// customizers are the Customizers of the workspace that were read; nil ones do not exist. overrides are in the manifests.
	customizers, overrides map[types.NamespacedName]*edgev2alpha1.Customizer
}

// copySource is where a copy comes from, and where it goes.
type copySource struct {
	workspace   rules.Workspace
	destination edgev2alpha1.SinglePlacement
	cluster     *cluster
	// resource is the resource of the copy.
	resource *plan.Resource
}

// twinOf returns the inert twin that mailboxes can have of a resource; zero if there is none.
func twinOf(resource schema.GroupVersionResource) schema.GroupVersionResource {
	if _, hasTwin := policy.FindTwinned(resource.Group, resource.Resource, ""); !hasTwin {
		return schema.GroupVersionResource{}
	}
	return schema.GroupVersionResource{Group: policy.TwinGroup, Version: resource.Version, Resource: resource.Resource}
}

// newResource returns what is known of a resource without its rules.
func newResource(of *change) *plan.Resource {
	return &plan.Resource{GroupVersionResource: of.served.GroupVersionResource, Kind: of.served.Kind, Namespaced: of.served.Namespaced}
}

// nameOf returns the name of the copy in the mailbox.
func (s *copySource) nameOf(key types.NamespacedName) types.NamespacedName {
	naming := settingsOf(s.destination, s.cluster.syncTarget).Naming
	if s.resource.GroupResource() == cli.NamespacesResource.GroupResource() {
		return types.NamespacedName{Name: naming.Namespace(s.workspace.Cluster, key.Name)}
	}
	return types.NamespacedName{Namespace: naming.Namespace(s.workspace.Cluster, key.Namespace), Name: key.Name}
}

// override takes a Customizer as it would be after the change.
func (c *copier) override(key types.NamespacedName, object *unstructured.Unstructured) error {
	customizer := &edgev2alpha1.Customizer{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, customizer); err != nil {
		return fmt.Errorf("the Customizer %s: %w", key, err)
	}
	if c.overrides == nil {
		c.overrides = map[types.NamespacedName]*edgev2alpha1.Customizer{}
	}
	c.overrides[key] = customizer
	return nil
}

// copy returns the copy of an object in the mailbox of a destination, by the Customizers before or after the change. The error wraps
// errRefused if the hub would not place the object there.
func (c *copier) copy(ctx context.Context, from copySource, source *unstructured.Unstructured, deletion ownership.Policy, isAfter bool) (*unstructured.Unstructured, error) {
	settings, resource := settingsOf(from.destination, from.cluster.syncTarget), from.resource
	if err := checkPlaceable(from, source); err != nil {
		return nil, fmt.Errorf("%w: %w", errRefused, err)
	}
	customized, err := c.customize(ctx, from, source, isAfter)
	if err != nil {
		return nil, err
	}
	moved, mark, err := from.workspace.AtDestination(&settings, resource, customized)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errRefused, err)
	}
	key := from.nameOf(types.NamespacedName{Namespace: source.GetNamespace(), Name: source.GetName()})
	owner := ownership.Owner{Hub: c.workload.hub, SyncTarget: from.cluster.syncTarget.UID, Sealer: ownership.InsecureSealer}
	up := transform.Up{
		Owner: owner.ForPlacements(), Mailbox: from.workspace.Cluster.String(), SyncTarget: from.cluster.syncTarget.Name, Hasher: ownership.NewHasher([]byte("diff")),
		Resource: resource.GroupResource(), Version: resource.Version, Kind: resource.Kind, Namespaced: resource.Namespaced,
		KeepsSettings: true,
	}
	desired, err := up.Desired(moved, resource.TargetAPI().GroupResource(), transform.SyncSpec{Policy: deletion, Namespace: key.Namespace, Name: key.Name, Workspace: mark})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errRefused, err)
	}
	return desired.Object, nil
}

// checkPlaceable returns why an object of a resource is placed nowhere, or not at the destination.
func checkPlaceable(from copySource, source *unstructured.Unstructured) error {
	resource := from.resource
	if !resource.Allowed.PrivilegedUpsync {
		if err := policy.CheckUpsync(resource.GroupResource(), resource.GroupResource()); err != nil {
			return fmt.Errorf("%s act inside the mailbox workspace itself", resource.GroupResource())
		}
	}
	settings := settingsOf(from.destination, from.cluster.syncTarget)
	inWorkload := resource.InWorkload().GroupResource()
	if !resource.Namespaced && resource.GroupResource() != cli.NamespacesResource.GroupResource() && !settings.AllowsClusterScoped(inWorkload) {
		return fmt.Errorf("%s are cluster-scoped, and each workspace has only its own namespaces on this cluster", inWorkload)
	}
	return policy.CheckReservedName(resource.GroupResource(), from.nameOf(types.NamespacedName{Namespace: source.GetNamespace(), Name: source.GetName()}))
}

// customize returns an object with the values of the destination.
func (c *copier) customize(ctx context.Context, from copySource, source *unstructured.Unstructured, isAfter bool) (*unstructured.Unstructured, error) {
	request, err := customization.RequestOf(source)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errRefused, err)
	}
	if request.IsZero() {
		return source, nil
	}
	customizer, err := c.customizer(ctx, request.Customizer, isAfter)
	if err != nil {
		return nil, err
	}
	inventory := c.workload.inventories.of(from.cluster.inventory)
	syncTarget := fleet.NewSyncTarget(from.cluster.inventory, from.cluster.syncTarget)
	parameters := rules.ParametersOf(&syncTarget, inventory.location(ctx, from.destination.LocationName))
	customized, err := customization.Customize(source, request, customizer, parameters)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errRefused, err)
	}
	return customized, nil
}

// customizer returns a Customizer; nil for the zero name.
func (c *copier) customizer(ctx context.Context, name types.NamespacedName, isAfter bool) (*edgev2alpha1.Customizer, error) {
	if name == (types.NamespacedName{}) {
		return nil, nil //nolint:nilnil // see the doc comment
	}
	if override, ok := c.overrides[name]; ok && isAfter {
		return override, nil
	}
	if _, ok := c.customizers[name]; !ok {
		found := &edgev2alpha1.Customizer{}
		if err := c.workload.here.Client.Get(ctx, name, found); err != nil {
			return nil, fmt.Errorf("%w: the Customizer %s cannot be read: %w", errRefused, name, err)
		}
		c.customizers[name] = found
	}
	return c.customizers[name], nil
}
