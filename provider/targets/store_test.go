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
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/synchub-dev/synchub/provider/cachesize"
)

// recordingHandler records the events of a store, and whether the store was synced at the time.
type recordingHandler struct {
	store *store
	calls []string
}

func (h *recordingHandler) note(what string, object any) {
	name := object.(*unstructured.Unstructured).GetName()
	if h.store.HasSynced() {
		what += " since"
	}
	h.calls = append(h.calls, fmt.Sprintf("%s %s", what, name))
}

func (h *recordingHandler) OnAdd(object any, initial bool) {
	h.note(fmt.Sprintf("added (initial: %t)", initial), object)
}

func (h *recordingHandler) OnUpdate(before, after any) {
	h.note("updated from "+before.(*unstructured.Unstructured).GetResourceVersion(), after)
}

func (h *recordingHandler) OnDelete(object any) {
	if tombstone, unseen := object.(cache.DeletedFinalStateUnknown); unseen {
		h.note("missed "+tombstone.Key, tombstone.Obj)
		return
	}
	h.note("deleted", object)
}

func TestStoreReportsChanges(t *testing.T) {
	handler := &recordingHandler{}
	strip := func(object any) (any, error) {
		if object.(*unstructured.Unstructured).GetName() == "bad" {
			return nil, errors.New("bad")
		}
		return object, nil
	}
	store := newStore(strip, nil, handler)
	handler.store = store
	a, b, c := state("a", "1", 1, ""), state("b", "2", 2, ""), state("c", "3", 3, "")
	later, bad := state("a", "1", 4, ""), state("bad", "5", 5, "")
	for _, step := range []struct {
		name  string
		do    func() error
		fails bool
		want  []string
	}{
		{"an invalid list", func() error { return store.Replace([]any{a, bad}, "1") }, true, nil},
		{"the first list", func() error { return store.Replace([]any{a, b}, "2") }, false, []string{"added (initial: true) a", "added (initial: true) b"}},
		{"an object is added", func() error { return store.Add(c) }, false, []string{"added (initial: false) since c"}},
		{"an invalid object is added", func() error { return store.Add(bad) }, true, nil},
		{"an object is updated", func() error { return store.Update(later) }, false, []string{"updated from 1 since a"}},
		{"an object is deleted", func() error { return store.Delete(b) }, false, []string{"deleted since b"}},
		{"a list with another object", func() error { return store.Replace([]any{b, later}, "6") }, false, []string{"missed c since c", "added (initial: false) since b", "updated from 4 since a"}},
	} {
		handler.calls = nil
		if err := step.do(); (err != nil) != step.fails {
			t.Errorf("%s: %v", step.name, err)
		}
		if !slices.Equal(handler.calls, step.want) {
			t.Errorf("%s: want %q, got %q", step.name, step.want, handler.calls)
		}
	}
	if keys := store.ListKeys(); len(keys) != 2 || !slices.Contains(keys, "a") || !slices.Contains(keys, "b") {
		t.Errorf("the store holds %v", keys)
	}
}

// The count matches the cached objects, with any last state of a deleted object, and if a list has an object twice.
func TestStoreCountsCachedObjects(t *testing.T) {
	text := func(name string, size int) *unstructured.Unstructured {
		object := state(name, "1", 1, "")
		object.Object["data"] = strings.Repeat("x", size)
		return object
	}
	store := newStore(nil, nil, cache.ResourceEventHandlerFuncs{})
	small, large := text("a", 10), text("a", 10000)
	for _, step := range []struct {
		name string
		do   func() error
		want []*unstructured.Unstructured
	}{
		{"an unknown object is deleted", func() error { return store.Delete(large) }, nil},
		{"an object is added", func() error { return store.Add(small) }, []*unstructured.Unstructured{small}},
		{"another unknown object is deleted", func() error { return store.Delete(text("b", 10000)) }, []*unstructured.Unstructured{small}},
		{"the object grows", func() error { return store.Update(large) }, []*unstructured.Unstructured{large}},
		{"an object is listed three times", func() error { return store.Replace([]any{small, small, text("a", 10)}, "2") }, []*unstructured.Unstructured{small}},
		{"another object is added", func() error { return store.Add(text("b", 10)) }, []*unstructured.Unstructured{small, text("b", 10)}},
		{"a larger last state is deleted", func() error { return store.Delete(large) }, []*unstructured.Unstructured{text("b", 10)}},
	} {
		if err := step.do(); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		var bytes int64
		for _, object := range step.want {
			bytes += cachesize.SizeOf(object)
		}
		if store.cached.Objects() != int64(len(step.want)) || store.cached.Bytes() != bytes {
			t.Errorf("%s: want %d objects of %d bytes, got %d of %d", step.name, len(step.want), bytes, store.cached.Objects(), store.cached.Bytes())
		}
	}
}
