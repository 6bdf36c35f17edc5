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

package publishedresource

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
)

// ReasonAnotherHub is the reason of the event on a PublishedResource that another hub publishes.
const ReasonAnotherHub = "PublishedByAnotherHub"

// Hub is the hub that publishes. Two hubs in one hosting cluster list the same PublishedResources. Each PublishedResource
// belongs to the hub in status.hub, and no other hub writes it.
type Hub struct {
	// UID is the UID of the LogicalCluster of the hub's provider workspace, and Workspace is the path of that workspace.
	UID       types.UID
	Workspace string
}

// Owns reports whether the PublishedResource belongs to the hub, or to no hub yet.
func (h Hub) Owns(resource *synchubv1alpha1.PublishedResource) bool {
	return resource.Status.Hub == nil || resource.Status.Hub.UID == h.UID
}

// SetOwner sets status.hub. It takes effect once the status is stored: if two hubs claim a PublishedResource at the same
// time, the second write fails with a conflict.
func (h Hub) SetOwner(resource *synchubv1alpha1.PublishedResource) {
	resource.Status.Hub = &synchubv1alpha1.HubReference{UID: h.UID, Workspace: h.Workspace}
}

// OtherHubMessage returns the message that another hub owns the PublishedResource, and how to hand it over.
func (h Hub) OtherHubMessage(resource *synchubv1alpha1.PublishedResource) string {
	return fmt.Sprintf("The hub of the provider workspace %s (%s) publishes this PublishedResource, so the hub of %s (%s) leaves it alone. If the former was removed permanently, "+
		"hand it over: kubectl patch publishedresources %s --subresource=status --type=merge --patch='{\"status\":{\"hub\":null}}'",
		resource.Status.Hub.Workspace, resource.Status.Hub.UID, h.Workspace, h.UID, resource.Name)
}
