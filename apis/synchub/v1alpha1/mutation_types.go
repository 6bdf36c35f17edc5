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

// FieldPath leads to fields of an object: names joined by dots, without a leading dot. A name with other characters
// is written ['like.this']; [0] is an item of a list, [*] all of them, and [?(@.name=="app")] those whose field has
// this value. Example: spec.template.spec.containers[?(@.name=="app")].image
//
// +kubebuilder:validation:MaxLength=512
// +kubebuilder:validation:Pattern=`^[A-Za-z_$][-\w$]*(\.[A-Za-z_$][-\w$]*|\[\*\]|\[[0-9]+\]|\['[^']+'\]|\[\?\(@\.[A-Za-z_][-\w]*==("[^"]*"|'[^']*')\)\])*$`
type FieldPath string

// MutablePath is a FieldPath to what the hub may change: neither apiVersion nor kind, and of the metadata only labels
// and annotations, because the rest says which object it is.
//
// +kubebuilder:validation:MaxLength=512
// +kubebuilder:validation:Pattern=`^[A-Za-z_$][-\w$]*(\.[A-Za-z_$][-\w$]*|\[\*\]|\[[0-9]+\]|\['[^']+'\]|\[\?\(@\.[A-Za-z_][-\w]*==("[^"]*"|'[^']*')\)\])*$`
// +kubebuilder:validation:XValidation:rule="!self.matches(r'^(apiVersion|kind|metadata)($|[.\\[])') || self.matches(r'^metadata\\.(labels|annotations)($|[.\\[])')",message="apiVersion, kind and metadata cannot be changed, except metadata.labels and metadata.annotations"
type MutablePath string

// Mutation changes objects on their way. The steps of a direction run in order, each on the result of the one before.
//
// +kubebuilder:validation:MinProperties=1
type Mutation struct {
	// Down changes what goes from the mailbox to the target.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Down []MutationStep `json:"down,omitempty"`

	// Up changes what comes from the target to the mailbox: objects that are selected for up, and returned status.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Up []MutationStep `json:"up,omitempty"`
}

// MutationStep is one change.
//
// +kubebuilder:validation:XValidation:rule="[has(self.delete), has(self.set), has(self.regex), has(self.template), has(self.cel)].exists_one(set, set)",message="exactly one of delete, set, regex, template and cel is required"
type MutationStep struct {
	// Delete removes fields.
	// +optional
	Delete *DeleteMutation `json:"delete,omitempty"`

	// Set gives fields a fixed value.
	// +optional
	Set *SetMutation `json:"set,omitempty"`

	// Regex replaces within the text of fields.
	// +optional
	Regex *RegexMutation `json:"regex,omitempty"`

	// Template gives fields the text that a Go template yields.
	// +optional
	Template *TemplateMutation `json:"template,omitempty"`

	// CEL gives fields the value that an expression yields.
	// +optional
	CEL *CELMutation `json:"cel,omitempty"`
}

// DeleteMutation removes fields.
type DeleteMutation struct {
	// Path to the fields. Where it leads nowhere, nothing happens.
	// +required
	Path MutablePath `json:"path"`
}

// SetMutation gives fields a fixed value.
type SetMutation struct {
	// Path to the fields. Missing parents are created, as far as no list item is missing.
	// +required
	Path MutablePath `json:"path"`

	// Value of any JSON type.
	// +required
	Value apiextensionsv1.JSON `json:"value"`
}

// RegexMutation replaces within the text of fields.
type RegexMutation struct {
	// Path to the fields. Where it leads nowhere, nothing happens; what is no text is an error.
	// +required
	Path MutablePath `json:"path"`

	RegexRewrite `json:",inline"`
}

// RegexRewrite replaces every match of a pattern.
type RegexRewrite struct {
	// Pattern is a regular expression in RE2 syntax.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="'text'.matches(self) in [true, false]",message="not a regular expression in RE2 syntax"
	Pattern string `json:"pattern"`

	// Replacement for each match; ${1} or ${name} stands for what a group of the pattern matched.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Replacement string `json:"replacement,omitempty"`
}

// TemplateMutation gives fields the text that a Go template yields.
type TemplateMutation struct {
	// Path to the fields. Missing parents are created, as far as no list item is missing.
	// +required
	Path MutablePath `json:"path"`

	// Template over .Value (the field's value), .Object (the object being changed) and .Other (the object on the
	// other side, when there is one).
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=16384
	// +kubebuilder:validation:Pattern=`^([^{]|\{[^{]|\{\{([^}]|\}[^}])*\}\})*\{?$`
	Template string `json:"template"`
}

// CELMutation gives fields the value that an expression yields.
type CELMutation struct {
	// Path to the fields. Missing parents are created, as far as no list item is missing.
	// +required
	Path MutablePath `json:"path"`

	// Expression over value (the field's value, null when missing), self (the object being changed) and other (the
	// object on the other side, null when there is none).
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=16384
	Expression string `json:"expression"`
}

// IgnoredField is a field that is left to the target.
type IgnoredField struct {
	// Path to the field.
	// +required
	Path MutablePath `json:"path"`

	// OnCreate says whether the field is set when the object is created.
	// +optional
	// +kubebuilder:default=true
	OnCreate *bool `json:"onCreate,omitempty"`
}
