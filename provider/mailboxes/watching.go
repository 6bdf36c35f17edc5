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
	"maps"
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
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"

	"github.com/synchub-dev/synchub/provider/holdings"
	"github.com/synchub-dev/synchub/provider/kcp"
	"github.com/synchub-dev/synchub/provider/transport"
)

const (
	// wildcardPage is how many objects one page of a wildcard list has at most.
	wildcardPage = 100
	// pagesAtOnce is how many pages of lists an endpoint is asked for at once: before an object is counted it takes memory, too.
	pagesAtOnce = 4
)

// watching is the wildcard list and watch of one resource at one endpoint.
type watching struct {
	endpoint *endpoint
	resource schema.GroupVersionResource
	informer kcpcache.ScopeableSharedIndexInformer
	log      logr.Logger
	held     holdings.Holdings
	// configs is true if the objects are configs.
	configs bool
	// items are those that count in the accounts of their mailboxes.
	itemsLock sync.Mutex
	items     map[types.UID]*item
	// fill is the list that is being read, and delivered the number of the last one of which something has come to the
	// handler. The fill is the reflector's.
	fill      fill
	delivered atomic.Uint32
	// coming is how much the list brings that is not counted yet; ended is set when the informer is stopped.
	coming atomic.Int64
	ended  atomic.Bool
	// unlisted are the mailboxes that were opened, and when, and of which no list has come since.
	unlistedLock sync.Mutex
	unlisted     map[logicalcluster.Name]uint64
	// settled is closed when the cache is filled, or an attempt to fill it has failed.
	settled chan struct{}
	settle  func()
	// failed is set when an attempt to fill the cache fails. Attempts go on.
	failed atomic.Bool

	ctx     context.Context
	cancel  context.CancelFunc
	running sync.WaitGroup
}

// startWatching starts the wildcard watch of a resource, until stopWatching or the end of the endpoint.
func startWatching(endpoint *endpoint, resource schema.GroupVersionResource) *watching {
	w := &watching{
		endpoint: endpoint, resource: resource, log: endpoint.log.WithValues("resource", resource.String()),
		items: map[types.UID]*item{}, settled: make(chan struct{}), configs: endpoint.owner.isConfig(resource),
	}
	w.held.Within(&endpoint.owner.total.held)
	w.settle = sync.OnceFunc(func() { close(w.settled) })
	w.ctx, w.cancel = context.WithCancel(endpoint.ctx)
	w.informer = kcpinformers.NewSharedIndexInformer(
		&cache.ListWatch{ListWithContextFunc: w.list, WatchFuncWithContext: w.watch},
		&unstructured.Unstructured{},
		0,
		cache.Indexers{kcpcache.ClusterIndexName: kcpcache.ClusterIndexFunc},
	)
	// All of these fail only on an informer that has been started.
	_ = w.informer.SetTransform(w.transform)
	_ = w.informer.SetIgnoreFunc(kcp.DeletesUnlisted(w.informer))
	_ = w.informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) {
		w.log.V(1).Info("the watch ended and will be taken up again", "error", err.Error())
	})
	handled, _ := w.informer.AddEventHandler(w.counting(endpoint.handler(resource)))
	w.running.Go(func() {
		w.informer.RunWithContext(w.ctx)
		w.uncount()
		w.ended.Store(true)
		w.release()
		w.stopAwaitingAll()
	})
	w.running.Go(func() {
		select {
		case <-w.ctx.Done():
		case <-handled.HasSyncedChecker().Done():
			w.log.V(1).Info("the cache is filled", "objects", len(w.informer.GetStore().ListKeys()))
			w.settle()
			endpoint.filled(resource)
		}
	})
	return w
}

// stopWatching returns when nothing of the watches is left.
func stopWatching(all []*watching) {
	for _, watching := range all {
		watching.cancel()
	}
	for _, watching := range all {
		watching.running.Wait()
	}
}

// isFilling tells whether the cache is not filled yet and nothing is known that prevents it.
func (w *watching) isFilling() bool { return !w.informer.HasSynced() && !w.failed.Load() }

// list lists as soon as the virtual workspace serves the resource, which takes it up to a few seconds after the first
// mailbox was bound or the resource was published. A failed list would make the reflector wait for half a minute before
// long.
func (w *watching) list(ctx context.Context, options metav1.ListOptions) (list runtime.Object, err error) {
	w.awaitConfigs(ctx)
	untilServed := wait.Backoff{Duration: 250 * time.Millisecond, Factor: 1.2, Steps: 20, Cap: 5 * time.Second}.DelayFunc()
	err = untilServed.Until(ctx, true, true, func(ctx context.Context) (bool, error) {
		list, err = w.listPages(ctx, options)
		w.answered(err)
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return err == nil, err
	})
	return list, err
}

func (w *watching) watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	if options.SendInitialEvents != nil && *options.SendInitialEvents {
		if w.endpoint.owner.unlisted.Load() > 0 && len(w.endsOfList()) > 0 {
			return nil, errInOrder
		}
		w.awaitConfigs(ctx)
		w.beginFill()
	}
	stream, err := w.endpoint.clients.ClusterOrDie(logicalcluster.Wildcard).Resource(w.resource).Watch(ctx, options)
	// A server that refuses a watch, perhaps because it does not list by watches, is asked for a list next.
	if _, isRefused := errors.AsType[*apierrors.StatusError](err); !isRefused {
		w.answered(err)
	}
	return stream, err
}

// answered takes down how a request was answered.
func (w *watching) answered(err error) {
	if w.ctx.Err() != nil {
		return
	}
	if err != nil {
		w.log.V(1).Info("cannot list or watch", "error", err.Error())
		w.failed.Store(true)
		w.settle()
	}
	w.endpoint.answered(w.resource, err)
}

// awaitConfigs waits until the configs of the mailboxes are known, as far as they can be: by them it is decided how much is
// held of an object that a list brings.
func (w *watching) awaitConfigs(ctx context.Context) {
	if w.isAlways() || w.endpoint.owner.policy == nil {
		return
	}
	for _, resource := range w.endpoint.owner.always {
		w.endpoint.lock.RLock()
		configs := w.endpoint.watches[resource]
		w.endpoint.lock.RUnlock()
		if configs == nil {
			continue
		}
		select {
		case <-ctx.Done():
		case <-configs.settled:
		}
	}
}

// isAlways tells whether the resource is one of those by which the hub works: bindings and configs.
func (w *watching) isAlways() bool { return w.configs || w.resource == bindingsResource }

// items are a list that holds no more of each object than the cache will.
type items struct {
	metav1.TypeMeta
	metav1.ListMeta
	Items []runtime.Object
}

// DeepCopyObject implements [runtime.Object].
func (l *items) DeepCopyObject() runtime.Object {
	return &items{l.TypeMeta, *l.ListMeta.DeepCopy(), slices.Clone(l.Items)} //nolint:staticcheck // whose copy it is should be said
}

// errInOrder makes the reflector list by pages.
var errInOrder = errors.New("what a watch lists has no order, and so no end that could be told")

// listPages reads a list in pages, of which only as much is kept as the cache will hold.
func (w *watching) listPages(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	w.beginFill()
	ends := w.endsOfList()
	client := w.endpoint.clients.ClusterOrDie(logicalcluster.Wildcard).Resource(w.resource)
	options.Limit = wildcardPage
	if options.ResourceVersion == "0" {
		// From its cache a server answers with all at once.
		options.ResourceVersion = ""
	}
	all := &items{}
	for {
		if err := w.addPage(ctx, client, &options, all); err != nil {
			return nil, err
		}
		if options.Continue = all.Continue; options.Continue == "" {
			all.Items = slices.DeleteFunc(all.Items, w.isOfClosed)
			for _, end := range ends {
				all.Items = append(all.Items, end)
			}
			return all, nil
		}
		options.ResourceVersion, options.ResourceVersionMatch = "", ""
		options.Limit = min(2*options.Limit, wildcardPage)
	}
}

func (w *watching) addPage(ctx context.Context, client dynamic.ResourceInterface, options *metav1.ListOptions, to *items) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case w.endpoint.paging <- struct{}{}:
		defer func() { <-w.endpoint.paging }()
	}
	page, err := transport.Page(ctx, options, client.List)
	if err != nil {
		return err
	}
	for i := range page.Items {
		object, _ := w.transform(&page.Items[i])
		if !isPlaceholder(object) {
			to.Items = append(to.Items, object.(runtime.Object))
		}
	}
	to.ResourceVersion, to.Continue = page.GetResourceVersion(), page.GetContinue()
	return nil
}

// transform makes of an object that a server sent what the cache holds. What it has made already it leaves as it is.
func (w *watching) transform(obj any) (any, error) {
	object, ok := obj.(*unstructured.Unstructured)
	switch {
	case !ok:
		return obj, nil
	case w.resource == bindingsResource:
		return bareOf(object), nil
	case w.isOfClosed(object):
		return placeholderIn(mailboxOf(object)), nil
	default:
		return w.itemOf(object), nil
	}
}

// isOfClosed tells whether an object, or an item, is of a closed mailbox.
func (w *watching) isOfClosed(object runtime.Object) bool {
	owner := w.endpoint.owner
	return owner.closed.Load() > 0 && owner.isClosed(mailboxOf(objectOf(object)), w.configs)
}

// counting returns a handler that counts what the cache holds, and passes on what it is told.
func (w *watching) counting(handler cache.ResourceEventHandler) cache.ResourceEventHandler {
	if w.resource == bindingsResource {
		return w.held.Counting(handler)
	}
	counting := cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(obj any, initial bool) {
			w.count(nil, obj.(*item))
			handler.OnAdd(obj, initial)
		},
		UpdateFunc: func(old, obj any) {
			w.count(old.(*item), obj.(*item))
			handler.OnUpdate(old, obj)
		},
		DeleteFunc: func(obj any) {
			object := objectOf(obj)
			// The last state of an object is another item than the cache held.
			w.count(w.counted(object.GetUID()), nil)
			if !w.isOfClosed(object) {
				// A list lacks the objects of a closed mailbox because listPages and transform leave them out.
				handler.OnDelete(obj)
			}
		},
	}
	return withoutPlaceholders{counting, w}
}

// counted returns the item of an object that counts; nil if none does.
func (w *watching) counted(uid types.UID) *item {
	w.itemsLock.Lock()
	defer w.itemsLock.Unlock()
	return w.items[uid]
}

// replace puts an item in the place of another among those that count.
func (w *watching) replace(before, after *item) {
	w.itemsLock.Lock()
	defer w.itemsLock.Unlock()
	if before != nil {
		delete(w.items, before.held.Load().GetUID())
	}
	if after != nil {
		w.items[after.held.Load().GetUID()] = after
	}
}

// count counts an item of the cache instead of another; either may be nil.
func (w *watching) count(before, after *item) {
	mailboxes, of := w.endpoint.owner, after
	if after != nil {
		w.delivered.Store(after.fill)
		if w.isOfClosed(after) {
			// It is about to be taken out.
			after = nil
		}
	}
	w.replace(before, after)
	if before != nil {
		of = before
	}
	if of == nil {
		return
	}
	mailbox := mailboxOf(of.held.Load())
	account := mailboxes.openAccount(mailbox, w.configs)
	objects, bytes := account.replace(w.resource, before, after)
	isEmpty := account.objects == 0
	account.lock.Unlock()
	w.held.Change(objects, bytes)
	if isEmpty {
		mailboxes.dropUnused(mailbox)
	}
	if mailboxes.policy == nil {
		return
	}
	if account.needsReview(w.limits(mailbox), w.resource, mailboxes.limitsOf(w.resource), before != nil) {
		mailboxes.Review(mailbox)
	}
	mailboxes.total.grown()
}

// uncount takes all items out of the accounts of their mailboxes.
func (w *watching) uncount() {
	w.itemsLock.Lock()
	all := slices.Collect(maps.Values(w.items))
	w.itemsLock.Unlock()
	for _, counted := range all {
		w.count(counted, nil)
	}
}
