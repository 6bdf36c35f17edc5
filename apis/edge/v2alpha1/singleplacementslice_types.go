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
	"k8s.io/apimachinery/pkg/types"
)

// SinglePlacementSlice lists the destinations of the EdgePlacement of the same name, which owns it. The hub writes it.
// If the EdgePlacement has numberOfClusters, an annotation seals the destinations, and the hub takes its choice from
// them after a restart.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=sps,categories=synchub
// +kubebuilder:printcolumn:name="First Cluster",type=string,JSONPath=`.destinations[0].syncTargetName`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type SinglePlacementSlice struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// destinations are sorted by cluster, Location and SyncTarget.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10000
	Destinations []SinglePlacement `json:"destinations"`
}

// SinglePlacement is one destination of an EdgePlacement.
type SinglePlacement struct {
	// cluster is the logical cluster of the inventory workspace.
	// +required
	Cluster string `json:"cluster"`

	// locationName is the name of the Location there. If several Locations select the SyncTarget, it is the first by
	// name.
	// +required
	LocationName string `json:"locationName"`

	// syncTargetName is the name of the SyncTarget there.
	// +required
	SyncTargetName string `json:"syncTargetName"`

	// syncTargetUID is the UID of the SyncTarget.
	// +required
	SyncTargetUID types.UID `json:"syncTargetUID"`

	// namespaceTemplate is the name on the cluster of a namespace of the workspace, as in spec.tenancy of the SyncTarget. It is
	// absent if namespaces have the same name there.
	// +optional
	NamespaceTemplate string `json:"namespaceTemplate,omitempty"`
}

// SinglePlacementSliceList is a list of SinglePlacementSlices.
//
// +kubebuilder:object:root=true
type SinglePlacementSliceList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []SinglePlacementSlice `json:"items"`
}
