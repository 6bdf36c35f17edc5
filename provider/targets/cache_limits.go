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

// addWatchBuffer adds to the size of the buffers of watches.
func (c *Connection) addWatchBuffer(bytes int64) {
	c.watchBuffers.Add(0, bytes)
	if bytes > 0 {
		c.CheckCacheLimits()
	}
}

// CountCache counts an empty counter as part of the target's caches, until the caller calls remove. The owner of the counter
// calls [Connection.CheckCacheLimits] when it grows.
func (c *Connection) CountCache(counter *cachesize.Counter) (remove func()) {
	return counter.AddToParent(&c.cached)
}

// CheckCacheLimits quarantines the target if its caches are too large.
func (c *Connection) CheckCacheLimits() { c.quarantineIfFull(0, 0, true) }

// quarantineIfFull quarantines the target if its caches and the given pending objects exceed a limit, and reports whether it
// did. A target that does not grow is not quarantined because of other targets.
func (c *Connection) quarantineIfFull(objects, bytes int64, grows bool) bool {
	objects, bytes = objects+c.cached.Objects(), bytes+c.cached.Bytes()
	limits := c.cacheLimits
	switch {
	case limits.Objects > 0 && objects > limits.Objects:
		c.startQuarantine(ReasonCacheFull, fmt.Sprintf("The target is quarantined, because the hub would hold more than %d of its objects. "+
			"Select fewer of its objects, or ask the operator of the hub for a larger --target-cache-objects.", limits.Objects))
	case limits.Bytes > 0 && bytes > limits.Bytes:
		c.startQuarantine(ReasonCacheFull, fmt.Sprintf("The target is quarantined, because its objects would take more than %d bytes of the hub's memory. "+
			"Select fewer of its objects, or ask the operator of the hub for a larger --target-cache-bytes.", limits.Bytes))
	case grows && !c.memory.allows(bytes):
		c.startQuarantine(ReasonCacheFull, fmt.Sprintf("The target is quarantined, because the objects of all targets together would take more than %d bytes of the hub's memory, "+
			"and this target is one of the largest. Select fewer of its objects, or ask the operator of the hub for a larger --targets-max-bytes.", c.memory.limit))
	default:
		return false
	}
	return true
}
