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

// EdgeSyncConfig is the older form of SyncerConfig: it selects objects one by one, by kind, and may convert them. It
// counts together with all other configs of the mailbox.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=esc,categories=synchub
// +kubebuilder:printcolumn:name="Selected",type=integer,JSONPath=`.status.selected`
// +kubebuilder:printcolumn:name="Synced",type=integer,JSONPath=`.status.synced`
// +kubebuilder:printcolumn:name="Failed",type=integer,JSONPath=`.status.failed`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type EdgeSyncConfig struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says which objects travel, and how.
	// +optional
	Spec EdgeSyncConfigSpec `json:"spec,omitempty"`

	// Status says how far the hub has come with them.
	// +optional
	Status SyncerConfigStatus `json:"status,omitempty"`
}

// EdgeSyncConfigSpec says which objects travel, and how.
type EdgeSyncConfigSpec struct {
	// DownSyncedResources are the mailbox objects that go down to the target.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100000
	DownSyncedResources []EdgeSyncConfigResource `json:"downSyncedResources,omitempty"`

	// UpSyncedResources are the target's objects that come up to the mailbox.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100000
	UpSyncedResources []EdgeSyncConfigResource `json:"upSyncedResources,omitempty"`

	// Conversions let an object have another group, version, kind or name in the mailbox than on the target.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10000
	Conversions []Conversion `json:"conversions,omitempty"`
}

// EdgeSyncConfigResource names an object, or with "*" several, by kind.
type EdgeSyncConfigResource struct {
	// Kind of the object.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^(\*|[A-Za-z][A-Za-z0-9]*)?$`
	Kind string `json:"kind,omitempty"`

	// Group of the kind, empty for the core group.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)?$`
	Group string `json:"group,omitempty"`

	// Version of the kind, without the group.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^([a-z]([-a-z0-9]*[a-z0-9])?)?$`
	Version string `json:"version,omitempty"`

	// Name of the object; "*" stands for all.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[^/%]*$`
	Name string `json:"name,omitempty"`

	// Namespace of the object, empty when it is cluster-scoped; "*" stands for all.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^(\*|[a-z0-9]([-a-z0-9]*[a-z0-9])?)?$`
	Namespace string `json:"namespace,omitempty"`
}

// Conversion says that an object is called one thing in the mailbox and another on the target. An empty name, or "*",
// on both sides means that names stay as they are.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.downstream) && has(self.downstream.name) && self.downstream.name.matches('^[^*]')) || has(self.upstream) && has(self.upstream.name) && self.upstream.name.matches('^[^*]')",message="many upstream names cannot become one downstream name",fieldPath=".downstream.name"
type Conversion struct {
	// Upstream is the object in the mailbox.
	// +optional
	Upstream EdgeSyncConfigResource `json:"upstream,omitempty"`

	// Downstream is the object on the target.
	// +optional
	Downstream EdgeSyncConfigResource `json:"downstream,omitempty"`
}

// EdgeSyncConfigList is a list of EdgeSyncConfigs.
//
// +kubebuilder:object:root=true
type EdgeSyncConfigList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []EdgeSyncConfig `json:"items"`
}
