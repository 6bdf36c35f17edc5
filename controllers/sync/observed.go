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

package sync

import (
	"errors"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/sync/decide"
	"github.com/synchub-dev/synchub/controllers/sync/ownership"
	"github.com/synchub-dev/synchub/controllers/sync/transform"
)

// strip leaves of a target object what decisions need: identity, our marks, our managedFields entry and the status.
// Values are not needed: drift shows in the managedFields.
func (c *Controller) strip(obj any) (any, error) {
	object, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return obj, nil
	}
	return c.stripped(object), nil
}

func (c *Controller) stripped(object *unstructured.Unstructured) *unstructured.Unstructured {
	kept := &unstructured.Unstructured{Object: map[string]any{"apiVersion": object.GetAPIVersion(), "kind": object.GetKind()}}
	kept.SetNamespace(object.GetNamespace())
	kept.SetName(object.GetName())
	kept.SetUID(object.GetUID())
	kept.SetResourceVersion(object.GetResourceVersion())
	kept.SetGeneration(object.GetGeneration())
	if deleted := object.GetDeletionTimestamp(); deleted != nil {
		kept.SetDeletionTimestamp(deleted)
	}
	if owner, ok := object.GetLabels()[ownership.OwnerLabel]; ok {
		kept.SetLabels(map[string]string{ownership.OwnerLabel: owner})
	}
	if mark, ok := object.GetAnnotations()[ownership.MarkAnnotation]; ok {
		kept.SetAnnotations(map[string]string{ownership.MarkAnnotation: mark})
	}
	kept.SetManagedFields(slices.DeleteFunc(object.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager != c.manager || entry.Operation != metav1.ManagedFieldsOperationApply || entry.Subresource != ""
	}))
	if status, ok := object.Object["status"]; ok && c.Resource.StatusReturn {
		kept.Object["status"] = status
	}
	return kept
}

// observe returns what the target holds of ours under the key: the object, and what there is to decide by. Both are nil
// if it holds nothing of ours. What was written a moment ago counts even if the cache does not show it yet.
func (c *Controller) observe(key types.NamespacedName) (*unstructured.Unstructured, *decide.Observed) {
	object, deleted := c.memory.target(key, c.cache.Get(key))
	if object == nil {
		return nil, nil
	}
	observed, err := c.verify(object)
	if err != nil {
		return nil, nil
	}
	observed.Terminating = observed.Terminating || deleted
	return object, observed
}

// verify returns what there is to decide by if the object is ours, else why it is not.
func (c *Controller) verify(object *unstructured.Unstructured) (*decide.Observed, error) {
	mark, err := c.Owner.Verify(object.GetAnnotations(), transform.SelfOf(object))
	if err != nil {
		return nil, err
	}
	observed := &decide.Observed{
		UID:         object.GetUID(),
		Mark:        mark,
		Labelled:    object.GetLabels()[ownership.OwnerLabel] == c.Owner.LabelValue(),
		Terminating: object.GetDeletionTimestamp() != nil,
		Retain:      c.Resource.Retain,
	}
	for _, entry := range object.GetManagedFields() {
		if entry.Manager == c.manager && entry.Operation == metav1.ManagedFieldsOperationApply && entry.Subresource == "" && entry.FieldsV1 != nil {
			observed.Fields = entry.FieldsV1.GetRawBytes()
		}
	}
	return observed, nil
}

// takeable tells whether an object that is not ours may become so: a namespace that this very hub made for its contents.
func (c *Controller) takeable(object *unstructured.Unstructured, reason error) bool {
	return errors.Is(reason, ownership.ErrUnmarked) && object.GetAnnotations()[ownership.EnsuredAnnotation] == c.Owner.LabelValue()
}
