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

// SetResources watches these resources, besides those that are always watched, and no others any more: what is new is
// watched as by [Mailboxes.Watch], what is gone is let go as by [Mailboxes.Unwatch].
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

// Watch adds a resource that the export serves by now or will serve soon. Watching it twice does nothing.
func (m *Mailboxes) Watch(resource schema.GroupVersionResource) {
	m.lock.Lock()
	defer m.lock.Unlock()
	m.watchLocked(resource)
}

// Unwatch ends the watch of a resource that the export does not serve any more, unless it is one that is always watched.
// When it returns nothing of the watch is left: what is known of its objects is Unknown, and suspicions about them are
// dropped. Its subscribers stay and are told to look again should the resource be watched again.
// It waits for them to return, so it must not be called by one.
func (m *Mailboxes) Unwatch(resource schema.GroupVersionResource) {
	m.lock.Lock()
	ended := m.unwatchLocked(resource)
	m.lock.Unlock()
	stopWildcardInformers(ended)
}

// watchLocked requires that the lock is held.
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

// unwatchLocked takes a resource from all endpoints and returns what is to be stopped without the lock, which handlers
// take. It requires that the lock is held.
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

// watchedResources returns the resources that are watched now.
func (m *Mailboxes) watchedResources() []schema.GroupVersionResource {
	m.lock.RLock()
	defer m.lock.RUnlock()
	return slices.Clone(m.resources)
}
