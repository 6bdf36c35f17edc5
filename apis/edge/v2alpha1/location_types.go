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
)

// DefaultLocationName is the name of the Location that the hub creates in an inventory workspace without any Location.
const DefaultLocationName = "default"

// Location groups SyncTargets of its inventory workspace by their labels, and names the workspaces that may place objects
// there. EdgePlacements select Locations by the labels of the Location.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=loc,categories=synchub
// +kubebuilder:printcolumn:name="Instances",type=integer,JSONPath=`.status.instances`
// +kubebuilder:printcolumn:name="Available",type=integer,JSONPath=`.status.availableInstances`
// +kubebuilder:printcolumn:name="Workspaces",type=string,priority=1,JSONPath=`.spec.availableTo.workspaces`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Location struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec selects the SyncTargets of the Location, and names the workspaces that may use them.
	// +required
	Spec LocationSpec `json:"spec"`

	// status counts the SyncTargets of the Location.
	// +optional
	Status LocationStatus `json:"status,omitempty"`
}

// LocationSpec selects the SyncTargets of a Location, and names the workspaces that may use them.
type LocationSpec struct {
	// resource is the kind of the instances. It can only be SyncTargets.
	// +optional
	// +kubebuilder:default={group: edge.kubestellar.io, version: v2alpha1, resource: synctargets}
	Resource GroupVersionResource `json:"resource"`

	// description describes the Location for users.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Description string `json:"description,omitempty"`

	// availableSelectorLabels document the labels of the instances.
	//
	// Deprecated: kept so that YAML of KubeStellar applies. The hub ignores the field, as KubeStellar does.
	// +optional
	// +listType=map
	// +listMapKey=key
	// +kubebuilder:validation:MaxItems=64
	AvailableSelectorLabels []AvailableSelectorLabel `json:"availableSelectorLabels,omitempty"`

	// instanceSelector selects SyncTargets of the same workspace by their labels. An absent or empty selector selects
	// all.
	// +optional
	InstanceSelector *metav1.LabelSelector `json:"instanceSelector,omitempty"`

	// availableTo lists the workspaces that may place objects in the Location. The workspace of the Location always may. No
	// other workspace may unless this field names it.
	// +optional
	// +kubebuilder:default={}
	AvailableTo AvailableTo `json:"availableTo,omitempty"`
}

// AvailableTo names the workspaces that may use a Location.
type AvailableTo struct {
	// workspaces are paths, such as "root:teams:web". A path that ends with ":*", such as "root:teams:*", names all
	// children of a workspace, but not their children. The list is there even if it is empty, so that a JSON patch can add
	// to it.
	// +optional
	// +kubebuilder:default={}
	// +listType=set
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=512
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(:[a-z0-9]([-a-z0-9]*[a-z0-9])?)*(:\*)?$`
	Workspaces []string `json:"workspaces,omitempty"`

	// upsync lets these workspaces sync objects of the clusters up by spec.upsync of their placements. By default only the
	// workspace of the Location may: all workspaces that place on a cluster share its mailbox, and an object that one of them
	// syncs up conflicts with another workspace's object of the same name.
	// +optional
	Upsync bool `json:"upsync,omitempty"`
}

// GroupVersionResource names the kind of the instances of a Location.
type GroupVersionResource struct {
	// group of the resource.
	// +optional
	// +kubebuilder:default=edge.kubestellar.io
	// +kubebuilder:validation:Enum=edge.kubestellar.io
	Group string `json:"group,omitempty"`

	// version of the resource.
	// +required
	// +kubebuilder:validation:Enum=v2alpha1
	Version string `json:"version"`

	// resource is the plural name.
	// +required
	// +kubebuilder:validation:Enum=synctargets
	Resource string `json:"resource"`
}

// AvailableSelectorLabel documents a label of the instances of a Location.
type AvailableSelectorLabel struct {
	// key of the label.
	// +required
	// +kubebuilder:validation:MaxLength=317
	Key string `json:"key"`

	// values that the label can have.
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=63
	Values []string `json:"values"`

	// description of the label.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Description string `json:"description,omitempty"`
}

// LocationStatus counts the SyncTargets of a Location.
type LocationStatus struct {
	// instances is the number of SyncTargets that the Location selects.
	// +optional
	Instances *int32 `json:"instances,omitempty"`

	// availableInstances is the number of selected SyncTargets that are Ready and may get new objects.
	// +optional
	AvailableInstances *int32 `json:"availableInstances,omitempty"`

	// conditions of the Location: Ready, which is False while the hub cannot use the Location, so that the Location selects
	// nothing, and WithdrawalPending, which is True while copies wait for their withdrawal. KubeStellar has no conditions here.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// LocationList is a list of Locations.
//
// +kubebuilder:object:root=true
type LocationList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Location `json:"items"`
}
