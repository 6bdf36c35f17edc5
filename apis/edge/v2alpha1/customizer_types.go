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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Customizer changes the copies of objects that a placement makes. It changes the objects whose annotation
// edge.kubestellar.io/customizer names it; those in a namespace name a Customizer of their own namespace.
//
// A Customizer with the annotation edge.kubestellar.io/expand-parameters "true" may have parameters in its paths and values,
// which are expanded for each destination. The fields are the same as in KubeStellar 0.14.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,shortName=cust,categories=synchub
// +kubebuilder:printcolumn:name="First Path",type=string,JSONPath=`.replacements[0].path`
// +kubebuilder:printcolumn:name="Parameters",type=string,JSONPath=`.metadata.annotations.edge\.kubestellar\.io/expand-parameters`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Customizer struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// replacements are made one after the other.
	// +optional
	// +listType=map
	// +listMapKey=path
	// +kubebuilder:validation:MaxItems=64
	Replacements []Replacement `json:"replacements,omitempty"`
}

// Replacement sets the values at a path of an object.
type Replacement struct {
	// path is a JSONPath such as $.spec.template.spec.containers[0].image. After $, a step is the name of a field, the
	// number of an item of a list, * for all items of a list, or [?(@.name=="value")] for the items in which a field has
	// this value. Missing fields are made; items of lists are not. apiVersion, kind, status and metadata cannot be
	// changed, except metadata.labels and metadata.annotations.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Path string `json:"path"`

	// value is the new value as JSON, so that a text is in double quotes. null removes the value.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=65536
	Value string `json:"value"`
}

// CustomizerList is a list of Customizers.
//
// +kubebuilder:object:root=true
type CustomizerList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Customizer `json:"items"`
}
