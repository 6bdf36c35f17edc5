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
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/synchub-dev/synchub/provider/discovery"
	"github.com/synchub-dev/synchub/provider/requestclass"
)

// ErrNotServed means that the target has no such API now.
var ErrNotServed = errors.New("the target does not serve this kind")

// discoveryCache caches the mapping of kinds to resources. It is emptied when a CustomResourceDefinition or the target's health
// changes. A result expires after servedRecheckInterval, because aggregated APIs change without a signal. Discovery shows a
// changed definition with a delay: for crdChangedPollPeriod results expire after crdChangedPollInterval.
type discoveryCache struct {
	subscribe sync.Once

	lock    sync.Mutex
	results map[lookup]lookupResult
	// generation counts how often the cache was emptied: a result that was requested in an earlier generation is not cached.
	generation int
	// crdChangedAt is when a CustomResourceDefinition last changed.
	crdChangedAt time.Time
}

// maxLookups bounds the cached results of one target: users choose the kinds, and may choose new ones each day.
const maxLookups = 8192

// lookup is a kind whose resource is needed, or a resource whose kind or versions are needed. All other fields are empty.
type lookup struct {
	schema.GroupVersion
	kind, resource string
	// versions is true if the versions of the resource are needed.
	versions bool
}

// matches reports whether an API matches the lookup. A subresource has a kind too, which may be the kind of another resource.
// Invalid names never match, because names from a target are used in conditions and in the cache.
func (l lookup) matches(api metav1.APIResource) bool {
	return (l.kind == "" || l.kind == api.Kind) && (l.resource == "" || l.resource == api.Name) &&
		discovery.IsAPIName(api.Name) && discovery.IsAPIName(strings.ToLower(api.Kind))
}

type lookupResult struct {
	resource   schema.GroupVersionResource
	kind       string
	namespaced bool
	// versions are the served versions of the resource, the preferred one first.
	versions []string
	until    time.Time
}

// Resolve returns the resource of a kind, and whether it is namespaced. Without a version it takes the target's preferred
// version with the kind. The error wraps [ErrNotServed] if there is none.
func (c *Connection) Resolve(ctx context.Context, kind schema.GroupVersionKind) (resource schema.GroupVersionResource, namespaced bool, err error) {
	found, err := c.resolve(ctx, lookup{GroupVersion: kind.GroupVersion(), kind: kind.Kind})
	if err != nil {
		return schema.GroupVersionResource{}, false, fmt.Errorf("cannot resolve %s: %w", kind, err)
	}
	return found.resource, found.namespaced, nil
}

// ResolveResource returns the kind of a resource, and whether it is namespaced. Without a version it takes the target's
// preferred version with the resource. The error wraps [ErrNotServed] if there is none.
func (c *Connection) ResolveResource(ctx context.Context, resource schema.GroupVersionResource) (kind string, namespaced bool, err error) {
	found, err := c.resolve(ctx, lookup{GroupVersion: resource.GroupVersion(), resource: resource.Resource})
	if err != nil {
		return "", false, fmt.Errorf("cannot resolve %s: %w", resource, err)
	}
	return found.kind, found.namespaced, nil
}

// Discovery returns the client that asks the target which APIs it serves. The client shares the connection's limits and ends
// with the connection. Callers set a timeout, and the class of their requests, in the context.
func (c *Connection) Discovery() *discovery.Client { return c.discovery }

// resolve returns a cached result, or requests it from the target.
func (c *Connection) resolve(ctx context.Context, key lookup) (lookupResult, error) {
	if key.kind == "" && key.resource == "" {
		return lookupResult{}, ErrNotServed
	}
	c.discoveryCache.subscribe.Do(func() {
		c.Subscribe(Listener{OnCRD: func(schema.GroupResource) { c.discoveryCache.crdChanged(c.clock.Now()) }, OnSynced: c.discoveryCache.reset})
	})
	now := c.clock.Now()
	found, generation, ok := c.discoveryCache.get(key)
	if ok && now.Before(found.until) {
		return found, nil
	}
	ctx, done := withTimeout(requestclass.With(ctx, requestclass.Background), requestTimeout)
	defer done()
	found, err := c.discover(ctx, key)
	if err != nil {
		return lookupResult{}, err
	}
	c.discoveryCache.put(key, found, generation, now)
	return found, nil
}

// discover asks the target for a resource or a kind in one version, or in all versions of its group.
func (c *Connection) discover(ctx context.Context, key lookup) (lookupResult, error) {
	if key.versions {
		versions, err := c.servedVersions(ctx, key)
		return lookupResult{versions: versions}, c.discoveryError(err)
	}
	found, err := c.discovery.FindResource(ctx, key.GroupVersion, key.matches)
	if err != nil {
		return lookupResult{}, c.discoveryError(err)
	}
	resource := schema.GroupVersionResource{Group: found.Group, Version: found.Version, Resource: found.Name}
	return lookupResult{resource: resource, kind: found.Kind, namespaced: found.Namespaced}, nil
}

// servedVersions returns the versions of a group in which a resource is served, the preferred one first, or none.
func (c *Connection) servedVersions(ctx context.Context, key lookup) (served []string, err error) {
	versions, err := c.discovery.Versions(ctx, key.Group)
	if err != nil && !errors.Is(err, discovery.ErrNotServed) {
		return nil, err
	}
	for _, version := range versions {
		resources, err := c.discovery.Resources(ctx, schema.GroupVersion{Group: key.Group, Version: version})
		// The target may just have stopped to serve the version.
		if err != nil && !errors.Is(err, discovery.ErrNotServed) {
			return nil, err
		}
		if slices.ContainsFunc(resources, key.matches) {
			served = append(served, version)
		}
	}
	return served, nil
}

// discoveryError returns an error of the discovery client as an error of this package, without credentials.
func (c *Connection) discoveryError(err error) error {
	if errors.Is(err, discovery.ErrNotServed) {
		return ErrNotServed
	}
	return c.credentials.Error(err)
}

func (d *discoveryCache) get(key lookup) (found lookupResult, generation int, ok bool) {
	d.lock.Lock()
	defer d.lock.Unlock()
	found, ok = d.results[key]
	return found, d.generation, ok
}

// put caches a result, unless the cache was emptied since the generation in which it was requested.
func (d *discoveryCache) put(key lookup, found lookupResult, generation int, now time.Time) {
	d.lock.Lock()
	defer d.lock.Unlock()
	if d.generation != generation {
		return
	}
	if d.results == nil {
		d.results = map[lookup]lookupResult{}
	}
	found.until = now.Add(servedRecheckInterval)
	if now.Before(d.crdChangedAt.Add(crdChangedPollPeriod)) {
		found.until = now.Add(crdChangedPollInterval)
	}
	if len(d.results) >= maxLookups {
		clear(d.results)
	}
	d.results[key] = found
}

// crdChanged empties the cache after a change of a CustomResourceDefinition.
func (d *discoveryCache) crdChanged(now time.Time) {
	d.lock.Lock()
	defer d.lock.Unlock()
	d.crdChangedAt = now
	d.resetLocked()
}

func (d *discoveryCache) reset() {
	d.lock.Lock()
	defer d.lock.Unlock()
	d.resetLocked()
}

// resetLocked empties the cache. It requires the lock.
func (d *discoveryCache) resetLocked() {
	clear(d.results)
	d.generation++
}
