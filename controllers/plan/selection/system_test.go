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

package selection_test

import (
	"testing"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/plan/selection"
)

func TestIsSystem(t *testing.T) {
	for reference, want := range map[string]bool{
		"namespaces kube-system": true, "namespaces kube-anything": true, "namespaces default": true, "namespaces a": false, "namespaces kubernetes": false,
		"configmaps a/kube-root-ca.crt": true, "configmaps.example.com a/kube-root-ca.crt": false, "configmaps a/x": false,
		"configmaps kube-system/extension-apiserver-authentication":                   true,
		"configmaps kube-system/kube-apiserver-legacy-service-account-token-tracking": true,
		"configmaps a/extension-apiserver-authentication":                             false,
		"configmaps kube-system/x":                                                    false, "services kube-system/kube-dns": false,
		"serviceaccounts a/default": true, "serviceaccounts a/x": false, "configmaps a/default": false,
		"services default/kubernetes": true, "endpoints default/kubernetes": true, "endpointslices default/kubernetes": true,
		"services a/kubernetes": false, "services default/x": false, "endpointslices default/x": false, "configmaps default/kubernetes": false,
		"clusterroles system:node": true, "roles kube-system/system:leader": true, "roles a/system:x": true, "clusterrolebindings workspace-admin": true, "clusterroles workspace-admin": false, "clusterroles view": false, "configmaps a/system:x": false,
		"priorityclasses system-node-critical": true, "priorityclasses high": false,
		"nodes a": false, "events kube-system/x": false, "leases kube-node-lease/x": false,
	} {
		object := object(reference)
		if got := selection.IsSystem(object); got != want {
			t.Errorf("%s: is Kubernetes' own: %v, want %v", reference, got, want)
		}
		object.Labels = selection.MetadataMap{"kubernetes.io/bootstrapping": "rbac-defaults"}
		if !selection.IsSystem(object) {
			t.Errorf("%s: made at bootstrapping, and not Kubernetes' own", reference)
		}
	}
}

// NamesCRD requires the name of a CustomResourceDefinition, not "*", in a config that is not suspended.
func TestNamesCRD(t *testing.T) {
	config := func(name string, suspended bool, names ...string) *edgev2alpha1.SyncerConfig {
		made := &edgev2alpha1.SyncerConfig{}
		made.Name, made.Spec.Suspend = name, suspended
		made.Spec.ClusterScope = []edgev2alpha1.ClusterScopeDownsyncResource{
			{GroupResource: edgev2alpha1.GroupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}, Objects: names},
			{GroupResource: edgev2alpha1.GroupResource{Group: "rbac.authorization.k8s.io", Resource: "clusterroles"}, Objects: []string{"roles.example.com"}},
		}
		return made
	}
	matcher := selection.Compile([]*edgev2alpha1.SyncerConfig{config("a", false, "*", "widgets.example.com"), config("b", true, "gadgets.example.com")}, nil)
	for name, want := range map[string]bool{"widgets.example.com": true, "gadgets.example.com": false, "rugs.example.com": false, "*": false, "roles.example.com": false} {
		if matcher.NamesCRD(name) != want {
			t.Errorf("%s: %v", name, !want)
		}
	}
	if (*selection.Matcher)(nil).NamesCRD("widgets.example.com") {
		t.Error("no config names anything")
	}
}
