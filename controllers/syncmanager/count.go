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

	"github.com/synchub-dev/synchub/controllers/sync"
)

// Counts say how widely a resource is synced.
type Counts struct {
	// Mailboxes have the API, Targets are synced with it, Objects are on those targets.
	Mailboxes, Targets, Objects int64
}

// countLimit is for how long a SyncTarget, or a pair that has been started, may leave counts unknown. A target that stays away
// must not hold back for ever what is to be said of all others.
const countLimit = 2 * time.Minute

// Count returns the counts of a resource of the mailboxes. They are not known as long as something that they count has not been
// observed yet: a hub that has just begun to lead, and a pair that has just been started, count from zero.
func (m *Manager) Count(resource schema.GroupResource) (counts Counts, known bool) {
	known = m.hasObservedAll()
	now := m.Clock.Now()
	m.lock.Lock()
	published := m.publications
	all := make([]*managed, 0, len(m.targets))
	for _, managed := range m.targets {
		all = append(all, managed)
	}
	m.lock.Unlock()
	for _, managed := range all {
		if !m.Mailboxes.Lacks(managed.describe().Mailbox, resource) {
			counts.Mailboxes++
		}
		managed.lock.Lock()
		if pair, ok := managed.pairs[resource]; ok {
			counts.Targets++
			counts.Objects += int64(pair.controller.Len())
		}
		known = known && managed.isCounted(resource, published, now)
		managed.lock.Unlock()
	}
	return counts, known
}

// isCounted tells whether all that a SyncTarget adds to the counts of a resource has been observed, or is not waited for any more.
// The caller holds lock.
func (t *managed) isCounted(resource schema.GroupResource, published int, now time.Time) bool {
	isSettled := t.known && t.settled == t.matcher && t.settledFor == published && t.missingKnown && !slices.Contains(t.unstarted, resource)
	if !isSettled && now.Before(t.since.Add(countLimit)) {
		return false
	}
	pair, ok := t.pairs[resource]
	return !ok || pair.controller.Synced() && pair.controller.Knows() || !now.Before(pair.since.Add(countLimit))
}

// isCounted tells the same of all resources of a SyncTarget.
func (m *Manager) isCounted(managed *managed) bool {
	_, published := m.publication()
	now := m.Clock.Now()
	managed.lock.Lock()
	defer managed.lock.Unlock()
	if len(managed.unstarted) > 0 && !managed.isCounted(managed.unstarted[0], published, now) {
		return false
	}
	for resource := range managed.pairs {
		if !managed.isCounted(resource, published, now) {
			return false
		}
	}
	return len(managed.pairs) > 0 || managed.isCounted(schema.GroupResource{}, published, now)
}

// hasObservedAll tells whether every SyncTarget that the hub before knew has been assigned, or has been found not to be synced, since
// this hub leads. One that nobody sees any more is waited for no longer than the limit.
func (m *Manager) hasObservedAll() bool {
	if m.Remembered == nil {
		return true
	}
	remembered, loaded := m.Remembered()
	m.lock.Lock()
	defer m.lock.Unlock()
	if m.observedAll {
		return true
	}
	isUnobserved := func(syncTarget types.UID) bool { return !m.observed[syncTarget] }
	isOver := !m.began.IsZero() && !m.Clock.Now().Before(m.began.Add(countLimit))
	m.observedAll = isOver || loaded && !slices.ContainsFunc(remembered, isUnobserved)
	if m.observedAll {
		m.observed = nil
	}
	return m.observedAll
}

// noteObserved notes that it has been decided whether a SyncTarget is synced. The caller holds the manager's lock.
func (m *Manager) noteObserved(syncTarget types.UID) {
	if !m.observedAll {
		m.observed[syncTarget] = true
	}
}

// Without returns the SyncTargets whose mailboxes do not have a resource because its name is taken there, sorted.
func (m *Manager) Without(resource schema.GroupResource) (syncTargets []string) {
	m.lock.Lock()
	defer m.lock.Unlock()
	for _, managed := range m.targets {
		managed.lock.Lock()
		if managed.missing.Has(resource) {
			syncTargets = append(syncTargets, fmt.Sprintf("%s (inventory %s)", managed.target.Name, managed.target.Inventory))
		}
		managed.lock.Unlock()
	}
	slices.Sort(syncTargets)
	return syncTargets
}

// Sum counts all objects that are synced with a SyncTarget's target. They are not known while none is synced, nor, like those of
// [Manager.Count], as long as something that they count has not been observed yet.
func (m *Manager) Sum(syncTarget types.UID) (sum sync.Sum, known bool) {
	managed, ok := m.get(syncTarget)
	if !ok || !m.isCounted(managed) {
		return sum, false
	}
	for _, controller := range managed.controllers() {
		sum.Add(controller.Sum())
	}
	return sum, true
}
