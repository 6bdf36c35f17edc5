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
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/synchub-dev/synchub/provider/requestclass"
)

var crdsResource = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// Watches makes the informers of a connection: of caches, of names, and of the namespaces and CustomResourceDefinitions whose
// events it reports to listeners.
type Watches struct {
	env        *environment
	client     *client
	health     *HealthMonitor
	quarantine *Quarantine
	size       *CacheSize
	objects    *Objects
	apiPoll    *APIPoll
	listeners  *listeners
	namespaces Namespaces
	// pageSemaphore has an entry for each page that is being read.
	pageSemaphore chan struct{}
	// aggregateMetrics sums up the metrics of all resources of the target.
	aggregateMetrics bool
	informers        informerSet

	namespacesOnce, crdsOnce sync.Once
	lock                     sync.Mutex
	// namespaceInformers watch namespaces: all, or the connection's. They start with the first listener.
	namespaceInformers []*informer
}

// objectSource returns a source of whole objects of a resource. The empty namespace means all.
func (w *Watches) objectSource(resource schema.GroupVersionResource, namespace string) source {
	client := w.client.resource(resource, namespace)
	return source{
		list: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return client.List(ctx, options)
		},
		watch:   client.Watch,
		example: &unstructured.Unstructured{},
	}
}

// metadataSource returns a source of [metav1.PartialObjectMetadata].
func (w *Watches) metadataSource(resource schema.GroupVersionResource, namespace string) source {
	client := w.client.metadata.Resource(resource).Namespace(namespace)
	return source{
		list: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return client.List(ctx, options)
		},
		watch:   client.Watch,
		example: &metav1.PartialObjectMetadata{},
	}
}

// newInformer returns an informer that is idle until RunWithContext. onAvailability may be nil.
func (w *Watches) newInformer(resource schema.GroupVersionResource, from source, onAvailability func(), transform cache.TransformFunc, indexers cache.Indexers, handler cache.ResourceEventHandler) *informer {
	gate := &requestGate{watches: w, resource: resource.GroupResource(), version: resource.Version, onChange: onAvailability}
	made := &informer{requestGate: gate, from: from, store: newStore(transform, indexers, handler)}
	made.run.Store(made.newRun(nil))
	return made
}

// Subscribe calls the listener for later events. The first listener for a resource starts its watch, which ends with the
// connection.
func (w *Watches) Subscribe(listener Listener) (unsubscribe func()) {
	w.listeners.add(&listener)
	if listener.OnNamespace != nil || listener.OnNamespaceLabels != nil {
		w.startNamespaceInformers()
	}
	if listener.OnCRD != nil {
		w.crdsOnce.Do(func() {
			w.startMetadataInformer(crdsResource, w.metadataSource(crdsResource, metav1.NamespaceAll), toIdentityOnly, w.listeners.crdHandler())
		})
	}
	return func() { w.listeners.remove(&listener) }
}

// startNamespaceInformers starts the watch of namespaces, unless it runs.
func (w *Watches) startNamespaceInformers() {
	w.namespacesOnce.Do(func() {
		all := w.metadataSource(namespacesResource, metav1.NamespaceAll)
		var watched []source
		for _, name := range w.namespaces {
			watched = append(watched, all.withName(name))
		}
		if len(w.namespaces) == 0 {
			watched = []source{all}
		}
		var watching []*informer
		for _, one := range watched {
			watching = append(watching, w.startMetadataInformer(namespacesResource, one, toIdentityAndLabels, w.listeners.namespaceHandler()))
		}
		w.lock.Lock()
		w.namespaceInformers = watching
		w.lock.Unlock()
	})
}

// NamespaceLabels returns the labels of a namespace; known is false until the watch of namespaces shows it. The first call
// starts the watch.
func (w *Watches) NamespaceLabels(name string) (labels map[string]string, known bool) {
	w.startNamespaceInformers()
	w.lock.Lock()
	watching := w.namespaceInformers
	w.lock.Unlock()
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
func (w *Watches) startMetadataInformer(resource schema.GroupVersionResource, from source, transform cache.TransformFunc, handler cache.ResourceEventHandler) *informer {
	informer := w.newInformer(resource, from, nil, transform, nil, handler)
	w.env.runInBackground(func(ctx context.Context) {
		informer.runAndNotify(requestclass.With(ctx, requestclass.Background), func() {
			w.listeners.call(func(listener *Listener) func() { return listener.OnSynced })
		})
	})
	return informer
}
