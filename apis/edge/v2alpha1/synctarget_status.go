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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MaxTargetFailures is the maximum length of status.failures of a SyncTarget; status.counts.failed counts all failed
// objects.
const MaxTargetFailures = 20

// SyncTargetStatus reports the hub's observations of a cluster. The hub writes it at most once a minute while nothing
// changes.
type SyncTargetStatus struct {
	// allocatable is the capacity of the cluster that is left for workload.
	//
	// Deprecated: kept so that YAML of KubeStellar applies, and never set. To sum up nodes the hub would need the
	// right to read them, which the registration of a cluster does not grant. Use the metrics of the cluster.
	// +optional
	// +kubebuilder:validation:XValidation:rule="size(self) <= 64",message="at most 64 resources"
	Allocatable *corev1.ResourceList `json:"allocatable,omitempty"`

	// capacity is the total capacity of the cluster.
	//
	// Deprecated: kept so that YAML of KubeStellar applies, and never set, for the same reason as allocatable.
	// +optional
	// +kubebuilder:validation:XValidation:rule="size(self) <= 64",message="at most 64 resources"
	Capacity *corev1.ResourceList `json:"capacity,omitempty"`

	// conditions of the SyncTarget: Ready, MailboxReady, SyncerReady, HeartbeatHealthy and SyncerAuthorized, and, where they
	// apply, ClusterShared, MailboxLimitExceeded, APIsMissing, TenancyNotApplied, NamespacesLeft, NotImplemented, Suspended and Drained.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=64
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// syncedResources are the resources that the hub syncs with the cluster, and the resources whose objects the hub may have
	// left there. The hub records a resource before it writes the first object of the resource.
	// +optional
	// +listType=map
	// +listMapKey=group
	// +listMapKey=resource
	// +kubebuilder:validation:MaxItems=4096
	SyncedResources []SyncedResource `json:"syncedResources,omitempty"`

	// lastSyncerHeartbeatTime is the time when the cluster's API server last answered.
	// +optional
	LastSyncerHeartbeatTime *metav1.Time `json:"lastSyncerHeartbeatTime,omitempty"`

	// virtualWorkspaces are the addresses for an agent in the cluster.
	//
	// Deprecated: kept so that YAML of KubeStellar applies, and never set: the hub needs no agent.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	VirtualWorkspaces []VirtualWorkspace `json:"virtualWorkspaces,omitempty"`

	// mailbox identifies the mailbox workspace of the cluster.
	// +optional
	Mailbox *MailboxStatus `json:"mailbox,omitempty"`

	// versions of the software that the cluster runs.
	// +optional
	Versions *TargetVersions `json:"versions,omitempty"`

	// clusterID identifies the cluster that the SyncTarget stands for, independent of its address. It is the UID of
	// the cluster's namespace kube-system, or for a kcp workspace the UID of its LogicalCluster. It is empty when the
	// hub could not read the UID.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	ClusterID string `json:"clusterID,omitempty"`

	// hub is the name of the hub's replica that wrote this status last, which is the name of its Pod.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Hub string `json:"hub,omitempty"`

	// hubVersion is the version of that replica.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	HubVersion string `json:"hubVersion,omitempty"`

	// observedClusterID identifies the cluster that the kubeconfig reaches now, while that is another cluster than clusterID.
	// The hub then syncs nothing until the annotation synchub.dev/confirmed-cluster has this value, or the kubeconfig reaches
	// the former cluster again. For a cluster whose ID the hub cannot read, the value is a fingerprint of the server.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	ObservedClusterID string `json:"observedClusterID,omitempty"`

	// formerClusters are the clusters that the SyncTarget stood for before another cluster was confirmed, the latest
	// last. The hub may have left objects there.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	FormerClusters []FormerCluster `json:"formerClusters,omitempty"`

	// tunnel is the address where the cluster reaches the hub, with spec.connection Tunnel. It is empty if the hub accepts no
	// tunnels.
	// +optional
	Tunnel *TunnelStatus `json:"tunnel,omitempty"`

	// storeWentBack is set while the hub removes and overwrites nothing on the cluster, because kcp went back to an
	// earlier state.
	// +optional
	StoreWentBack *StoreWentBackStatus `json:"storeWentBack,omitempty"`

	// counts sum up the objects that the hub syncs with the cluster, in both directions.
	// +optional
	Counts *TargetCounts `json:"counts,omitempty"`

	// failures describe the first of the failed objects, at most 20, by their names in the mailbox. The hub updates
	// them together with counts. The status of the configs in the mailbox and the events there describe all failed
	// objects.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	Failures []ObjectFailure `json:"failures,omitempty"`

	// pendingSince is the time when the hub observed the oldest change that has not reached the other side yet. It is
	// absent when no change is pending.
	// +optional
	PendingSince *metav1.Time `json:"pendingSince,omitempty"`

	// credentials describe the token that the hub uses. They are absent when the token does not contain its expiry.
	// +optional
	Credentials *CredentialsStatus `json:"credentials,omitempty"`

	// cleanup reports which objects are left on the cluster during a drain or the deletion of the SyncTarget.
	// +optional
	Cleanup *CleanupStatus `json:"cleanup,omitempty"`
}

// StoreWentBackStatus describes a kcp that went back to an earlier state.
type StoreWentBackStatus struct {
	// id identifies the event. The hub continues when the annotation synchub.dev/confirmed-restore has this value.
	// +kubebuilder:validation:MaxLength=64
	ID string `json:"id"`

	// detectedAt is when the hub noticed it.
	DetectedAt metav1.Time `json:"detectedAt"`

	// removals counts the copies that the hub would remove from the cluster. failures names the first.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Removals int32 `json:"removals,omitempty"`

	// overwrites counts the copies that the hub would overwrite. failures names the first.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Overwrites int32 `json:"overwrites,omitempty"`
}

// FormerCluster is a cluster that a SyncTarget stood for.
type FormerCluster struct {
	// clusterID identifies the cluster. It is empty when the hub could not read the cluster's ID.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	ClusterID string `json:"clusterID,omitempty"`

	// until is the time when another cluster was confirmed.
	// +required
	Until metav1.Time `json:"until"`

	// resources whose objects the hub may have left there.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=4096
	Resources []metav1.GroupResource `json:"resources,omitempty"`
}

// TargetCounts are numbers of objects.
type TargetCounts struct {
	// synced is the number of objects that are in sync.
	// +optional
	Synced int32 `json:"synced"`

	// failed is the number of objects that are not in sync and need attention.
	// +optional
	Failed int32 `json:"failed"`

	// former is the number of objects that came from a deleted mailbox of this SyncTarget. They stay on the cluster
	// until a config of the new mailbox selects them again, or the SyncTarget is drained.
	// +optional
	Former int32 `json:"former,omitempty"`
}

// CredentialsStatus describes a token. It contains no secret.
type CredentialsStatus struct {
	// expiresAt is the time when the token expires.
	// +optional
	ExpiresAt *metav1.Time `json:"expiresAt,omitempty"`

	// renewedAt is the time when the hub last replaced the token with a new one.
	// +optional
	RenewedAt *metav1.Time `json:"renewedAt,omitempty"`

	// tokenHash identifies the token, since two tokens of one second expire at the same time. It is the beginning of the
	// token's SHA-256 hash. The token cannot be derived from it.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	TokenHash string `json:"tokenHash,omitempty"`
}

// CleanupStatus reports the progress of a drain, or of the deletion of a SyncTarget.
type CleanupStatus struct {
	// remaining is the number of the hub's objects that are still on the cluster and will be removed. It is absent
	// when the hub cannot count them.
	// +optional
	Remaining *int32 `json:"remaining,omitempty"`

	// removed is the number of objects that have been removed.
	// +optional
	Removed int32 `json:"removed,omitempty"`

	// left lists the first objects, by name, that stay on the cluster, with the reason.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	Left []LeftObject `json:"left,omitempty"`

	// leftMore is the number of further objects that stay on the cluster and that left does not list.
	// +optional
	LeftMore int32 `json:"leftMore,omitempty"`
}

// LeftObject is an object that stays on a cluster.
type LeftObject struct {
	// group of the resource. Empty means the core group.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Group string `json:"group,omitempty"`

	// resource is the plural name.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Resource string `json:"resource"`

	// namespace of the object, empty when the object is cluster-scoped.
	// +optional
	// +kubebuilder:validation:MaxLength=8192
	Namespace string `json:"namespace,omitempty"`

	// name of the object.
	// +required
	// +kubebuilder:validation:MaxLength=8192
	Name string `json:"name"`

	// reason is a constant that identifies why the object stays.
	// +required
	// +kubebuilder:validation:MaxLength=256
	Reason string `json:"reason"`
}

// SyncedResource is a resource that the hub syncs with a cluster.
type SyncedResource struct {
	// group of the resource on the cluster. Empty means the core group.
	// +optional
	// +kubebuilder:default=""
	// +kubebuilder:validation:MaxLength=253
	Group string `json:"group"`

	// resource is the plural name.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Resource string `json:"resource"`

	// versions that the cluster serves and the hub uses.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=63
	Versions []string `json:"versions,omitempty"`

	// identityHash distinguishes resources of the same name that different API exports provide.
	//
	// Deprecated: kept so that YAML of KubeStellar applies, and never set. A mailbox has only one API of a name, and the
	// API's PublishedResource names the export that provides it.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	IdentityHash string `json:"identityHash,omitempty"`

	// own is true when the hub syncs mailbox objects of the same resource with this one, without a conversion.
	// +optional
	Own bool `json:"own,omitempty"`

	// convertedFrom lists the mailbox resources whose objects conversions turn into this resource. An entry stays
	// until the cluster has no objects of the entry left.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	ConvertedFrom []metav1.GroupResource `json:"convertedFrom,omitempty"`

	// state describes whether the hub can sync the resource.
	// +optional
	// +kubebuilder:default=Pending
	State SyncedResourceState `json:"state,omitempty"`

	// reason is a constant that identifies why the resource is in this state.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Reason string `json:"reason,omitempty"`

	// message explains the reason to a human, and how to solve the problem.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Message string `json:"message,omitempty"`
}

// SyncedResourceState describes whether the hub can sync a resource with a cluster.
//
// +kubebuilder:validation:Enum=Pending;Accepted;Incompatible
type SyncedResourceState string

const (
	// SyncedResourcePending is the state until the hub has compared the schemas of both sides.
	SyncedResourcePending SyncedResourceState = "Pending"

	// SyncedResourceAccepted is the state of a resource that the hub syncs.
	SyncedResourceAccepted SyncedResourceState = "Accepted"

	// SyncedResourceIncompatible is the state of a resource that the hub cannot sync. Either the cluster does not serve the
	// resource in a form into which the mailbox's objects fit, or it does not permit its use.
	SyncedResourceIncompatible SyncedResourceState = "Incompatible"
)

// TunnelStatus is the address where a cluster opens its tunnel to the hub.
type TunnelStatus struct {
	// url is the address of the hub's port for tunnels.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	URL string `json:"url,omitempty"`

	// certificateAuthority has the certificate authorities of that port, in PEM form. It is empty if the port has a
	// certificate of a public authority.
	// +optional
	// +kubebuilder:validation:MaxLength=65536
	CertificateAuthority string `json:"certificateAuthority,omitempty"`
}

// VirtualWorkspace is a pair of addresses for an agent in the cluster.
type VirtualWorkspace struct {
	// syncerURL is the address where an agent would read the objects to run.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	SyncerURL string `json:"syncerURL"`

	// upsyncerURL is the address where an agent would write upsynced objects.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	UpsyncerURL string `json:"upsyncerURL"`
}

// MailboxStatus identifies the mailbox workspace of a cluster.
type MailboxStatus struct {
	// workspace is the path of the mailbox workspace, for people and for kubectl.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	Workspace string `json:"workspace,omitempty"`

	// cluster is the name of the logical cluster of the mailbox workspace, for programs.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Cluster string `json:"cluster,omitempty"`
}

// TargetVersions are the versions of the software that a cluster runs.
type TargetVersions struct {
	// kubernetes is the version that the API server reports, for example v1.35.4.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Kubernetes string `json:"kubernetes,omitempty"`
}
