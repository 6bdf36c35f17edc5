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

	"github.com/synchub-dev/synchub/provider/holdings"
)

// shareOfRest is how many times what is left of the total one target may take.
const shareOfRest = 2

// total bounds what is held of all targets together.
//
// A target may grow while it takes no more than an equal share, or than twice what is left. So one alone gets two thirds of the
// limit, two get two fifths each, eight two seventeenths: however many take what they can get, something is left for those that
// take less than they. Only equal shares can come on top of the limit, since they are never refused. All this is decided for the
// target that grows, without a look at any other.
type total struct {
	// limit is in bytes; zero stands for no limit.
	limit int64
	// held is what the caches hold, and coming what they read anew beside that.
	held   holdings.Holdings
	coming atomic.Int64
	// targets is how many connections there are.
	targets atomic.Int64
}

// coming is what one informer reads anew, as a part of the total.
type coming struct {
	of *total

	lock  sync.Mutex
	bytes int64
	ended bool
}

func (c *coming) add(bytes int64) {
	c.lock.Lock()
	defer c.lock.Unlock()
	if !c.ended {
		c.bytes += bytes
		c.of.coming.Add(bytes)
	}
}

// drop takes out what has come so far.
func (c *coming) drop() {
	c.lock.Lock()
	defer c.lock.Unlock()
	c.of.coming.Add(-c.bytes)
	c.bytes = 0
}

// end is drop for good.
func (c *coming) end() {
	c.lock.Lock()
	c.ended = true
	c.lock.Unlock()
	c.drop()
}

// allows tells whether a target that has come to take so many bytes may keep growing.
func (t *total) allows(bytes int64) bool {
	if t.limit == 0 {
		return true
	}
	left := t.limit - t.held.Bytes() - t.coming.Load()
	return bytes <= max(t.limit/max(t.targets.Load(), 1), shareOfRest*left)
}
