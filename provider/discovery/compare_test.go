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
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// withoutServerFields returns an object without the metadata that servers set.
func withoutServerFields(object *unstructured.Unstructured) *unstructured.Unstructured {
	object = object.DeepCopy()
	for _, field := range []string{"uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "selfLink"} {
		unstructured.RemoveNestedField(object.Object, "metadata", field)
	}
	annotations := object.GetAnnotations()
	delete(annotations, "kcp.io/cluster")
	object.SetAnnotations(annotations)
	if len(annotations) == 0 {
		unstructured.RemoveNestedField(object.Object, "metadata", "annotations")
	}
	return object
}

// withoutNulls removes the fields that are null. Servers treat them as absent.
func withoutNulls(value any) any {
	switch value := value.(type) {
	case map[string]any:
		kept := map[string]any{}
		for key, inner := range value {
			if inner != nil {
				kept[key] = withoutNulls(inner)
			}
		}
		return kept
	case []any:
		kept := make([]any, len(value))
		for i, inner := range value {
			kept[i] = withoutNulls(inner)
		}
		return kept
	}
	return value
}

// differingPaths lists the paths at which got differs from wanted. Added fields are allowed if they are equal in the
// example.
func differingPaths(wanted, got, example any, path string) (paths []string) {
	switch typed := wanted.(type) {
	case map[string]any:
		fields, _ := got.(map[string]any)
		examples, _ := example.(map[string]any)
		for _, key := range slices.Sorted(maps.Keys(typed)) {
			paths = append(paths, differingPaths(typed[key], fields[key], examples[key], path+"."+key)...)
		}
		for _, key := range slices.Sorted(maps.Keys(fields)) {
			if _, sent := typed[key]; !sent && !reflect.DeepEqual(fields[key], examples[key]) {
				paths = append(paths, fmt.Sprintf("%s.%s is added: %.100q", path, key, fmt.Sprint(fields[key])))
			}
		}
		return paths
	case []any:
		items, _ := got.([]any)
		examples, _ := example.([]any)
		if len(items) == len(typed) {
			for i := range typed {
				paths = append(paths, differingPaths(typed[i], items[i], at(examples, i), fmt.Sprintf("%s[%d]", path, i))...)
			}
			return paths
		}
	}
	if !reflect.DeepEqual(wanted, got) {
		return []string{fmt.Sprintf("%s is %.100q instead of %.100q", path, fmt.Sprint(got), fmt.Sprint(wanted))}
	}
	return nil
}

func at(items []any, i int) any {
	if i < len(items) {
		return items[i]
	}
	return nil
}

// jsonOf returns an object as JSON.
func jsonOf(t *testing.T, object any) []byte {
	t.Helper()
	content, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return content
}
