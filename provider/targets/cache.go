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
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// Cache holds the objects of one resource that a label selector chooses on one target.
type Cache struct {
	informer cache.SharedIndexInformer
	handlers cache.ResourceEventHandlerRegistration
}

// NewCache returns a cache that keeps of each object what strip leaves and tells the handler of every change. It is empty
// until [Cache.Run]. While the target is down it waits instead of asking.
func (c *Connection) NewCache(resource schema.GroupVersionResource, selector string, strip cache.TransformFunc, handler cache.ResourceEventHandler) (*Cache, error) {
	client := c.client.Resource(resource)
	informer := cache.NewSharedIndexInformer(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			if err := c.WaitUp(ctx); err != nil {
				return nil, err
			}
			options.LabelSelector = selector
			return client.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			if err := c.WaitUp(ctx); err != nil {
				return nil, err
			}
			options.LabelSelector = selector
			return client.Watch(ctx, options)
		},
	}, &unstructured.Unstructured{}, 0, cache.Indexers{})
	log := c.log.WithValues("resource", resource.String())
	if err := informer.SetTransform(strip); err != nil {
		return nil, fmt.Errorf("cannot cache %s: %w", resource, err)
	}
	if err := informer.SetWatchErrorHandlerWithContext(func(ctx context.Context, _ *cache.Reflector, err error) {
		if ctx.Err() == nil {
			log.V(1).Info("the watch ended and will be taken up again", "error", err.Error())
			c.Doubt()
		}
	}); err != nil {
		return nil, fmt.Errorf("cannot cache %s: %w", resource, err)
	}
	handlers, err := informer.AddEventHandler(handler)
	if err != nil {
		return nil, fmt.Errorf("cannot cache %s: %w", resource, err)
	}
	return &Cache{informer: informer, handlers: handlers}, nil
}

// Run keeps the cache in step with the target until ctx ends.
func (c *Cache) Run(ctx context.Context) { c.informer.RunWithContext(ctx) }

// Synced tells whether the cache was filled and the handler has been told of all that was there.
func (c *Cache) Synced() bool { return c.handlers.HasSynced() }

// WaitSynced returns true when the cache is synced, false when ctx ends first.
func (c *Cache) WaitSynced(ctx context.Context) bool {
	return cache.WaitForCacheSync(ctx.Done(), c.handlers.HasSynced)
}

// Get returns an object as the cache holds it, which must not be changed, or nil.
func (c *Cache) Get(key types.NamespacedName) *unstructured.Unstructured {
	name := key.Name
	if key.Namespace != "" {
		name = key.Namespace + "/" + key.Name
	}
	found, exists, err := c.informer.GetStore().GetByKey(name)
	if err != nil || !exists {
		return nil
	}
	return found.(*unstructured.Unstructured)
}

// List returns all objects as the cache holds them.
func (c *Cache) List() []*unstructured.Unstructured {
	items := c.informer.GetStore().List()
	objects := make([]*unstructured.Unstructured, 0, len(items))
	for _, item := range items {
		objects = append(objects, item.(*unstructured.Unstructured))
	}
	return objects
}

// Len returns how many objects the cache holds.
func (c *Cache) Len() int { return len(c.informer.GetStore().ListKeys()) }

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
