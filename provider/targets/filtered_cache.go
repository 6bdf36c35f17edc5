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
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/tools/cache"

	"github.com/synchub-dev/synchub/provider/notfound"
)

// FilteredCacheOptions configure a [FilteredCache].
type FilteredCacheOptions struct {
	Scope Scope
	// Filter selects the objects to cache; it gets them without managedFields. Nil selects all.
	Filter func(*unstructured.Unstructured) bool
	// KeepRejectedMetadata keeps labels and owners of objects that the filter rejects, for [FilteredCache.RejectedMetadata].
	KeepRejectedMetadata bool
	// OnRejected is called for each object that the filter rejects, if its metadata is kept, because the filter may have
	// changed since then. It must not block.
	OnRejected func(metav1.ObjectMeta)
	// Transform changes each selected object before it is cached, possibly in place. Nil drops only the managedFields.
	Transform cache.TransformFunc
	// Handler is called for every change of a cached object: with an add when the filter starts to select the object, with a
	// delete when it stops, and with a tombstone if the deletion was not observed. Calls come from several goroutines, but all
	// calls for one object from the same goroutine.
	Handler cache.ResourceEventHandler
	// OnAvailability is called when [FilteredCache.Availability] may have changed. It must not block.
	OnAvailability func()
}

// FilteredCache caches the selected objects of one resource of a target. Of all other objects it caches only the identity.
type FilteredCache struct {
	parts
	resource schema.GroupResource
	options  FilteredCacheOptions
	// get requests one object from the target.
	get func(context.Context, types.NamespacedName) (*unstructured.Unstructured, error)

	// handlerLock orders the calls of the handler.
	handlerLock sync.Mutex

	lock    sync.RWMutex
	objects map[types.NamespacedName]*unstructured.Unstructured
	// fetched are the objects that were fetched ahead of the watch, which will show the same or a later state. For all other
	// objects, an older state from the watch is valid: the target was restored from a backup.
	fetched map[types.NamespacedName]struct{}
}

// NewFilteredCache returns a cache that is empty until [FilteredCache.Run]. Like a [Cache] it waits while the target cannot be
// read.
func (w *Watches) NewFilteredCache(resource schema.GroupVersionResource, options FilteredCacheOptions) *FilteredCache {
	filtered := &FilteredCache{resource: resource.GroupResource(), options: options, objects: map[types.NamespacedName]*unstructured.Unstructured{}, fetched: map[types.NamespacedName]struct{}{}}
	filtered.get = func(ctx context.Context, key types.NamespacedName) (*unstructured.Unstructured, error) {
		return w.objects.Get(ctx, resource, key)
	}
	for _, part := range w.sourcesFor(resource, options.Scope) {
		filtered.parts = append(filtered.parts, w.newInformer(resource, part, options.OnAvailability, filtered.transform, nil, filtered.handler()))
	}
	return filtered
}

// sourcesFor returns disjoint sources for the scope.
func (w *Watches) sourcesFor(resource schema.GroupVersionResource, scope Scope) []source {
	if scope.All {
		return []source{w.objectSource(resource, metav1.NamespaceAll)}
	}
	var parts []source
	inside := map[string]bool{}
	for _, namespace := range scope.Namespaces {
		if !inside[namespace] {
			inside[namespace] = true
			parts = append(parts, w.objectSource(resource, namespace))
		}
	}
	alone := map[types.NamespacedName]bool{}
	for _, key := range scope.Names {
		if !inside[key.Namespace] && !alone[key] {
			alone[key] = true
			parts = append(parts, w.objectSource(resource, key.Namespace).withName(key.Name))
		}
	}
	return parts
}

// Run keeps the cache in sync with the target until ctx ends.
func (f *FilteredCache) Run(ctx context.Context) {
	var running sync.WaitGroup
	for _, part := range f.parts {
		running.Go(func() { part.RunWithContext(ctx) })
	}
	running.Wait()
	<-ctx.Done()
}

// Get returns a cached object, or nil. The caller must not change it.
func (f *FilteredCache) Get(key types.NamespacedName) *unstructured.Unstructured {
	f.lock.RLock()
	defer f.lock.RUnlock()
	return f.objects[key]
}

// List returns all cached objects.
func (f *FilteredCache) List() []*unstructured.Unstructured {
	f.lock.RLock()
	defer f.lock.RUnlock()
	objects := make([]*unstructured.Unstructured, 0, len(f.objects))
	for _, object := range f.objects {
		objects = append(objects, object)
	}
	return objects
}

// RejectedMetadata returns the name, UID, labels and owners of the objects that the filter rejected. It returns none unless
// [FilteredCacheOptions.KeepRejectedMetadata] is set.
func (f *FilteredCache) RejectedMetadata() []metav1.ObjectMeta {
	if !f.options.KeepRejectedMetadata {
		return nil
	}
	var all []metav1.ObjectMeta
	for _, part := range f.parts {
		for _, item := range part.List() {
			if partial, ok := item.(*metav1.ObjectMeta); ok && f.Get(keyFor(partial)) == nil {
				all = append(all, *partial)
			}
		}
	}
	return all
}

// GetMetadata returns a cached object, or the kept metadata of one that the filter rejected, or nil.
func (f *FilteredCache) GetMetadata(key types.NamespacedName) metav1.Object {
	if object := f.Get(key); object != nil {
		return object
	}
	shown, _ := f.parts.get(key).(metav1.Object)
	return shown
}

// Fetch gets an object that the filter has begun to select, and caches it. It is no error if the object is gone.
func (f *FilteredCache) Fetch(ctx context.Context, key types.NamespacedName) error {
	found, err := f.get(ctx, key)
	if notfound.Proves(err, f.resource, key.Name) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot read %s from the target: %w", key, err)
	}
	item, err := f.transform(found)
	if err != nil {
		return err
	}
	fetched, selected := item.(matchingObject)
	if !selected {
		return nil
	}
	f.handlerLock.Lock()
	defer f.handlerLock.Unlock()
	f.lock.Lock()
	before := f.objects[key]
	// A state that the watch showed during the request takes precedence, unless it is older.
	stale := f.hasNewer(fetched.Unstructured) || before != nil && !isNewer(fetched.GetResourceVersion(), before.GetResourceVersion())
	if !stale {
		f.objects[key], f.fetched[key] = fetched.Unstructured, struct{}{}
	}
	f.lock.Unlock()
	switch {
	case stale:
	case before == nil:
		f.options.Handler.OnAdd(fetched.Unstructured, false)
	default:
		f.options.Handler.OnUpdate(before, fetched.Unstructured)
	}
	return nil
}

// hasNewer reports whether the watch has shown that an object was deleted, replaced or updated since.
func (f *FilteredCache) hasNewer(object *unstructured.Unstructured) bool {
	item := f.parts.get(keyFor(object))
	if item == nil {
		return true
	}
	shown, ok := item.(metav1.Object)
	return !ok || shown.GetUID() != object.GetUID() || isNewer(shown.GetResourceVersion(), object.GetResourceVersion())
}

// isNewer reports whether resourceVersion a is newer than b.
func isNewer(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order > 0
}

// matchingObject is a selected and transformed object. The type marks it, because an informer transforms some objects twice,
// and the transformed one may not match the filter any more.
type matchingObject struct{ *unstructured.Unstructured }

// transform returns what the informer caches: a transformed object, or a bare [metav1.ObjectMeta].
func (f *FilteredCache) transform(item any) (any, error) {
	object, ok := item.(*unstructured.Unstructured)
	if !ok {
		return item, nil
	}
	unstructured.RemoveNestedField(object.Object, "metadata", "managedFields")
	if f.options.Filter != nil && !f.options.Filter(object) {
		partial := identityMeta(object)
		if f.options.KeepRejectedMetadata {
			partial.Labels, partial.OwnerReferences = object.GetLabels(), object.GetOwnerReferences()
		}
		return &partial, nil
	}
	if f.options.Transform == nil {
		return matchingObject{object}, nil
	}
	stripped, err := f.options.Transform(object)
	if err != nil {
		return nil, err
	}
	if object, ok = stripped.(*unstructured.Unstructured); !ok {
		return nil, fmt.Errorf("%s was reduced to a %T", keyFor(item), stripped)
	}
	return matchingObject{object}, nil
}

// handler returns the handler of the informers. It decides by the cached state, because the last state of a deleted object may
// differ from the one reported before.
func (f *FilteredCache) handler() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerDetailedFuncs{
		AddFunc:    f.onAddOrUpdate,
		UpdateFunc: func(_, item any) { f.onAddOrUpdate(item, false) },
		DeleteFunc: f.onDelete,
	}
}

// onAddOrUpdate handles an event for an object that an informer has cached.
func (f *FilteredCache) onAddOrUpdate(item any, initial bool) {
	if partial, rejected := item.(*metav1.ObjectMeta); rejected && f.options.KeepRejectedMetadata && f.options.OnRejected != nil {
		defer f.options.OnRejected(*partial)
	}
	f.handlerLock.Lock()
	defer f.handlerLock.Unlock()
	before, current := f.setObject(item)
	after, selected := item.(matchingObject)
	switch {
	case !current:
	case selected && before == nil:
		f.options.Handler.OnAdd(after.Unstructured, initial)
	case selected && before.GetResourceVersion() == after.GetResourceVersion():
	// A relist reports unchanged objects too.
	case selected:
		f.options.Handler.OnUpdate(before, after.Unstructured)
	case before != nil:
		f.options.Handler.OnDelete(before)
	}
}

// setObject caches an object if it is selected, and returns the former one. It returns false if a fetched object is newer than
// the watch.
func (f *FilteredCache) setObject(item any) (before *unstructured.Unstructured, current bool) {
	key := keyFor(item)
	f.lock.Lock()
	defer f.lock.Unlock()
	before = f.objects[key]
	_, fetched := f.fetched[key]
	if shown, ok := item.(metav1.Object); ok && fetched && before != nil && before.GetUID() == shown.GetUID() && isNewer(before.GetResourceVersion(), shown.GetResourceVersion()) {
		return before, false
	}
	delete(f.fetched, key)
	if after, selected := item.(matchingObject); selected {
		f.objects[key] = after.Unstructured
	} else {
		delete(f.objects, key)
	}
	return before, true
}

// onDelete handles the deletion of an object.
func (f *FilteredCache) onDelete(item any) {
	key := keyFor(item)
	f.handlerLock.Lock()
	defer f.handlerLock.Unlock()
	f.lock.Lock()
	before := f.objects[key]
	delete(f.objects, key)
	delete(f.fetched, key)
	f.lock.Unlock()
	if before == nil {
		return
	}
	if tombstone, unseen := item.(cache.DeletedFinalStateUnknown); unseen {
		f.options.Handler.OnDelete(cache.DeletedFinalStateUnknown{Key: tombstone.Key, Obj: before})
		return
	}
	f.options.Handler.OnDelete(before)
}
