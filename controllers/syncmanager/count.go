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

// countOf returns the share of a SyncTarget of the counts of a mailbox resource.
func (m *Manager) countOf(state *targetState, resource schema.GroupResource, publication int, now time.Time) (counts Counts, known bool) {
	if !m.Mailboxes.IsKnownNotServed(state.currentTarget().Mailbox, resource) {
		counts.Mailboxes = 1
	}
	state.lock.Lock()
	defer state.lock.Unlock()
	if running, ok := state.syncControllers[resource]; ok {
		counts.Targets, counts.Objects = 1, int64(running.controller.Status.CopiedObjectCount())
	}
	return counts, state.isCountKnown(resource, publication, now)
}

// isCountKnown reports whether the SyncTarget's share of the counts of a resource has been observed, or has timed out. The caller holds
// t.lock.
func (t *targetState) isCountKnown(resource schema.GroupResource, publication int, now time.Time) bool {
	if t.isPreparing() {
		return false
	}
	isApplied := t.configsKnown && t.appliedMatcher == t.matcher && t.appliedPublication == publication && t.missingAPIsKnown && !slices.Contains(t.unstarted, resource)
	if !isApplied && now.Before(t.syncStartedAt.Add(countTimeout)) {
		return false
	}
	running, ok := t.syncControllers[resource]
	return !ok || running.controller.HasSynced() && running.controller.HasCompletedFirstPass() || !now.Before(running.startedAt.Add(countTimeout))
}

// areCountsKnown reports the same for all resources of a SyncTarget.
func (m *Manager) areCountsKnown(state *targetState) bool {
	_, publication := m.publication()
	now := m.Clock.Now()
	state.lock.Lock()
	defer state.lock.Unlock()
	if len(state.unstarted) > 0 && !state.isCountKnown(state.unstarted[0], publication, now) {
		return false
	}
	for resource := range state.syncControllers {
		if !state.isCountKnown(resource, publication, now) {
			return false
		}
	}
	return len(state.syncControllers) > 0 || state.isCountKnown(schema.GroupResource{}, publication, now)
}

// ObjectState returns the sync status of a version of a copy that a placement made in the mailbox of a
// SyncTarget. known is false before the first pass for the object.
func (m *Manager) ObjectState(syncTarget types.UID, resource schema.GroupResource, key types.NamespacedName, version objectsync.PlacementCopyVersion) (found objectsync.ObjectState, known bool) {
	state, ok := m.get(syncTarget)
	if !ok {
		return found, false
	}
	state.lock.Lock()
	running := state.syncControllers[resource]
	state.lock.Unlock()
	if running != nil {
		found, known = running.controller.Status.ObjectState(key, version)
	}
	if !known && version == objectsync.InstalledCRD && resource == objectsync.CRDResource.GroupResource() {
		return state.installedCRD(key.Name)
	}
	return found, known
}

// Copies returns the sync statuses of all copies that placements made in the mailbox of a SyncTarget. known is
// false while some copies are not observed yet, as for [FleetCounter.Count]. The mailbox is empty if this
// process does not sync the SyncTarget.
func (m *Manager) Copies(syncTarget types.UID) (copies []objectsync.PlacementCopy, mailbox logicalcluster.Name, known bool) {
	state, ok := m.get(syncTarget)
	if !ok {
		return nil, "", false
	}
	mailbox = state.currentTarget().Mailbox
	if !m.areCountsKnown(state) {
		return nil, mailbox, false
	}
	for _, controller := range state.controllers() {
		copies = append(copies, controller.Status.Copies()...)
	}
	return append(copies, state.installedCRDs()...), mailbox, true
}

// Summary summarizes all objects that are synced with a SyncTarget's target. known is false while the SyncTarget is not synced, and while
// some objects are not observed yet, as for [FleetCounter.Count].
func (m *Manager) Summary(syncTarget types.UID) (sum objectsync.Summary, known bool) {
	state, ok := m.get(syncTarget)
	if !ok || !m.areCountsKnown(state) {
		return sum, false
	}
	for _, controller := range state.controllers() {
		sum.Add(controller.Status.Summary())
	}
	return sum, true
}
