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

package objectsync

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/related"
	"github.com/synchub-dev/synchub/controllers/plan/selection"
	"github.com/synchub-dev/synchub/provider/mailboxes"
	"github.com/synchub-dev/synchub/provider/mailboxes/absence"
)

// resync enqueues every known key, and completes the initial sync of primaries if it can.
func (c *Controller) resync() {
	c.enqueuer.enqueueAll()
	c.primaries.recheckInitialSync()
}

// onNamespaceLabels is called when the labels of namespaces of the target have changed; of all, if none is named.
func (c *Controller) onNamespaceLabels(changed ...string) {
	if c.selectsNamespaces() {
		c.upsync.onRelatedChanges(related.Change{All: len(changed) == 0, Namespaces: changed})
	}
}

// onAvailabilityChanged is called when the target begins or ceases to serve an API of the controller.
func (c *Controller) onAvailabilityChanged() {
	if len(c.Status.UnavailableResources()) > len(c.UnresolvedKinds) {
		// Objects that cannot be tried must not hold up later waves.
		c.firstPass.finish()
	} else {
		// A 404 of an API that was not served proved nothing about the object.
		c.enqueuer.retry(plan.ReasonNotServed)
	}
	c.recheckStart()
	// An API that is not served has no objects, so the initial sync may be complete.
	c.primaries.recheckInitialSync()
	c.OnChange()
}

// Resume enqueues all keys after the target was away, and also keys with pending changes whose objects no longer exist on either
// side.
func (c *Controller) Resume() {
	c.enqueuer.enqueueAll()
	c.enqueuer.enqueue(replayPriority, c.enqueuer.changes.all()...)
}

// Uncordon enqueues the objects that failed because of the cordon.
func (c *Controller) Uncordon() { c.enqueuer.retry(plan.ReasonTargetCordoned) }

// Release enqueues the objects whose copies were held because kcp went back to an earlier state.
func (c *Controller) Release() { c.enqueuer.retry(plan.ReasonStoreWentBack) }

// RetryConflicts enqueues the objects whose name is taken, after the adoption policy has changed.
func (c *Controller) RetryConflicts() {
	c.enqueuer.retry(plan.ReasonConflict)
	c.enqueuer.retry(plan.ReasonAdoptionReported)
}

// RetryDenied enqueues the objects in a namespace of the target that the target has denied, after the hub gave their authors rights
// there. The empty namespace means all objects.
func (c *Controller) RetryDenied(namespace string) { c.enqueuer.retryDenied(namespace) }

// SyncTargetChanged enqueues all keys if a mutation reads the SyncTarget.
func (c *Controller) SyncTargetChanged() {
	if readsSyncTarget(&c.Options) {
		c.enqueuer.enqueueAll()
	}
}

// NamespacesChanged enqueues all keys after the namespace policy, or the namespaces of the connection, changed.
func (c *Controller) NamespacesChanged() {
	c.upsync.update(c.matcher.Load())
	c.enqueuer.enqueue(defaultPriority, c.enqueuer.keys()...)
}

// EnqueueRelated enqueues all objects that were synced by a relation.
func (c *Controller) EnqueueRelated() {
	all := related.Change{All: true}
	c.enqueuer.relatedInMailbox(all)
	for _, api := range c.target.apis {
		c.upsync.enqueueRelated(api.TargetAPI, all)
	}
}

// SetMatcher makes the controller select by another matcher, and enqueues the objects whose selection differs.
func (c *Controller) SetMatcher(matcher *selection.Matcher) {
	old := c.matcher.Swap(matcher)
	keys := c.Status.upsynced.allKeys()
	changed := c.upsync.update(matcher)
	c.enqueuer.enqueueReselected(old, matcher, changed)
	c.enqueuer.enqueue(defaultPriority, keys...)
	if old.HasUnresolved() || matcher.HasUnresolved() {
		// It has become certain, or uncertain, whether unselected objects are deselected.
		c.enqueuer.enqueueAll()
	}
	if len(c.Relations) > 0 {
		// The matcher decides in which namespaces related objects may be.
		c.upsync.onRelatedChanges(related.Change{All: true})
	}
}

// OnEvent is called for each change in the mailbox.
func (c *Controller) OnEvent(event mailboxes.Event) {
	c.enqueuer.onMailboxEvent(event)
	if isPlacedCopy(event.New) && c.enqueuer.current() == nil && !c.Status.IsServed() {
		c.recheckStart()
	}
}

// OnReset is called when the mailbox cache was relisted, or stops being filled.
func (c *Controller) OnReset() {
	c.OnChange()
	c.recheckStart()
	c.resync()
}

// OnAbsenceDecided is called when a suspected absence was verified or refuted.
func (c *Controller) OnAbsenceDecided(key types.NamespacedName) {
	if key == absence.AllObjects {
		c.primaries.checkInitialSync()
		return
	}
	c.enqueuer.enqueue(changePriority, key)
}
