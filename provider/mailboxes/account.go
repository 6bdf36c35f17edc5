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
	"sync"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Limits bound what the hub holds of one mailbox. Zero stands for no limit.
type Limits struct {
	// Objects is how many objects are held with more than their identity.
	Objects int64
	// Bytes is how much memory those objects may take, by the estimate of package holdings.
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

// LimitError says that an object is not synced because its mailbox is over its limits.
type LimitError struct {
	Limits Limits
	// Objects and Bytes are what the mailbox has, of which Beyond objects are not held.
	Objects, Bytes, Beyond int64
}

func (e *LimitError) Error() string {
	var limits string
	if e.Limits.Objects > 0 && e.Objects > e.Limits.Objects {
		limits = fmt.Sprintf("%d objects, of which it may have %d", e.Objects, e.Limits.Objects)
	} else {
		limits = fmt.Sprintf("objects of %d bytes, of which it may have %d", e.Bytes, e.Limits.Bytes)
	}
	return fmt.Sprintf("the mailbox has %s: the youngest %d are not synced, and left as they are on the target, until others are deleted from the mailbox or the limit is raised", limits, e.Beyond)
}

// account counts what is held of one mailbox.
type account struct {
	lock sync.Mutex
	// objects are all that the mailbox has, and beyond those of which only the identity is held. bytes is what the others
	// take, and wholeBytes what all would take without limits.
	objects, beyond, bytes, wholeBytes int64
	// unsure is true while an object is held whole because the mailbox's configs were unknown.
	unsure bool
	// reviewed is when the mailbox was found to be over its limits last.
	reviewed time.Time
}

// account returns the account of a mailbox.
func (m *Mailboxes) account(mailbox logicalcluster.Name) *account {
	return accountIn(&m.accounts, mailbox)
}

func accountIn(accounts *sync.Map, mailbox logicalcluster.Name) *account {
	if found, ok := accounts.Load(mailbox); ok {
		return found.(*account)
	}
	found, _ := accounts.LoadOrStore(mailbox, &account{})
	return found.(*account)
}

// exceeds tells whether the limits are too small for so many objects, that take so many bytes.
func (l Limits) exceeds(objects, bytes int64) bool {
	return l.Objects > 0 && objects > l.Objects || l.Bytes > 0 && bytes > l.Bytes
}

// has returns how many objects are held with more than their identity, and what they take.
func (a *account) has() (objects, bytes int64) {
	a.lock.Lock()
	defer a.lock.Unlock()
	return a.objects - a.beyond, a.bytes
}

// replace counts an item instead of another; either may be nil. It returns by how much the number of objects and their bytes
// have changed.
func (a *account) replace(before, after *item) (objects, bytes int64) {
	a.lock.Lock()
	defer a.lock.Unlock()
	if before != nil && before.counted {
		bytes -= before.charged
		objects--
		a.add(before, -1)
		before.counted = false
	}
	if after != nil && !after.counted {
		after.charged, after.counted = after.heldSize(), true
		bytes += after.charged
		objects++
		a.add(after, 1)
	}
	return objects, bytes
}

// add requires that the lock is held.
func (a *account) add(counted *item, sign int64) {
	a.objects += sign
	if ExtentOf(counted.held.Load()) == Identity {
		a.beyond += sign
		a.wholeBytes += sign * counted.size.Load()
		return
	}
	a.bytes += sign * counted.charged
	a.wholeBytes += sign * counted.charged
}

// install has an item hold another extent of its object, or a newer one. It fails if the cache does not hold the item.
func (a *account) install(changed *item, object *unstructured.Unstructured, size int64) (bytes int64, ok bool) {
	a.lock.Lock()
	defer a.lock.Unlock()
	if !changed.counted {
		return 0, false
	}
	before := changed.charged
	a.add(changed, -1)
	changed.held.Store(object)
	changed.size.Store(size)
	changed.charged = changed.heldSize()
	a.add(changed, 1)
	return changed.charged - before, true
}

// pause has the next review of a mailbox that is over its limits wait.
func (a *account) pause(now time.Time) {
	a.lock.Lock()
	defer a.lock.Unlock()
	a.reviewed = now
}

func (a *account) pausedFor(now time.Time) time.Duration {
	a.lock.Lock()
	defer a.lock.Unlock()
	return reviewPause - now.Sub(a.reviewed)
}

// needsReview tells whether an item that came or went may change what is to be held of others.
func (a *account) needsReview(limits Limits, went bool) bool {
	a.lock.Lock()
	defer a.lock.Unlock()
	needed := a.unsure || a.beyond > 0 && went || limits.exceeds(a.objects-a.beyond, a.bytes)
	a.unsure = false
	return needed
}

// Missing returns why an object of a cache is not held whole; nil if it is. The error is a [LimitError], or
// [ErrNotFetched] of an object that is being fetched by now.
func (m *Mailboxes) Missing(resource schema.GroupVersionResource, mailbox logicalcluster.Name, object *unstructured.Unstructured) error {
	switch ExtentOf(object) {
	case Whole:
		return nil
	case Identity:
		return m.LimitError(mailbox)
	default:
		m.request(resource, mailbox, object)
		return ErrNotFetched
	}
}

// LimitError says what a mailbox has, and may have.
func (m *Mailboxes) LimitError(mailbox logicalcluster.Name) *LimitError {
	var limits Limits
	if m.policy != nil {
		limits = m.policy.Limits(mailbox)
	}
	return m.account(mailbox).limitError(limits)
}

// ConfigsBeyond returns how many configs of a mailbox are not in force because of their limits.
func (m *Mailboxes) ConfigsBeyond(mailbox logicalcluster.Name) int64 {
	return accountIn(&m.configAccounts, mailbox).limitError(Limits{}).Beyond
}

func (a *account) limitError(limits Limits) *LimitError {
	a.lock.Lock()
	defer a.lock.Unlock()
	return &LimitError{Limits: limits, Objects: a.objects, Bytes: a.wholeBytes, Beyond: a.beyond}
}
