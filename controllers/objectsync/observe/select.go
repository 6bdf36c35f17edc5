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

package observe

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/selection"
)

// SelectDown returns how a mailbox object is downsynced; ok is false if it is not. The hub never downsyncs upsynced objects,
// namespaces that exist only for upsynced objects, or objects that grant access to the mailbox.
func (o *Observer) SelectDown(matcher *selection.Matcher, source *unstructured.Unstructured) (chosen plan.ObjectSelection, ok bool) {
	if plan.WhyNotDownsynced(o.Planner.Down.Owner, source) != "" {
		return plan.ObjectSelection{}, false
	}
	byConfig, ok := o.resource().Selects(matcher, source)
	if part := o.Mailbox.PartOf(source); part != Whole {
		chosen := plan.ObjectSelection{Selection: byConfig}
		if !ok {
			chosen, ok = o.SelectRelatedDown(matcher, source)
		}
		chosen.Unresolved = ErrNotReadable
		// Without its labels, the hub cannot conclude that the object is not selected.
		return chosen, ok || part == Identity
	}
	if ok {
		passes, err := o.matchesFilter(source)
		if passes || err != nil {
			return plan.ObjectSelection{Selection: byConfig, Unresolved: err}, true
		}
	}
	return o.SelectRelatedDown(matcher, source)
}

// matchesFilter reports whether a mailbox object passes the PublishedResource's filter.
func (o *Observer) matchesFilter(source *unstructured.Unstructured) (bool, error) {
	filter := o.resource().GetRules().Filter
	if filter == nil {
		return true, nil
	}
	var labels map[string]string
	if filter.UsesNamespaceLabels() && o.resource().Namespaced {
		found, known := o.Mailbox.NamespaceLabels(source.GetNamespace())
		if !known {
			return false, fmt.Errorf("the namespace %s of the mailbox: %w", source.GetNamespace(), ErrNotReadable)
		}
		labels = found
	}
	passes, err := filter.Matches(source, labels)
	if err != nil {
		return false, &plan.RuleError{Field: "spec.filter", Err: err}
	}
	return passes, nil
}

// SelectUp returns how a target object is upsynced; ok is false if it is not.
func (o *Observer) SelectUp(matcher *selection.Matcher, api plan.TargetAPI, object *unstructured.Unstructured) (chosen plan.ObjectSelection, ok bool) {
	if !o.resource().RelatedOnly {
		resource, versions := o.ConfigResource(api)
		if selected, ok := matcher.MatchUp(plan.SelectionObject(resource, api.Kind, versions, object)); ok {
			return plan.ObjectSelection{Selection: selected}, true
		}
	}
	return o.SelectRelatedUp(matcher, api, object)
}

// SelectionObjectByName returns the selection facts that follow from a key alone, for a mailbox object that does not exist.
func (o *Observer) SelectionObjectByName(key types.NamespacedName) selection.Object {
	resource := o.resource()
	return selection.Object{
		Resource: resource.GroupVersionResource, Kind: resource.Kind, Versions: resource.GetRules().Versions,
		Namespace: key.Namespace, Name: key.Name,
	}
}

// ConfigResource returns the resource of a target API under the name that configs use, and its versions if there are several.
// Configs may name any of them, because objects are the same in all versions.
func (o *Observer) ConfigResource(api plan.TargetAPI) (resource schema.GroupVersionResource, versions []string) {
	resource = api.GroupVersionResource
	if len(o.targetVersions) > 0 && api.GroupResource() == o.targetResource {
		resource.Version, versions = o.targetVersions[0], o.targetVersions
	}
	return resource, versions
}

// isUnresolved reports whether the hub cannot know if a config selects a mailbox object.
func (o *Observer) isUnresolved(matcher *selection.Matcher, object *unstructured.Unstructured) bool {
	return matcher.HasUnresolved() && matcher.IsUnresolved(o.resource().SelectionObject(object))
}

// isSuspended reports whether every config that could select an object of this name is suspended.
func (o *Observer) isSuspended(matcher *selection.Matcher, object selection.Object) bool {
	if o.resource().RelatedOnly || o.resource().SelectAll && selection.IsUserObject(object) {
		return false
	}
	return matcher.IsSuspended(object)
}
