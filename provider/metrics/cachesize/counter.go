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

// Counter is what one cache holds. The zero value is that of an empty one.
type Counter struct {
	objects, bytes atomic.Int64
	// parent is what several caches hold together, nil if that is not counted.
	parent *Counter
}

// AddToParent counts what the cache holds for a whole, too. It is called before anything is held; the result takes it out again.
// A whole may be part of a larger one.
func (h *Counter) AddToParent(whole *Counter) (takeOut func()) {
	h.parent = whole
	return func() { whole.addToAncestors(-h.objects.Load(), -h.bytes.Load()) }
}

// Objects returns how many objects the cache holds.
func (h *Counter) Objects() int64 { return h.objects.Load() }

// Bytes returns about how many bytes those take.
func (h *Counter) Bytes() int64 { return h.bytes.Load() }

// CountingHandler returns a handler that counts what it is told and passes it on. It must be told all that the cache holds, and by
// one goroutine at a time, as informers do.
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

// Add counts a number of objects, and of bytes, that came or went.
func (h *Counter) Add(objects, bytes int64) {
	if h.objects.Add(objects) <= 0 {
		// The last state of an object that is deleted need not be quite the one that was held.
		bytes = -h.bytes.Swap(0)
	} else {
		h.bytes.Add(bytes)
	}
	h.parent.addToAncestors(objects, bytes)
}

// addToAncestors counts for a whole, and for those that it is part of.
func (h *Counter) addToAncestors(objects, bytes int64) {
	for ; h != nil; h = h.parent {
		h.objects.Add(objects)
		h.bytes.Add(bytes)
	}
}
