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
)

// Limits bound what the hub holds of one mailbox, or of one resource in it. Zero stands for no limit.
type Limits struct {
	// Objects is how many objects are held with more than their identity.
	Objects int64
	// Bytes is how much memory all objects may take, by the estimate of package holdings. To a mailbox's limit the identities
	// count of those of which no more is held, to a resource's they do not.
	Bytes int64
}

// Min returns the limits, or those of others where they are lower.
func (l Limits) Min(others Limits) Limits {
	lower := func(limit, other int64) int64 {
		if limit == 0 || other != 0 && other < limit {
			return other
		}
		return limit
	}
	return Limits{Objects: lower(l.Objects, others.Objects), Bytes: lower(l.Bytes, others.Bytes)}
}

// CachePolicy says what of a mailbox is held. Its methods are called for each event, from several goroutines.
type CachePolicy interface {
	// Selects tells whether an object may be needed whole; known is false while the configs of its mailbox are unknown.
	// Of an object that is held as [IdentityOnly] it is not asked.
	Selects(mailbox logicalcluster.Name, resource schema.GroupVersionResource, object *unstructured.Unstructured) (selected, known bool)
	// Limits returns the limits of a mailbox, and ConfigLimits those of the configs of each mailbox, which do not count there.
	Limits(mailbox logicalcluster.Name) Limits
	ConfigLimits() Limits
	// RetainedAnnotations are the annotations that are held of every object.
	RetainedAnnotations() []string
}

// LimitError says that an object is not synced because it is beyond a limit.
type LimitError struct {
	// Resource is that of which the mailbox has too much; zero if the limits are those of all it has.
	Resource schema.GroupResource
	Limits   Limits
	// Objects and Bytes are what the mailbox has, of which Beyond objects are not held.
	Objects, Bytes, IdentityOnly int64
	// TotalLimit is how much all mailboxes may take together, if the limit of bytes follows from that; zero if it does not.
	TotalLimit int64
	// Evicted is true if nothing of the mailbox is held. It has more objects than that then, perhaps.
	Evicted bool
}

func (e *LimitError) Error() string {
	if e.Evicted {
		return fmt.Sprintf("the mailbox has too many objects, %d or more: only to know which they are, about 1.4 KiB for each, takes more than the %d bytes that it may take. "+
			"Nothing of it is synced, and the target is left as it is, until they are counted again and found to be less than half as many as fit, or %s",
			e.Objects, e.Limits.Bytes, e.remedy())
	}
	objects := "objects"
	if !e.Resource.Empty() {
		objects = e.Resource.String()
	}
	limits := fmt.Sprintf("%s of %d bytes, of which it may have %d", objects, e.Bytes, e.Limits.Bytes)
	switch {
	case e.Limits.Objects > 0 && e.Objects > e.Limits.Objects:
		limits = fmt.Sprintf("%d %s, of which it may have %d", e.Objects, objects, e.Limits.Objects)
	case e.TotalLimit > 0 && e.Limits.Bytes > 0 && e.Bytes > e.Limits.Bytes:
		limits += fmt.Sprintf(" for now, since all mailboxes together have more than the hub's %d bytes and this is one of the largest", e.TotalLimit)
	case e.TotalLimit > 0:
		limits = fmt.Sprintf("objects that do not fit now, since all mailboxes together have more than the hub's %d bytes", e.TotalLimit)
	}
	return fmt.Sprintf("the mailbox has %s: the youngest %d are not synced, and left as they are on the target, until others are deleted from the mailbox or %s", limits, e.IdentityOnly, e.remedy())
}

func (e *LimitError) remedy() string {
	switch {
	case e.Evicted && e.TotalLimit == 0:
		return "the hub's --mailbox-max-bytes is raised, or mailboxBytes in spec.limits of the SyncTarget if that is lower; limits of a PublishedResource make no difference"
	case e.TotalLimit > 0:
		return "others take less, or the hub's --mailboxes-max-bytes is raised"
	case !e.Resource.Empty():
		return "the limit of its PublishedResource is raised"
	default:
		return "the limit is raised"
	}
}

// usage counts what is held of one mailbox.
type usage struct {
	lock sync.Mutex
	// deleted is true once nothing may be noted here any more.
	deleted bool
	// counts are of all that the mailbox has, resources those of each resource that it has objects of.
	objectCounts
	resources map[schema.GroupVersionResource]*objectCounts
	// nextAdmissionBytes is how many bytes the mailbox would have to be allowed so that its last review admitted one more of those beyond;
	// zero if that is not known.
	nextAdmissionBytes int64
	// selectionUnknown is true while an object is held whole because the mailbox's configs were unknown.
	selectionUnknown bool
	// evicted is true while nothing is held of the mailbox; closure says more.
	evicted  atomic.Bool
	eviction evictionState
	// overLimitSince is when the mailbox was found to be over its limits last.
	overLimitSince time.Time
}

// exceededBy tells whether the limits are too small for so many objects, that take so many bytes.
func (l Limits) exceededBy(objects, bytes int64) bool {
	return l.Objects > 0 && objects > l.Objects || l.Bytes > 0 && bytes > l.Bytes
}

// cachedSize returns how many objects are held with more than their identity, and what all take.
func (a *usage) cachedSize() (objects, bytes int64) {
	a.lock.Lock()
	defer a.lock.Unlock()
	return a.objects - a.identityOnly, a.bytes
}

// cachedSizeOf returns how many objects of a resource are held with more than their identity, and what those take.
func (a *usage) cachedSizeOf(resource schema.GroupVersionResource) (objects, bytes int64) {
	a.lock.Lock()
	defer a.lock.Unlock()
	return a.resources[resource].cached()
}

// replace counts an item of a resource instead of another; either may be nil. It returns by how much the number of objects and
// their bytes have changed. It requires that the lock is held.
func (a *usage) replace(resource schema.GroupVersionResource, before, after *cachedObject) (objects, bytes int64) {
	var change objectCounts
	if before != nil && before.counted {
		change.add(countsFor(before), -1)
		before.counted = false
	}
	if after != nil && !after.counted {
		after.countedBytes, after.counted = after.currentSize(), true
		a.selectionUnknown = a.selectionUnknown || after.selectionUnknown
		change.add(countsFor(after), 1)
	}
	a.addCounts(resource, change)
	return change.objects, change.bytes
}

// addCounts requires that the lock is held.
func (a *usage) addCounts(resource schema.GroupVersionResource, by objectCounts) {
	a.add(by, 1)
	of := a.resources[resource]
	if of == nil {
		of = &objectCounts{}
		if a.resources == nil {
			a.resources = map[schema.GroupVersionResource]*objectCounts{}
		}
		a.resources[resource] = of
	}
	of.add(by, 1)
	if of.objects == 0 {
		delete(a.resources, resource)
	}
}

// setObject has an item of a resource hold another extent of its object, or a newer one. It fails if the cache does not hold the
// item.
func (a *usage) setObject(resource schema.GroupVersionResource, changed *cachedObject, object *unstructured.Unstructured, size int64) (bytes int64, ok bool) {
	a.lock.Lock()
	defer a.lock.Unlock()
	if a.deleted || !changed.counted {
		return 0, false
	}
	var change objectCounts
	change.add(countsFor(changed), -1)
	changed.current.Store(object)
	changed.fullSize.Store(size)
	changed.countedBytes = changed.currentSize()
	change.add(countsFor(changed), 1)
	a.addCounts(resource, change)
	return change.bytes, true
}

// delayReview has the next review of a mailbox that is over its limits wait.
func (a *usage) delayReview(now time.Time) {
	a.lock.Lock()
	defer a.lock.Unlock()
	a.overLimitSince = now
}

func (a *usage) reviewDelay(now time.Time) time.Duration {
	a.lock.Lock()
	defer a.lock.Unlock()
	return reviewInterval - now.Sub(a.overLimitSince)
}

// needsReview tells whether an item of a resource, with limits of its own or none, that came or went may change what is to be
// held of others.
func (a *usage) needsReview(limits Limits, resource schema.GroupVersionResource, own Limits, went bool) bool {
	a.lock.Lock()
	defer a.lock.Unlock()
	needed := a.selectionUnknown || a.exceedsLimits(limits) || went && a.isLimited() || own != (Limits{}) && a.resourceNeedsReview(resource, own, went)
	a.selectionUnknown = false
	return needed
}

// isLimited tells whether there is something that is not held because of the mailbox's limits. It requires that the lock is held.
func (a *usage) isLimited() bool { return !a.evicted.Load() && a.identityOnly > a.resourceLimited }

// resourceNeedsReview tells whether less must be held of a resource, or more may since an object of it went. It requires that the lock is
// held.
func (a *usage) resourceNeedsReview(resource schema.GroupVersionResource, own Limits, went bool) bool {
	of := a.resources[resource]
	return !a.evicted.Load() && of != nil && (own.exceededBy(of.cached()) || went && of.resourceLimited > 0)
}

// exceedsLimits tells whether there is something of which less must be held. It requires that the lock is held.
func (a *usage) exceedsLimits(limits Limits) bool {
	return !a.evicted.Load() && a.identityOnly < a.objects && limits.exceededBy(a.objects-a.identityOnly, a.bytes)
}

// wantedBytes returns how much the mailbox would take if others took nothing.
func (a *usage) wantedBytes(limits Limits) int64 {
	a.lock.Lock()
	defer a.lock.Unlock()
	wanted := a.wanted()
	if a.evicted.Load() {
		wanted = max(wanted, a.eviction.wantedBytes)
	}
	if limits.Bytes > 0 {
		return min(wanted, limits.Bytes)
	}
	return wanted
}

// totalIdentityBytes returns how many bytes the identities take of which no more is held.
func (a *usage) totalIdentityBytes() int64 {
	a.lock.Lock()
	defer a.lock.Unlock()
	return a.identityBytes
}

// needsAdjustment tells whether less of the mailbox is held than these limits allow, or more.
func (a *usage) needsAdjustment(limits Limits) bool {
	a.lock.Lock()
	defer a.lock.Unlock()
	return a.exceedsLimits(limits) || a.isLimited() && a.nextAdmissionBytes < math.MaxInt64 && (limits.Bytes == 0 || limits.Bytes >= a.nextAdmissionBytes)
}

// recordReview notes from how many bytes on more would be held. Should an object have come meanwhile, that is not known.
func (a *usage) recordReview(objects, admitsAt int64) {
	a.lock.Lock()
	defer a.lock.Unlock()
	a.nextAdmissionBytes = 0
	if a.objects == objects {
		a.nextAdmissionBytes = admitsAt
	}
}

// recordRefusal notes that an object was not held for a lack of room.
func (a *usage) recordRefusal() {
	a.lock.Lock()
	defer a.lock.Unlock()
	a.nextAdmissionBytes = 0
}

// RequireFullObject returns why an object of a cache is not held whole; nil if it is. The error is a [LimitError], or
// [ErrNotFetched] of an object that is being fetched by now.
func (m *Mailboxes) RequireFullObject(resource schema.GroupVersionResource, mailbox logicalcluster.Name, object *unstructured.Unstructured) error {
	switch ProjectionOf(object) {
	case FullObject:
		return nil
	case IdentityOnly:
		return m.ObjectLimitError(resource, mailbox, object)
	default:
		m.requestFullObject(resource, mailbox, object)
		return ErrNotFetched
	}
}

// ObjectLimitError says which limit an object of a cache, which is held as [IdentityOnly], is beyond.
func (m *Mailboxes) ObjectLimitError(resource schema.GroupVersionResource, mailbox logicalcluster.Name, object *unstructured.Unstructured) *LimitError {
	if object != nil && exceededLimitOf(object) == resourceLimit {
		return m.usage(mailbox).resourceLimitError(resource, m.resourceLimitsFor(resource))
	}
	return m.MailboxLimitError(mailbox)
}

// MailboxLimitError says what a mailbox has, and may have, beside what is beyond the limits of resources.
func (m *Mailboxes) MailboxLimitError(mailbox logicalcluster.Name) *LimitError {
	return m.usageLimitError(mailbox, false)
}

func (m *Mailboxes) usageLimitError(mailbox logicalcluster.Name, configs bool) *LimitError {
	limits := m.limits(mailbox, configs)
	found := m.usageOf(mailbox, configs).limitError(limits)
	if found.IdentityOnly > 0 && (limits != m.policyLimits(mailbox, configs) || !found.Evicted && !limits.exceededBy(found.Objects, found.Bytes)) {
		found.TotalLimit = m.memory.limit
	}
	return found
}

// ConfigLimitError says how many configs a mailbox has, and may have.
func (m *Mailboxes) ConfigLimitError(mailbox logicalcluster.Name) *LimitError {
	return m.usageLimitError(mailbox, true)
}

func (a *usage) limitError(limits Limits) *LimitError {
	a.lock.Lock()
	defer a.lock.Unlock()
	found := &LimitError{Limits: limits, Objects: a.objects - a.resourceLimited, Bytes: a.wanted(), IdentityOnly: a.identityOnly - a.resourceLimited, Evicted: a.evicted.Load()}
	if found.Evicted {
		found.Objects, found.Bytes, found.IdentityOnly = a.eviction.objects, a.eviction.wantedBytes, a.eviction.objects
	}
	return found
}

func (a *usage) resourceLimitError(resource schema.GroupVersionResource, own Limits) *LimitError {
	a.lock.Lock()
	defer a.lock.Unlock()
	found := &LimitError{Resource: resource.GroupResource(), Limits: own}
	if of := a.resources[resource]; of != nil {
		found.Objects, found.Bytes, found.IdentityOnly = of.objects, of.fullBytes, of.resourceLimited
	}
	return found
}

// hasIdentityOnly tells whether not all that the mailbox has is held.
func (a *usage) hasIdentityOnly() bool {
	a.lock.Lock()
	defer a.lock.Unlock()
	return a.identityOnly > 0
}
