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
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// stagedCache is a cache for which the test simulates the watch and the target.
type stagedCache struct {
	*FilteredCache
	t       *testing.T
	store   cache.Store
	handler cache.ResourceEventHandler
	filter  *filterByName

	lock sync.Mutex
	// target has the objects on the target, by name.
	target map[string]*unstructured.Unstructured
	// handled are the states in the last events.
	handled map[string]*unstructured.Unstructured
	// onRead is called during a request, after the object was read and before the request returns.
	onRead func()
}

func newStagedCache(t *testing.T) *stagedCache {
	t.Helper()
	w := &stagedCache{t: t, filter: &filterByName{}, target: map[string]*unstructured.Unstructured{}, handled: map[string]*unstructured.Unstructured{}, onRead: func() {}}
	held := newStore(nil, nil, nil)
	w.store = held.Indexer
	w.FilteredCache = &FilteredCache{
		resource: widgets.GroupResource(), fetched: map[types.NamespacedName]struct{}{},
		options: FilteredCacheOptions{Filter: w.filter.matches, KeepRejectedMetadata: true, Handler: w},
		parts:   []*informer{{store: held}},
		objects: map[types.NamespacedName]*unstructured.Unstructured{},
		get:     w.read,
	}
	w.handler = w.FilteredCache.handler()
	return w
}

// read is a request for one object.
func (w *stagedCache) read(_ context.Context, key types.NamespacedName) (*unstructured.Unstructured, error) {
	w.lock.Lock()
	found := w.target[key.Name]
	w.lock.Unlock()
	w.onRead()
	if found == nil {
		return nil, apierrors.NewNotFound(widgets.GroupResource(), key.Name)
	}
	return found.DeepCopy(), nil
}

func (w *stagedCache) OnAdd(object any, _ bool)    { w.expectConsistent(nil, object) }
func (w *stagedCache) OnUpdate(before, object any) { w.expectConsistent(before, object) }
func (w *stagedCache) OnDelete(object any)         { w.expectConsistent(object, nil) }

// expectConsistent fails the test if an event does not follow from the one before, or goes back to an older state.
func (w *stagedCache) expectConsistent(before, after any) {
	w.lock.Lock()
	defer w.lock.Unlock()
	object, _ := after.(*unstructured.Unstructured)
	was, _ := before.(*unstructured.Unstructured)
	name := was.GetName
	if object != nil {
		name = object.GetName
	}
	if versionOf(w.handled[name()]) != versionOf(was) {
		w.t.Errorf("%s changes from %q, which it was not, but %q", name(), versionOf(was), versionOf(w.handled[name()]))
	}
	if was != nil && object != nil && was.GetUID() == object.GetUID() && !isNewer(object.GetResourceVersion(), was.GetResourceVersion()) {
		w.t.Errorf("%s went back from %s to %s", name(), was.GetResourceVersion(), object.GetResourceVersion())
	}
	if object == nil {
		delete(w.handled, name())
	} else {
		w.handled[name()] = object
	}
}

// versionOf returns the resourceVersion of an object.
func versionOf(object *unstructured.Unstructured) string {
	if object == nil {
		return ""
	}
	return fmt.Sprint(object.GetUID(), " ", object.GetResourceVersion())
}

// state is an object of the target at one time.
func state(name, uid string, version int, interesting string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.org/v1", "kind": "Widget",
		"metadata": map[string]any{"name": name, "uid": uid, "resourceVersion": strconv.Itoa(version), "labels": map[string]any{interestLabel: interesting}},
	}}
}

// setOnTarget changes the target. The watch does not show the change yet.
func (w *stagedCache) setOnTarget(object *unstructured.Unstructured) {
	w.lock.Lock()
	defer w.lock.Unlock()
	w.target[object.GetName()] = object
}

func (w *stagedCache) deleteOnTarget(name string) {
	w.lock.Lock()
	defer w.lock.Unlock()
	delete(w.target, name)
}

// watchShows sends an event of the watch. As in an informer, the store is changed first.
func (w *stagedCache) watchShows(object *unstructured.Unstructured) {
	item, err := w.transform(object.DeepCopy())
	if err != nil {
		w.t.Error(err)
		return
	}
	before, exists, _ := w.store.GetByKey(object.GetName())
	_ = w.store.Add(item)
	if exists {
		w.handler.OnUpdate(before, item)
	} else {
		w.handler.OnAdd(item, false)
	}
}

func (w *stagedCache) watchShowsDeletion(name string) {
	if item, exists, _ := w.store.GetByKey(name); exists {
		_ = w.store.Delete(item)
		w.handler.OnDelete(item)
	}
}

// expectObjects fails the test unless the cache holds these states, given as name and version, and has sent events of them.
func (w *stagedCache) expectObjects(want ...string) {
	w.t.Helper()
	var held, recorded []string
	for _, object := range w.List() {
		held = append(held, object.GetName()+" "+object.GetResourceVersion())
	}
	for _, object := range w.handled {
		recorded = append(recorded, object.GetName()+" "+object.GetResourceVersion())
	}
	slices.Sort(held)
	slices.Sort(recorded)
	if !slices.Equal(held, want) || !slices.Equal(recorded, want) {
		w.t.Errorf("want %q, the cache has %q and reported %q", want, held, recorded)
	}
}

// The watch continues during a request. In any order, the cache has the newest state in the end.
func TestFetchAndTheWatch(t *testing.T) {
	for name, test := range map[string]struct {
		// target is the state when the object is requested; during and after are the states that the watch shows.
		target        *unstructured.Unstructured
		during, after func(*stagedCache)
		want          []string
	}{
		"no events":            {state("a", "1", 10, "true"), nil, nil, []string{"a 10"}},
		"the watch is behind":  {state("a", "1", 12, "true"), nil, nil, []string{"a 12"}},
		"the watch catches up": {state("a", "1", 12, "true"), nil, func(w *stagedCache) { w.watchShows(state("a", "1", 12, "true")) }, []string{"a 12"}},
		"the watch catches up step by step": {state("a", "1", 12, "true"), nil, func(w *stagedCache) {
			w.watchShows(state("a", "1", 11, "true"))
			w.expectObjects("a 12")
			w.watchShows(state("a", "1", 12, "true"))
		}, []string{"a 12"}},
		"of no interest before":                 {state("a", "1", 12, "true"), nil, func(w *stagedCache) { w.watchShows(state("a", "1", 11, "false")); w.expectObjects("a 12") }, []string{"a 12"}},
		"of no interest before, event first":    {state("a", "1", 12, "true"), func(w *stagedCache) { w.watchShows(state("a", "1", 11, "false")) }, nil, []string{"a 12"}},
		"loses interest during the request":     {state("a", "1", 10, "true"), func(w *stagedCache) { w.watchShows(state("a", "1", 11, "false")) }, nil, nil},
		"loses interest after the request":      {state("a", "1", 10, "true"), nil, func(w *stagedCache) { w.watchShows(state("a", "1", 11, "false")) }, nil},
		"changed during the request":            {state("a", "1", 10, "true"), func(w *stagedCache) { w.watchShows(state("a", "1", 11, "true")) }, nil, []string{"a 11"}},
		"deleted during the request":            {state("a", "1", 10, "true"), func(w *stagedCache) { w.watchShowsDeletion("a") }, nil, nil},
		"deleted after the request":             {state("a", "1", 10, "true"), nil, func(w *stagedCache) { w.watchShowsDeletion("a") }, nil},
		"replaced during the request":           {state("a", "1", 10, "true"), func(w *stagedCache) { w.watchShowsDeletion("a"); w.watchShows(state("a", "2", 12, "true")) }, nil, []string{"a 12"}},
		"replaced by an object of no interest":  {state("a", "1", 10, "true"), func(w *stagedCache) { w.watchShowsDeletion("a"); w.watchShows(state("a", "2", 12, "false")) }, nil, nil},
		"replaced before the request":           {state("a", "2", 12, "true"), nil, func(w *stagedCache) { w.watchShowsDeletion("a"); w.watchShows(state("a", "2", 12, "true")) }, []string{"a 12"}},
		"missing":                               {nil, nil, nil, nil},
		"missing, with an event":                {nil, nil, func(w *stagedCache) { w.watchShowsDeletion("a") }, nil},
		"of no interest":                        {state("a", "1", 10, "false"), nil, nil, nil},
		"the filter changes during the request": {state("a", "1", 10, "true"), func(w *stagedCache) { w.filter.set("a", false) }, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := newStagedCache(t)
			w.watchShows(state("a", "1", 10, "true"))
			w.watchShows(state("b", "3", 5, "true"))
			w.filter.set("a", true)
			if test.target != nil {
				w.setOnTarget(test.target)
			}
			w.onRead = func() {
				if test.during != nil {
					test.during(w)
				}
			}
			if err := w.Fetch(t.Context(), types.NamespacedName{Name: "a"}); err != nil {
				t.Fatal(err)
			}
			if test.after != nil {
				test.after(w)
			}
			w.expectObjects(test.want...)
		})
	}
}

// Fetch does not cache an object before the first list of the watch, which will contain it.
func TestFetchIsNotAheadOfTheFirstList(t *testing.T) {
	w := newStagedCache(t)
	w.filter.set("a", true)
	w.setOnTarget(state("a", "1", 10, "true"))
	if err := w.Fetch(t.Context(), types.NamespacedName{Name: "a"}); err != nil {
		t.Fatal(err)
	}
	w.expectObjects()
	w.watchShows(state("a", "1", 10, "true"))
	w.expectObjects("a 10")
	w.get = func(context.Context, types.NamespacedName) (*unstructured.Unstructured, error) {
		return nil, errors.New("no answer")
	}
	if err := w.Fetch(t.Context(), types.NamespacedName{Name: "a"}); err == nil {
		t.Error("a request without an answer is no error")
	}
	w.expectObjects("a 10")
}

// Objects change at random, and objects of interest are fetched at the same time. The calls of the handler are consistent,
// and in the end the cache has the present state of all objects of interest.
func TestFetchWhileObjectsChangeAtRandom(t *testing.T) {
	names := []string{"a", "b", "c"}
	for seed := range uint64(200) {
		w := newStagedCache(t)
		// Events come in their order, a while after they happened.
		events := make(chan func(), 1000)
		var changing, running sync.WaitGroup
		running.Go(func() {
			for event := range events {
				event()
			}
		})
		changing.Go(func() { w.changeAtRandom(seed, names, events) })
		for part := range uint64(2) {
			changing.Go(func() { w.fetchAtRandom(seed, part, names) })
		}
		changing.Wait()
		close(events)
		running.Wait()
		for _, partial := range w.RejectedMetadata() {
			w.fetch(partial.Name)
		}
		w.expectObjects(w.matching(names)...)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// changeAtRandom changes the target, and sends the resulting events of the watch.
func (w *stagedCache) changeAtRandom(seed uint64, names []string, events chan<- func()) {
	random := rand.New(rand.NewPCG(seed, 21)) //nolint:gosec // a repeatable history
	uids := map[string]string{}
	for version := 10; version < 40; version++ {
		name := anyOf(random, names)
		if uids[name] != "" && random.IntN(4) == 0 {
			delete(uids, name)
			w.deleteOnTarget(name)
			events <- func() { w.watchShowsDeletion(name) }
			continue
		}
		if uids[name] == "" {
			uids[name] = fmt.Sprint(version)
		}
		object := state(name, uids[name], version, anyOf(random, []string{"true", "true", "false"}))
		w.setOnTarget(object)
		events <- func() { w.watchShows(object) }
	}
}

// fetchAtRandom fetches objects that have become of interest.
func (w *stagedCache) fetchAtRandom(seed, part uint64, names []string) {
	random := rand.New(rand.NewPCG(seed, 22+part)) //nolint:gosec // a repeatable history
	for range 30 {
		name := anyOf(random, names)
		w.filter.set(name, true)
		w.fetch(name)
	}
}

func (w *stagedCache) fetch(name string) {
	if err := w.Fetch(w.t.Context(), types.NamespacedName{Name: name}); err != nil {
		w.t.Error(err)
	}
}

// matching returns the states that the cache must have once the watch has shown all changes.
func (w *stagedCache) matching(names []string) (states []string) {
	for _, name := range names {
		if object := w.target[name]; object != nil && w.filter.matches(object) {
			states = append(states, name+" "+object.GetResourceVersion())
		}
	}
	return states
}

func anyOf[T any](random *rand.Rand, all []T) T { return all[random.IntN(len(all))] }
