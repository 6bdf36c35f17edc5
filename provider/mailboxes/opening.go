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

// endOfList is the name of that item. No object can have it.
const endOfList = "(listed)"

// endOfListIn returns the item that ends a list for a mailbox, which was opened at that time.
func endOfListIn(mailbox logicalcluster.Name, opened uint64) *item {
	made := placeholderIn(mailbox)
	metadata := metadataFields(made.held.Load())
	metadata["name"], metadata["resourceVersion"] = endOfList, strconv.FormatUint(opened, 10)
	return made
}

// awaitList has all that the watch tells of a mailbox be Unknown until a list has come that begins after this. The time is a
// number that no other opening has.
func (w *watching) awaitList(mailbox logicalcluster.Name, opened uint64) {
	w.unlistedLock.Lock()
	defer w.unlistedLock.Unlock()
	if _, waits := w.unlisted[mailbox]; !waits {
		w.endpoint.owner.unlisted.Add(1)
	}
	if w.unlisted == nil {
		w.unlisted = map[logicalcluster.Name]uint64{}
	}
	w.unlisted[mailbox] = opened
}

// stopAwaiting ends that. It tells whether the mailbox waited for a list since that time, or with zero since any.
func (w *watching) stopAwaiting(mailbox logicalcluster.Name, opened uint64) bool {
	w.unlistedLock.Lock()
	defer w.unlistedLock.Unlock()
	since, waits := w.unlisted[mailbox]
	if !waits || opened != 0 && opened != since {
		return false
	}
	delete(w.unlisted, mailbox)
	w.endpoint.owner.unlisted.Add(-1)
	return true
}

// isUnlisted tells whether it is unknown what there is of the resource in a mailbox, because that was opened and not listed since.
func (e *endpoint) isUnlisted(resource schema.GroupVersionResource, mailbox logicalcluster.Name) bool {
	e.lock.RLock()
	w := e.watches[resource]
	e.lock.RUnlock()
	if w == nil {
		return false
	}
	w.unlistedLock.Lock()
	defer w.unlistedLock.Unlock()
	_, waits := w.unlisted[mailbox]
	return waits
}

// endsOfList returns the items that end a list that begins now.
func (w *watching) endsOfList() (ends []*item) {
	w.unlistedLock.Lock()
	defer w.unlistedLock.Unlock()
	for mailbox, opened := range w.unlisted {
		ends = append(ends, endOfListIn(mailbox, opened))
	}
	return ends
}

// stopAwaitingAll is for a watch that ends.
func (w *watching) stopAwaitingAll() {
	for _, end := range w.endsOfList() {
		w.stopAwaiting(mailboxOf(end.held.Load()), 0)
	}
}

// passed takes a placeholder that has come to the handler. Where that ends a list all is known that the list has brought.
func (w *watching) passed(placeholder *item) {
	object := placeholder.held.Load()
	if object.GetName() != endOfList {
		return
	}
	_ = w.informer.GetIndexer().Delete(placeholder)
	mailbox := mailboxOf(object)
	if opened, err := strconv.ParseUint(object.GetResourceVersion(), 10, 64); err != nil || !w.stopAwaiting(mailbox, opened) {
		return
	}
	w.log.V(1).Info("a mailbox that was opened again is listed", "mailbox", mailbox)
	resetAll(w.endpoint.owner.subscribers.of(route{w.resource, mailbox}))
	w.endpoint.owner.Review(mailbox)
}

// relistOpened has listed anew what is still awaited: a relist that is asked for between a list and its watch waits for the end of
// that watch. It tells whether there is something.
func (m *Mailboxes) relistOpened() (waits bool) {
	for _, configs := range []bool{true, false} {
		for _, w := range m.limited(configs) {
			if len(w.endsOfList()) > 0 {
				w.informer.ForceRelist()
				waits = true
			}
		}
	}
	return waits
}

// withoutPlaceholders hands on what is told of objects.
type withoutPlaceholders struct {
	cache.ResourceEventHandler
	watching *watching
}

// OnAdd implements [cache.ResourceEventHandler].
func (h withoutPlaceholders) OnAdd(obj any, initial bool) {
	if isPlaceholder(obj) {
		h.watching.passed(obj.(*item))
		return
	}
	h.ResourceEventHandler.OnAdd(obj, initial)
}

// OnUpdate implements [cache.ResourceEventHandler].
func (h withoutPlaceholders) OnUpdate(old, obj any) {
	if isPlaceholder(obj) {
		h.watching.passed(obj.(*item))
		return
	}
	h.ResourceEventHandler.OnUpdate(old, obj)
}

// OnDelete implements [cache.ResourceEventHandler].
func (h withoutPlaceholders) OnDelete(obj any) {
	if !isPlaceholder(obj) {
		h.ResourceEventHandler.OnDelete(obj)
	}
}
