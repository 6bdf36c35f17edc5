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

	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/provider/ledger"
)

// localSummary summarizes the objects of a SyncTarget that this replica syncs.
type localSummary struct {
	ledger.SyncSummary
	// isSynced is false if the SyncTarget is not synced here. isKnown is false while some objects are not observed yet; then only
	// Unpublished counts.
	isSynced, isKnown bool
}

// localSummaryOf summarizes the objects of a SyncTarget that this replica syncs; the zero value if it does not sync it.
func (m *Manager) localSummaryOf(syncTarget types.UID) (summary localSummary) {
	state, ok := m.get(syncTarget)
	if !ok {
		return localSummary{}
	}
	counter := m.counterOf(state)
	summary.isSynced, summary.isKnown, summary.Synced = true, counter.areKnown(), true
	for _, resource := range counter.published {
		if m.Mailboxes.IsKnownNotServed(counter.mailbox, resource.GroupResource()) {
			summary.NotServed = append(summary.NotServed, resource.GroupResource().String())
		}
		if counter.isUnpublished(resource) {
			summary.Unpublished = append(summary.Unpublished, resource.UID)
		}
	}
	slices.Sort(summary.NotServed)
	slices.Sort(summary.Unpublished)
	state.lock.Lock()
	defer state.lock.Unlock()
	for _, resource := range state.missingAPIs.Resources {
		summary.Missing = append(summary.Missing, resource.String())
	}
	slices.Sort(summary.Missing)
	summary.Objects = make(map[string]int64, len(state.syncControllers))
	for resource, running := range state.syncControllers {
		summary.Objects[resource.String()] = int64(running.controller.Status.CopiedObjectCount())
	}
	return summary
}

// nextSummary returns the summary of an owner that has held the SyncTarget for a time. The stored summary, possibly of the former owner,
// counts until this owner knows its own. Unpublished is always this owner's own finding, since its controllers may have added finalizers.
func nextSummary(stored *ledger.SyncSummary, local localSummary, heldFor time.Duration) *ledger.SyncSummary {
	switch {
	case local.isKnown:
		return &local.SyncSummary
	case !local.isSynced && heldFor >= countTimeout:
		return &ledger.SyncSummary{}
	case stored == nil || !stored.Synced:
		return stored
	default:
		next := *stored
		next.Unpublished = local.Unpublished
		return &next
	}
}
