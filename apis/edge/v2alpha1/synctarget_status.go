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

// MaxTargetFailures is how many failures a SyncTargetStatus lists; its count of failed objects has no such limit.
const MaxTargetFailures = 20

// SyncTargetStatus says what the hub knows about a cluster. It is written at most once a minute when nothing changes.
type SyncTargetStatus struct {
	// Allocatable is what the cluster has left for workload.
	//
	// Deprecated: kept so that YAML of KubeStellar applies, and never set. To sum up nodes the hub would need the right to
	// read them, which registering a cluster does not give it; see the cluster's own metrics.
	// +optional
	// +kubebuilder:validation:XValidation:rule="size(self) <= 64",message="at most 64 resources"
	Allocatable *corev1.ResourceList `json:"allocatable,omitempty"`

	// Capacity is what the cluster has in all.
	//
	// Deprecated: kept so that YAML of KubeStellar applies, and never set, like allocatable.
	// +optional
	// +kubebuilder:validation:XValidation:rule="size(self) <= 64",message="at most 64 resources"
	Capacity *corev1.ResourceList `json:"capacity,omitempty"`

	// Conditions: Ready, MailboxReady, SyncerReady, HeartbeatHealthy, SyncerAuthorized, ClusterShared, MailboxLimitExceeded, NotImplemented, Suspended, Drained.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=64
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// SyncedResources are the resources that are synced with the cluster, or that may have left objects there. A
	// resource is recorded before the first object of it is written.
	// +optional
	// +listType=map
	// +listMapKey=group
	// +listMapKey=resource
	// +kubebuilder:validation:MaxItems=4096
	SyncedResources []SyncedResource `json:"syncedResources,omitempty"`

	// LastSyncerHeartbeatTime is when the cluster's API server last answered.
	// +optional
	LastSyncerHeartbeatTime *metav1.Time `json:"lastSyncerHeartbeatTime,omitempty"`

	// VirtualWorkspaces is what an agent in the cluster would connect to.
	//
	// Deprecated: kept so that YAML of KubeStellar applies, and never set: the hub needs no agent.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	VirtualWorkspaces []VirtualWorkspace `json:"virtualWorkspaces,omitempty"`

	// Mailbox says which workspace is the mailbox of the cluster.
	// +optional
	Mailbox *MailboxStatus `json:"mailbox,omitempty"`

	// Versions are what the cluster runs.
	// +optional
	Versions *TargetVersions `json:"versions,omitempty"`

	// ClusterID identifies the cluster that the SyncTarget stands for, whatever its address: the UID of its namespace
	// kube-system, or for a kcp workspace of its LogicalCluster. Empty when it could not be read.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	ClusterID string `json:"clusterID,omitempty"`

	// ObservedClusterID identifies the cluster that the kubeconfig leads to now, while that is another one than ClusterID
	// says. Nothing is synced then, until the annotation synchub.dev/confirmed-cluster has this value, or the kubeconfig leads
	// back. Of a cluster that does not tell its ID it is a fingerprint of the server.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	ObservedClusterID string `json:"observedClusterID,omitempty"`

	// FormerClusters are those that the SyncTarget stood for before another one was confirmed, the latest last. Objects of the
	// hub may be left there.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	FormerClusters []FormerCluster `json:"formerClusters,omitempty"`

	// Counts sum up the objects that are kept in sync with the cluster, in both directions.
	// +optional
	Counts *TargetCounts `json:"counts,omitempty"`

	// Failures are the first of the failed objects, by their names in the mailbox, counted when counts were. All of them are in the
	// status of the configs of the mailbox and in the events there.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	Failures []ObjectFailure `json:"failures,omitempty"`

	// PendingSince is when the oldest change was seen that has not reached its other side yet; absent if there is none.
	// +optional
	PendingSince *metav1.Time `json:"pendingSince,omitempty"`

	// Credentials tell what the hub knows of the token it uses; absent where that says nothing about itself.
	// +optional
	Credentials *CredentialsStatus `json:"credentials,omitempty"`

	// Cleanup tells what is left on the cluster while it is drained or its SyncTarget is deleted.
	// +optional
	Cleanup *CleanupStatus `json:"cleanup,omitempty"`
}

// FormerCluster is a cluster that a SyncTarget stood for.
type FormerCluster struct {
	// ClusterID identifies the cluster; empty if it did not tell.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	ClusterID string `json:"clusterID,omitempty"`

	// Until is when another cluster was confirmed.
	// +required
	Until metav1.Time `json:"until"`

	// Resources are those of which objects may be left there.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=4096
	Resources []metav1.GroupResource `json:"resources,omitempty"`
}

// TargetCounts are numbers of objects.
type TargetCounts struct {
	// Synced are in sync.
	// +optional
	Synced int32 `json:"synced"`

	// Failed are not, and need attention.
	// +optional
	Failed int32 `json:"failed"`

	// Former came from a mailbox of this SyncTarget that was deleted. They stay on the cluster until a config of the new
	// mailbox selects them again, or the SyncTarget is drained.
	// +optional
	Former int32 `json:"former,omitempty"`
}

// CredentialsStatus describes a token. It holds nothing secret.
type CredentialsStatus struct {
	// ExpiresAt is when the token ends.
	// +optional
	ExpiresAt *metav1.Time `json:"expiresAt,omitempty"`

	// RenewedAt is when the hub last replaced it by a new one.
	// +optional
	RenewedAt *metav1.Time `json:"renewedAt,omitempty"`
}

// CleanupStatus is the report of a drain or of the deletion of a SyncTarget.
type CleanupStatus struct {
	// Remaining is how many objects of the hub are still on the cluster and will go; absent if that cannot be told.
	// +optional
	Remaining *int32 `json:"remaining,omitempty"`

	// Removed is how many have gone.
	// +optional
	Removed int32 `json:"removed,omitempty"`

	// Left are objects that stay, with the reason, the first of them by name.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	Left []LeftObject `json:"left,omitempty"`

	// LeftMore is how many more stay than are listed.
	// +optional
	LeftMore int32 `json:"leftMore,omitempty"`
}

// LeftObject is an object that stays on a cluster.
type LeftObject struct {
	// Group of the resource, empty for the core group.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Group string `json:"group,omitempty"`

	// Resource is its plural name.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Resource string `json:"resource"`

	// Namespace of the object, empty if it is in none.
	// +optional
	// +kubebuilder:validation:MaxLength=8192
	Namespace string `json:"namespace,omitempty"`

	// Name of the object.
	// +required
	// +kubebuilder:validation:MaxLength=8192
	Name string `json:"name"`

	// Reason is a constant that says why it stays.
	// +required
	// +kubebuilder:validation:MaxLength=256
	Reason string `json:"reason"`
}

// SyncedResource is a resource that is synced with a cluster.
type SyncedResource struct {
	// Group of the resource on the cluster, empty for the core group.
	// +optional
	// +kubebuilder:default=""
	// +kubebuilder:validation:MaxLength=253
	Group string `json:"group"`

	// Resource is its plural name.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Resource string `json:"resource"`

	// Versions that the cluster serves and the hub uses.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=63
	Versions []string `json:"versions,omitempty"`

	// IdentityHash tells apart resources of the same name that come from different API exports.
	//
	// Deprecated: kept so that YAML of KubeStellar applies, and never set. A mailbox has one API of a name; which export
	// provides it the PublishedResource says.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	IdentityHash string `json:"identityHash,omitempty"`

	// Own is true if objects of the same resource in the mailbox go there.
	// +optional
	Own bool `json:"own,omitempty"`

	// ConvertedFrom lists the resources of the mailbox whose objects conversions turn into this one. It is kept until
	// nothing of them is left on the cluster.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	ConvertedFrom []metav1.GroupResource `json:"convertedFrom,omitempty"`

	// State says whether the resource can be synced.
	// +optional
	// +kubebuilder:default=Pending
	State SyncedResourceState `json:"state,omitempty"`

	// Reason is a constant that says why the resource is in this state.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Reason string `json:"reason,omitempty"`

	// Message says the same to a human, and what to do about it.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
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
	// +kubebuilder:validation:MaxLength=2048
	SyncerURL string `json:"syncerURL"`

	// UpsyncerURL is where an agent would write what comes up.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	UpsyncerURL string `json:"upsyncerURL"`
}

// MailboxStatus says which workspace is the mailbox of a cluster.
type MailboxStatus struct {
	// Workspace is the path of the mailbox workspace, for people and for kubectl.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	Workspace string `json:"workspace,omitempty"`

	// Cluster is the name of its logical cluster, for programs.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Cluster string `json:"cluster,omitempty"`
}

// TargetVersions are what a cluster runs.
type TargetVersions struct {
	// Kubernetes is the version that the API server reports, for example v1.35.4.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Kubernetes string `json:"kubernetes,omitempty"`
}
