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
	"fmt"
	"time"

	kcpcache "github.com/kcp-dev/apimachinery/v2/pkg/cache"
	"github.com/kcp-dev/logicalcluster/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/synchub-dev/synchub/provider/holdings"
	"github.com/synchub-dev/synchub/provider/requests"
	"github.com/synchub-dev/synchub/provider/transport"
)

// Even an [Identity] takes memory. A mailbox whose identities alone take more than its limit of bytes is closed: nothing is held of
// its objects, or of its configs, all of them are Unknown, and nothing is proven about it. The watches of its resources go on,
// since they are those of all mailboxes; what they tell of it is dropped, and what the caches hold is taken out.
// It is opened again when its objects are found to be few enough.

const (
	// closurePause is how often it is found out what is to be done about closed mailboxes.
	closurePause = 10 * time.Second
	// reopenAfter is when the objects of a closed mailbox are counted first. It doubles each time there are too many, up to
	// reopenAtLatest, and is forgotten when the mailbox was open for as long.
	reopenAfter    = 20 * time.Second
	reopenAtLatest = time.Hour
	// reopenShare is which part of the limit the identities may take that a mailbox is opened again.
	reopenShare = 2
)

// placeholder is the name of what stands in a cache for all objects of a closed mailbox of which a watch has told: transformation
// must make an object of an object. No object can have it.
const placeholder = "(closed)"

func placeholderIn(mailbox logicalcluster.Name) *item {
	made := newItem(&unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{
		"name": placeholder, "annotations": map[string]any{logicalcluster.AnnotationKey: mailbox.String()},
	}}}, 0)
	made.isPlaceholder = true
	return made
}

func isPlaceholder(entry any) bool {
	if tombstone, ok := entry.(cache.DeletedFinalStateUnknown); ok {
		return isPlaceholder(tombstone.Obj)
	}
	one, ok := entry.(*item)
	return ok && one.isPlaceholder
}

// closure is since when a mailbox is closed, and until when.
type closure struct {
	// objects are how many it had at least, wanted is how many bytes those would take if others took nothing, and allowed how many
	// they might.
	objects, wanted, allowed int64
	// announced is true when the subscribers have been told.
	announced bool
	// times is how often its objects were too many, and last when they were.
	times int
	last  time.Time
}

// due is when the mailbox's objects are counted next.
func (c *closure) due() time.Time {
	if c.times == 0 {
		return c.last
	}
	return c.last.Add(min(reopenAfter<<min(c.times-1, 20), reopenAtLatest))
}

// exceeded notes that the mailbox has too many objects.
func (c *closure) exceeded(now time.Time) {
	if now.Sub(c.last) > 2*reopenAtLatest {
		c.times = 0
	}
	c.times, c.last = c.times+1, now
}

// close notes why the mailbox is closed, and returns how many objects it had at least, of which so many come. It requires that the
// lock is held.
func (a *account) close(coming int64, limits Limits, now time.Time) int64 {
	// A list may bring what is there already.
	a.closure.objects, a.closure.wanted, a.closure.allowed = max(coming, a.objects), max(a.wholeBytes, limits.Bytes), limits.Bytes
	a.closure.announced = false
	a.closure.exceeded(now)
	return a.closure.objects
}

// announce tells whether nobody has been told yet that the mailbox is closed.
func (a *account) announce() bool {
	a.lock.Lock()
	defer a.lock.Unlock()
	before := a.closure.announced
	a.closure.announced = true
	return !before
}

func (a *account) stillExceeds(now time.Time) {
	a.lock.Lock()
	defer a.lock.Unlock()
	a.closure.exceeded(now)
}

// reconsider has the mailbox, which is closed, counted at once if it may take more than when it was closed.
func (a *account) reconsider(limits Limits) bool {
	a.lock.Lock()
	defer a.lock.Unlock()
	if limits.Bytes > 0 && limits.Bytes <= a.closure.allowed {
		return false
	}
	a.closure = closure{objects: a.closure.objects, wanted: a.closure.wanted, allowed: limits.Bytes, announced: a.closure.announced}
	return true
}

// due is when to count the objects of the mailbox, which is closed.
func (a *account) due() time.Time {
	a.lock.Lock()
	defer a.lock.Unlock()
	return a.closure.due()
}

// isClosed tells whether nothing is held of the configs of a mailbox, or of its other objects.
func (m *Mailboxes) isClosed(mailbox logicalcluster.Name, configs bool) bool {
	return m.closed.Load() > 0 && m.accountOf(mailbox, configs).closed.Load()
}

// close closes the configs of a mailbox, or its other objects, of which so many come or are there.
func (m *Mailboxes) close(mailbox logicalcluster.Name, configs bool, objects int64) {
	limits := m.limits(mailbox, configs)
	account := m.openAccount(mailbox, configs)
	if account.closed.Swap(true) {
		account.lock.Unlock()
		return
	}
	m.closed.Add(1)
	objects = account.close(objects, limits, m.clock.Now())
	account.lock.Unlock()
	m.prover.forget(mailbox)
	m.log.Info("a mailbox has too many objects, nothing of it is held until there are fewer", "mailbox", mailbox, "configs", configs, "objects", objects)
	m.closing.awaken()
}

// open opens what was closed. The caches are filled anew, and until they are what they lack is Unknown.
func (m *Mailboxes) open(mailbox logicalcluster.Name, configs bool) {
	all, opened := m.limited(configs), m.openings.Add(1)
	for _, watching := range all {
		watching.awaitList(mailbox, opened)
	}
	if !m.accountOf(mailbox, configs).closed.Swap(false) {
		// It was let go of meanwhile.
		for _, watching := range all {
			watching.stopAwaiting(mailbox, opened)
		}
		return
	}
	m.closed.Add(-1)
	// What the caches do not hold yet must not be taken for gone: each resource is listed before anything of it is.
	m.prover.forget(mailbox)
	m.log.Info("a mailbox has fewer objects now and is held again", "mailbox", mailbox, "configs", configs)
	for _, watching := range all {
		watching.informer.ForceRelist()
	}
	m.resetMailbox(mailbox)
}

// limited returns the watches of configs, or those of all other objects of mailboxes.
func (m *Mailboxes) limited(configs bool) (all []*watching) {
	m.lock.RLock()
	defer m.lock.RUnlock()
	for _, endpoint := range m.endpoints {
		all = append(all, endpoint.limited(configs)...)
	}
	return all
}

// closureOf names what is closed.
type closureOf struct {
	mailbox logicalcluster.Name
	configs bool
}

// runClosures does what is to be done about closed mailboxes until ctx ends.
func (m *Mailboxes) runClosures(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-m.closing:
		}
		all := m.closures()
		for _, one := range all {
			if m.accountOf(one.mailbox, one.configs).announce() {
				m.resetMailbox(one.mailbox)
			}
			m.evict(one)
		}
		m.reopen(ctx, all)
		select {
		case <-ctx.Done():
			return
		case <-m.clock.After(closurePause):
		}
		if m.relistOpened() || m.closed.Load() > 0 {
			m.closing.awaken()
		}
	}
}

func (m *Mailboxes) closures() (all []closureOf) {
	m.eachAccount(func(mailbox logicalcluster.Name, account *account, configs bool) {
		if account.closed.Load() {
			all = append(all, closureOf{mailbox, configs})
		}
	})
	return all
}

// evict takes out of the caches what they hold of what is closed. What the informers had in their queues comes later, and is taken out
// the next time.
func (m *Mailboxes) evict(closed closureOf) {
	for _, watching := range m.limited(closed.configs) {
		indexer := watching.informer.GetIndexer()
		held, _ := indexer.ByIndex(kcpcache.ClusterIndexName, kcpcache.ClusterIndexKey(closed.mailbox))
		for _, entry := range held {
			if one, ok := entry.(*item); ok && !one.isPlaceholder && indexer.Delete(one) == nil {
				watching.count(one, nil)
			}
		}
	}
}

// reopen opens the mailbox whose turn it is, if its objects are few enough by now. One is counted at a time, so that the others
// that are closed do not wait long to be evicted.
func (m *Mailboxes) reopen(ctx context.Context, all []closureOf) {
	var next *closureOf
	var due time.Time
	for i, one := range all {
		if at := m.accountOf(one.mailbox, one.configs).due(); next == nil || at.Before(due) {
			next, due = &all[i], at
		}
	}
	if next == nil || due.After(m.clock.Now()) {
		return
	}
	if m.isGone(next.mailbox) {
		m.letGo(next.mailbox)
		return
	}
	fits, err := m.fits(ctx, *next)
	switch {
	case err != nil:
		m.log.Info("cannot count the objects of a mailbox that has too many, trying again", "mailbox", next.mailbox, "error", err.Error())
		fallthrough
	case !fits:
		m.accountOf(next.mailbox, next.configs).stillExceeds(m.clock.Now())
	default:
		m.open(next.mailbox, next.configs)
	}
}

// fits lists what is closed, as far as it fits, and tells whether all does.
func (m *Mailboxes) fits(ctx context.Context, closed closureOf) (bool, error) {
	endpoint := m.locate(closed.mailbox)
	if endpoint == nil {
		return false, errNotShown
	}
	ctx, cancel := context.WithTimeout(requests.As(ctx, requests.Extra), reviewTimeout)
	defer cancel()
	room := m.limits(closed.mailbox, closed.configs).Bytes / reopenShare
	if room == 0 {
		return true, nil
	}
	for _, watching := range endpoint.limited(closed.configs) {
		client := endpoint.in(closed.mailbox).Resource(watching.resource)
		options := metav1.ListOptions{Limit: wildcardPage}
		for {
			page, err := transport.Page(ctx, &options, client.List)
			if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
				// The mailbox does not have it, or not for the hub.
				break
			}
			if err != nil {
				return false, fmt.Errorf("cannot list %s: %w", watching.resource.Resource, err)
			}
			for i := range page.Items {
				room -= holdings.SizeOf(watching.identityOf(&page.Items[i], byMailbox))
			}
			if room < 0 {
				return false, nil
			}
			if options.Continue = page.GetContinue(); options.Continue == "" {
				break
			}
			options.Limit = min(2*options.Limit, wildcardPage)
		}
	}
	return true, nil
}
