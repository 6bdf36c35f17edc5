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

package writes

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"

	jsonpatch "github.com/evanphx/json-patch/v5"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/plan/transform"
)

var namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

// NamespaceSelf returns how marks name a namespace.
func NamespaceSelf(name string) ownership.Self { return ownership.Self{Kind: "Namespace", Name: name} }

// IsMissingNamespace reports whether a create failed because its namespace does not exist.
func IsMissingNamespace(err error, namespace string) bool {
	var status apierrors.APIStatus
	if !apierrors.IsNotFound(err) || !errors.As(err, &status) {
		return false
	}
	details := status.Status().Details
	return details != nil && details.Kind == "namespaces" && details.Name == namespace
}

// Merge returns the mailbox object with the content of the desired one. Identity, owners, finalizers, status,
// the rules of an aggregated ClusterRole, kcp's own labels and annotations, and the hub's annotations about an
// object's run stay.
func Merge(inMailbox, desired *unstructured.Unstructured) *unstructured.Unstructured {
	result := &unstructured.Unstructured{Object: maps.Clone(desired.Object)}
	if _, ok := result.Object["status"]; !ok {
		if status, ok := inMailbox.Object["status"]; ok {
			result.Object["status"] = status
		}
	}
	if rules, ok := inMailbox.Object["rules"]; ok && transform.IsAggregated(desired.Object) {
		result.Object["rules"] = rules
	}
	metadata, _ := inMailbox.DeepCopy().Object["metadata"].(map[string]any)
	result.Object["metadata"] = metadata
	result.SetLabels(withKCPEntries(desired.GetLabels(), inMailbox.GetLabels()))
	result.SetAnnotations(withKCPEntries(desired.GetAnnotations(), inMailbox.GetAnnotations()))
	return result
}

// Patch is the body of a patch request.
type Patch struct {
	Type types.PatchType
	Data []byte
}

// MergePatch returns a merge patch (RFC 7386) of an object. Its nulls remove fields.
func MergePatch(object map[string]any) (Patch, error) {
	data, err := json.Marshal(object)
	return Patch{Type: types.MergePatchType, Data: data}, err
}

// FinalizersPatch returns a patch that replaces the finalizers of an object, with its UID and resourceVersion as preconditions.
func FinalizersPatch(object *unstructured.Unstructured, finalizers []string) (Patch, error) {
	return MergePatch(map[string]any{"metadata": map[string]any{
		"uid": object.GetUID(), "resourceVersion": object.GetResourceVersion(), "finalizers": finalizers,
	}})
}

// StatusPatch returns a patch that turns one status into the other, with the object's UID as a precondition. It is a merge patch, or a JSON
// patch (RFC 6902) if the desired status has nulls.
func StatusPatch(uid types.UID, current, desired map[string]any) (Patch, error) {
	if hasNullField(desired) {
		data, err := json.Marshal([]any{
			map[string]any{"op": "add", "path": "/metadata/uid", "value": uid},
			map[string]any{"op": "add", "path": "/status", "value": desired},
		})
		return Patch{Type: types.JSONPatchType, Data: data}, err
	}
	before, err := json.Marshal(map[string]any{"status": current})
	if err != nil {
		return Patch{}, err
	}
	after, err := json.Marshal(map[string]any{"status": desired, "metadata": map[string]any{"uid": uid}})
	if err != nil {
		return Patch{}, err
	}
	data, err := jsonpatch.CreateMergePatch(before, after)
	return Patch{Type: types.MergePatchType, Data: data}, err
}

// hasNullField reports whether a value has a null field, which a merge patch would remove.
func hasNullField(value any) bool {
	switch typed := value.(type) {
	case map[string]any:
		for _, field := range typed {
			if field == nil || hasNullField(field) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(typed, hasNullField)
	}
	return false
}

// withKCPEntries adds kcp's own entries, and the hub's entries about the run of an object, to the desired ones.
func withKCPEntries(desired, inMailbox map[string]string) map[string]string {
	all := map[string]string{}
	maps.Copy(all, desired)
	for key, value := range inMailbox {
		if transform.BelongsToKCP(key) || key == ownership.FinishedAnnotation {
			all[key] = value
		}
	}
	return all
}
