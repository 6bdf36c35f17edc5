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

package placement

import (
	"fmt"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/plan"
)

func TestExclusionOf(t *testing.T) {
	const rbac = "rbac.authorization.k8s.io"
	for _, test := range []struct {
		group, resource, namespace, name string
		labels                           map[string]string
		reason                           string
	}{
		{"", "configmaps", "shop", "prices", nil, ReasonNotSelected},
		{rbac, "clusterroles", "", "reader", nil, ReasonNotSelected},
		{rbac, "clusterroles", "", "system:metrics-reader", nil, ReasonSystemName},
		{rbac, "rolebindings", "kube-system", "metrics-reader", nil, ReasonSystemNamespace},
		{"apps", "deployments", "kube-system", "metrics-server", nil, ReasonSystemNamespace},
		{"scheduling.k8s.io", "priorityclasses", "", "system-mine", nil, ReasonSystemName},
		{rbac, "clusterroles", "", "system:node", map[string]string{"kubernetes.io/bootstrapping": "rbac-defaults"}, ""},
		{rbac, "clusterrolebindings", "", "workspace-admin", nil, ""},
		{"", "namespaces", "", "shop", nil, ""},
		{"", "configmaps", "shop", "kube-root-ca.crt", nil, ""},
		{"", "serviceaccounts", "shop", "default", nil, ""},
	} {
		resource := plan.Resource{GroupVersionResource: schema.GroupVersionResource{Group: test.group, Version: "v1", Resource: test.resource}, Namespaced: test.namespace != ""}
		object := &unstructured.Unstructured{Object: map[string]any{}}
		object.SetNamespace(test.namespace)
		object.SetName(test.name)
		object.SetLabels(test.labels)
		why, counts := exclusionOf(resource, object)
		if counts != (test.reason != "") || counts && (why.Reason != test.reason || why.Message == "") {
			t.Errorf("%s %s/%s: counts %v, %+v", test.resource, test.namespace, test.name, counts, why)
		}
	}
}

// A placement counts the excluded objects in the namespaces of its own objects, and cluster-scoped ones, but no
// objects of other namespaces.
func TestExcludedObjectsOfAPlacement(t *testing.T) {
	excluded := excludedObjects{}
	add := func(namespace, name string, why failure) {
		excluded.add(objectKey{schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, types.NamespacedName{Namespace: namespace, Name: name}}, why)
	}
	for i := range 12 {
		add("shop", fmt.Sprintf("c%02d", 11-i), notSelected)
	}
	add("other", "a", notSelected)
	add("", "role", clusterScoped)
	add("kube-system", "b", systemNamespace)
	names := func(first []edgev2alpha1.ObjectFailure) (all []string) {
		for _, one := range first {
			all = append(all, one.Namespace+"/"+one.Name)
		}
		return all
	}
	count, first := excluded.of(map[string]struct{}{"shop": {}})
	if count != 14 || len(first) != edgev2alpha1.MaxFailures || names(first)[0] != "kube-system/b" || names(first)[1] != "shop/c00" {
		t.Errorf("%d: %v", count, names(first))
	}
	if count, first := excluded.of(nil); count != 2 || !slices.Equal(names(first), []string{"kube-system/b", "/role"}) {
		t.Errorf("%d: %v", count, names(first))
	}
}
