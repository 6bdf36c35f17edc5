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

package transform

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/synchub-dev/synchub/controllers/plan/ownership"
)

// ComparableContent returns the content in which two objects must agree to be identical: all but the marks and ignored fields.
func ComparableContent(object *unstructured.Unstructured, ignored []IgnoredField) map[string]any {
	kept := object.DeepCopy()
	for _, field := range ignored {
		field.Path.Delete(kept.Object)
	}
	for _, field := range []string{"managedFields", "resourceVersion", "generation"} {
		unstructured.RemoveNestedField(kept.Object, "metadata", field)
	}
	labels, annotations := kept.GetLabels(), kept.GetAnnotations()
	delete(labels, ownership.OwnerLabel)
	delete(annotations, ownership.MarkAnnotation)
	delete(annotations, ownership.IdentityAnnotation)
	kept.SetLabels(nilIfEmpty(labels))
	kept.SetAnnotations(nilIfEmpty(annotations))
	return kept.Object
}

// nilIfEmpty returns nil for an empty map, which removes the field.
func nilIfEmpty(entries map[string]string) map[string]string {
	if len(entries) == 0 {
		return nil
	}
	return entries
}
