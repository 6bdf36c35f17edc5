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
	"slices"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/provider/mailboxes"
)

// unlistedPoll is the time between two checks whether the mailboxes of a deleted placement can be listed, after startupGrace.
const unlistedPoll = 30 * time.Second

// knowsAllCopies reports whether the hub knows the copies of deleted placements: it has listed their
// destinations, and it has processed the events of all copies that the previous leader made. Later copies are
// the hub's own writes.
func (w *workspace) knowsAllCopies(deleted []*unstructured.Unstructured) bool {
	if !w.isFleetSynced() || !w.Mailboxes.HasSynced() {
		return false
	}
	for _, mailbox := range w.formerDestinations(deleted) {
		for of := range w.CachePolicy.published() {
			if !isListed(w.Mailboxes, of, mailbox) {
				return false
			}
		}
	}
	return w.hasSyncedCopies()
}

// formerDestinations returns the mailboxes of the destinations in the slices of placements.
func (w *workspace) formerDestinations(placements []*unstructured.Unstructured) (found []logicalcluster.Name) {
	listed, _ := w.Workloads.List(slicesResource, w.cluster)
	named := map[types.UID]bool{}
	for _, object := range listed {
		if !slices.ContainsFunc(placements, func(one *unstructured.Unstructured) bool { return one.GetName() == object.GetName() }) {
			continue
		}
		var slice edgev2alpha1.SinglePlacementSlice
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &slice); err != nil {
			continue
		}
		for _, destination := range slice.Destinations {
			named[destination.SyncTargetUID] = true
		}
	}
	view := w.Fleet.Snapshot()
	for mailbox := range view.Mailboxes() {
		if syncTarget, _ := view.SyncTargetOf(mailbox); named[syncTarget.UID] && !syncTarget.Terminating {
			found = append(found, mailbox)
		}
	}
	return found
}

// hasSyncedCopies reports whether the controller has processed the events of all copies in mailboxes. After the
// first true it always returns true. After startupGrace, mailboxes that cannot be listed do not count: a
// mailbox that never becomes ready must not keep all deleted placements.
func (c *Controller) hasSyncedCopies() bool {
	if c.copiesSynced.Load() {
		return true
	}
	for of := range c.CachePolicy.published() {
		for mailbox := range c.Fleet.Snapshot().Mailboxes() {
			objects, _ := c.Mailboxes.List(of, mailbox)
			if !isListed(c.Mailboxes, of, mailbox) && c.inStartupGrace() || !c.knowsCopies(of, mailbox, objects) {
				return false
			}
		}
	}
	c.copiesSynced.Store(true)
	return true
}

// isListed reports whether a cache has all objects of a resource in a workspace or mailbox. A resource that is not served there has none.
func isListed(cache *mailboxes.Mailboxes, of schema.GroupVersionResource, cluster logicalcluster.Name) bool {
	// No object has an empty name, so the state shows whether the list is known.
	_, state := cache.Get(of, cluster, types.NamespacedName{})
	return state != mailboxes.Unknown || cache.IsKnownNotServed(cluster, of.GroupResource())
}

// knowsCopies reports whether the controller has processed the events of all copies among the objects of a
// mailbox.
func (c *Controller) knowsCopies(of schema.GroupVersionResource, mailbox logicalcluster.Name, objects []*unstructured.Unstructured) bool {
	for _, object := range objects {
		cluster, is := c.workspaceOf(object)
		if is && !c.ensureWorkspace(cluster).hasCopy(pairKey{keyOf(of, object), mailbox}) {
			return false
		}
	}
	return true
}

// hasCopy reports whether the mailbox of a pair is known to have the copy.
func (w *workspace) hasCopy(key pairKey) bool {
	w.lock.Lock()
	defer w.lock.Unlock()
	_, found := w.pairAt(key)
	return found != nil && found.hasCopy
}
