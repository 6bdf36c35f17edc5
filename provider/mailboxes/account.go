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

// Within returns the limits, or those of others where they are lower.
func (l Limits) Within(others Limits) Limits {
	lower := func(limit, other int64) int64 {
		if limit == 0 || other != 0 && other < limit {
			return other
		}
		return limit
	}
	return Limits{Objects: lower(l.Objects, others.Objects), Bytes: lower(l.Bytes, others.Bytes)}
}

// Policy says what of a mailbox is held. Its methods are called for each event, from several goroutines.
type Policy interface {
	// Selects tells whether an object may be needed whole; known is false while the configs of its mailbox are unknown.
	// Of an object that is held as [Identity] it is not asked.
	Selects(mailbox logicalcluster.Name, resource schema.GroupVersionResource, object *unstructured.Unstructured) (selected, known bool)
	// Limits returns the limits of a mailbox, and ConfigLimits those of the configs of each mailbox, which do not count there.
	Limits(mailbox logicalcluster.Name) Limits
	ConfigLimits() Limits
	// Marks are the annotations that are held of every object.
	Marks() []string
}

// LimitError says that an object is not synced because it is beyond a limit.
type LimitError struct {
	// Resource is that of which the mailbox has too much; zero if the limits are those of all it has.
	Resource schema.GroupResource
	Limits   Limits
	// Objects and Bytes are what the mailbox has, of which Beyond objects are not held.
	Objects, Bytes, Beyond int64
	// Total is how much all mailboxes may take together, if the limit of bytes follows from that; zero if it does not.
	Total int64
	// Closed is true if nothing of the mailbox is held. It has more objects than that then, perhaps.
	Closed bool
}

func (e *LimitError) Error() string {
	if e.Closed {
		return fmt.Sprintf("the mailbox has too many objects, %d or more: only to know which they are, about 1.4 KiB for each, takes more than the %d bytes that it may take. "+
			"Nothing of it is synced, and the target is left as it is, until they are counted again and found to be less than half as many as fit, or %s",
			e.Objects, e.Limits.Bytes, e.cure())
	}
	objects := "objects"
	if !e.Resource.Empty() {
		objects = e.Resource.String()
	}
	limits := fmt.Sprintf("%s of %d bytes, of which it may have %d", objects, e.Bytes, e.Limits.Bytes)
	switch {
	case e.Limits.Objects > 0 && e.Objects > e.Limits.Objects:
		limits = fmt.Sprintf("%d %s, of which it may have %d", e.Objects, objects, e.Limits.Objects)
	case e.Total > 0 && e.Limits.Bytes > 0 && e.Bytes > e.Limits.Bytes:
		limits += fmt.Sprintf(" for now, since all mailboxes together have more than the hub's %d bytes and this is one of the largest", e.Total)
	case e.Total > 0:
		limits = fmt.Sprintf("objects that do not fit now, since all mailboxes together have more than the hub's %d bytes", e.Total)
	}
	return fmt.Sprintf("the mailbox has %s: the youngest %d are not synced, and left as they are on the target, until others are deleted from the mailbox or %s", limits, e.Beyond, e.cure())
}

func (e *LimitError) cure() string {
	switch {
	case e.Closed && e.Total == 0:
		return "the hub's --mailbox-max-bytes is raised, or mailboxBytes in spec.limits of the SyncTarget if that is lower; limits of a PublishedResource make no difference"
	case e.Total > 0:
		return "others take less, or the hub's --mailboxes-max-bytes is raised"
	case !e.Resource.Empty():
		return "the limit of its PublishedResource is raised"
	default:
		return "the limit is raised"
	}
}

// account counts what is held of one mailbox.
type account struct {
	lock sync.Mutex
	// dropped is true once nothing may be noted here any more.
	dropped bool
	// counts are of all that the mailbox has, resources those of each resource that it has objects of.
	counts
	resources map[schema.GroupVersionResource]*counts
	// admitsAt is how many bytes the mailbox would have to be allowed so that its last review admitted one more of those beyond;
	// zero if that is not known.
	admitsAt int64
	// unsure is true while an object is held whole because the mailbox's configs were unknown.
	unsure bool
	// closed is true while nothing is held of the mailbox; closure says more.
	closed  atomic.Bool
	closure closure
	// paused is when the mailbox was found to be over its limits last.
	paused time.Time
}

// exceeds tells whether the limits are too small for so many objects, that take so many bytes.
func (l Limits) exceeds(objects, bytes int64) bool {
	return l.Objects > 0 && objects > l.Objects || l.Bytes > 0 && bytes > l.Bytes
}

// has returns how many objects are held with more than their identity, and what all take.
func (a *account) has() (objects, bytes int64) {
	a.lock.Lock()
	defer a.lock.Unlock()
	return a.objects - a.beyond, a.bytes
}

// hasOf returns how many objects of a resource are held with more than their identity, and what those take.
func (a *account) hasOf(resource schema.GroupVersionResource) (objects, bytes int64) {
	a.lock.Lock()
	defer a.lock.Unlock()
	return a.resources[resource].held()
}

// replace counts an item of a resource instead of another; either may be nil. It returns by how much the number of objects and
// their bytes have changed. It requires that the lock is held.
func (a *account) replace(resource schema.GroupVersionResource, before, after *item) (objects, bytes int64) {
	var change counts
	if before != nil && before.counted {
		change.add(countsOf(before), -1)
		before.counted = false
	}
	if after != nil && !after.counted {
		after.charged, after.counted = after.heldSize(), true
		a.unsure = a.unsure || after.unsure
		change.add(countsOf(after), 1)
	}
	a.change(resource, change)
	return change.objects, change.bytes
}

// change requires that the lock is held.
func (a *account) change(resource schema.GroupVersionResource, by counts) {
	a.add(by, 1)
	of := a.resources[resource]
	if of == nil {
		of = &counts{}
		if a.resources == nil {
			a.resources = map[schema.GroupVersionResource]*counts{}
		}
		a.resources[resource] = of
	}
	of.add(by, 1)
	if of.objects == 0 {
		delete(a.resources, resource)
	}
}

// install has an item of a resource hold another extent of its object, or a newer one. It fails if the cache does not hold the
// item.
func (a *account) install(resource schema.GroupVersionResource, changed *item, object *unstructured.Unstructured, size int64) (bytes int64, ok bool) {
	a.lock.Lock()
	defer a.lock.Unlock()
	if a.dropped || !changed.counted {
		return 0, false
	}
	var change counts
	change.add(countsOf(changed), -1)
	changed.held.Store(object)
	changed.size.Store(size)
	changed.charged = changed.heldSize()
	change.add(countsOf(changed), 1)
	a.change(resource, change)
	return change.bytes, true
}

// pause has the next review of a mailbox that is over its limits wait.
func (a *account) pause(now time.Time) {
	a.lock.Lock()
	defer a.lock.Unlock()
	a.paused = now
}

func (a *account) pausedFor(now time.Time) time.Duration {
	a.lock.Lock()
	defer a.lock.Unlock()
	return reviewPause - now.Sub(a.paused)
}

// needsReview tells whether an item of a resource, with limits of its own or none, that came or went may change what is to be
// held of others.
func (a *account) needsReview(limits Limits, resource schema.GroupVersionResource, own Limits, went bool) bool {
	a.lock.Lock()
	defer a.lock.Unlock()
	needed := a.unsure || a.exceeds(limits) || went && a.isCut() || own != (Limits{}) && a.exceedsOf(resource, own, went)
	a.unsure = false
	return needed
}

// isCut tells whether there is something that is not held because of the mailbox's limits. It requires that the lock is held.
func (a *account) isCut() bool { return !a.closed.Load() && a.beyond > a.byResource }

// exceedsOf tells whether less must be held of a resource, or more may since an object of it went. It requires that the lock is
// held.
func (a *account) exceedsOf(resource schema.GroupVersionResource, own Limits, went bool) bool {
	of := a.resources[resource]
	return !a.closed.Load() && of != nil && (own.exceeds(of.held()) || went && of.byResource > 0)
}

// exceeds tells whether there is something of which less must be held. It requires that the lock is held.
func (a *account) exceeds(limits Limits) bool {
	return !a.closed.Load() && a.beyond < a.objects && limits.exceeds(a.objects-a.beyond, a.bytes)
}

// wants returns how much the mailbox would take if others took nothing.
func (a *account) wants(limits Limits) int64 {
	a.lock.Lock()
	defer a.lock.Unlock()
	wanted := a.wanted()
	if a.closed.Load() {
		wanted = max(wanted, a.closure.wanted)
	}
	if limits.Bytes > 0 {
		return min(wanted, limits.Bytes)
	}
	return wanted
}

// identities returns how many bytes the identities take of which no more is held.
func (a *account) identities() int64 {
	a.lock.Lock()
	defer a.lock.Unlock()
	return a.identityBytes
}

// isUnequal tells whether less of the mailbox is held than these limits allow, or more.
func (a *account) isUnequal(limits Limits) bool {
	a.lock.Lock()
	defer a.lock.Unlock()
	return a.exceeds(limits) || a.isCut() && a.admitsAt < math.MaxInt64 && (limits.Bytes == 0 || limits.Bytes >= a.admitsAt)
}

// reviewed notes from how many bytes on more would be held. Should an object have come meanwhile, that is not known.
func (a *account) reviewed(objects, admitsAt int64) {
	a.lock.Lock()
	defer a.lock.Unlock()
	a.admitsAt = 0
	if a.objects == objects {
		a.admitsAt = admitsAt
	}
}

// refused notes that an object was not held for a lack of room.
func (a *account) refused() {
	a.lock.Lock()
	defer a.lock.Unlock()
	a.admitsAt = 0
}

// Missing returns why an object of a cache is not held whole; nil if it is. The error is a [LimitError], or
// [ErrNotFetched] of an object that is being fetched by now.
func (m *Mailboxes) Missing(resource schema.GroupVersionResource, mailbox logicalcluster.Name, object *unstructured.Unstructured) error {
	switch ExtentOf(object) {
	case Whole:
		return nil
	case Identity:
		return m.LimitErrorOf(resource, mailbox, object)
	default:
		m.request(resource, mailbox, object)
		return ErrNotFetched
	}
}

// LimitErrorOf says which limit an object of a cache, which is held as [Identity], is beyond.
func (m *Mailboxes) LimitErrorOf(resource schema.GroupVersionResource, mailbox logicalcluster.Name, object *unstructured.Unstructured) *LimitError {
	if object != nil && refusalOf(object) == byResource {
		return m.account(mailbox).limitErrorOf(resource, m.limitsOf(resource))
	}
	return m.LimitError(mailbox)
}

// LimitError says what a mailbox has, and may have, beside what is beyond the limits of resources.
func (m *Mailboxes) LimitError(mailbox logicalcluster.Name) *LimitError {
	return m.limitErrorOf(mailbox, false)
}

func (m *Mailboxes) limitErrorOf(mailbox logicalcluster.Name, configs bool) *LimitError {
	limits := m.limits(mailbox, configs)
	found := m.accountOf(mailbox, configs).limitError(limits)
	if found.Beyond > 0 && (limits != m.ownLimits(mailbox, configs) || !found.Closed && !limits.exceeds(found.Objects, found.Bytes)) {
		found.Total = m.total.limit
	}
	return found
}

// ConfigLimitError says how many configs a mailbox has, and may have.
func (m *Mailboxes) ConfigLimitError(mailbox logicalcluster.Name) *LimitError {
	return m.limitErrorOf(mailbox, true)
}

func (a *account) limitError(limits Limits) *LimitError {
	a.lock.Lock()
	defer a.lock.Unlock()
	found := &LimitError{Limits: limits, Objects: a.objects - a.byResource, Bytes: a.wanted(), Beyond: a.beyond - a.byResource, Closed: a.closed.Load()}
	if found.Closed {
		found.Objects, found.Bytes, found.Beyond = a.closure.objects, a.closure.wanted, a.closure.objects
	}
	return found
}

func (a *account) limitErrorOf(resource schema.GroupVersionResource, own Limits) *LimitError {
	a.lock.Lock()
	defer a.lock.Unlock()
	found := &LimitError{Resource: resource.GroupResource(), Limits: own}
	if of := a.resources[resource]; of != nil {
		found.Objects, found.Bytes, found.Beyond = of.objects, of.wholeBytes, of.byResource
	}
	return found
}

// isBeyond tells whether not all that the mailbox has is held.
func (a *account) isBeyond() bool {
	a.lock.Lock()
	defer a.lock.Unlock()
	return a.beyond > 0
}
