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

package ui

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// store has the objects of one kind in one workspace, by one watch for all pages. A nil store has no objects.
type store[T client.Object] struct {
	// kind is the plural of the kind, in messages.
	kind     string
	informer cache.SharedIndexInformer
	// ready is closed once the store has the objects, or the first request has failed.
	ready    chan struct{}
	setReady func()

	lock sync.Mutex
	err  error
}

// watchKind watches the objects that meet the fields until the context ends, and calls changed after each change. newList makes an
// empty list.
func watchKind[T client.Object](ctx context.Context, from client.WithWatch, kind string, object T, newList func() client.ObjectList, selected fields.Selector, changed func()) (*store[T], error) {
	s := &store[T]{kind: kind, ready: make(chan struct{})}
	s.setReady = sync.OnceFunc(func() { close(s.ready) })
	// The request was refused or answered: both are news for pages.
	record := func(err error) {
		if s.record(err) {
			changed()
		}
	}
	requests := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			list := newList()
			err := from.List(ctx, list, &client.ListOptions{FieldSelector: selected, Limit: options.Limit, Continue: options.Continue, Raw: &options})
			record(err)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			events, err := from.Watch(ctx, newList(), &client.ListOptions{FieldSelector: selected, Raw: &options})
			record(err)
			return events, err
		},
	}
	s.informer = cache.NewSharedIndexInformerWithOptions(cache.ToListWatcherWithWatchListSemantics(requests, from), object, cache.SharedIndexInformerOptions{})
	if err := s.informer.SetTransform(withoutManagedFields); err != nil {
		return nil, err
	}
	handler, err := s.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { changed() }, UpdateFunc: func(_, _ any) { changed() }, DeleteFunc: func(any) { changed() },
	})
	if err != nil {
		return nil, err
	}
	go s.informer.RunWithContext(ctx)
	go func() {
		if cache.WaitFor(ctx, "", handler.HasSyncedChecker()) {
			s.setReady()
		}
	}()
	return s, nil
}

// withoutManagedFields drops what no page shows, and what is often the largest part of an object.
func withoutManagedFields(object any) (any, error) {
	if found, err := meta.Accessor(object); err == nil {
		found.SetManagedFields(nil)
	}
	return object, nil
}

// record keeps the error of the last request, and reports whether it became another one.
func (s *store[T]) record(err error) (changed bool) {
	s.lock.Lock()
	defer s.lock.Unlock()
	changed = (err == nil) != (s.err == nil)
	s.err = err
	if err != nil {
		s.setReady()
	}
	return changed
}

// problem describes why the objects may be missing or old. It is empty if the watch runs.
func (s *store[T]) problem() string {
	if s == nil {
		return ""
	}
	s.lock.Lock()
	defer s.lock.Unlock()
	if s.err == nil {
		return ""
	}
	return fmt.Sprintf("%s cannot be read: %v", s.kind, s.err)
}

// list returns the objects, in no order. Callers must not change them.
func (s *store[T]) list() []T {
	if s == nil {
		return nil
	}
	var found []T
	for _, object := range s.informer.GetStore().List() {
		found = append(found, object.(T))
	}
	return found
}

// get returns the cluster-scoped object of a name.
func (s *store[T]) get(name string) (found T, ok bool) {
	if s == nil {
		return found, false
	}
	object, ok, _ := s.informer.GetStore().GetByKey(name)
	if !ok {
		return found, false
	}
	return object.(T), true
}

// awaitReady waits until the store has the objects, or until it knows why it cannot have them.
func (s *store[T]) awaitReady(ctx context.Context) {
	if s == nil {
		return
	}
	select {
	case <-s.ready:
	case <-ctx.Done():
	}
}
