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

// PublishedResource gives every mailbox workspace one API of the targets, and defines how the hub changes the API's objects
// between mailbox and target. It lives in the hosting cluster. If two PublishedResources name the same group and resource,
// the oldest is in force.
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

	// spec names the published resource, and defines how the hub syncs its objects.
	// +required
	Spec PublishedResourceSpec `json:"spec"`

	// status reports whether mailboxes have the API, and how many of its objects are synced.
	// +optional
	Status PublishedResourceStatus `json:"status,omitempty"`
}

// PublishedResourceSpec names the published resource, and defines how the hub syncs its objects.
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
// +kubebuilder:validation:XValidation:rule="!has(self.statusExpression) || !has(self.statusAggregation)",message="set statusAggregation or statusExpression, not both",fieldPath=".statusExpression"
type PublishedResourceSpec struct {
	// resource names the API, as on the targets. All its fields except version are immutable.
	// +required
	Resource ResourceDescriptor `json:"resource"`

	// api selects how mailboxes get the API.
	// +optional
	// +kubebuilder:default={}
	API APISource `json:"api,omitempty"`

	// installCRD makes the hub install the CustomResourceDefinition on every target that needs it, and keep that
	// definition in sync. The hub leaves a CustomResourceDefinition alone that somebody else installed, and never
	// replaces a newer one with an older one.
	// +optional
	InstallCRD bool `json:"installCRD,omitempty"`

	// projection gives the API another name in mailboxes than on the targets.
	// +optional
	Projection *Projection `json:"projection,omitempty"`

	// naming gives objects other names and namespaces on the target. Absent means unchanged.
	// +optional
	Naming *Naming `json:"naming,omitempty"`

	// select determines which objects of a mailbox the hub syncs: with SyncerConfig the objects that a SyncerConfig or
	// EdgeSyncConfig selects, with All every object.
	// +optional
	// +kubebuilder:default=SyncerConfig
	Select SelectMode `json:"select,omitempty"`

	// filter excludes objects that the hub would downsync otherwise. The hub removes an object that stops matching
	// from the target.
	// +optional
	Filter *Filter `json:"filter,omitempty"`

	// mutation changes objects between mailbox and target.
	// +optional
	Mutation *Mutation `json:"mutation,omitempty"`

	// ignoreFields are fields whose values the hub leaves to the target. The hub sets them when it creates an object,
	// unless onCreate is false. It then neither applies nor corrects them.
	// +optional
	// +listType=map
	// +listMapKey=path
	// +kubebuilder:validation:MaxItems=128
	IgnoreFields []IgnoredField `json:"ignoreFields,omitempty"`

	// namespaceReferences are fields of an object that name namespaces: each holds a name, a list of names, or a label selector
	// for namespaces. On a cluster where each workspace has namespaces of its own the hub replaces the names by the names
	// of the workspace's namespaces there, also in selectors by the label kubernetes.io/metadata.name. The names of
	// Kubernetes' own namespaces stay. The hub knows the fields of Kubernetes' kinds.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	NamespaceReferences []FieldPath `json:"namespaceReferences,omitempty"`

	// related selects objects of other resources, on either side, that the hub syncs together with an object of this
	// resource.
	// +optional
	// +listType=map
	// +listMapKey=identifier
	// +kubebuilder:validation:MaxItems=32
	Related []RelatedResource `json:"related,omitempty"`

	// statusReturn controls whether the hub writes the status of downsynced objects back to the mailbox.
	// +optional
	// +kubebuilder:default=true
	StatusReturn *bool `json:"statusReturn,omitempty"`

	// statusAggregation defines how the hub combines the statuses that an object of an EdgePlacement has on several clusters,
	// if the EdgePlacement has aggregateStatus. Sum adds numbers up. Lowest shows the numbers of the cluster with the least
	// progress, so that they fit the numbers in spec. With both, a condition is True if it is True on all clusters. None
	// combines nothing. The default is Lowest for Deployments, StatefulSets and Jobs, Sum for DaemonSets and Services, and
	// None for all other kinds.
	// +optional
	StatusAggregation StatusAggregationPolicy `json:"statusAggregation,omitempty"`

	// statusExpression is a CEL expression over statuses, the list of the statuses on all clusters, in place of
	// statusAggregation. A cluster without a status has an empty one. The expression must return the map of the
	// status's fields.
	// +optional
	// +kubebuilder:validation:MaxLength=10240
	StatusExpression string `json:"statusExpression,omitempty"`

	// health defines how the hub determines whether an object on a target does its work. Absent means by kstatus, which knows
	// the kinds of Kubernetes, and the usual conditions of other kinds. The hub counts the result in status.ready of
	// SyncerConfigs, and in status.healthy of EdgePlacements.
	// +optional
	Health *HealthRules `json:"health,omitempty"`

	// deletion determines what happens to copies when their originals are deleted or no longer selected.
	// +optional
	Deletion *Deletion `json:"deletion,omitempty"`

	// replace allows the hub to delete and recreate an object when the target refuses a change because a field is
	// immutable. The hub does so only after a dry run has shown that the new object is valid.
	// +optional
	Replace bool `json:"replace,omitempty"`

	// adoption selects the existing objects of a target that the hub may take over.
	// +optional
	// +kubebuilder:default=Never
	Adoption AdoptionPolicy `json:"adoption,omitempty"`

	// drift determines what the hub does when another client has changed a field of a copy that the hub set. Repair sets the
	// field again. Report writes nothing: the object fails with the reason Drifted, and the report names the field, its manager
	// and, except for Secrets, both values. A change of the mailbox object or of a rule is applied as ever, and takes such fields
	// back. With Report the hub takes over no existing object either: it reports how the object would change. drift of an entry
	// in a SyncerConfig, and the annotation synchub.dev/drift of an object, take precedence.
	// +optional
	// +kubebuilder:default=Repair
	Drift DriftPolicy `json:"drift,omitempty"`

	// limits bound how much of the resource the hub syncs of one mailbox. They do not raise the total number of
	// objects that a mailbox can have, about 46,000 by default.
	// +optional
	Limits *ResourceLimits `json:"limits,omitempty"`

	// compatibility determines what happens when a target's schema has no room for objects that the mailbox's schema allows.
	// Strict syncs nothing to that target. Warn syncs, and reports the differences.
	// +optional
	// +kubebuilder:default=Strict
	Compatibility CompatibilityPolicy `json:"compatibility,omitempty"`

	// protectedNamespaces controls whether the hub syncs objects to and from the namespaces that it protects. By default
	// these are kube-*, kcp-system, synchub, synchub-* and the hub's own namespace.
	// +optional
	// +kubebuilder:default=Deny
	ProtectedNamespaces ProtectedNamespacesPolicy `json:"protectedNamespaces,omitempty"`

	// privilegedUpsync controls whether the hub upsyncs objects of an API that acts inside kcp, such as RBAC, webhooks,
	// admission policies and CustomResourceDefinitions. With TargetGovernsMailbox, everyone who administers a target can
	// become administrator of its mailbox.
	// +optional
	// +kubebuilder:default=Deny
	PrivilegedUpsync PrivilegedUpsyncPolicy `json:"privilegedUpsync,omitempty"`
}

// StatusAggregationPolicy selects how the hub combines statuses.
//
// +kubebuilder:validation:Enum=Sum;Lowest;None
type StatusAggregationPolicy string

const (
	// StatusAggregationSum adds numbers up.
	StatusAggregationSum StatusAggregationPolicy = "Sum"

	// StatusAggregationLowest takes the lowest of each number.
	StatusAggregationLowest StatusAggregationPolicy = "Lowest"

	// StatusAggregationNone combines nothing.
	StatusAggregationNone StatusAggregationPolicy = "None"
)

// HealthRules are CEL expressions over self, the object on the target with its spec and status. The hub evaluates them
// unless the object is being deleted, which is Terminating, or its status.observedGeneration is not its generation,
// which is InProgress. If an expression fails, for example because a field is absent, the health is Unknown: test
// optional fields with has().
type HealthRules struct {
	// current must return true for an object that does its work, and false for one that does not do it yet.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=10240
	Current string `json:"current"`

	// failed must return true for an object that will not do its work without a change from outside. Absent means never.
	// +optional
	// +kubebuilder:validation:MaxLength=10240
	Failed string `json:"failed,omitempty"`

	// message must return a string that explains to users why an object has failed. The hub keeps its first 256 bytes.
	// +optional
	// +kubebuilder:validation:MaxLength=10240
	Message string `json:"message,omitempty"`
}

// ResourceLimits bound how much of a resource the hub caches of each mailbox. The hub caches the oldest objects
// first, and no more than the limits of the mailbox allow. It does not sync objects beyond a limit, and leaves their
// copies on the targets as they are. Objects that no config selects count too.
//
// No limit here lets a mailbox have more objects than the hub can know within the byte limit of the mailbox, about
// 46,000 by default. The hub syncs nothing of a mailbox with more objects.
type ResourceLimits struct {
	// mailboxObjects is the maximum number of objects of the resource that the hub caches of one mailbox.
	// +optional
	// +kubebuilder:validation:Minimum=1
	MailboxObjects *int64 `json:"mailboxObjects,omitempty"`

	// mailboxBytes is the maximum of the hub's memory, in bytes, that objects of the resource may take of one
	// mailbox.
	// +optional
	// +kubebuilder:validation:Minimum=1
	MailboxBytes *int64 `json:"mailboxBytes,omitempty"`
}

// ProtectedNamespacesPolicy controls whether the hub syncs objects to and from protected namespaces.
//
// +kubebuilder:validation:Enum=Deny;Allow
type ProtectedNamespacesPolicy string

const (
	// ProtectedNamespacesDeny syncs only to and from the protected namespaces that a SyncTarget allows.
	ProtectedNamespacesDeny ProtectedNamespacesPolicy = "Deny"

	// ProtectedNamespacesAllow treats protected namespaces as any other, on all targets.
	ProtectedNamespacesAllow ProtectedNamespacesPolicy = "Allow"
)

// PrivilegedUpsyncPolicy controls whether the hub upsyncs objects of an API that acts inside kcp.
//
// +kubebuilder:validation:Enum=Deny;TargetGovernsMailbox
type PrivilegedUpsyncPolicy string

const (
	// PrivilegedUpsyncDeny upsyncs none of these objects.
	PrivilegedUpsyncDeny PrivilegedUpsyncPolicy = "Deny"

	// PrivilegedUpsyncTargetGovernsMailbox upsyncs the objects that a config selects. kcp then obeys them in the
	// mailbox.
	PrivilegedUpsyncTargetGovernsMailbox PrivilegedUpsyncPolicy = "TargetGovernsMailbox"
)

// SelectMode determines which objects of a mailbox the hub syncs.
//
// +kubebuilder:validation:Enum=SyncerConfig;All
type SelectMode string

const (
	// SelectSyncerConfig syncs the objects that a SyncerConfig or EdgeSyncConfig of the mailbox selects.
	SelectSyncerConfig SelectMode = "SyncerConfig"

	// SelectAll syncs every object of the resource.
	SelectAll SelectMode = "All"
)

// Filter excludes objects from downsync. The hub syncs an object that matches every field that is set.
//
// +kubebuilder:validation:MinProperties=1
type Filter struct {
	// resource selects by the labels of the object.
	// +optional
	Resource *metav1.LabelSelector `json:"resource,omitempty"`

	// namespace selects by the labels of the object's namespace in the mailbox. Cluster-scoped objects always match.
	// +optional
	Namespace *metav1.LabelSelector `json:"namespace,omitempty"`

	// cel is a CEL expression over self, the object in the mailbox. It must return true for objects that the hub
	// syncs.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	CEL string `json:"cel,omitempty"`
}

// Deletion determines what happens to copies when their originals are deleted or no longer selected.
type Deletion struct {
	// policy determines what happens to the copy on the target when its original is deleted or no longer selected. Orphan
	// keeps the copy, even if the deletionPolicy of a SyncerConfig is Delete.
	// +optional
	// +kubebuilder:default=Delete
	Policy DeletionPolicy `json:"policy,omitempty"`

	// cascade allows the hub to delete Namespaces and CustomResourceDefinitions that it created, with everything in
	// them. Otherwise the hub keeps and lists them.
	// +optional
	Cascade bool `json:"cascade,omitempty"`

	// waitForTarget keeps a deleted object in the mailbox, by a finalizer, until its copy is gone from the target. It
	// works only for resources that the hub exports itself.
	// +optional
	WaitForTarget bool `json:"waitForTarget,omitempty"`
}

// DeletionPolicy determines what happens to a copy when its original is deleted or no longer selected.
//
// +kubebuilder:validation:Enum=Delete;Orphan
type DeletionPolicy string

const (
	// DeletionPolicyDelete removes the copy.
	DeletionPolicyDelete DeletionPolicy = "Delete"

	// DeletionPolicyOrphan keeps the copy and removes the hub's marks from it.
	DeletionPolicyOrphan DeletionPolicy = "Orphan"
)

// AdoptionPolicy selects the existing objects of a target that the hub may take over.
//
// +kubebuilder:validation:Enum=Never;IfIdentical;KubeStellar;Always
type AdoptionPolicy string

const (
	// AdoptionNever takes over nothing; an existing object of the name is a conflict.
	AdoptionNever AdoptionPolicy = "Never"

	// AdoptionIfIdentical takes an object over when applying the hub's version would change nothing but marks.
	AdoptionIfIdentical AdoptionPolicy = "IfIdentical"

	// AdoptionKubeStellar takes an object over when its annotation edge.kubestellar.io/downsynced names the object
	// itself.
	AdoptionKubeStellar AdoptionPolicy = "KubeStellar"

	// AdoptionAlways takes over every object of the name, unless the object has the mark of another hub or source.
	AdoptionAlways AdoptionPolicy = "Always"
)

// DriftPolicy determines what the hub does about changes that other clients made on a target.
//
// +kubebuilder:validation:Enum=Repair;Report
type DriftPolicy string

const (
	// DriftRepair undoes the changes.
	DriftRepair DriftPolicy = "Repair"

	// DriftReport reports the changes, and writes nothing.
	DriftReport DriftPolicy = "Report"
)

// CompatibilityPolicy determines what happens when a target's schema has no room for objects that the mailbox's schema
// allows.
//
// +kubebuilder:validation:Enum=Strict;Warn
type CompatibilityPolicy string

const (
	// CompatibilityStrict syncs nothing of the resource to that target.
	CompatibilityStrict CompatibilityPolicy = "Strict"

	// CompatibilityWarn syncs, and reports the differences in status.syncedResources of the SyncTarget.
	CompatibilityWarn CompatibilityPolicy = "Warn"
)

// PublishedResourceStatus reports whether mailboxes have the API, and how many of its objects are synced.
type PublishedResourceStatus struct {
	// conditions of the PublishedResource: SchemaReady, Exported and Ready, and, where they apply, APIsMissing,
	// MutatedReference, NotPlaceable and NotImplemented.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// observedGeneration is the generation of the PublishedResource that this status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// hub that publishes the resource. Every other hub of the same hosting cluster leaves the resource alone, and
	// reports that in an event. If the field is empty, the first hub that observes the resource sets it. To hand the
	// resource over to another hub, remove this field.
	// +optional
	Hub *HubReference `json:"hub,omitempty"`

	// schemaName is the name of the APIResourceSchema in the provider workspace. It is empty when the hub claims the
	// resource.
	// +optional
	SchemaName string `json:"schemaName,omitempty"`

	// mailboxes is the number of mailboxes that have the API.
	// +optional
	Mailboxes int64 `json:"mailboxes"`

	// targets is the number of targets with which the hub syncs the resource.
	// +optional
	Targets int64 `json:"targets"`

	// objects is the number of synced objects, over all targets and both directions.
	// +optional
	Objects int64 `json:"objects"`
}

// HubReference names a hub.
type HubReference struct {
	// uid of the LogicalCluster of the hub's provider workspace. The path of the workspace is not unique: two hubs
	// may use workspaces of the same path in different kcp installations.
	UID types.UID `json:"uid"`

	// workspace is the path of the hub's provider workspace, for people.
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
