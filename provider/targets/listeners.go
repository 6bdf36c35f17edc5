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
	"maps"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
)

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
	// OnAPIs is called when the target began or ceased to serve an API, while a caller waits for an API (see [APIPoll.Await]).
	OnAPIs func()
	// OnUp is called when the target comes up.
	OnUp func()
	// OnLookup is called after each answer to an asynchronous lookup, such as [APIs.ResolveAsync].
	OnLookup func()
}

// listeners are the subscribed listeners of a connection. They are safe for concurrent use.
type listeners struct {
	lock sync.Mutex
	all  map[*Listener]struct{}
}

// namespaceHandler returns a handler of the events of namespaces.
func (l *listeners) namespaceHandler() cache.ResourceEventHandler {
	notify := func(object any, gone bool) {
		name := keyFor(object).Name
		l.notify(func(listener *Listener) {
			if listener.OnNamespace != nil {
				listener.OnNamespace(name, gone)
			}
		})
	}
	notifyLabels := func(object any) {
		name := keyFor(object).Name
		l.notify(func(listener *Listener) {
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

// crdHandler returns a handler of the events of CustomResourceDefinitions.
func (l *listeners) crdHandler() cache.ResourceEventHandler {
	notify := func(object any) {
		defined := schema.ParseGroupResource(keyFor(object).Name)
		l.notify(func(listener *Listener) {
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

func (l *listeners) add(listener *Listener) {
	l.lock.Lock()
	defer l.lock.Unlock()
	if l.all == nil {
		l.all = map[*Listener]struct{}{}
	}
	l.all[listener] = struct{}{}
}

func (l *listeners) remove(listener *Listener) {
	l.lock.Lock()
	defer l.lock.Unlock()
	delete(l.all, listener)
}

// notify calls the function for each listener, without the lock: a listener may unsubscribe in the call.
func (l *listeners) notify(call func(*Listener)) {
	l.lock.Lock()
	all := make([]*Listener, 0, len(l.all))
	for listener := range l.all {
		all = append(all, listener)
	}
	l.lock.Unlock()
	for _, listener := range all {
		call(listener)
	}
}

// call calls the function that which returns of each listener, unless it is nil.
func (l *listeners) call(which func(*Listener) func()) {
	l.notify(func(listener *Listener) {
		if call := which(listener); call != nil {
			call()
		}
	})
}
