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
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"
)

// CacheOptions configure a [Cache].
type CacheOptions struct {
	// Namespaced is true if the objects are namespaced.
	Namespaced bool
	// Selector is a label selector; "" selects all objects.
	Selector string
	// Transform returns the cached form of an object. It may change the object in place, and may get its own result. Nil
	// changes nothing.
	Transform cache.TransformFunc
	// Handler is called for every change.
	Handler cache.ResourceEventHandler
	// Indexers are for [Cache.ByIndex].
	Indexers cache.Indexers
	// OnAvailability is called after each change of [Cache.Availability]. It must not block.
	OnAvailability func()
}

// Cache caches the objects of one resource on one target that a label selector selects. If the connection is restricted to
// namespaces, each namespace has its own part, so that an unreadable namespace does not block the rest.
type Cache struct{ parts }

// NewCache returns a cache that is empty until [Cache.Run]. While the target is down, does not serve the resource, or does not
// let the hub read it, the cache waits and keeps its content.
func (w *Watches) NewCache(resource schema.GroupVersionResource, options CacheOptions) *Cache {
	namespaces := w.namespaces.toList(options.Namespaced)
	made := &Cache{parts: make([]*informer, 0, len(namespaces))}
	for _, namespace := range namespaces {
		all := w.objectSource(resource, namespace)
		all.labelSelector = options.Selector
		made.parts = append(made.parts, w.newInformer(resource, all, options.OnAvailability, options.Transform, options.Indexers, options.Handler))
	}
	return made
}

// Run keeps the cache in sync with the target until ctx ends.
func (c *Cache) Run(ctx context.Context) {
	var others sync.WaitGroup
	defer others.Wait()
	for _, part := range c.parts[1:] {
		others.Go(func() { part.RunWithContext(ctx) })
	}
	c.parts[0].RunWithContext(ctx)
}

// Progress returns how many parts of the cache have synced, and how many may still do so. The rest is unavailable.
func (c *Cache) Progress() (filled, pending int) {
	for _, part := range c.parts {
		switch {
		case part.HasSynced():
			filled++
		case part.Availability().Reason == "":
			pending++
		}
	}
	return filled, pending
}

// OnProgress calls the function each time a part of the cache has synced, until all parts have synced or ctx ends.
func (c *Cache) OnProgress(ctx context.Context, call func()) {
	callWhenSynced := func(part *informer) {
		if part.WaitForCacheSync(ctx) {
			call()
		}
	}
	var others sync.WaitGroup
	defer others.Wait()
	for _, part := range c.parts[1:] {
		others.Go(func() { callWhenSynced(part) })
	}
	callWhenSynced(c.parts[0])
}

// HasReached reports whether the cache shows all changes in a namespace up to a resourceVersion. It returns true if that is
// unknown.
func (c *Cache) HasReached(namespace, resourceVersion string) bool {
	part := c.partOf(namespace)
	if part == nil {
		return true
	}
	order, err := resourceversion.CompareResourceVersion(part.run.Load().LastSyncResourceVersion(), resourceVersion)
	return err != nil || order >= 0
}

// partOf returns the part for a namespace; nil if there is none.
func (c *Cache) partOf(namespace string) *informer {
	if len(c.parts) == 1 {
		return c.parts[0]
	}
	position, ok := slices.BinarySearch(c.parts[0].watches.namespaces, namespace)
	if !ok {
		return nil
	}
	return c.parts[position]
}

// Object is a cached object, as the transform returned it.
type Object interface {
	metav1.Object
	UnstructuredContent() map[string]any
}

// Get returns a cached object, or nil. The caller must not change it.
func (c *Cache) Get(key types.NamespacedName) Object {
	part := c.partOf(key.Namespace)
	if part == nil {
		return nil
	}
	if found, exists, err := part.GetByKey(storeKey(key)); err == nil && exists {
		return found.(Object)
	}
	return nil
}

// storeKey returns the key of an object in an informer's store.
func storeKey(key types.NamespacedName) string { return cache.ObjectName(key).String() }

// ByIndex returns the objects that an indexer maps to the value; none if there is no such indexer.
func (c *Cache) ByIndex(indexer, value string) (objects []Object) {
	for i, part := range c.parts {
		items, err := part.ByIndex(indexer, value)
		switch {
		case err != nil:
		case i == 0:
			objects = toObjects(items)
		default:
			objects = append(objects, toObjects(items)...)
		}
	}
	return objects
}

// CountIndexValues returns the number of different values of an indexer; zero if there is no such indexer.
func (c *Cache) CountIndexValues(indexer string) int {
	if len(c.parts) == 1 {
		return len(c.parts[0].ListIndexFuncValues(indexer))
	}
	values := sets.New[string]()
	for _, part := range c.parts {
		values.Insert(part.ListIndexFuncValues(indexer)...)
	}
	return values.Len()
}

// List returns all cached objects.
func (c *Cache) List() []Object {
	objects := toObjects(c.parts[0].List())
	for _, part := range c.parts[1:] {
		objects = append(objects, toObjects(part.List())...)
	}
	return objects
}

// Len returns the number of cached objects.
func (c *Cache) Len() (count int) {
	for _, part := range c.parts {
		count += len(part.ListKeys())
	}
	return count
}

func toObjects(items []any) []Object {
	objects := make([]Object, 0, len(items))
	for _, item := range items {
		objects = append(objects, item.(Object))
	}
	return objects
}
