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

package tenancy

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
)

func TestRewrite(t *testing.T) {
	t.Parallel()
	naming := NamingOf(perWorkspace(""))
	ours := func(name string) string { return naming.Namespace("w", name) }
	for name, c := range map[string]struct {
		resource     schema.GroupResource
		further      []synchubv1alpha1.FieldPath
		object, want string
	}{
		"the subjects of a RoleBinding": {
			schema.GroupResource{Group: "rbac.authorization.k8s.io", Resource: "rolebindings"}, nil,
			`{"subjects": [{"kind": "ServiceAccount", "name": "till", "namespace": "shop"}, {"kind": "User", "name": "till"}]}`,
			`{"subjects": [{"kind": "ServiceAccount", "name": "till", "namespace": "` + ours("shop") + `"}, {"kind": "User", "name": "till"}]}`,
		},
		"the selectors of a NetworkPolicy": {
			schema.GroupResource{Group: "networking.k8s.io", Resource: "networkpolicies"}, nil,
			`{"spec": {"ingress": [{"from": [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "web", "tier": "gold"}}}, {"podSelector": {}}]}],
			  "egress": [{"to": [{"namespaceSelector": {"matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["kube-system", "db"]}, {"key": "tier", "operator": "Exists"}]}}]}]}}`,
			`{"spec": {"ingress": [{"from": [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "` + ours("web") + `", "tier": "gold"}}}, {"podSelector": {}}]}],
			  "egress": [{"to": [{"namespaceSelector": {"matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["kube-system", "` + ours("db") + `"]}, {"key": "tier", "operator": "Exists"}]}}]}]}}`,
		},
		"the affinity of a Deployment": {
			schema.GroupResource{Group: "apps", Resource: "deployments"}, nil,
			`{"spec": {"template": {"spec": {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"namespaces": ["shop", "web"]}]}}}}}}`,
			`{"spec": {"template": {"spec": {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"namespaces": ["` + ours("shop") + `", "` + ours("web") + `"]}]}}}}}}`,
		},
		"the fields that a PublishedResource names": {
			schema.GroupResource{Group: "gateway.networking.k8s.io", Resource: "httproutes"}, []synchubv1alpha1.FieldPath{"spec.parentRefs[*].namespace"},
			`{"spec": {"parentRefs": [{"name": "a", "namespace": "edge"}, {"name": "b"}]}}`,
			`{"spec": {"parentRefs": [{"name": "a", "namespace": "` + ours("edge") + `"}, {"name": "b"}]}}`,
		},
		"values of other types": {
			schema.GroupResource{Group: "example.com", Resource: "things"}, []synchubv1alpha1.FieldPath{"spec.a", "spec.b", "spec.c", "spec.d"},
			`{"spec": {"a": 7, "b": [true, {"x": "y"}], "c": {"matchLabels": 7, "matchExpressions": ["x", {"key": "kubernetes.io/metadata.name", "values": 7}]}, "d": null}}`,
			`{"spec": {"a": 7, "b": [true, {"x": "y"}], "c": {"matchLabels": 7, "matchExpressions": ["x", {"key": "kubernetes.io/metadata.name", "values": 7}]}, "d": null}}`,
		},
	} {
		references, err := CompileReferences(c.resource, c.further)
		if err != nil {
			t.Fatal(err)
		}
		source := decode(t, c.object)
		got, err := naming.Rewrite("w", source, references)
		if err != nil || !reflect.DeepEqual(got, decode(t, c.want)) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
		if !reflect.DeepEqual(source, decode(t, c.object)) {
			t.Errorf("%s: the source has changed: %v", name, source)
		}
		if same, err := Naming("").Rewrite("w", source, references); same != source || err != nil {
			t.Errorf("%s: a shared cluster: %v, %v", name, same, err)
		}
	}
}

func TestInvalidReferences(t *testing.T) {
	t.Parallel()
	_, err := CompileReferences(schema.GroupResource{}, []synchubv1alpha1.FieldPath{"spec.a", ".b"})
	if err == nil || !strings.HasPrefix(err.Error(), "namespaceReferences[1]: ") {
		t.Errorf("%v", err)
	}
}

// The paths of Kubernetes' kinds are valid.
func TestKubernetesReferences(t *testing.T) {
	t.Parallel()
	for resource := range kubernetesReferences {
		if references, err := CompileReferences(resource, nil); err != nil || len(references) == 0 {
			t.Errorf("%s: %v, %v", resource, references, err)
		}
	}
}

func decode(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := json.Unmarshal([]byte(text), &object.Object); err != nil {
		t.Fatal(err)
	}
	return object
}
