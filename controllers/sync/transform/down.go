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
	"encoding/base64"
	"fmt"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/synchub-dev/synchub/controllers/sync/ownership"
)

// annotationLimit is what the API server allows for the sum of all annotation keys and values of one object
// (k8s.io/apimachinery/pkg/api/validation.TotalAnnotationSizeLimitB).
const annotationLimit = 256 << 10

// TooLargeError means that an object's annotations leave no room for the mark.
type TooLargeError struct {
	// Size of the annotations including the mark, in bytes.
	Size int
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("the annotations with the hub's mark take %d bytes, the API server allows %d: remove some annotations", e.Size, annotationLimit)
}

// Desired is what a target must hold for one mailbox object.
type Desired struct {
	// Object is what to apply, marks included.
	Object *unstructured.Unstructured
	// Mark is the mark that Object carries.
	Mark ownership.Mark
}

// Down turns mailbox objects of one resource into the objects of one target.
type Down struct {
	// Owner marks what is made.
	Owner ownership.Owner
	// Mailbox is the name of the logical cluster that the sources live in.
	Mailbox string
	// Resource is the resource of the sources.
	Resource schema.GroupResource
	// Hasher makes the hash in the mark.
	Hasher ownership.Hasher
}

// Desire returns the object that the target must hold for source, or a [*TooLargeError].
func (d Down) Desire(source *unstructured.Unstructured, policy ownership.Policy) (*Desired, error) {
	content := sanitize(source)
	hash, err := d.Hasher.Hash(content)
	if err != nil {
		return nil, fmt.Errorf("%s %s/%s: %w", d.Resource, source.GetNamespace(), source.GetName(), err)
	}
	object := &unstructured.Unstructured{Object: content}
	mark := ownership.Mark{
		Version:    ownership.MarkVersion,
		Hub:        d.Owner.Hub,
		SyncTarget: d.Owner.SyncTarget,
		Mailbox:    d.Mailbox,
		Source: ownership.Source{
			Group:     d.Resource.Group,
			Resource:  d.Resource.Resource,
			Namespace: source.GetNamespace(),
			Name:      source.GetName(),
			UID:       source.GetUID(),
		},
		Self:   SelfOf(object),
		Policy: policy,
		Hash:   hash,
	}
	put(content, "labels", ownership.OwnerLabel, d.Owner.LabelValue())
	put(content, "annotations", ownership.MarkAnnotation, mark.String())
	if size := annotationSize(object.GetAnnotations()); size > annotationLimit {
		return nil, &TooLargeError{Size: size}
	}
	return &Desired{Object: object, Mark: mark}, nil
}

// SelfOf returns how the mark on object names its bearer.
func SelfOf(object *unstructured.Unstructured) ownership.Self {
	gvk := object.GroupVersionKind()
	return ownership.Self{Group: gvk.Group, Kind: gvk.Kind, Namespace: object.GetNamespace(), Name: object.GetName()}
}

// sanitize returns a copy of source that holds only what may travel.
func sanitize(source *unstructured.Unstructured) map[string]any {
	content := make(map[string]any, len(source.Object))
	for field, value := range source.Object {
		switch field {
		case "metadata", "status":
		default:
			if kept := withoutNulls(value); kept != nil {
				content[field] = kept
			}
		}
	}
	metadata := map[string]any{"name": source.GetName()}
	if namespace := source.GetNamespace(); namespace != "" {
		metadata["namespace"] = namespace
	}
	if labels := keep(source, "labels", labelTravels); len(labels) > 0 {
		metadata["labels"] = labels
	}
	if annotations := keep(source, "annotations", annotationTravels); len(annotations) > 0 {
		metadata["annotations"] = annotations
	}
	content["metadata"] = metadata
	if source.GetAPIVersion() == "v1" && source.GetKind() == "Secret" {
		foldStringData(content)
	}
	if source.GetAPIVersion() == "v1" && source.GetKind() == "Namespace" {
		// Finalization of a namespace is the target's own affair.
		delete(content, "spec")
	}
	return content
}

func labelTravels(key string) bool {
	return key != ownership.OwnerLabel &&
		!belongsToKCP(key) &&
		key != corev1.LabelMetadataName // the API server sets it on every namespace by itself
}

func annotationTravels(key string) bool {
	return key != ownership.MarkAnnotation && key != ownership.EnsuredAnnotation &&
		!belongsToKCP(key) &&
		key != corev1.LastAppliedConfigAnnotation
}

// belongsToKCP is true for kcp.io and its subdomains, among them the labels of accepted claims
// (claimed.internal.apis.kcp.io).
func belongsToKCP(key string) bool {
	domain, _, found := strings.Cut(key, "/")
	return found && (domain == "kcp.io" || strings.HasSuffix(domain, ".kcp.io"))
}

// keep returns the labels or annotations that travel.
func keep(source *unstructured.Unstructured, field string, travels func(key string) bool) map[string]any {
	metadata, _ := source.Object["metadata"].(map[string]any)
	entries, _ := metadata[field].(map[string]any)
	kept := make(map[string]any, len(entries))
	for key, value := range entries {
		if text, ok := value.(string); ok && travels(key) {
			kept[key] = text
		}
	}
	return kept
}

// withoutNulls returns a copy of value without the nulls in it: an apply with a null claims a field and sets nothing.
func withoutNulls(value any) any {
	switch typed := value.(type) {
	case map[string]any:
		result := make(map[string]any, len(typed))
		for key, item := range typed {
			if kept := withoutNulls(item); kept != nil {
				result[key] = kept
			}
		}
		return result
	case []any:
		result := make([]any, 0, len(typed))
		for _, item := range typed {
			if kept := withoutNulls(item); kept != nil {
				result = append(result, kept)
			}
		}
		return result
	default:
		return value
	}
}

// foldStringData does what the API server does on a write, so that the write-only field is never applied and then
// missed.
func foldStringData(content map[string]any) {
	stringData, ok := content["stringData"].(map[string]any)
	delete(content, "stringData")
	if !ok || len(stringData) == 0 {
		return
	}
	data := map[string]any{}
	if existing, ok := content["data"].(map[string]any); ok {
		maps.Copy(data, existing)
	}
	for key, value := range stringData {
		if text, ok := value.(string); ok {
			data[key] = base64.StdEncoding.EncodeToString([]byte(text))
		}
	}
	content["data"] = data
}

func put(content map[string]any, field, key, value string) {
	metadata, _ := content["metadata"].(map[string]any)
	entries, ok := metadata[field].(map[string]any)
	if !ok {
		entries = map[string]any{}
		metadata[field] = entries
	}
	entries[key] = value
}

func annotationSize(annotations map[string]string) int {
	size := 0
	for key, value := range annotations {
		size += len(key) + len(value)
	}
	return size
}
