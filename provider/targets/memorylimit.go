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
	"sync"
	"sync/atomic"

	"github.com/synchub-dev/synchub/provider/metrics/cachesize"
)

// remainderFactor is how many times what is left of the total one target may take.
const remainderFactor = 2

// memoryLimit bounds what is held of all targets together.
//
// A target may grow while it takes no more than an equal share, or than twice what is left. So one alone gets two thirds of the
// limit, two get two fifths each, eight two seventeenths: however many take what they can get, something is left for those that
// take less than they. Only equal shares can come on top of the limit, since they are never refused. All this is decided for the
// target that grows, without a look at any other.
type memoryLimit struct {
	// limit is in bytes; zero stands for no limit.
	limit int64
	// cached is what the caches hold, and coming what they read anew beside that.
	cached  cachesize.Counter
	pending atomic.Int64
	// connections is how many connections there are.
	connections atomic.Int64
}

// pendingBytes is what one informer reads anew, as a part of the total.
type pendingBytes struct {
	memory *memoryLimit

	lock  sync.Mutex
	bytes int64
	ended bool
}

func (c *pendingBytes) add(bytes int64) {
	c.lock.Lock()
	defer c.lock.Unlock()
	if !c.ended {
		c.bytes += bytes
		c.memory.pending.Add(bytes)
	}
}

// reset takes out what has come so far.
func (c *pendingBytes) reset() {
	c.lock.Lock()
	defer c.lock.Unlock()
	c.memory.pending.Add(-c.bytes)
	c.bytes = 0
}

// close is drop for good.
func (c *pendingBytes) close() {
	c.lock.Lock()
	c.ended = true
	c.lock.Unlock()
	c.reset()
}

// allows reports whether a target that has come to take so many bytes may keep growing.
func (t *memoryLimit) allows(bytes int64) bool {
	if t.limit == 0 {
		return true
	}
	left := t.limit - t.cached.Bytes() - t.pending.Load()
	return bytes <= max(t.limit/max(t.connections.Load(), 1), remainderFactor*left)
}
