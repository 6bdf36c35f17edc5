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
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// contradictionDelay is how long a cache may lag behind an answer of the target. contradictionInterval is the minimum time
	// between two lists of a resource because of such answers.
	contradictionDelay    = 10 * time.Second
	contradictionInterval = time.Minute
)

// contradiction is the state of an informer whose cache does not agree with an answer of the target.
type contradiction struct {
	lock sync.Mutex
	// pending is true while the hub waits for the watch to show the answer. nextRelist is when the next list may follow.
	pending    bool
	nextRelist time.Time
}

// Contradicted is called when an answer of the target does not match the cache: no object has the key and this UID or, for an
// empty UID, the selector selects an object with the key that is not cached. If the cache does not catch up, the resource is
// listed again: the target may have been restored from a backup.
func (c *Cache) Contradicted(key types.NamespacedName, uid types.UID) {
	part := c.partOf(key.Namespace)
	if part == nil {
		return
	}
	part.relistUnless(func() bool {
		cached := c.Get(key)
		if uid == "" {
			return cached != nil
		}
		return cached == nil || cached.GetUID() != uid
	})
}

// relistUnless lists the resource again if the cache has not caught up after contradictionDelay.
func (i *informer) relistUnless(caughtUp func() bool) {
	if caughtUp() {
		return
	}
	env := i.watches.env
	wait, begun := i.contradiction.begin(env.clock.Now())
	if !begun {
		return
	}
	env.runInBackground(func(ctx context.Context) {
		relist := env.sleep(ctx, wait) == nil && !caughtUp()
		i.contradiction.end(relist, env.clock.Now().Add(contradictionInterval))
		if relist {
			env.log.Info("an answer of the target contradicts the watch, so the resource is listed again", "resource", i.resource.String())
			i.relist()
		}
	})
}

// begin marks a contradiction as pending, and returns how long the hub waits for the watch; begun is false if one is pending
// already.
func (c *contradiction) begin(now time.Time) (wait time.Duration, begun bool) {
	c.lock.Lock()
	defer c.lock.Unlock()
	begun = !c.pending
	c.pending = true
	return max(contradictionDelay, c.nextRelist.Sub(now)), begun
}

func (c *contradiction) end(relists bool, next time.Time) {
	c.lock.Lock()
	defer c.lock.Unlock()
	c.pending = false
	if relists {
		c.nextRelist = next
	}
}
