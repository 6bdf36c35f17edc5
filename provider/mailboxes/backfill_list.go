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
	"errors"
	"fmt"
	"maps"

	"github.com/kcp-dev/logicalcluster/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/synchub-dev/synchub/provider/requestclass"
)

// runRelists lists the mailboxes that wait, on each relistSignal, until the informer stops.
func (w *wildcardInformer) runRelists() {
	for w.relistSignal.wait(w.ctx) {
		if err := w.listWaiting(); err != nil && w.ctx.Err() == nil {
			w.log.Info("cannot list the objects of mailboxes that wait for it, trying again", "error", err.Error())
		}
	}
}

// listWaiting lists the mailboxes that wait: few of them one by one, many with one list of all mailboxes.
func (w *wildcardInformer) listWaiting() error {
	waiting := w.waiters.all()
	if !listsOneByOne(len(waiting), len(w.endpoint.mailboxes())) {
		return w.backfillList("", waiting)
	}
	var failed error
	for mailbox, relistNumber := range waiting {
		if err := w.backfillList(mailbox, map[logicalcluster.Name]uint64{mailbox: relistNumber}); err != nil {
			failed = errors.Join(failed, fmt.Errorf("mailbox %s: %w", mailbox, err))
		}
	}
	return failed
}

// backfillList lists the objects of one mailbox, or of all mailboxes if the name is empty. It backfills the objects of the
// waiting mailboxes, and a marker for each mailbox, into the watch. If that fails, the mailboxes continue to wait.
func (w *wildcardInformer) backfillList(only logicalcluster.Name, waiting map[logicalcluster.Name]uint64) error {
	stream := w.stream.Load()
	if stream == nil {
		return nil
	}
	maps.DeleteFunc(waiting, func(mailbox logicalcluster.Name, relistNumber uint64) bool {
		return !stream.begin(mailbox, relistNumber)
	})
	if len(waiting) == 0 {
		return nil
	}
	defer stream.end(waiting)
	client := w.client()
	if only != "" {
		client = w.endpoint.clientFor(only).Resource(w.resource)
	}
	err := w.eachPage(requestclass.With(w.ctx, requestclass.Extra), client, metav1.ListOptions{}, func(page *unstructured.UnstructuredList) error {
		for i := range page.Items {
			if !stream.backfill(&page.Items[i]) {
				return errWatchEnded
			}
		}
		return nil
	})
	// A mailbox may not serve the resource to the hub. A list of all mailboxes would then lack its objects.
	isUnserved := only != "" && (apierrors.IsNotFound(err) || apierrors.IsForbidden(err))
	if err != nil && !isUnserved {
		return err
	}
	var failed error
	for mailbox, relistNumber := range waiting {
		failed = errors.Join(failed, stream.complete(mailbox, relistNumber))
	}
	return failed
}

// ignores reports whether an entry of the informer's queue must not reach the cache: its mailbox has become unowned, or was
// acquired and is being listed. The informer calls it in the order of the queue, and changes its cache only afterwards.
func (w *wildcardInformer) ignores(entry any) bool {
	one, ok := entry.(*cachedObject)
	switch {
	case !ok || !w.dropsUnowned:
		return false
	case !one.isPlaceholder:
		return w.parts.owned.isUnowned(mailboxOf(one.current.Load())) || w.isOutdated(one)
	}
	mailbox, relistNumber, isMarker := relistNumberOf(one)
	if isMarker {
		w.dropOutdated(mailbox, relistNumber, one)
	}
	return !isMarker
}

// dropOutdated removes the entries that the cache had before a mailbox was acquired, and that the list lacks: they were deleted
// while the mailbox was unowned. It is called when the queue reaches the marker of the list.
func (w *wildcardInformer) dropOutdated(mailbox logicalcluster.Name, relistNumber uint64, marker *cachedObject) {
	var outdated []*cachedObject
	for _, entry := range entriesOf(w.shared, mailbox) {
		if one, ok := entry.(*cachedObject); ok && !one.isPlaceholder && uint64(one.relistNumber) < relistNumber && w.shared.GetIndexer().Delete(one) == nil {
			outdated = append(outdated, one)
		}
	}
	if outdated != nil {
		w.outdated.Store(marker, outdated)
	}
}

// isOutdated reports whether an entry has been in the cache, or in the informer's queue, since before its mailbox was acquired. It does
// not count then, and dropOutdated removes it unless the list names its object.
func (w *wildcardInformer) isOutdated(entry *cachedObject) bool {
	if !w.dropsUnowned || w.parts.relists.awaiting.Load() == 0 {
		return false
	}
	return uint64(entry.relistNumber) < w.waiters.numberOf(mailboxOf(entry.current.Load()))
}
