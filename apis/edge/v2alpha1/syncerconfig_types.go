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

// SyncerConfig selects, in a mailbox workspace, the objects that the hub syncs between this mailbox and its target.
// The hub syncs the union of the objects that all SyncerConfigs and EdgeSyncConfigs of a mailbox select. In every
// list "*" stands for all; an absent or empty list selects nothing.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=escfg,categories=synchub
// +kubebuilder:printcolumn:name="Selected",type=integer,JSONPath=`.status.selected`
// +kubebuilder:printcolumn:name="Synced",type=integer,JSONPath=`.status.synced`
// +kubebuilder:printcolumn:name="Objects Ready",type=integer,JSONPath=`.status.ready`
// +kubebuilder:printcolumn:name="Failed",type=integer,JSONPath=`.status.failed`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type SyncerConfig struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec selects the objects that the hub syncs, and how it syncs them.
	// +optional
	// +kubebuilder:default={}
	Spec SyncerConfigSpec `json:"spec,omitempty"`

	// status reports how many of the selected objects are in sync, and why the rest are not.
	// +optional
	Status SyncerConfigStatus `json:"status,omitempty"`
}

// SyncerConfigSpec selects the objects that the hub syncs, and how it syncs them. The hub syncs the union of namespaceScope,
// namespacedObjects and clusterScope down to the target. It syncs the objects that upsync selects up to the mailbox.
type SyncerConfigSpec struct {
	// namespaceScope selects namespaced objects by namespace and resource: all objects of each listed resource in
	// each listed namespace.
	// +optional
	NamespaceScope NamespaceScopeDownsyncs `json:"namespaceScope,omitempty"`

	// namespacedObjects selects namespaced objects by name.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10000
	NamespacedObjects []NamespaceScopeDownsyncObjects `json:"namespacedObjects,omitempty"`

	// clusterScope selects cluster-scoped objects. The hub creates each namespace that a selected object needs on the
	// target and that is missing there. It keeps a Namespace in sync with the mailbox only when this field selects
	// the Namespace.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10000
	ClusterScope []ClusterScopeDownsyncResource `json:"clusterScope,omitempty"`

	// upsync selects target objects that the hub syncs up to the mailbox, with their status. The hub never upsyncs an
	// object that it has downsynced.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10000
	Upsync []UpsyncSet `json:"upsync,omitempty"`

	// statusReturn controls whether the hub writes the status of downsynced objects back to the mailbox.
	// +optional
	// +kubebuilder:default=true
	StatusReturn *bool `json:"statusReturn,omitempty"`

	// deletionPolicy determines what happens to a copy when this config no longer selects its original, or when the original
	// is deleted. When configs disagree on an object, Orphan wins.
	// +optional
	// +kubebuilder:default=Delete
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`

	// suspend stops the sync of all objects that only this config, or only suspended configs, select. The hub then
	// creates, changes and deletes no copy of them and writes no status.
	// +optional
	Suspend bool `json:"suspend,omitempty"`

	// conversions give an object another group, version, kind or name on the target than in the mailbox.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:XValidation:rule="has(self.upstream) && has(self.upstream.kind)",message="upstream.kind is required"
	// +kubebuilder:validation:items:XValidation:rule="has(self.downstream) && has(self.downstream.kind)",message="downstream.kind is required"
	Conversions []Conversion `json:"conversions,omitempty"`
}

// GroupResource names a resource without its version.
type GroupResource struct {
	// group of the resource. Empty means the core group.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)?$`
	Group string `json:"group"`

	// resource is the plural name, or "*" for every resource of the group. It cannot name a subresource.
	// +required
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^(\*|[a-z0-9]([-a-z0-9]*[a-z0-9])?)$`
	Resource string `json:"resource"`
}

// NamespaceScopeDownsyncs selects the objects that are in one of the namespaces and belong to one of the resources.
type NamespaceScopeDownsyncs struct {
	// namespaces in which objects are selected; "*" stands for all namespaces.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^(\*|[a-z0-9]([-a-z0-9]*[a-z0-9])?)$`
	// +kubebuilder:validation:MaxItems=100000
	Namespaces []string `json:"namespaces,omitempty"`

	// resources whose objects are selected in these namespaces.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10000
	Resources []NamespaceScopeDownsyncResource `json:"resources,omitempty"`
}

// NamespaceScopeDownsyncResource names a namespaced resource.
type NamespaceScopeDownsyncResource struct {
	GroupResource `json:",inline"`

	// apiVersion is the version, without the group, in which the hub writes objects to the target. The resource must
	// be published in this version. If it is empty, the hub uses the preferred published version that the target
	// serves.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^([a-z]([-a-z0-9]*[a-z0-9])?)?$`
	APIVersion string `json:"apiVersion"`

	// labelSelector narrows the entry to objects with matching labels.
	// +optional
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`

	// annotations narrow the entry to objects that have each of these annotations with exactly this value.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	Annotations map[string]string `json:"annotations,omitempty"`

	SyncSettings `json:",inline"`
}

// NamespaceScopeDownsyncObjects selects objects of one namespaced resource.
type NamespaceScopeDownsyncObjects struct {
	GroupResource `json:",inline"`

	// apiVersion is the version, without the group, in which the hub writes objects to the target. The resource must
	// be published in this version. If it is empty, the hub uses the preferred published version that the target
	// serves.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^([a-z]([-a-z0-9]*[a-z0-9])?)?$`
	APIVersion string `json:"apiVersion"`

	// objectsByNamespace lists the names of the objects, by namespace.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100000
	ObjectsByNamespace []NamespaceAndNames `json:"objectsByNamespace,omitempty"`

	// labelSelector narrows the entry to objects with matching labels.
	// +optional
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`

	// annotations narrow the entry to objects that have each of these annotations with exactly this value.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	Annotations map[string]string `json:"annotations,omitempty"`

	SyncSettings `json:",inline"`
}

// NamespaceAndNames names objects in one namespace.
type NamespaceAndNames struct {
	// namespace of the objects; "*" stands for every namespace.
	// +required
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^(\*|[a-z0-9]([-a-z0-9]*[a-z0-9])?)$`
	Namespace string `json:"namespace"`

	// names of the objects; "*" stands for all names. An absent or empty list selects nothing.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:items:Pattern=`^[^/%]+$`
	// +kubebuilder:validation:MaxItems=100000
	Names []string `json:"names,omitempty"`
}

// ClusterScopeDownsyncResource selects objects of one cluster-scoped resource.
type ClusterScopeDownsyncResource struct {
	GroupResource `json:",inline"`

	// apiVersion is the version, without the group, in which the hub writes objects to the target. The resource must
	// be published in this version. If it is empty, the hub uses the preferred published version that the target
	// serves.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^([a-z]([-a-z0-9]*[a-z0-9])?)?$`
	APIVersion string `json:"apiVersion"`

	// objects are the names of the objects; "*" stands for all names. An absent or empty list selects nothing, and
	// the condition SelectsNothing reports the entry; KubeStellar 0.14 took an absent list for all names.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:items:Pattern=`^[^/%]+$`
	// +kubebuilder:validation:MaxItems=100000
	Objects []string `json:"objects,omitempty"`

	// labelSelector narrows the entry to objects with matching labels.
	// +optional
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`

	// annotations narrow the entry to objects that have each of these annotations with exactly this value.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	Annotations map[string]string `json:"annotations,omitempty"`

	SyncSettings `json:",inline"`
}

// UpsyncSet selects target objects that the hub syncs up to the mailbox.
type UpsyncSet struct {
	// apiGroup of the resources. Empty means the core group.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)?$`
	APIGroup string `json:"apiGroup,omitempty"`

	// resources are plural names; "*" stands for every resource of the group. Subresources are never selected.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^(\*|[a-z0-9]([-a-z0-9]*[a-z0-9])?)$`
	// +kubebuilder:validation:MaxItems=100000
	Resources []string `json:"resources"`

	// namespaces of the target in which objects are selected; "*" stands for all namespaces. The field has no effect
	// on cluster-scoped resources, and naming a namespace does not select the Namespace object itself.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^(\*|[a-z0-9]([-a-z0-9]*[a-z0-9])?)$`
	// +kubebuilder:validation:MaxItems=100000
	Namespaces []string `json:"namespaces,omitempty"`

	// names of the objects; "*" stands for all names, except for objects that Kubernetes itself creates. An absent or
	// empty list selects nothing.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:items:Pattern=`^[^/%]+$`
	// +kubebuilder:validation:MaxItems=100000
	Names []string `json:"names,omitempty"`

	// labelSelector narrows the entry to objects with matching labels.
	// +optional
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`

	// annotations narrow the entry to objects that have each of these annotations with exactly this value.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	Annotations map[string]string `json:"annotations,omitempty"`
}

// SyncerConfigList is a list of SyncerConfigs.
//
// +kubebuilder:object:root=true
type SyncerConfigList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []SyncerConfig `json:"items"`
}
