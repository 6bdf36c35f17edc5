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
	"slices"
	gosync "sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/utils/clock"
)

// echoTimeout is how long the echo of a create is waited for. It never comes if the watch breaks before it and the object
// is deleted before the next list; without an end to the wait nobody would notice that the object is missing.
const echoTimeout = 30 * time.Second

// memory holds what was written until the caches show it. Without it, an event that comes between a write and its echo
// would be decided by the state before the write.
type memory struct {
	clock clock.Clock

	lock    gosync.Mutex
	targets map[types.NamespacedName]*written
	status  map[types.NamespacedName]returned
	// dropped holds the paths that a target was found not to keep.
	dropped map[types.NamespacedName][]string
}

// written is a write to the target whose echo has not come.
type written struct {
	// object is what the target answered at the time at; nil while the write is under way and after a delete.
	object *unstructured.Unstructured
	at     time.Time
	// deleted is the UID of the object whose deletion the target has accepted.
	deleted types.UID
	// gone lists the UIDs whose end was seen while the write was under way.
	gone []types.UID
}

// returned is a status written to the mailbox.
type returned struct {
	uid             types.UID
	resourceVersion string
	status          any
}

func newMemory(clock clock.Clock) *memory {
	return &memory{
		clock:   clock,
		targets: map[types.NamespacedName]*written{},
		status:  map[types.NamespacedName]returned{},
		dropped: map[types.NamespacedName][]string{},
	}
}

// begin is called before a write to the target.
func (m *memory) begin(key types.NamespacedName) {
	m.lock.Lock()
	defer m.lock.Unlock()
	m.targets[key] = &written{}
}

// applied is called after an apply; object is nil if it failed.
func (m *memory) applied(key types.NamespacedName, object *unstructured.Unstructured) {
	m.lock.Lock()
	defer m.lock.Unlock()
	entry, ok := m.targets[key]
	if !ok || object == nil || slices.Contains(entry.gone, object.GetUID()) {
		delete(m.targets, key)
		return
	}
	entry.object, entry.at = object, m.clock.Now()
}

// deleted is called after a delete that the target has accepted.
func (m *memory) deleted(key types.NamespacedName, uid types.UID) {
	m.lock.Lock()
	defer m.lock.Unlock()
	entry, ok := m.targets[key]
	if !ok || slices.Contains(entry.gone, uid) {
		delete(m.targets, key)
		return
	}
	entry.deleted = uid
}

// targetGone is called when the end of an object was seen.
func (m *memory) targetGone(key types.NamespacedName, uid types.UID) {
	m.lock.Lock()
	defer m.lock.Unlock()
	delete(m.dropped, key)
	entry, ok := m.targets[key]
	switch {
	case !ok:
	case entry.object == nil && entry.deleted == "":
		entry.gone = append(entry.gone, uid)
	case entry.deleted == uid || entry.object != nil && entry.object.GetUID() == uid:
		delete(m.targets, key)
	}
}

// target returns the newer of what the cache shows and what was written, and whether its deletion is under way.
func (m *memory) target(key types.NamespacedName, cached *unstructured.Unstructured) (object *unstructured.Unstructured, deleted bool) {
	m.lock.Lock()
	defer m.lock.Unlock()
	entry, ok := m.targets[key]
	switch {
	case !ok:
		return cached, false
	case entry.deleted != "":
		if cached == nil || cached.GetUID() != entry.deleted {
			delete(m.targets, key)
			return cached, false
		}
		return cached, true
	case entry.object == nil:
		return cached, false
	case cached != nil && !older(cached, entry.object), cached == nil && m.clock.Since(entry.at) >= echoTimeout:
		delete(m.targets, key)
		return cached, false
	default:
		return entry.object, false
	}
}

// statusReturned is called after a status was written to the mailbox.
func (m *memory) statusReturned(key types.NamespacedName, source *unstructured.Unstructured) {
	m.lock.Lock()
	defer m.lock.Unlock()
	m.status[key] = returned{uid: source.GetUID(), resourceVersion: source.GetResourceVersion(), status: source.Object["status"]}
}

// sourceStatus returns the status that the source has: as the cache shows it, or as it was written a moment ago.
func (m *memory) sourceStatus(key types.NamespacedName, source *unstructured.Unstructured) any {
	m.lock.Lock()
	defer m.lock.Unlock()
	entry, ok := m.status[key]
	if !ok {
		return source.Object["status"]
	}
	if entry.uid != source.GetUID() || !olderVersion(source.GetResourceVersion(), entry.resourceVersion) {
		delete(m.status, key)
		return source.Object["status"]
	}
	return entry.status
}

// forgetSource is called when a source is gone.
func (m *memory) forgetSource(key types.NamespacedName) {
	m.lock.Lock()
	defer m.lock.Unlock()
	delete(m.status, key)
	delete(m.dropped, key)
}

func (m *memory) setDropped(key types.NamespacedName, paths []string) {
	m.lock.Lock()
	defer m.lock.Unlock()
	if len(paths) == 0 {
		delete(m.dropped, key)
		return
	}
	m.dropped[key] = paths
}

func (m *memory) droppedBy(key types.NamespacedName) []string {
	m.lock.Lock()
	defer m.lock.Unlock()
	return m.dropped[key]
}

func older(a, b *unstructured.Unstructured) bool {
	return olderVersion(a.GetResourceVersion(), b.GetResourceVersion())
}

// olderVersion compares resourceVersions of one resource, which Kubernetes 1.35 declares to be comparable. What cannot be
// compared counts as not older, so that the cache wins in the end.
func olderVersion(a, b string) bool {
	result, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && result < 0
}
