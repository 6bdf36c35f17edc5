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
)

// RelatedResource says which objects travel with a primary object, one of the published resource. The original lives
// on one side, its copy on the other. Originals are looked for only in the mailbox or on the target of the primary,
// and there only in the primary's namespace and in namespaces that the mailbox's SyncerConfigs select. A copy goes
// with the last primary that needs it.
//
// +kubebuilder:validation:XValidation:rule="self.origin == 'Mailbox' || !has(self.mutation) || !has(self.mutation.down)",message="what comes from the target does not go down",fieldPath=".mutation.down"
// +kubebuilder:validation:XValidation:rule="self.origin == 'Mailbox' || !has(self.statusReturn)",message="what comes from the target brings its status along",fieldPath=".statusReturn"
// +kubebuilder:validation:XValidation:rule="!has(self.__namespace__) || !has(self.object.reference) || !has(self.object.reference.namespaceField)",message="namespace and object.reference.namespaceField exclude each other",fieldPath=".namespace"
type RelatedResource struct {
	// Identifier names the entry, in conditions and events.
	// +required
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Identifier string `json:"identifier"`

	// Origin is the side of the original: Mailbox for what goes down with the primary, Target for what comes up.
	// +required
	Origin RelatedOrigin `json:"origin"`

	// Resource names the API of the related objects, on the targets.
	// +required
	Resource RelatedResourceDescriptor `json:"resource"`

	// Projection names that API in mailboxes, where it differs.
	// +optional
	Projection *RelatedProjection `json:"projection,omitempty"`

	// Object says which objects are related to a primary.
	// +required
	Object RelatedObject `json:"object"`

	// Namespace says in which namespaces the originals are. Absent means the namespace of the primary; it is required
	// when the primary is cluster-scoped and the related objects are not, unless the reference or the owner says it.
	// +optional
	Namespace *RelatedNamespace `json:"namespace,omitempty"`

	// Naming gives copies other names and namespaces than their originals, by templates over .Object (the original),
	// .Primary (the primary on the side of the original), .Mailbox and .SyncTarget. Absent means: the same name, in
	// the namespace that the primary has on that side, or where the original is elsewhere in one of the same name.
	// +optional
	Naming *Naming `json:"naming,omitempty"`

	// Mutation changes the objects on their way.
	// +optional
	Mutation *Mutation `json:"mutation,omitempty"`

	// StatusReturn says whether the status of a copy on the target is written back to the original in the mailbox.
	// Absent means true.
	// +optional
	StatusReturn *bool `json:"statusReturn,omitempty"`

	// DeletionPolicy says what becomes of a copy when the original, or the last primary that needs it, goes.
	// +optional
	// +kubebuilder:default=Delete
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`
}

// RelatedOrigin is the side of an original.
//
// +kubebuilder:validation:Enum=Mailbox;Target
type RelatedOrigin string

const (
	// RelatedOriginMailbox is for objects that go down with the primary.
	RelatedOriginMailbox RelatedOrigin = "Mailbox"

	// RelatedOriginTarget is for objects that come up to the primary.
	RelatedOriginTarget RelatedOrigin = "Target"
)

// RelatedResourceDescriptor names the API of related objects on the targets.
type RelatedResourceDescriptor struct {
	// Group of the API, empty for the core group.
	// +optional
	// +kubebuilder:default=""
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)?$`
	Group string `json:"group,omitempty"`

	// Version of the API.
	// +required
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^v[1-9][0-9]*([a-z]+[1-9][0-9]*)?$`
	Version string `json:"version"`

	// Resource is the plural name.
	// +required
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z]([-a-z0-9]*[a-z0-9])?$`
	Resource string `json:"resource"`

	// IdentityHash is that of the export which provides the API in mailboxes, when it is neither kcp nor the hub.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{64}$`
	IdentityHash string `json:"identityHash,omitempty"`
}

// RelatedProjection names the API of related objects in mailboxes. What is empty is as on the targets.
//
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:XValidation:rule="!has(self.resource) || has(self.kind)",message="kind is required when resource is set",fieldPath=".kind"
type RelatedProjection struct {
	// Group in mailboxes; the empty string is the core group.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)?$`
	Group *string `json:"group,omitempty"`

	// Version in mailboxes.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^v[1-9][0-9]*([a-z]+[1-9][0-9]*)?$`
	Version string `json:"version,omitempty"`

	// Kind in mailboxes. It is required when resource is, because the copy must say it.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[A-Z][A-Za-z0-9]*$`
	Kind string `json:"kind,omitempty"`

	// Resource is the plural name in mailboxes.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z]([-a-z0-9]*[a-z0-9])?$`
	Resource string `json:"resource,omitempty"`
}

// RelatedObject says which objects are related to a primary.
//
// +kubebuilder:validation:XValidation:rule="[has(self.reference), has(self.selector), has(self.template), has(self.owner)].exists_one(set, set)",message="exactly one of reference, selector, template and owner is required"
type RelatedObject struct {
	// Reference reads names from fields of the primary, on the side of the original.
	// +optional
	Reference *RelatedReference `json:"reference,omitempty"`

	// Selector selects objects by their labels.
	// +optional
	Selector *RelatedSelector `json:"selector,omitempty"`

	// Template yields the name of one object, over .Primary, .Mailbox and .SyncTarget. An empty result means none.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^([^{}/%\s]|\{\{[^{}]+\}\})+$`
	Template string `json:"template,omitempty"`

	// Owner takes the objects that have an ownerReference to the primary, by its UID on the side of the original.
	// +optional
	Owner *RelatedOwner `json:"owner,omitempty"`
}

// RelatedReference reads the names of related objects from fields of the primary.
//
// +kubebuilder:validation:XValidation:rule="!has(self.namespaceField) || has(self.nameField)",message="nameField is required when namespaceField is set",fieldPath=".nameField"
type RelatedReference struct {
	// Path to text, or with nameField to an object, in the primary. With [*] it leads to several.
	// +required
	Path FieldPath `json:"path"`

	// NameField is the field with the name, when the path leads to objects such as {name, namespace}.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[A-Za-z_][-\w]*$`
	NameField string `json:"nameField,omitempty"`

	// NamespaceField is the field of the same object with the namespace. Where it is missing or empty, the primary's
	// namespace is meant.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[A-Za-z_][-\w]*$`
	NamespaceField string `json:"namespaceField,omitempty"`

	// Regex turns what was read into the name.
	// +optional
	Regex *RegexRewrite `json:"regex,omitempty"`
}

// RelatedSelector is a label selector whose values may depend on the primary. It must have at least one requirement,
// because none would take everything.
//
// +kubebuilder:validation:XValidation:rule="has(self.matchLabels) && self.matchLabels.size() > 0 || has(self.matchExpressions) && self.matchExpressions.size() > 0",message="an empty selector would take everything"
type RelatedSelector struct {
	// MatchLabels are labels that must all be present. A value may be a Go template over .Primary, .Mailbox and
	// .SyncTarget; where it comes out empty, nothing matches.
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	MatchLabels map[string]string `json:"matchLabels,omitempty"`

	// MatchExpressions are requirements that must all be met, as in any label selector.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:XValidation:rule="self.all(e, e.operator in ['In', 'NotIn'] ? has(e.values) && e.values.size() > 0 : e.operator in ['Exists', 'DoesNotExist'] && (!has(e.values) || e.values.size() == 0))",message="operator must be In or NotIn with values, or Exists or DoesNotExist without"
	MatchExpressions []metav1.LabelSelectorRequirement `json:"matchExpressions,omitempty"`
}

// RelatedOwner takes objects by their ownerReferences.
type RelatedOwner struct {
	// ControllerOnly takes only those whose controller the primary is.
	// +optional
	ControllerOnly bool `json:"controllerOnly,omitempty"`
}

// RelatedNamespace says in which namespaces, on the side of the original, related objects are looked for.
//
// +kubebuilder:validation:XValidation:rule="[has(self.reference), has(self.selector), has(self.template)].exists_one(set, set)",message="exactly one of reference, selector and template is required"
type RelatedNamespace struct {
	// Reference reads names of namespaces from fields of the primary.
	// +optional
	Reference *RelatedNamespaceReference `json:"reference,omitempty"`

	// Selector selects namespaces by their labels.
	// +optional
	Selector *RelatedSelector `json:"selector,omitempty"`

	// Template yields the name of one namespace, over .Primary, .Mailbox and .SyncTarget.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^([-a-z0-9]|\{\{[^{}]+\}\})+$`
	Template string `json:"template,omitempty"`
}

// RelatedNamespaceReference reads names of namespaces from fields of the primary.
type RelatedNamespaceReference struct {
	// Path to text in the primary. With [*] it leads to several.
	// +required
	Path FieldPath `json:"path"`

	// Regex turns what was read into the name.
	// +optional
	Regex *RegexRewrite `json:"regex,omitempty"`
}
