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
	gosync "sync"
	"sync/atomic"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/objectsync/observe"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/plan/policy"
	"github.com/synchub-dev/synchub/controllers/plan/related"
	"github.com/synchub-dev/synchub/controllers/plan/selection"
	"github.com/synchub-dev/synchub/controllers/plan/transform"
	"github.com/synchub-dev/synchub/provider/requestclass"
	"github.com/synchub-dev/synchub/provider/targets"
)

// upsyncCaches caches the objects of the target that are upsynced, and enqueues their keys. Each API with
// upsynced objects has one cache.
type upsyncCaches struct {
	resource *plan.Resource
	planner  *plan.Planner
	matcher  *atomic.Pointer[selection.Matcher]
	registry *related.Registry
	rules    *observe.Observer
	mailbox  *mailboxView
	target   *targetView
	upsynced *upsyncIndex
	enqueuer *enqueuer
	tasks    *tasks
	// onSynced is called when a cache has synced, and onAvailability when the availability of its API changes.
	onSynced, onAvailability func()
	onChange                 func()
	log                      logr.Logger

	lock    gosync.Mutex
	sources map[schema.GroupResource]*upsyncSource
}

// upsyncSource is a target API whose objects are, or were, upsynced.
type upsyncSource struct {
	plan.TargetAPI
	// cache is nil while no object of the API is to be upsynced.
	cache *upsyncCache
	// related is the scope in which the cache must list related objects.
	related relatedWatchScope
}

// upsyncCache caches the objects that are upsynced under one matcher.
type upsyncCache struct {
	*targets.FilteredCache
	// scopeKey identifies the scope of the cache (see [selection.Matcher.UpHash]).
	scopeKey string
	// context ends when the cache is replaced.
	context context.Context //nolint:containedctx // it is the lifetime of the cache
	cancel  context.CancelFunc
}

// knowsAll reports whether the cache has synced, and the API is available.
func (c *upsyncCache) knowsAll() bool { return c.HasSynced() && c.Availability().Reason == "" }

// cacheOf returns the upsync cache of a resource; nil if there is none.
func (u *upsyncCaches) cacheOf(resource schema.GroupResource) *upsyncCache {
	u.lock.Lock()
	defer u.lock.Unlock()
	if source := u.sources[resource]; source != nil {
		return source.cache
	}
	return nil
}

// cached returns an object of the target that is upsynced; nil if the cache does not have it.
func (u *upsyncCaches) cached(ref plan.Ref) *unstructured.Unstructured {
	if upsynced := u.cacheOf(ref.Resource); upsynced != nil {
		return upsynced.Get(ref.Key)
	}
	return nil
}

// sourceOf returns the target object that is upsynced under a key: the source that the mailbox object's mark names, if it is
// still upsynced, otherwise the first object; nil if there is none.
func (u *upsyncCaches) sourceOf(key types.NamespacedName, mark *ownership.Mark) (plan.TargetAPI, *unstructured.Unstructured) {
	refs := u.upsynced.refsOf(key)
	if mark != nil {
		if i := slices.Index(refs, upsyncSourceRef(*mark)); i > 0 {
			refs[0], refs[i] = refs[i], refs[0]
		}
	}
	for _, ref := range refs {
		if object := u.cached(ref); object != nil {
			return u.target.apiOf(ref.Resource), object
		}
	}
	return plan.TargetAPI{}, nil
}

// upsyncSourceRef returns the resource and key of an upsynced object's source.
func upsyncSourceRef(mark ownership.Mark) plan.Ref {
	return plan.Ref{Resource: schema.GroupResource{Group: mark.Source.Group, Resource: mark.Source.Resource}, Key: sourceKey(mark)}
}

// haveSynced reports whether all upsync caches have synced.
func (u *upsyncCaches) haveSynced() bool {
	u.lock.Lock()
	defer u.lock.Unlock()
	for _, source := range u.sources {
		if source.cache != nil && !source.cache.HasSynced() {
			return false
		}
	}
	return true
}

// update replaces the caches whose scope differs from the matcher's, and reports whether there were any.
func (u *upsyncCaches) update(matcher *selection.Matcher) (changed bool) {
	for _, api := range u.target.apis {
		changed = u.updateOne(api.TargetAPI, matcher) || changed
	}
	return changed
}

// updateOne replaces the cache of an API if its scope has changed, or related objects are outside the scope.
func (u *upsyncCaches) updateOne(api plan.TargetAPI, matcher *selection.Matcher) (changed bool) {
	ctx := u.tasks.current()
	if ctx == nil {
		return false
	}
	resource := api.GroupResource()
	key := ""
	if u.mayUpsyncFrom(api) && matcher.SelectsUp(resource, api.Kind) {
		key = matcher.UpHash(resource, api.Kind)
	}
	names, namespaces, all := u.relatedScope(resource)
	admitted := u.target.currentNamespacePolicy().String()
	u.lock.Lock()
	defer u.lock.Unlock()
	source := u.sources[resource]
	if source == nil {
		source = &upsyncSource{TargetAPI: api}
	}
	source.related.add(names, namespaces, all)
	if !source.related.isEmpty() {
		key += "/" + source.related.String()
	}
	if key != "" {
		key += "/" + admitted
	}
	if source.cache == nil && key == "" || source.cache != nil && source.cache.scopeKey == key {
		return false
	}
	if source.cache != nil {
		source.cache.cancel()
		source.cache = nil
		u.upsynced.removeResource(resource)
	}
	if key != "" {
		source.cache = u.start(ctx, source, matcher, key)
	}
	if u.sources == nil {
		u.sources = map[schema.GroupResource]*upsyncSource{}
	}
	u.sources[resource] = source
	return true
}

// start starts an upsync cache. The caller holds the lock.
func (u *upsyncCaches) start(ctx context.Context, source *upsyncSource, matcher *selection.Matcher, key string) *upsyncCache {
	api, started := source.TargetAPI, &upsyncCache{scopeKey: key}
	started.context, started.cancel = context.WithCancel(ctx)
	started.FilteredCache = u.target.connection.Watches.NewFilteredCache(api.GroupVersionResource, targets.FilteredCacheOptions{
		Scope: u.target.connection.Namespaces.Restrict(source.related.union(u.selectedScope(matcher, api)), u.resource.Namespaced),
		Filter: func(object *unstructured.Unstructured) bool {
			_, ok := u.keyFor(api, u.matcher.Load(), object)
			return ok
		},
		KeepRejectedMetadata: !source.related.isEmpty(),
		OnRejected:           func(metadata metav1.ObjectMeta) { u.fetchIfRelated(api, metadata) },
		Handler:              u.handler(started.context, api),
		OnAvailability:       u.onAvailability,
	})
	u.tasks.start(func() { started.Run(started.context) })
	u.tasks.start(func() {
		// Only now the controller knows which upsynced objects are no longer selected.
		if started.WaitForCacheSync(started.context) {
			u.onSynced()
		}
	})
	return started
}

// handler enqueues the keys of upsynced objects that change, until its cache is replaced.
func (u *upsyncCaches) handler(ctx context.Context, api plan.TargetAPI) cache.ResourceEventHandler {
	// Caches are replaced under the lock.
	whileCurrent := func(do func()) (current bool) {
		u.lock.Lock()
		defer u.lock.Unlock()
		if current = ctx.Err() == nil; current {
			do()
		}
		return current
	}
	addToIndex := func(obj any) (keys []types.NamespacedName) {
		object := obj.(*unstructured.Unstructured)
		key, ok := u.keyFor(api, u.matcher.Load(), object)
		if ok && whileCurrent(func() { u.upsynced.add(key, api.Ref(keyOf(object))) }) {
			keys = append(keys, key)
		}
		return keys
	}
	return cache.ResourceEventHandlerDetailedFuncs{
		AddFunc:    func(obj any, initial bool) { u.enqueuer.enqueueAdded(initial, addToIndex(obj)...) },
		UpdateFunc: func(_, obj any) { u.enqueuer.enqueueChanged(originTarget, changePriority, addToIndex(obj)...) },
		DeleteFunc: func(obj any) {
			tombstone, unseen := obj.(cache.DeletedFinalStateUnknown)
			if unseen {
				obj = tombstone.Obj
			}
			object := obj.(*unstructured.Unstructured)
			ref, uid := api.Ref(keyOf(object)), object.GetUID()
			// Before the workers start, no pass would drop the recorded deletion.
			started := u.enqueuer.current() != nil
			var keys []types.NamespacedName
			current := whileCurrent(func() {
				keys = u.upsynced.move(ref, types.NamespacedName{}, false)
				// Without a delete event the object may still exist: the hub asks the target before it deletes anything.
				if started && !unseen && slices.ContainsFunc(keys, u.mailbox.mayBeUpsynced) {
					u.upsynced.setSourceDeleted(ref, uid)
				}
			})
			if current {
				u.enqueuer.enqueueChanged(originTarget, changePriority, keys...)
				u.onChange()
			}
		},
	}
}

// keyFor returns the mailbox key under which a target object is upsynced. ok is false if the object is not upsynced: nothing
// selects it, a hub downsynced it, or it is upsynced as another resource.
func (u *upsyncCaches) keyFor(api plan.TargetAPI, matcher *selection.Matcher, object *unstructured.Unstructured) (key types.NamespacedName, ok bool) {
	if plan.IsNeverUpsynced(u.planner.Up.Owner, object) {
		return types.NamespacedName{}, false
	}
	selected, ok := u.rules.SelectUp(matcher, api, object)
	if !ok || selected.Related == nil && selected.Conversion == nil && api.GroupResource() != u.resource.TargetAPI().GroupResource() {
		return types.NamespacedName{}, false
	}
	name, err := u.planner.Up.Name(object, u.rules.UpSpec(selected, object))
	key = types.NamespacedName{Namespace: name.Namespace, Name: name.Name}
	if err == nil {
		if err := u.rules.CheckUpsync(api, keyOf(object), key); err != nil {
			// If the config's entry cannot report the denial, the object fails under its name on the target.
			return keyOf(object), selected.Related != nil || ReasonFor(err) == policy.ReasonNameReserved
		}
	}
	if _, illegal := errors.AsType[*transform.InvalidObjectError](err); illegal {
		// The object fails under its name on the target.
		return keyOf(object), true
	}
	return key, err == nil
}

// mayUpsyncFrom reports whether configs can select objects of a target API for upsync.
func (u *upsyncCaches) mayUpsyncFrom(api plan.TargetAPI) bool {
	return !u.resource.RelatedOnly && u.rules.CheckUpsyncSource(api) == nil
}

// selectedScope returns the scope of the objects that configs select for upsync.
func (u *upsyncCaches) selectedScope(matcher *selection.Matcher, api plan.TargetAPI) selection.Scope {
	if !u.mayUpsyncFrom(api) {
		return selection.Scope{}
	}
	scope := matcher.UpScope(api.GroupResource(), api.Kind, u.resource.Namespaced)
	// Objects that the hub denies need no watch.
	scope.Namespaces = slices.DeleteFunc(scope.Namespaces, func(name string) bool {
		return u.target.CheckNamespace(name, api.Allowed.ProtectedNamespaces) != nil
	})
	scope.Names = slices.DeleteFunc(scope.Names, func(name types.NamespacedName) bool {
		return u.rules.CheckTargetNamespace(api, name) != nil
	})
	return scope
}

// relatedScope returns the scope of the related objects of a target API.
func (u *upsyncCaches) relatedScope(resource schema.GroupResource) (names []types.NamespacedName, namespaces []string, all bool) {
	names, namespaces, all = u.registry.SourceScope(synchubv1alpha1.RelatedOriginTarget, resource)
	if u.resource.Namespaced {
		return names, namespaces, all
	}
	// Cluster-scoped objects are claimed by name alone.
	for i := range names {
		names[i].Namespace = ""
	}
	return names, nil, all || len(namespaces) > 0
}

// subscribe subscribes to changes of the primaries' claims on target objects.
func (u *upsyncCaches) subscribe() (stop func()) {
	var stops []func()
	for _, api := range u.target.apis {
		stops = append(stops, u.registry.Subscribe(synchubv1alpha1.RelatedOriginTarget, api.GroupResource(), func(change related.Change) {
			u.onRelatedChange(api.TargetAPI, change)
		}))
	}
	return func() {
		for _, stop := range stops {
			stop()
		}
	}
}

// onRelatedChange replaces the cache if the change is outside its scope. Otherwise it updates the keys of cached objects, and
// fetches rejected objects that are now related.
func (u *upsyncCaches) onRelatedChange(api plan.TargetAPI, change related.Change) {
	matcher := u.matcher.Load()
	if u.updateOne(api, matcher) {
		return
	}
	u.enqueueRelated(api, change)
	upsynced := u.cacheOf(api.GroupResource())
	if upsynced == nil {
		return
	}
	for _, object := range upsynced.List() {
		if ref := api.Ref(keyOf(object)); change.Affects(ref.Key) {
			key, ok := u.keyFor(api, matcher, object)
			u.enqueuer.enqueue(defaultPriority, u.upsynced.move(ref, key, ok)...)
		}
	}
	for _, metadata := range upsynced.RejectedMetadata() {
		if change.Affects(keyOf(&metadata)) {
			u.fetchIfRelated(api, metadata)
		}
	}
}

// onRelatedChanges calls onRelatedChange for all target APIs.
func (u *upsyncCaches) onRelatedChanges(change related.Change) {
	for _, api := range u.target.apis {
		u.onRelatedChange(api.TargetAPI, change)
	}
}

// enqueueRelated enqueues the upsynced related objects that the change affects.
func (u *upsyncCaches) enqueueRelated(api plan.TargetAPI, change related.Change) {
	objects, _ := u.mailbox.list()
	for _, object := range objects {
		mark := u.rules.UpsyncMark(object)
		if mark == nil || mark.Relation == "" {
			continue
		}
		if ref := upsyncSourceRef(*mark); ref.Resource == api.GroupResource() && change.Affects(ref.Key) {
			u.enqueuer.enqueue(defaultPriority, keyOf(object))
		}
	}
}

// fetchBackoff spaces the attempts to fetch an object. If all fail, the watch delivers the object with its next change, and
// the next cache lists it.
var fetchBackoff = wait.Backoff{Duration: retryBaseDelay, Factor: 2, Jitter: 0.1, Steps: 10}

// fetchIfRelated makes the cache fetch an object that it had rejected, if a primary claims the object now.
func (u *upsyncCaches) fetchIfRelated(api plan.TargetAPI, metadata metav1.ObjectMeta) {
	if _, selected := u.rules.SelectRelatedUp(u.matcher.Load(), api, &metadata); !selected {
		return
	}
	upsynced := u.cacheOf(api.GroupResource())
	if upsynced == nil {
		return
	}
	key := keyOf(&metadata)
	u.tasks.start(func() {
		err := wait.ExponentialBackoffWithContext(upsynced.context, fetchBackoff, func(ctx context.Context) (bool, error) {
			return upsynced.Fetch(requestclass.With(ctx, requestclass.Extra), key) == nil, nil
		})
		if err != nil && upsynced.context.Err() == nil {
			u.log.Info("cannot read a related object of the target", "object", key.String())
		}
	})
}

// knowsRelated reports whether the hub caches all related objects of a resource of the target.
func (u *upsyncCaches) knowsRelated(resource schema.GroupResource) bool {
	if upsynced := u.cacheOf(resource); upsynced != nil {
		return upsynced.knowsAll()
	}
	names, namespaces, all := u.relatedScope(resource)
	return len(names) == 0 && len(namespaces) == 0 && !all
}

// mayBeClaimed reports whether a primary claims a target object. As long as the cache is being filled, as it is after a change of configs,
// an object in the scope of the claims counts as claimed.
func (u *upsyncCaches) mayBeClaimed(matcher *selection.Matcher, api plan.TargetAPI, key types.NamespacedName) bool {
	if upsynced := u.cacheOf(api.GroupResource()); upsynced != nil && upsynced.knowsAll() {
		return u.isRelatedIn(upsynced, matcher, api, key)
	}
	var claimed relatedWatchScope
	claimed.add(u.relatedScope(api.GroupResource()))
	return claimed.contains(key)
}

// isRelated reports whether a primary claims a target object whose metadata the cache has.
func (u *upsyncCaches) isRelated(matcher *selection.Matcher, api plan.TargetAPI, key types.NamespacedName) bool {
	upsynced := u.cacheOf(api.GroupResource())
	return upsynced != nil && u.isRelatedIn(upsynced, matcher, api, key)
}

func (u *upsyncCaches) isRelatedIn(upsynced *upsyncCache, matcher *selection.Matcher, api plan.TargetAPI, key types.NamespacedName) bool {
	metadata := upsynced.GetMetadata(key)
	if metadata == nil {
		return false
	}
	_, related := u.rules.SelectRelatedUp(matcher, api, metadata)
	return related
}
