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

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/tools/cache"
)

// CacheOptions say what a cache holds, and whom it tells.
type CacheOptions struct {
	// Selector is a label selector; "" chooses all objects.
	Selector string
	// Strip makes of each object what is kept. It may change what it is given, and may be given its own result. Nil keeps
	// all.
	Strip cache.TransformFunc
	// Handler is told of every change.
	Handler cache.ResourceEventHandler
	// Indexers make [Cache.ByIndex] find objects.
	Indexers cache.Indexers
	// OnAvailability is called after each change of [Cache.Availability]. It must return at once.
	OnAvailability func()
}

// Cache holds the objects of one resource that a label selector chooses on one target.
type Cache struct {
	informer *informer
}

// NewCache returns a cache that is empty until [Cache.Run]. While the target is down, does not serve the resource or
// does not let the hub read it, the cache waits and holds what it held.
func (c *Connection) NewCache(resource schema.GroupVersionResource, options CacheOptions) *Cache {
	all := c.objects(resource, "")
	all.labels = options.Selector
	return &Cache{c.newInformer(all, c.newGate(resource, options.OnAvailability), options.Strip, options.Indexers, options.Handler)}
}

// Run keeps the cache in step with the target until ctx ends.
func (c *Cache) Run(ctx context.Context) { c.informer.RunWithContext(ctx) }

// Synced tells whether the cache was filled and the handler has been told of all that was there.
func (c *Cache) Synced() bool { return c.informer.Synced() }

// WaitSynced returns true when the cache is synced, false when ctx ends first.
func (c *Cache) WaitSynced(ctx context.Context) bool {
	return c.informer.WaitSynced(ctx)
}

// HasReached tells whether the cache shows all that happened up to a resourceVersion of its resource. It is true, too, where
// that cannot be told.
func (c *Cache) HasReached(resourceVersion string) bool {
	order, err := resourceversion.CompareResourceVersion(c.informer.reflector.LastSyncResourceVersion(), resourceVersion)
	return err != nil || order >= 0
}

// Availability tells why the target does not let the cache be filled, or kept in step.
func (c *Cache) Availability() Availability { return c.informer.Availability() }

// Get returns an object as the cache holds it, which must not be changed, or nil.
func (c *Cache) Get(key types.NamespacedName) *unstructured.Unstructured {
	found, exists, err := c.informer.GetByKey(storeKey(key))
	if err != nil || !exists {
		return nil
	}
	return found.(*unstructured.Unstructured)
}

// storeKey is what informers call an object.
func storeKey(key types.NamespacedName) string { return cache.ObjectName(key).String() }

// ByIndex returns the objects that one of the Indexers gives the value, none if there is no such indexer.
func (c *Cache) ByIndex(indexer, value string) []*unstructured.Unstructured {
	items, err := c.informer.ByIndex(indexer, value)
	if err != nil {
		return nil
	}
	return objectsOf(items)
}

// CountIndexed returns how many values one of the Indexers gives the objects, none if there is no such indexer.
func (c *Cache) CountIndexed(indexer string) int {
	return len(c.informer.ListIndexFuncValues(indexer))
}

// List returns all objects as the cache holds them.
func (c *Cache) List() []*unstructured.Unstructured { return objectsOf(c.informer.List()) }

// Len returns how many objects the cache holds.
func (c *Cache) Len() int { return len(c.informer.ListKeys()) }

func objectsOf(items []any) []*unstructured.Unstructured {
	objects := make([]*unstructured.Unstructured, 0, len(items))
	for _, item := range items {
		objects = append(objects, item.(*unstructured.Unstructured))
	}
	return objects
}

// IsEmpty asks the target whether it holds no object that the selector chooses.
func (c *Connection) IsEmpty(ctx context.Context, resource schema.GroupVersionResource, selector string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	list, err := c.client.Resource(resource).List(ctx, metav1.ListOptions{LabelSelector: selector, Limit: 1})
	if err != nil {
		return false, fmt.Errorf("cannot list %s: %w", resource.Resource, err)
	}
	return len(list.Items) == 0, nil
}
