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

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/sync"
)

// Counts say how widely a resource is synced.
type Counts struct {
	// Mailboxes have the API, Targets are synced with it, Objects are on those targets.
	Mailboxes, Targets, Objects int64
}

// Count returns the counts of a resource of the mailboxes.
func (m *Manager) Count(resource schema.GroupResource) Counts {
	m.lock.Lock()
	all := make([]*managed, 0, len(m.targets))
	for _, managed := range m.targets {
		all = append(all, managed)
	}
	m.lock.Unlock()
	counts := Counts{}
	for _, managed := range all {
		if !m.Mailboxes.Lacks(managed.describe().Mailbox, resource) {
			counts.Mailboxes++
		}
		managed.lock.Lock()
		if pair, ok := managed.pairs[resource]; ok {
			counts.Targets++
			counts.Objects += int64(pair.controller.Len())
		}
		managed.lock.Unlock()
	}
	return counts
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

// Sum counts all objects that are synced with a SyncTarget's target; ok is false if none is synced now.
func (m *Manager) Sum(syncTarget types.UID) (sum sync.Sum, ok bool) {
	m.lock.Lock()
	managed, ok := m.targets[syncTarget]
	m.lock.Unlock()
	if !ok {
		return sum, false
	}
	for _, controller := range managed.controllers() {
		sum.Add(controller.Sum())
	}
	return sum, true
}
