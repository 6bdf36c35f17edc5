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
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/synchub-dev/synchub/provider/metrics/cachesize"
)

// candidate is an object of a mailbox that is to be held, in as much as need bytes.
type candidate struct {
	resource schema.GroupVersionResource
	created  time.Time
	// tieBreaker decides between those of one second.
	tieBreaker string
	bytes      int64
	// identityBytes is what it takes in any case.
	identityBytes int64
}

// oldestFirst returns the candidates' indexes in the order in which they are admitted. It depends on nothing but the
// candidates, so that the hub decides alike after a restart.
func oldestFirst(candidates []candidate) []int {
	order := make([]int, len(candidates))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int {
		a, b := candidates[i], candidates[j]
		return cmp.Or(a.created.Compare(b.created), cmp.Compare(a.tieBreaker, b.tieBreaker))
	})
	return order
}

// sumIdentityBytes returns what the candidates take in any case.
func sumIdentityBytes(candidates []candidate) (bytes int64) {
	for _, one := range candidates {
		bytes += one.identityBytes
	}
	return bytes
}

// admit tells, for each candidate, whose limits leave no room for it: those of the mailbox, which holds the identities of all
// besides, or those of its resource. The oldest are admitted first. One for which there is no room does not keep out a younger
// one that needs less; with inTurn it does. admitsAt is from how many bytes of the mailbox on one more would be admitted.
func admit(limits Limits, limitsOf func(schema.GroupVersionResource) Limits, candidates []candidate, inTurn bool) (exceeded []exceededLimit, admitsAt int64) {
	type sum struct{ objects, bytes int64 }
	exceeded, admitsAt = make([]exceededLimit, len(candidates)), math.MaxInt64
	all, of, isFull := sum{bytes: sumIdentityBytes(candidates)}, map[schema.GroupVersionResource]sum{}, false
	for _, i := range oldestFirst(candidates) {
		one := candidates[i]
		own, held, more := limitsOf(one.resource), of[one.resource], one.bytes-one.identityBytes
		switch {
		case isFull:
			exceeded[i] = mailboxLimit
		case own.exceededBy(held.objects+1, held.bytes+one.bytes):
			exceeded[i] = resourceLimit
		case limits.exceededBy(all.objects+1, all.bytes+more):
			exceeded[i], isFull = mailboxLimit, inTurn
			if limits.Objects == 0 || all.objects < limits.Objects {
				admitsAt = min(admitsAt, all.bytes+more)
			}
		default:
			all = sum{all.objects + 1, all.bytes + more}
			if own != (Limits{}) {
				of[one.resource] = sum{held.objects + 1, held.bytes + one.bytes}
			}
		}
	}
	return exceeded, admitsAt
}

// toCachedObject makes an item of an object that a server sent, which holds as much of it as the mailbox may have held. It is called
// by the reflector's goroutine only. Where there is no room for an object that comes with a list, the younger ones are found
// out by the next review.
func (w *wildcardInformer) toCachedObject(object *unstructured.Unstructured) *cachedObject {
	object = w.strip(object)
	made := newCachedObject(object, cachesize.SizeOf(object))
	made.listNumber = w.initialList.number
	if w.endpoint.owner.policy == nil {
		return made
	}
	mailbox := mailboxOf(object)
	usage := w.usage(mailbox)
	selected, known := w.selects(mailbox, object)
	made.selectionUnknown = !known
	if known && !selected {
		made.current.Store(toMetadataOnly(object))
	}
	if exceeded := w.checkLimits(mailbox, usage, w.limits(mailbox), made); exceeded != withinLimits {
		made.current.Store(w.toIdentityOnly(object, exceeded))
		if exceeded == mailboxLimit {
			usage.recordRefusal()
		}
		w.addListedIdentity(mailbox, usage, made.currentSize())
	}
	return made
}

// addListedIdentity counts one more identity of a list, and evicts the mailbox if its identities take too much.
func (w *wildcardInformer) addListedIdentity(mailbox logicalcluster.Name, usage *usage, size int64) {
	pending := w.initialList.pending[mailbox]
	if limits := w.limits(mailbox); limits.Bytes > 0 && usage.totalIdentityBytes()+pending.identityBytes+size > limits.Bytes {
		w.endpoint.owner.evict(mailbox, w.configs, pending.objects+pending.identityOnly+1)
	}
	w.addPending(mailbox, pendingUsage{bytes: size, identityBytes: size, identityOnly: 1})
}

// initialList is one initial list of a resource, of which nothing is counted before all of it has come.
type initialList struct {
	number uint32
	// pending is by how much the list makes each mailbox grow.
	pending map[logicalcluster.Name]pendingUsage
}

// pendingUsage is of how many objects more than the identity comes, of how many only that, and how many bytes all and the latter take.
type pendingUsage struct{ objects, identityOnly, bytes, identityBytes int64 }

func (g pendingUsage) add(other pendingUsage) pendingUsage {
	return pendingUsage{g.objects + other.objects, g.identityOnly + other.identityOnly, g.bytes + other.bytes, g.identityBytes + other.identityBytes}
}

// beginList is called before a list is asked for.
func (w *wildcardInformer) beginList() {
	w.endList()
	w.initialList = initialList{number: w.initialList.number + 1, pending: map[logicalcluster.Name]pendingUsage{}}
}

// endList is called when the list counts, or has failed.
func (w *wildcardInformer) endList() {
	w.initialList.pending = nil
	w.releasePending()
}

// releasePending takes what a list brings out of the total.
func (w *wildcardInformer) releasePending() {
	w.endpoint.owner.memory.pending.Add(-w.pendingBytes.Swap(0))
}

// isListing reports whether objects of a list may not be counted yet.
func (w *wildcardInformer) isListing() bool {
	if w.initialList.pending != nil && w.lastDeliveredList.Load() == w.initialList.number {
		w.endList()
	}
	return w.initialList.pending != nil
}

// checkLimits tells whose limits leave no room for an item, besides what the cache holds and what came with the same list: those of
// the mailbox, within that of all, or those of the resource.
func (w *wildcardInformer) checkLimits(mailbox logicalcluster.Name, usage *usage, limits Limits, made *cachedObject) exceededLimit {
	total, own := &w.endpoint.owner.memory, w.endpoint.owner.resourceLimitsFor(w.resource)
	objects, bytes := usage.cachedSize()
	need := pendingUsage{objects: 1, bytes: made.currentSize()}
	if !w.isListing() && own == (Limits{}) && !limits.exceededBy(objects+1, bytes+need.bytes) && total.hasRoom(need.bytes) {
		return withinLimits
	}
	ofResource := need
	// The item may take the place of another one.
	if found, exists, _ := w.informer.GetIndexer().Get(made); exists {
		before := found.(*cachedObject)
		need.bytes -= before.currentSize()
		if ProjectionOf(before.current.Load()) != IdentityOnly {
			need.objects = 0
			ofResource = need
		}
		if need.objects == 0 && need.bytes <= 0 {
			// Should the mailbox have too much, a review finds out what goes.
			return withinLimits
		}
	}
	grown := w.initialList.pending[mailbox]
	if own != (Limits{}) {
		objects, bytes := usage.cachedSizeOf(w.resource)
		if own.exceededBy(objects+grown.objects+ofResource.objects, bytes+grown.bytes-grown.identityBytes+ofResource.bytes) {
			return resourceLimit
		}
	}
	if limits.exceededBy(objects+grown.objects+need.objects, bytes+grown.bytes+need.bytes) || !total.hasRoom(need.bytes) {
		return mailboxLimit
	}
	w.addPending(mailbox, need)
	return withinLimits
}

// addPending takes down what a list brings. Other objects count as soon as the cache holds them.
func (w *wildcardInformer) addPending(mailbox logicalcluster.Name, need pendingUsage) {
	if !w.isListing() {
		return
	}
	w.initialList.pending[mailbox] = w.initialList.pending[mailbox].add(need)
	w.endpoint.owner.memory.pending.Add(need.bytes)
	w.pendingBytes.Add(need.bytes)
	if w.ended.Load() {
		// The reflector does not wait for a list that is under way when it is stopped.
		w.releasePending()
	}
}
