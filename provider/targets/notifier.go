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

package targets

import (
	"context"
	"maps"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/synchub-dev/synchub/provider/requestclass"
)

var crdsResource = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// Listener has functions for events that may end a failure. They may be nil, must not block, and are called from several
// goroutines. A call may still be running after the listener is unsubscribed.
type Listener struct {
	// OnNamespace is called for each created or deleted namespace, and twice for a replaced one.
	OnNamespace func(name string, gone bool)
	// OnNamespaceLabels is called for each namespace that was created or whose labels changed.
	OnNamespaceLabels func(namespace string)
	// OnCRD is called with the defined resource for each change of a CustomResourceDefinition.
	OnCRD func(resource schema.GroupResource)
	// OnSynced is called when a watch has synced. Earlier events are not reported, so the listener must check once more.
	OnSynced func()
	// OnAPIs is called when the target began or ceased to serve an API, while a caller waits for an API (see
	// [Connection.AwaitAPI]).
	OnAPIs func()
	// OnUp is called when the target comes up.
	OnUp func()
	// OnLookup is called after each answer to an asynchronous lookup, such as [Connection.ResolveAsync].
	OnLookup func()
}

// notifier calls listeners for events of namespaces and CustomResourceDefinitions.
type notifier struct {
	namespaces, crds sync.Once

	lock      sync.Mutex
	listeners map[*Listener]struct{}
	// namespaceInformers watch namespaces: all, or the connection's. They start with the first listener.
	namespaceInformers []*informer
}

// Subscribe calls the listener for later events. The first listener for a resource starts its watch, which ends with the
// connection.
func (c *Connection) Subscribe(listener Listener) (unsubscribe func()) {
	c.notifier.add(&listener)
	if listener.OnNamespace != nil || listener.OnNamespaceLabels != nil {
		c.startNamespaceInformers()
	}
	if listener.OnCRD != nil {
		c.notifier.crds.Do(func() {
			c.startMetadataInformer(crdsResource, c.metadataSource(crdsResource, metav1.NamespaceAll), toIdentityOnly, c.notifier.crdHandler())
		})
	}
	return func() { c.notifier.remove(&listener) }
}

// startNamespaceInformers starts the watch of namespaces, unless it runs.
func (c *Connection) startNamespaceInformers() {
	c.notifier.namespaces.Do(func() {
		all := c.metadataSource(namespacesResource, metav1.NamespaceAll)
		watched := []source{all}
		if len(c.namespaces) > 0 {
			watched = nil
			for _, name := range c.namespaces {
				watched = append(watched, all.withName(name))
			}
		}
		var watching []*informer
		for _, one := range watched {
			watching = append(watching, c.startMetadataInformer(namespacesResource, one, toIdentityAndLabels, c.notifier.namespaceHandler()))
		}
		c.notifier.lock.Lock()
		c.notifier.namespaceInformers = watching
		c.notifier.lock.Unlock()
	})
}

// NamespaceLabels returns the labels of a namespace; known is false until the watch of namespaces shows it. The first call
// starts the watch.
func (c *Connection) NamespaceLabels(name string) (labels map[string]string, known bool) {
	c.startNamespaceInformers()
	c.notifier.lock.Lock()
	watching := c.notifier.namespaceInformers
	c.notifier.lock.Unlock()
	for _, one := range watching {
		if !one.HasSynced() {
			continue
		}
		if found, exists, err := one.GetByKey(name); err == nil && exists {
			return found.(metav1.Object).GetLabels(), true
		}
	}
	// An object can be visible before its namespace.
	return nil, false
}

// startMetadataInformer starts an informer that ends with the connection.
func (c *Connection) startMetadataInformer(resource schema.GroupVersionResource, from source, transform cache.TransformFunc, handler cache.ResourceEventHandler) *informer {
	informer := c.newInformer(from, c.newRequestGate(resource, nil), transform, nil, handler)
	c.RunInBackground(func(ctx context.Context) {
		informer.runAndNotify(requestclass.With(ctx, requestclass.Background), func() {
			c.notifier.notify(func(listener *Listener) {
				if listener.OnSynced != nil {
					listener.OnSynced()
				}
			})
		})
	})
	return informer
}

func (n *notifier) namespaceHandler() cache.ResourceEventHandler {
	notify := func(object any, gone bool) {
		name := keyFor(object).Name
		n.notify(func(listener *Listener) {
			if listener.OnNamespace != nil {
				listener.OnNamespace(name, gone)
			}
		})
	}
	notifyLabels := func(object any) {
		name := keyFor(object).Name
		n.notify(func(listener *Listener) {
			if listener.OnNamespaceLabels != nil {
				listener.OnNamespaceLabels(name)
			}
		})
	}
	return cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(object any, initial bool) {
			if !initial {
				notify(object, false)
				notifyLabels(object)
			}
		},
		UpdateFunc: func(before, after any) {
			was, is := before.(metav1.Object), after.(metav1.Object)
			if was.GetUID() != is.GetUID() {
				notify(before, true)
				notify(after, false)
			}
			if !maps.Equal(was.GetLabels(), is.GetLabels()) {
				notifyLabels(after)
			}
		},
		DeleteFunc: func(object any) { notify(object, true) },
	}
}

func (n *notifier) crdHandler() cache.ResourceEventHandler {
	notify := func(object any) {
		defined := schema.ParseGroupResource(keyFor(object).Name)
		n.notify(func(listener *Listener) {
			if listener.OnCRD != nil {
				listener.OnCRD(defined)
			}
		})
	}
	return cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(object any, initial bool) {
			if !initial {
				notify(object)
			}
		},
		UpdateFunc: func(before, after any) {
			// A relist reports unchanged objects too.
			if before.(metav1.Object).GetResourceVersion() != after.(metav1.Object).GetResourceVersion() {
				notify(after)
			}
		},
		DeleteFunc: notify,
	}
}

func (n *notifier) add(listener *Listener) {
	n.lock.Lock()
	defer n.lock.Unlock()
	if n.listeners == nil {
		n.listeners = map[*Listener]struct{}{}
	}
	n.listeners[listener] = struct{}{}
}

func (n *notifier) remove(listener *Listener) {
	n.lock.Lock()
	defer n.lock.Unlock()
	delete(n.listeners, listener)
}

// notify calls the function for each listener, without the lock: a listener may unsubscribe in the call.
func (n *notifier) notify(call func(*Listener)) {
	n.lock.Lock()
	listeners := make([]*Listener, 0, len(n.listeners))
	for listener := range n.listeners {
		listeners = append(listeners, listener)
	}
	n.lock.Unlock()
	for _, listener := range listeners {
		call(listener)
	}
}
