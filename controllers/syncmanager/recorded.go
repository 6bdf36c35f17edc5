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
	"github.com/synchub-dev/synchub/controllers/compatibility"
	"github.com/synchub-dev/synchub/provider/ledger"
)

// Record says what the hub may have written of one resource of a target.
type Record struct {
	// Version is the one that the hub uses.
	Version string
	// Own is true if the mailbox's objects of the same resource go there.
	Own bool
	// ConvertedFrom are the mailbox's resources whose objects conversions turn into this one, sorted.
	ConvertedFrom []schema.GroupResource
	// Fit tells whether the mailbox's objects fit; the zero value if that is not known.
	Fit compatibility.State
}

func (r Record) equal(other Record) bool {
	return r.Version == other.Version && r.Own == other.Own && slices.Equal(r.ConvertedFrom, other.ConvertedFrom) && r.Fit == other.Fit
}

// LedgerRecorder records the pairs of SyncTargets in the ledger.
type LedgerRecorder struct{ *ledger.Ledger }

var _ Recorder = LedgerRecorder{}

// Record implements [Recorder].
func (l LedgerRecorder) Record(ctx context.Context, target Target, resources map[schema.GroupResource]Record) error {
	return l.Update(ctx, target.UID, func(entry *ledger.Entry) { entry.Resources = toLedger(resources) })
}

func toLedger(records map[schema.GroupResource]Record) []ledger.Resource {
	resources := make([]ledger.Resource, 0, len(records))
	for group, record := range records {
		resource := ledger.Resource{
			GroupResource: metav1.GroupResource(group), Version: record.Version, Own: record.Own,
			State: string(record.Fit.SyncedResourceState), Reason: record.Fit.Reason, Message: record.Fit.Message, Schema: record.Fit.Schema,
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

// FromLedger returns what the ledger says of the pairs of a SyncTarget.
func FromLedger(resources []ledger.Resource) map[schema.GroupResource]Record {
	records := make(map[schema.GroupResource]Record, len(resources))
	for _, resource := range resources {
		record := Record{
			Version: resource.Version, Own: resource.Own,
			Fit: compatibility.State{SyncedResourceState: edgev2alpha1.SyncedResourceState(resource.State), Reason: resource.Reason, Message: resource.Message, Schema: resource.Schema},
		}
		for _, source := range resource.ConvertedFrom {
			record.ConvertedFrom = append(record.ConvertedFrom, schema.GroupResource(source))
		}
		records[schema.GroupResource(resource.GroupResource)] = record
	}
	return records
}

// fitsOf returns whether objects fit, by the resources of the target of which that is known.
func fitsOf(records map[schema.GroupResource]Record) map[schema.GroupResource]compatibility.State {
	fits := map[schema.GroupResource]compatibility.State{}
	for group, record := range records {
		if record.Own && record.Fit.SyncedResourceState != "" {
			fits[group] = record.Fit
		}
	}
	return fits
}

// from returns the record with one more source.
func (r Record) from(source schema.GroupResource, version string) Record {
	if !slices.Contains(r.ConvertedFrom, source) {
		r.ConvertedFrom = append(slices.Clone(r.ConvertedFrom), source)
		slices.SortFunc(r.ConvertedFrom, compareResources)
	}
	if !r.Own {
		r.Version = version
	}
	return r
}

func compareResources(a, b schema.GroupResource) int { return strings.Compare(a.String(), b.String()) }

// isRecorded tells whether the hub may have written objects of a mailbox's resource, as whatever resource.
func (t *managed) isRecorded(resource schema.GroupResource) bool {
	if t.recorded[resource].Own {
		return true
	}
	for _, record := range t.recorded {
		if slices.Contains(record.ConvertedFrom, resource) {
			return true
		}
	}
	return false
}
