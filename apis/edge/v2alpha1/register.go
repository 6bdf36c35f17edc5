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
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupName is the API group of the kinds in this package.
const GroupName = "edge.kubestellar.io"

var (
	// GroupVersion is the group and version of the kinds in this package.
	GroupVersion = schema.GroupVersion{Group: GroupName, Version: "v2alpha1"}

	// SchemeGroupVersion equals GroupVersion; generated clients expect this name.
	SchemeGroupVersion = GroupVersion

	schemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)

	// AddToScheme registers the kinds in this package with a scheme.
	AddToScheme = schemeBuilder.AddToScheme
)

// Resource returns the GroupResource of a plural resource name in this package's group.
func Resource(resource string) schema.GroupResource {
	return GroupVersion.WithResource(resource).GroupResource()
}

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion,
		&SyncTarget{}, &SyncTargetList{},
		&SyncerConfig{}, &SyncerConfigList{},
		&EdgeSyncConfig{}, &EdgeSyncConfigList{},
		&Location{}, &LocationList{},
		&EdgePlacement{}, &EdgePlacementList{},
		&SinglePlacementSlice{}, &SinglePlacementSliceList{},
		&Customizer{}, &CustomizerList{},
		&PlacementRevision{}, &PlacementRevisionList{},
		&SyncRules{}, &SyncRulesList{},
	)
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
