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

package synctarget

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/sync"
	"github.com/synchub-dev/synchub/controllers/syncmanager"
)

var _ syncmanager.Recorder = &Controller{}

// Record implements [syncmanager.Recorder].
func (c *Controller) Record(ctx context.Context, target syncmanager.Target, resources []sync.Resource) error {
	inventory, err := c.manager.GetCluster(ctx, multicluster.ClusterName(target.Inventory))
	if err != nil {
		return err
	}
	var syncTarget edgev2alpha1.SyncTarget
	if err := inventory.GetClient().Get(ctx, types.NamespacedName{Name: target.Name}, &syncTarget); err != nil {
		return fmt.Errorf("cannot get the SyncTarget %s: %w", target.Name, err)
	}
	if syncTarget.UID != target.UID {
		return fmt.Errorf("the SyncTarget %s was replaced", target.Name)
	}
	stored := syncTarget.DeepCopy()
	syncTarget.Status.SyncedResources = syncedResources(stored.Status.SyncedResources, resources)
	patch := client.MergeFromWithOptions(stored, client.MergeFromWithOptimisticLock{})
	if err := inventory.GetClient().Status().Patch(ctx, &syncTarget, patch); err != nil {
		return fmt.Errorf("cannot write the status of the SyncTarget %s: %w", target.Name, err)
	}
	return nil
}

// syncedResources lists the resources in a stable order, and keeps the entries there are.
func syncedResources(current []edgev2alpha1.SyncedResource, resources []sync.Resource) []edgev2alpha1.SyncedResource {
	var result []edgev2alpha1.SyncedResource
	for _, resource := range resources {
		position := slices.IndexFunc(current, func(entry edgev2alpha1.SyncedResource) bool {
			return entry.Group == resource.Group && entry.Resource == resource.Resource
		})
		switch {
		case position >= 0:
			result = append(result, current[position])
		case resource.Version != "":
			result = append(result, edgev2alpha1.SyncedResource{
				Group:    resource.Group,
				Resource: resource.Resource,
				Versions: []string{resource.Version},
				State:    edgev2alpha1.SyncedResourceAccepted,
			})
		}
	}
	slices.SortFunc(result, func(a, b edgev2alpha1.SyncedResource) int {
		return strings.Compare(a.Group+"/"+a.Resource, b.Group+"/"+b.Resource)
	})
	return result
}
