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

package topic

import (
	"context"
	gosync "sync"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// Topic carries the keys of changed states. The zero value is ready to use; a nil topic carries nothing.
type Topic[K comparable] struct {
	lock        gosync.RWMutex
	subscribers map[*subscriber[K]]struct{}
}

type subscriber[K comparable] struct{ enqueue func(K) }

// Publish notifies all started controllers of a change. It never blocks. Controllers that start later reconcile everything at
// their start.
func (t *Topic[K]) Publish(key K) {
	if t == nil {
		return
	}
	t.lock.RLock()
	defer t.lock.RUnlock()
	for one := range t.subscribers {
		one.enqueue(key)
	}
}

// Subscribe calls follow for each key that is published from now on, until ctx ends. follow must not block, or publish to the same topic.
func (t *Topic[K]) Subscribe(ctx context.Context, follow func(K)) {
	if t == nil {
		return
	}
	one := &subscriber[K]{follow}
	t.lock.Lock()
	defer t.lock.Unlock()
	if t.subscribers == nil {
		t.subscribers = map[*subscriber[K]]struct{}{}
	}
	t.subscribers[one] = struct{}{}
	context.AfterFunc(ctx, func() {
		t.lock.Lock()
		defer t.lock.Unlock()
		delete(t.subscribers, one)
	})
}

// Source returns a source for a controller. From the start of the controller to its end, enqueue is called for
// each published key, and adds the resulting requests. It must not block, or publish to the same topic.
// atStart is called once it does so, to add requests for keys that were published earlier.
func Source[K, R comparable](t *Topic[K], enqueue func(queue workqueue.TypedRateLimitingInterface[R], key K), atStart ...func(queue workqueue.TypedRateLimitingInterface[R])) source.TypedSource[R] {
	return source.TypedFunc[R](func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[R]) error {
		t.Subscribe(ctx, func(key K) { enqueue(queue, key) })
		for _, add := range atStart {
			add(queue)
		}
		return nil
	})
}
