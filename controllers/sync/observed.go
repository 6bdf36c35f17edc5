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
	"fmt"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/sync/conversion"
	"github.com/synchub-dev/synchub/controllers/sync/decide"
	"github.com/synchub-dev/synchub/controllers/sync/ownership"
	"github.com/synchub-dev/synchub/controllers/sync/selection"
)

// describe is what selection needs to know of a mailbox object.
func (c *Controller) describe(source *unstructured.Unstructured) selection.Object {
	return c.Resource.Describe(source)
}

// named is what selection can be told of a mailbox object that is not there.
func (c *Controller) named(key types.NamespacedName) selection.Object {
	return selection.Object{
		Resource: c.Resource.GroupVersionResource, Kind: c.Resource.Kind, Versions: c.Resource.rules().Versions,
		Namespace: key.Namespace, Name: key.Name,
	}
}

// describeTarget is what selection needs to know of an object of the target.
func (c *Controller) describeTarget(side *side, object *unstructured.Unstructured) selection.Object {
	described := selection.Object{
		Resource:    side.inConfigs(),
		Versions:    side.versions,
		Kind:        side.Kind,
		Namespace:   object.GetNamespace(),
		Name:        object.GetName(),
		Labels:      entriesOf(object, "labels"),
		Annotations: entriesOf(object, "annotations"),
	}
	if side.Group == "" && side.Resource == "secrets" {
		described.SecretType, _, _ = unstructured.NestedString(object.Object, "type")
	}
	return described
}

// cameUp tells whether a mailbox object came from the target.
func (c *Controller) cameUp(object *unstructured.Unstructured) bool {
	if object == nil {
		return false
	}
	return cameUp(c.Owner, object)
}

// strip leaves of a target object what decisions need: identity, our marks, our managedFields entry and the status.
// Values are not needed, since drift shows in the managedFields, unless a rule of the PublishedResource looks at them.
func (c *Controller) strip(obj any) (any, error) {
	object, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return obj, nil
	}
	return c.stripped(object), nil
}

func (c *Controller) stripped(object *unstructured.Unstructured) *unstructured.Unstructured {
	all, _ := object.Object["metadata"].(map[string]any)
	var content, metadata map[string]any
	if c.wholeOnTarget {
		content, metadata = maps.Clone(object.Object), maps.Clone(all)
		delete(metadata, "managedFields")
	} else {
		content = partOf(object.Object, "apiVersion", "kind")
		metadata = partOf(all, "namespace", "name", "uid", "resourceVersion", "generation", "deletionTimestamp")
		for field, key := range map[string]string{"labels": ownership.OwnerLabel, "annotations": ownership.MarkAnnotation} {
			entries, _ := all[field].(map[string]any)
			if ours := partOf(entries, key); len(ours) > 0 {
				metadata[field] = ours
			}
		}
		if status, ok := object.Object["status"]; ok && c.Resource.StatusReturn {
			content["status"] = status
		}
	}
	if fields := appliedFields(object, c.manager); fields != nil {
		// As text they take a fraction of what they take as maps, and only as text can they be read.
		metadata["managedFields"] = []any{map[string]any{
			"manager": c.manager, "operation": string(metav1.ManagedFieldsOperationApply), "fieldsV1": string(fields),
		}}
	}
	content["metadata"] = metadata
	return &unstructured.Unstructured{Object: content}
}

// partOf returns a map with some entries of another one, as far as there are any.
func partOf(all map[string]any, keys ...string) map[string]any {
	some := make(map[string]any, len(keys))
	for _, key := range keys {
		if value, ok := all[key]; ok {
			some[key] = value
		}
	}
	return some
}

// placeOf returns where an object of that name belongs on the target, with what is there of ours. What was seen already is
// not looked at again.
func (c *Controller) placeOf(name conversion.Name, seen []placed) (placed, error) {
	if err := c.refusesKind(name.GVK.GroupKind()); err != nil {
		return placed{}, err
	}
	side := c.sideOfKind(name.GVK.GroupKind())
	if side == nil {
		return placed{}, fmt.Errorf("%w: %s, which the object is to be there", errNotServed, name.GVK.GroupKind())
	}
	key := types.NamespacedName{Namespace: name.Namespace, Name: name.Name}
	for _, placed := range seen {
		if placed.at() == side.at(key) {
			return placed, nil
		}
	}
	return c.observe(side, key), nil
}

// placedFrom returns all that came from an object of the mailbox.
func (c *Controller) placedFrom(source types.NamespacedName) []placed {
	var all []placed
	for _, side := range c.sides {
		for _, object := range side.cache.ByIndex(bySource, source.String()) {
			if found := c.observe(side, keyOf(object)); found.observed != nil && keyOfSource(found.observed.Mark) == source {
				all = append(all, found)
			}
		}
	}
	return all
}

// marksFrom returns the marks of all that came from an object of the mailbox, which is less to look at than all that there is to
// decide by.
func (c *Controller) marksFrom(source types.NamespacedName) []ownership.Mark {
	var marks []ownership.Mark
	for _, side := range c.sides {
		for _, cached := range side.cache.ByIndex(bySource, source.String()) {
			object, _ := c.onTarget.current(side.at(keyOf(cached)), cached)
			if object == nil {
				continue
			}
			if mark, err := markBelow(c.Owner, object); err == nil && keyOfSource(mark) == source {
				marks = append(marks, mark)
			}
		}
	}
	return marks
}

// isBeingPlaced tells whether something was made of an object of the mailbox that the cache does not show yet.
func (c *Controller) isBeingPlaced(source types.NamespacedName) bool {
	return c.onTarget.has(func(object *unstructured.Unstructured) bool {
		mark, err := markBelow(c.Owner, object)
		return err == nil && keyOfSource(mark) == source
	})
}

func keyOfSource(mark ownership.Mark) types.NamespacedName {
	return types.NamespacedName{Namespace: mark.Source.Namespace, Name: mark.Source.Name}
}

// observe returns what the target holds of ours under a name: the object, and what there is to decide by. Both are nil if
// it holds nothing of ours. What was written a moment ago counts even if the cache does not show it yet.
func (c *Controller) observe(side *side, key types.NamespacedName) placed {
	found := placed{side: side, key: key}
	cached := side.cache.Get(key)
	object, deleted := c.onTarget.current(found.at(), cached)
	if object == nil {
		return found
	}
	observed, err := c.verify(object)
	if err != nil {
		return found
	}
	observed.Terminating = observed.Terminating || deleted
	found.object, found.observed, found.awaitsEcho = object, observed, cached == nil
	return found
}

// verify returns what there is to decide by if the object is ours, else why it is not.
func (c *Controller) verify(object *unstructured.Unstructured) (*decide.Observed, error) {
	return c.Resource.Observe(c.Owner, c.Mailbox, object)
}
