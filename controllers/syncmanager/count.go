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
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/objectsync"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/provider/mailboxes"
)

// Counts are the numbers of mailboxes, targets and objects of a resource.
type Counts struct {
	// Mailboxes is the number of mailboxes that serve the API, Targets the number of targets that are synced
	// with it, and Objects the number of objects on these targets.
	Mailboxes, Targets, Objects int64
}

func (c *Counts) add(share Counts) {
	c.Mailboxes += share.Mailboxes
	c.Targets += share.Targets
	c.Objects += share.Objects
}

// countTimeout limits how long a SyncTarget, or a controller that was just started, may leave counts unknown.
// An unreachable target must not block the counts of all other targets for ever.
const countTimeout = 2 * time.Minute

// counter counts the objects of one SyncTarget, as of one publication.
type counter struct {
	mailboxes   *mailboxes.Mailboxes
	mailbox     logicalcluster.Name
	state       *targetState
	published   []plan.Resource
	publication int
	now         time.Time
}

func (m *Manager) counterOf(state *targetState) counter {
	published, publication := m.catalog.published()
	return counter{m.Mailboxes, state.currentTarget().Mailbox, state, published, publication, m.Clock.Now()}
}

// countOf returns the share of the SyncTarget of the counts of a mailbox resource.
func (c counter) countOf(resource schema.GroupResource) (counts Counts, known bool) {
	if !c.mailboxes.IsKnownNotServed(c.mailbox, resource) {
		counts.Mailboxes = 1
	}
	c.state.lock.Lock()
	defer c.state.lock.Unlock()
	if running, ok := c.state.syncControllers[resource]; ok {
		counts.Targets, counts.Objects = 1, int64(running.controller.Status.CopiedObjectCount())
	}
	return counts, c.isKnownLocked(resource)
}

// areKnown reports whether the counts of all resources of the SyncTarget are known.
func (c counter) areKnown() bool {
	c.state.lock.Lock()
	defer c.state.lock.Unlock()
	if unstarted := c.state.unstarted; len(unstarted) > 0 && !c.isKnownLocked(unstarted[0]) {
		return false
	}
	for resource := range c.state.syncControllers {
		if !c.isKnownLocked(resource) {
			return false
		}
	}
	return len(c.state.syncControllers) > 0 || c.isKnownLocked(schema.GroupResource{})
}

// isKnownLocked reports whether the SyncTarget's share of the counts of a resource has been observed, or has timed out. The caller
// holds the lock of the state.
func (c counter) isKnownLocked(resource schema.GroupResource) bool {
	if c.state.isPreparing() {
		return false
	}
	isApplied := c.state.isAppliedLocked(c.publication) && c.state.missingAPIsKnown && !slices.Contains(c.state.unstarted, resource)
	if !isApplied && !c.isTimedOutLocked() {
		return false
	}
	running, ok := c.state.syncControllers[resource]
	return !ok || running.controller.HasSynced() && running.controller.HasCompletedFirstPass() || !c.now.Before(running.startedAt.Add(countTimeout))
}

func (c counter) isTimedOutLocked() bool {
	return !c.now.Before(c.state.syncStartedAt.Add(countTimeout))
}

// isUnpublished reports whether no object of a resource that is about to be unpublished has the hub's
// finalizer in the mailbox of the SyncTarget, or will get it. It returns false until this replica has applied the
// publication there, but not for ever if the mailbox cannot be observed.
func (c counter) isUnpublished(resource plan.Resource) bool {
	if !resource.Unpublishing || resource.UID == "" || c.state.isPreparing() {
		return false
	}
	// A mailbox that this replica has just begun to need is listed later than its configs.
	_, isListed := c.mailboxes.List(resource.GroupVersionResource, c.mailbox)
	c.state.lock.Lock()
	isDecided := isListed && c.state.isAppliedLocked(c.publication) || c.isTimedOutLocked()
	running, runs := c.state.syncControllers[resource.GroupResource()]
	c.state.lock.Unlock()
	mayAddFinalizers := runs && !running.controller.Resource.Unpublishing
	return isDecided && !mayAddFinalizers && len(withFinalizers(c.mailboxes, c.mailbox, []plan.Resource{resource})) == 0
}

// SyncStatus returns the sync status of a version of a copy that a placement made in the mailbox of a
// SyncTarget. known is false before the first pass for the object.
func (m *Manager) SyncStatus(syncTarget types.UID, resource schema.GroupResource, key types.NamespacedName, version objectsync.CopyVersion) (found objectsync.SyncStatus, known bool) {
	state, ok := m.get(syncTarget)
	if !ok {
		return found, false
	}
	state.lock.Lock()
	running := state.syncControllers[resource]
	state.lock.Unlock()
	if running != nil {
		found, known = running.controller.Status.SyncStatus(key, version)
	}
	if !known && version == objectsync.InstalledCRD && resource == objectsync.CRDResource.GroupResource() {
		return state.installedCRD(key.Name)
	}
	return found, known
}

// Copies returns the sync statuses of all copies that placements made in the mailbox of a SyncTarget. known is
// false while some copies are not observed yet, as for [FleetCounter.Count]. The mailbox is empty if this
// process does not sync the SyncTarget.
func (m *Manager) Copies(syncTarget types.UID) (copies []objectsync.PlacedCopy, mailbox logicalcluster.Name, known bool) {
	state, ok := m.get(syncTarget)
	if !ok {
		return nil, "", false
	}
	counter := m.counterOf(state)
	if !counter.areKnown() {
		return nil, counter.mailbox, false
	}
	for _, controller := range state.controllers() {
		copies = append(copies, controller.Status.Copies()...)
	}
	return append(copies, state.installedCRDs()...), counter.mailbox, true
}

// StuckCopies returns the stuck copies of all SyncTargets, see [objectsync.ObjectRef].
func (m *Manager) StuckCopies() (refs []objectsync.ObjectRef) {
	for _, syncTarget := range m.SyncTargets() {
		if state, ok := m.get(syncTarget); ok {
			for _, controller := range state.controllers() {
				refs = append(refs, controller.Status.StuckCopies()...)
			}
		}
	}
	return refs
}

// Summary summarizes all objects that are synced with a SyncTarget's target. known is false while the SyncTarget is not synced, and while
// some objects are not observed yet, as for [FleetCounter.Count].
func (m *Manager) Summary(syncTarget types.UID) (sum objectsync.Summary, known bool) {
	state, ok := m.get(syncTarget)
	if !ok || !m.counterOf(state).areKnown() {
		return sum, false
	}
	for _, controller := range state.controllers() {
		sum.Add(controller.Status.Summary())
	}
	return sum, true
}

// Progress reports the progress of all objects that are synced with a SyncTarget's target.
func (m *Manager) Progress(syncTarget types.UID) objectsync.Progress {
	progress := objectsync.Progress{IsSettled: true}
	if state, ok := m.get(syncTarget); ok {
		for _, controller := range state.controllers() {
			progress = progress.And(controller.Status.Progress())
		}
	}
	return progress
}
