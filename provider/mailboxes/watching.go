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
	"k8s.io/client-go/tools/cache"

	"github.com/synchub-dev/synchub/provider/holdings"
)

// watching is the wildcard list and watch of one resource at one endpoint.
type watching struct {
	endpoint *endpoint
	resource schema.GroupVersionResource
	informer kcpcache.ScopeableSharedIndexInformer
	log      logr.Logger
	held     holdings.Holdings
	// failed is set when an attempt to fill the cache fails. Attempts go on.
	failed atomic.Bool

	ctx     context.Context
	cancel  context.CancelFunc
	running sync.WaitGroup
}

// startWatching starts the wildcard watch of a resource, until stopWatching or the end of the endpoint.
func startWatching(endpoint *endpoint, resource schema.GroupVersionResource) *watching {
	w := &watching{endpoint: endpoint, resource: resource, log: endpoint.log.WithValues("resource", resource.String())}
	w.ctx, w.cancel = context.WithCancel(endpoint.ctx)
	w.informer = kcpinformers.NewSharedIndexInformer(
		&cache.ListWatch{ListWithContextFunc: w.list, WatchFuncWithContext: w.watch},
		&unstructured.Unstructured{},
		0,
		cache.Indexers{kcpcache.ClusterIndexName: kcpcache.ClusterIndexFunc},
	)
	// All three fail only on an informer that has been started.
	_ = w.informer.SetTransform(withoutManagedFields)
	_ = w.informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) {
		w.log.V(1).Info("the watch ended and will be taken up again", "error", err.Error())
	})
	handled, _ := w.informer.AddEventHandler(w.held.Counting(endpoint.handler(resource)))
	w.running.Go(func() { w.informer.RunWithContext(w.ctx) })
	w.running.Go(func() {
		select {
		case <-w.ctx.Done():
		case <-handled.HasSyncedChecker().Done():
			w.log.V(1).Info("the cache is filled", "objects", len(w.informer.GetStore().ListKeys()))
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
	untilServed := wait.Backoff{Duration: 250 * time.Millisecond, Factor: 1.2, Steps: 20, Cap: 5 * time.Second}.DelayFunc()
	err = untilServed.Until(ctx, true, true, func(ctx context.Context) (bool, error) {
		list, err = w.endpoint.clients.ClusterOrDie(logicalcluster.Wildcard).Resource(w.resource).List(ctx, options)
		w.answered(err)
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return err == nil, err
	})
	return list, err
}

func (w *watching) watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
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
	}
	w.endpoint.answered(w.resource, err)
}

// withoutManagedFields drops what no reader of a mailbox object needs.
func withoutManagedFields(obj any) (any, error) {
	if object, ok := obj.(*unstructured.Unstructured); ok {
		object.SetManagedFields(nil)
	}
	return obj, nil
}
