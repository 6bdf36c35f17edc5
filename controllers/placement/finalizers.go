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

package placement

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/internal/writes"
	"github.com/synchub-dev/synchub/controllers/placement/fleet"
	"github.com/synchub-dev/synchub/controllers/placement/fleetcache"
	"github.com/synchub-dev/synchub/provider/mailboxes"
)

// finalizer keeps an EdgePlacement until its copies are withdrawn. Without the finalizer, once the binding or
// the workspace is gone, the hub could not distinguish a placement that a user deleted from one that kcp does
// not show. The hub exports EdgePlacements, so it can always remove the finalizer (see
// docs/design/0022-placement.md).
const finalizer = "synchub.dev/placement"

// unlistedPoll is the time between two checks whether the mailboxes of a deleted placement can be listed, after startupGrace.
const unlistedPoll = 30 * time.Second

// finalizers adds and removes the finalizers of the placements of a workspace.
type finalizers struct {
	sources     *sources
	pairs       *pairs
	reflections *reflections
	fleet       *fleetcache.Fleet
	startup     *startup
	writer      *writes.WorkspaceWriter[objectKey]
}

// add adds the finalizer to placements that lack it, before any object is placed. It skips placements
// beyond the limits of the cache: they are not active, and their other finalizers may be unknown.
func (f *finalizers) add(ctx context.Context, observed []*unstructured.Unstructured) error {
	var errs []error
	for _, placement := range observed {
		if present := placement.GetFinalizers(); mailboxes.ProjectionOf(placement) == mailboxes.FullObject && !slices.Contains(present, finalizer) {
			errs = append(errs, f.set(ctx, placement, append(slices.Clone(present), finalizer)))
		}
	}
	return errors.Join(errs...)
}

// remove removes the finalizer from deleted placements once no copy is left to withdraw. Copies in a
// mailbox whose inventory is not visible do not count: the hub cannot withdraw them, and keeps them. After a
// start, remove waits until the hub knows all copies. Once the binding is gone, nobody could withdraw
// copies that appear later.
func (f *finalizers) remove(ctx context.Context) (requeueAfter time.Duration, err error) {
	listed, _ := f.sources.list(edgePlacements)
	deleted := slices.DeleteFunc(slices.Clone(listed), func(placement *unstructured.Unstructured) bool {
		return placement.GetDeletionTimestamp() == nil || !slices.Contains(placement.GetFinalizers(), finalizer)
	})
	f.pairs.deleting.Store(len(deleted) > 0)
	if len(deleted) == 0 || f.isWithdrawing(f.fleet.Snapshot()) {
		return 0, nil
	}
	switch {
	case f.knowsCopies(deleted):
	case f.startup.inGrace():
		return startupPoll, nil
	default:
		// A mailbox cannot be listed, perhaps for a long time.
		return unlistedPoll, nil
	}
	if f.isWithdrawing(f.fleet.Snapshot()) {
		// A copy has appeared since.
		return 0, nil
	}
	var errs []error
	for _, placement := range deleted {
		errs = append(errs, f.set(ctx, placement, slices.DeleteFunc(placement.GetFinalizers(), func(one string) bool { return one == finalizer })))
	}
	return 0, errors.Join(errs...)
}

// set replaces the finalizers of a placement, unless it has changed since the cache read it.
func (f *finalizers) set(ctx context.Context, placement *unstructured.Unstructured, finalizers []string) error {
	err := f.writer.SetFinalizers(ctx, keyOf(edgePlacements, placement), placement, finalizers)
	if err == nil || apierrors.IsNotFound(err) {
		return nil
	}
	return fmt.Errorf("cannot set the finalizers of the EdgePlacement %s: %w", placement.GetName(), err)
}

// knowsCopies reports whether the hub knows the copies of deleted placements: it has listed their
// destinations, and it has processed the events of all copies that the previous leader made. Later copies are
// the hub's own writes.
func (f *finalizers) knowsCopies(deleted []*unstructured.Unstructured) bool {
	if !f.startup.isFleetSynced() || !f.startup.mailboxes.HasSynced() {
		return false
	}
	for _, mailbox := range f.formerDestinations(deleted) {
		for _, copied := range f.sources.policy.copies() {
			if !isListed(f.startup.mailboxes, copied.GroupVersionResource, mailbox) {
				return false
			}
		}
	}
	return f.startup.areCopiesSynced()
}

// formerDestinations returns the mailboxes of the destinations in the slices of placements.
func (f *finalizers) formerDestinations(placements []*unstructured.Unstructured) (found []logicalcluster.Name) {
	named := map[types.UID]bool{}
	for _, placement := range placements {
		if slice := f.sources.slice(placement.GetName()); slice != nil {
			for _, destination := range slice.Destinations {
				named[destination.SyncTargetUID] = true
			}
		}
	}
	view := f.fleet.Snapshot()
	for mailbox := range view.Mailboxes() {
		if syncTarget, _ := view.SyncTargetOf(mailbox); named[syncTarget.UID] && !syncTarget.Terminating {
			found = append(found, mailbox)
		}
	}
	return found
}

// isWithdrawing reports whether the hub still has a copy to withdraw from a mailbox of the view, or a reflection from one.
func (f *finalizers) isWithdrawing(view *fleet.Snapshot) (is bool) {
	if f.reflections.isWithdrawing(view) {
		return true
	}
	f.pairs.locked(func(objects map[objectKey]*object) {
		for key, entry := range objects {
			for at, found := range entry.pairs {
				if syncTarget, known := view.SyncTargetOf(at.mailbox); !found.desired && f.pairs.mayHaveCopy(pairKey{key, at}, found) && known && !syncTarget.Terminating {
					is = true
					return
				}
			}
		}
	})
	return is
}

// isListed reports whether a cache has all objects of a resource in a workspace or mailbox. A resource that is not served there has none.
func isListed(cache *mailboxes.Mailboxes, of schema.GroupVersionResource, cluster logicalcluster.Name) bool {
	// No object has an empty name, so the state shows whether the list is known.
	_, state := cache.Get(of, cluster, types.NamespacedName{})
	return state != mailboxes.Unknown || cache.IsKnownNotServed(cluster, of.GroupResource())
}
