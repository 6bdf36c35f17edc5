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
	"cmp"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/synchub-dev/synchub/provider/cachesize"
)

// admissionCandidate is an object of a mailbox to be cached.
type admissionCandidate struct {
	resource schema.GroupVersionResource
	created  time.Time
	// tieBreaker orders candidates that were created in one second.
	tieBreaker string
	// bytes is the size if the object is admitted, identityBytes if not.
	bytes, identityBytes int64
}

// oldestFirst returns the indexes of the candidates in order of admission. The order depends only on the candidates, so that the
// hub decides the same after a restart.
func oldestFirst(candidates []admissionCandidate) []int {
	order := make([]int, len(candidates))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int {
		one, other := candidates[i], candidates[j]
		return cmp.Or(one.created.Compare(other.created), cmp.Compare(one.tieBreaker, other.tieBreaker))
	})
	return order
}

// sumIdentityBytes returns the size of the candidates if none is admitted.
func sumIdentityBytes(candidates []admissionCandidate) (bytes int64) {
	for _, one := range candidates {
		bytes += one.identityBytes
	}
	return bytes
}

// admit returns the limit that each candidate exceeds: the mailbox's limit, towards which all identities count, or the limit
// of its resource. Older candidates come first. Without inOrder, a smaller candidate can be admitted after an older one was
// refused. admitsAt is the mailbox's limit of bytes at which one more candidate would be admitted.
func admit(limits Limits, limitsOf func(schema.GroupVersionResource) Limits, candidates []admissionCandidate, inOrder bool) (exceeded []exceededLimit, admitsAt int64) {
	type sum struct{ objects, bytes int64 }
	exceeded, admitsAt = make([]exceededLimit, len(candidates)), math.MaxInt64
	all, of, isFull := sum{bytes: sumIdentityBytes(candidates)}, map[schema.GroupVersionResource]sum{}, false
	for _, i := range oldestFirst(candidates) {
		one := candidates[i]
		resourceLimits, held, more := limitsOf(one.resource), of[one.resource], one.bytes-one.identityBytes
		switch {
		case isFull:
			exceeded[i] = mailboxLimit
		case resourceLimits.exceededBy(held.objects+1, held.bytes+one.bytes):
			exceeded[i] = resourceLimit
		case limits.exceededBy(all.objects+1, all.bytes+more):
			exceeded[i], isFull = mailboxLimit, inOrder
			if limits.Objects == 0 || all.objects < limits.Objects {
				admitsAt = min(admitsAt, all.bytes+more)
			}
		default:
			all = sum{all.objects + 1, all.bytes + more}
			if resourceLimits != (Limits{}) {
				of[one.resource] = sum{held.objects + 1, held.bytes + one.bytes}
			}
		}
	}
	return exceeded, admitsAt
}

// admission decides how much of each object that comes from a server is cached. Its limits count the objects of a list before the cache
// holds them.
type admission struct {
	*cacheRules
	// initialList is the list that is being read. Only the reflector uses it.
	initialList initialList
	// lastDeliveredList is the number of the last list whose objects reached the handler.
	lastDeliveredList atomic.Uint32
	// pendingBytes is the size of the list that is not counted yet; ended is set when the informer is stopped.
	pendingBytes atomic.Int64
	ended        atomic.Bool
}

// toCachedObject returns the entry of an object from a server, with as much of the object as the policy and the limits allow. Only
// the reflector's goroutine calls it. If a list exceeds the limits, the next review replaces younger objects by older ones.
func (a *admission) toCachedObject(object *unstructured.Unstructured, cached cache.Indexer) *cachedObject {
	object = a.strip(object)
	made := newCachedObject(object, cachesize.SizeOf(object))
	made.listNumber = a.initialList.number
	if a.dropsUnowned {
		made.relistNumber = uint32(a.parts.relists.last.Load()) //nolint:gosec // there are never that many
	}
	if a.parts.options.Policy == nil {
		return made
	}
	mailbox := mailboxOf(object)
	usage := a.parts.usages.of(mailbox, a.configs)
	selected, known := a.selects(mailbox, object)
	made.selectionUnknown = !known
	if known && !selected {
		made.current.Store(toMetadataOnly(object))
	}
	if exceeded := a.checkLimits(mailbox, usage, made, cached); exceeded != withinLimits {
		made.current.Store(a.toIdentityOnly(object, exceeded))
		if exceeded == mailboxLimit {
			usage.recordRefusal()
		}
		a.addListedIdentity(mailbox, usage, made.currentSize())
	}
	return made
}

// addListedIdentity counts one more identity of a list, and evicts the mailbox if its identities exceed the limit.
func (a *admission) addListedIdentity(mailbox logicalcluster.Name, usage *usage, size int64) {
	pending := a.initialList.pending[mailbox]
	if limits := a.parts.limits.of(mailbox, a.configs); limits.Bytes > 0 && usage.counts().identityBytes+pending.identityBytes+size > limits.Bytes {
		a.parts.evictions.evict(mailbox, a.configs, pending.objects+pending.identityOnly+1)
	}
	a.addPending(mailbox, pendingUsage{bytes: size, identityBytes: size, identityOnly: 1})
}

// initialList is an initial list of a resource. Its objects count towards the usages only once the list is complete.
type initialList struct {
	number uint32
	// pending is the growth of each mailbox by the list.
	pending map[logicalcluster.Name]pendingUsage
}

// pendingUsage is the growth of a mailbox. identityOnly counts the objects that are cached as identity only, and objects
// counts all other objects. bytes is the size of all of them, and identityBytes the size of the former.
type pendingUsage struct{ objects, identityOnly, bytes, identityBytes int64 }

func (p pendingUsage) add(other pendingUsage) pendingUsage {
	return pendingUsage{p.objects + other.objects, p.identityOnly + other.identityOnly, p.bytes + other.bytes, p.identityBytes + other.identityBytes}
}

// beginList starts to count an initial list. It is called before the request.
func (a *admission) beginList() {
	a.endList()
	a.initialList = initialList{number: a.initialList.number + 1, pending: map[logicalcluster.Name]pendingUsage{}}
}

// endList is called when the usages count the list, or the list has failed.
func (a *admission) endList() {
	a.initialList.pending = nil
	a.releasePending()
}

// releasePending subtracts the list from the total.
func (a *admission) releasePending() {
	a.parts.limits.memory.pending.Add(-a.pendingBytes.Swap(0))
}

// end subtracts the list that is being read from the total. A stopped reflector does not wait for a running list.
func (a *admission) end() {
	a.ended.Store(true)
	a.releasePending()
}

// isListing reports whether the usages may lack objects of a list.
func (a *admission) isListing() bool {
	if a.initialList.pending != nil && a.lastDeliveredList.Load() == a.initialList.number {
		a.endList()
	}
	return a.initialList.pending != nil
}

// checkLimits returns the limit that an entry exceeds together with the cached objects and the objects of the same list: the
// limit of the mailbox, of all mailboxes or of the resource. It adds an admitted entry to the counts of the list.
func (a *admission) checkLimits(mailbox logicalcluster.Name, usage *usage, made *cachedObject, cached cache.Indexer) exceededLimit {
	limits, total, resourceLimits := a.parts.limits.of(mailbox, a.configs), a.parts.limits.memory, a.parts.limits.ofResource(a.resource)
	counts := usage.counts()
	objects, bytes := counts.objects-counts.identityOnly, counts.bytes
	need := pendingUsage{objects: 1, bytes: made.currentSize()}
	if !a.isListing() && resourceLimits == (Limits{}) && !limits.exceededBy(objects+1, bytes+need.bytes) && total.hasRoom(need.bytes) {
		return withinLimits
	}
	ofResource := need
	// The entry may replace another one.
	if found, exists, _ := cached.Get(made); exists {
		before := found.(*cachedObject)
		need.bytes -= before.currentSize()
		if ProjectionOf(before.current.Load()) != IdentityOnly {
			need.objects = 0
			ofResource = need
		}
		if need.objects == 0 && need.bytes <= 0 {
			// If the mailbox exceeds its limits, a review decides which objects are dropped.
			return withinLimits
		}
	}
	grown := a.initialList.pending[mailbox]
	if resourceLimits != (Limits{}) {
		objects, bytes := usage.admittedSizeOf(a.resource)
		if resourceLimits.exceededBy(objects+grown.objects+ofResource.objects, bytes+grown.bytes-grown.identityBytes+ofResource.bytes) {
			return resourceLimit
		}
	}
	if limits.exceededBy(objects+grown.objects+need.objects, bytes+grown.bytes+need.bytes) || !total.hasRoom(need.bytes) {
		return mailboxLimit
	}
	a.addPending(mailbox, need)
	return withinLimits
}

// addPending counts an entry to the list that is being read. Other entries count as soon as the cache holds them.
func (a *admission) addPending(mailbox logicalcluster.Name, need pendingUsage) {
	if !a.isListing() {
		return
	}
	a.initialList.pending[mailbox] = a.initialList.pending[mailbox].add(need)
	a.parts.limits.memory.pending.Add(need.bytes)
	a.pendingBytes.Add(need.bytes)
	if a.ended.Load() {
		a.releasePending()
	}
}
