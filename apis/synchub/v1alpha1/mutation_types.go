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
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// FieldPath selects fields of an object: names joined by dots, without a leading dot. Write a name with other
// characters as ['like.this']. [0] selects one item of a list, [*] all items, and [?(@.name=="app")] the items whose
// field has this value. Example: spec.template.spec.containers[?(@.name=="app")].image
//
// +kubebuilder:validation:MaxLength=512
// +kubebuilder:validation:Pattern=`^[A-Za-z_$][-\w$]*(\.[A-Za-z_$][-\w$]*|\[\*\]|\[[0-9]+\]|\['[^']+'\]|\[\?\(@\.[A-Za-z_][-\w]*==("[^"]*"|'[^']*')\)\])*$`
type FieldPath string

// MutablePath is a FieldPath to fields that the hub may change. It cannot select apiVersion, kind or metadata, which
// identify the object, except for metadata.labels and metadata.annotations.
//
// +kubebuilder:validation:MaxLength=512
// +kubebuilder:validation:Pattern=`^[A-Za-z_$][-\w$]*(\.[A-Za-z_$][-\w$]*|\[\*\]|\[[0-9]+\]|\['[^']+'\]|\[\?\(@\.[A-Za-z_][-\w]*==("[^"]*"|'[^']*')\)\])*$`
// +kubebuilder:validation:XValidation:rule="!self.matches(r'^(apiVersion|kind|metadata)($|[.\\[])') || self.matches(r'^metadata\\.(labels|annotations)($|[.\\[])')",message="apiVersion, kind and metadata cannot be changed, except metadata.labels and metadata.annotations"
type MutablePath string

// Mutation changes objects between mailbox and target. The steps of a direction run in order, each on the result of
// the step before.
//
// +kubebuilder:validation:MinProperties=1
type Mutation struct {
	// down changes downsynced objects.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Down []MutationStep `json:"down,omitempty"`

	// up changes upsynced objects, and status that the hub returns to the mailbox.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Up []MutationStep `json:"up,omitempty"`
}

// MutationStep is one change. Exactly one of its fields must be set.
//
// +kubebuilder:validation:XValidation:rule="[has(self.delete), has(self.set), has(self.regex), has(self.template), has(self.cel)].exists_one(set, set)",message="exactly one of delete, set, regex, template and cel is required"
type MutationStep struct {
	// delete removes fields.
	// +optional
	Delete *DeleteMutation `json:"delete,omitempty"`

	// set gives fields a fixed value.
	// +optional
	Set *SetMutation `json:"set,omitempty"`

	// regex replaces matches of a pattern in the text of fields.
	// +optional
	Regex *RegexMutation `json:"regex,omitempty"`

	// template gives fields the text that a Go template returns.
	// +optional
	Template *TemplateMutation `json:"template,omitempty"`

	// cel gives fields the value that a CEL expression returns.
	// +optional
	CEL *CELMutation `json:"cel,omitempty"`
}

// DeleteMutation removes fields.
type DeleteMutation struct {
	// path to the fields. A path without a match does nothing.
	// +required
	Path MutablePath `json:"path"`
}

// SetMutation gives fields a fixed value.
type SetMutation struct {
	// path to the fields. The hub creates missing parents, but no missing items of lists.
	// +required
	Path MutablePath `json:"path"`

	// value of any JSON type except null. Use delete to remove a field.
	// +required
	Value apiextensionsv1.JSON `json:"value"`
}

// RegexMutation replaces matches of a pattern in the text of fields.
type RegexMutation struct {
	// path to the fields. A path without a match does nothing; a field that is not text is an error.
	// +required
	Path MutablePath `json:"path"`

	RegexRewrite `json:",inline"`
}

// RegexRewrite replaces every match of a pattern.
type RegexRewrite struct {
	// pattern is a regular expression in RE2 syntax.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="'text'.matches(self) in [true, false]",message="not a regular expression in RE2 syntax"
	Pattern string `json:"pattern"`

	// replacement for each match. ${1} or ${name} stands for the text that a group of the pattern matched.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Replacement string `json:"replacement,omitempty"`
}

// TemplateMutation gives fields the text that a Go template returns.
type TemplateMutation struct {
	// path to the fields. The hub creates missing parents, but no missing items of lists.
	// +required
	Path MutablePath `json:"path"`

	// template over .Value (the value of the field), .Object (the object that the step changes), .Other (the object on
	// the other side, if there is one) and .SyncTarget (metadata.name, metadata.labels and metadata.annotations of the
	// target's SyncTarget).
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=16384
	// +kubebuilder:validation:Pattern=`^([^{]|\{[^{]|\{\{([^}]|\}[^}])*\}\})*\{?$`
	Template string `json:"template"`
}

// CELMutation gives fields the value that a CEL expression returns. The value null removes the field.
type CELMutation struct {
	// path to the fields. The hub creates missing parents, but no missing items of lists.
	// +required
	Path MutablePath `json:"path"`

	// expression over value (the value of the field, null when missing), self (the object that the step changes),
	// other (the object on the other side, null when there is none) and syncTarget (metadata.name, metadata.labels and
	// metadata.annotations of the target's SyncTarget). The result may have any JSON type; null removes the field.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=16384
	Expression string `json:"expression"`
}

// IgnoredField is a field whose value the hub leaves to the target.
type IgnoredField struct {
	// path to the field.
	// +required
	Path MutablePath `json:"path"`

	// onCreate controls whether the hub sets the field when it creates the object.
	// +optional
	// +kubebuilder:default=true
	OnCreate *bool `json:"onCreate,omitempty"`
}
