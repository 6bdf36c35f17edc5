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
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/objectsync"
)

// Counts say how widely a resource is synced.
type Counts struct {
	// Mailboxes have the API, Targets are synced with it, Objects are on those targets.
	Mailboxes, Targets, Objects int64
}

// countTimeout is for how long a SyncTarget, or a pair that has been started, may leave counts unknown. A target that stays away
// must not hold back for ever what is to be said of all others.
const countTimeout = 2 * time.Minute

// Count returns the counts of a resource of the mailboxes. They are not known as long as something that they count has not been
// observed yet: a hub that has just begun to lead, and a pair that has just been started, count from zero.
func (m *Manager) Count(resource schema.GroupResource) (counts Counts, known bool) {
	known = m.hasObservedAllTargets()
	now := m.Clock.Now()
	m.lock.Lock()
	published := m.publicationNumber
	all := make([]*targetState, 0, len(m.targets))
	for _, state := range m.targets {
		all = append(all, state)
	}
	m.lock.Unlock()
	for _, state := range all {
		if !m.Mailboxes.IsKnownNotServed(state.currentTarget().Mailbox, resource) {
			counts.Mailboxes++
		}
		state.lock.Lock()
		if running, ok := state.syncControllers[resource]; ok {
			counts.Targets++
			counts.Objects += int64(running.controller.TargetObjectCount())
		}
		known = known && state.isCountKnown(resource, published, now)
		state.lock.Unlock()
	}
	return counts, known
}

// isCountKnown tells whether all that a SyncTarget adds to the counts of a resource has been observed, or is not waited for any more.
// The caller holds lock.
func (t *targetState) isCountKnown(resource schema.GroupResource, published int, now time.Time) bool {
	isSettled := t.configsKnown && t.appliedMatcher == t.matcher && t.appliedPublication == published && t.missingAPIsKnown && !slices.Contains(t.unstarted, resource)
	if !isSettled && now.Before(t.assignedAt.Add(countTimeout)) {
		return false
	}
	running, ok := t.syncControllers[resource]
	return !ok || running.controller.HasSynced() && running.controller.HasCompletedFirstPass() || !now.Before(running.startedAt.Add(countTimeout))
}

// isCountKnown tells the same of all resources of a SyncTarget.
func (m *Manager) isCountKnown(state *targetState) bool {
	_, published := m.publication()
	now := m.Clock.Now()
	state.lock.Lock()
	defer state.lock.Unlock()
	if len(state.unstarted) > 0 && !state.isCountKnown(state.unstarted[0], published, now) {
		return false
	}
	for resource := range state.syncControllers {
		if !state.isCountKnown(resource, published, now) {
			return false
		}
	}
	return len(state.syncControllers) > 0 || state.isCountKnown(schema.GroupResource{}, published, now)
}

// hasObservedAllTargets tells whether every SyncTarget that the hub before knew has been assigned, or has been found not to be synced, since
// this hub leads. One that nobody sees any more is waited for no longer than the limit.
func (m *Manager) hasObservedAllTargets() bool {
	if m.KnownSyncTargets == nil {
		return true
	}
	remembered, loaded := m.KnownSyncTargets()
	m.lock.Lock()
	defer m.lock.Unlock()
	if m.observedAll {
		return true
	}
	isUnobserved := func(syncTarget types.UID) bool { return !m.observed[syncTarget] }
	isOver := !m.startedAt.IsZero() && !m.Clock.Now().Before(m.startedAt.Add(countTimeout))
	m.observedAll = isOver || loaded && !slices.ContainsFunc(remembered, isUnobserved)
	if m.observedAll {
		m.observed = nil
	}
	return m.observedAll
}

// markObserved notes that it has been decided whether a SyncTarget is synced. The caller holds the manager's lock.
func (m *Manager) markObserved(syncTarget types.UID) {
	if !m.observedAll {
		m.observed[syncTarget] = true
	}
}

// SyncTargetsMissingAPI returns the SyncTargets whose mailboxes do not have a resource because its name is taken there, sorted.
func (m *Manager) SyncTargetsMissingAPI(resource schema.GroupResource) (syncTargets []string) {
	m.lock.Lock()
	defer m.lock.Unlock()
	for _, state := range m.targets {
		state.lock.Lock()
		if state.missingAPIs.Has(resource) {
			syncTargets = append(syncTargets, fmt.Sprintf("%s (inventory %s)", state.target.Name, state.target.InventoryWorkspace))
		}
		state.lock.Unlock()
	}
	slices.Sort(syncTargets)
	return syncTargets
}

// Sum counts all objects that are synced with a SyncTarget's target. They are not known while none is synced, nor, like those of
// [Manager.Count], as long as something that they count has not been observed yet.
func (m *Manager) Sum(syncTarget types.UID) (sum objectsync.Summary, known bool) {
	state, ok := m.get(syncTarget)
	if !ok || !m.isCountKnown(state) {
		return sum, false
	}
	for _, controller := range state.controllers() {
		sum.Add(controller.Summary())
	}
	return sum, true
}
