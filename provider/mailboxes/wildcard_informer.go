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
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	kcpcache "github.com/kcp-dev/apimachinery/v2/pkg/cache"
	kcpinformers "github.com/kcp-dev/apimachinery/v2/third_party/informers"
	"github.com/kcp-dev/logicalcluster/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"

	"github.com/synchub-dev/synchub/provider/kcp"
	"github.com/synchub-dev/synchub/provider/transport"
)

const (
	// wildcardPageSize bounds the objects of one page of a wildcard list.
	wildcardPageSize = 100
	// maxConcurrentPages bounds the pages that are requested from an endpoint at once: an object takes memory before it is
	// counted, too.
	maxConcurrentPages = 4
)

// wildcardInformer is the wildcard list and watch of one resource at one endpoint.
type wildcardInformer struct {
	*cacheRules
	endpoint  *endpoint
	shared    kcpcache.ScopeableSharedIndexInformer
	log       logr.Logger
	admission *admission
	counted   *countedObjects
	waiters   relistWaiters
	// outdated has, by end-of-list marker, the []*cachedObject that dropOutdated has removed. They count until the handler gets the marker.
	outdated sync.Map
	// stream is the watch, and relistSignal wakes runRelists. Both are unused unless the informer drops unowned mailboxes.
	stream       atomic.Pointer[backfillWatch]
	relistSignal signal
	// attempted is closed when the cache is filled, or an attempt to fill it has failed.
	attempted     chan struct{}
	markAttempted func()
	// failed is set when an attempt to fill the cache fails. The informer keeps trying.
	failed atomic.Bool
	// interrupted is set when a request fails, until the version of kcp is checked.
	interrupted atomic.Bool

	ctx     context.Context
	cancel  context.CancelFunc
	running sync.WaitGroup
}

// newWildcardInformer returns the wildcard informer of a resource, which is not started.
func newWildcardInformer(endpoint *endpoint, resource schema.GroupVersionResource) *wildcardInformer {
	rules := newCacheRules(endpoint.parts, resource)
	w := &wildcardInformer{
		cacheRules: rules, endpoint: endpoint, log: endpoint.log.WithValues("resource", resource.String()),
		admission: &admission{cacheRules: rules}, counted: newCountedObjects(rules), waiters: relistWaiters{relists: endpoint.parts.relists},
		attempted: make(chan struct{}), relistSignal: newSignal(),
	}
	w.markAttempted = sync.OnceFunc(func() { close(w.attempted) })
	w.ctx, w.cancel = context.WithCancel(endpoint.ctx)
	w.shared = kcpinformers.NewSharedIndexInformer(
		&cache.ListWatch{ListWithContextFunc: w.list, WatchFuncWithContext: w.watch},
		&unstructured.Unstructured{},
		0,
		cache.Indexers{kcpcache.ClusterIndexName: kcpcache.ClusterIndexFunc},
	)
	return w
}

// startWildcardInformer starts the wildcard informer of a resource.
func startWildcardInformer(endpoint *endpoint, resource schema.GroupVersionResource) *wildcardInformer {
	w := newWildcardInformer(endpoint, resource)
	// These calls fail only on a running informer.
	_ = w.shared.SetTransform(w.transform)
	deletesUnlisted := kcp.NewUnlistedDeleter(w.shared)
	_ = w.shared.SetIgnoreFunc(func(entry any) bool { return w.ignores(entry) || deletesUnlisted(entry) })
	_ = w.shared.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) {
		w.log.V(1).Info("the watch ended and will be resumed", "error", err.Error())
	})
	handled, _ := w.shared.AddEventHandler(w.countingHandler(endpoint.eventHandler(resource)))
	w.running.Go(func() {
		w.shared.RunWithContext(w.ctx)
		w.counted.release()
		w.admission.end()
		w.waiters.cancel()
	})
	if w.dropsUnowned {
		w.running.Go(w.runRelists)
	}
	w.running.Go(func() {
		select {
		case <-w.ctx.Done():
		case <-handled.HasSyncedChecker().Done():
			w.log.V(1).Info("the cache is filled", "objects", len(w.shared.GetStore().ListKeys()))
			w.markAttempted()
			endpoint.onCacheFilled(resource)
		}
	})
	return w
}

// stopWildcardInformers stops the informers, and waits for them.
func stopWildcardInformers(all []*wildcardInformer) {
	for _, informer := range all {
		informer.cancel()
	}
	for _, informer := range all {
		informer.running.Wait()
	}
}

// isSyncing reports whether the cache is still being filled, to the hub's knowledge.
func (w *wildcardInformer) isSyncing() bool { return !w.shared.HasSynced() && !w.failed.Load() }

// list waits until the virtual workspace serves the resource, which takes up to a few seconds after the first mailbox was bound
// or the resource was published. After failed lists the reflector would wait for half a minute.
func (w *wildcardInformer) list(ctx context.Context, options metav1.ListOptions) (list runtime.Object, err error) {
	w.waitForConfigs(ctx)
	untilServed := wait.Backoff{Duration: 250 * time.Millisecond, Factor: 1.2, Steps: 20, Cap: 5 * time.Second}.DelayFunc()
	err = untilServed.Until(ctx, true, true, func(ctx context.Context) (bool, error) {
		list, err = w.listPages(ctx, options)
		w.recordResult(err)
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return err == nil, err
	})
	return list, err
}

// client returns the client for lists and watches of the resource.
func (w *wildcardInformer) client() dynamic.ResourceInterface {
	if w.dropsUnowned {
		return w.endpoint.filtered.Resource(w.resource)
	}
	return w.endpoint.clients.ClusterOrDie(logicalcluster.Wildcard).Resource(w.resource)
}

// watch starts a watch, which may begin with a list.
func (w *wildcardInformer) watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	if options.SendInitialEvents != nil && *options.SendInitialEvents {
		if len(w.waiters.all()) > 0 {
			return nil, errMarkersNeedPages
		}
		w.waitForConfigs(ctx)
		w.admission.beginList()
	}
	if err := w.checkResumed(ctx); err != nil {
		return nil, err
	}
	stream, err := w.client().Watch(ctx, options)
	if err == nil && options.SendInitialEvents != nil && *options.SendInitialEvents {
		stream = w.checkedInitialEvents(stream)
	}
	// A server that refuses a watch may not support lists by watches, so the reflector lists next.
	if _, isRefused := errors.AsType[*apierrors.StatusError](err); !isRefused {
		w.recordResult(err)
	}
	if err == nil && w.dropsUnowned {
		within := backfilled(stream, options)
		w.stream.Store(within)
		return within, nil
	}
	return stream, err
}

// recordResult records the result of a request.
func (w *wildcardInformer) recordResult(err error) {
	if w.ctx.Err() != nil {
		return
	}
	if err != nil {
		w.log.V(1).Info("cannot list or watch", "error", err.Error())
		w.failed.Store(true)
		w.interrupted.Store(true)
		w.markAttempted()
	}
	w.endpoint.recordResult(w.resource, err)
}

// waitForConfigs waits until the caches of the configs are filled, or have failed to: configs decide how much of an object is
// cached.
func (w *wildcardInformer) waitForConfigs(ctx context.Context) {
	options := w.parts.options
	if options.Policy == nil || options.isAlwaysWatched(w.resource) {
		return
	}
	for _, resource := range options.alwaysWatched() {
		configs := w.endpoint.get(resource)
		if configs == nil {
			continue
		}
		select {
		case <-ctx.Done():
		case <-configs.attempted:
		}
	}
}

// cachedObjectList is a list with only as much of each object as the cache will hold.
type cachedObjectList struct {
	metav1.TypeMeta
	metav1.ListMeta
	Items []runtime.Object
}

// DeepCopyObject implements [runtime.Object].
func (l *cachedObjectList) DeepCopyObject() runtime.Object {
	return &cachedObjectList{l.TypeMeta, *l.ListMeta.DeepCopy(), slices.Clone(l.Items)} //nolint:staticcheck // the explicit field names the copied part
}

// errMarkersNeedPages makes the reflector list by pages, because a list by a watch cannot end with markers.
var errMarkersNeedPages = errors.New("the end of a list by a watch cannot be marked")

// listPages reads a list in pages and keeps only as much of it as the cache will hold.
func (w *wildcardInformer) listPages(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	w.admission.beginList()
	markers := w.waiters.markers()
	if options.ResourceVersion == "0" {
		// From its watch cache a server would return all objects at once.
		options.ResourceVersion = ""
	}
	seen := w.seenVersion()
	all := &cachedObjectList{}
	err := w.eachPage(ctx, w.client(), options, func(page *unstructured.UnstructuredList) error {
		for i := range page.Items {
			object, _ := w.transform(&page.Items[i])
			if !isPlaceholder(object) {
				all.Items = append(all.Items, object.(runtime.Object))
			}
		}
		all.ResourceVersion = page.GetResourceVersion()
		return nil
	})
	if err != nil {
		return nil, err
	}
	w.checkListed(seen, all.ResourceVersion)
	all.Items = slices.DeleteFunc(all.Items, w.isExcluded)
	for _, marker := range markers {
		all.Items = append(all.Items, marker)
	}
	return all, nil
}

// eachPage calls do with each page of a list. It sets the limit and the selector of the resource.
func (w *wildcardInformer) eachPage(ctx context.Context, client dynamic.ResourceInterface, options metav1.ListOptions, do func(*unstructured.UnstructuredList) error) error {
	options.Limit = wildcardPageSize
	for {
		if err := w.nextPage(ctx, client, &options, do); err != nil || options.Continue == "" {
			return err
		}
		options.ResourceVersion, options.ResourceVersionMatch = "", ""
		options.Limit = min(2*options.Limit, wildcardPageSize)
	}
}

// nextPage calls do with one page, and makes the options continue after it. It waits while many pages of the endpoint are in memory.
func (w *wildcardInformer) nextPage(ctx context.Context, client dynamic.ResourceInterface, options *metav1.ListOptions, do func(*unstructured.UnstructuredList) error) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case w.endpoint.pageSemaphore <- struct{}{}:
		defer func() { <-w.endpoint.pageSemaphore }()
	}
	page, err := transport.ListPage(ctx, options, client.List)
	if err != nil {
		return err
	}
	options.Continue = page.GetContinue()
	return do(page)
}

// transform returns the cache entry of an object of a server. It leaves its own result as it is.
func (w *wildcardInformer) transform(obj any) (any, error) {
	object, ok := obj.(*unstructured.Unstructured)
	switch {
	case !ok:
		return obj, nil
	case w.resource == bindingsResource:
		return stripMetadata(object), nil
	case w.dropsUnowned && restoreVersion(object) && object.GetName() == endOfListName:
		marker := newCachedObject(object, 0)
		marker.isPlaceholder = true
		return marker, nil
	case w.isExcluded(object):
		return newPlaceholder(mailboxOf(object)), nil
	default:
		return w.admission.toCachedObject(object, w.shared.GetIndexer()), nil
	}
}

// countingHandler returns a handler that counts the entries of the cache, and calls the other one.
func (w *wildcardInformer) countingHandler(handler cache.ResourceEventHandler) cache.ResourceEventHandler {
	if w.resource == bindingsResource {
		return w.counted.size.CountingHandler(handler)
	}
	return cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(obj any, initial bool) {
			if w.handlePlaceholder(obj) || w.dropIfUnowned(obj) || w.isOutdated(obj.(*cachedObject)) {
				return
			}
			w.count(nil, obj.(*cachedObject))
			handler.OnAdd(obj, initial)
		},
		UpdateFunc: func(old, obj any) {
			if w.handlePlaceholder(obj) || w.dropIfUnowned(obj) || w.isOutdated(obj.(*cachedObject)) {
				return
			}
			w.checkUpdated(old.(*cachedObject), obj.(*cachedObject))
			w.count(old.(*cachedObject), obj.(*cachedObject))
			handler.OnUpdate(old, obj)
		},
		DeleteFunc: func(obj any) {
			if isPlaceholder(obj) {
				return
			}
			object := toObject(obj)
			// The last state of a deleted object may be another entry than the cache's entry.
			w.counted.update(w.counted.get(object.GetUID()), nil)
			if !w.isExcluded(object) {
				// A list lacks the objects of an evicted or unowned mailbox because listPages and transform leave them out.
				handler.OnDelete(obj)
			}
		},
	}
}

// count counts an entry that reached the handler instead of another, which may be nil.
func (w *wildcardInformer) count(before, after *cachedObject) {
	w.admission.lastDeliveredList.Store(after.listNumber)
	w.counted.update(before, after)
}
