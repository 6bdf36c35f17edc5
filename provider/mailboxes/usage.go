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
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/synchub-dev/synchub/provider/wording"
)

// Limits bound the cache of one mailbox, or of one resource in it. Zero means no bound.
type Limits struct {
	// Objects bounds the objects that are cached with more than their identity.
	Objects int64
	// Bytes bounds the memory of all objects, as package cachesize estimates it. Identities beyond the limit count towards a
	// mailbox's limit, and not towards a resource's.
	Bytes int64
}

// Min returns the lower limits.
func (l Limits) Min(others Limits) Limits {
	lower := func(limit, other int64) int64 {
		if limit == 0 || other != 0 && other < limit {
			return other
		}
		return limit
	}
	return Limits{Objects: lower(l.Objects, others.Objects), Bytes: lower(l.Bytes, others.Bytes)}
}

// CachePolicy decides how much of a mailbox's objects is cached. Its methods are called for each event, from several
// goroutines.
type CachePolicy interface {
	// Selects reports whether an object may be needed whole; known is false while the configs of its mailbox, which can be
	// listed in all, are unknown. It is not called for an [IdentityOnly].
	Selects(all Reader, mailbox logicalcluster.Name, resource schema.GroupVersionResource, object *unstructured.Unstructured) (selected, known bool)
	// Limits returns the limits of a mailbox, and ConfigLimits the limits of its configs, which do not count towards the
	// former.
	Limits(mailbox logicalcluster.Name) Limits
	ConfigLimits() Limits
	// RetainedAnnotations are cached of every object.
	RetainedAnnotations() []string
}

// LimitError means that an object is not synced because it exceeds a limit.
type LimitError struct {
	// Resource is set if the exceeded limit is a limit of one resource.
	Resource schema.GroupResource
	Limits   Limits
	// Objects and Bytes are the mailbox's usage; IdentityOnly objects are cached as identity only.
	Objects, Bytes, IdentityOnly int64
	// TotalLimit is the limit for all mailboxes together, if the limit of bytes follows from that; else zero.
	TotalLimit int64
	// Evicted is true if nothing of the mailbox is cached. It may have more objects then.
	Evicted bool
}

func (e *LimitError) Error() string {
	if e.Evicted {
		return fmt.Sprintf("the mailbox has too many objects, %d or more. Their names alone, about 1.4 KiB for each, exceed its limit of %d bytes. "+
			"The hub syncs none of them and leaves the target as it is, until it counts less than half as many as fit, or %s",
			e.Objects, e.Limits.Bytes, e.remedy())
	}
	objects := "objects"
	if !e.Resource.Empty() {
		objects = e.Resource.String()
	}
	limits := fmt.Sprintf("%s of %d bytes, but may have %d", objects, e.Bytes, e.Limits.Bytes)
	switch {
	case e.Limits.Objects > 0 && e.Objects > e.Limits.Objects:
		limits = fmt.Sprintf("%d %s, but may have %d", e.Objects, objects, e.Limits.Objects)
	case e.TotalLimit > 0 && e.Limits.Bytes > 0 && e.Bytes > e.Limits.Bytes:
		limits += fmt.Sprintf(" for now, since all mailboxes together have more than the hub's %d bytes and this is one of the largest", e.TotalLimit)
	case e.TotalLimit > 0:
		limits = fmt.Sprintf("objects that do not fit now, since all mailboxes together have more than the hub's %d bytes", e.TotalLimit)
	}
	return fmt.Sprintf("the mailbox has %s: the youngest %s on the target, until objects are deleted from the mailbox or %s",
		limits, wording.Count(e.IdentityOnly, "is not synced, and left as it is", "are not synced, and left as they are"), e.remedy())
}

func (e *LimitError) remedy() string {
	switch {
	case e.Evicted && e.TotalLimit == 0:
		return "the hub's --mailbox-max-bytes is raised, or mailboxBytes in spec.limits of the SyncTarget if that is lower; limits of a PublishedResource make no difference"
	case e.TotalLimit > 0:
		return "other mailboxes take less, or the hub's --mailboxes-max-bytes is raised"
	case !e.Resource.Empty():
		return "the limit of its PublishedResource is raised"
	default:
		return "the limit is raised"
	}
}

// usage counts the cached objects of one mailbox.
type usage struct {
	lock sync.Mutex
	// deleted is true once the usage must not be changed any more.
	deleted bool
	// The embedded counts are for all objects of the mailbox, and resources has the counts of each resource.
	objectCounts
	resources map[schema.GroupVersionResource]*objectCounts
	// nextAdmissionBytes is the limit of bytes at which the last review would have admitted one object more; zero if unknown.
	nextAdmissionBytes int64
	// selectionUnknown is true while an object is cached whole because the mailbox's configs were unknown.
	selectionUnknown bool
	// evicted is true while nothing of the mailbox is cached; eviction has the details.
	evicted  atomic.Bool
	eviction evictionState
	// lastOverLimit is when the mailbox was last found to exceed its limits.
	lastOverLimit time.Time
}

// exceededBy reports whether so many objects, with so many bytes, exceed the limits.
func (l Limits) exceededBy(objects, bytes int64) bool {
	return l.Objects > 0 && objects > l.Objects || l.Bytes > 0 && bytes > l.Bytes
}

// counts returns the counts of all objects.
func (u *usage) counts() objectCounts {
	u.lock.Lock()
	defer u.lock.Unlock()
	return u.objectCounts
}

// admittedSizeOf returns the number and bytes of a resource's objects that are cached with more than their identity.
func (u *usage) admittedSizeOf(resource schema.GroupVersionResource) (objects, bytes int64) {
	u.lock.Lock()
	defer u.lock.Unlock()
	return u.resources[resource].admitted()
}

// replace counts an entry instead of another; either may be nil. It returns the changes of the number of objects and of their
// bytes. It requires the lock.
func (u *usage) replace(resource schema.GroupVersionResource, before, after *cachedObject) (objects, bytes int64) {
	var change objectCounts
	if before != nil && before.counted {
		change.add(countsFor(before), -1)
		before.counted = false
	}
	if after != nil && !after.counted {
		after.countedBytes, after.counted = after.currentSize(), true
		u.selectionUnknown = u.selectionUnknown || after.selectionUnknown
		change.add(countsFor(after), 1)
	}
	u.addCounts(resource, change)
	return change.objects, change.bytes
}

// addCounts adds counts to the counts of the mailbox and the resource. It requires the lock.
func (u *usage) addCounts(resource schema.GroupVersionResource, by objectCounts) {
	u.add(by, 1)
	of := u.resources[resource]
	if of == nil {
		of = &objectCounts{}
		if u.resources == nil {
			u.resources = map[schema.GroupVersionResource]*objectCounts{}
		}
		u.resources[resource] = of
	}
	of.add(by, 1)
	if of.objects == 0 {
		delete(u.resources, resource)
	}
}

// setObject replaces the object of an entry by another projection, or a newer version. It fails if the entry is not in the
// cache.
func (u *usage) setObject(resource schema.GroupVersionResource, changed *cachedObject, object *unstructured.Unstructured, size int64) (bytes int64, ok bool) {
	u.lock.Lock()
	defer u.lock.Unlock()
	if u.deleted || !changed.counted {
		return 0, false
	}
	var change objectCounts
	change.add(countsFor(changed), -1)
	changed.current.Store(object)
	changed.fullSize.Store(size)
	changed.countedBytes = changed.currentSize()
	change.add(countsFor(changed), 1)
	u.addCounts(resource, change)
	return change.bytes, true
}

// delayReview makes the next review of a mailbox beyond its limits wait.
func (u *usage) delayReview(now time.Time) {
	u.lock.Lock()
	defer u.lock.Unlock()
	u.lastOverLimit = now
}

// reviewDelay returns how long the next review must wait; zero or less means not at all.
func (u *usage) reviewDelay(now time.Time) time.Duration {
	u.lock.Lock()
	defer u.lock.Unlock()
	return reviewInterval - now.Sub(u.lastOverLimit)
}

// needsReview reports whether an added or removed entry may change how much of other objects is cached.
func (u *usage) needsReview(limits Limits, resource schema.GroupVersionResource, resourceLimits Limits, removed bool) bool {
	u.lock.Lock()
	defer u.lock.Unlock()
	needed := u.selectionUnknown || u.exceedsLimits(limits) || removed && u.isLimited() || resourceLimits != (Limits{}) && u.resourceNeedsReview(resource, resourceLimits, removed)
	u.selectionUnknown = false
	return needed
}

// isLimited reports whether the mailbox's limits keep objects out. It requires the lock.
func (u *usage) isLimited() bool { return !u.evicted.Load() && u.identityOnly > u.resourceLimited }

// resourceNeedsReview reports whether less of a resource must be cached, or more may be after one of its objects was removed. It
// requires the lock.
func (u *usage) resourceNeedsReview(resource schema.GroupVersionResource, resourceLimits Limits, removed bool) bool {
	of := u.resources[resource]
	return !u.evicted.Load() && of != nil && (resourceLimits.exceededBy(of.admitted()) || removed && of.resourceLimited > 0)
}

// exceedsLimits reports whether less of some object must be cached. It requires the lock.
func (u *usage) exceedsLimits(limits Limits) bool {
	return !u.evicted.Load() && u.identityOnly < u.objects && limits.exceededBy(u.objects-u.identityOnly, u.bytes)
}

// wantedBytes returns the size that the mailbox would have without other mailboxes.
func (u *usage) wantedBytes(limits Limits) int64 {
	u.lock.Lock()
	defer u.lock.Unlock()
	wanted := u.wanted()
	if u.evicted.Load() {
		wanted = max(wanted, u.eviction.wantedBytes)
	}
	if limits.Bytes > 0 {
		return min(wanted, limits.Bytes)
	}
	return wanted
}

// needsAdjustment reports whether the cache holds less of the mailbox than these limits allow, or more.
func (u *usage) needsAdjustment(limits Limits) bool {
	u.lock.Lock()
	defer u.lock.Unlock()
	return u.exceedsLimits(limits) || u.isLimited() && u.nextAdmissionBytes < math.MaxInt64 && (limits.Bytes == 0 || limits.Bytes >= u.nextAdmissionBytes)
}

// recordReview records the limit at which more would be cached, unless objects were added during the review.
func (u *usage) recordReview(objects, admitsAt int64) {
	u.lock.Lock()
	defer u.lock.Unlock()
	u.nextAdmissionBytes = 0
	if u.objects == objects {
		u.nextAdmissionBytes = admitsAt
	}
}

// recordRefusal records that an object was not cached for lack of room.
func (u *usage) recordRefusal() {
	u.lock.Lock()
	defer u.lock.Unlock()
	u.nextAdmissionBytes = 0
}

// limitError returns the usage without objects that are limited by their resource.
func (u *usage) limitError(limits Limits) *LimitError {
	u.lock.Lock()
	defer u.lock.Unlock()
	found := &LimitError{Limits: limits, Objects: u.objects - u.resourceLimited, Bytes: u.wanted(), IdentityOnly: u.identityOnly - u.resourceLimited, Evicted: u.evicted.Load()}
	if found.Evicted {
		found.Objects, found.Bytes, found.IdentityOnly = u.eviction.objects, u.eviction.wantedBytes, u.eviction.objects
	}
	return found
}

// resourceLimitError returns the usage of a resource.
func (u *usage) resourceLimitError(resource schema.GroupVersionResource, resourceLimits Limits) *LimitError {
	u.lock.Lock()
	defer u.lock.Unlock()
	found := &LimitError{Resource: resource.GroupResource(), Limits: resourceLimits}
	if of := u.resources[resource]; of != nil {
		found.Objects, found.Bytes, found.IdentityOnly = of.objects, of.fullBytes, of.resourceLimited
	}
	return found
}
