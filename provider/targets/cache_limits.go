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

package targets

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/synchub-dev/synchub/provider/cachesize"
)

// CacheLimits bound the caches of one target. The zero value bounds nothing.
type CacheLimits struct {
	Objects, Bytes int64
}

// remainderFactor bounds one target to this multiple of the free memory.
const remainderFactor = 2

// memoryLimit bounds the caches of all targets together.
//
// A target may grow while its size is at most an equal share, or at most remainderFactor times the free memory. So one target
// gets at most two thirds of the limit, two targets get two fifths each, and eight targets two seventeenths each: some memory is
// always left for smaller targets. The sum can exceed the limit only through equal shares, because these are never refused. The
// decision needs only the size of the growing target and the totals.
type memoryLimit struct {
	// limit is in bytes; zero means no limit.
	limit int64
	// cached is the size of all caches, and pending the size of lists that are being read, in bytes.
	cached  cachesize.Counter
	pending atomic.Int64
	// connections is the number of connections.
	connections atomic.Int64
}

// pendingBytes is the share of one informer in memoryLimit.pending.
type pendingBytes struct {
	memory *memoryLimit

	lock  sync.Mutex
	bytes int64
	ended bool
}

func (p *pendingBytes) add(bytes int64) {
	p.lock.Lock()
	defer p.lock.Unlock()
	if !p.ended {
		p.bytes += bytes
		p.memory.pending.Add(bytes)
	}
}

// reset subtracts all bytes.
func (p *pendingBytes) reset() {
	p.lock.Lock()
	defer p.lock.Unlock()
	p.memory.pending.Add(-p.bytes)
	p.bytes = 0
}

// close subtracts all bytes, and ignores later ones.
func (p *pendingBytes) close() {
	p.lock.Lock()
	p.ended = true
	p.lock.Unlock()
	p.reset()
}

// allows reports whether a target of this size in bytes may grow.
func (m *memoryLimit) allows(bytes int64) bool {
	if m.limit == 0 {
		return true
	}
	left := m.limit - m.cached.Bytes() - m.pending.Load()
	return bytes <= max(m.limit/max(m.connections.Load(), 1), remainderFactor*left)
}

// CacheSize is the size of all caches of one target, which [CacheLimits] bound.
type CacheSize struct {
	quarantine *Quarantine
	limits     CacheLimits
	memory     *memoryLimit
	// cached is the size of all informers. It is part of memory.cached.
	cached cachesize.Counter
	// watchBuffers is the size of the buffers of watches. They count as one object of cached.
	watchBuffers cachesize.Counter
}

// count counts the target as one of those that share the memory, until its connection ends.
func (s *CacheSize) count(ctx context.Context) {
	_ = s.watchBuffers.AddToParent(&s.cached)
	s.watchBuffers.Add(1, 0)
	// Each informer and each watch removes its size from both.
	_ = s.cached.AddToParent(&s.memory.cached)
	s.memory.connections.Add(1)
	context.AfterFunc(ctx, func() { s.memory.connections.Add(-1) })
}

// addWatchBuffer adds to the size of the buffers of watches.
func (s *CacheSize) addWatchBuffer(bytes int64) {
	s.watchBuffers.Add(0, bytes)
	if bytes > 0 {
		s.Check()
	}
}

// Add counts an empty counter as part of the target's caches, until the caller calls remove. The owner of the counter calls
// Check when it grows.
func (s *CacheSize) Add(counter *cachesize.Counter) (remove func()) {
	return counter.AddToParent(&s.cached)
}

// Check quarantines the target if its caches are too large.
func (s *CacheSize) Check() { s.quarantineIfFull(0, 0, true) }

// quarantineIfFull quarantines the target if its caches and the given pending objects exceed a limit, and reports whether it
// did. A target that does not grow is not quarantined because of other targets.
func (s *CacheSize) quarantineIfFull(objects, bytes int64, grows bool) bool {
	objects, bytes = objects+s.cached.Objects(), bytes+s.cached.Bytes()
	var what, flag string
	switch {
	case s.limits.Objects > 0 && objects > s.limits.Objects:
		what, flag = fmt.Sprintf("the hub would hold more than %d of its objects.", s.limits.Objects), "--target-cache-objects"
	case s.limits.Bytes > 0 && bytes > s.limits.Bytes:
		what, flag = fmt.Sprintf("its objects would take more than %d bytes of the hub's memory.", s.limits.Bytes), "--target-cache-bytes"
	case grows && !s.memory.allows(bytes):
		what, flag = fmt.Sprintf("the objects of all targets together would take more than %d bytes of the hub's memory, "+
			"and this target is one of the largest.", s.memory.limit), "--targets-max-bytes"
	default:
		return false
	}
	s.quarantine.startNow(ReasonCacheFull, what+" Select fewer of its objects, or ask the operator of the hub for a larger "+flag+".")
	return true
}
