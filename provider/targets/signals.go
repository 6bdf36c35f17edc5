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

	"github.com/synchub-dev/synchub/provider/requests"
)

var definitionsOfKinds = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// Listener is told of what may cure a failure. Its functions may be nil, must return at once, and are called from several
// goroutines. A call that is under way when it is unsubscribed still ends.
type Listener struct {
	// Namespace is told of each namespace that came (gone is false) or went. One that was replaced unseen did both.
	Namespace func(name string, gone bool)
	// Labels is told of each namespace that came or whose labels changed.
	Labels func(namespace string)
	// CRD is told of each CustomResourceDefinition that came, changed or went, by the resource that it defines.
	CRD func(resource schema.GroupResource)
	// Synced is called once a watch has begun: what came before it will not be told, so whoever waits looks once more.
	Synced func()
	// Answered is called when the target has answered what was to be resolved soon.
	Answered func()
}

// signals tell listeners of namespaces and definitions.
type signals struct {
	namespaces, definitions sync.Once

	lock      sync.Mutex
	listeners map[*Listener]struct{}
	// labelled is what watches namespaces, none until anybody asks for them: all, or those the connection is bound to by name.
	labelled []*informer
}

// Subscribe tells the listener of changes from now on. What it is told of is watched from the first time that anybody
// asks for it until the connection is closed.
func (c *Connection) Subscribe(listener Listener) (unsubscribe func()) {
	c.signals.add(&listener)
	if listener.Namespace != nil || listener.Labels != nil {
		c.watchNamespaces()
	}
	if listener.CRD != nil {
		c.signals.definitions.Do(func() {
			c.signal(definitionsOfKinds, c.metadataOf(definitionsOfKinds, metav1.NamespaceAll), onlyIdentity, c.signals.definitionHandler())
		})
	}
	return func() { c.signals.remove(&listener) }
}

func (c *Connection) watchNamespaces() {
	c.signals.namespaces.Do(func() {
		all := c.metadataOf(namespaces, metav1.NamespaceAll)
		watched := []source{all}
		if len(c.namespaces) > 0 {
			watched = nil
			for _, name := range c.namespaces {
				watched = append(watched, all.named(name))
			}
		}
		var watching []*informer
		for _, one := range watched {
			watching = append(watching, c.signal(namespaces, one, identityAndLabels, c.signals.namespaceHandler()))
		}
		c.signals.lock.Lock()
		c.signals.labelled = watching
		c.signals.lock.Unlock()
	})
}

// NamespaceLabels returns the labels of a namespace; known is false as long as the target has not shown it. From the first call on they are watched.
func (c *Connection) NamespaceLabels(name string) (labels map[string]string, known bool) {
	c.watchNamespaces()
	c.signals.lock.Lock()
	watching := c.signals.labelled
	c.signals.lock.Unlock()
	for _, one := range watching {
		if !one.Synced() {
			continue
		}
		if found, exists, err := one.GetByKey(name); err == nil && exists {
			return found.(metav1.Object).GetLabels(), true
		}
	}
	// An object can be seen before its namespace.
	return nil, false
}

// signal watches metadata of a resource while the connection lasts.
func (c *Connection) signal(resource schema.GroupVersionResource, from source, strip cache.TransformFunc, handler cache.ResourceEventHandler) *informer {
	informer := c.newInformer(from, c.newGate(resource, nil), strip, nil, handler)
	c.run(func(ctx context.Context) {
		informer.runAnd(requests.As(ctx, requests.Background), func() {
			c.signals.tell(func(listener *Listener) {
				if listener.Synced != nil {
					listener.Synced()
				}
			})
		})
	})
	return informer
}

func (s *signals) namespaceHandler() cache.ResourceEventHandler {
	tell := func(object any, gone bool) {
		name := keyOfObject(object).Name
		s.tell(func(listener *Listener) {
			if listener.Namespace != nil {
				listener.Namespace(name, gone)
			}
		})
	}
	relabelled := func(object any) {
		name := keyOfObject(object).Name
		s.tell(func(listener *Listener) {
			if listener.Labels != nil {
				listener.Labels(name)
			}
		})
	}
	return cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(object any, initial bool) {
			if !initial {
				tell(object, false)
				relabelled(object)
			}
		},
		UpdateFunc: func(before, after any) {
			was, is := before.(metav1.Object), after.(metav1.Object)
			if was.GetUID() != is.GetUID() {
				tell(before, true)
				tell(after, false)
			}
			if !maps.Equal(was.GetLabels(), is.GetLabels()) {
				relabelled(after)
			}
		},
		DeleteFunc: func(object any) { tell(object, true) },
	}
}

func (s *signals) definitionHandler() cache.ResourceEventHandler {
	tell := func(object any) {
		defined := schema.ParseGroupResource(keyOfObject(object).Name)
		s.tell(func(listener *Listener) {
			if listener.CRD != nil {
				listener.CRD(defined)
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

func (s *signals) add(listener *Listener) {
	s.lock.Lock()
	defer s.lock.Unlock()
	if s.listeners == nil {
		s.listeners = map[*Listener]struct{}{}
	}
	s.listeners[listener] = struct{}{}
}

func (s *signals) remove(listener *Listener) {
	s.lock.Lock()
	defer s.lock.Unlock()
	delete(s.listeners, listener)
}

// tell calls without the lock, so that a listener may unsubscribe while it is told.
func (s *signals) tell(call func(*Listener)) {
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
