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

package mailboxes

import (
	"strconv"

	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
)

// A mailbox that is opened again is not in the caches yet: they hold none of its objects, or few. Until a resource has been listed
// since, all of it is Unknown. Such a list ends with one item more for each mailbox that waits for it. An informer hands on what it
// is given in order; so when that item has come, the cache holds what the list has brought.

// endOfListName is the name of that item. No object can have it.
const endOfListName = "(listed)"

// newEndOfList returns the item that ends a list for a mailbox, which was opened at that time.
func newEndOfList(mailbox logicalcluster.Name, opened uint64) *cachedObject {
	made := newPlaceholder(mailbox)
	metadata := metadataFields(made.current.Load())
	metadata["name"], metadata["resourceVersion"] = endOfListName, strconv.FormatUint(opened, 10)
	return made
}

// awaitRelist has all that the watch tells of a mailbox be Unknown until a list has come that begins after this. The time is a
// number that no other opening has.
func (w *wildcardInformer) awaitRelist(mailbox logicalcluster.Name, opened uint64) {
	w.awaitingRelistLock.Lock()
	defer w.awaitingRelistLock.Unlock()
	if _, waits := w.awaitingRelist[mailbox]; !waits {
		w.endpoint.owner.awaitingRelist.Add(1)
	}
	if w.awaitingRelist == nil {
		w.awaitingRelist = map[logicalcluster.Name]uint64{}
	}
	w.awaitingRelist[mailbox] = opened
}

// relistDone ends that. It reports whether the mailbox waited for a list since that time, or with zero since any.
func (w *wildcardInformer) relistDone(mailbox logicalcluster.Name, opened uint64) bool {
	w.awaitingRelistLock.Lock()
	defer w.awaitingRelistLock.Unlock()
	since, waits := w.awaitingRelist[mailbox]
	if !waits || opened != 0 && opened != since {
		return false
	}
	delete(w.awaitingRelist, mailbox)
	w.endpoint.owner.awaitingRelist.Add(-1)
	return true
}

// isAwaitingRelist reports whether it is unknown what there is of the resource in a mailbox, because that was opened and not listed since.
func (e *endpoint) isAwaitingRelist(resource schema.GroupVersionResource, mailbox logicalcluster.Name) bool {
	e.lock.RLock()
	w := e.informers[resource]
	e.lock.RUnlock()
	if w == nil {
		return false
	}
	w.awaitingRelistLock.Lock()
	defer w.awaitingRelistLock.Unlock()
	_, waits := w.awaitingRelist[mailbox]
	return waits
}

// endOfListMarkers returns the items that end a list that begins now.
func (w *wildcardInformer) endOfListMarkers() (ends []*cachedObject) {
	w.awaitingRelistLock.Lock()
	defer w.awaitingRelistLock.Unlock()
	for mailbox, opened := range w.awaitingRelist {
		ends = append(ends, newEndOfList(mailbox, opened))
	}
	return ends
}

// cancelRelists is for a watch that ends.
func (w *wildcardInformer) cancelRelists() {
	for _, end := range w.endOfListMarkers() {
		w.relistDone(mailboxOf(end.current.Load()), 0)
	}
}

// onPlaceholder takes a placeholder that has come to the handler. Where that ends a list all is known that the list has brought.
func (w *wildcardInformer) onPlaceholder(placeholder *cachedObject) {
	object := placeholder.current.Load()
	if object.GetName() != endOfListName {
		return
	}
	_ = w.informer.GetIndexer().Delete(placeholder)
	mailbox := mailboxOf(object)
	if opened, err := strconv.ParseUint(object.GetResourceVersion(), 10, 64); err != nil || !w.relistDone(mailbox, opened) {
		return
	}
	w.log.V(1).Info("a mailbox that was opened again is listed", "mailbox", mailbox)
	notifyReset(w.endpoint.owner.subscribers.get(subscriptionKey{w.resource, mailbox}))
	w.endpoint.owner.EnqueueReview(mailbox)
}

// relistReadmitted has listed anew what is still awaited: a relist that is asked for between a list and its watch waits for the end of
// that watch. It reports whether there is something.
func (m *Mailboxes) relistReadmitted() (waits bool) {
	for _, configs := range []bool{true, false} {
		for _, w := range m.limitedInformers(configs) {
			if len(w.endOfListMarkers()) > 0 {
				w.informer.ForceRelist()
				waits = true
			}
		}
	}
	return waits
}

// placeholderFilter hands on what is told of objects.
type placeholderFilter struct {
	cache.ResourceEventHandler
	informer *wildcardInformer
}

// OnAdd implements [cache.ResourceEventHandler].
func (h placeholderFilter) OnAdd(obj any, initial bool) {
	if isPlaceholder(obj) {
		h.informer.onPlaceholder(obj.(*cachedObject))
		return
	}
	h.ResourceEventHandler.OnAdd(obj, initial)
}

// OnUpdate implements [cache.ResourceEventHandler].
func (h placeholderFilter) OnUpdate(old, obj any) {
	if isPlaceholder(obj) {
		h.informer.onPlaceholder(obj.(*cachedObject))
		return
	}
	h.ResourceEventHandler.OnUpdate(old, obj)
}

// OnDelete implements [cache.ResourceEventHandler].
func (h placeholderFilter) OnDelete(obj any) {
	if !isPlaceholder(obj) {
		h.ResourceEventHandler.OnDelete(obj)
	}
}
