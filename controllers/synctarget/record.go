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

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/syncmanager"
)

var _ syncmanager.Recorder = &Controller{}

// Record implements [syncmanager.Recorder].
func (c *Controller) Record(ctx context.Context, target syncmanager.Target, resources map[schema.GroupResource]syncmanager.Record) error {
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

// syncedResources lists the records in a stable order, and keeps what else the entries say.
func syncedResources(current []edgev2alpha1.SyncedResource, records map[schema.GroupResource]syncmanager.Record) []edgev2alpha1.SyncedResource {
	result := make([]edgev2alpha1.SyncedResource, 0, len(records))
	for resource, record := range records {
		entry := edgev2alpha1.SyncedResource{Group: resource.Group, Resource: resource.Resource, State: edgev2alpha1.SyncedResourcePending}
		if !record.Own {
			// What conversions and relations make of others is not compared.
			entry.State = edgev2alpha1.SyncedResourceAccepted
		}
		position := slices.IndexFunc(current, func(entry edgev2alpha1.SyncedResource) bool {
			return entry.Group == resource.Group && entry.Resource == resource.Resource
		})
		if position >= 0 {
			entry = current[position]
		}
		if record.Version != "" {
			entry.Versions = []string{record.Version}
		}
		entry.Own, entry.ConvertedFrom = record.Own, nil
		for _, source := range record.ConvertedFrom {
			entry.ConvertedFrom = append(entry.ConvertedFrom, metav1.GroupResource(source))
		}
		result = append(result, entry)
	}
	slices.SortFunc(result, func(a, b edgev2alpha1.SyncedResource) int {
		return strings.Compare(a.Group+"/"+a.Resource, b.Group+"/"+b.Resource)
	})
	return result
}

// recorded returns what the entries record.
func recorded(entries []edgev2alpha1.SyncedResource) map[schema.GroupResource]syncmanager.Record {
	records := make(map[schema.GroupResource]syncmanager.Record, len(entries))
	for _, entry := range entries {
		// An entry that says neither was written by a hub that knew no conversions.
		record := syncmanager.Record{Own: entry.Own || len(entry.ConvertedFrom) == 0}
		if len(entry.Versions) > 0 {
			record.Version = entry.Versions[0]
		}
		for _, source := range entry.ConvertedFrom {
			record.ConvertedFrom = append(record.ConvertedFrom, schema.GroupResource(source))
		}
		records[schema.GroupResource{Group: entry.Group, Resource: entry.Resource}] = record
	}
	return records
}
