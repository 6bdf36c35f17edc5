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
	"k8s.io/apimachinery/pkg/types"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/syncmanager/schemacheck"
	"github.com/synchub-dev/synchub/provider/ledger"
)

// WrittenResources are the resources of the target in which the hub may have written objects.
type WrittenResources map[schema.GroupResource]WrittenResource

// WrittenResource describes the objects that the hub may have written of one resource of a target.
type WrittenResource struct {
	// Version is the version that the hub writes.
	Version string
	// Direct is true if objects of the same resource of the mailbox are synced with this one.
	Direct bool
	// ConvertedFrom are the mailbox resources whose objects conversions turn into this one, sorted.
	ConvertedFrom []schema.GroupResource
	// Compatibility is whether the mailbox objects fit; the zero value if that is unknown.
	Compatibility schemacheck.State
	// Served is true if the target has served the resource to the hub. It may then have objects of the resource
	// even while it does not serve it.
	Served bool
}

func (w WrittenResource) equal(other WrittenResource) bool {
	return w.Version == other.Version && w.Direct == other.Direct && slices.Equal(w.ConvertedFrom, other.ConvertedFrom) && w.Compatibility == other.Compatibility && w.Served == other.Served
}

// LedgerWrittenResourceStore stores the written resources of SyncTargets in the ledger.
type LedgerWrittenResourceStore struct{ *ledger.Store }

var _ WrittenResourceStore = LedgerWrittenResourceStore{}

// StoreWrittenResources implements [WrittenResourceStore].
func (l LedgerWrittenResourceStore) StoreWrittenResources(ctx context.Context, syncTarget types.UID, resources WrittenResources) error {
	return l.Update(ctx, syncTarget, func(entry *ledger.Entry) { entry.Resources = writtenResourcesToLedger(resources) })
}

func writtenResourcesToLedger(written WrittenResources) []ledger.Resource {
	resources := make([]ledger.Resource, 0, len(written))
	for groupResource, record := range written {
		resource := ledger.Resource{
			GroupResource: metav1.GroupResource(groupResource), Version: record.Version, Direct: record.Direct,
			State: string(record.Compatibility.SyncedResourceState), Reason: record.Compatibility.Reason, Message: record.Compatibility.Message, Schema: record.Compatibility.Schema, Served: record.Served,
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

// WrittenResourcesFromLedger returns the written resources that the ledger's resources describe.
func WrittenResourcesFromLedger(resources []ledger.Resource) WrittenResources {
	written := make(WrittenResources, len(resources))
	for _, resource := range resources {
		record := WrittenResource{
			Version: resource.Version, Direct: resource.Direct, Served: resource.Served,
			Compatibility: schemacheck.State{SyncedResourceState: edgev2alpha1.SyncedResourceState(resource.State), Reason: resource.Reason, Message: resource.Message, Schema: resource.Schema},
		}
		for _, source := range resource.ConvertedFrom {
			record.ConvertedFrom = append(record.ConvertedFrom, schema.GroupResource(source))
		}
		written[schema.GroupResource(resource.GroupResource)] = record
	}
	return written
}

// compatibilityStatesOf returns the known compatibility states of written resources, by resource of the target.
func compatibilityStatesOf(written WrittenResources) map[schema.GroupResource]schemacheck.State {
	states := map[schema.GroupResource]schemacheck.State{}
	for groupResource, record := range written {
		if record.Direct && record.Compatibility.SyncedResourceState != "" {
			states[groupResource] = record.Compatibility
		}
	}
	return states
}

// withSource returns the entry with one more source.
func (w WrittenResource) withSource(source schema.GroupResource, version string) WrittenResource {
	if !slices.Contains(w.ConvertedFrom, source) {
		w.ConvertedFrom = append(slices.Clone(w.ConvertedFrom), source)
		slices.SortFunc(w.ConvertedFrom, compareResources)
	}
	if !w.Direct {
		w.Version = version
	}
	return w
}

func compareResources(a, b schema.GroupResource) int { return strings.Compare(a.String(), b.String()) }

// mayHaveWritten reports whether the hub may have written objects of a mailbox resource, converted or not.
func (t *targetState) mayHaveWritten(resource schema.GroupResource) bool {
	if t.writtenResources[resource].Direct {
		return true
	}
	for _, record := range t.writtenResources {
		if slices.Contains(record.ConvertedFrom, resource) {
			return true
		}
	}
	return false
}
