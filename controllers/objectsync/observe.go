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

// selectionObject returns the facts about a mailbox object that selection needs.
func (c *Controller) selectionObject(source *unstructured.Unstructured) selection.Object {
	return c.Resource.SelectionObject(source)
}

// selectionObjectByName returns the same for a mailbox object that does not exist.
func (c *Controller) selectionObjectByName(key types.NamespacedName) selection.Object {
	return selection.Object{
		Resource: c.Resource.GroupVersionResource, Kind: c.Resource.Kind, Versions: c.Resource.GetRules().Versions,
		Namespace: key.Namespace, Name: key.Name,
	}
}

// targetSelectionObject returns the same for an object of the target.
func (c *Controller) targetSelectionObject(target *targetResource, object *unstructured.Unstructured) selection.Object {
	described := selection.Object{
		Resource:    target.configResource(),
		Versions:    target.versions,
		Kind:        target.Kind,
		Namespace:   object.GetNamespace(),
		Name:        object.GetName(),
		Labels:      plan.MetadataMap(object, "labels"),
		Annotations: plan.MetadataMap(object, "annotations"),
	}
	if target.Group == "" && target.Resource == "secrets" {
		described.SecretType, _, _ = unstructured.NestedString(object.Object, "type")
	}
	return described
}

// isUpsynced reports whether the hub upsynced a mailbox object.
func (c *Controller) isUpsynced(object *unstructured.Unstructured) bool {
	if object == nil {
		return false
	}
	return plan.IsUpsyncedBy(c.Owner, object)
}

// transformForCache reduces a target object to its identity, the hub's marks, the hub's managedFields entry and the status.
// Drift shows in the managedFields, so values are kept only if a rule of the PublishedResource reads them.
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
	if fields := plan.AppliedFields(object, c.fieldManager); fields != nil {
		// As text the fields take a fraction of the memory that maps take, and only text can be parsed.
		metadata["managedFields"] = []any{map[string]any{
			"manager": c.fieldManager, "operation": string(metav1.ManagedFieldsOperationApply), "fieldsV1": string(fields),
		}}
	}
	content["metadata"] = metadata
	return &unstructured.Unstructured{Object: content}
}

// subset returns the entries of a map that have one of the keys.
func subset(all map[string]any, keys ...string) map[string]any {
	some := make(map[string]any, len(keys))
	for _, key := range keys {
		if value, ok := all[key]; ok {
			some[key] = value
		}
	}
	return some
}

// observeNamed returns the place on the target of that name, with the copy that is there. Copies that were observed before are
// reused.
func (c *Controller) observeNamed(name conversion.Name, existing []plan.Copy) (plan.Copy, error) {
	if err := c.checkConvertedKind(name.GVK.GroupKind()); err != nil {
		return plan.Copy{}, err
	}
	target := c.targetResourceForKind(name.GVK.GroupKind())
	if target == nil {
		return plan.Copy{}, fmt.Errorf("%w: %s, which the object is to be there", errNotServed, name.GVK.GroupKind())
	}
	key := types.NamespacedName{Namespace: name.Namespace, Name: name.Name}
	for _, placed := range existing {
		if placed.Ref() == target.Ref(key) {
			return placed, nil
		}
	}
	return c.observeCopy(target, key), nil
}

// observeTargetsOf returns all copies of a mailbox object.
func (c *Controller) observeTargetsOf(source types.NamespacedName) []plan.Copy {
	var all []plan.Copy
	for _, target := range c.targetResources {
		for _, object := range target.cache.ByIndex(bySource, source.String()) {
			if found := c.observeCopy(target, keyOf(object)); found.Observed != nil && sourceKey(found.Observed.Mark) == source {
				all = append(all, found)
			}
		}
	}
	return all
}

// targetMarksOf returns the marks of all copies of a mailbox object. It is cheaper than [Controller.observeTargetsOf].
func (c *Controller) targetMarksOf(source types.NamespacedName) []ownership.Mark {
	var marks []ownership.Mark
	for _, target := range c.targetResources {
		for _, cached := range target.cache.ByIndex(bySource, source.String()) {
			object, _ := c.states.onTarget.current(target.Ref(keyOf(cached)), cached)
			if object == nil {
				continue
			}
			if mark, err := plan.TargetMark(c.Owner, object); err == nil && sourceKey(mark) == source {
				marks = append(marks, mark)
			}
		}
	}
	return marks
}

// hasUncachedTarget reports whether the hub wrote a copy of a mailbox object that the cache does not show yet.
func (c *Controller) hasUncachedTarget(source types.NamespacedName) bool {
	return c.states.onTarget.anyWritten(func(object *unstructured.Unstructured) bool {
		mark, err := plan.TargetMark(c.Owner, object)
		return err == nil && sourceKey(mark) == source
	})
}

func sourceKey(mark ownership.Mark) types.NamespacedName {
	return types.NamespacedName{Namespace: mark.Source.Namespace, Name: mark.Source.Name}
}

// observeCopy returns a place on the target with the copy that is there, if it is the hub's. The hub's own last write counts
// although the cache may not show it yet.
func (c *Controller) observeCopy(target *targetResource, key types.NamespacedName) plan.Copy {
	found := plan.Copy{API: target.TargetAPI, Key: key}
	cached := target.cache.Get(key)
	object, deleted := c.states.onTarget.current(found.Ref(), cached)
	if object == nil {
		return found
	}
	observed, err := c.observeObject(object)
	if err != nil {
		return found
	}
	observed.Terminating = observed.Terminating || deleted
	found.Object, found.Observed, found.Uncached = object, observed, cached == nil
	return found
}

// observeObject returns the facts about a copy that decisions need, or why the object is not a copy of the hub's.
func (c *Controller) observeObject(object *unstructured.Unstructured) (*plan.TargetObject, error) {
	return c.Resource.Observe(c.Owner, c.Mailbox, object)
}
