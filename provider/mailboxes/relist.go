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
	"maps"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The caches lack objects of a readmitted or an acquired mailbox. All objects of a resource there are Unknown until the next
// list of the resource. Such a list ends with a marker for each mailbox that waits for it. An informer handles a list in
// order: when the marker reaches the handler, the cache holds all objects of the list.

// relists counts the lists that mailboxes wait for.
type relists struct {
	// awaiting is the number of pairs of a mailbox and a resource that was not listed since the mailbox was readmitted or acquired.
	awaiting atomic.Int64
	// last is the number of the last such list.
	last atomic.Uint64
}

// relistWaiters are the mailboxes that wait for a list of one resource.
type relistWaiters struct {
	relists *relists

	lock sync.Mutex
	// numbers holds the relist number of each readmitted or acquired mailbox that no list has covered since.
	numbers map[logicalcluster.Name]uint64
}

// endOfListName is the name of the marker. No object can have it.
const endOfListName = "(listed)"

// newEndOfList returns the marker of a mailbox for a list.
func newEndOfList(mailbox logicalcluster.Name, relistNumber uint64) *cachedObject {
	made := newPlaceholder(mailbox)
	metadata := metadataFields(made.current.Load())
	metadata["name"], metadata["resourceVersion"] = endOfListName, strconv.FormatUint(relistNumber, 10)
	return made
}

// await makes the objects of a mailbox Unknown until a list that begins later is complete. The relistNumber is unique.
func (w *relistWaiters) await(mailbox logicalcluster.Name, relistNumber uint64) {
	w.lock.Lock()
	defer w.lock.Unlock()
	if _, ok := w.numbers[mailbox]; !ok {
		w.relists.awaiting.Add(1)
	}
	if w.numbers == nil {
		w.numbers = map[logicalcluster.Name]uint64{}
	}
	w.numbers[mailbox] = relistNumber
}

// done ends the wait of a mailbox for the list with the number; zero means any. It returns false if the mailbox does not wait.
func (w *relistWaiters) done(mailbox logicalcluster.Name, relistNumber uint64) bool {
	w.lock.Lock()
	defer w.lock.Unlock()
	since, ok := w.numbers[mailbox]
	if !ok || relistNumber != 0 && relistNumber != since {
		return false
	}
	delete(w.numbers, mailbox)
	w.relists.awaiting.Add(-1)
	return true
}

// isAwaitingRelist reports whether a mailbox was readmitted or acquired, and the resource was not listed since.
func (e *endpoint) isAwaitingRelist(resource schema.GroupVersionResource, mailbox logicalcluster.Name) bool {
	w := e.get(resource)
	return w != nil && w.waiters.numberOf(mailbox) > 0
}

// numberOf returns the relist number of a mailbox; zero if it does not wait.
func (w *relistWaiters) numberOf(mailbox logicalcluster.Name) uint64 {
	w.lock.Lock()
	defer w.lock.Unlock()
	return w.numbers[mailbox]
}

// markers returns the markers for a list that begins now.
func (w *relistWaiters) markers() (markers []*cachedObject) {
	for mailbox, relistNumber := range w.all() {
		markers = append(markers, newEndOfList(mailbox, relistNumber))
	}
	return markers
}

// all returns the mailboxes that wait for a list, with its number.
func (w *relistWaiters) all() map[logicalcluster.Name]uint64 {
	w.lock.Lock()
	defer w.lock.Unlock()
	return maps.Clone(w.numbers)
}

// relistNumberOf returns the mailbox and the relist number of an end-of-list marker, and false for other entries.
func relistNumberOf(entry any) (mailbox logicalcluster.Name, relistNumber uint64, ok bool) {
	if !isPlaceholder(entry) {
		return "", 0, false
	}
	object := toObject(entry)
	if object.GetName() != endOfListName {
		return "", 0, false
	}
	relistNumber, err := strconv.ParseUint(object.GetResourceVersion(), 10, 64)
	return mailboxOf(object), relistNumber, err == nil
}

// cancel ends all waits, because the informer stops.
func (w *relistWaiters) cancel() {
	for mailbox := range w.all() {
		w.done(mailbox, 0)
	}
}

// handlePlaceholder handles an added or updated placeholder, and returns false for other entries. A marker ends the wait of its
// mailbox, whose subscribers it resets.
func (w *wildcardInformer) handlePlaceholder(entry any) bool {
	if !isPlaceholder(entry) {
		return false
	}
	placeholder := entry.(*cachedObject)
	mailbox, relistNumber, isMarker := relistNumberOf(entry)
	if !isMarker {
		return true
	}
	_ = w.shared.GetIndexer().Delete(placeholder)
	if outdated, ok := w.outdated.LoadAndDelete(placeholder); ok {
		for _, one := range outdated.([]*cachedObject) {
			w.counted.update(one, nil)
		}
	}
	if !w.waiters.done(mailbox, relistNumber) {
		return true
	}
	w.log.V(1).Info("listed the objects of a readmitted or acquired mailbox", "mailbox", mailbox)
	notifyReset(w.parts.subscriptions.get(subscriptionKey{w.resource, mailbox}))
	if w.dropsUnowned {
		w.parts.subscriptions.resetObserver(mailbox)
	}
	w.parts.reviews.EnqueueCacheReview(mailbox)
	return true
}

// relist makes the informer list the mailboxes that wait for it.
func (w *wildcardInformer) relist() {
	if w.dropsUnowned {
		w.relistSignal.notify()
	} else {
		w.shared.ForceRelist()
	}
}

// requestRelists makes the informers list the mailboxes that wait for one, and reports whether some wait.
func requestRelists(informers []*wildcardInformer) (isWaiting bool) {
	for _, informer := range informers {
		if len(informer.waiters.all()) > 0 {
			isWaiting = true
			informer.relist()
		}
	}
	return isWaiting
}
