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
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/provider/cachesize"
)

// countedObjects are the entries of one cache that count towards the usages of their mailboxes.
type countedObjects struct {
	*cacheRules
	// size is the number and the size of all entries.
	size cachesize.Counter

	lock  sync.Mutex
	byUID map[types.UID]*cachedObject
}

func newCountedObjects(rules *cacheRules) *countedObjects {
	made := &countedObjects{cacheRules: rules, byUID: map[types.UID]*cachedObject{}}
	made.size.AddToParent(&rules.parts.limits.memory.cached)
	return made
}

// get returns the counted entry of an object; nil if there is none.
func (c *countedObjects) get(uid types.UID) *cachedObject {
	c.lock.Lock()
	defer c.lock.Unlock()
	return c.byUID[uid]
}

// replace replaces a counted entry.
func (c *countedObjects) replace(before, after *cachedObject) {
	c.lock.Lock()
	defer c.lock.Unlock()
	if before != nil {
		delete(c.byUID, before.current.Load().GetUID())
	}
	if after != nil {
		c.byUID[after.current.Load().GetUID()] = after
	}
}

// update counts an entry of the cache instead of another; either may be nil.
func (c *countedObjects) update(before, after *cachedObject) {
	of := after
	if after != nil && c.isExcluded(after) {
		// An eviction or the loss of the mailbox will remove the entry.
		after = nil
	}
	c.replace(before, after)
	if before != nil {
		of = before
	}
	if of == nil {
		return
	}
	mailbox := mailboxOf(of.current.Load())
	usage := c.parts.usages.lock(mailbox, c.configs)
	objects, bytes := usage.replace(c.resource, before, after)
	isEmpty := usage.objects == 0
	usage.lock.Unlock()
	c.size.Add(objects, bytes)
	if isEmpty {
		c.parts.usages.deleteUnused(mailbox)
	}
	if c.parts.options.Policy == nil {
		return
	}
	if usage.needsReview(c.parts.limits.of(mailbox, c.configs), c.resource, c.parts.limits.ofResource(c.resource), before != nil) {
		c.parts.reviews.EnqueueCacheReview(mailbox)
	}
	c.parts.limits.memory.onGrowth()
}

// release subtracts all entries from the usages of their mailboxes.
func (c *countedObjects) release() {
	c.lock.Lock()
	all := slices.Collect(maps.Values(c.byUID))
	c.lock.Unlock()
	for _, counted := range all {
		c.update(counted, nil)
	}
}
