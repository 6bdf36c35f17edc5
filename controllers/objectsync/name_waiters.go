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

package objectsync

import (
	"errors"
	"maps"
	"slices"
	gosync "sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/provider/targets"
)

// nameWaiters records which keys wait for a name on the target.
type nameWaiters struct {
	lock    gosync.Mutex
	awaited map[types.NamespacedName]plan.Ref
	keys    map[plan.Ref]map[types.NamespacedName]struct{}
}

// await records the name on the target that a key waits for, nil for none. It returns the key's former name if no other key waits
// for it.
func (w *nameWaiters) await(key types.NamespacedName, ref *plan.Ref) (left *plan.Ref) {
	w.lock.Lock()
	defer w.lock.Unlock()
	before, waited := w.awaited[key]
	if waited && ref != nil && before == *ref || !waited && ref == nil {
		return nil
	}
	if waited {
		delete(w.awaited, key)
		delete(w.keys[before], key)
		if len(w.keys[before]) == 0 {
			delete(w.keys, before)
			left = &before
		}
	}
	if ref == nil {
		return left
	}
	if w.awaited == nil {
		w.awaited, w.keys = map[types.NamespacedName]plan.Ref{}, map[plan.Ref]map[types.NamespacedName]struct{}{}
	}
	if w.keys[*ref] == nil {
		w.keys[*ref] = map[types.NamespacedName]struct{}{}
	}
	w.awaited[key], w.keys[*ref][key] = *ref, struct{}{}
	return left
}

// keysOf returns the keys that wait for a name on the target.
func (w *nameWaiters) keysOf(ref plan.Ref) []types.NamespacedName {
	w.lock.Lock()
	defer w.lock.Unlock()
	return slices.Collect(maps.Keys(w.keys[ref]))
}

// nameWatches watches names on the target that are taken, and enqueues the keys that wait for them. Most controllers never start
// a watch.
type nameWatches struct {
	waiters  *nameWaiters
	target   *targetView
	enqueuer *enqueuer
	tasks    *tasks

	lock gosync.Mutex
	// running has a watch for each resource in which a name was ever taken.
	running map[schema.GroupResource]*targets.NameWatch
}

func newNameWatches(waiters *nameWaiters, target *targetView, enqueuer *enqueuer, tasks *tasks) *nameWatches {
	return &nameWatches{waiters: waiters, target: target, enqueuer: enqueuer, tasks: tasks}
}

// update watches the taken name that the error of a pass reports. It stops the key's former watch if the pass had no such
// conflict.
func (w *nameWatches) update(key types.NamespacedName, err error) {
	var ref *plan.Ref
	if taken, ok := errors.AsType[*nameTakenError](err); ok {
		ref = &taken.ref
	} else if drifted, ok := errors.AsType[*driftedError](err); ok {
		ref = drifted.asNameTaken()
	}
	if left := w.waiters.await(key, ref); left != nil {
		w.watch(*left, false)
		// Another key may have started to wait for the name in the meantime.
		if len(w.waiters.keysOf(*left)) > 0 {
			w.watch(*left, true)
		}
	}
	if ref != nil {
		w.watch(*ref, true)
	}
}

// watch starts or stops the watch of a name.
func (w *nameWatches) watch(ref plan.Ref, wanted bool) {
	w.lock.Lock()
	defer w.lock.Unlock()
	watch := w.running[ref.Resource]
	switch {
	case watch != nil && !wanted:
		watch.Remove(ref.Key)
	case watch != nil:
		watch.Add(ref.Key)
	case wanted:
		w.start(ref)
	}
}

// start starts the watch of a resource with its first name. It requires the lock.
func (w *nameWatches) start(ref plan.Ref) {
	api, ctx := w.target.resourceFor(ref.Resource), w.tasks.current()
	if api == nil || ctx == nil {
		return
	}
	watch := w.target.connection.Watches.NewNameWatch(api.GroupVersionResource, func(key types.NamespacedName) {
		w.enqueuer.enqueue(changePriority, w.waiters.keysOf(api.Ref(key))...)
	})
	watch.Add(ref.Key)
	if w.running == nil {
		w.running = map[schema.GroupResource]*targets.NameWatch{}
	}
	w.running[ref.Resource] = watch
	w.tasks.start(func() { watch.Run(ctx) })
}
