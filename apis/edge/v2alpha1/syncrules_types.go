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

package v2alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// SyncRulesName is the name of the SyncRules of each workspace.
const SyncRulesName = "synchub"

// SyncRules shows the users of a mailbox or of a workload workspace the hub's rules for syncing objects. `kubectl synchub
// explain` reads them. The hub writes the status of the SyncRules named synchub in each of these workspaces, and writes it
// again if somebody else has changed it. The hub never reads rules from it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,path=syncrules,singular=syncrules,categories=synchub
// +kubebuilder:validation:XValidation:rule="self.metadata.name == 'synchub'",message="the hub writes the SyncRules named synchub only"
// +kubebuilder:printcolumn:name="Hub",type=string,JSONPath=`.status.hub`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type SyncRules struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// status has the rules.
	// +optional
	Status SyncRulesStatus `json:"status,omitempty"`
}

// SyncRulesStatus contains the hub's rules for syncing objects.
type SyncRulesStatus struct {
	// hub is the UID of the hub, as the marks of its objects have it.
	// +optional
	Hub types.UID `json:"hub,omitempty"`

	// protectedNamespaces are the namespaces of clusters that the hub does not use unless a PublishedResource or a SyncTarget allows it.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1024
	// +kubebuilder:validation:items:MaxLength=253
	ProtectedNamespaces []string `json:"protectedNamespaces,omitempty"`

	// publishedResources are all that the hub publishes, by name.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=4096
	PublishedResources []PublishedRules `json:"publishedResources,omitempty"`
}

// PublishedRules are the rules of one PublishedResource.
type PublishedRules struct {
	// name is the name of the PublishedResource in the hosting cluster.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// creationTimestamp is the creation time of the PublishedResource. If several PublishedResources name one resource, the
	// oldest is in force.
	// +optional
	CreationTimestamp *metav1.Time `json:"creationTimestamp,omitempty"`

	// ready is the status of the condition Ready of the PublishedResource, and reason is its reason.
	// +optional
	// +kubebuilder:validation:Enum=True;False;Unknown
	Ready metav1.ConditionStatus `json:"ready,omitempty"`

	// reason is the reason of the condition Ready.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Reason string `json:"reason,omitempty"`

	// spec is the spec of the PublishedResource, without the source of its schema. It is absent if it is too large to fit
	// beside the other specs.
	// +optional
	// +kubebuilder:validation:Type=object
	// +kubebuilder:validation:XPreserveUnknownFields
	Spec *runtime.RawExtension `json:"spec,omitempty"`
}

// SyncRulesList is a list of SyncRules.
//
// +kubebuilder:object:root=true
type SyncRulesList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []SyncRules `json:"items"`
}
