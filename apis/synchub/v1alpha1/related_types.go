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

// RelatedResource selects objects that the hub syncs together with a primary, which is an object of the published
// resource. The original is on one side, its copy on the other. The hub searches originals only in the mailbox or on
// the target of the primary, in the primary's namespace and in namespaces that SyncerConfigs of the mailbox select.
// The hub removes a copy together with the last primary that needs the copy.
//
// +kubebuilder:validation:XValidation:rule="self.origin == 'Mailbox' || !has(self.mutation) || !has(self.mutation.down)",message="what comes from the target does not go down",fieldPath=".mutation.down"
// +kubebuilder:validation:XValidation:rule="self.origin == 'Mailbox' || !has(self.statusReturn)",message="what comes from the target brings its status along",fieldPath=".statusReturn"
// +kubebuilder:validation:XValidation:rule="!has(self.__namespace__) || !has(self.object.reference) || !has(self.object.reference.namespaceField)",message="namespace and object.reference.namespaceField exclude each other",fieldPath=".namespace"
type RelatedResource struct {
	// identifier names the entry in conditions and events.
	// +required
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Identifier string `json:"identifier"`

	// origin is the side of the original. Mailbox syncs the related objects down with the primary. Target syncs them
	// up to the mailbox of the primary.
	// +required
	Origin RelatedOrigin `json:"origin"`

	// resource names the API of the related objects, as on the targets.
	// +required
	Resource RelatedResourceDescriptor `json:"resource"`

	// projection names that API as in mailboxes, where the names differ.
	// +optional
	Projection *RelatedProjection `json:"projection,omitempty"`

	// object selects the objects that are related to a primary.
	// +required
	Object RelatedObject `json:"object"`

	// namespace selects the namespaces of the originals. Absent means the namespace of the primary. The field is
	// required when the primary is cluster-scoped and the related objects are not, unless
	// object.reference.namespaceField or object.owner determines the namespace.
	// +optional
	Namespace *RelatedNamespace `json:"namespace,omitempty"`

	// naming gives copies other names and namespaces than their originals, by templates over .Object (the original),
	// .Primary (the primary on the side of the original), .Mailbox and .SyncTarget. If it is absent, a copy has the
	// name of its original. The copy of an original in the primary's namespace is in the namespace that the primary
	// has on the other side. The copy of any other original is in a namespace of the same name.
	// +optional
	Naming *Naming `json:"naming,omitempty"`

	// mutation changes the objects between original and copy.
	// +optional
	Mutation *Mutation `json:"mutation,omitempty"`

	// statusReturn controls whether the hub writes the status of a copy on the target back to the original in the mailbox.
	// Absent means true.
	// +optional
	StatusReturn *bool `json:"statusReturn,omitempty"`

	// deletionPolicy determines what happens to a copy when its original is deleted, or when no primary needs the copy any
	// more.
	// +optional
	// +kubebuilder:default=Delete
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`
}

// RelatedOrigin is the side of an original.
//
// +kubebuilder:validation:Enum=Mailbox;Target
type RelatedOrigin string

const (
	// RelatedOriginMailbox selects mailbox objects, which the hub syncs down with the primary.
	RelatedOriginMailbox RelatedOrigin = "Mailbox"

	// RelatedOriginTarget selects target objects, which the hub syncs up to the mailbox of the primary.
	RelatedOriginTarget RelatedOrigin = "Target"
)

// RelatedResourceDescriptor names the API of related objects, as on the targets.
type RelatedResourceDescriptor struct {
	// group of the API. Empty means the core group.
	// +optional
	// +kubebuilder:default=""
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)?$`
	Group string `json:"group,omitempty"`

	// version of the API.
	// +required
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^v[1-9][0-9]*([a-z]+[1-9][0-9]*)?$`
	Version string `json:"version"`

	// resource is the plural name.
	// +required
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z]([-a-z0-9]*[a-z0-9])?$`
	Resource string `json:"resource"`

	// identityHash of the export that provides the API in mailboxes, when neither kcp nor the hub provides it.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{64}$`
	IdentityHash string `json:"identityHash,omitempty"`
}

// RelatedProjection names the API of related objects, as in mailboxes. An empty field keeps the name on the targets.
//
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:XValidation:rule="!has(self.resource) || has(self.kind)",message="kind is required when resource is set",fieldPath=".kind"
type RelatedProjection struct {
	// group in mailboxes. The empty string is the core group.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)?$`
	Group *string `json:"group,omitempty"`

	// version in mailboxes.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^v[1-9][0-9]*([a-z]+[1-9][0-9]*)?$`
	Version string `json:"version,omitempty"`

	// kind in mailboxes. It is required when resource is set, because the hub writes the kind into the copy.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[A-Z][A-Za-z0-9]*$`
	Kind string `json:"kind,omitempty"`

	// resource is the plural name in mailboxes.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z]([-a-z0-9]*[a-z0-9])?$`
	Resource string `json:"resource,omitempty"`
}

// RelatedObject selects the objects that are related to a primary. Exactly one field must be set.
//
// +kubebuilder:validation:XValidation:rule="[has(self.reference), has(self.selector), has(self.template), has(self.owner)].exists_one(set, set)",message="exactly one of reference, selector, template and owner is required"
type RelatedObject struct {
	// reference reads names from fields of the primary, on the side of the original.
	// +optional
	Reference *RelatedReference `json:"reference,omitempty"`

	// selector selects objects by their labels.
	// +optional
	Selector *RelatedSelector `json:"selector,omitempty"`

	// template returns the name of one object, over .Primary, .Mailbox and .SyncTarget. An empty result selects no
	// object.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^([^{}/%\s]|\{\{[^{}]+\}\})+$`
	Template string `json:"template,omitempty"`

	// owner selects the objects that have an ownerReference to the primary, by the primary's UID on the side of the
	// original.
	// +optional
	Owner *RelatedOwner `json:"owner,omitempty"`
}

// RelatedReference reads the names of related objects from fields of the primary.
//
// +kubebuilder:validation:XValidation:rule="!has(self.namespaceField) || has(self.nameField)",message="nameField is required when namespaceField is set",fieldPath=".nameField"
type RelatedReference struct {
	// path to text in the primary or, with nameField, to an object in the primary. With [*] the path selects several.
	// +required
	Path FieldPath `json:"path"`

	// nameField is the field with the name, when path selects objects such as {name, namespace}.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[A-Za-z_][-\w]*$`
	NameField string `json:"nameField,omitempty"`

	// namespaceField is the field of the same object with the namespace. If that field is missing or empty, the
	// namespace is the primary's.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[A-Za-z_][-\w]*$`
	NamespaceField string `json:"namespaceField,omitempty"`

	// regex converts the text that was read into the name.
	// +optional
	Regex *RegexRewrite `json:"regex,omitempty"`
}

// RelatedSelector is a label selector whose values may depend on the primary. It must have at least one requirement,
// because an empty selector would select all objects.
//
// +kubebuilder:validation:XValidation:rule="has(self.matchLabels) && self.matchLabels.size() > 0 || has(self.matchExpressions) && self.matchExpressions.size() > 0",message="an empty selector would take everything"
type RelatedSelector struct {
	// matchLabels are labels that must all be present. A value may be a Go template over .Primary, .Mailbox and
	// .SyncTarget. If a value renders as empty text, the selector matches nothing.
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	MatchLabels map[string]string `json:"matchLabels,omitempty"`

	// matchExpressions are requirements that must all be met, as in any label selector.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	MatchExpressions []metav1.LabelSelectorRequirement `json:"matchExpressions,omitempty"`
}

// RelatedOwner selects objects by their ownerReferences.
type RelatedOwner struct {
	// controllerOnly selects only objects that have the primary as their controller.
	// +optional
	ControllerOnly bool `json:"controllerOnly,omitempty"`
}

// RelatedNamespace selects the namespaces in which the hub searches related objects, on the side of the original.
// Exactly one field must be set.
//
// +kubebuilder:validation:XValidation:rule="[has(self.reference), has(self.selector), has(self.template)].exists_one(set, set)",message="exactly one of reference, selector and template is required"
type RelatedNamespace struct {
	// reference reads names of namespaces from fields of the primary.
	// +optional
	Reference *RelatedNamespaceReference `json:"reference,omitempty"`

	// selector selects namespaces by their labels.
	// +optional
	Selector *RelatedSelector `json:"selector,omitempty"`

	// template returns the name of one namespace, over .Primary, .Mailbox and .SyncTarget.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^([-a-z0-9]|\{\{[^{}]+\}\})+$`
	Template string `json:"template,omitempty"`
}

// RelatedNamespaceReference reads names of namespaces from fields of the primary.
type RelatedNamespaceReference struct {
	// path to text in the primary. With [*] the path selects several.
	// +required
	Path FieldPath `json:"path"`

	// regex converts the text that was read into the name.
	// +optional
	Regex *RegexRewrite `json:"regex,omitempty"`
}
