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

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// PublishedResource gives every mailbox workspace one API of the targets, and says how its objects change on their
// way. It lives in the hosting cluster. Of two that name the same group and resource, the oldest counts.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=pubres,categories=synchub
// +kubebuilder:printcolumn:name="Resource",type=string,JSONPath=`.spec.resource.resource`
// +kubebuilder:printcolumn:name="Kind",type=string,priority=1,JSONPath=`.spec.resource.kind`
// +kubebuilder:printcolumn:name="Group",type=string,JSONPath=`.spec.resource.group`
// +kubebuilder:printcolumn:name="Schema",type=string,JSONPath=`.status.schemaName`
// +kubebuilder:printcolumn:name="Objects",type=integer,priority=1,JSONPath=`.status.objects`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type PublishedResource struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says which resource is published, and how its objects travel.
	// +required
	Spec PublishedResourceSpec `json:"spec"`

	// Status says how far the hub has come with it.
	// +optional
	Status PublishedResourceStatus `json:"status,omitempty"`
}

// PublishedResourceSpec says which resource is published, and how its objects travel.
//
// +kubebuilder:validation:XValidation:rule="!has(self.installCRD) || !self.installCRD || self.api.source != 'Claim' && !has(self.api.identityHash)",message="a claimed resource has no schema to install",fieldPath=".installCRD"
// +kubebuilder:validation:XValidation:rule="!has(self.deletion) || !has(self.deletion.waitForTarget) || !self.deletion.waitForTarget || self.api.source != 'Claim' && !has(self.api.identityHash)",message="the hub sets no finalizer on objects of a claimed resource, so it cannot wait",fieldPath=".deletion.waitForTarget"
// +kubebuilder:validation:XValidation:rule="!has(self.projection) || !has(self.projection.version) || has(self.resource.version)",message="resource.version is required to publish it under another name",fieldPath=".projection.version"
// +kubebuilder:validation:XValidation:rule="!has(self.projection) || !has(self.projection.kind) || has(self.resource.kind)",message="resource.kind is required to publish it under another name",fieldPath=".projection.kind"
// +kubebuilder:validation:XValidation:rule="!has(self.projection) || !has(self.projection.plural) || has(self.resource.resource)",message="resource.resource is required to publish it under another name",fieldPath=".projection.plural"
// +kubebuilder:validation:XValidation:rule="!has(self.projection) || self.api.source != 'Claim' || has(self.api.identityHash)",message="what kcp serves itself has its own name in mailboxes",fieldPath=".projection"
// +kubebuilder:validation:XValidation:rule="!has(self.api.identityHash) || has(self.resource.resource) && has(self.resource.version)",message="resource.resource and resource.version are required to claim it of another export",fieldPath=".api.identityHash"
// +kubebuilder:validation:XValidation:rule="(has(self.api.identityHash) ? self.api.identityHash : '-') == (has(oldSelf.api.identityHash) ? oldSelf.api.identityHash : '-')",message="immutable",fieldPath=".api.identityHash"
// +kubebuilder:validation:XValidation:rule="(has(self.projection) && has(self.projection.group) ? self.projection.group : self.resource.group) == (has(oldSelf.projection) && has(oldSelf.projection.group) ? oldSelf.projection.group : oldSelf.resource.group)",message="the group in mailboxes is immutable",fieldPath=".projection.group"
// +kubebuilder:validation:XValidation:rule="(has(self.projection) && has(self.projection.kind) ? self.projection.kind : '-') == (has(oldSelf.projection) && has(oldSelf.projection.kind) ? oldSelf.projection.kind : '-')",message="the kind in mailboxes is immutable",fieldPath=".projection.kind"
// +kubebuilder:validation:XValidation:rule="(has(self.projection) && has(self.projection.plural) ? self.projection.plural : '-') == (has(oldSelf.projection) && has(oldSelf.projection.plural) ? oldSelf.projection.plural : '-')",message="the plural in mailboxes is immutable",fieldPath=".projection.plural"
type PublishedResourceSpec struct {
	// Resource names the API on the targets. It is immutable, except for the version.
	// +required
	Resource ResourceDescriptor `json:"resource"`

	// API says how mailboxes get the API.
	// +optional
	// +kubebuilder:default={}
	API APISource `json:"api,omitempty"`

	// InstallCRD installs the CustomResourceDefinition on every target that needs it and keeps it in sync. A
	// definition that someone else installed is left alone, and a newer one is never replaced by an older.
	// +optional
	InstallCRD bool `json:"installCRD,omitempty"`

	// Projection gives the API another name in mailboxes than on the targets.
	// +optional
	Projection *Projection `json:"projection,omitempty"`

	// Naming gives objects other names and namespaces on the target. Absent means unchanged.
	// +optional
	Naming *Naming `json:"naming,omitempty"`

	// Select says which objects of a mailbox travel: those that a SyncerConfig selects, or All.
	// +optional
	// +kubebuilder:default=SyncerConfig
	Select SelectMode `json:"select,omitempty"`

	// Filter holds back objects that would travel otherwise. An object that stops matching is removed from the target.
	// +optional
	Filter *Filter `json:"filter,omitempty"`

	// Mutation changes objects on their way.
	// +optional
	Mutation *Mutation `json:"mutation,omitempty"`

	// IgnoreFields are left to the target: set when the object is created, then neither applied nor corrected.
	// +optional
	// +listType=map
	// +listMapKey=path
	// +kubebuilder:validation:MaxItems=128
	IgnoreFields []IgnoredField `json:"ignoreFields,omitempty"`

	// Related are objects that travel with an object of this resource, from either side.
	// +optional
	// +listType=map
	// +listMapKey=identifier
	// +kubebuilder:validation:MaxItems=32
	Related []RelatedResource `json:"related,omitempty"`

	// StatusReturn says whether the status of what went down is written back to the mailbox.
	// +optional
	// +kubebuilder:default=true
	StatusReturn *bool `json:"statusReturn,omitempty"`

	// Deletion says what happens when objects go.
	// +optional
	Deletion *Deletion `json:"deletion,omitempty"`

	// Replace allows an object to be deleted and created again when the target refuses a change because a field is
	// immutable, after a dry run has shown that the new object is valid.
	// +optional
	Replace bool `json:"replace,omitempty"`

	// Adoption says which objects that are already on a target may be taken over.
	// +optional
	// +kubebuilder:default=Never
	Adoption AdoptionPolicy `json:"adoption,omitempty"`

	// Limits bound how much of the resource is synced of one mailbox. They do not raise how many objects a mailbox can have in all,
	// about 46,000 by default.
	// +optional
	Limits *ResourceLimits `json:"limits,omitempty"`

	// Compatibility says what happens when a target's schema has no room for what the mailbox's schema allows:
	// Strict syncs nothing to that target, Warn syncs and says so.
	// +optional
	// +kubebuilder:default=Strict
	Compatibility CompatibilityPolicy `json:"compatibility,omitempty"`

	// ProtectedNamespaces says whether objects travel to and from the namespaces that the hub protects, by default kube-*, kcp-system
	// and its own.
	// +optional
	// +kubebuilder:default=Deny
	ProtectedNamespaces ProtectedNamespacesPolicy `json:"protectedNamespaces,omitempty"`

	// PrivilegedUpsync says whether objects of an API that acts inside kcp, such as RBAC, webhooks, admission policies and
	// definitions, come up from targets. With TargetGovernsMailbox whoever administers a target can make himself
	// administrator of its mailbox.
	// +optional
	// +kubebuilder:default=Deny
	PrivilegedUpsync PrivilegedUpsyncPolicy `json:"privilegedUpsync,omitempty"`
}

// ResourceLimits bound how much of a resource the hub holds of each mailbox, the oldest objects first and no more than the
// mailbox may have. Objects beyond are not synced, and left as they are on the targets. Those that no config selects count too.
// No limit here lets a mailbox have more objects than the hub can know within the bytes of the mailbox, about 46,000 by default:
// of one that has more nothing is synced.
type ResourceLimits struct {
	// MailboxObjects is how many objects of the resource the hub holds of one mailbox.
	// +optional
	// +kubebuilder:validation:Minimum=1
	MailboxObjects *int64 `json:"mailboxObjects,omitempty"`

	// MailboxBytes is how many bytes of the hub's memory the objects of the resource may take of one mailbox.
	// +optional
	// +kubebuilder:validation:Minimum=1
	MailboxBytes *int64 `json:"mailboxBytes,omitempty"`
}

// ProtectedNamespacesPolicy says whether objects travel to and from protected namespaces.
//
// +kubebuilder:validation:Enum=Deny;Allow
type ProtectedNamespacesPolicy string

const (
	// ProtectedNamespacesDeny leaves them to what a SyncTarget allows.
	ProtectedNamespacesDeny ProtectedNamespacesPolicy = "Deny"

	// ProtectedNamespacesAllow treats them as any other, on all targets.
	ProtectedNamespacesAllow ProtectedNamespacesPolicy = "Allow"
)

// PrivilegedUpsyncPolicy says whether objects of an API that acts inside kcp come up from targets.
//
// +kubebuilder:validation:Enum=Deny;TargetGovernsMailbox
type PrivilegedUpsyncPolicy string

const (
	// PrivilegedUpsyncDeny lets none come up.
	PrivilegedUpsyncDeny PrivilegedUpsyncPolicy = "Deny"

	// PrivilegedUpsyncTargetGovernsMailbox lets those come up that a config selects, and obeys them in the mailbox.
	PrivilegedUpsyncTargetGovernsMailbox PrivilegedUpsyncPolicy = "TargetGovernsMailbox"
)

// SelectMode says which objects of a mailbox travel.
//
// +kubebuilder:validation:Enum=SyncerConfig;All
type SelectMode string

const (
	// SelectSyncerConfig lets the objects travel that a SyncerConfig or EdgeSyncConfig of the mailbox selects.
	SelectSyncerConfig SelectMode = "SyncerConfig"

	// SelectAll lets every object of the resource travel.
	SelectAll SelectMode = "All"
)

// Filter holds back objects. An object travels when it matches every part that is set.
//
// +kubebuilder:validation:MinProperties=1
type Filter struct {
	// Resource selects by the labels of the object.
	// +optional
	// +kubebuilder:validation:XValidation:rule="!has(self.matchExpressions) || self.matchExpressions.all(e, e.operator in ['In', 'NotIn'] ? has(e.values) && e.values.size() > 0 : e.operator in ['Exists', 'DoesNotExist'] && (!has(e.values) || e.values.size() == 0))",message="operator must be In or NotIn with values, or Exists or DoesNotExist without",fieldPath=".matchExpressions"
	Resource *metav1.LabelSelector `json:"resource,omitempty"`

	// Namespace selects by the labels of the object's namespace in the mailbox. Cluster-scoped objects pass.
	// +optional
	// +kubebuilder:validation:XValidation:rule="!has(self.matchExpressions) || self.matchExpressions.all(e, e.operator in ['In', 'NotIn'] ? has(e.values) && e.values.size() > 0 : e.operator in ['Exists', 'DoesNotExist'] && (!has(e.values) || e.values.size() == 0))",message="operator must be In or NotIn with values, or Exists or DoesNotExist without",fieldPath=".matchExpressions"
	Namespace *metav1.LabelSelector `json:"namespace,omitempty"`

	// CEL is an expression over self, the object in the mailbox, that yields true for objects that travel.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	CEL string `json:"cel,omitempty"`
}

// Deletion says what happens when objects go.
type Deletion struct {
	// Policy says what becomes of the object on the target when the one in the mailbox goes. Orphan leaves it there,
	// also when a SyncerConfig says Delete.
	// +optional
	// +kubebuilder:default=Delete
	Policy DeletionPolicy `json:"policy,omitempty"`

	// Cascade allows the hub to delete Namespaces and CustomResourceDefinitions that it created, with all they hold.
	// Without it they are kept, and listed.
	// +optional
	Cascade bool `json:"cascade,omitempty"`

	// WaitForTarget keeps an object in the mailbox until it is gone from the target. Only for resources that the hub
	// exports itself.
	// +optional
	WaitForTarget bool `json:"waitForTarget,omitempty"`
}

// DeletionPolicy says what becomes of a copy when its original goes.
//
// +kubebuilder:validation:Enum=Delete;Orphan
type DeletionPolicy string

const (
	// DeletionPolicyDelete removes the copy.
	DeletionPolicyDelete DeletionPolicy = "Delete"

	// DeletionPolicyOrphan leaves the copy and removes the hub's marks from it.
	DeletionPolicyOrphan DeletionPolicy = "Orphan"
)

// AdoptionPolicy says which objects that are already on a target may be taken over.
//
// +kubebuilder:validation:Enum=Never;IfIdentical;KubeStellar;Always
type AdoptionPolicy string

const (
	// AdoptionNever reports a name that is taken as a conflict.
	AdoptionNever AdoptionPolicy = "Never"

	// AdoptionIfIdentical takes an object over when applying ours would change nothing but marks.
	AdoptionIfIdentical AdoptionPolicy = "IfIdentical"

	// AdoptionKubeStellar takes an object over when its annotation edge.kubestellar.io/downsynced names the object
	// itself.
	AdoptionKubeStellar AdoptionPolicy = "KubeStellar"

	// AdoptionAlways takes over whatever has the name, unless it carries the mark of another hub or source.
	AdoptionAlways AdoptionPolicy = "Always"
)

// CompatibilityPolicy says what happens when a target's schema has no room for what the mailbox's schema allows.
//
// +kubebuilder:validation:Enum=Strict;Warn
type CompatibilityPolicy string

const (
	// CompatibilityStrict syncs nothing of the resource to that target.
	CompatibilityStrict CompatibilityPolicy = "Strict"

	// CompatibilityWarn syncs, and says so in the SyncTarget's syncedResources.
	CompatibilityWarn CompatibilityPolicy = "Warn"
)

// PublishedResourceStatus says how far the hub has come with a PublishedResource.
type PublishedResourceStatus struct {
	// Conditions: SchemaReady, Exported, Ready, MutatedReference, NotImplemented.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// ObservedGeneration is the generation of the PublishedResource that this status speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Hub is the hub that publishes the resource; any other of the same hosting cluster leaves it alone, and says so in an
	// event. The first hub that comes takes what has none. To hand the resource over, remove this.
	// +optional
	Hub *HubReference `json:"hub,omitempty"`

	// SchemaName is the name of the APIResourceSchema in the provider workspace. Empty when the resource is claimed.
	// +optional
	SchemaName string `json:"schemaName,omitempty"`

	// Mailboxes is the number of mailboxes that have the API.
	// +optional
	Mailboxes int64 `json:"mailboxes"`

	// Targets is the number of targets that the resource is synced with.
	// +optional
	Targets int64 `json:"targets"`

	// Objects is the number of objects that are synced, over all targets and both directions.
	// +optional
	Objects int64 `json:"objects"`
}

// HubReference names a hub.
type HubReference struct {
	// UID is that of the LogicalCluster of the hub's provider workspace: two hubs may use workspaces of one path, each in a
	// kcp of its own.
	UID types.UID `json:"uid"`

	// Workspace is the path of the hub's provider workspace, for people.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Workspace string `json:"workspace,omitempty"`
}

// PublishedResourceList is a list of PublishedResources.
//
// +kubebuilder:object:root=true
type PublishedResourceList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []PublishedResource `json:"items"`
}
