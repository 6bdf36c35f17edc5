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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/syncmanager/schemacheck"
	"github.com/synchub-dev/synchub/provider/ledger"
	"github.com/synchub-dev/synchub/provider/targets"
)

// syncedResources returns status.syncedResources: the resources of the ledger, in its order, with their current states. A pending
// state does not replace the recorded one. A resource that the hub cannot read now, for the given reason, is pending.
func syncedResources(recorded []ledger.Resource, states map[schema.GroupResource]schemacheck.State, unreadable map[schema.GroupResource]string) []edgev2alpha1.SyncedResource {
	var shown []edgev2alpha1.SyncedResource
	for _, resource := range recorded {
		entry := edgev2alpha1.SyncedResource{
			Group: resource.Group, Resource: resource.Resource, Own: resource.Direct,
			State: edgev2alpha1.SyncedResourceState(resource.State), Reason: resource.Reason, Message: resource.Message,
		}
		if resource.Version != "" {
			entry.Versions = []string{resource.Version}
		}
		entry.ConvertedFrom = append(entry.ConvertedFrom, resource.ConvertedFrom...)
		switch state, ok := states[schema.GroupResource(resource.GroupResource)]; {
		case !resource.Direct:
			// The schema check does not cover resources that conversions and relations produce.
			entry.State = edgev2alpha1.SyncedResourceAccepted
		case ok && (state.SyncedResourceState != edgev2alpha1.SyncedResourcePending || entry.State == ""):
			entry.State, entry.Reason, entry.Message = state.SyncedResourceState, state.Reason, state.Message
		case entry.State == "":
			entry.State = edgev2alpha1.SyncedResourcePending
		}
		if why, ok := unreadable[schema.GroupResource(resource.GroupResource)]; ok {
			entry.State, entry.Reason, entry.Message = edgev2alpha1.SyncedResourcePending, targets.ReasonNotReadable, why
		}
		shown = append(shown, entry)
	}
	return shown
}

// formerClusters returns the clusters that the SyncTarget stood for before, as the ledger lists them.
func formerClusters(former []ledger.FormerCluster) []edgev2alpha1.FormerCluster {
	var shown []edgev2alpha1.FormerCluster
	for _, one := range former {
		shown = append(shown, edgev2alpha1.FormerCluster{ClusterID: one.ID, Until: metav1.NewTime(one.Until), Resources: one.Resources})
	}
	return shown
}
