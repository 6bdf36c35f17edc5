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

package rollout

import (
	"slices"
	"testing"

	apisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/bindcompute"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/cli"
)

// The plugin must count the same objects as the hub, or it waits for ever.
func TestPlaceableResources(t *testing.T) {
	t.Parallel()
	claim := func(group, resource string) apisv1alpha2.PermissionClaim {
		return apisv1alpha2.PermissionClaim{GroupResource: apisv1alpha2.GroupResource{Group: group, Resource: resource}, Verbs: []string{"*"}}
	}
	requested := []apisv1alpha2.PermissionClaim{
		claim("", "configmaps"), claim("", "secrets"), claim("", "events"), claim("", "namespaces"), claim("core.kcp.io", "logicalclusters"), claim("coordination.k8s.io", "leases"),
	}
	binding := &apisv1alpha2.APIBinding{}
	binding.Name = "compute"
	binding.Spec.Reference.Export = &apisv1alpha2.ExportBindingReference{Path: "root:synchub", Name: bindcompute.Export}
	// The export no longer claims ServiceAccounts, and the user has rejected the claim on Secrets.
	for _, one := range append(slices.Clone(requested), claim("", "serviceaccounts")) {
		state := apisv1alpha2.ClaimAccepted
		if one.Resource == "secrets" {
			state = apisv1alpha2.ClaimRejected
		}
		accepted := apisv1alpha2.AcceptablePermissionClaim{State: state}
		accepted.PermissionClaim = one
		binding.Spec.PermissionClaims = append(binding.Spec.PermissionClaims, accepted)
	}
	binding.Status.ExportPermissionClaims = requested
	binding.Status.BoundResources = []apisv1alpha2.BoundAPIResource{{Group: "apps", Resource: "deployments"}, {Group: "edge.kubestellar.io", Resource: "edgeplacements"}}
	other := &apisv1alpha2.APIBinding{}
	other.Name = "other"
	other.Spec.Reference.Export = &apisv1alpha2.ExportBindingReference{Path: "root:others", Name: "others"}
	other.Status.BoundResources = []apisv1alpha2.BoundAPIResource{{Group: "others.io", Resource: "others"}}
	workspace := fake.NewClientBuilder().WithScheme(cli.Scheme).WithObjects(binding, other).Build()

	configMaps, namespaces, leases, deployments := schema.GroupResource{Resource: "configmaps"}, schema.GroupResource{Resource: "namespaces"},
		schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}, schema.GroupResource{Group: "apps", Resource: "deployments"}
	for name, c := range map[string]struct {
		unplaced []string
		want     []schema.GroupResource
	}{
		"an older hub":                    {nil, []schema.GroupResource{deployments, configMaps, namespaces, leases}},
		"all that can be placed":          {[]string{"events", "logicalclusters.core.kcp.io"}, []schema.GroupResource{deployments, configMaps, namespaces, leases}},
		"namespaces are not published":    {[]string{"events", "namespaces"}, []schema.GroupResource{deployments, configMaps, leases}},
		"the hub reads leases for others": {[]string{"leases.coordination.k8s.io"}, []schema.GroupResource{deployments, configMaps, namespaces}},
		"an API is being unpublished":     {[]string{"deployments.apps"}, []schema.GroupResource{configMaps, namespaces, leases}},
	} {
		found, err := PlaceableResources(t.Context(), workspace, c.unplaced)
		if err != nil || !slices.Equal(found, c.want) {
			t.Errorf("%s: %v, want %v, %v", name, found, c.want, err)
		}
	}
}
