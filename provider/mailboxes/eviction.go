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
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/synchub-dev/synchub/provider/cachesize"
	"github.com/synchub-dev/synchub/provider/requestclass"
	"github.com/synchub-dev/synchub/provider/transport"
)

// Even an [IdentityOnly] takes memory. A mailbox whose identities alone exceed its limit of bytes is evicted: the hub caches
// none of its objects (or of its configs), all of them are Unknown, and no absence is verified. The watches continue for the
// other mailboxes; the events of an evicted one are dropped, and its entries are removed from the caches. The mailbox is
// readmitted once a list shows that its objects fit.

const (
	// evictionInterval is how often run handles evicted mailboxes.
	evictionInterval = 10 * time.Second
	// readmitAfter is the delay until the objects of an evicted mailbox are counted. It doubles with each failure, up to
	// maxReadmitDelay, and starts over after twice that time without a failure.
	readmitAfter    = 20 * time.Second
	maxReadmitDelay = time.Hour
	// readmitDivisor: a mailbox is readmitted if its identities take at most this part of its limit.
	readmitDivisor = 2
)

// placeholderName is the name of a placeholder in the cache for all objects of an excluded mailbox: a transform must return an object. No
// object can have the name.
const placeholderName = "(excluded)"

// newPlaceholder returns the entry that represents all objects of an evicted or unowned mailbox.
func newPlaceholder(mailbox logicalcluster.Name) *cachedObject {
	made := newCachedObject(&unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{
		"name": placeholderName, "annotations": map[string]any{logicalcluster.AnnotationKey: mailbox.String()},
	}}}, 0)
	made.isPlaceholder = true
	return made
}

// isPlaceholder reports whether an entry or a tombstone is a placeholder or an end-of-list marker.
func isPlaceholder(entry any) bool {
	if tombstone, ok := entry.(cache.DeletedFinalStateUnknown); ok {
		return isPlaceholder(tombstone.Obj)
	}
	one, ok := entry.(*cachedObject)
	return ok && one.isPlaceholder
}

// evictionState records why a mailbox is evicted, and when it may be readmitted.
type evictionState struct {
	// objects is the least number of objects that the mailbox had. wantedBytes is the size that they would have without other
	// mailboxes, and allowedBytes the limit.
	objects, wantedBytes, allowedBytes int64
	// notified is true after the subscribers were reset.
	notified bool
	// failures is how often the mailbox had too many objects, and lastFailure the last time.
	failures    int
	lastFailure time.Time
}

// nextAttempt returns when to count the mailbox's objects next.
func (e *evictionState) nextAttempt() time.Time {
	if e.failures == 0 {
		return e.lastFailure
	}
	return e.lastFailure.Add(min(readmitAfter<<min(e.failures-1, 20), maxReadmitDelay))
}

// recordFailure records that the mailbox has too many objects.
func (e *evictionState) recordFailure(now time.Time) {
	if now.Sub(e.lastFailure) > 2*maxReadmitDelay {
		e.failures = 0
	}
	e.failures, e.lastFailure = e.failures+1, now
}

// markEvicted records why the mailbox is evicted, and returns its least number of objects. It requires the lock.
func (u *usage) markEvicted(pending int64, limits Limits, now time.Time) int64 {
	// The pending objects of a list may be cached already.
	u.eviction.objects, u.eviction.wantedBytes, u.eviction.allowedBytes = max(pending, u.objects), max(u.fullBytes, limits.Bytes), limits.Bytes
	u.eviction.notified = false
	u.eviction.recordFailure(now)
	return u.eviction.objects
}

// takeNotification returns true once after each eviction.
func (u *usage) takeNotification() bool {
	u.lock.Lock()
	defer u.lock.Unlock()
	before := u.eviction.notified
	u.eviction.notified = true
	return !before
}

// recordFailedReadmission records that the mailbox still has too many objects.
func (u *usage) recordFailedReadmission(now time.Time) {
	u.lock.Lock()
	defer u.lock.Unlock()
	u.eviction.recordFailure(now)
}

// retryIfLimitGrew makes the next attempt due if the limit of the evicted mailbox grew. It returns false otherwise.
func (u *usage) retryIfLimitGrew(limits Limits) bool {
	u.lock.Lock()
	defer u.lock.Unlock()
	if limits.Bytes > 0 && limits.Bytes <= u.eviction.allowedBytes {
		return false
	}
	u.eviction = evictionState{objects: u.eviction.objects, wantedBytes: u.eviction.wantedBytes, allowedBytes: limits.Bytes, notified: u.eviction.notified}
	return true
}

// nextReadmission returns when to count the objects of the evicted mailbox next.
func (u *usage) nextReadmission() time.Time {
	u.lock.Lock()
	defer u.lock.Unlock()
	return u.eviction.nextAttempt()
}

// evictions evicts mailboxes, and readmits them.
type evictions struct {
	*parts
	// wake wakes run.
	wake signal
}

// evict evicts the configs of a mailbox, or its other objects. objects is their number as far as it is known.
func (e *evictions) evict(mailbox logicalcluster.Name, configs bool, objects int64) {
	limits := e.limits.of(mailbox, configs)
	usage := e.usages.lock(mailbox, configs)
	if usage.evicted.Swap(true) {
		usage.lock.Unlock()
		return
	}
	e.usages.evicted.Add(1)
	objects = usage.markEvicted(objects, limits, e.options.Clock.Now())
	usage.lock.Unlock()
	e.absences.verifier.ForgetMailbox(mailbox)
	e.options.Log.Info("evicted a mailbox with too many objects", "mailbox", mailbox, "configs", configs, "objects", objects)
	e.wake.notify()
}

// readmit ends an eviction, and lists the resources again. Until a list is complete, its objects are Unknown.
func (e *evictions) readmit(mailbox logicalcluster.Name, configs bool) {
	all, relistNumber := e.endpoints.objectInformers(configs), e.relists.last.Add(1)
	for _, informer := range all {
		informer.waiters.await(mailbox, relistNumber)
	}
	if !e.usages.endEviction(mailbox, configs) {
		// The mailbox was deleted, or readmitted in the meantime.
		for _, informer := range all {
			informer.waiters.done(mailbox, relistNumber)
		}
		return
	}
	// An object that the caches lack must not count as deleted: absences are verified only after a new list.
	e.absences.verifier.ForgetMailbox(mailbox)
	e.options.Log.Info("readmitted a mailbox that has fewer objects now", "mailbox", mailbox, "configs", configs)
	for _, informer := range all {
		informer.relist()
	}
	e.subscriptions.resetMailbox(mailbox)
}

// evictionKey identifies an eviction.
type evictionKey struct {
	mailbox logicalcluster.Name
	configs bool
}

// run handles evicted mailboxes until ctx ends: it resets their subscribers, removes their entries, and readmits them. It calls release
// for a deleted mailbox.
func (e *evictions) run(ctx context.Context, release func(logicalcluster.Name)) {
	for e.wake.wait(ctx) {
		all := e.listEvicted()
		for _, one := range all {
			if e.usages.of(one.mailbox, one.configs).takeNotification() {
				e.subscriptions.resetMailbox(one.mailbox)
			}
			e.dropFromCaches(one)
		}
		e.readmitNext(ctx, all, release)
		select {
		case <-ctx.Done():
			return
		case <-e.options.Clock.After(evictionInterval):
		}
		// A list may still be awaited: a forced relist between a list and its watch would wait for the end of that watch.
		if requestRelists(e.endpoints.informers()) || e.usages.evicted.Load() > 0 {
			e.wake.notify()
		}
	}
}

func (e *evictions) listEvicted() (all []evictionKey) {
	e.usages.each(func(mailbox logicalcluster.Name, usage *usage, configs bool) {
		if usage.evicted.Load() {
			all = append(all, evictionKey{mailbox, configs})
		}
	})
	return all
}

// dropFromCaches removes the entries of an evicted mailbox from the caches. Entries that are still in the queues of the informers
// are removed the next time.
func (e *evictions) dropFromCaches(evicted evictionKey) {
	for _, informer := range e.endpoints.objectInformers(evicted.configs) {
		for _, entry := range entriesOf(informer.shared, evicted.mailbox) {
			if one, ok := entry.(*cachedObject); ok && !one.isPlaceholder && informer.shared.GetIndexer().Delete(one) == nil {
				informer.counted.update(one, nil)
			}
		}
	}
}

// readmitNext readmits the mailbox that is due next, if its objects fit. It counts one mailbox at a time, so that new evictions do
// not wait long.
func (e *evictions) readmitNext(ctx context.Context, all []evictionKey, release func(logicalcluster.Name)) {
	var next *evictionKey
	var due time.Time
	for i, one := range all {
		if at := e.usages.of(one.mailbox, one.configs).nextReadmission(); next == nil || at.Before(due) {
			next, due = &all[i], at
		}
	}
	if next == nil || due.After(e.options.Clock.Now()) {
		return
	}
	if e.endpoints.isKnownGone(next.mailbox) {
		release(next.mailbox)
		return
	}
	fits, err := e.fitsForReadmission(ctx, *next)
	switch {
	case err != nil:
		e.options.Log.Info("cannot count the objects of an evicted mailbox, trying again", "mailbox", next.mailbox, "error", err.Error())
		fallthrough
	case !fits:
		e.usages.of(next.mailbox, next.configs).recordFailedReadmission(e.options.Clock.Now())
	default:
		e.readmit(next.mailbox, next.configs)
	}
}

// fitsForReadmission reports whether the identities of the mailbox's objects take at most 1/readmitDivisor of its limit. It lists until they
// exceed that.
func (e *evictions) fitsForReadmission(ctx context.Context, evicted evictionKey) (bool, error) {
	endpoint := e.endpoints.locate(evicted.mailbox)
	if endpoint == nil {
		return false, errors.New("no endpoint, or more than one, shows the mailbox")
	}
	ctx, cancel := context.WithTimeout(requestclass.With(ctx, requestclass.Extra), reviewTimeout)
	defer cancel()
	room := e.limits.of(evicted.mailbox, evicted.configs).Bytes / readmitDivisor
	if room == 0 {
		return true, nil
	}
	for _, informer := range endpoint.objectInformers(evicted.configs) {
		client := endpoint.clientFor(evicted.mailbox).Resource(informer.resource)
		for page, err := range transport.Pages(ctx, metav1.ListOptions{Limit: wildcardPageSize}, client.List) {
			if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
				// The mailbox does not serve the resource to the hub.
				break
			}
			if err != nil {
				return false, fmt.Errorf("cannot list %s: %w", informer.resource.Resource, err)
			}
			for i := range page.Items {
				room -= cachesize.SizeOf(informer.toIdentityOnly(&page.Items[i], mailboxLimit))
			}
			if room < 0 {
				return false, nil
			}
		}
	}
	return true, nil
}
