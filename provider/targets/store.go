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

	"k8s.io/client-go/tools/cache"

	"github.com/synchub-dev/synchub/provider/metrics/cachesize"
)

// store holds what a reflector shows it and tells one handler, in the goroutine of the reflector. A shared informer would do
// the same by way of two queues with four goroutines, of which one queue takes 16 KiB while it is empty: more than half of
// what a watch of which nothing comes costs altogether.
type store struct {
	cache.Indexer
	transform cache.TransformFunc
	handler   cache.ResourceEventHandler
	// synced is closed when the handler has been told of all that was there at first.
	synced chan struct{}
	// cached is counted by what is held, and not by what a target says of an object that goes.
	cached cachesize.Counter
}

func newStore(transform cache.TransformFunc, indexers cache.Indexers, handler cache.ResourceEventHandler) *store {
	if transform == nil {
		transform = func(object any) (any, error) { return object, nil }
	}
	return &store{
		Indexer:   cache.NewIndexer(cache.DeletionHandlingMetaNamespaceKeyFunc, indexers),
		transform: transform, handler: handler, synced: make(chan struct{}),
	}
}

// Transformer has the reflector, too, keep objects in the reduced form only while it reads all.
func (s *store) Transformer() cache.TransformFunc { return s.transform }

// HasSynced reports whether the handler has been told of all that was there at first.
func (s *store) HasSynced() bool {
	select {
	case <-s.synced:
		return true
	default:
		return false
	}
}

// Add is called for each object that appears.
func (s *store) Add(object any) error { return s.Update(object) }

// Update is called for each object that changes.
func (s *store) Update(object any) error {
	object, err := s.transform(object)
	if err != nil {
		return err
	}
	before, known, err := s.Get(object)
	if err != nil {
		return err
	}
	if err := s.Indexer.Update(object); err != nil {
		return err
	}
	s.notify(before, known, object)
	return nil
}

// Delete is called for each object that goes.
func (s *store) Delete(object any) error {
	object, err := s.transform(object)
	if err != nil {
		return err
	}
	before, known, err := s.Get(object)
	if err != nil || !known {
		return err
	}
	if err := s.Indexer.Delete(object); err != nil {
		return err
	}
	s.cached.Add(-1, -cachesize.SizeOf(before))
	s.handler.OnDelete(object)
	return nil
}

// Replace is called with all that there is, at first and whenever changes may have been missed.
func (s *store) Replace(objects []any, resourceVersion string) error {
	known := map[string]any{}
	for _, key := range s.ListKeys() {
		known[key], _, _ = s.GetByKey(key)
	}
	gone, keys := maps.Clone(known), make([]string, len(objects))
	for i := range objects {
		var err error
		if objects[i], err = s.transform(objects[i]); err != nil {
			return err
		}
		if keys[i], err = cache.MetaNamespaceKeyFunc(objects[i]); err != nil {
			return err
		}
		delete(gone, keys[i])
	}
	if err := s.Indexer.Replace(objects, resourceVersion); err != nil {
		return err
	}
	for key, object := range gone {
		s.cached.Add(-1, -cachesize.SizeOf(object))
		s.handler.OnDelete(cache.DeletedFinalStateUnknown{Key: key, Obj: object})
	}
	for i, object := range objects {
		before, was := known[keys[i]]
		s.notify(before, was, object)
		// A target may list an object twice.
		known[keys[i]] = object
	}
	if !s.HasSynced() {
		close(s.synced)
	}
	return nil
}

func (s *store) notify(before any, known bool, object any) {
	if known {
		s.cached.Add(0, cachesize.SizeOf(object)-cachesize.SizeOf(before))
		s.handler.OnUpdate(before, object)
	} else {
		s.cached.Add(1, cachesize.SizeOf(object))
		s.handler.OnAdd(object, !s.HasSynced())
	}
}
