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

package objectsync

import (
	"fmt"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/objectsync/plan"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/conversion"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/selection"
)

// selectionObject is what selection needs to know of a mailbox object.
func (c *Controller) selectionObject(source *unstructured.Unstructured) selection.Object {
	return c.Resource.SelectionObject(source)
}

// selectionObjectByName is what selection can be told of a mailbox object that is not there.
func (c *Controller) selectionObjectByName(key types.NamespacedName) selection.Object {
	return selection.Object{
		Resource: c.Resource.GroupVersionResource, Kind: c.Resource.Kind, Versions: c.Resource.rules().Versions,
		Namespace: key.Namespace, Name: key.Name,
	}
}

// targetSelectionObject is what selection needs to know of an object of the target.
func (c *Controller) targetSelectionObject(target *targetResource, object *unstructured.Unstructured) selection.Object {
	described := selection.Object{
		Resource:    target.configResource(),
		Versions:    target.versions,
		Kind:        target.Kind,
		Namespace:   object.GetNamespace(),
		Name:        object.GetName(),
		Labels:      metadataMap(object, "labels"),
		Annotations: metadataMap(object, "annotations"),
	}
	if target.Group == "" && target.Resource == "secrets" {
		described.SecretType, _, _ = unstructured.NestedString(object.Object, "type")
	}
	return described
}

// isUpsynced tells whether a mailbox object came from the target.
func (c *Controller) isUpsynced(object *unstructured.Unstructured) bool {
	if object == nil {
		return false
	}
	return isUpsyncedBy(c.Owner, object)
}

// transformForCache leaves of a target object what decisions need: identity, our marks, our managedFields entry and the status.
// Values are not needed, since drift shows in the managedFields, unless a rule of the PublishedResource looks at them.
func (c *Controller) transformForCache(obj any) (any, error) {
	object, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return obj, nil
	}
	return c.strippedObject(object), nil
}

func (c *Controller) strippedObject(object *unstructured.Unstructured) *unstructured.Unstructured {
	all, _ := object.Object["metadata"].(map[string]any)
	var content, metadata map[string]any
	if c.cachesWholeObjects {
		content, metadata = maps.Clone(object.Object), maps.Clone(all)
		delete(metadata, "managedFields")
	} else {
		content = subset(object.Object, "apiVersion", "kind")
		metadata = subset(all, "namespace", "name", "uid", "resourceVersion", "generation", "deletionTimestamp")
		for field, key := range map[string]string{"labels": ownership.OwnerLabel, "annotations": ownership.MarkAnnotation} {
			entries, _ := all[field].(map[string]any)
			if ours := subset(entries, key); len(ours) > 0 {
				metadata[field] = ours
			}
		}
		if status, ok := object.Object["status"]; ok && c.Resource.StatusReturn {
			content["status"] = status
		}
	}
	if fields := appliedFields(object, c.fieldManager); fields != nil {
		// As text they take a fraction of what they take as maps, and only as text can they be read.
		metadata["managedFields"] = []any{map[string]any{
			"manager": c.fieldManager, "operation": string(metav1.ManagedFieldsOperationApply), "fieldsV1": string(fields),
		}}
	}
	content["metadata"] = metadata
	return &unstructured.Unstructured{Object: content}
}

// subset returns a map with some entries of another one, as far as there are any.
func subset(all map[string]any, keys ...string) map[string]any {
	some := make(map[string]any, len(keys))
	for _, key := range keys {
		if value, ok := all[key]; ok {
			some[key] = value
		}
	}
	return some
}

// observeNamed returns where an object of that name belongs on the target, with what is there of ours. What was seen already is
// not looked at again.
func (c *Controller) observeNamed(name conversion.Name, existing []targetCopy) (targetCopy, error) {
	if err := c.checkConvertedKind(name.GVK.GroupKind()); err != nil {
		return targetCopy{}, err
	}
	target := c.targetResourceForKind(name.GVK.GroupKind())
	if target == nil {
		return targetCopy{}, fmt.Errorf("%w: %s, which the object is to be there", errNotServed, name.GVK.GroupKind())
	}
	key := types.NamespacedName{Namespace: name.Namespace, Name: name.Name}
	for _, placed := range existing {
		if placed.ref() == target.ref(key) {
			return placed, nil
		}
	}
	return c.observeCopy(target, key), nil
}

// observeTargetsOf returns all that came from an object of the mailbox.
func (c *Controller) observeTargetsOf(source types.NamespacedName) []targetCopy {
	var all []targetCopy
	for _, target := range c.targetResources {
		for _, object := range target.cache.ByIndex(bySource, source.String()) {
			if found := c.observeCopy(target, keyOf(object)); found.observed != nil && sourceKey(found.observed.Mark) == source {
				all = append(all, found)
			}
		}
	}
	return all
}

// targetMarksOf returns the marks of all that came from an object of the mailbox, which is less to look at than all that there is to
// decide by.
func (c *Controller) targetMarksOf(source types.NamespacedName) []ownership.Mark {
	var marks []ownership.Mark
	for _, target := range c.targetResources {
		for _, cached := range target.cache.ByIndex(bySource, source.String()) {
			object, _ := c.targetExpectations.current(target.ref(keyOf(cached)), cached)
			if object == nil {
				continue
			}
			if mark, err := targetMark(c.Owner, object); err == nil && sourceKey(mark) == source {
				marks = append(marks, mark)
			}
		}
	}
	return marks
}

// hasUncachedTarget tells whether something was made of an object of the mailbox that the cache does not show yet.
func (c *Controller) hasUncachedTarget(source types.NamespacedName) bool {
	return c.targetExpectations.anyWritten(func(object *unstructured.Unstructured) bool {
		mark, err := targetMark(c.Owner, object)
		return err == nil && sourceKey(mark) == source
	})
}

func sourceKey(mark ownership.Mark) types.NamespacedName {
	return types.NamespacedName{Namespace: mark.Source.Namespace, Name: mark.Source.Name}
}

// observeCopy returns what the target holds of ours under a name: the object, and what there is to decide by. Both are nil if
// it holds nothing of ours. What was written a moment ago counts even if the cache does not show it yet.
func (c *Controller) observeCopy(target *targetResource, key types.NamespacedName) targetCopy {
	found := targetCopy{target: target, key: key}
	cached := target.cache.Get(key)
	object, deleted := c.targetExpectations.current(found.ref(), cached)
	if object == nil {
		return found
	}
	observed, err := c.observeObject(object)
	if err != nil {
		return found
	}
	observed.Terminating = observed.Terminating || deleted
	found.object, found.observed, found.uncached = object, observed, cached == nil
	return found
}

// observeObject returns what there is to decide by if the object is ours, else why it is not.
func (c *Controller) observeObject(object *unstructured.Unstructured) (*plan.TargetObject, error) {
	return c.Resource.Observe(c.Owner, c.Mailbox, object)
}
