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
	"k8s.io/apimachinery/pkg/runtime"
)

// PlacementRevision keeps the objects of an EdgePlacement as they were when a rollout was complete. The hub makes it, and
// keeps the newest few; the EdgePlacement owns it. kubectl synchub rollout undo brings the objects back. The hub never
// reads the objects in it.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=plr,categories=synchub
// +kubebuilder:printcolumn:name="Placement",type=string,JSONPath=`.placement`
// +kubebuilder:printcolumn:name="Revision",type=integer,JSONPath=`.revision`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.completedAt`
type PlacementRevision struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// placement is the name of the EdgePlacement.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Placement string `json:"placement"`

	// revision is the number of the revision. Later ones have higher numbers.
	// +required
	// +kubebuilder:validation:Minimum=1
	Revision int64 `json:"revision"`

	// completedAt is when the hub made the revision, after the end of the rollout. The object may be older: a new revision
	// takes the place of the oldest one.
	// +optional
	CompletedAt *metav1.Time `json:"completedAt,omitempty"`

	// observedObjects is the value of status.observedObjects of the EdgePlacement at the time.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	ObservedObjects string `json:"observedObjects,omitempty"`

	// objects are the selected objects with their labels and annotations, without status. Secrets are left out: a user who
	// may read PlacementRevisions is not always allowed to read Secrets.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10000
	// +kubebuilder:validation:items:Type=object
	// +kubebuilder:validation:items:XPreserveUnknownFields
	Objects []runtime.RawExtension `json:"objects,omitempty"`
}

// PlacementRevisionList is a list of PlacementRevisions.
//
// +kubebuilder:object:root=true
type PlacementRevisionList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []PlacementRevision `json:"items"`
}
