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

package cachesize

import (
	"sync/atomic"

	"k8s.io/client-go/tools/cache"
)

// Counter counts the objects of one cache. The zero value counts an empty cache. It is safe for concurrent use.
type Counter struct {
	objects, bytes atomic.Int64
	// parent counts several caches together; nil for none.
	parent *Counter
}

// AddToParent also counts the cache in a parent, which may itself have a parent. Call it before the cache holds objects.
// The returned function subtracts the counts again.
func (h *Counter) AddToParent(whole *Counter) (takeOut func()) {
	h.parent = whole
	return func() { whole.addToAncestors(-h.objects.Load(), -h.bytes.Load()) }
}

// Objects returns the number of objects in the cache.
func (h *Counter) Objects() int64 { return h.objects.Load() }

// Bytes returns the approximate size of these objects in bytes.
func (h *Counter) Bytes() int64 { return h.bytes.Load() }

// CountingHandler returns a handler that counts all events and passes them to handler. It must receive all events of the
// cache, from one goroutine at a time, as an informer calls it.
func (h *Counter) CountingHandler(handler cache.ResourceEventHandler) cache.ResourceEventHandler {
	return countingHandler{h, handler}
}

type countingHandler struct {
	counter *Counter
	handler cache.ResourceEventHandler
}

// OnAdd implements [cache.ResourceEventHandler].
func (c countingHandler) OnAdd(object any, initial bool) {
	c.counter.Add(1, SizeOf(object))
	c.handler.OnAdd(object, initial)
}

// OnUpdate implements [cache.ResourceEventHandler].
func (c countingHandler) OnUpdate(before, after any) {
	c.counter.Add(0, SizeOf(after)-SizeOf(before))
	c.handler.OnUpdate(before, after)
}

// OnDelete implements [cache.ResourceEventHandler].
func (c countingHandler) OnDelete(object any) {
	held := object
	if tombstone, unseen := object.(cache.DeletedFinalStateUnknown); unseen {
		held = tombstone.Obj
	}
	c.counter.Add(-1, -SizeOf(held))
	c.handler.OnDelete(object)
}

// Add adds to the number of objects and bytes; negative numbers subtract.
func (h *Counter) Add(objects, bytes int64) {
	if h.objects.Add(objects) <= 0 {
		// The size of the final state of a deleted object may differ from the cached one; at zero objects the error is
		// removed.
		bytes = -h.bytes.Swap(0)
	} else {
		h.bytes.Add(bytes)
	}
	h.parent.addToAncestors(objects, bytes)
}

// addToAncestors adds to the counter and to all its ancestors.
func (h *Counter) addToAncestors(objects, bytes int64) {
	for ; h != nil; h = h.parent {
		h.objects.Add(objects)
		h.bytes.Add(bytes)
	}
}
