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

package targets

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ErrPending means that the target is being asked. Listeners are told when it has answered.
var ErrPending = errors.New("the target is being asked")

const (
	// maxConcurrentLookups is how many questions wait for one target at the same time.
	maxConcurrentLookups = 4
	// notServedCacheTTL is for how long it is remembered that something is not served, unless a definition changes.
	notServedCacheTTL = 10 * time.Second
	// unreadResultTTL is how late an answer may be asked for that nobody was told yet.
	unreadResultTTL = time.Minute
)

// ResolveAsync is [Connection.Resolve] for whoever must not wait for the target: what is not known is asked for, and the error
// is [ErrPending] until the target has answered.
func (c *Connection) ResolveAsync(kind schema.GroupVersionKind) (schema.GroupVersionResource, error) {
	found, err := c.resolveAsync(lookup{GroupVersion: kind.GroupVersion(), kind: kind.Kind})
	if err != nil {
		return schema.GroupVersionResource{}, fmt.Errorf("cannot resolve %s: %w", kind, err)
	}
	return found.resource, nil
}

// ResolveResourceAsync is [Connection.ResolveResource] in the same way.
func (c *Connection) ResolveResourceAsync(resource schema.GroupVersionResource) (kind string, err error) {
	found, err := c.resolveAsync(lookup{GroupVersion: resource.GroupVersion(), resource: resource.Resource})
	if err != nil {
		return "", fmt.Errorf("cannot resolve %s: %w", resource, err)
	}
	return found.kind, nil
}

// ServedVersionsAsync returns, in the same way, the versions in which the target serves a resource, the preferred one first; none if
// it does not serve it. The slice must not be changed.
func (c *Connection) ServedVersionsAsync(resource schema.GroupResource) ([]string, error) {
	found, err := c.resolveAsync(lookup{GroupVersion: schema.GroupVersion{Group: resource.Group}, resource: resource.Resource, versions: true})
	if err != nil {
		return nil, fmt.Errorf("cannot find out in which versions %s is served: %w", resource, err)
	}
	return found.versions, nil
}

func (c *Connection) resolveAsync(key lookup) (lookupResult, error) {
	now := c.clock.Now()
	found, drops, ok := c.discoveryCache.get(key)
	if ok && now.Before(found.until) {
		return found, nil
	}
	if result, ok := c.lookups.take(key, drops, now); ok {
		return result.found, result.err
	}
	if c.lookups.begin(key) {
		c.RunInBackground(func(ctx context.Context) { c.runLookup(ctx, key) })
	}
	return lookupResult{}, ErrPending
}

// runLookup asks the target, when its turn has come.
func (c *Connection) runLookup(ctx context.Context, key lookup) {
	select {
	case c.lookups.semaphore <- struct{}{}:
		defer func() { <-c.lookups.semaphore }()
	case <-ctx.Done():
		return
	}
	_, drops, _ := c.discoveryCache.get(key)
	found, err := c.resolve(ctx, key)
	c.lookups.end(key, asyncResult{found: found, err: err, generation: drops, until: c.clock.Now().Add(c.discoveryCache.notServedTTL(c.clock.Now()))})
	c.notifier.notify(func(listener *Listener) {
		if listener.OnLookup != nil {
			listener.OnLookup()
		}
	})
}

// notServedTTL returns for how long it is remembered that something is not served.
func (r *discoveryCache) notServedTTL(now time.Time) time.Duration {
	r.lock.Lock()
	defer r.lock.Unlock()
	if now.Before(r.crdChangedAt.Add(crdChangedPollPeriod)) {
		return crdChangedPollInterval
	}
	return notServedCacheTTL
}

// asyncLookups are questions that nobody waits for.
type asyncLookups struct {
	semaphore chan struct{}

	lock    sync.Mutex
	running map[lookup]struct{}
	results map[lookup]asyncResult
}

// asyncResult is what the target said when drops were counted by the resolutions.
type asyncResult struct {
	found      lookupResult
	err        error
	generation int
	until      time.Time
	read       bool
}

func newAsyncLookups() asyncLookups {
	return asyncLookups{semaphore: make(chan struct{}, maxConcurrentLookups), running: map[lookup]struct{}{}, results: map[lookup]asyncResult{}}
}

// begin notes that a question is being asked, and reports whether it was not before.
func (q *asyncLookups) begin(key lookup) bool {
	q.lock.Lock()
	defer q.lock.Unlock()
	_, asking := q.running[key]
	q.running[key] = struct{}{}
	return !asking
}

func (q *asyncLookups) end(key lookup, answer asyncResult) {
	q.lock.Lock()
	defer q.lock.Unlock()
	delete(q.running, key)
	if len(q.results) >= maxLookups {
		clear(q.results)
	}
	q.results[key] = answer
}

// take returns what was said; ok is false if it is to be asked. An answer is given once, unless it is too old to be true any more, and
// that something is not served also for a while after.
func (q *asyncLookups) take(key lookup, drops int, now time.Time) (answer asyncResult, ok bool) {
	q.lock.Lock()
	defer q.lock.Unlock()
	answer, ok = q.results[key]
	expires := answer.until
	if !answer.read {
		expires = expires.Add(unreadResultTTL)
	}
	if !ok || answer.generation != drops || !now.Before(expires) {
		delete(q.results, key)
		return asyncResult{}, false
	}
	if errors.Is(answer.err, ErrNotServed) {
		answer.read = true
		q.results[key] = answer
	} else {
		delete(q.results, key)
	}
	return answer, true
}
