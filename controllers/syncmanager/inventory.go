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

package syncmanager

import (
	"context"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/schemacheck"
	"github.com/synchub-dev/synchub/provider/ledger"
)

// InventoryEntry describes the objects that the hub may have written of one resource of a target.
type InventoryEntry struct {
	// Version is the version in which the hub writes.
	Version string
	// Direct is true if objects of the same resource of the mailbox are synced with this one.
	Direct bool
	// ConvertedFrom are the mailbox resources whose objects conversions turn into this one, sorted.
	ConvertedFrom []schema.GroupResource
	// Compatibility says whether the mailbox objects fit; the zero value if that is not known.
	Compatibility schemacheck.State
}

func (r InventoryEntry) equal(other InventoryEntry) bool {
	return r.Version == other.Version && r.Direct == other.Direct && slices.Equal(r.ConvertedFrom, other.ConvertedFrom) && r.Compatibility == other.Compatibility
}

// LedgerInventoryStore stores the inventories of SyncTargets in the ledger.
type LedgerInventoryStore struct{ *ledger.Store }

var _ InventoryStore = LedgerInventoryStore{}

// StoreInventory implements [InventoryStore].
func (l LedgerInventoryStore) StoreInventory(ctx context.Context, target Target, resources map[schema.GroupResource]InventoryEntry) error {
	return l.Update(ctx, target.UID, func(entry *ledger.Entry) { entry.Resources = inventoryToLedger(resources) })
}

func inventoryToLedger(inventory map[schema.GroupResource]InventoryEntry) []ledger.Resource {
	resources := make([]ledger.Resource, 0, len(inventory))
	for group, record := range inventory {
		resource := ledger.Resource{
			GroupResource: metav1.GroupResource(group), Version: record.Version, Direct: record.Direct,
			State: string(record.Compatibility.SyncedResourceState), Reason: record.Compatibility.Reason, Message: record.Compatibility.Message, Schema: record.Compatibility.Schema,
		}
		for _, source := range record.ConvertedFrom {
			resource.ConvertedFrom = append(resource.ConvertedFrom, metav1.GroupResource(source))
		}
		resources = append(resources, resource)
	}
	slices.SortFunc(resources, func(a, b ledger.Resource) int {
		return strings.Compare(a.Group+"/"+a.Resource, b.Group+"/"+b.Resource)
	})
	return resources
}

// InventoryFromLedger returns the inventory that the ledger's resources describe.
func InventoryFromLedger(resources []ledger.Resource) map[schema.GroupResource]InventoryEntry {
	inventory := make(map[schema.GroupResource]InventoryEntry, len(resources))
	for _, resource := range resources {
		record := InventoryEntry{
			Version: resource.Version, Direct: resource.Direct,
			Compatibility: schemacheck.State{SyncedResourceState: edgev2alpha1.SyncedResourceState(resource.State), Reason: resource.Reason, Message: resource.Message, Schema: resource.Schema},
		}
		for _, source := range resource.ConvertedFrom {
			record.ConvertedFrom = append(record.ConvertedFrom, schema.GroupResource(source))
		}
		inventory[schema.GroupResource(resource.GroupResource)] = record
	}
	return inventory
}

// compatibilityStatesOf returns the known compatibility states of an inventory, by resource of the target.
func compatibilityStatesOf(inventory map[schema.GroupResource]InventoryEntry) map[schema.GroupResource]schemacheck.State {
	states := map[schema.GroupResource]schemacheck.State{}
	for group, record := range inventory {
		if record.Direct && record.Compatibility.SyncedResourceState != "" {
			states[group] = record.Compatibility
		}
	}
	return states
}

// withSource returns the entry with one more source.
func (r InventoryEntry) withSource(source schema.GroupResource, version string) InventoryEntry {
	if !slices.Contains(r.ConvertedFrom, source) {
		r.ConvertedFrom = append(slices.Clone(r.ConvertedFrom), source)
		slices.SortFunc(r.ConvertedFrom, compareResources)
	}
	if !r.Direct {
		r.Version = version
	}
	return r
}

func compareResources(a, b schema.GroupResource) int { return strings.Compare(a.String(), b.String()) }

// isInInventory reports whether the hub may have written objects of a mailbox resource, converted or not.
func (t *targetState) isInInventory(resource schema.GroupResource) bool {
	if t.resourceInventory[resource].Direct {
		return true
	}
	for _, record := range t.resourceInventory {
		if slices.Contains(record.ConvertedFrom, resource) {
			return true
		}
	}
	return false
}
