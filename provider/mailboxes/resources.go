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
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/synchub-dev/synchub/provider/metrics/requestmetrics"
)

// SetResources sets the watched resources, besides those that are always watched. The export may serve a new one only later. Objects of a
// resource that is not watched any more become Unknown, and its absence candidates are dropped. Subscribers stay, and are reset if the resource
// is watched again. SetResources waits for handlers, so a subscriber must not call it.
func (m *Mailboxes) SetResources(all []schema.GroupVersionResource) {
	m.lock.Lock()
	for _, resource := range all {
		m.watchLocked(resource)
	}
	var ended []*wildcardInformer
	for _, resource := range slices.Clone(m.resources) {
		if !slices.Contains(all, resource) {
			ended = append(ended, m.unwatchLocked(resource)...)
		}
	}
	m.lock.Unlock()
	stopWildcardInformers(ended)
}

// watchLocked watches a resource, unless it is watched already. It requires the lock.
func (m *Mailboxes) watchLocked(resource schema.GroupVersionResource) {
	if slices.Contains(m.resources, resource) {
		return
	}
	m.resources = append(m.resources, resource)
	requestmetrics.RegisterResource(resource.GroupResource())
	for _, endpoint := range m.endpoints {
		endpoint.startInformer(resource)
	}
}

// unwatchLocked removes a resource from all endpoints. The caller stops the returned informers without the lock, because handlers
// take the lock. It requires the lock.
func (m *Mailboxes) unwatchLocked(resource schema.GroupVersionResource) (ended []*wildcardInformer) {
	if slices.Contains(m.alwaysWatched, resource) || !slices.Contains(m.resources, resource) {
		return nil
	}
	m.resources = slices.DeleteFunc(m.resources, func(other schema.GroupVersionResource) bool { return other == resource })
	for _, endpoint := range m.endpoints {
		if informer := endpoint.removeInformer(resource); informer != nil {
			ended = append(ended, informer)
		}
	}
	m.absence.ForgetResource(resource)
	return ended
}

// watchedResources returns all watched resources.
func (m *Mailboxes) watchedResources() []schema.GroupVersionResource {
	m.lock.RLock()
	defer m.lock.RUnlock()
	return slices.Clone(m.resources)
}
