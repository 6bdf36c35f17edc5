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

	kcpcache "github.com/kcp-dev/apimachinery/v2/pkg/cache"
	"github.com/kcp-dev/logicalcluster/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/synchub-dev/synchub/provider/metrics/cachesize"
	"github.com/synchub-dev/synchub/provider/metrics/requestmetrics"
	"github.com/synchub-dev/synchub/provider/transport"
)

// Even an [IdentityOnly] takes memory. A mailbox whose identities alone take more than its limit of bytes is closed: nothing is held of
// its objects, or of its configs, all of them are Unknown, and nothing is proven about it. The watches of its resources go on,
// since they are those of all mailboxes; what they tell of it is dropped, and what the caches hold is taken out.
// It is opened again when its objects are found to be few enough.

const (
	// evictionInterval is how often it is found out what is to be done about closed mailboxes.
	evictionInterval = 10 * time.Second
	// readmitAfter is when the objects of a closed mailbox are counted first. It doubles each time there are too many, up to
	// reopenAtLatest, and is forgotten when the mailbox was open for as long.
	readmitAfter    = 20 * time.Second
	maxReadmitDelay = time.Hour
	// readmitDivisor is which part of the limit the identities may take that a mailbox is opened again.
	readmitDivisor = 2
)

// evictedName is the name of what stands in a cache for all objects of a closed mailbox of which a watch has told: transformation
// must make an object of an object. No object can have it.
const evictedName = "(closed)"

func newPlaceholder(mailbox logicalcluster.Name) *cachedObject {
	made := newCachedObject(&unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{
		"name": evictedName, "annotations": map[string]any{logicalcluster.AnnotationKey: mailbox.String()},
	}}}, 0)
	made.isPlaceholder = true
	return made
}

func isPlaceholder(entry any) bool {
	if tombstone, ok := entry.(cache.DeletedFinalStateUnknown); ok {
		return isPlaceholder(tombstone.Obj)
	}
	one, ok := entry.(*cachedObject)
	return ok && one.isPlaceholder
}

// evictionState is since when a mailbox is evicted, and until when.
type evictionState struct {
	// objects are how many it had at least, wanted is how many bytes those would take if others took nothing, and allowed how many
	// they might.
	objects, wantedBytes, allowedBytes int64
	// notified is true when the subscribers have been told.
	notified bool
	// failures is how often its objects were too many, and last when they were.
	failures    int
	lastFailure time.Time
}

// nextAttempt is when the mailbox's objects are counted next.
func (c *evictionState) nextAttempt() time.Time {
	if c.failures == 0 {
		return c.lastFailure
	}
	return c.lastFailure.Add(min(readmitAfter<<min(c.failures-1, 20), maxReadmitDelay))
}

// recordFailure notes that the mailbox has too many objects.
func (c *evictionState) recordFailure(now time.Time) {
	if now.Sub(c.lastFailure) > 2*maxReadmitDelay {
		c.failures = 0
	}
	c.failures, c.lastFailure = c.failures+1, now
}

// markEvicted notes why the mailbox is evicted, and returns how many objects it had at least, of which so many come. It requires that the
// lock is held.
func (a *usage) markEvicted(pending int64, limits Limits, now time.Time) int64 {
	// A list may bring what is there already.
	a.eviction.objects, a.eviction.wantedBytes, a.eviction.allowedBytes = max(pending, a.objects), max(a.fullBytes, limits.Bytes), limits.Bytes
	a.eviction.notified = false
	a.eviction.recordFailure(now)
	return a.eviction.objects
}

// takeNotification reports whether nobody has been told yet that the mailbox is evicted.
func (a *usage) takeNotification() bool {
	a.lock.Lock()
	defer a.lock.Unlock()
	before := a.eviction.notified
	a.eviction.notified = true
	return !before
}

func (a *usage) recordFailedReadmission(now time.Time) {
	a.lock.Lock()
	defer a.lock.Unlock()
	a.eviction.recordFailure(now)
}

// retryIfLimitRaised has the mailbox, which is closed, counted at once if it may take more than when it was closed.
func (a *usage) retryIfLimitRaised(limits Limits) bool {
	a.lock.Lock()
	defer a.lock.Unlock()
	if limits.Bytes > 0 && limits.Bytes <= a.eviction.allowedBytes {
		return false
	}
	a.eviction = evictionState{objects: a.eviction.objects, wantedBytes: a.eviction.wantedBytes, allowedBytes: limits.Bytes, notified: a.eviction.notified}
	return true
}

// nextReadmission is when to count the objects of the mailbox, which is closed.
func (a *usage) nextReadmission() time.Time {
	a.lock.Lock()
	defer a.lock.Unlock()
	return a.eviction.nextAttempt()
}

// isEvicted reports whether nothing is held of the configs of a mailbox, or of its other objects.
func (m *Mailboxes) isEvicted(mailbox logicalcluster.Name, configs bool) bool {
	return m.evictedCount.Load() > 0 && m.usageOf(mailbox, configs).evicted.Load()
}

// evict closes the configs of a mailbox, or its other objects, of which so many come or are there.
func (m *Mailboxes) evict(mailbox logicalcluster.Name, configs bool, objects int64) {
	limits := m.limits(mailbox, configs)
	usage := m.lockUsage(mailbox, configs)
	if usage.evicted.Swap(true) {
		usage.lock.Unlock()
		return
	}
	m.evictedCount.Add(1)
	objects = usage.markEvicted(objects, limits, m.clock.Now())
	usage.lock.Unlock()
	m.absence.ForgetMailbox(mailbox)
	m.log.Info("a mailbox has too many objects, nothing of it is held until there are fewer", "mailbox", mailbox, "configs", configs, "objects", objects)
	m.evictionSignal.notify()
}

// readmit opens what was closed. The caches are filled anew, and until they are what they lack is Unknown.
func (m *Mailboxes) readmit(mailbox logicalcluster.Name, configs bool) {
	all, opened := m.limitedInformers(configs), m.readmissions.Add(1)
	for _, informer := range all {
		informer.awaitRelist(mailbox, opened)
	}
	if !m.usageOf(mailbox, configs).evicted.Swap(false) {
		// It was evicted meanwhile.
		for _, informer := range all {
			informer.relistDone(mailbox, opened)
		}
		return
	}
	m.evictedCount.Add(-1)
	// What the caches do not hold yet must not be taken for gone: each resource is listed before anything of it is.
	m.absence.ForgetMailbox(mailbox)
	m.log.Info("a mailbox has fewer objects now and is held again", "mailbox", mailbox, "configs", configs)
	for _, informer := range all {
		informer.informer.ForceRelist()
	}
	m.notifyMailboxReset(mailbox)
}

// limitedInformers returns the watches of configs, or those of all other objects of mailboxes.
func (m *Mailboxes) limitedInformers(configs bool) (all []*wildcardInformer) {
	m.lock.RLock()
	defer m.lock.RUnlock()
	for _, endpoint := range m.endpoints {
		all = append(all, endpoint.limitedInformers(configs)...)
	}
	return all
}

// evictionKey names what is closed.
type evictionKey struct {
	mailbox logicalcluster.Name
	configs bool
}

// runEvictions does what is to be done about closed mailboxes until ctx ends.
func (m *Mailboxes) runEvictions(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-m.evictionSignal:
		}
		all := m.listEvicted()
		for _, one := range all {
			if m.usageOf(one.mailbox, one.configs).takeNotification() {
				m.notifyMailboxReset(one.mailbox)
			}
			m.dropFromCaches(one)
		}
		m.readmitNext(ctx, all)
		select {
		case <-ctx.Done():
			return
		case <-m.clock.After(evictionInterval):
		}
		if m.relistReadmitted() || m.evictedCount.Load() > 0 {
			m.evictionSignal.notify()
		}
	}
}

func (m *Mailboxes) listEvicted() (all []evictionKey) {
	m.forEachUsage(func(mailbox logicalcluster.Name, account *usage, configs bool) {
		if account.evicted.Load() {
			all = append(all, evictionKey{mailbox, configs})
		}
	})
	return all
}

// dropFromCaches takes out of the caches what they hold of what is closed. What the informers had in their queues comes later, and is taken out
// the next time.
func (m *Mailboxes) dropFromCaches(evicted evictionKey) {
	for _, informer := range m.limitedInformers(evicted.configs) {
		indexer := informer.informer.GetIndexer()
		held, _ := indexer.ByIndex(kcpcache.ClusterIndexName, kcpcache.ClusterIndexKey(evicted.mailbox))
		for _, entry := range held {
			if one, ok := entry.(*cachedObject); ok && !one.isPlaceholder && indexer.Delete(one) == nil {
				informer.updateUsage(one, nil)
			}
		}
	}
}

// readmitNext opens the mailbox whose turn it is, if its objects are few enough by now. One is counted at a time, so that the others
// that are closed do not wait long to be evicted.
func (m *Mailboxes) readmitNext(ctx context.Context, all []evictionKey) {
	var next *evictionKey
	var due time.Time
	for i, one := range all {
		if at := m.usageOf(one.mailbox, one.configs).nextReadmission(); next == nil || at.Before(due) {
			next, due = &all[i], at
		}
	}
	if next == nil || due.After(m.clock.Now()) {
		return
	}
	if m.isKnownGone(next.mailbox) {
		m.releaseMailbox(next.mailbox)
		return
	}
	fits, err := m.fitsLimits(ctx, *next)
	switch {
	case err != nil:
		m.log.Info("cannot count the objects of a mailbox that has too many, trying again", "mailbox", next.mailbox, "error", err.Error())
		fallthrough
	case !fits:
		m.usageOf(next.mailbox, next.configs).recordFailedReadmission(m.clock.Now())
	default:
		m.readmit(next.mailbox, next.configs)
	}
}

// fitsLimits lists what is closed, as far as it fits, and reports whether all does.
func (m *Mailboxes) fitsLimits(ctx context.Context, evicted evictionKey) (bool, error) {
	endpoint := m.endpointFor(evicted.mailbox)
	if endpoint == nil {
		return false, errors.New("no endpoint, or more than one, shows the mailbox")
	}
	ctx, cancel := context.WithTimeout(requestmetrics.WithClass(ctx, requestmetrics.Extra), reviewTimeout)
	defer cancel()
	room := m.limits(evicted.mailbox, evicted.configs).Bytes / readmitDivisor
	if room == 0 {
		return true, nil
	}
	for _, informer := range endpoint.limitedInformers(evicted.configs) {
		client := endpoint.clientFor(evicted.mailbox).Resource(informer.resource)
		options := metav1.ListOptions{Limit: wildcardPageSize}
		for {
			page, err := transport.ListPage(ctx, &options, client.List)
			if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
				// The mailbox does not have it, or not for the hub.
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
			if options.Continue = page.GetContinue(); options.Continue == "" {
				break
			}
			options.Limit = min(2*options.Limit, wildcardPageSize)
		}
	}
	return true, nil
}
