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
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"
)

// CacheOptions say what a cache holds, and whom it tells.
type CacheOptions struct {
	// Namespaced is true if the objects are in namespaces.
	Namespaced bool
	// Selector is a label selector; "" chooses all objects.
	Selector string
	// Transform makes of each object what is kept. It may change what it is given, and may be given its own result. Nil keeps
	// all.
	Transform cache.TransformFunc
	// Handler is told of every change.
	Handler cache.ResourceEventHandler
	// Indexers make [Cache.ByIndex] find objects.
	Indexers cache.Indexers
	// OnAvailability is called after each change of [Cache.Availability]. It must return at once.
	OnAvailability func()
}

// Cache holds the objects of one resource that a label selector chooses on one target. Where the connection is bound to
// namespaces, each of these has a part of its own, in their order: one that cannot be read does not keep the others from being known.
type Cache struct {
	parts []*informer
}

// NewCache returns a cache that is empty until [Cache.Run]. While the target is down, does not serve the resource or
// does not let the hub read it, the cache waits and holds what it held.
func (c *Connection) NewCache(resource schema.GroupVersionResource, options CacheOptions) *Cache {
	namespaces := c.WatchNamespaces(options.Namespaced)
	made := &Cache{parts: make([]*informer, 0, len(namespaces))}
	for _, namespace := range namespaces {
		all := c.objectSource(resource, namespace)
		all.labelSelector = options.Selector
		made.parts = append(made.parts, c.newInformer(all, c.newRequestGate(resource, options.OnAvailability), options.Transform, options.Indexers, options.Handler))
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

// HasSynced tells whether the cache was filled and the handler has been told of all that was there.
func (c *Cache) HasSynced() bool {
	return !slices.ContainsFunc(c.parts, func(part *informer) bool { return !part.HasSynced() })
}

// Progress returns how many parts of the cache were filled, and of how many that is not known yet. The rest cannot be.
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

// WaitForCacheSync returns true when the cache is synced, false when ctx ends first.
func (c *Cache) WaitForCacheSync(ctx context.Context) bool {
	return !slices.ContainsFunc(c.parts, func(part *informer) bool { return !part.WaitForCacheSync(ctx) })
}

// OnProgress calls told whenever a part of the cache was filled, until all are or ctx ends.
func (c *Cache) OnProgress(ctx context.Context, told func()) {
	tell := func(part *informer) {
		if part.WaitForCacheSync(ctx) {
			told()
		}
	}
	var others sync.WaitGroup
	defer others.Wait()
	for _, part := range c.parts[1:] {
		others.Go(func() { tell(part) })
	}
	tell(c.parts[0])
}

// HasReached tells whether the cache shows all that happened in a namespace up to a resourceVersion of its resource. It is true,
// too, where that cannot be told.
func (c *Cache) HasReached(namespace, resourceVersion string) bool {
	part := c.partOf(namespace)
	if part == nil {
		return true
	}
	order, err := resourceversion.CompareResourceVersion(part.reflector.LastSyncResourceVersion(), resourceVersion)
	return err != nil || order >= 0
}

// partOf returns what holds the objects of a namespace, nil if nothing does.
func (c *Cache) partOf(namespace string) *informer {
	if len(c.parts) == 1 {
		return c.parts[0]
	}
	position, ok := slices.BinarySearch(c.parts[0].connection.namespaces, namespace)
	if !ok {
		return nil
	}
	return c.parts[position]
}

// Availability tells why the target does not let the cache be filled, or kept in sync; if it is only a part of it, why that is.
func (c *Cache) Availability() Availability { return availabilityOf(c.parts) }

// Get returns an object as the cache holds it, which must not be changed, or nil.
func (c *Cache) Get(key types.NamespacedName) *unstructured.Unstructured {
	part := c.partOf(key.Namespace)
	if part == nil {
		return nil
	}
	found, exists, err := part.GetByKey(storeKey(key))
	if err != nil || !exists {
		return nil
	}
	return found.(*unstructured.Unstructured)
}

// storeKey is what informers call an object.
func storeKey(key types.NamespacedName) string { return cache.ObjectName(key).String() }

// ByIndex returns the objects that one of the Indexers gives the value, none if there is no such indexer.
func (c *Cache) ByIndex(indexer, value string) (objects []*unstructured.Unstructured) {
	for i, part := range c.parts {
		items, err := part.ByIndex(indexer, value)
		switch {
		case err != nil:
		case i == 0:
			objects = toUnstructured(items)
		default:
			objects = append(objects, toUnstructured(items)...)
		}
	}
	return objects
}

// CountIndexValues returns how many values one of the Indexers gives the objects, none if there is no such indexer.
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

// List returns all objects as the cache holds them.
func (c *Cache) List() []*unstructured.Unstructured {
	objects := toUnstructured(c.parts[0].List())
	for _, part := range c.parts[1:] {
		objects = append(objects, toUnstructured(part.List())...)
	}
	return objects
}

// Len returns how many objects the cache holds.
func (c *Cache) Len() (count int) {
	for _, part := range c.parts {
		count += len(part.ListKeys())
	}
	return count
}

func toUnstructured(items []any) []*unstructured.Unstructured {
	objects := make([]*unstructured.Unstructured, 0, len(items))
	for _, item := range items {
		objects = append(objects, item.(*unstructured.Unstructured))
	}
	return objects
}

// HasNoObjects asks the target whether it holds no object that the selector chooses in the namespaces; with none of these, in the
// whole cluster.
func (c *Connection) HasNoObjects(ctx context.Context, resource schema.GroupVersionResource, selector string, namespaces ...string) (bool, error) {
	if len(namespaces) == 0 {
		namespaces = allNamespaces
	}
	ctx, done := withTimeout(ctx, requestTimeout)
	defer done()
	for _, namespace := range namespaces {
		list, err := c.resourceClient(resource, namespace).List(ctx, metav1.ListOptions{LabelSelector: selector, Limit: 1})
		if err != nil {
			return false, fmt.Errorf("cannot list %s%s: %w", resource.Resource, inNamespace(namespace), err)
		}
		if len(list.Items) > 0 {
			return false, nil
		}
	}
	return true, nil
}
