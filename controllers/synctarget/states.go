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

package synctarget

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/compatibility"
)

// setStates puts into the entries what is known of their resources. That something could not be found out takes away nothing
// that was known.
func setStates(entries []edgev2alpha1.SyncedResource, states map[schema.GroupResource]compatibility.State) {
	for i := range entries {
		entry := &entries[i]
		state, ok := states[resourceOf(*entry)]
		isNews := state.SyncedResourceState != edgev2alpha1.SyncedResourcePending || entry.State == edgev2alpha1.SyncedResourcePending
		if ok && entry.Own && isNews {
			entry.State, entry.Reason, entry.Message = state.SyncedResourceState, state.Reason, state.Message
		}
	}
}

// fits returns what the entries say of whether objects fit.
func fits(entries []edgev2alpha1.SyncedResource) map[schema.GroupResource]compatibility.State {
	var states map[schema.GroupResource]compatibility.State
	for _, entry := range entries {
		if !entry.Own || entry.State == edgev2alpha1.SyncedResourcePending {
			continue
		}
		if states == nil {
			states = map[schema.GroupResource]compatibility.State{}
		}
		states[resourceOf(entry)] = compatibility.State{SyncedResourceState: entry.State, Reason: entry.Reason, Message: entry.Message}
	}
	return states
}

func resourceOf(entry edgev2alpha1.SyncedResource) schema.GroupResource {
	return schema.GroupResource{Group: entry.Group, Resource: entry.Resource}
}
