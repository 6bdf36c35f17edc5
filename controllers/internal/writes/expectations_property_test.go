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

package writes

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
)

// cacheModel is a target with one name, with a delayed watch and an even more delayed handler.
type cacheModel struct {
	t       *testing.T
	random  *rand.Rand
	memory  *testExpectations
	history []string

	clock  int
	stored *unstructured.Unstructured
	// events are not in the cache yet; nil is a deletion. The handler has not observed the ends yet.
	events []*unstructured.Unstructured
	cached *unstructured.Unstructured
	ends   []types.UID
	// written is the last response to a write, until the object is deleted.
	written *unstructured.Unstructured
}

func (w *cacheModel) log(format string, arguments ...any) {
	w.history = append(w.history, fmt.Sprintf(format, arguments...))
}

func (w *cacheModel) store(uid types.UID) *unstructured.Unstructured {
	w.clock++
	w.stored = version(uid, strconv.Itoa(w.clock))
	w.events = append(w.events, w.stored)
	return w.stored
}

func (w *cacheModel) remove() {
	w.clock++
	w.stored, w.written = nil, nil
	w.events = append(w.events, nil)
}

func (w *cacheModel) newUID() types.UID { return types.UID("u" + strconv.Itoa(w.clock+1)) }

// pass advances the time: events arrive.
func (w *cacheModel) pass(steps int) {
	for range steps {
		switch {
		case len(w.events) > 0 && w.random.IntN(2) == 0:
			before := w.cached
			w.cached, w.events = w.events[0], w.events[1:]
			w.log("the cache shows %s", describeVersion(w.cached))
			if w.cached == nil && before != nil {
				w.ends = append(w.ends, before.GetUID())
			}
		case len(w.ends) > 0:
			w.log("the handler gets the delete event of %s", w.ends[0])
			w.memory.DeletionObserved(someKey, w.ends[0])
			w.ends = w.ends[1:]
		}
	}
}

// read reads the hub's view, and checks that it contains the hub's own writes.
func (w *cacheModel) read() *unstructured.Unstructured {
	seen, deleted := w.memory.Current(someKey, w.cached)
	w.log("the hub sees %s (deleted: %v)", describeVersion(seen), deleted)
	if w.written != nil && (seen == nil || isOlder(seen, w.written) || deleted) {
		w.t.Fatalf("the hub has written %s and observes %s:\n%v", describeVersion(w.written), describeVersion(seen), w.history)
	}
	if deleted {
		return nil
	}
	return seen
}

// write creates or updates the object, based on the hub's view.
func (w *cacheModel) write() {
	seen := w.read()
	w.memory.Started(someKey)
	w.pass(w.random.IntN(3))
	var answer *unstructured.Unstructured
	switch {
	case seen == nil && w.stored == nil:
		answer = w.store(w.newUID())
	case seen != nil && w.stored != nil && seen.GetUID() == w.stored.GetUID():
		answer = w.store(seen.GetUID())
	}
	w.written = answer
	if answer != nil && w.random.IntN(4) == 0 {
		w.log("another client deletes it at once")
		w.remove()
	}
	w.pass(w.random.IntN(4))
	w.log("the hub's write is answered by %s", describeVersion(answer))
	w.memory.Finished(someKey, answer)
}

func (w *cacheModel) delete() {
	seen := w.read()
	if seen == nil {
		return
	}
	w.memory.Started(someKey)
	w.pass(w.random.IntN(3))
	switch {
	case w.stored == nil || w.stored.GetUID() == seen.GetUID():
		if w.stored != nil {
			w.remove()
		}
		w.pass(w.random.IntN(4))
		w.log("the hub's deletion of %s is answered", seen.GetUID())
		w.memory.DeleteAccepted(w.t.Context(), someKey, seen.GetUID())
	default:
		w.log("the hub's deletion of %s is refused", seen.GetUID())
		w.memory.Finished(someKey, nil)
	}
}

// After any events on the target, with any delay, the hub never drops its own write before the cache shows it,
// and in the end its view equals the cache.
func TestWritesOfAnyHistory(t *testing.T) {
	for seed := range uint64(3000) {
		w := &cacheModel{t: t, random: rand.New(rand.NewPCG(seed, 1)), memory: newTestExpectations[types.NamespacedName](clocktesting.NewFakeClock(time.Unix(0, 0)))} //nolint:gosec // a repeatable history
		for range 12 {
			switch w.random.IntN(6) {
			case 0, 1:
				w.write()
			case 2:
				w.delete()
			case 3:
				if w.stored != nil {
					w.log("another client changes it")
					w.store(w.stored.GetUID())
				}
			case 4:
				if w.stored != nil {
					w.log("another client deletes it")
					w.remove()
				}
			case 5:
				if w.stored == nil {
					w.log("another client creates it")
					w.store(w.newUID())
				}
			}
			w.read()
			w.pass(w.random.IntN(4))
		}
		for len(w.events)+len(w.ends) > 0 {
			w.pass(1)
		}
		seen, deleted := w.memory.Current(someKey, w.cached)
		if seen != w.stored || deleted {
			t.Fatalf("seed %d: the target has %s, the hub observes %s (deleted: %v):\n%v", seed, describeVersion(w.stored), describeVersion(seen), deleted, w.history)
		}
		if len(w.memory.pending) > 0 {
			t.Fatalf("seed %d: a write is stored for ever:\n%v", seed, w.history)
		}
	}
}
