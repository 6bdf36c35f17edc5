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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/synchub-dev/synchub/provider/discovery"
	"github.com/synchub-dev/synchub/provider/notfound"
	"github.com/synchub-dev/synchub/provider/requestclass"
)

// ErrNotServed means that the target has no such API now.
var ErrNotServed = errors.New("the target does not serve this kind")

// APIs finds out which APIs a target serves.
type APIs struct {
	env        *environment
	client     *client
	watches    *Watches
	discovered *discoveryCache
	lookups    asyncLookups
	// subscribe subscribes to CustomResourceDefinitions at the first lookup.
	subscribe sync.Once
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
func (a *APIs) Resolve(ctx context.Context, kind schema.GroupVersionKind) (resource schema.GroupVersionResource, namespaced bool, err error) {
	found, err := a.resolve(ctx, lookup{GroupVersion: kind.GroupVersion(), kind: kind.Kind})
	return found.resource, found.namespaced, resolveError(kind, err)
}

// ResolveResource returns the kind of a resource, and whether it is namespaced. Without a version it takes the target's
// preferred version with the resource. The error wraps [ErrNotServed] if there is none.
func (a *APIs) ResolveResource(ctx context.Context, resource schema.GroupVersionResource) (kind string, namespaced bool, err error) {
	found, err := a.resolve(ctx, lookup{GroupVersion: resource.GroupVersion(), resource: resource.Resource})
	return found.kind, found.namespaced, resolveError(resource, err)
}

// resolveError returns an error of the resolution of a kind or resource, or nil.
func resolveError[T fmt.Stringer](of T, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("cannot resolve %s: %w", of, err)
}

// resolve returns a cached result, or requests it from the target.
func (a *APIs) resolve(ctx context.Context, key lookup) (lookupResult, error) {
	if key.kind == "" && key.resource == "" {
		return lookupResult{}, ErrNotServed
	}
	a.subscribe.Do(func() {
		a.watches.Subscribe(Listener{OnCRD: func(schema.GroupResource) { a.discovered.crdChanged(a.env.clock.Now()) }, OnSynced: a.discovered.reset})
	})
	now := a.env.clock.Now()
	found, generation, ok := a.discovered.get(key)
	if ok && now.Before(found.until) {
		return found, nil
	}
	ctx, done := withTimeout(requestclass.With(ctx, requestclass.Background), requestTimeout)
	defer done()
	found, err := a.discover(ctx, key)
	if err != nil {
		return lookupResult{}, err
	}
	a.discovered.put(key, found, generation, now)
	return found, nil
}

// discover asks the target for a resource or a kind in one version, or in all versions of its group.
func (a *APIs) discover(ctx context.Context, key lookup) (lookupResult, error) {
	if key.versions {
		versions, err := a.servedVersions(ctx, key)
		return lookupResult{versions: versions}, a.discoveryError(err)
	}
	found, err := a.client.discovery.FindResource(ctx, key.GroupVersion, key.matches)
	if err != nil {
		return lookupResult{}, a.discoveryError(err)
	}
	resource := schema.GroupVersionResource{Group: found.Group, Version: found.Version, Resource: found.Name}
	return lookupResult{resource: resource, kind: found.Kind, namespaced: found.Namespaced}, nil
}

// servedVersions returns the versions of a group in which a resource is served, the preferred one first, or none.
func (a *APIs) servedVersions(ctx context.Context, key lookup) (served []string, err error) {
	versions, err := a.client.discovery.Versions(ctx, key.Group)
	if err != nil && !errors.Is(err, discovery.ErrNotServed) {
		return nil, err
	}
	for _, version := range versions {
		resources, err := a.client.discovery.Resources(ctx, schema.GroupVersion{Group: key.Group, Version: version})
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
func (a *APIs) discoveryError(err error) error {
	if errors.Is(err, discovery.ErrNotServed) {
		return ErrNotServed
	}
	return a.client.credentials.Error(err)
}

// IsAPIRemoved reports whether a resource that the target does not serve was removed with all its objects, because its
// CustomResourceDefinition was deleted. The objects of other APIs stay in the cluster's store, and appear again with the API.
func (a *APIs) IsAPIRemoved(ctx context.Context, resource schema.GroupResource) (bool, error) {
	if isBuiltIn(resource.Group) {
		return false, nil
	}
	ctx, done := withTimeout(ctx, requestTimeout)
	defer done()
	name := resource.String()
	_, err := a.client.discovery.GetCRD(ctx, name)
	switch {
	case err == nil:
		return false, nil
	case notfound.Proves(err, crdsResource.GroupResource(), name):
		return true, nil
	case apierrors.IsForbidden(err):
		// Without the right to read CRDs, the groups decide: an API server lists the group of CRDs, and a proxy does not.
		_, err = a.client.discovery.Versions(ctx, crdsResource.Group)
		return err == nil, a.discoveryError(err)
	case errors.Is(err, discovery.ErrNotServed), apierrors.IsNotFound(err):
		return false, nil
	default:
		return false, a.client.credentials.Error(err)
	}
}

// isBuiltIn reports whether Kubernetes itself serves an API group. Such an API can be disabled.
func isBuiltIn(group string) bool {
	return !strings.Contains(group, ".") || group == crdsResource.Group || group == "apiregistration.k8s.io" || scheme.Scheme.IsGroupRegistered(group)
}

// discoveryCache caches the mapping of kinds to resources. It is emptied when a CustomResourceDefinition or the target's health
// changes. A result expires after servedRecheckInterval, because aggregated APIs change without a signal. Discovery shows a
// changed definition with a delay: for crdChangedPollPeriod results expire after crdChangedPollInterval.
type discoveryCache struct {
	lock    sync.Mutex
	results map[lookup]lookupResult
	// generation counts how often the cache was emptied: a result that was requested in an earlier generation is not cached.
	generation int
	// crdChangedAt is when a CustomResourceDefinition last changed.
	crdChangedAt time.Time
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

// notServedTTL returns how long the answer "not served" is cached.
func (d *discoveryCache) notServedTTL(now time.Time) time.Duration {
	d.lock.Lock()
	defer d.lock.Unlock()
	if now.Before(d.crdChangedAt.Add(crdChangedPollPeriod)) {
		return crdChangedPollInterval
	}
	return notServedCacheTTL
}
