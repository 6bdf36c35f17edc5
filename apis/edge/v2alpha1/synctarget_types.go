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
// +kubebuilder:printcolumn:name="Last Seen",type=date,JSONPath=`.status.lastSyncerHeartbeatTime`
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
	//
	// Deprecated: kept so that YAML of KubeStellar applies, without effect and reported as NotImplemented. A cluster that
	// empties itself by a clock is no safe thing; set drain when it is time.
	// +optional
	EvictAfter *metav1.Time `json:"evictAfter,omitempty"`

	// SupportedAPIExports names API exports whose resources the cluster can run.
	//
	// Deprecated: kept so that YAML of KubeStellar applies, without effect and reported as NotImplemented. The hub takes the
	// resources to sync from its PublishedResources and from what the cluster serves.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	SupportedAPIExports []APIExportReference `json:"supportedAPIExports,omitempty"`

	// Cells are coordinates of the cluster, such as region or zone, for placement engines to read.
	//
	// Deprecated: kept so that YAML of KubeStellar applies, without effect and reported as NotImplemented. Labels of the
	// SyncTarget say the same, and can be selected by.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(key, size(key) <= 253 && size(self[key]) <= 253)",message="keys and values have at most 253 characters"
	Cells map[string]string `json:"cells,omitempty"`

	// KubeconfigSecretRef names the Secret, in this workspace, with the kubeconfig of the cluster. The Secret must
	// carry the label synchub.dev/credential=kubeconfig, else the hub cannot see it, and name this SyncTarget in the
	// annotation synchub.dev/allowed-sync-targets, else the hub does not use it.
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

	// Drain takes away from the cluster all that the hub placed there and places nothing more, until it is false again.
	// The condition Drained and status.cleanup tell how far that is.
	// +optional
	Drain bool `json:"drain,omitempty"`

	// AllowSharedCluster lets this SyncTarget be synced although another one stands for the same cluster. Each then
	// has objects of its own there, and names taken by one are conflicts for the other.
	// +optional
	AllowSharedCluster bool `json:"allowSharedCluster,omitempty"`

	// Adoption says which objects that are already on this cluster may be taken over, beside those that the adoption of
	// their PublishedResource allows: IfIdentical those which ours would not change but for marks, Always whatever has
	// the name, unless it carries the mark of another hub or source. Absent means no others.
	// +optional
	Adoption AdoptionPolicy `json:"adoption,omitempty"`

	// Namespaces bounds the namespaces of the cluster that the hub uses, in both directions. Absent means all but the
	// protected ones.
	// +optional
	Namespaces *TargetNamespaces `json:"namespaces,omitempty"`

	// Limits bound the load that the hub puts on the cluster, and what it holds of the mailbox. Absent limits are the hub's defaults.
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

// AdoptionPolicy says which objects that are already on a cluster may be taken over.
//
// +kubebuilder:validation:Enum=IfIdentical;Always
type AdoptionPolicy string

const (
	// AdoptionIfIdentical takes an object over when applying ours would change nothing but marks.
	AdoptionIfIdentical AdoptionPolicy = "IfIdentical"

	// AdoptionAlways takes over whatever has the name, unless it carries the mark of another hub or source.
	AdoptionAlways AdoptionPolicy = "Always"
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

// TargetNamespaces bounds the namespaces of one cluster that the hub uses. A Namespace object counts as being in the
// namespace that it is. What was placed elsewhere before stays there, is left alone and reported.
type TargetNamespaces struct {
	// Only lists the namespaces that the hub uses; nothing goes to or comes from any other, and the hub lists and watches nothing
	// there. Absent means any. Cluster-scoped objects are not bound by it.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Only []string `json:"only,omitempty"`

	// AllowProtected lists protected namespaces that the hub uses all the same. A name that ends in * stands for all that
	// begin with the rest. Which namespaces are protected is an option of the hub: by default kube-*, kcp-system and the hub's own.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?|([a-z0-9][-a-z0-9]*)?[*])$`
	AllowProtected []string `json:"allowProtected,omitempty"`
}

// TargetLimits bound the requests that the hub sends to one cluster, and what it holds of its mailbox.
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

	// MailboxObjects is how many objects of the mailbox the hub holds, the oldest first. Those beyond are not synced, and
	// left as they are on the cluster. A number above the hub's own limit has no effect.
	// +optional
	// +kubebuilder:validation:Minimum=1
	MailboxObjects *int64 `json:"mailboxObjects,omitempty"`

	// MailboxBytes is how many bytes of the hub's memory the objects of the mailbox may take, the oldest first. Those
	// beyond are not synced, and left as they are on the cluster. A number above the hub's own limit has no effect.
	// Only to know which objects there are takes about 1.4 KiB for each: of a mailbox with more than about 700 objects for each
	// MiB, 46,000 with the hub's default of 64 MiB, nothing is held or synced, whatever the other limits are.
	// +optional
	// +kubebuilder:validation:Minimum=1
	MailboxBytes *int64 `json:"mailboxBytes,omitempty"`
}

// MailboxAccess grants subjects a role in the mailbox workspace.
type MailboxAccess struct {
	// Subjects that get the role, as in a ClusterRoleBinding.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:XValidation:rule="self.all(s, s.kind in ['User', 'Group', 'ServiceAccount'])",message="kind of a subject must be User, Group or ServiceAccount"
	// +kubebuilder:validation:XValidation:rule="self.all(s, size(s.name) <= 1024 && (!has(s.apiGroup) || size(s.apiGroup) <= 253) && (!has(s.__namespace__) || size(s.__namespace__) <= 253))",message="the name of a subject has at most 1024 characters, its apiGroup and namespace 253"
	// +kubebuilder:validation:XValidation:rule="self.all(s, has(s.__namespace__) == (s.kind == 'ServiceAccount'))",message="a ServiceAccount needs a namespace, and no other subject has one"
	Subjects []rbacv1.Subject `json:"subjects"`

	// ClusterRole is the name of a ClusterRole in the mailbox workspace, for example cluster-admin, edit or view.
	// +required
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[^/%]+$`
	ClusterRole string `json:"clusterRole"`
}

// SyncTargetList is a list of SyncTargets.
//
// +kubebuilder:object:root=true
type SyncTargetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []SyncTarget `json:"items"`
}
