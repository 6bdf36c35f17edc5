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

// EdgeSyncConfig is the older form of SyncerConfig. It selects objects by kind, one per entry or several with "*",
// and may convert them. The hub syncs the union of the objects that all SyncerConfigs and EdgeSyncConfigs of a
// mailbox select.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=esc,categories=synchub
// +kubebuilder:printcolumn:name="Selected",type=integer,JSONPath=`.status.selected`
// +kubebuilder:printcolumn:name="Synced",type=integer,JSONPath=`.status.synced`
// +kubebuilder:printcolumn:name="Objects Ready",type=integer,JSONPath=`.status.ready`
// +kubebuilder:printcolumn:name="Failed",type=integer,JSONPath=`.status.failed`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type EdgeSyncConfig struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec selects the objects that the hub syncs, and how it syncs them.
	// +optional
	Spec EdgeSyncConfigSpec `json:"spec,omitempty"`

	// status reports how many of the selected objects are in sync, and why the rest are not.
	// +optional
	Status SyncerConfigStatus `json:"status,omitempty"`
}

// EdgeSyncConfigSpec selects the objects that the hub syncs, and how it syncs them.
type EdgeSyncConfigSpec struct {
	// downSyncedResources selects the mailbox objects that the hub syncs down to the target.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100000
	DownSyncedResources []EdgeSyncConfigResource `json:"downSyncedResources,omitempty"`

	// upSyncedResources selects the target objects that the hub syncs up to the mailbox.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100000
	UpSyncedResources []EdgeSyncConfigResource `json:"upSyncedResources,omitempty"`

	// conversions give an object another group, version, kind or name on the target than in the mailbox.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10000
	Conversions []Conversion `json:"conversions,omitempty"`
}

// EdgeSyncConfigResource names one object by kind, or several objects with "*".
type EdgeSyncConfigResource struct {
	// kind of the object; "*" stands for every kind of the group.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^(\*|[A-Za-z][A-Za-z0-9]*)?$`
	Kind string `json:"kind,omitempty"`

	// group of the kind. Empty means the core group.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)?$`
	Group string `json:"group,omitempty"`

	// version of the kind, without the group. Empty means any version.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^([a-z]([-a-z0-9]*[a-z0-9])?)?$`
	Version string `json:"version,omitempty"`

	// name of the object; "*" stands for all names. An empty name selects nothing in downSyncedResources and
	// upSyncedResources, and means any name in conversions.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[^/%]*$`
	Name string `json:"name,omitempty"`

	// namespace of the object; "*" stands for all namespaces. Empty means a cluster-scoped object in
	// downSyncedResources and upSyncedResources, and any namespace in conversions.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^(\*|[a-z0-9]([-a-z0-9]*[a-z0-9])?)?$`
	Namespace string `json:"namespace,omitempty"`
}

// Conversion maps an object in the mailbox to an object of another group, version, kind or name on the target. With
// an empty name or "*" on both sides, objects keep their names.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.downstream) && has(self.downstream.name) && self.downstream.name.matches('^[^*]')) || has(self.upstream) && has(self.upstream.name) && self.upstream.name.matches('^[^*]')",message="many upstream names cannot become one downstream name",fieldPath=".downstream.name"
type Conversion struct {
	// upstream is the object as the mailbox names it.
	// +optional
	Upstream EdgeSyncConfigResource `json:"upstream,omitempty"`

	// downstream is the object as the target names it.
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
