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
	"context"

	kcpcache "github.com/kcp-dev/apimachinery/v2/pkg/cache"
	"github.com/kcp-dev/logicalcluster/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/synchub-dev/synchub/provider/metrics/requestmetrics"
	"github.com/synchub-dev/synchub/provider/transport"
)

// runGained lists the objects of gained mailboxes one mailbox after the other, each time the informer is told to, until it stops.
func (w *wildcardInformer) runGained() {
	for {
		select {
		case <-w.ctx.Done():
			return
		case <-w.gained:
		}
		for _, marker := range w.endOfListMarkers() {
			if err := w.listMailbox(w.ctx, marker); err != nil && w.ctx.Err() == nil {
				w.log.Info("cannot list the objects of a gained mailbox, trying again", "mailbox", mailboxOf(marker.current.Load()), "error", err.Error())
			}
		}
	}
}

// listMailbox lists the objects of a mailbox and splices them, and the marker, into the watch. If the watch ends meanwhile, the mailbox
// goes on waiting.
func (w *wildcardInformer) listMailbox(ctx context.Context, marker *cachedObject) error {
	stream := w.stream.Load()
	mailbox, readmission, _ := readmissionOf(marker)
	if stream == nil || !stream.begin(mailbox, readmission) {
		return nil
	}
	defer stream.end(mailbox)
	ctx, cancel := context.WithTimeout(requestmetrics.WithClass(ctx, requestmetrics.Extra), reviewTimeout)
	defer cancel()
	client := w.endpoint.clientFor(mailbox).Resource(w.resource)
	options := metav1.ListOptions{Limit: wildcardPageSize}
	for {
		page, err := w.listMailboxPage(ctx, mailbox, &options, client.List, stream)
		if err != nil || page == "" {
			return err
		}
		if options.Continue = page; page == lastPage {
			break
		}
		options.Limit = min(2*options.Limit, wildcardPageSize)
	}
	if stream.splice(mailbox, marker.current.Load()) {
		stream.complete(mailbox, readmission)
	}
	return nil
}

// lastPage is returned by listMailboxPage after the last page. No server continues a list with it.
const lastPage = "(last)"

// listMailboxPage lists a page and splices its objects into the watch. It returns how to continue; an empty text if the watch has ended.
func (w *wildcardInformer) listMailboxPage(ctx context.Context, mailbox logicalcluster.Name, options *metav1.ListOptions,
	list func(context.Context, metav1.ListOptions) (*unstructured.UnstructuredList, error), stream *splicedWatch,
) (next string, err error) {
	select {
	case <-ctx.Done():
		return "", ctx.Err()
	case w.endpoint.pageSemaphore <- struct{}{}:
		defer func() { <-w.endpoint.pageSemaphore }()
	}
	page, err := transport.ListPage(ctx, options, list)
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		// The mailbox does not serve the resource to the hub, so a list of all mailboxes would have nothing of it.
		return lastPage, nil
	}
	if err != nil {
		return "", err
	}
	for i := range page.Items {
		object := &page.Items[i]
		if mailboxOf(object) != mailbox {
			_ = unstructured.SetNestedField(object.Object, mailbox.String(), "metadata", "annotations", logicalcluster.AnnotationKey)
		}
		if !stream.splice(mailbox, object) {
			return "", nil
		}
	}
	if page.GetContinue() == "" {
		return lastPage, nil
	}
	return page.GetContinue(), nil
}

// forceRelist makes the informer list all mailboxes again, unless it does or was made to a moment ago. Only runNeeds calls it.
func (w *wildcardInformer) forceRelist() {
	now, stream := w.endpoint.owner.clock.Now(), w.stream.Load()
	if w.listsPages.Load() || stream != nil && stream.isInitial() || now.Sub(w.lastForced) < forceInterval {
		return
	}
	w.lastForced = now
	w.informer.ForceRelist()
}

// ignores reports whether an entry of the informer's queue must not reach the cache: its mailbox has become foreign since, or was gained
// since and is being listed. The informer calls it in the order of the queue, and changes its cache only afterwards.
func (w *wildcardInformer) ignores(entry any) bool {
	one, ok := entry.(*cachedObject)
	switch {
	case !ok || !w.dropsForeign:
		return false
	case !one.isPlaceholder:
		return w.endpoint.owner.needs.isForeign(mailboxOf(one.current.Load())) || w.isOlder(one)
	}
	mailbox, readmission, isMarker := readmissionOf(one)
	if isMarker {
		w.dropOlder(mailbox, readmission, one)
	}
	return !isMarker
}

// dropOlder removes the entries of a gained mailbox that the cache has had since before, and that the list has not named: they were
// deleted while the mailbox was foreign. It is called when the queue comes to the marker of the list.
func (w *wildcardInformer) dropOlder(mailbox logicalcluster.Name, readmission uint64, marker *cachedObject) {
	entries, _ := w.informer.GetIndexer().ByIndex(kcpcache.ClusterIndexName, kcpcache.ClusterIndexKey(mailbox))
	for _, entry := range entries {
		if one, ok := entry.(*cachedObject); ok && !one.isPlaceholder && uint64(one.readmission) < readmission && w.informer.GetIndexer().Delete(one) == nil {
			w.olderLock.Lock()
			if w.older == nil {
				w.older = map[*cachedObject][]*cachedObject{}
			}
			w.older[marker] = append(w.older[marker], one)
			w.olderLock.Unlock()
		}
	}
}

// takeOlder returns the entries that dropOlder has removed for a marker, once.
func (w *wildcardInformer) takeOlder(marker *cachedObject) []*cachedObject {
	w.olderLock.Lock()
	defer w.olderLock.Unlock()
	older := w.older[marker]
	delete(w.older, marker)
	return older
}

// isOlder reports whether an entry has been in the cache, or in the informer's queue, since before its mailbox was gained. It does
// not count then, and dropOlder removes it unless the list names its object.
func (w *wildcardInformer) isOlder(entry *cachedObject) bool {
	if !w.dropsForeign || w.endpoint.owner.awaitingRelist.Load() == 0 {
		return false
	}
	w.awaitingRelistLock.Lock()
	defer w.awaitingRelistLock.Unlock()
	return uint64(entry.readmission) < w.awaitingRelist[mailboxOf(entry.current.Load())]
}
