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

	"github.com/synchub-dev/synchub/controllers/objectsync"
	"github.com/synchub-dev/synchub/controllers/plan"
)

// unpublishing returns the resources that are about to be unpublished, and whose mailbox objects still have the
// hub's finalizer.
func (m *Manager) unpublishing(state *targetState, published []plan.Resource) []plan.Resource {
	mailbox := state.currentTarget().Mailbox
	var withFinalizers []plan.Resource
	for _, resource := range published {
		if !resource.Unpublishing {
			continue
		}
		if objects, _ := m.Mailboxes.List(resource.GroupVersionResource, mailbox); slices.ContainsFunc(objects, objectsync.HasFinalizer) {
			withFinalizers = append(withFinalizers, resource)
		}
	}
	return withFinalizers
}

// mayHaveFinalizers reports whether objects of a resource that is about to be unpublished have the hub's
// finalizer in the mailbox of a SyncTarget, or may get it.
func (m *Manager) mayHaveFinalizers(state *targetState, resource plan.Resource) bool {
	state.lock.Lock()
	running, runs := state.syncControllers[resource.GroupResource()]
	busy := runs && !running.controller.Resource.Unpublishing
	state.lock.Unlock()
	return busy || len(m.unpublishing(state, []plan.Resource{resource})) > 0
}
