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

// SyncerConfig selects, in a mailbox workspace, the objects that travel between that mailbox and its target. All
// SyncerConfigs and EdgeSyncConfigs of a mailbox count together, as a union. In every list "*" stands for all; an
// absent or empty list selects nothing.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=escfg,categories=synchub
// +kubebuilder:printcolumn:name="Selected",type=integer,JSONPath=`.status.selected`
// +kubebuilder:printcolumn:name="Synced",type=integer,JSONPath=`.status.synced`
// +kubebuilder:printcolumn:name="Failed",type=integer,JSONPath=`.status.failed`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type SyncerConfig struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says which objects travel, and how.
	// +optional
	// +kubebuilder:default={}
	Spec SyncerConfigSpec `json:"spec,omitempty"`

	// Status says how far the hub has come with them.
	// +optional
	Status SyncerConfigStatus `json:"status,omitempty"`
}

// SyncerConfigSpec says which objects travel, and how. What goes down is the union of namespaceScope,
// namespacedObjects and clusterScope; what comes up is upsync.
type SyncerConfigSpec struct {
	// NamespaceScope selects namespaced objects by namespace and resource: all objects of each listed resource in
	// each listed namespace.
	// +optional
	NamespaceScope NamespaceScopeDownsyncs `json:"namespaceScope,omitempty"`

	// NamespacedObjects selects namespaced objects one by one.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10000
	NamespacedObjects []NamespaceScopeDownsyncObjects `json:"namespacedObjects,omitempty"`

	// ClusterScope selects cluster-scoped objects. A namespace that selected objects need is made sure to exist on
	// the target; it is kept in sync with the mailbox only when it is selected here.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10000
	ClusterScope []ClusterScopeDownsyncResource `json:"clusterScope,omitempty"`

	// Upsync selects objects of the target that appear in the mailbox, with their status. An object that went down
	// never comes up.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10000
	Upsync []UpsyncSet `json:"upsync,omitempty"`

	// StatusReturn says whether the status of what went down is written back to the mailbox.
	// +optional
	// +kubebuilder:default=true
	StatusReturn *bool `json:"statusReturn,omitempty"`

	// DeletionPolicy says what becomes of an object on the target that this config no longer selects or that is gone
	// from the mailbox. Where configs disagree on an object, Orphan wins.
	// +optional
	// +kubebuilder:default=Delete
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`

	// Suspend freezes what this config alone selects: nothing of it is written or deleted on either side.
	// +optional
	Suspend bool `json:"suspend,omitempty"`

	// Conversions let an object have another group, version, kind or name in the mailbox than on the target.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:XValidation:rule="has(self.upstream) && has(self.upstream.kind)",message="upstream.kind is required"
	// +kubebuilder:validation:items:XValidation:rule="has(self.downstream) && has(self.downstream.kind)",message="downstream.kind is required"
	Conversions []Conversion `json:"conversions,omitempty"`
}

// GroupResource names a resource without its version.
type GroupResource struct {
	// Group of the resource, empty for the core group.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)?$`
	Group string `json:"group"`

	// Resource is the plural name, or "*" for every resource of the group. Subresources cannot be named.
	// +required
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^(\*|[a-z0-9]([-a-z0-9]*[a-z0-9])?)$`
	Resource string `json:"resource"`
}

// NamespaceScopeDownsyncs selects the objects that match both a namespace and a resource.
type NamespaceScopeDownsyncs struct {
	// Namespaces that are searched; "*" stands for all.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^(\*|[a-z0-9]([-a-z0-9]*[a-z0-9])?)$`
	// +kubebuilder:validation:MaxItems=100000
	Namespaces []string `json:"namespaces,omitempty"`

	// Resources that are selected there.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10000
	Resources []NamespaceScopeDownsyncResource `json:"resources,omitempty"`
}

// NamespaceScopeDownsyncResource is a namespaced resource.
type NamespaceScopeDownsyncResource struct {
	GroupResource `json:",inline"`

	// APIVersion is the version, without the group, in which objects are written to the target. It must be one in which
	// the resource is published. Empty takes the best that the target serves.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^([a-z]([-a-z0-9]*[a-z0-9])?)?$`
	APIVersion string `json:"apiVersion"`

	// LabelSelector narrows the entry to objects with matching labels.
	// +optional
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`

	// Annotations narrow the entry to objects that carry each of these annotations with exactly this value.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	Annotations map[string]string `json:"annotations,omitempty"`
}

// NamespaceScopeDownsyncObjects selects objects of one namespaced resource.
type NamespaceScopeDownsyncObjects struct {
	GroupResource `json:",inline"`

	// APIVersion is the version, without the group, in which objects are written to the target. It must be one in which
	// the resource is published. Empty takes the best that the target serves.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^([a-z]([-a-z0-9]*[a-z0-9])?)?$`
	APIVersion string `json:"apiVersion"`

	// ObjectsByNamespace names the objects.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100000
	ObjectsByNamespace []NamespaceAndNames `json:"objectsByNamespace,omitempty"`

	// LabelSelector narrows the entry to objects with matching labels.
	// +optional
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`

	// Annotations narrow the entry to objects that carry each of these annotations with exactly this value.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	Annotations map[string]string `json:"annotations,omitempty"`
}

// NamespaceAndNames names objects in one namespace.
type NamespaceAndNames struct {
	// Namespace of the objects; "*" stands for every namespace.
	// +required
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^(\*|[a-z0-9]([-a-z0-9]*[a-z0-9])?)$`
	Namespace string `json:"namespace"`

	// Names of the objects; "*" stands for all. Absent or empty selects none.
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

	// APIVersion is the version, without the group, in which objects are written to the target. It must be one in which
	// the resource is published. Empty takes the best that the target serves.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^([a-z]([-a-z0-9]*[a-z0-9])?)?$`
	APIVersion string `json:"apiVersion"`

	// Objects are the names of the objects; "*" stands for all. Absent or empty selects none, and the condition
	// SelectsNothing says so; KubeStellar 0.14 took an absent list for all.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:items:Pattern=`^[^/%]+$`
	// +kubebuilder:validation:MaxItems=100000
	Objects []string `json:"objects,omitempty"`

	// LabelSelector narrows the entry to objects with matching labels.
	// +optional
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`

	// Annotations narrow the entry to objects that carry each of these annotations with exactly this value.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	Annotations map[string]string `json:"annotations,omitempty"`
}

// UpsyncSet selects objects of the target that appear in the mailbox.
type UpsyncSet struct {
	// APIGroup of the resources, empty for the core group.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)?$`
	APIGroup string `json:"apiGroup,omitempty"`

	// Resources are plural names; "*" stands for every resource of the group, never for subresources.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^(\*|[a-z0-9]([-a-z0-9]*[a-z0-9])?)$`
	// +kubebuilder:validation:MaxItems=100000
	Resources []string `json:"resources"`

	// Namespaces of the target that are searched; "*" stands for all. It says nothing about cluster-scoped
	// resources, and naming a namespace does not bring the Namespace object itself up.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^(\*|[a-z0-9]([-a-z0-9]*[a-z0-9])?)$`
	// +kubebuilder:validation:MaxItems=100000
	Namespaces []string `json:"namespaces,omitempty"`

	// Names of the objects; "*" stands for all, except Kubernetes' own. Absent or empty selects none.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:items:Pattern=`^[^/%]+$`
	// +kubebuilder:validation:MaxItems=100000
	Names []string `json:"names,omitempty"`

	// LabelSelector narrows the entry to objects with matching labels.
	// +optional
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`

	// Annotations narrow the entry to objects that carry each of these annotations with exactly this value.
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
