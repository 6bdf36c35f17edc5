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

package writes

import (
	"context"
	"slices"
	gosync "sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/utils/clock"

	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/provider/cachesize"
	"github.com/synchub-dev/synchub/provider/metrics/requestmetrics"
	"github.com/synchub-dev/synchub/provider/tracing"
)

// maxExpectationTimeout bounds the wait for a created object while the cache has not reached the create's
// resourceVersion: a server that is too busy to send events must not get the create again. The wait has an end
// because a restored server may restart its resourceVersions.
const maxExpectationTimeout = 5 * time.Minute

// CachedObject is a pointer to an object as the cache of its side holds it.
type CachedObject interface {
	comparable
	metav1.Object
}

// Expectations hold the hub's writes to one side until its cache shows them. Without them, a pass between a write and its watch event
// would decide by the state before the write.
type Expectations[K comparable, O CachedObject] struct {
	clock clock.PassiveClock
	// CacheHasReached reports whether the cache has, or may have, reached a resourceVersion.
	CacheHasReached func(key K, resourceVersion string) bool
	// Side is the destination of the writes. Cached returns the object of a key in the destination's cache.
	// With Cached, the trace of a pass records when the cache shows the write.
	Side   requestmetrics.Destination
	Cached func(key K) O
	// Size is the memory of the stored responses, which a target may never confirm in a cache. It is counted
	// only if OnGrowth is set, which is called when it grows.
	Size     cachesize.Counter
	OnGrowth func()

	// lock is the lock of the owner, which may guard more state with it.
	lock    *gosync.Mutex
	pending map[K]*pendingWrite[O]
	// dropped holds the field paths that the side was found not to keep.
	dropped map[K][]string
}

// pendingWrite is a write that the cache does not show yet.
type pendingWrite[O CachedObject] struct {
	// object is the response, received at the time at; nil while the request is under way and after a delete.
	object O
	at     time.Time
	// deleted is the UID of the object whose deletion the server accepted.
	deleted types.UID
	// deletedUIDs are the UIDs of objects that were deleted while the request was under way, up to maxDeletedUIDs.
	deletedUIDs []types.UID
	// size is the counted memory of the object.
	size int64
	// onShown is called once the cache shows the write; nil calls nothing.
	onShown func()
}

// maxDeletedUIDs bounds the objects of one name that are deleted during one request.
const maxDeletedUIDs = 16

// NewExpectations returns an empty set of writes under the owner's lock, which the methods take. It assumes that the cache has reached every
// resourceVersion.
func NewExpectations[K comparable, O CachedObject](lock *gosync.Mutex, clock clock.PassiveClock) Expectations[K, O] {
	return Expectations[K, O]{
		clock: clock, lock: lock, pending: map[K]*pendingWrite[O]{}, dropped: map[K][]string{},
		CacheHasReached: func(K, string) bool { return true },
	}
}

// Started is called before a write.
func (m *Expectations[K, O]) Started(key K) {
	m.lock.Lock()
	defer m.lock.Unlock()
	m.remove(key)
	m.pending[key] = &pendingWrite[O]{}
}

// remove drops a write; it requires the lock.
func (m *Expectations[K, O]) remove(key K) {
	if entry, ok := m.pending[key]; ok && entry.size > 0 {
		m.Size.Add(-1, -entry.size)
	}
	delete(m.pending, key)
}

// Finished is called after a write; object is nil if it failed.
func (m *Expectations[K, O]) Finished(key K, object O) {
	if m.remember(key, object) && m.OnGrowth != nil {
		m.OnGrowth()
	}
}

// Written is [Expectations.Finished] after a write of a pass that succeeded.
func (m *Expectations[K, O]) Written(ctx context.Context, key K, object O) {
	m.Finished(key, object)
	m.traceShown(ctx, key)
}

// traceShown records in the trace of the pass, if there is one, when the cache shows the last write.
func (m *Expectations[K, O]) traceShown(ctx context.Context, key K) {
	if shown := tracing.FromContext(ctx).Acknowledgement(string(m.Side)); shown != nil && m.Cached != nil {
		m.OnShown(key, shown)
		// The event may have arrived before the response.
		m.Observed(key, m.Cached(key))
	}
}

// remember stores the response to a write, and reports whether it did so.
func (m *Expectations[K, O]) remember(key K, object O) bool {
	m.lock.Lock()
	defer m.lock.Unlock()
	entry, ok := m.pending[key]
	if !ok || isNil(object) || slices.Contains(entry.deletedUIDs, object.GetUID()) {
		m.remove(key)
		return false
	}
	entry.object, entry.at = object, m.clock.Now()
	if m.OnGrowth != nil {
		entry.size = cachesize.SizeOf(object)
		m.Size.Add(1, entry.size)
	}
	return true
}

// DeleteAccepted is called when the server accepted a delete of a pass.
func (m *Expectations[K, O]) DeleteAccepted(ctx context.Context, key K, uid types.UID) {
	m.rememberDeletion(key, uid)
	m.traceShown(ctx, key)
}

func (m *Expectations[K, O]) rememberDeletion(key K, uid types.UID) {
	m.lock.Lock()
	defer m.lock.Unlock()
	entry, ok := m.pending[key]
	if !ok || slices.Contains(entry.deletedUIDs, uid) {
		m.remove(key)
		return
	}
	entry.deleted = uid
}

// OnShown sets the function to call when the cache shows the last write, which has finished. It is called at once if the cache
// has shown the write already, and never if the write is superseded. It must not use the writes.
func (m *Expectations[K, O]) OnShown(key K, shown func()) {
	m.lock.Lock()
	defer m.lock.Unlock()
	if entry, ok := m.pending[key]; ok {
		entry.onShown = shown
		return
	}
	shown()
}

// Observed is called when the cache has received an object, which may be the last write. Only [Expectations.OnShown]
// needs it.
func (m *Expectations[K, O]) Observed(key K, cached O) {
	m.lock.Lock()
	defer m.lock.Unlock()
	if entry, ok := m.pending[key]; ok && !isNil(entry.object) && !isNil(cached) && !isOlder(cached, entry.object) {
		entry.notifyShown()
	}
}

// notifyShown calls onShown once.
func (w *pendingWrite[O]) notifyShown() {
	if w.onShown != nil {
		w.onShown()
		w.onShown = nil
	}
}

// DeletionObserved drops the write of an object after its delete event.
func (m *Expectations[K, O]) DeletionObserved(key K, uid types.UID) {
	m.lock.Lock()
	defer m.lock.Unlock()
	delete(m.dropped, key)
	entry, ok := m.pending[key]
	switch {
	case !ok:
	case isNil(entry.object) && entry.deleted == "":
		if len(entry.deletedUIDs) < maxDeletedUIDs {
			entry.deletedUIDs = append(entry.deletedUIDs, uid)
		}
	case entry.deleted == uid || !isNil(entry.object) && entry.object.GetUID() == uid:
		entry.notifyShown()
		m.remove(key)
	}
}

// Current returns the newer of the cached and the written object, and whether its deletion was accepted.
func (m *Expectations[K, O]) Current(key K, cached O) (object O, deleted bool) {
	m.lock.Lock()
	defer m.lock.Unlock()
	entry, ok := m.pending[key]
	switch {
	case !ok:
		return cached, false
	case entry.deleted != "":
		if isNil(cached) || cached.GetUID() != entry.deleted {
			entry.notifyShown()
			m.remove(key)
			return cached, false
		}
		return cached, true
	case isNil(entry.object):
		return cached, false
	case !isNil(cached) && !isOlder(cached, entry.object):
		entry.notifyShown()
		m.remove(key)
		return cached, false
	case isNil(cached) && m.isExpired(key, entry):
		m.remove(key)
		return cached, false
	default:
		return entry.object, false
	}
}

// isExpired reports whether a created object is not expected in the cache any longer.
func (m *Expectations[K, O]) isExpired(key K, entry *pendingWrite[O]) bool {
	waited := m.clock.Since(entry.at)
	return waited >= plan.CacheTimeout && (waited >= maxExpectationTimeout || m.CacheHasReached(key, entry.object.GetResourceVersion()))
}

// IsPending reports whether a write is running, or may not be in the cache yet. It requires the owner's lock.
func (m *Expectations[K, O]) IsPending(key K) bool {
	_, ok := m.pending[key]
	return ok
}

// AnyWritten reports whether a written object that the cache does not show yet has a property.
func (m *Expectations[K, O]) AnyWritten(is func(O) bool) bool {
	m.lock.Lock()
	defer m.lock.Unlock()
	for _, entry := range m.pending {
		if !isNil(entry.object) && is(entry.object) {
			return true
		}
	}
	return false
}

// SetDroppedPaths records the field paths that the side did not keep.
func (m *Expectations[K, O]) SetDroppedPaths(key K, paths []string) {
	m.lock.Lock()
	defer m.lock.Unlock()
	if len(paths) == 0 {
		delete(m.dropped, key)
		return
	}
	m.dropped[key] = paths
}

// DroppedPaths returns the field paths that the side did not keep at the last write.
func (m *Expectations[K, O]) DroppedPaths(key K) []string {
	m.lock.Lock()
	defer m.lock.Unlock()
	return m.dropped[key]
}

func isNil[O CachedObject](object O) bool {
	var none O
	return object == none
}

// isOlder compares the resourceVersions of two versions of one object; Kubernetes 1.35 declares them comparable. Versions that
// cannot be compared count as not older, so that the cache wins in the end.
func isOlder(a, b metav1.Object) bool {
	result, err := resourceversion.CompareResourceVersion(a.GetResourceVersion(), b.GetResourceVersion())
	return err == nil && result < 0
}
