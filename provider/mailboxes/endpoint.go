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
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	kcpcache "github.com/kcp-dev/apimachinery/v2/pkg/cache"
	kcpinformers "github.com/kcp-dev/apimachinery/v2/third_party/informers"
	kcpdynamic "github.com/kcp-dev/client-go/dynamic"
	"github.com/kcp-dev/logicalcluster/v3"
	apisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/synchub-dev/synchub/provider/requests"
)

var bindingsResource = apisv1alpha2.SchemeGroupVersion.WithResource("apibindings")

// servedInterval is how often a resource that the virtual workspace does not serve yet is asked for.
const servedInterval = 250 * time.Millisecond

// endpoint is one URL of the virtual workspace: the mailboxes on one kcp shard.
type endpoint struct {
	owner  *Mailboxes
	url    string
	client kcpdynamic.ClusterInterface
	log    logr.Logger
	ctx    context.Context
	cancel context.CancelFunc
	done   sync.WaitGroup

	lock      sync.RWMutex
	informers map[schema.GroupVersionResource]kcpcache.ScopeableSharedIndexInformer
}

func newEndpoint(ctx context.Context, owner *Mailboxes, url string) (*endpoint, error) {
	client, err := kcpdynamic.NewForConfig(owner.access.At(url, requests.Mailbox))
	if err != nil {
		return nil, fmt.Errorf("cannot make a client for the endpoint %s: %w", url, err)
	}
	ctx, cancel := context.WithCancel(ctx)
	return &endpoint{
		owner:     owner,
		url:       url,
		client:    client,
		log:       owner.log.WithValues("endpoint", url),
		ctx:       ctx,
		cancel:    cancel,
		informers: map[schema.GroupVersionResource]kcpcache.ScopeableSharedIndexInformer{},
	}, nil
}

func (e *endpoint) stop() {
	e.cancel()
	e.done.Wait()
}

// watch starts the wildcard watch of a resource.
func (e *endpoint) watch(resource schema.GroupVersionResource) {
	log := e.log.WithValues("resource", resource.String())
	client := e.client.Resource(resource)
	informer := kcpinformers.NewSharedIndexInformer(
		&cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
				return listOnceServed(ctx, client, options)
			},
			WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
				return client.Watch(ctx, options)
			},
		},
		&unstructured.Unstructured{},
		0,
		cache.Indexers{kcpcache.ClusterIndexName: kcpcache.ClusterIndexFunc},
	)
	// Both fail only on an informer that has been started.
	_ = informer.SetTransform(withoutManagedFields)
	_ = informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) {
		log.V(1).Info("the watch ended and will be taken up again", "error", err.Error())
	})
	handlers, err := informer.AddEventHandler(e.handler(resource))
	if err != nil {
		log.Error(err, "cannot handle events")
		return
	}
	e.lock.Lock()
	e.informers[resource] = informer
	e.lock.Unlock()

	e.done.Go(func() { informer.RunWithContext(e.ctx) })
	e.done.Go(func() {
		if cache.WaitForCacheSync(e.ctx.Done(), informer.HasSynced, handlers.HasSynced) {
			log.V(1).Info("the cache is filled", "objects", len(informer.GetStore().ListKeys()))
			e.owner.resetResource(resource)
		}
	})
}

// listOnceServed lists as soon as the virtual workspace serves the resource, which takes it up to a few seconds after the
// first mailbox was bound or the resource was published. A failed list would make the reflector wait for half a minute
// before long.
func listOnceServed(ctx context.Context, client kcpdynamic.ResourceClusterInterface, options metav1.ListOptions) (list runtime.Object, err error) {
	err = wait.PollUntilContextCancel(ctx, servedInterval, true, func(ctx context.Context) (bool, error) {
		list, err = client.List(ctx, options)
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return err == nil, err
	})
	return list, err
}

// handler routes the events of a resource to the subscribers of their mailboxes.
func (e *endpoint) handler(resource schema.GroupVersionResource) cache.ResourceEventHandler {
	if resource == bindingsResource {
		return cache.ResourceEventHandlerFuncs{
			AddFunc:    func(object any) { e.bindingChanged(nil, object) },
			UpdateFunc: func(old, object any) { e.bindingChanged(old, object) },
			DeleteFunc: func(object any) { e.bindingGone(object) },
		}
	}
	route := func(object *unstructured.Unstructured, event Event) {
		event.Key = types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}
		if subscriber, ok := e.owner.subscriber(resource, logicalcluster.From(object)); ok {
			subscriber.OnEvent(event)
		}
	}
	return cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(obj any, initial bool) {
			object := obj.(*unstructured.Unstructured)
			e.owner.prover.absolve(logicalcluster.From(object), suspectOf(resource, object))
			route(object, Event{New: object, Initial: initial})
		},
		UpdateFunc: func(oldObj, obj any) {
			old, object := oldObj.(*unstructured.Unstructured), obj.(*unstructured.Unstructured)
			if old.GetResourceVersion() != object.GetResourceVersion() {
				route(object, Event{Old: old, New: object})
			}
		},
		DeleteFunc: func(obj any) {
			if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				// The deletion itself was not seen: the object was missing from a list, which may have been partial.
				obj = tombstone.Obj
				e.owner.prover.distrust(logicalcluster.From(obj.(*unstructured.Unstructured)), resource)
			}
			object := obj.(*unstructured.Unstructured)
			route(object, Event{Old: object})
		},
	}
}

func (e *endpoint) bindingChanged(old, object any) {
	binding := object.(*unstructured.Unstructured)
	if old != nil && old.(*unstructured.Unstructured).GetResourceVersion() == binding.GetResourceVersion() {
		return
	}
	mailbox := logicalcluster.From(binding)
	e.owner.prover.bindingSeen(mailbox, binding.GetResourceVersion())
	e.owner.resetMailbox(mailbox)
}

// bindingGone drops what was known about a mailbox that is unbound or deleted. Its objects have become Unknown.
func (e *endpoint) bindingGone(object any) {
	if tombstone, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = tombstone.Obj
	}
	e.owner.prover.forget(logicalcluster.From(object.(*unstructured.Unstructured)))
}

// informer returns the cache of a resource if it is filled.
func (e *endpoint) informer(resource schema.GroupVersionResource) (kcpcache.ScopeableSharedIndexInformer, bool) {
	e.lock.RLock()
	defer e.lock.RUnlock()
	informer, ok := e.informers[resource]
	return informer, ok && informer.HasSynced()
}

func (e *endpoint) synced() bool {
	e.lock.RLock()
	defer e.lock.RUnlock()
	for _, informer := range e.informers {
		if !informer.HasSynced() {
			return false
		}
	}
	return true
}

// binding returns the mailbox's binding of our export as this endpoint shows it, or nil.
func (e *endpoint) binding(mailbox logicalcluster.Name) *unstructured.Unstructured {
	informer, ok := e.informer(bindingsResource)
	if !ok {
		return nil
	}
	// The virtual workspace shows only bindings of its own export unless bindings are claimed, which we do not do.
	found, err := informer.GetIndexer().ByIndex(kcpcache.ClusterIndexName, kcpcache.ClusterIndexKey(mailbox))
	if err != nil || len(found) == 0 {
		return nil
	}
	return found[0].(*unstructured.Unstructured)
}

// withoutManagedFields drops what no reader of a mailbox object needs.
func withoutManagedFields(obj any) (any, error) {
	if object, ok := obj.(*unstructured.Unstructured); ok {
		object.SetManagedFields(nil)
	}
	return obj, nil
}
