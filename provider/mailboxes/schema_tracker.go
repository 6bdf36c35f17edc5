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

package mailboxes

import (
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// schemaTracker counts the schemas with which the mailboxes of an endpoint bind their resources.
//
// kcp serves a wildcard watch with the schema of one of the bindings at that moment. A watch that began before all bindings
// had a changed schema shows objects without the new fields.
type schemaTracker struct {
	lock sync.Mutex
	// counts holds, for each resource, the number of bindings with each schema. agreedSchemas holds the last schema that all
	// bindings had.
	counts        map[schema.GroupResource]map[string]int
	agreedSchemas map[schema.GroupResource]string
}

func newSchemaTracker() *schemaTracker {
	return &schemaTracker{counts: map[schema.GroupResource]map[string]int{}, agreedSchemas: map[schema.GroupResource]string{}}
}

// update records a change of a binding; before is nil if the binding is new, and after is nil if it is deleted. It returns
// the resources for which all bindings agree on another schema than they agreed on before.
func (t *schemaTracker) update(before, after *unstructured.Unstructured) (changed []schema.GroupResource) {
	t.lock.Lock()
	defer t.lock.Unlock()
	touched := map[schema.GroupResource]bool{}
	for resource, uid := range schemasOf(before) {
		touched[resource] = true
		if t.counts[resource][uid]--; t.counts[resource][uid] <= 0 {
			delete(t.counts[resource], uid)
		}
	}
	for resource, uid := range schemasOf(after) {
		touched[resource] = true
		if t.counts[resource] == nil {
			t.counts[resource] = map[string]int{}
		}
		t.counts[resource][uid]++
	}
	for resource := range touched {
		if len(t.counts[resource]) != 1 {
			continue
		}
		for uid := range t.counts[resource] {
			if former := t.agreedSchemas[resource]; former != "" && former != uid {
				changed = append(changed, resource)
			}
			t.agreedSchemas[resource] = uid
		}
	}
	return changed
}

// schemasOf returns, for each resource, the UID of the schema with which a binding binds it.
func schemasOf(binding *unstructured.Unstructured) map[schema.GroupResource]string {
	if binding == nil {
		return nil
	}
	found := map[schema.GroupResource]string{}
	for _, fields := range nestedMaps(binding, "status", "boundResources") {
		group, _ := fields["group"].(string)
		resource, _ := fields["resource"].(string)
		if uid, _, _ := unstructured.NestedString(fields, "schema", "UID"); uid != "" {
			found[schema.GroupResource{Group: group, Resource: resource}] = uid
		}
	}
	return found
}

// restartInformers restarts the informers of resources. Until the caches are filled, the objects are Unknown.
func (e *endpoint) restartInformers(resources []schema.GroupResource) {
	var ended []*wildcardInformer
	e.lock.Lock()
	for _, resource := range resources {
		for watched, informer := range e.informers {
			if watched.GroupResource() == resource && e.ctx.Err() == nil {
				ended = append(ended, informer)
				e.informers[watched] = startWildcardInformer(e, watched)
				e.parts.absences.verifier.ForgetResource(watched)
			}
		}
	}
	e.lock.Unlock()
	stopWildcardInformers(ended)
}
