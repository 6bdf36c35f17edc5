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

// ResourceDescriptor names an API of the targets by its plural name, its kind, or both.
//
// +kubebuilder:validation:XValidation:rule="has(self.resource) || has(self.kind)",message="at least one of resource and kind is required"
// +kubebuilder:validation:XValidation:rule="self.group == oldSelf.group",message="immutable",fieldPath=".group"
// +kubebuilder:validation:XValidation:rule="has(self.resource) == has(oldSelf.resource) && (!has(self.resource) || self.resource == oldSelf.resource)",message="immutable",fieldPath=".resource"
// +kubebuilder:validation:XValidation:rule="has(self.kind) == has(oldSelf.kind) && (!has(self.kind) || self.kind == oldSelf.kind)",message="immutable",fieldPath=".kind"
type ResourceDescriptor struct {
	// group of the API. Empty means the core group.
	// +optional
	// +kubebuilder:default=""
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)?$`
	Group string `json:"group,omitempty"`

	// resource is the plural name, for example deployments.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z]([-a-z0-9]*[a-z0-9])?$`
	Resource string `json:"resource,omitempty"`

	// kind of the objects, for example Deployment.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[A-Z][A-Za-z0-9]*$`
	Kind string `json:"kind,omitempty"`

	// version that is published and synced. If it is empty, the hub publishes every version that the source of the
	// schema serves. It then writes to each target in one version that the target serves, by preference the preferred
	// one.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^v[1-9][0-9]*([a-z]+[1-9][0-9]*)?$`
	Version string `json:"version,omitempty"`
}

// Projection gives an API another name in mailboxes than on the targets. An empty field keeps the name on the
// targets.
//
// +kubebuilder:validation:MinProperties=1
type Projection struct {
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

	// kind in mailboxes.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[A-Z][A-Za-z0-9]*$`
	Kind string `json:"kind,omitempty"`

	// plural name of the resource in mailboxes.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z]([-a-z0-9]*[a-z0-9])?$`
	Plural string `json:"plural,omitempty"`

	// shortNames for kubectl in mailboxes. Empty keeps the short names on the targets.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^[a-z]([-a-z0-9]*[a-z0-9])?$`
	ShortNames []string `json:"shortNames,omitempty"`
}

// Naming gives objects other names and namespaces on the target. Each field is a Go template over .Object (the object
// in the mailbox), .Mailbox (the name of its logical cluster) and .SyncTarget (the name of its SyncTarget). The hub
// shortens a result that is too long and appends a hash. It reports a result that is not a valid name on the object.
//
// +kubebuilder:validation:MinProperties=1
type Naming struct {
	// namespace on the target. Empty means unchanged.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^([-a-z0-9]|\{\{[^{}]+\}\})+$`
	Namespace string `json:"namespace,omitempty"`

	// name on the target. Empty means unchanged.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^([^{}/%\s]|\{\{[^{}]+\}\})+$`
	Name string `json:"name,omitempty"`
}
