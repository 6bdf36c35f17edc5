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

	"github.com/synchub-dev/synchub/controllers/sync"
	"github.com/synchub-dev/synchub/controllers/sync/relation"
)

// relationsTo returns the relations by which objects of a resource travel with those of any published one.
func relationsTo(published []sync.Resource, resource sync.Resource) []*relation.Relation {
	var relations []*relation.Relation
	for _, primary := range published {
		for _, related := range primary.Related() {
			if related.InMailbox.GroupResource() == resource.GroupResource() {
				relations = append(relations, related)
			}
		}
	}
	return relations
}

// withRelated returns those chosen with all that travels with them, in the order of those published.
func withRelated(chosen, published []sync.Resource) []sync.Resource {
	for {
		var with []sync.Resource
		for _, resource := range published {
			isRelated := slices.ContainsFunc(relationsTo(chosen, resource), func(*relation.Relation) bool { return true })
			if isRelated && !resource.Leaving || slices.Contains(chosen, resource) {
				with = append(with, resource)
			}
		}
		if len(with) == len(chosen) {
			return with
		}
		chosen = with
	}
}

// contribute tells the register who is going to say what is related, before anybody asks. A resource that is not wanted has
// nothing to say, and of one that is not published any more nothing is to be heard: what came by it is kept.
func (t *managed) contribute(wanted []sync.Resource) {
	contributors := map[string]bool{}
	for _, resource := range wanted {
		if len(resource.Related()) == 0 {
			continue
		}
		contributors[resource.PublishedResource] = true
		if t.isMissing(resource) {
			t.register.Begin(resource.PublishedResource, resource.Related())
		}
	}
	for contributor := range t.contributors {
		if !contributors[contributor] {
			t.register.End(contributor)
		}
	}
	t.contributors = contributors
}

func (t *managed) isMissing(resource sync.Resource) bool {
	_, runs := t.pairs[resource.GroupResource()]
	return !runs
}

// publishes tells whether a PublishedResource of that name is in force.
func (m *Manager) publishes(publishedResource string) bool {
	return slices.ContainsFunc(m.Published(), func(resource sync.Resource) bool {
		return !resource.Leaving && resource.PublishedResource == publishedResource
	})
}

// demand has it found out whether all primaries have spoken that objects of a resource can be related to.
func (t *managed) demand(related sync.Resource, answered func() bool) {
	t.lock.Lock()
	t.demanded[related.GroupResource()] = related
	t.lock.Unlock()
	sync.Confirm(slices.DeleteFunc(t.controllers(), func(controller *sync.Controller) bool {
		return len(relationsTo([]sync.Resource{controller.Resource}, related)) == 0
	}), answered)
}

// confirm has a controller that was just started answer what was asked before.
func (t *managed) confirm(started *sync.Controller) {
	t.lock.Lock()
	demanded := slices.Collect(maps.Values(t.demanded))
	t.lock.Unlock()
	for _, related := range demanded {
		confirm(started, related)
	}
}

func confirm(controller *sync.Controller, related sync.Resource) {
	if len(relationsTo([]sync.Resource{controller.Resource}, related)) > 0 {
		controller.Hear()
	}
}

// lookAgain has looked again at all that may be related to objects of a resource.
func (t *managed) lookAgain(primary sync.Resource) {
	for _, controller := range t.controllers() {
		if len(relationsTo([]sync.Resource{primary}, controller.Resource)) > 0 {
			controller.LookAgain()
		}
	}
}
