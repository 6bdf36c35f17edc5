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

package discovery_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// openAPIDoc holds the schemas of an OpenAPI document as JSON, independent of the code under test.
type openAPIDoc map[string]any

func readDocument(t *testing.T, version schema.GroupVersion) openAPIDoc {
	t.Helper()
	path := "/openapi/v3/apis/" + version.String()
	if version.Group == "" {
		path = "/openapi/v3/api/" + version.Version
	}
	content, err := discoveryClient(t, cluster(t)).RESTClient().Get().AbsPath(path).DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var document openAPIDoc
	if err := json.Unmarshal(content, &document); err != nil {
		t.Fatal(err)
	}
	return document["components"].(map[string]any)["schemas"].(map[string]any)
}

// completeObject returns an object of a kind with every field of its OpenAPI schema. The schema must accept it. A cluster
// would refuse it, since it has for example all types of volume in one.
func (d openAPIDoc) completeObject(t *testing.T, kind schema.GroupVersionKind) *unstructured.Unstructured {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(d)) {
		component := d[name].(map[string]any)
		kinds, _ := component["x-kubernetes-group-version-kind"].([]any)
		for _, candidate := range kinds {
			if names := candidate.(map[string]any); names["group"] == kind.Group && names["version"] == kind.Version && names["kind"] == kind.Kind {
				object := &unstructured.Unstructured{Object: d.exampleValue(component, name).(map[string]any)}
				object.SetGroupVersionKind(kind)
				delete(object.Object, "metadata")
				object.SetName("full")
				return object
			}
		}
	}
	t.Fatalf("the document does not describe %s", kind)
	return nil
}

// exampleValue returns a value that fits a schema, or nil for a type that contains itself.
func (d openAPIDoc) exampleValue(node map[string]any, within ...string) any {
	reference, _ := node["$ref"].(string)
	if all, _ := node["allOf"].([]any); len(all) == 1 {
		reference, _ = all[0].(map[string]any)["$ref"].(string)
	}
	if reference != "" {
		name := strings.TrimPrefix(reference, "#/components/schemas/")
		switch {
		case strings.HasSuffix(name, ".Quantity"):
			return "1500m"
		case slices.Contains(within, name):
			return nil
		}
		return d.exampleValue(d[name].(map[string]any), append(slices.Clip(within), name)...)
	}
	if values, _ := node["enum"].([]any); len(values) > 0 {
		return values[0]
	}
	switch node["type"] {
	case "object":
		return d.exampleObject(node, within)
	case "array":
		if item := d.exampleValue(node["items"].(map[string]any), within...); item != nil {
			return []any{item}
		}
		return nil
	case "string":
		switch node["format"] {
		case "date-time":
			return "2026-01-02T03:04:05Z"
		case "byte":
			return "AAEC"
		}
		return "text"
	case "integer":
		return int64(7)
	case "number":
		return 1.5
	case "boolean":
		return true
	}
	return "50%"
}

func (d openAPIDoc) exampleObject(node map[string]any, within []string) any {
	properties, _ := node["properties"].(map[string]any)
	values, _ := node["additionalProperties"].(map[string]any)
	if properties == nil && values == nil {
		return map[string]any{"free": map[string]any{"list": []any{int64(1), "two", map[string]any{"three": true}}}}
	}
	object := map[string]any{}
	for name, property := range properties {
		if value := d.exampleValue(property.(map[string]any), within...); value != nil {
			object[name] = value
		}
	}
	if values != nil {
		for _, key := range []string{"a", "example.com/b.c"} {
			if value := d.exampleValue(values, within...); value != nil {
				object[key] = value
			}
		}
	}
	return object
}
