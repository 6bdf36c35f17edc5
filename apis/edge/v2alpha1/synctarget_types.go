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

// SyncTarget registers a cluster with the hub. It lives in an inventory workspace, next to the Secret with the
// kubeconfig of the cluster. The hub creates one mailbox workspace for each SyncTarget and syncs it with the cluster.
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

	// spec configures the connection to the cluster and the treatment of its objects.
	// +optional
	// +kubebuilder:default={}
	Spec SyncTargetSpec `json:"spec,omitempty"`

	// status reports the hub's observations of the cluster.
	// +optional
	Status SyncTargetStatus `json:"status,omitempty"`
}

// SyncTargetSpec configures the connection to a cluster and the treatment of its objects.
type SyncTargetSpec struct {
	// unschedulable asks placement engines to place nothing new on the cluster. The hub keeps objects that are already placed
	// there in sync.
	// +optional
	// +kubebuilder:default=false
	Unschedulable bool `json:"unschedulable,omitempty"`

	// evictAfter asks placement engines to move everything elsewhere once this time has passed.
	//
	// Deprecated: kept so that YAML of KubeStellar applies; it has no effect and the condition NotImplemented reports it.
	// Removing workload by a clock is not safe. Set spec.drain at that time.
	// +optional
	EvictAfter *metav1.Time `json:"evictAfter,omitempty"`

	// supportedAPIExports names API exports whose resources the cluster can run.
	//
	// Deprecated: kept so that YAML of KubeStellar applies; it has no effect and the condition NotImplemented reports
	// it. PublishedResources and the APIs that the cluster serves decide which resources the hub syncs.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	SupportedAPIExports []APIExportReference `json:"supportedAPIExports,omitempty"`

	// cells are coordinates of the cluster, such as region or zone, for placement engines.
	//
	// Deprecated: kept so that YAML of KubeStellar applies; it has no effect and the condition NotImplemented reports
	// it. Use labels of the SyncTarget, which selectors can match.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(key, size(key) <= 253 && size(self[key]) <= 253)",message="keys and values have at most 253 characters"
	Cells map[string]string `json:"cells,omitempty"`

	// kubeconfigSecretRef names the Secret in this workspace that holds the kubeconfig of the cluster. The Secret
	// must have the label synchub.dev/credential=kubeconfig, otherwise the hub cannot see it. The annotation
	// synchub.dev/allowed-sync-targets of the Secret must name this SyncTarget, otherwise the hub does not use the
	// Secret.
	// +optional
	KubeconfigSecretRef *SecretReference `json:"kubeconfigSecretRef,omitempty"`

	// connection selects which side opens the network connection between the hub and the cluster. With Direct, the default,
	// the hub dials the cluster at the address in the kubeconfig. With Tunnel the cluster dials the hub, which needs a
	// program in the cluster. The Secret then holds the token with which that program authenticates.
	// +optional
	Connection ConnectionType `json:"connection,omitempty"`

	// deletionPolicy determines what happens to the objects on the cluster when this SyncTarget is deleted. Orphan leaves
	// them there and removes the hub's marks. Delete removes them first.
	// +optional
	// +kubebuilder:default=Orphan
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`

	// suspend stops all writes to the cluster and all returned status, without removing anything.
	// +optional
	Suspend bool `json:"suspend,omitempty"`

	// drain removes from the cluster all objects that the hub placed there, and keeps the hub from placing any more until the
	// field is false again. The condition Drained and status.cleanup report the progress.
	// +optional
	Drain bool `json:"drain,omitempty"`

	// allowSharedCluster lets the hub sync this SyncTarget although another SyncTarget stands for the same cluster.
	// Each SyncTarget then has its own objects there. A name that one of them uses is a conflict for the other.
	// +optional
	AllowSharedCluster bool `json:"allowSharedCluster,omitempty"`

	// adoption selects the existing objects of this cluster that the hub may take over, in addition to the objects that
	// spec.adoption of their PublishedResource allows. IfIdentical takes an object over when applying the hub's version would
	// change nothing but marks. Always takes over every object of the name, unless the object has the mark of another hub or
	// source. Absent allows no additional objects.
	// +optional
	Adoption AdoptionPolicy `json:"adoption,omitempty"`

	// namespaces restricts the namespaces of the cluster that the hub uses, in both directions. Absent means all
	// namespaces except the protected ones.
	// +optional
	Namespaces *TargetNamespaces `json:"namespaces,omitempty"`

	// tenancy determines how several workload workspaces share the cluster. Absent means that they share its namespaces.
	// +optional
	Tenancy *Tenancy `json:"tenancy,omitempty"`

	// limits bound the load that the hub puts on the cluster, and how many objects and bytes of the mailbox the hub
	// caches. The hub's defaults replace absent limits.
	// +optional
	Limits *TargetLimits `json:"limits,omitempty"`

	// mailboxAccess grants subjects of kcp a role in the mailbox workspace. The hub never syncs the resulting
	// bindings to the cluster.
	// +optional
	// +listType=map
	// +listMapKey=clusterRole
	// +kubebuilder:validation:MaxItems=32
	MailboxAccess []MailboxAccess `json:"mailboxAccess,omitempty"`
}

// ConnectionType selects which side opens the network connection between the hub and a cluster.
//
// +kubebuilder:validation:Enum=Direct;Tunnel
type ConnectionType string

const (
	// ConnectionDirect: the hub dials the cluster. An empty value stands for it.
	ConnectionDirect ConnectionType = "Direct"

	// ConnectionTunnel: the cluster dials the hub.
	ConnectionTunnel ConnectionType = "Tunnel"
)

// DeletionPolicy determines what happens to a copy when its original, or the config or SyncTarget that caused the copy, goes
// away.
//
// +kubebuilder:validation:Enum=Delete;Orphan
type DeletionPolicy string

const (
	// DeletionPolicyDelete removes the copy.
	DeletionPolicyDelete DeletionPolicy = "Delete"

	// DeletionPolicyOrphan keeps the copy and removes the hub's marks from it.
	DeletionPolicyOrphan DeletionPolicy = "Orphan"
)

// AdoptionPolicy selects the existing objects of a cluster that the hub may take over.
//
// +kubebuilder:validation:Enum=IfIdentical;Always
type AdoptionPolicy string

const (
	// AdoptionIfIdentical takes an object over when applying the hub's version would change nothing but marks.
	AdoptionIfIdentical AdoptionPolicy = "IfIdentical"

	// AdoptionAlways takes over every object of the name, unless the object has the mark of another hub or source.
	AdoptionAlways AdoptionPolicy = "Always"
)

// APIExportReference names an APIExport.
type APIExportReference struct {
	// path of the workspace of the export. Empty means the workspace of the SyncTarget.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Path string `json:"path,omitempty"`

	// export is the name of the APIExport.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Export string `json:"export"`
}

// SecretReference names one key of a Secret in the workspace of the referring object.
type SecretReference struct {
	// namespace of the Secret.
	// +optional
	// +kubebuilder:default=default
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Namespace string `json:"namespace,omitempty"`

	// name of the Secret.
	// +required
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	Name string `json:"name"`

	// key in the data of the Secret that holds the value.
	// +optional
	// +kubebuilder:default=kubeconfig
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[-._a-zA-Z0-9]+$`
	Key string `json:"key,omitempty"`
}

// TargetNamespaces restricts the namespaces of a cluster that the hub uses. A Namespace object counts as an object in
// the namespace of its own name. The hub leaves alone, and reports, the objects that it placed in other namespaces
// before.
type TargetNamespaces struct {
	// only lists the namespaces that the hub uses. The hub syncs nothing to or from any other namespace, and lists
	// and watches nothing there. Absent allows every namespace. The field does not restrict other cluster-scoped
	// objects.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Only []string `json:"only,omitempty"`

	// allowProtected lists protected namespaces that the hub uses nevertheless. A trailing * matches every name with
	// that prefix. If only is set, it must list these namespaces too. An option of the hub decides which namespaces
	// are protected; the default is kube-*, kcp-system, synchub, synchub-* and the hub's own namespace.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?|([a-z0-9][-a-z0-9]*)?[*])$`
	AllowProtected []string `json:"allowProtected,omitempty"`
}

// TargetLimits bound the requests that the hub sends to one cluster, and how much of its mailbox the hub caches.
//
// +kubebuilder:validation:XValidation:rule="!has(self.qps) || !has(self.burst) || self.burst >= self.qps",message="burst must not be less than qps",fieldPath=".burst"
type TargetLimits struct {
	// qps is the sustained number of requests per second.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	QPS *int32 `json:"qps,omitempty"`

	// burst is the number of requests that the hub may send at once after an idle period.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	Burst *int32 `json:"burst,omitempty"`

	// mailboxObjects is the maximum number of objects of the mailbox that the hub caches, the oldest first. The hub
	// does not sync objects beyond this number, and leaves their copies on the cluster as they are. A number above
	// the hub's own limit has no effect.
	// +optional
	// +kubebuilder:validation:Minimum=1
	MailboxObjects *int64 `json:"mailboxObjects,omitempty"`

	// mailboxBytes is the maximum of the hub's memory, in bytes, that the objects of the mailbox may take, the oldest
	// objects first. The hub does not sync objects beyond this limit, and leaves their copies on the cluster as they
	// are. A number above the hub's own limit has no effect.
	//
	// Knowing which objects exist takes about 1.4 KiB for each object. The hub caches and syncs nothing of a mailbox with
	// more than about 700 objects per MiB of this limit, regardless of the other limits. With the hub's default of 64 MiB
	// that is about 46,000 objects.
	// +optional
	// +kubebuilder:validation:Minimum=1
	MailboxBytes *int64 `json:"mailboxBytes,omitempty"`
}

// MailboxAccess grants subjects a role in the mailbox workspace.
type MailboxAccess struct {
	// subjects that get the role, as in a ClusterRoleBinding.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:XValidation:rule="self.all(s, s.kind in ['User', 'Group', 'ServiceAccount'])",message="kind of a subject must be User, Group or ServiceAccount"
	// +kubebuilder:validation:XValidation:rule="self.all(s, size(s.name) <= 1024 && (!has(s.apiGroup) || size(s.apiGroup) <= 253) && (!has(s.__namespace__) || size(s.__namespace__) <= 253))",message="the name of a subject has at most 1024 characters, its apiGroup and namespace 253"
	// +kubebuilder:validation:XValidation:rule="self.all(s, has(s.__namespace__) == (s.kind == 'ServiceAccount'))",message="a ServiceAccount needs a namespace, and no other subject has one"
	Subjects []rbacv1.Subject `json:"subjects"`

	// clusterRole is the name of a ClusterRole in the mailbox workspace, for example cluster-admin, edit or view.
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
