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
	"slices"
	gosync "sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/utils/clock"

	"github.com/synchub-dev/synchub/provider/metrics/cachesize"
)

// expectationTimeout is how long the echo of a create is waited for. It never comes if the watch breaks before it and the object
// is deleted before the next list; without an end to the wait nobody would notice that the object is missing. While the cache
// has not got as far as the create it is waited for up to lateEchoTimeout: a server that is too busy to tell of what was
// made must not be asked to make it again. That ends too, since a server may count anew, as after a restore.
const (
	expectationTimeout    = 30 * time.Second
	maxExpectationTimeout = 5 * time.Minute
)

// expectations holds what was written to one side until its cache shows it. Without it, an event that comes between a write and
// its echo would be decided by the state before the write.
type expectations[K comparable] struct {
	clock clock.Clock
	// cacheHasReached tells whether the cache has got as far as a resourceVersion, or may have.
	cacheHasReached func(key K, resourceVersion string) bool

	lock          gosync.Mutex
	pendingWrites map[K]*pendingWrite
	// dropped holds the paths that the side was found not to keep.
	dropped map[K][]string
	// size is what the answers take: a target may answer anything, and never show it. It is counted where grown is set, which is
	// called when it is more.
	size     cachesize.Counter
	onGrowth func()
}

// pendingWrite is a write whose echo has not come.
type pendingWrite struct {
	// object is what was answered at the time at; nil while the write is under way and after a delete.
	object *unstructured.Unstructured
	at     time.Time
	// deleted is the UID of the object whose deletion was accepted.
	deleted types.UID
	// deletedUIDs lists the UIDs whose end was seen while the write was under way, up to maxGone.
	deletedUIDs []types.UID
	// size is what the object counts for.
	size int64
}

// maxDeletedUIDs is how many objects are expected to end under one name while it is written to.
const maxDeletedUIDs = 16

func newExpectations[K comparable](clock clock.Clock, reached func(key K, resourceVersion string) bool) *expectations[K] {
	return &expectations[K]{clock: clock, cacheHasReached: reached, pendingWrites: map[K]*pendingWrite{}, dropped: map[K][]string{}}
}

// writeStarted is called before a write.
func (m *expectations[K]) writeStarted(key K) {
	m.lock.Lock()
	defer m.lock.Unlock()
	m.removeLocked(key)
	m.pendingWrites[key] = &pendingWrite{}
}

// removeLocked requires that the lock is held.
func (m *expectations[K]) removeLocked(key K) {
	if entry, ok := m.pendingWrites[key]; ok && entry.size > 0 {
		m.size.Add(-1, -entry.size)
	}
	delete(m.pendingWrites, key)
}

// writeFinished is called after a write; object is nil if it failed.
func (m *expectations[K]) writeFinished(key K, object *unstructured.Unstructured) {
	m.lock.Lock()
	defer m.lock.Unlock()
	entry, ok := m.pendingWrites[key]
	if !ok || object == nil || slices.Contains(entry.deletedUIDs, object.GetUID()) {
		m.removeLocked(key)
		return
	}
	entry.object, entry.at = object, m.clock.Now()
	if m.onGrowth != nil {
		entry.size = cachesize.SizeOf(object)
		m.size.Add(1, entry.size)
		m.onGrowth()
	}
}

// deleteAccepted is called after a delete that was accepted.
func (m *expectations[K]) deleteAccepted(key K, uid types.UID) {
	m.lock.Lock()
	defer m.lock.Unlock()
	entry, ok := m.pendingWrites[key]
	if !ok || slices.Contains(entry.deletedUIDs, uid) {
		m.removeLocked(key)
		return
	}
	entry.deleted = uid
}

// deletionObserved is called when the end of an object was seen.
func (m *expectations[K]) deletionObserved(key K, uid types.UID) {
	m.lock.Lock()
	defer m.lock.Unlock()
	delete(m.dropped, key)
	entry, ok := m.pendingWrites[key]
	switch {
	case !ok:
	case entry.object == nil && entry.deleted == "":
		if len(entry.deletedUIDs) < maxDeletedUIDs {
			entry.deletedUIDs = append(entry.deletedUIDs, uid)
		}
	case entry.deleted == uid || entry.object != nil && entry.object.GetUID() == uid:
		m.removeLocked(key)
	}
}

// current returns the newer of what the cache shows and what was written, and whether its deletion is under way.
func (m *expectations[K]) current(key K, cached *unstructured.Unstructured) (object *unstructured.Unstructured, deleted bool) {
	m.lock.Lock()
	defer m.lock.Unlock()
	entry, ok := m.pendingWrites[key]
	switch {
	case !ok:
		return cached, false
	case entry.deleted != "":
		if cached == nil || cached.GetUID() != entry.deleted {
			m.removeLocked(key)
			return cached, false
		}
		return cached, true
	case entry.object == nil:
		return cached, false
	case cached != nil && !isOlder(cached, entry.object), cached == nil && m.isExpired(key, entry):
		m.removeLocked(key)
		return cached, false
	default:
		return entry.object, false
	}
}

// isExpired tells whether the echo of a create is not to be waited for any longer.
func (m *expectations[K]) isExpired(key K, entry *pendingWrite) bool {
	waited := m.clock.Since(entry.at)
	return waited >= expectationTimeout && (waited >= maxExpectationTimeout || m.cacheHasReached(key, entry.object.GetResourceVersion()))
}

// anyWritten tells whether an object that was written, and that the cache does not show yet, is one of those asked for.
func (m *expectations[K]) anyWritten(is func(*unstructured.Unstructured) bool) bool {
	m.lock.Lock()
	defer m.lock.Unlock()
	for _, entry := range m.pendingWrites {
		if entry.object != nil && is(entry.object) {
			return true
		}
	}
	return false
}

// setDroppedPaths notes which paths were not kept.
func (m *expectations[K]) setDroppedPaths(key K, paths []string) {
	m.lock.Lock()
	defer m.lock.Unlock()
	if len(paths) == 0 {
		delete(m.dropped, key)
		return
	}
	m.dropped[key] = paths
}

func (m *expectations[K]) droppedPaths(key K) []string {
	m.lock.Lock()
	defer m.lock.Unlock()
	return m.dropped[key]
}

// isOlder compares the resourceVersions of two states of one resource's objects, which Kubernetes 1.35 declares to be
// comparable. What cannot be compared counts as not older, so that the cache wins in the end.
func isOlder(a, b *unstructured.Unstructured) bool {
	result, err := resourceversion.CompareResourceVersion(a.GetResourceVersion(), b.GetResourceVersion())
	return err == nil && result < 0
}
