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

	"github.com/synchub-dev/synchub/provider/metrics/requestmetrics"
)

var crdsResource = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// Listener is told of what may cure a failure. Its functions may be nil, must return at once, and are called from several
// goroutines. A call that is under way when it is unsubscribed still ends.
type Listener struct {
	// OnNamespace is told of each namespace that came (gone is false) or went. One that was replaced unseen did both.
	OnNamespace func(name string, gone bool)
	// OnNamespaceLabels is told of each namespace that came or whose labels changed.
	OnNamespaceLabels func(namespace string)
	// OnCRD is told of each CustomResourceDefinition that came, changed or went, by the resource that it defines.
	OnCRD func(resource schema.GroupResource)
	// OnSynced is called once a watch has begun: what came before it will not be told, so whoever waits looks once more.
	OnSynced func()
	// OnUp is called when the target has come up.
	OnUp func()
	// OnLookup is called when the target has answered what was to be resolved soon.
	OnLookup func()
}

// notifier tell listeners of namespaces and definitions.
type notifier struct {
	namespaces, crds sync.Once

	lock      sync.Mutex
	listeners map[*Listener]struct{}
	// namespaceInformers is what watches namespaces, none until anybody asks for them: all, or those the connection is bound to by name.
	namespaceInformers []*informer
}

// Subscribe tells the listener of changes from now on. What it is told of is watched from the first time that anybody
// asks for it until the connection is closed.
func (c *Connection) Subscribe(listener Listener) (unsubscribe func()) {
	c.notifier.add(&listener)
	if listener.OnNamespace != nil || listener.OnNamespaceLabels != nil {
		c.watchNamespaces()
	}
	if listener.OnCRD != nil {
		c.notifier.crds.Do(func() {
			c.startMetadataInformer(crdsResource, c.metadataSource(crdsResource, metav1.NamespaceAll), toIdentityOnly, c.notifier.crdHandler())
		})
	}
	return func() { c.notifier.remove(&listener) }
}

func (c *Connection) watchNamespaces() {
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

// NamespaceLabels returns the labels of a namespace; known is false as long as the target has not shown it. From the first call on they are watched.
func (c *Connection) NamespaceLabels(name string) (labels map[string]string, known bool) {
	c.watchNamespaces()
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
	// An object can be seen before its namespace.
	return nil, false
}

// startMetadataInformer watches metadata of a resource while the connection lasts.
func (c *Connection) startMetadataInformer(resource schema.GroupVersionResource, from source, strip cache.TransformFunc, handler cache.ResourceEventHandler) *informer {
	informer := c.newInformer(from, c.newRequestGate(resource, nil), strip, nil, handler)
	c.run(func(ctx context.Context) {
		informer.runAndNotify(requestmetrics.WithClass(ctx, requestmetrics.Background), func() {
			c.notifier.notify(func(listener *Listener) {
				if listener.OnSynced != nil {
					listener.OnSynced()
				}
			})
		})
	})
	return informer
}

func (s *notifier) namespaceHandler() cache.ResourceEventHandler {
	tell := func(object any, gone bool) {
		name := keyFor(object).Name
		s.notify(func(listener *Listener) {
			if listener.OnNamespace != nil {
				listener.OnNamespace(name, gone)
			}
		})
	}
	notifyLabels := func(object any) {
		name := keyFor(object).Name
		s.notify(func(listener *Listener) {
			if listener.OnNamespaceLabels != nil {
				listener.OnNamespaceLabels(name)
			}
		})
	}
	return cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(object any, initial bool) {
			if !initial {
				tell(object, false)
				notifyLabels(object)
			}
		},
		UpdateFunc: func(before, after any) {
			was, is := before.(metav1.Object), after.(metav1.Object)
			if was.GetUID() != is.GetUID() {
				tell(before, true)
				tell(after, false)
			}
			if !maps.Equal(was.GetLabels(), is.GetLabels()) {
				notifyLabels(after)
			}
		},
		DeleteFunc: func(object any) { tell(object, true) },
	}
}

func (s *notifier) crdHandler() cache.ResourceEventHandler {
	tell := func(object any) {
		defined := schema.ParseGroupResource(keyFor(object).Name)
		s.notify(func(listener *Listener) {
			if listener.OnCRD != nil {
				listener.OnCRD(defined)
			}
		})
	}
	return cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(object any, initial bool) {
			if !initial {
				tell(object)
			}
		},
		UpdateFunc: func(before, after any) {
			// A list made anew tells of all that it found again.
			if before.(metav1.Object).GetResourceVersion() != after.(metav1.Object).GetResourceVersion() {
				tell(after)
			}
		},
		DeleteFunc: tell,
	}
}

func (s *notifier) add(listener *Listener) {
	s.lock.Lock()
	defer s.lock.Unlock()
	if s.listeners == nil {
		s.listeners = map[*Listener]struct{}{}
	}
	s.listeners[listener] = struct{}{}
}

func (s *notifier) remove(listener *Listener) {
	s.lock.Lock()
	defer s.lock.Unlock()
	delete(s.listeners, listener)
}

// notify calls without the lock, so that a listener may unsubscribe while it is told.
func (s *notifier) notify(call func(*Listener)) {
	s.lock.Lock()
	listeners := make([]*Listener, 0, len(s.listeners))
	for listener := range s.listeners {
		listeners = append(listeners, listener)
	}
	s.lock.Unlock()
	for _, listener := range listeners {
		call(listener)
	}
}
