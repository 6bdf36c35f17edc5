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
	"fmt"
	"slices"
	gosync "sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/provider/ledger"
)

// Ledger is the part of [ledger.Store] with the SyncTargets of the hub, and the summaries of SyncTargets that
// other replicas own.
type Ledger interface {
	IsLoaded() bool
	Each(visit func(types.UID, *ledger.Entry))
}

var _ Ledger = &ledger.Store{}

// FleetCounter sums over all SyncTargets: a SyncTarget that this replica owns is counted here, and the owner of another one has written
// its summary into the ledger.
type FleetCounter struct {
	manager *Manager
	ledger  Ledger

	lock gosync.Mutex
	// unknownSince is since when the contributions of SyncTargets are unknown, because the owner has not decided whether it syncs them.
	unknownSince map[types.UID]time.Time
}

// NewFleetCounter returns a counter of all SyncTargets of the ledger.
func NewFleetCounter(manager *Manager, entries Ledger) *FleetCounter {
	return &FleetCounter{manager: manager, ledger: entries, unknownSince: map[types.UID]time.Time{}}
}

// Count returns the counts of a mailbox resource over all SyncTargets. known is false while some counted objects are not observed yet, because
// a new owner and a new controller count from zero, but no longer than [countTimeout] for each SyncTarget.
func (d *FleetCounter) Count(resource schema.GroupResource) (counts Counts, known bool) {
	known = d.ledger.IsLoaded()
	for _, share := range d.shares(resource, "") {
		counts.add(share.counts)
		known = known && share.known
	}
	return counts, known
}

// IsUnpublished reports whether no object of a resource that is about to be unpublished has the hub's finalizer
// in any mailbox, according to all owners. Mailboxes of SyncTargets that are not synced do not count.
func (d *FleetCounter) IsUnpublished(resource schema.GroupResource) bool {
	published := d.manager.Published()
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
			syncTargets = append(syncTargets, fmt.Sprintf("%s (inventory %s)", share.name, share.inventory))
		}
	}
	slices.Sort(syncTargets)
	return syncTargets
}

// share is the part of one SyncTarget in the sums of a resource.
type share struct {
	syncTarget      types.UID
	name, inventory string
	counts          Counts
	// isDecided is true once the owner has decided whether it syncs the SyncTarget. known is true once it has also counted all objects.
	isDecided, known bool
	// unpublished is true if no object has the hub's finalizer. missing is true if the mailbox lacks the API because its name is taken
	// there.
	unpublished, missing bool
}

// shares returns the share of each SyncTarget. unpublishing is the UID of the PublishedResource that is being
// deleted, if the caller needs its finalizers.
func (d *FleetCounter) shares(resource schema.GroupResource, unpublishing types.UID) []share {
	var all []share
	d.ledger.Each(func(syncTarget types.UID, entry *ledger.Entry) {
		next := share{syncTarget: syncTarget, name: entry.Name, inventory: entry.Inventory}
		if isUnused := entry.Mailbox == "" || entry.CleanedUp; isUnused || !d.manager.Role.Owns(syncTarget) {
			next.setSummary(entry.SyncSummary, isUnused, resource.String(), unpublishing)
		}
		all = append(all, next)
	})
	for i := range all {
		if !all[i].isDecided && d.manager.Role.Owns(all[i].syncTarget) {
			d.setOwn(&all[i], resource, unpublishing)
		}
	}
	d.endUnknown(all)
	return all
}

// setSummary sets the values that the owner has written into the ledger, if there are any. Without a mailbox
// there is nothing to count.
func (s *share) setSummary(summary *ledger.SyncSummary, isUnused bool, resource string, unpublishing types.UID) {
	switch {
	case isUnused || summary != nil && !summary.Synced:
		s.isDecided, s.known, s.unpublished = true, true, true
	case summary != nil:
		if objects, isSynced := summary.Objects[resource]; isSynced {
			s.counts.Targets, s.counts.Objects = 1, objects
		}
		if !slices.Contains(summary.NotServed, resource) {
			s.counts.Mailboxes = 1
		}
		s.isDecided, s.known = true, true
		s.missing = slices.Contains(summary.Missing, resource)
		s.unpublished = slices.Contains(summary.Unpublished, unpublishing)
	}
}

// setOwn sets the values that this replica observes as the owner.
func (d *FleetCounter) setOwn(own *share, resource schema.GroupResource, unpublishing types.UID) {
	state, isDecided := d.manager.decision(own.syncTarget)
	own.isDecided = isDecided
	if state == nil {
		own.known, own.unpublished = isDecided, isDecided
		return
	}
	counter := d.manager.counterOf(state)
	own.counts, own.known = counter.countOf(resource)
	state.lock.Lock()
	own.missing = state.missingAPIs.Has(resource)
	state.lock.Unlock()
	index := slices.IndexFunc(counter.published, func(r plan.Resource) bool { return r.UID == unpublishing })
	own.unpublished = unpublishing != "" && index >= 0 && counter.isUnpublished(counter.published[index])
}

// endUnknown ends the wait for SyncTargets that have been undecided for [countTimeout]. One that this replica owns has no objects to wait for
// then.
func (d *FleetCounter) endUnknown(all []share) {
	now := d.manager.Clock.Now()
	d.lock.Lock()
	defer d.lock.Unlock()
	unknownSince := map[types.UID]time.Time{}
	for i := range all {
		undecided := &all[i]
		if undecided.isDecided {
			continue
		}
		since, ok := d.unknownSince[undecided.syncTarget]
		if !ok {
			since = now
		}
		unknownSince[undecided.syncTarget] = since
		undecided.known = !now.Before(since.Add(countTimeout))
		undecided.unpublished = undecided.known && d.manager.Role.Owns(undecided.syncTarget)
	}
	d.unknownSince = unknownSince
}
