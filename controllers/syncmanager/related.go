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

package syncmanager

import (
	"maps"
	"slices"

	"github.com/synchub-dev/synchub/controllers/objectsync"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/related"
)

// relationsTo returns the relations of all published resources that have related objects of the given resource.
func relationsTo(published []plan.Resource, resource plan.Resource) []*related.Relation {
	var relations []*related.Relation
	for _, primary := range published {
		for _, related := range primary.Related() {
			if related.InMailbox.GroupResource() == resource.GroupResource() {
				relations = append(relations, related)
			}
		}
	}
	return relations
}

// withRelated returns the chosen resources and, transitively, their related resources, in the order of published.
func withRelated(chosen, published []plan.Resource) []plan.Resource {
	for {
		var with []plan.Resource
		for _, resource := range published {
			if len(relationsTo(chosen, resource)) > 0 && !resource.Unpublishing || slices.Contains(chosen, resource) {
				with = append(with, resource)
			}
		}
		if len(with) == len(chosen) {
			return with
		}
		chosen = with
	}
}

// updatePrimaries sets the PublishedResources that contribute related objects in the registry, before any
// controller reads them. A PublishedResource whose resource is no longer wanted is removed from the registry;
// the objects of its relations stay. The caller holds reconcileMutex.
func (t *targetState) updatePrimaries(wanted []plan.Resource) {
	primaries := map[string]bool{}
	for _, resource := range wanted {
		if len(resource.Related()) == 0 {
			continue
		}
		primaries[resource.PublishedResource] = true
		if t.lacksController(resource) {
			t.registry.BeginInitialSync(resource.PublishedResource, resource.Related())
		}
	}
	for contributor := range t.primaries {
		if !primaries[contributor] {
			t.registry.RemovePublishedResource(contributor)
		}
	}
	t.primaries = primaries
}

func (t *targetState) lacksController(resource plan.Resource) bool {
	_, runs := t.syncControllers[resource.GroupResource()]
	return !runs
}

// requestCompleteness requests that every primary's controller finishes its initial sync of relations to the
// resource. answered is passed on.
func (t *targetState) requestCompleteness(related plan.Resource, answered func() bool) {
	t.lock.Lock()
	t.completenessRequests[related.GroupResource()] = related
	t.lock.Unlock()
	objectsync.RequestCompleteness(slices.DeleteFunc(t.controllers(), func(controller *objectsync.Controller) bool {
		return len(relationsTo([]plan.Resource{controller.Resource}, related)) == 0
	}), answered)
}

// forwardCompletenessRequests repeats the requests made so far to a controller that was just started.
func (t *targetState) forwardCompletenessRequests(started *objectsync.Controller) {
	t.lock.Lock()
	requested := slices.Collect(maps.Values(t.completenessRequests))
	t.lock.Unlock()
	for _, related := range requested {
		if len(relationsTo([]plan.Resource{started.Resource}, related)) > 0 {
			started.RequestInitialSync()
		}
	}
}

// requeueRelated enqueues all objects that may be related to objects of the primary resource.
func (t *targetState) requeueRelated(primary plan.Resource) {
	for _, controller := range t.controllers() {
		if len(relationsTo([]plan.Resource{primary}, controller.Resource)) > 0 {
			controller.EnqueueRelated()
		}
	}
}
