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

package patchguard_test

import (
	"encoding/json"
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/synchub-dev/synchub/test/tier"
)

// A server-side apply may have null in any field of a published kind, as on a cluster, whose Go types drop it.
func TestNullsCanBeApplied(t *testing.T) {
	tier.Thorough(t)
	for _, published := range publishedSchemas(t) {
		for name, depth := range map[string]int{"null": 1, "shallow": 2, "deep": 30} {
			t.Run(published.Spec.Names.Plural+"/"+name, func(t *testing.T) {
				t.Parallel()
				g := NewWithT(t)
				root, err := published.Spec.Versions[0].GetSchema()
				g.Expect(err).NotTo(HaveOccurred())
				object := nulls(root, depth).(map[string]any)
				kind := schema.GroupVersionKind{Group: published.Spec.Group, Version: published.Spec.Versions[0].Name, Kind: published.Spec.Names.Kind}
				object["apiVersion"], object["kind"] = kind.GroupVersion().String(), kind.Kind
				object["metadata"] = map[string]any{"name": name, "creationTimestamp": nil}
				if published.Spec.Versions[0].Subresources.Scale != nil {
					// kcp reads the replicas of the subresource scale from there, and refuses null.
					unstructured.RemoveNestedField(object, "spec", "replicas")
				}
				manifest, err := json.Marshal(object)
				g.Expect(err).NotTo(HaveOccurred())
				var objects dynamic.ResourceInterface = newDynamic(t).Resource(kind.GroupVersion().WithResource(published.Spec.Names.Plural))
				if published.Spec.Scope == apiextensionsv1.NamespaceScoped {
					objects = newDynamic(t).Resource(kind.GroupVersion().WithResource(published.Spec.Names.Plural)).Namespace("default")
				}
				_, err = objects.Patch(t.Context(), name, types.ApplyPatchType, manifest, metav1.PatchOptions{FieldManager: "kubectl"})
				g.Expect(err).NotTo(HaveOccurred(), "%s", manifest)
			})
		}
	}
}

// nulls returns a value of a schema in which each field is null, except keys of list items, and down to a depth objects and
// lists with keys.
func nulls(s *apiextensionsv1.JSONSchemaProps, depth int) any {
	switch {
	case depth == 0:
		return nil
	case s.Type == "object" && len(s.Properties) > 0:
		object := map[string]any{}
		for name, property := range s.Properties {
			object[name] = nulls(&property, depth-1)
		}
		return object
	case s.Type == "array" && len(s.XListMapKeys) > 0:
		item := nulls(s.Items.Schema, max(depth-1, 1)).(map[string]any)
		for _, key := range s.XListMapKeys {
			switch property := s.Items.Schema.Properties[key]; {
			case len(property.Enum) > 0:
				item[key] = property.Enum[0]
			case property.Type == "integer":
				item[key] = 1
			default:
				item[key] = "key"
			}
		}
		return []any{item}
	}
	return nil
}
