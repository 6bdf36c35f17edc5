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

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"

	"github.com/synchub-dev/synchub/provider/metrics/requestmetrics"
)

// ErrNotServed means that the target has no such API now.
var ErrNotServed = errors.New("the target does not serve this kind")

// discoveryCache caches which kinds and resources belong together. It is emptied when a CustomResourceDefinition changes or the
// target's health does. A result expires after servedRecheckInterval, because aggregated APIs change without a signal.
// Discovery shows a changed definition with a delay: for crdChangedPollPeriod results expire after crdChangedPollInterval.
type discoveryCache struct {
	subscribe sync.Once

	lock    sync.Mutex
	results map[lookup]lookupResult
	// generation counts how often the cache was emptied: a result that was requested before is not cached after.
	generation int
	// crdChangedAt is when a CustomResourceDefinition last changed.
	crdChangedAt time.Time
}

// maxLookups bounds the cached results of one target: users name the kinds, and may name others each day.
const maxLookups = 8192

// lookup is a kind whose resource is needed, or a resource whose kind or versions are. Fields that do not matter are empty.
type lookup struct {
	schema.GroupVersion
	kind, resource string
	// versions is true if the versions of the resource are needed.
	versions bool
}

// matches reports whether an API is the one that is looked up. Subresources have a kind too, which may be that of another
// resource. Impossible names match nothing, because names from a target go into conditions and into the cache.
func (q lookup) matches(api metav1.APIResource) bool {
	return (q.kind == "" || q.kind == api.Kind) && (q.resource == "" || q.resource == api.Name) &&
		isAPIName(api.Name) && isAPIName(strings.ToLower(api.Kind))
}

// isAPIName reports whether a string can be the name of a resource or version, or a kind in lower case.
func isAPIName(text string) bool { return len(validation.IsDNS1035Label(text)) == 0 }

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

// RESTClient is the way to what the target says of its APIs. It shares the connection's limits and ends with it; who asks
// says for how long, and what for.
func (c *Connection) RESTClient() rest.Interface { return c.discovery.RESTClient() }

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
	ctx, done := withTimeout(requestmetrics.WithClass(ctx, requestmetrics.Background), requestTimeout)
	defer done()
	found, err := c.discover(ctx, key)
	if err != nil {
		return lookupResult{}, err
	}
	c.discoveryCache.put(key, found, generation, now)
	return found, nil
}

// discover requests a result from the target: in the lookup's version, or else in all versions of its group.
func (c *Connection) discover(ctx context.Context, key lookup) (lookupResult, error) {
	if key.versions {
		versions, err := c.servedVersions(ctx, key)
		return lookupResult{versions: versions}, err
	}
	versions := []string{key.Version}
	if key.Version == "" {
		var err error
		if versions, err = c.versionsOf(ctx, key.Group); err != nil {
			return lookupResult{}, err
		}
	}
	for _, version := range versions {
		served := schema.GroupVersion{Group: key.Group, Version: version}
		var list metav1.APIResourceList
		if err := c.getDiscovery(ctx, &list, served.Group, served.Version); err != nil {
			return lookupResult{}, err
		}
		for _, api := range list.APIResources {
			if key.matches(api) {
				return lookupResult{resource: served.WithResource(api.Name), kind: api.Kind, namespaced: api.Namespaced}, nil
			}
		}
	}
	return lookupResult{}, ErrNotServed
}

// servedVersions returns the versions of a group in which a resource is served, the preferred one first. None is no error.
func (c *Connection) servedVersions(ctx context.Context, key lookup) (served []string, err error) {
	versions, err := c.versionsOf(ctx, key.Group)
	if errors.Is(err, ErrNotServed) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for _, version := range versions {
		var list metav1.APIResourceList
		switch err := c.getDiscovery(ctx, &list, key.Group, version); {
		case errors.Is(err, ErrNotServed):
			// The version was removed a moment ago.
		case err != nil:
			return nil, err
		case slices.ContainsFunc(list.APIResources, key.matches):
			served = append(served, version)
		}
	}
	return served, nil
}

// maxVersions bounds the versions of a group that are used. Each costs a request.
const maxVersions = 32

// versionsOf returns the versions of a group, the preferred one first.
func (c *Connection) versionsOf(ctx context.Context, group string) ([]string, error) {
	if group == "" {
		return []string{"v1"}, nil
	}
	var found metav1.APIGroup
	if err := c.getDiscovery(ctx, &found, group); err != nil {
		return nil, err
	}
	versions := make([]string, 0, 4)
	for _, version := range append([]metav1.GroupVersionForDiscovery{found.PreferredVersion}, found.Versions...) {
		if len(versions) < maxVersions && isAPIName(version.Version) && !slices.Contains(versions, version.Version) {
			versions = append(versions, version.Version)
		}
	}
	return versions, nil
}

// getDiscovery gets a document of discovery.
func (c *Connection) getDiscovery(ctx context.Context, into runtime.Object, group string, more ...string) error {
	segments := append([]string{"apis", group}, more...)
	if group == "" {
		segments = append([]string{"api"}, more...)
	}
	for _, segment := range segments {
		// These are from users: none of them may lead to another path.
		if segment == "" || len(content.IsPathSegmentName(segment)) > 0 {
			return ErrNotServed
		}
	}
	err := c.credentials.Error(c.discovery.RESTClient().Get().AbsPath(segments...).Do(ctx).Into(into))
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("%w: %w", ErrNotServed, err)
	}
	return err
}

func (r *discoveryCache) get(key lookup) (found lookupResult, generation int, ok bool) {
	r.lock.Lock()
	defer r.lock.Unlock()
	found, ok = r.results[key]
	return found, r.generation, ok
}

// put caches a result, unless the cache was emptied since the generation in which it was requested.
func (r *discoveryCache) put(key lookup, found lookupResult, generation int, now time.Time) {
	r.lock.Lock()
	defer r.lock.Unlock()
	if r.generation != generation {
		return
	}
	if r.results == nil {
		r.results = map[lookup]lookupResult{}
	}
	found.until = now.Add(servedRecheckInterval)
	if now.Before(r.crdChangedAt.Add(crdChangedPollPeriod)) {
		found.until = now.Add(crdChangedPollInterval)
	}
	if len(r.results) >= maxLookups {
		clear(r.results)
	}
	r.results[key] = found
}

// crdChanged empties the cache after a change of a CustomResourceDefinition.
func (r *discoveryCache) crdChanged(now time.Time) {
	r.lock.Lock()
	defer r.lock.Unlock()
	r.crdChangedAt = now
	r.resetLocked()
}

func (r *discoveryCache) reset() {
	r.lock.Lock()
	defer r.lock.Unlock()
	r.resetLocked()
}

// resetLocked empties the cache. It requires the lock.
func (r *discoveryCache) resetLocked() {
	clear(r.results)
	r.generation++
}
