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

package holdings

import (
	"sync/atomic"

	"k8s.io/client-go/tools/cache"
)

// Holdings is what one cache holds. The zero value is that of an empty one.
type Holdings struct {
	objects, bytes atomic.Int64
	// whole is what several caches hold together, nil if that is not counted.
	whole *Holdings
}

// Within counts what the cache holds for a whole, too. It is called before anything is held; the result takes it out again.
// A whole may be part of a larger one.
func (h *Holdings) Within(whole *Holdings) (takeOut func()) {
	h.whole = whole
	return func() { whole.add(-h.objects.Load(), -h.bytes.Load()) }
}

// Objects returns how many objects the cache holds.
func (h *Holdings) Objects() int64 { return h.objects.Load() }

// Bytes returns about how many bytes those take.
func (h *Holdings) Bytes() int64 { return h.bytes.Load() }

// Counting returns a handler that counts what it is told and passes it on. It must be told all that the cache holds, and by
// one goroutine at a time, as informers do.
func (h *Holdings) Counting(handler cache.ResourceEventHandler) cache.ResourceEventHandler {
	return counting{h, handler}
}

type counting struct {
	held    *Holdings
	handler cache.ResourceEventHandler
}

// OnAdd implements [cache.ResourceEventHandler].
func (c counting) OnAdd(object any, initial bool) {
	c.held.Change(1, SizeOf(object))
	c.handler.OnAdd(object, initial)
}

// OnUpdate implements [cache.ResourceEventHandler].
func (c counting) OnUpdate(before, after any) {
	c.held.Change(0, SizeOf(after)-SizeOf(before))
	c.handler.OnUpdate(before, after)
}

// OnDelete implements [cache.ResourceEventHandler].
func (c counting) OnDelete(object any) {
	held := object
	if tombstone, unseen := object.(cache.DeletedFinalStateUnknown); unseen {
		held = tombstone.Obj
	}
	c.held.Change(-1, -SizeOf(held))
	c.handler.OnDelete(object)
}

// Change counts a number of objects, and of bytes, that came or went.
func (h *Holdings) Change(objects, bytes int64) {
	if h.objects.Add(objects) <= 0 {
		// The last state of an object that is deleted need not be quite the one that was held.
		bytes = -h.bytes.Swap(0)
	} else {
		h.bytes.Add(bytes)
	}
	h.whole.add(objects, bytes)
}

// add counts for a whole, and for those that it is part of.
func (h *Holdings) add(objects, bytes int64) {
	for ; h != nil; h = h.whole {
		h.objects.Add(objects)
		h.bytes.Add(bytes)
	}
}
