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

package revision

import (
	"encoding/json"
	"fmt"
	"maps"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/synchub-dev/synchub/controllers/placement/rules"
)

const (
	// MaxBytes bounds the objects of a PlacementRevision. etcd accepts 1.5 MiB for a whole object.
	MaxBytes = 1 << 20
	// MaxCount is the number of PlacementRevisions that the hub keeps of an EdgePlacement.
	MaxCount = 5
)

// ErrTooLarge means that the objects of a placement are too large for a PlacementRevision.
var ErrTooLarge = fmt.Errorf("the objects have more than %d bytes together, so no PlacementRevision keeps them", MaxBytes)

// Keeps reports whether PlacementRevisions keep the objects of a resource. They keep no Secrets, because users
// who may read PlacementRevisions may not be allowed to read Secrets.
func Keeps(resource schema.GroupResource) bool {
	return resource != schema.GroupResource{Resource: "secrets"}
}

// Content returns the part of an object that a PlacementRevision keeps: everything except the status and the
// metadata that servers and controllers write.
func Content(object *unstructured.Unstructured) *unstructured.Unstructured {
	content := &unstructured.Unstructured{Object: map[string]any{}}
	for field, value := range object.Object {
		if field != "status" && field != "metadata" {
			content.Object[field] = runtime.DeepCopyJSONValue(value)
		}
	}
	content.SetNamespace(object.GetNamespace())
	content.SetName(object.GetName())
	content.SetLabels(object.GetLabels())
	annotations := object.GetAnnotations()
	maps.DeleteFunc(annotations, func(key, _ string) bool { return rules.IsBookkeeping(key) })
	content.SetAnnotations(annotations)
	return content
}

// Encode returns the objects of a PlacementRevision. The error is [ErrTooLarge] if they are too large.
func Encode(contents []*unstructured.Unstructured) ([]runtime.RawExtension, error) {
	encoded, size := make([]runtime.RawExtension, 0, len(contents)), 0
	for _, content := range contents {
		raw, err := json.Marshal(content.Object)
		if err != nil {
			return nil, err
		}
		if size += len(raw); size > MaxBytes {
			return nil, ErrTooLarge
		}
		encoded = append(encoded, runtime.RawExtension{Raw: raw})
	}
	return encoded, nil
}

// Restore returns a present object with the content from a PlacementRevision; nil if it already has that
// content.
func Restore(content, present *unstructured.Unstructured) *unstructured.Unstructured {
	if apiequality.Semantic.DeepEqual(content.Object, Content(present).Object) {
		return nil
	}
	restored := content.DeepCopy()
	metadata, _, _ := unstructured.NestedMap(present.Object, "metadata")
	restored.Object["metadata"] = metadata
	if status, ok := present.Object["status"]; ok {
		restored.Object["status"] = runtime.DeepCopyJSONValue(status)
	}
	restored.SetLabels(content.GetLabels())
	annotations := present.GetAnnotations()
	maps.DeleteFunc(annotations, func(key, _ string) bool { return !rules.IsBookkeeping(key) })
	for key, value := range content.GetAnnotations() {
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[key] = value
	}
	restored.SetAnnotations(annotations)
	return restored
}
