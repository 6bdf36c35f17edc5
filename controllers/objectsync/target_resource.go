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

package objectsync

import (
	"context"
	"errors"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/policy"
	"github.com/synchub-dev/synchub/controllers/plan/selection"
	"github.com/synchub-dev/synchub/controllers/plan/transform"
	"github.com/synchub-dev/synchub/provider/targets"
)

// targetResource is one of the APIs that mailbox objects can have on the target, with its caches.
type targetResource struct {
	plan.TargetAPI
	// cache holds the hub's copies.
	cache copyCache
	// takenNames watches names that objects of others have.
	takenNames *targets.NameWatch
	// watchesNames is true once takenNames runs; upsyncCache is nil while nothing of the API is upsynced; relatedScope is the
	// scope of related objects in that cache. The controller's lock guards all three.
	watchesNames bool
	upsyncCache  *upsyncCache
	relatedScope relatedWatchScope
	withLock     func(func())
}

// upsyncCache caches the objects that are upsynced under one matcher.
type upsyncCache struct {
	*targets.FilteredCache
	// scopeKey identifies the scope that the cache was started for (see [selection.Matcher.UpHash]).
	scopeKey string
	cancel   context.CancelFunc
}

// bySource indexes copies by the key of their mailbox object.
const bySource = "source"

// unverifiedIndexValue indexes the objects with the hub's label whose mark does not verify. No key has this value, since keys
// contain a slash.
const unverifiedIndexValue = "unverified"

func (c *Controller) newTargetResource(resource plan.TargetAPI) *targetResource {
	t := &targetResource{TargetAPI: resource, withLock: c.withLock}
	t.cache = copyCache{c.Connection.NewCache(resource.GroupVersionResource, targets.CacheOptions{
		Namespaced:     c.Resource.Namespaced,
		Selector:       c.selector,
		Transform:      c.transformForCache(t),
		Handler:        c.targetHandler(t),
		Indexers:       cache.Indexers{bySource: c.indexBySource},
		OnAvailability: c.onAvailabilityChanged,
	})}
	t.takenNames = c.Connection.NewNameWatch(resource.GroupVersionResource, func(key types.NamespacedName) {
		c.enqueueNameWaiters(t.Ref(key))
	})
	return t
}

func (c *Controller) withLock(do func()) {
	c.lock.Lock()
	defer c.lock.Unlock()
	do()
}

func (t *targetResource) currentUpsyncCache() (current *upsyncCache) {
	t.withLock(func() { current = t.upsyncCache })
	return current
}

// api returns the API. It is zero if target is nil.
func (t *targetResource) api() plan.TargetAPI {
	if t == nil {
		return plan.TargetAPI{}
	}
	return t.TargetAPI
}

// hasSynced reports whether the cache has synced, or the target does not serve the API.
func (t *targetResource) hasSynced() bool {
	return t.cache.HasSynced() || t.cache.Availability().Reason == targets.ReasonNotServed
}

// targetResourceFor returns the target API of a resource; nil if there is none.
func (c *Controller) targetResourceFor(resource schema.GroupResource) *targetResource {
	for _, target := range c.targetResources {
		if target.GroupResource() == resource {
			return target
		}
	}
	return nil
}

// targetResourceForKind returns the target API of a kind; nil if there is none.
func (c *Controller) targetResourceForKind(kind schema.GroupKind) *targetResource {
	for _, target := range c.targetResources {
		if target.Group == kind.Group && target.Kind == kind.Kind {
			return target
		}
	}
	return nil
}

// runNameWatch starts the watch of taken names, until the controller ends. Most controllers never need it.
func (c *Controller) runNameWatch(target *targetResource) {
	c.withLock(func() {
		if ctx := c.runContext; ctx != nil && !target.watchesNames {
			target.watchesNames = true
			c.runningTasks.Go(func() { target.takenNames.Run(ctx) })
		}
	})
}

// startUpsyncCaches starts the upsync caches, which end with ctx.
func (c *Controller) startUpsyncCaches(ctx context.Context) {
	c.withLock(func() { c.runContext = ctx })
	c.updateUpsyncCaches(c.matcher.Load())
}

// currentRunContext returns the context of the run; nil while the controller does not run.
func (c *Controller) currentRunContext() context.Context {
	c.lock.Lock()
	defer c.lock.Unlock()
	return c.runContext
}

func (c *Controller) stopUpsyncCaches() {
	c.withLock(func() { c.runContext = nil })
}

// updateUpsyncCaches replaces the upsync caches whose scope differs from the matcher's, and reports whether there were any.
func (c *Controller) updateUpsyncCaches(matcher *selection.Matcher) (changed bool) {
	for _, target := range c.targetResources {
		changed = c.updateUpsyncCache(target, matcher) || changed
	}
	return changed
}

// updateUpsyncCache replaces the upsync cache of an API if configs select another scope by now, or related objects are outside
// it.
func (c *Controller) updateUpsyncCache(target *targetResource, matcher *selection.Matcher) (changed bool) {
	selected := ""
	if c.mayUpsyncFrom(target) && matcher.SelectsUp(target.GroupResource(), target.Kind) {
		selected = matcher.UpHash(target.GroupResource(), target.Kind)
	}
	names, namespaces, all := c.relatedScope(target.GroupResource())
	admitted := c.namespacePolicy().String()
	c.withLock(func() {
		if c.runContext == nil {
			return
		}
		target.relatedScope.add(names, namespaces, all)
		key := selected
		if !target.relatedScope.isEmpty() {
			key += "/" + target.relatedScope.String()
		}
		if key != "" {
			key += "/" + admitted
		}
		if target.upsyncCache == nil && key == "" || target.upsyncCache != nil && target.upsyncCache.scopeKey == key {
			return
		}
		changed = true
		if target.upsyncCache != nil {
			target.upsyncCache.cancel()
			target.upsyncCache = nil
			c.states.removeUpsyncedResource(target.GroupResource())
		}
		if key != "" {
			target.upsyncCache = c.newUpsyncCache(target, matcher, key)
		}
	})
	return changed
}

// newUpsyncCache starts an upsync cache. The caller holds the lock.
func (c *Controller) newUpsyncCache(target *targetResource, matcher *selection.Matcher, key string) *upsyncCache {
	ctx, cancel := context.WithCancel(c.runContext)
	scope := c.Connection.RestrictScope(target.relatedScope.union(c.selectedScope(matcher, target)), c.Resource.Namespaced)
	started := &upsyncCache{scopeKey: key, cancel: cancel}
	started.FilteredCache = c.Connection.NewFilteredCache(target.GroupVersionResource, targets.FilteredCacheOptions{
		Scope: scope,
		Filter: func(object *unstructured.Unstructured) bool {
			_, ok := c.upsyncKey(target, c.matcher.Load(), object)
			return ok
		},
		KeepRejectedMetadata: !target.relatedScope.isEmpty(),
		OnRejected:           func(metadata metav1.ObjectMeta) { c.fetchIfRelated(ctx, target, metadata) },
		Handler:              c.upsyncHandler(ctx, target),
		OnAvailability:       c.onAvailabilityChanged,
	})
	c.runningTasks.Go(func() { started.Run(ctx) })
	c.runningTasks.Go(func() {
		// Upsynced objects that nothing selects any more show only now.
		if started.WaitForCacheSync(ctx) {
			c.enqueueAll()
			c.recheckInitialSync()
		}
	})
	return started
}

// upsyncKey returns the mailbox key under which a target object is upsynced. ok is false if it is not: nothing selects it, a
// hub downsynced it, or it is upsynced as another resource.
func (c *Controller) upsyncKey(target *targetResource, matcher *selection.Matcher, object *unstructured.Unstructured) (types.NamespacedName, bool) {
	if plan.IsNeverUpsynced(c.Owner, object) {
		return types.NamespacedName{}, false
	}
	selected, ok := c.observer.SelectUp(matcher, target.TargetAPI, object)
	if !ok || selected.Related == nil && selected.Conversion == nil && target.GroupResource() != c.Resource.TargetAPI().GroupResource() {
		return types.NamespacedName{}, false
	}
	name, err := c.planner.Up.Name(object, c.observer.UpSpec(selected, object))
	if err == nil {
		if err := c.observer.CheckUpsync(target.TargetAPI, keyOf(object), types.NamespacedName{Namespace: name.Namespace, Name: name.Name}); err != nil {
			// If the config's entry cannot report the denial, the object fails under the name that it has on the target.
			return keyOf(object), selected.Related != nil || ReasonFor(err) == policy.ReasonNameReserved
		}
	}
	if _, illegal := errors.AsType[*transform.InvalidObjectError](err); illegal {
		// The object fails under the name that it has on the target.
		return keyOf(object), true
	}
	if err != nil {
		return types.NamespacedName{}, false
	}
	return types.NamespacedName{Namespace: name.Namespace, Name: name.Name}, true
}

// upsyncCachesHaveSynced reports whether the hub knows which objects are upsynced.
func (c *Controller) upsyncCachesHaveSynced() bool {
	return !slices.ContainsFunc(c.targetResources, func(target *targetResource) bool {
		upsynced := target.currentUpsyncCache()
		return upsynced != nil && !upsynced.HasSynced()
	})
}

// mayUpsyncFrom reports whether configs can select objects of a target API for upsync.
func (c *Controller) mayUpsyncFrom(target *targetResource) bool {
	return !c.Resource.RelatedOnly && c.observer.CheckUpsyncSource(target.TargetAPI) == nil
}

// selectedScope returns the scope of the objects that configs select for upsync.
func (c *Controller) selectedScope(matcher *selection.Matcher, target *targetResource) selection.Scope {
	if !c.mayUpsyncFrom(target) {
		return selection.Scope{}
	}
	scope := matcher.UpScope(target.GroupResource(), target.Kind, c.Resource.Namespaced)
	// Denied objects are not read either.
	scope.Namespaces = slices.DeleteFunc(scope.Namespaces, func(name string) bool {
		return c.observer.Target.CheckNamespace(name, target.Allowed.ProtectedNamespaces) != nil
	})
	scope.Names = slices.DeleteFunc(scope.Names, func(name types.NamespacedName) bool {
		return c.observer.CheckTargetNamespace(target.TargetAPI, name) != nil
	})
	return scope
}

// targetGVK returns the kind of one of the controller's target APIs; zero if there is none.
func (c *Controller) targetGVK(resource schema.GroupResource) schema.GroupVersionKind {
	target := c.targetResourceFor(resource)
	if target == nil || target.Kind == "" {
		return schema.GroupVersionKind{}
	}
	return target.GroupVersion().WithKind(target.Kind)
}

// TargetKind returns the kind of a target API of the controller; empty if there is none.
func (c *Controller) TargetKind(resource schema.GroupResource) string {
	return c.targetGVK(resource).Kind
}
