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

	"github.com/synchub-dev/synchub/provider/cachesize"
)

// store caches the objects of a reflector, and calls one handler in the goroutine of the reflector. A shared informer would
// need two queues and four goroutines. One of these queues takes 16 KiB while it is empty: more than half of the cost of an
// idle watch.
type store struct {
	cache.Indexer
	transform cache.TransformFunc
	handler   cache.ResourceEventHandler
	// synced is closed after the handler was called for all initial objects.
	synced chan struct{}
	// cached is the size of the cached objects. It does not depend on the last state of a deleted object.
	cached cachesize.Counter
}

// newStore returns an empty store. A nil transform changes nothing.
func newStore(transform cache.TransformFunc, indexers cache.Indexers, handler cache.ResourceEventHandler) *store {
	if transform == nil {
		transform = func(object any) (any, error) { return object, nil }
	}
	return &store{
		Indexer:   cache.NewIndexer(cache.DeletionHandlingMetaNamespaceKeyFunc, indexers),
		transform: transform, handler: handler, synced: make(chan struct{}),
	}
}

// HasSynced reports whether the handler was called for all initial objects.
func (s *store) HasSynced() bool {
	select {
	case <-s.synced:
		return true
	default:
		return false
	}
}

// Add caches a new object, and calls the handler.
func (s *store) Add(object any) error { return s.Update(object) }

// Update caches a changed object, and calls the handler.
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

// Delete drops a deleted object, and calls the handler if the object was cached.
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

// Replace replaces all cached objects by the objects of a list, and calls the handler for each difference. Deleted objects
// become tombstones.
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

// notify counts an object, and calls the handler; known is true if before was cached.
func (s *store) notify(before any, known bool, object any) {
	if known {
		s.cached.Add(0, cachesize.SizeOf(object)-cachesize.SizeOf(before))
		s.handler.OnUpdate(before, object)
	} else {
		s.cached.Add(1, cachesize.SizeOf(object))
		s.handler.OnAdd(object, !s.HasSynced())
	}
}
