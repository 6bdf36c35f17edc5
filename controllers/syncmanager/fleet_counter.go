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
	"slices"
	gosync "sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/objectsync/plan"
	"github.com/synchub-dev/synchub/provider/ledger"
)

// Ledger is the part of [ledger.Store] that has the summaries of all owners.
type Ledger interface {
	IsLoaded() bool
	Each(visit func(types.UID, *ledger.Entry))
}

var _ Ledger = &ledger.Store{}

// FleetCounter is the [Manager] of a leader that does not hold all SyncTargets. It sums over all of them: what this replica holds is
// counted here, and the owners of the others have written their summaries into the ledger.
type FleetCounter struct {
	*Manager
	ledger Ledger

	lock gosync.Mutex
	// unknownSince is since when SyncTargets have no summary.
	unknownSince map[types.UID]time.Time
}

// NewFleetCounter returns a manager that sums over all SyncTargets of the ledger. The Role of the manager says which of them it holds.
func NewFleetCounter(manager *Manager, entries Ledger) *FleetCounter {
	return &FleetCounter{Manager: manager, ledger: entries, unknownSince: map[types.UID]time.Time{}}
}

// Count returns the counts of a mailbox resource over all SyncTargets. known is false while some of them have no summary yet, but no
// longer than [countTimeout] for each.
func (d *FleetCounter) Count(resource schema.GroupResource) (counts Counts, known bool) {
	known = d.ledger.IsLoaded()
	for _, share := range d.shares(resource, "") {
		counts.add(share.counts)
		known = known && share.known
	}
	return counts, known
}

// IsUnpublished reports whether no object of a resource that is about to be unpublished has the hub's finalizer in any mailbox, as
// all owners have found out. Mailboxes of SyncTargets that are not synced do not count.
func (d *FleetCounter) IsUnpublished(resource schema.GroupResource) bool {
	published := d.Published()
	index := slices.IndexFunc(published, func(r plan.Resource) bool { return r.Unpublishing && r.GroupResource() == resource })
	if index < 0 || published[index].UID == "" || !d.ledger.IsLoaded() {
		return false
	}
	return !slices.ContainsFunc(d.shares(resource, published[index].UID), func(share share) bool { return !share.unpublished })
}

// SyncTargetsMissingAPI returns, sorted, the SyncTargets whose mailboxes lack a resource because its name is taken there.
func (d *FleetCounter) SyncTargetsMissingAPI(resource schema.GroupResource) (syncTargets []string) {
	for _, share := range d.shares(resource, "") {
		if share.missing {
			syncTargets = append(syncTargets, displayName(share.name, share.inventory))
		}
	}
	slices.Sort(syncTargets)
	return syncTargets
}

// share is what one SyncTarget contributes to the sums about a resource.
type share struct {
	name, inventory string
	counts          Counts
	// isSynced is true if the owner syncs the SyncTarget.
	isSynced bool
	// known is false while the counts are not known. unpublished is true if no object has the hub's finalizer. missing is true if the
	// mailbox lacks the API because its name is taken there.
	known, unpublished, missing bool
}

// shares returns what each SyncTarget contributes. unpublishing is the UID of the PublishedResource that is being deleted, if that is
// asked for.
func (d *FleetCounter) shares(resource schema.GroupResource, unpublishing types.UID) []share {
	now, name := d.Clock.Now(), resource.String()
	var all []share
	// local are the indexes of the shares of SyncTargets that this replica holds.
	local := map[int]types.UID{}
	d.lock.Lock()
	defer d.lock.Unlock()
	unknownSince := map[types.UID]time.Time{}
	d.ledger.Each(func(syncTarget types.UID, entry *ledger.Entry) {
		if d.Role.Owns(syncTarget) {
			local[len(all)] = syncTarget
		}
		share := shareOf(entry, name, unpublishing)
		if !share.known {
			since, ok := d.unknownSince[syncTarget]
			if !ok {
				since = now
			}
			unknownSince[syncTarget] = since
			share.known = !now.Before(since.Add(countTimeout))
		}
		all = append(all, share)
	})
	d.unknownSince = unknownSince
	for i, syncTarget := range local {
		d.setLocal(&all[i], syncTarget, resource, unpublishing, now)
	}
	return all
}

// shareOf returns what the ledger says of a SyncTarget.
func shareOf(entry *ledger.Entry, resource string, unpublishing types.UID) share {
	result := share{name: entry.Name, inventory: entry.Inventory}
	summary := entry.SyncSummary
	switch {
	case entry.Mailbox == "" || entry.CleanedUp || summary != nil && !summary.Synced:
		result.known, result.unpublished = true, true
	case summary != nil:
		objects, isSynced := summary.Objects[resource]
		if isSynced {
			result.counts.Targets, result.counts.Objects = 1, objects
		}
		if !slices.Contains(summary.NotServed, resource) {
			result.counts.Mailboxes = 1
		}
		result.known, result.isSynced = true, true
		result.missing = slices.Contains(summary.Missing, resource)
		result.unpublished = slices.Contains(summary.Unpublished, unpublishing)
	}
	return result
}

// setLocal replaces what the ledger says of a SyncTarget by what this replica knows, since it holds the SyncTarget. Counts of the
// former owner count until this one has observed all objects.
func (d *FleetCounter) setLocal(result *share, syncTarget types.UID, resource schema.GroupResource, unpublishing types.UID, now time.Time) {
	state, ok := d.get(syncTarget)
	if !ok {
		// The former owner's finding says nothing about finalizers that this replica may have added.
		result.unpublished = result.unpublished && !result.isSynced
		return
	}
	published, publication := d.publication()
	counts, known := d.countOf(state, resource, publication, now)
	if known || !result.isSynced {
		result.counts, result.known = counts, known
	}
	state.lock.Lock()
	if state.missingAPIsKnown {
		result.missing = state.missingAPIs.Has(resource)
	}
	state.lock.Unlock()
	index := slices.IndexFunc(published, func(r plan.Resource) bool { return r.UID == unpublishing })
	result.unpublished = unpublishing != "" && index >= 0 && d.isUnpublishedBy(state, published[index], publication)
}
