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

package exportbinding

import (
	apisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
)

// Inventory returns the export that inventory workspaces bind. It needs only the Secrets with the label of credentials.
func Inventory() Export {
	return Export{
		Name: synchubv1alpha1.InventoryExport, Command: "kubectl synchub bind inventory",
		Kinds: "SyncTargets", NewList: func() client.ObjectList { return &edgev2alpha1.SyncTargetList{} },
		Labels: map[apisv1alpha2.GroupResource]map[string]string{
			{Resource: "secrets"}: {edgev2alpha1.LabelCredential: edgev2alpha1.CredentialKubeconfig},
		},
		GroupFlag: "--inventory-group", Limited: "the hub neither uses the Secrets nor records the events that it may not see",
	}
}

// Workload returns the export that workload workspaces bind.
func Workload() Export {
	return Export{
		Name: synchubv1alpha1.WorkloadExport, Command: "kubectl synchub bind compute",
		Kinds: "EdgePlacements", NewList: func() client.ObjectList { return &edgev2alpha1.EdgePlacementList{} },
		GroupFlag: "--workload-group", Limited: "the hub places no objects that it may not read",
	}
}
