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
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/plan"
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

// StoreWrittenResourcesIn returns a function that stores the written resources of a SyncTarget in the ledger.
func StoreWrittenResourcesIn(entries *ledger.Store) func(context.Context, types.UID, WrittenResources) error {
	return func(ctx context.Context, syncTarget types.UID, resources WrittenResources) error {
		return entries.Update(ctx, syncTarget, func(entry *ledger.Entry) { entry.Resources = writtenResourcesToLedger(resources) })
	}
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

// mayContain reports whether the hub may have written objects of a mailbox resource, converted or not.
func (w WrittenResources) mayContain(resource schema.GroupResource) bool {
	if w[resource].Direct {
		return true
	}
	for _, record := range w {
		if slices.Contains(record.ConvertedFrom, resource) {
			return true
		}
	}
	return false
}

// contain reports whether the resource is recorded with all of these APIs of the target, so that the leader may write it.
func (w WrittenResources) contain(resource plan.Resource, apis []plan.TargetAPI) bool {
	return !slices.ContainsFunc(apis, func(target plan.TargetAPI) bool {
		record := w[target.GroupResource()]
		if target.GroupResource() == resource.GroupResource() {
			return !record.Direct || record.Version != target.Version
		}
		return !slices.Contains(record.ConvertedFrom, resource.GroupResource())
	})
}

// versionOf returns the version that objects of a resource may have been written in last; empty if none
// were.
func (w WrittenResources) versionOf(resource plan.Resource) string {
	target := resource.TargetAPI().GroupResource()
	record := w[target]
	if record.Direct && target == resource.GroupResource() || slices.Contains(record.ConvertedFrom, resource.GroupResource()) {
		return record.Version
	}
	return ""
}

// storeWrittenResources records, if that changed, which resources of the target the hub may write, and whether
// objects fit there. Entries of resources that are no longer published stay, because their objects are still on
// the target.
func (p *pass) storeWrittenResources(ctx context.Context, wanted []plan.Resource, resolved map[schema.GroupResource]resolvedAPIs) error {
	next := WrittenResources{}
	for _, resource := range wanted {
		groupResource := resource.GroupResource()
		for _, target := range resolved[groupResource].apis {
			if target.GroupResource() == groupResource {
				next[groupResource] = WrittenResource{Version: target.Version, Direct: true, ConvertedFrom: next[groupResource].ConvertedFrom}
			} else {
				next[target.GroupResource()] = next[target.GroupResource()].withSource(groupResource, target.Version)
			}
		}
	}
	isPublished := func(groupResource schema.GroupResource) bool {
		return slices.ContainsFunc(p.published, func(r plan.Resource) bool { return !r.Unpublishing && r.GroupResource() == groupResource })
	}
	for groupResource, record := range p.state.writtenResources {
		if record.Direct && !isPublished(groupResource) {
			kept := next[groupResource]
			kept.Direct, kept.Version = true, record.Version
			next[groupResource] = kept
		}
		for _, source := range record.ConvertedFrom {
			if !isPublished(source) {
				next[groupResource] = next[groupResource].withSource(source, record.Version)
			}
		}
	}
	p.addCompatibility(next)
	if maps.EqualFunc(next, p.state.writtenResources, WrittenResource.equal) {
		return nil
	}
	if err := p.manager.StoreWrittenResources(ctx, p.target.UID, next); err != nil {
		return fmt.Errorf("cannot record the synced resources: %w", err)
	}
	p.state.writtenResources = next
	p.manager.StateChanged.Publish(p.target.UID)
	return nil
}

// addCompatibility adds the known compatibility states to the records.
func (p *pass) addCompatibility(records WrittenResources) {
	for group, record := range records {
		if state := p.state.compatibilityStates[group]; record.Direct && state.SyncedResourceState != edgev2alpha1.SyncedResourcePending {
			record.Compatibility = state
			record.Served = p.state.writtenResources[group].Served || state.SyncedResourceState == edgev2alpha1.SyncedResourceAccepted
			records[group] = record
		}
	}
}
