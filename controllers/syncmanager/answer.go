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

	"github.com/synchub-dev/synchub/controllers/objectsync/plan"
	"github.com/synchub-dev/synchub/provider/ledger"
)

// localAnswer is what this replica knows of the objects of a SyncTarget that it holds.
type localAnswer struct {
	ledger.Answer
	// isAssigned is false if the SyncTarget is not synced here. isKnown is false while some objects are not observed yet; then only
	// Unpublished counts.
	isAssigned, isKnown bool
}

// answer returns what this replica knows of the objects of a SyncTarget.
func (m *Manager) answer(syncTarget types.UID) (answer localAnswer) {
	state, ok := m.get(syncTarget)
	if !ok {
		return localAnswer{}
	}
	published, publication := m.publication()
	mailbox := state.currentTarget().Mailbox
	answer.isAssigned, answer.isKnown, answer.Synced = true, m.isCountKnown(state), true
	for _, resource := range published {
		if m.Mailboxes.IsKnownNotServed(mailbox, resource.GroupResource()) {
			answer.NotServed = append(answer.NotServed, resource.GroupResource().String())
		}
		if m.isUnpublishedBy(state, resource, publication) {
			answer.Unpublished = append(answer.Unpublished, resource.UID)
		}
	}
	slices.Sort(answer.NotServed)
	slices.Sort(answer.Unpublished)
	state.lock.Lock()
	defer state.lock.Unlock()
	for _, resource := range state.missingAPIs.Resources {
		answer.Missing = append(answer.Missing, resource.String())
	}
	slices.Sort(answer.Missing)
	answer.Objects = make(map[string]int64, len(state.syncControllers))
	for resource, running := range state.syncControllers {
		answer.Objects[resource.String()] = int64(running.controller.CopiedObjectCount())
	}
	return answer
}

// isUnpublishedBy reports whether no object of a resource that is about to be unpublished has the hub's finalizer in the mailbox of a
// SyncTarget, or gets one. It is false until this replica has put the publication into force there, but not for ever if the mailbox cannot
// be observed.
func (m *Manager) isUnpublishedBy(state *targetState, resource plan.Resource, publication int) bool {
	if !resource.Unpublishing || resource.UID == "" || state.isPreparing() {
		return false
	}
	// A mailbox that this replica has just begun to need is listed later than its configs.
	_, isListed := m.Mailboxes.List(resource.GroupVersionResource, state.currentTarget().Mailbox)
	state.lock.Lock()
	hasApplied := isListed && state.configsKnown && state.appliedMatcher == state.matcher && state.appliedPublication == publication
	isOver := !m.Clock.Now().Before(state.assignedAt.Add(countTimeout))
	state.lock.Unlock()
	return (hasApplied || isOver) && !m.mayHaveFinalizers(state, resource)
}

// nextAnswer returns the answer of a holder, which has held the SyncTarget for a time. The answer that is stored, possibly of the former
// holder, counts until this one knows better. But that no object has the finalizer each holder must have found out itself: its
// controllers may have added finalizers.
func nextAnswer(stored *ledger.Answer, local localAnswer, heldFor time.Duration) *ledger.Answer {
	switch {
	case local.isKnown:
		return &local.Answer
	case !local.isAssigned && heldFor >= countTimeout:
		return &ledger.Answer{}
	case stored == nil || !stored.Synced:
		return stored
	default:
		next := *stored
		next.Unpublished = local.Unpublished
		return &next
	}
}
