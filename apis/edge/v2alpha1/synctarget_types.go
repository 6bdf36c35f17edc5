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
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// SyncTarget registers a cluster that objects are synced to. It lives in an inventory workspace, beside the Secret
// with the cluster's kubeconfig, and gets one mailbox workspace.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=st,categories=synchub
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Mailbox",type=string,JSONPath=`.status.mailbox.cluster`
// +kubebuilder:printcolumn:name="Workspace",type=string,priority=1,JSONPath=`.status.mailbox.workspace`
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.status.versions.kubernetes`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type SyncTarget struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says how the cluster is reached and how the hub treats it.
	// +optional
	// +kubebuilder:default={}
	Spec SyncTargetSpec `json:"spec,omitempty"`

	// Status says what the hub knows about the cluster.
	// +optional
	Status SyncTargetStatus `json:"status,omitempty"`
}

// SyncTargetSpec says how a cluster is reached and how the hub treats it.
type SyncTargetSpec struct {
	// Unschedulable tells placement engines to place nothing new here. What is placed stays and is kept in sync.
	// +optional
	// +kubebuilder:default=false
	Unschedulable bool `json:"unschedulable,omitempty"`

	// EvictAfter tells placement engines to move everything elsewhere once this time has passed.
	// +optional
	EvictAfter *metav1.Time `json:"evictAfter,omitempty"`

	// SupportedAPIExports names API exports whose resources the cluster can run. Kept for compatibility: the hub
	// takes the resources to sync from its PublishedResources and from what the cluster serves.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	SupportedAPIExports []APIExportReference `json:"supportedAPIExports,omitempty"`

	// Cells are coordinates of the cluster, such as region or zone, for placement engines to read.
	// +optional
	Cells map[string]string `json:"cells,omitempty"`

	// KubeconfigSecretRef names the Secret, in this workspace, with the kubeconfig of the cluster. The Secret must
	// carry the label synchub.dev/credential=kubeconfig, else the hub cannot see it.
	// +optional
	KubeconfigSecretRef *SecretReference `json:"kubeconfigSecretRef,omitempty"`

	// DeletionPolicy says what becomes of the objects on the cluster when this SyncTarget is deleted: Orphan leaves
	// them there and removes the hub's marks, Delete removes them first.
	// +optional
	// +kubebuilder:default=Orphan
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`

	// Suspend stops all writes to the cluster and all status returned from it, without removing anything.
	// +optional
	Suspend bool `json:"suspend,omitempty"`

	// Limits bound the load that the hub puts on the cluster. Absent limits are the hub's defaults.
	// +optional
	Limits *TargetLimits `json:"limits,omitempty"`

	// MailboxAccess grants subjects of kcp a role in the mailbox workspace. The bindings made from it are never
	// synced to the cluster.
	// +optional
	// +listType=map
	// +listMapKey=clusterRole
	// +kubebuilder:validation:MaxItems=32
	MailboxAccess []MailboxAccess `json:"mailboxAccess,omitempty"`
}

// DeletionPolicy says what becomes of an object on the target when what put it there goes.
//
// +kubebuilder:validation:Enum=Delete;Orphan
type DeletionPolicy string

const (
	// DeletionPolicyDelete removes the object from the target.
	DeletionPolicyDelete DeletionPolicy = "Delete"

	// DeletionPolicyOrphan leaves the object on the target and removes the hub's marks from it.
	DeletionPolicyOrphan DeletionPolicy = "Orphan"
)

// APIExportReference names an API export.
type APIExportReference struct {
	// Path is the workspace of the export. Empty means the workspace of the SyncTarget.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Path string `json:"path,omitempty"`

	// Export is the name of the export.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Export string `json:"export"`
}

// SecretReference names one key of a Secret in the workspace of the referring object.
type SecretReference struct {
	// Namespace of the Secret.
	// +optional
	// +kubebuilder:default=default
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Namespace string `json:"namespace,omitempty"`

	// Name of the Secret.
	// +required
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	Name string `json:"name"`

	// Key of the Secret's data that holds the value.
	// +optional
	// +kubebuilder:default=kubeconfig
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[-._a-zA-Z0-9]+$`
	Key string `json:"key,omitempty"`
}

// TargetLimits bound the requests that the hub sends to one cluster.
//
// +kubebuilder:validation:XValidation:rule="!has(self.qps) || !has(self.burst) || self.burst >= self.qps",message="burst must not be less than qps",fieldPath=".burst"
type TargetLimits struct {
	// QPS is the sustained number of requests per second.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	QPS *int32 `json:"qps,omitempty"`

	// Burst is the number of requests that may be sent at once after a quiet time.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	Burst *int32 `json:"burst,omitempty"`
}

// MailboxAccess grants subjects a role in the mailbox workspace.
type MailboxAccess struct {
	// Subjects that get the role, as in a ClusterRoleBinding.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:XValidation:rule="self.all(s, s.kind in ['User', 'Group', 'ServiceAccount'])",message="kind of a subject must be User, Group or ServiceAccount"
	// +kubebuilder:validation:XValidation:rule="self.all(s, has(s.__namespace__) == (s.kind == 'ServiceAccount'))",message="a ServiceAccount needs a namespace, and no other subject has one"
	Subjects []rbacv1.Subject `json:"subjects"`

	// ClusterRole is the name of a ClusterRole in the mailbox workspace, for example cluster-admin, edit or view.
	// +required
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[^/%]+$`
	ClusterRole string `json:"clusterRole"`
}

// SyncTargetStatus says what the hub knows about a cluster. It is written at most once a minute when nothing changes.
type SyncTargetStatus struct {
	// Allocatable is what the cluster has left for workload.
	// +optional
	Allocatable *corev1.ResourceList `json:"allocatable,omitempty"`

	// Capacity is what the cluster has in all.
	// +optional
	Capacity *corev1.ResourceList `json:"capacity,omitempty"`

	// Conditions: Ready, MailboxReady, SyncerReady, HeartbeatHealthy, SyncerAuthorized, NotImplemented, Suspended.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// SyncedResources are the resources that are synced with the cluster, or that may have left objects there. A
	// resource is recorded before the first object of it is written.
	// +optional
	// +listType=map
	// +listMapKey=group
	// +listMapKey=resource
	SyncedResources []SyncedResource `json:"syncedResources,omitempty"`

	// LastSyncerHeartbeatTime is when the cluster's API server last answered.
	// +optional
	LastSyncerHeartbeatTime *metav1.Time `json:"lastSyncerHeartbeatTime,omitempty"`

	// VirtualWorkspaces is what an agent in the cluster would connect to. Kept for compatibility: the hub needs no
	// agent and leaves it empty.
	// +optional
	// +listType=atomic
	VirtualWorkspaces []VirtualWorkspace `json:"virtualWorkspaces,omitempty"`

	// Mailbox says which workspace is the mailbox of the cluster.
	// +optional
	Mailbox *MailboxStatus `json:"mailbox,omitempty"`

	// Versions are what the cluster runs.
	// +optional
	Versions *TargetVersions `json:"versions,omitempty"`

	// ClusterID identifies the cluster whatever its address: the UID of its namespace kube-system, or for a kcp
	// workspace of its LogicalCluster. Empty when it could not be read.
	// +optional
	ClusterID string `json:"clusterID,omitempty"`
}

// SyncedResource is a resource that is synced with a cluster.
type SyncedResource struct {
	// Group of the resource on the cluster, empty for the core group.
	// +optional
	// +kubebuilder:default=""
	Group string `json:"group"`

	// Resource is its plural name.
	// +required
	Resource string `json:"resource"`

	// Versions that the cluster serves and the hub uses.
	// +optional
	// +listType=atomic
	Versions []string `json:"versions,omitempty"`

	// IdentityHash tells apart resources of the same name that come from different API exports.
	// +optional
	IdentityHash string `json:"identityHash,omitempty"`

	// State says whether the resource can be synced.
	// +optional
	// +kubebuilder:default=Pending
	State SyncedResourceState `json:"state,omitempty"`

	// Reason is a constant that says why the resource is in this state.
	// +optional
	Reason string `json:"reason,omitempty"`

	// Message says the same to a human, and what to do about it.
	// +optional
	Message string `json:"message,omitempty"`
}

// SyncedResourceState says whether a resource can be synced with a cluster.
//
// +kubebuilder:validation:Enum=Pending;Accepted;Incompatible
type SyncedResourceState string

const (
	// SyncedResourcePending is the state until the hub has compared both sides.
	SyncedResourcePending SyncedResourceState = "Pending"

	// SyncedResourceAccepted is the state of a resource that is being synced.
	SyncedResourceAccepted SyncedResourceState = "Accepted"

	// SyncedResourceIncompatible is the state of a resource that the cluster does not serve in a form the mailbox's
	// objects fit in, or whose use it does not permit.
	SyncedResourceIncompatible SyncedResourceState = "Incompatible"
)

// VirtualWorkspace is a pair of addresses for an agent in the cluster.
type VirtualWorkspace struct {
	// SyncerURL is where an agent would read what to run.
	// +required
	// +kubebuilder:validation:MinLength=1
	SyncerURL string `json:"syncerURL"`

	// UpsyncerURL is where an agent would write what comes up.
	// +required
	// +kubebuilder:validation:MinLength=1
	UpsyncerURL string `json:"upsyncerURL"`
}

// MailboxStatus says which workspace is the mailbox of a cluster.
type MailboxStatus struct {
	// Workspace is the path of the mailbox workspace, for people and for kubectl.
	// +optional
	Workspace string `json:"workspace,omitempty"`

	// Cluster is the name of its logical cluster, for programs.
	// +optional
	Cluster string `json:"cluster,omitempty"`
}

// TargetVersions are what a cluster runs.
type TargetVersions struct {
	// Kubernetes is the version that the API server reports, for example v1.35.4.
	// +optional
	Kubernetes string `json:"kubernetes,omitempty"`
}

// SyncTargetList is a list of SyncTargets.
//
// +kubebuilder:object:root=true
type SyncTargetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []SyncTarget `json:"items"`
}
