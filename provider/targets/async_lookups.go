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
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ErrPending means that the request to the target is running. [Listener.OnLookup] is called after the answer.
var ErrPending = errors.New("the request to the target is still running")

const (
	// maxConcurrentLookups bounds the lookups at one target at the same time.
	maxConcurrentLookups = 4
	// notServedCacheTTL is how long the answer "not served" is cached, unless a CustomResourceDefinition changes.
	notServedCacheTTL = 10 * time.Second
	// unreadResultTTL extends the lifetime of a result that no caller has taken.
	unreadResultTTL = time.Minute
)

// ResolveAsync is [APIs.Resolve] for callers that must not wait. It starts a lookup if the result is not cached, and
// returns [ErrPending] until the target has answered.
func (a *APIs) ResolveAsync(kind schema.GroupVersionKind) (schema.GroupVersionResource, error) {
	found, err := a.resolveAsync(lookup{GroupVersion: kind.GroupVersion(), kind: kind.Kind})
	return found.resource, resolveError(kind, err)
}

// ResolveResourceAsync is [APIs.ResolveResource] for callers that must not wait, like [APIs.ResolveAsync].
func (a *APIs) ResolveResourceAsync(resource schema.GroupVersionResource) (kind string, err error) {
	found, err := a.resolveAsync(lookup{GroupVersion: resource.GroupVersion(), resource: resource.Resource})
	return found.kind, resolveError(resource, err)
}

// ServedVersionsAsync returns the versions in which the target serves a resource, the preferred one first; none if it is not
// served. It does not wait, like [APIs.ResolveAsync]. The caller must not change the slice.
func (a *APIs) ServedVersionsAsync(resource schema.GroupResource) ([]string, error) {
	found, err := a.resolveAsync(lookup{GroupVersion: schema.GroupVersion{Group: resource.Group}, resource: resource.Resource, versions: true})
	return found.versions, resolveError(resource, err)
}

func (a *APIs) resolveAsync(key lookup) (lookupResult, error) {
	now := a.env.clock.Now()
	found, generation, ok := a.discovered.get(key)
	if ok && now.Before(found.until) {
		return found, nil
	}
	if result, ok := a.lookups.take(key, generation, now); ok {
		return result.found, result.err
	}
	if a.lookups.begin(key) {
		a.env.runInBackground(func(ctx context.Context) { a.runLookup(ctx, key) })
	}
	return lookupResult{}, ErrPending
}

// runLookup makes a lookup once fewer than maxConcurrentLookups are running.
func (a *APIs) runLookup(ctx context.Context, key lookup) {
	select {
	case a.lookups.semaphore <- struct{}{}:
		defer func() { <-a.lookups.semaphore }()
	case <-ctx.Done():
		return
	}
	_, generation, _ := a.discovered.get(key)
	found, err := a.resolve(ctx, key)
	now := a.env.clock.Now()
	a.lookups.end(key, asyncResult{found: found, err: err, generation: generation, until: now.Add(a.discovered.notServedTTL(now))})
	a.watches.listeners.call(func(listener *Listener) func() { return listener.OnLookup })
}

// asyncLookups are lookups that run in the background.
type asyncLookups struct {
	semaphore chan struct{}

	lock    sync.Mutex
	running map[lookup]struct{}
	results map[lookup]asyncResult
}

// asyncResult is the result of a lookup that began in a generation of the discovery cache.
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

// begin records that a lookup runs, and returns false if it runs already.
func (a *asyncLookups) begin(key lookup) bool {
	a.lock.Lock()
	defer a.lock.Unlock()
	_, running := a.running[key]
	a.running[key] = struct{}{}
	return !running
}

// end keeps the result of a lookup for take.
func (a *asyncLookups) end(key lookup, result asyncResult) {
	a.lock.Lock()
	defer a.lock.Unlock()
	delete(a.running, key)
	if len(a.results) >= maxLookups {
		clear(a.results)
	}
	a.results[key] = result
}

// take returns the result of a lookup; ok is false if there is none, or it is outdated. Each result is returned once, except
// [ErrNotServed], which is returned until it expires.
func (a *asyncLookups) take(key lookup, generation int, now time.Time) (result asyncResult, ok bool) {
	a.lock.Lock()
	defer a.lock.Unlock()
	result, ok = a.results[key]
	expires := result.until
	if !result.read {
		expires = expires.Add(unreadResultTTL)
	}
	delete(a.results, key)
	if !ok || result.generation != generation || !now.Before(expires) {
		return asyncResult{}, false
	}
	if errors.Is(result.err, ErrNotServed) {
		result.read = true
		a.results[key] = result
	}
	return result, true
}
