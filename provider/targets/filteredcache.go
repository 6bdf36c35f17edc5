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
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// Scope says where objects can be found: everywhere, or in the namespaces and under the names. Each of these costs a
// watch. The zero value is nowhere.
type Scope struct {
	All        bool
	Namespaces []string
	Names      []types.NamespacedName
}

// FilteredCacheOptions say what a feed holds, and whom it tells.
type FilteredCacheOptions struct {
	Scope Scope
	// Filter tells whether an object is of interest; it sees it without managedFields. Nil keeps all.
	Filter func(*unstructured.Unstructured) bool
	// KeepFilteredMetadata makes the feed remember labels and owners of what is not of interest, for [Feed.FilteredMetadata].
	KeepFilteredMetadata bool
	// OnFiltered is told of each object that is passed over, with labels and owners, if KeepFilteredMetadata are remembered: it may have
	// become of interest a moment ago. It must return at once.
	OnFiltered func(metav1.ObjectMeta)
	// Transform makes of each object that is of interest what is kept. It may change what it is given. Nil keeps all but the
	// managedFields.
	Transform cache.TransformFunc
	// Handler is told of every change of what is kept. An object that begins to be of interest is added, one that ceases to
	// be is deleted; one whose end was not seen is deleted with a tombstone. It is called from several goroutines, for one
	// object always from the same.
	Handler cache.ResourceEventHandler
	// OnAvailability is called when [Feed.Availability] may have changed. It must return at once.
	OnAvailability func()
}

// FilteredCache holds whole objects of one resource of a target. Of those that are not of interest it remembers only that they
// are there.
type FilteredCache struct {
	options   FilteredCacheOptions
	informers []*informer
	// get asks the target for one object.
	get func(context.Context, types.NamespacedName) (*unstructured.Unstructured, error)

	// handlerLock keeps the order of what the handler is told.
	handlerLock sync.Mutex

	lock    sync.RWMutex
	objects map[types.NamespacedName]*unstructured.Unstructured
}

// NewFilteredCache returns a feed that is empty until [Feed.Run]. Like a [Cache] it waits while the target cannot be read.
func (c *Connection) NewFilteredCache(resource schema.GroupVersionResource, options FilteredCacheOptions) *FilteredCache {
	filtered := &FilteredCache{options: options, objects: map[types.NamespacedName]*unstructured.Unstructured{}}
	filtered.get = func(ctx context.Context, key types.NamespacedName) (*unstructured.Unstructured, error) {
		return c.Get(ctx, resource, key)
	}
	for _, part := range c.sourcesFor(resource, options.Scope) {
		gate := c.newRequestGate(resource, options.OnAvailability)
		filtered.informers = append(filtered.informers, c.newInformer(part, gate, filtered.transform, nil, filtered.handler()))
	}
	return filtered
}

// sourcesFor returns sources that have no object in common.
func (c *Connection) sourcesFor(resource schema.GroupVersionResource, scope Scope) []source {
	if scope.All {
		return []source{c.objectSource(resource, metav1.NamespaceAll)}
	}
	var parts []source
	inside := map[string]bool{}
	for _, namespace := range scope.Namespaces {
		if !inside[namespace] {
			inside[namespace] = true
			parts = append(parts, c.objectSource(resource, namespace))
		}
	}
	alone := map[types.NamespacedName]bool{}
	for _, key := range scope.Names {
		if !inside[key.Namespace] && !alone[key] {
			alone[key] = true
			parts = append(parts, c.objectSource(resource, key.Namespace).withName(key.Name))
		}
	}
	return parts
}

// Run keeps the feed in sync with the target until ctx ends.
func (f *FilteredCache) Run(ctx context.Context) {
	var running sync.WaitGroup
	for _, informer := range f.informers {
		running.Go(func() { informer.RunWithContext(ctx) })
	}
	running.Wait()
	<-ctx.Done()
}

// HasSynced tells whether the feed was filled and the handler has been told of all that was there.
func (f *FilteredCache) HasSynced() bool {
	return !slices.ContainsFunc(f.informers, func(informer *informer) bool { return !informer.HasSynced() })
}

// WaitForCacheSync returns true when the feed is synced, false when ctx ends first.
func (f *FilteredCache) WaitForCacheSync(ctx context.Context) bool {
	return !slices.ContainsFunc(f.informers, func(informer *informer) bool { return !informer.WaitForCacheSync(ctx) })
}

// Availability tells why the target does not let the feed be filled, or kept in sync; if it is only a part of it that
// cannot be read, why that is.
func (f *FilteredCache) Availability() Availability {
	return availabilityOf(f.informers)
}

// availabilityOf returns the first that says something.
func availabilityOf(parts []*informer) Availability {
	for _, part := range parts {
		if state := part.Availability(); state != (Availability{}) {
			return state
		}
	}
	return Availability{}
}

// Get returns an object as the feed holds it, which must not be changed, or nil.
func (f *FilteredCache) Get(key types.NamespacedName) *unstructured.Unstructured {
	f.lock.RLock()
	defer f.lock.RUnlock()
	return f.objects[key]
}

// List returns all objects as the feed holds them.
func (f *FilteredCache) List() []*unstructured.Unstructured {
	f.lock.RLock()
	defer f.lock.RUnlock()
	objects := make([]*unstructured.Unstructured, 0, len(f.objects))
	for _, object := range f.objects {
		objects = append(objects, object)
	}
	return objects
}

// Len returns how many objects the feed holds.
func (f *FilteredCache) Len() int {
	f.lock.RLock()
	defer f.lock.RUnlock()
	return len(f.objects)
}

// matchingObject is an object of interest that was stripped. It has a type of its own since an informer reduces some objects
// twice, and what was stripped may be what made the object interesting.
type matchingObject struct{ *unstructured.Unstructured }

// transform makes of an object what the informer is to remember: a reduced object, or a bare [metav1.ObjectMeta].
func (f *FilteredCache) transform(item any) (any, error) {
	object, ok := item.(*unstructured.Unstructured)
	if !ok {
		return item, nil
	}
	unstructured.RemoveNestedField(object.Object, "metadata", "managedFields")
	if f.options.Filter != nil && !f.options.Filter(object) {
		partial := identityMeta(object)
		if f.options.KeepFilteredMetadata {
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
		return nil, fmt.Errorf("%s was stripped down to a %T", keyFor(item), stripped)
	}
	return matchingObject{object}, nil
}

// handler translates what an informer tells. It decides by what the feed holds: the last state of an object that is
// deleted need not be the one that was told before.
func (f *FilteredCache) handler() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerDetailedFuncs{
		AddFunc:    f.onAddOrUpdate,
		UpdateFunc: func(_, item any) { f.onAddOrUpdate(item, false) },
		DeleteFunc: f.onDelete,
	}
}

// onAddOrUpdate takes over what a watch shows of an object.
func (f *FilteredCache) onAddOrUpdate(item any, initial bool) {
	if partial, passed := item.(*metav1.ObjectMeta); passed && f.options.KeepFilteredMetadata && f.options.OnFiltered != nil {
		defer f.options.OnFiltered(*partial)
	}
	f.handlerLock.Lock()
	defer f.handlerLock.Unlock()
	before, current := f.setObject(item)
	after, interesting := item.(matchingObject)
	switch {
	case !current:
	case interesting && before == nil:
		f.options.Handler.OnAdd(after.Unstructured, initial)
	case interesting && before.GetResourceVersion() == after.GetResourceVersion():
		// A list made anew tells of all that it found again.
	case interesting:
		f.options.Handler.OnUpdate(before, after.Unstructured)
	case before != nil:
		f.options.Handler.OnDelete(before)
	}
}

// setObject keeps an object if it is of interest, and returns what was kept of its name before. It does nothing and returns
// false if the object was fetched in a state that the watch has not come to.
func (f *FilteredCache) setObject(item any) (before *unstructured.Unstructured, current bool) {
	key := keyFor(item)
	f.lock.Lock()
	defer f.lock.Unlock()
	before = f.objects[key]
	if shown, ok := item.(metav1.Object); ok && before != nil && before.GetUID() == shown.GetUID() && isNewer(before.GetResourceVersion(), shown.GetResourceVersion()) {
		return before, false
	}
	if after, interesting := item.(matchingObject); interesting {
		f.objects[key] = after.Unstructured
	} else {
		delete(f.objects, key)
	}
	return before, true
}

// onDelete drops an object that is gone.
func (f *FilteredCache) onDelete(item any) {
	key := keyFor(item)
	f.handlerLock.Lock()
	defer f.handlerLock.Unlock()
	f.lock.Lock()
	before := f.objects[key]
	delete(f.objects, key)
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
