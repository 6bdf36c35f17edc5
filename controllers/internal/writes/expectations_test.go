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
	"strings"
	gosync "sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/provider/cachesize"
)

var someKey = types.NamespacedName{Namespace: "shop", Name: "till"}

type testExpectations = Expectations[types.NamespacedName, *unstructured.Unstructured]

// newTestExpectations returns the writes to one side, for a cache without a current resourceVersion.
func newTestExpectations[K comparable](clock clock.PassiveClock) *Expectations[K, *unstructured.Unstructured] {
	memory := NewExpectations[K, *unstructured.Unstructured](&gosync.Mutex{}, clock)
	return &memory
}

// version is an object in one of its versions.
func version(uid types.UID, resourceVersion string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{}}
	object.SetUID(uid)
	object.SetResourceVersion(resourceVersion)
	return object
}

func describeVersion(object *unstructured.Unstructured) string {
	if object == nil {
		return "none"
	}
	return string(object.GetUID()) + "@" + object.GetResourceVersion()
}

func TestWritesOfTargets(t *testing.T) {
	type steps = []func(*testExpectations)
	begin := func(m *testExpectations) { m.Started(someKey) }
	failed := func(m *testExpectations) { m.Finished(someKey, nil) }
	applied := func(uid types.UID, resourceVersion string) func(*testExpectations) {
		return func(m *testExpectations) { m.Finished(someKey, version(uid, resourceVersion)) }
	}
	deleted := func(uid types.UID) func(*testExpectations) {
		return func(m *testExpectations) { m.DeleteAccepted(t.Context(), someKey, uid) }
	}
	gone := func(uid types.UID) func(*testExpectations) {
		return func(m *testExpectations) { m.DeletionObserved(someKey, uid) }
	}

	for name, test := range map[string]struct {
		steps  steps
		cached *unstructured.Unstructured
		// want is the object, with a + if its deletion was accepted.
		want string
	}{
		"no write":                                                     {steps{}, version("a", "5"), "a@5"},
		"no write, no object":                                          {steps{}, nil, "none"},
		"a write is running":                                           {steps{begin}, version("a", "5"), "a@5"},
		"a write is running, no object yet":                            {steps{begin}, nil, "none"},
		"a write failed":                                               {steps{begin, failed}, version("a", "5"), "a@5"},
		"a write failed after one that succeeded":                      {steps{begin, applied("a", "7"), begin, failed}, version("a", "5"), "a@5"},
		"created, not in the cache yet":                                {steps{begin, applied("a", "7")}, nil, "a@7"},
		"created, in the cache":                                        {steps{begin, applied("a", "7")}, version("a", "7"), "a@7"},
		"applied, the cache shows the previous version":                {steps{begin, applied("a", "10")}, version("a", "9"), "a@10"},
		"applied, the cache is ahead":                                  {steps{begin, applied("a", "9")}, version("a", "10"), "a@10"},
		"applied, versions cannot be compared":                         {steps{begin, applied("a", "x9")}, version("a", "x8"), "a@x8"},
		"created, the cache still shows an object before it":           {steps{begin, applied("b", "7")}, version("a", "5"), "b@7"},
		"applied, the cache shows an object after it":                  {steps{begin, applied("a", "7")}, version("b", "9"), "b@9"},
		"deletion observed during the write":                           {steps{begin, gone("a"), applied("a", "7")}, nil, "none"},
		"another object's deletion observed during the write":          {steps{begin, gone("a"), applied("b", "7")}, nil, "b@7"},
		"both deletions observed during the write":                     {steps{begin, gone("a"), gone("b"), applied("b", "7")}, nil, "none"},
		"deletion observed after the write":                            {steps{begin, applied("a", "7"), gone("a")}, nil, "none"},
		"another object's deletion observed after the write":           {steps{begin, applied("b", "7"), gone("a")}, nil, "b@7"},
		"deleted, still in the cache":                                  {steps{begin, deleted("a")}, version("a", "5"), "a@5+"},
		"deleted, no longer in the cache":                              {steps{begin, deleted("a")}, nil, "none"},
		"deleted, another object in the cache":                         {steps{begin, deleted("a")}, version("b", "9"), "b@9"},
		"deleted, observed before the response":                        {steps{begin, gone("a"), deleted("a")}, nil, "none"},
		"released, and labelled by another writer before the response": {steps{begin, gone("a"), deleted("a")}, version("a", "9"), "a@9"},
		"deleted, observed after the response":                         {steps{begin, deleted("a"), gone("a")}, version("a", "6"), "a@6"},
		"deleted, another object's deletion observed":                  {steps{begin, deleted("b"), gone("a")}, version("b", "5"), "b@5+"},
		"deleting failed":                                              {steps{begin, failed}, version("a", "5"), "a@5"},
		"created again after a delete":                                 {steps{begin, deleted("a"), begin, applied("b", "9")}, version("a", "5"), "b@9"},
		"a deletion without a write":                                   {steps{gone("a")}, nil, "none"},
		"a deletion long ago":                                          {steps{gone("a"), begin, applied("b", "7")}, nil, "b@7"},
		"a response without a request":                                 {steps{applied("a", "7")}, nil, "none"},
	} {
		t.Run(name, func(t *testing.T) {
			memory := newTestExpectations[types.NamespacedName](clocktesting.NewFakeClock(time.Unix(0, 0)))
			for _, step := range test.steps {
				step(memory)
			}
			object, deleted := memory.Current(someKey, test.cached)
			got := describeVersion(object)
			if deleted {
				got += "+"
			}
			if got != test.want {
				t.Errorf("want %s, got %s", test.want, got)
			}
			other := types.NamespacedName{Name: "other"}
			if object, deleted := memory.Current(other, nil); object != nil || deleted {
				t.Error("a write of another object is stored")
			}
		})
	}
}

// A write that the cache has shown is dropped, so that a deletion in the cache counts.
func TestWriteEndsWhenTheCacheShowsIt(t *testing.T) {
	memory := newTestExpectations[types.NamespacedName](clocktesting.NewFakeClock(time.Unix(0, 0)))
	memory.Started(someKey)
	memory.Finished(someKey, version("a", "7"))
	memory.Current(someKey, version("a", "7"))
	if object, _ := memory.Current(someKey, nil); object != nil {
		t.Errorf("the object %s is still stored", describeVersion(object))
	}

	memory.Started(someKey)
	memory.DeleteAccepted(t.Context(), someKey, "a")
	memory.Current(someKey, nil)
	if _, deleted := memory.Current(someKey, version("a", "9")); deleted {
		t.Error("the deletion is still stored")
	}
}

func TestWritesOfDroppedPaths(t *testing.T) {
	memory := newTestExpectations[types.NamespacedName](clocktesting.NewFakeClock(time.Unix(0, 0)))
	if got := memory.DroppedPaths(someKey); got != nil {
		t.Errorf("want no paths, got %v", got)
	}
	for name, forget := range map[string]func(){
		"the object is gone": func() { memory.DeletionObserved(someKey, "a") },
		"all is kept":        func() { memory.SetDroppedPaths(someKey, nil) },
	} {
		memory.SetDroppedPaths(someKey, []string{".spec.old"})
		memory.SetDroppedPaths(someKey, []string{".spec.x"})
		if got := fmt.Sprint(memory.DroppedPaths(someKey)); got != "[.spec.x]" {
			t.Errorf("before %s: got %s", name, got)
		}
		forget()
		if got := memory.DroppedPaths(someKey); got != nil {
			t.Errorf("%s: %v is still stored", name, got)
		}
	}
}

// One object of the mailbox may be several objects on the target, all with the same name.
func TestWritesPerTargetRef(t *testing.T) {
	memory := newTestExpectations[plan.Ref](clocktesting.NewFakeClock(time.Unix(0, 0)))
	here := plan.Ref{Resource: schema.GroupResource{Group: "example.dev", Resource: "widgets"}, Key: someKey}
	other := here
	other.Resource.Group = "another"
	memory.Started(here)
	memory.Finished(here, version("a", "7"))
	memory.SetDroppedPaths(here, []string{".spec.x"})
	if object, _ := memory.Current(other, nil); object != nil || memory.DroppedPaths(other) != nil {
		t.Errorf("a write to one key is stored under another: %s", describeVersion(object))
	}
	memory.DeletionObserved(other, "a")
	if object, _ := memory.Current(here, nil); object == nil || memory.DroppedPaths(here) == nil {
		t.Error("the deletion of another key's object drops the write")
	}
}

// A create whose event never arrives must not count forever: the watch broke before the event, and the object
// was deleted before the next list. While the watch is behind, the event may still arrive.
func TestWriteOfACreateThatTheCacheNeverShows(t *testing.T) {
	for name, tt := range map[string]struct {
		reached bool
		limit   time.Duration
	}{
		"the cache has reached it": {true, plan.CacheTimeout},
		"the cache is behind":      {false, maxExpectationTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			clock := clocktesting.NewFakeClock(time.Unix(0, 0))
			memory := newTestExpectations[types.NamespacedName](clock)
			memory.CacheHasReached = func(_ types.NamespacedName, resourceVersion string) bool { return tt.reached || resourceVersion != "7" }
			key := types.NamespacedName{Name: "x"}
			memory.Started(key)
			memory.Finished(key, version("a", "7"))
			clock.Step(tt.limit - time.Second)
			if object, _ := memory.Current(key, nil); object == nil {
				t.Error("dropped too early")
			}
			clock.Step(time.Second)
			if object, _ := memory.Current(key, nil); object != nil {
				t.Errorf("still stored: %v", object)
			}
		})
	}
}

// A response counts until the cache shows it, or until the write is dropped for another reason.
func TestWritesCountTheirSize(t *testing.T) {
	answer := version("a", "7")
	answer.Object["status"] = strings.Repeat("x", 10000)
	clock := clocktesting.NewFakeClock(time.Unix(0, 0))
	for name, end := range map[string]func(*testExpectations){
		"the cache shows it":        func(m *testExpectations) { m.Current(someKey, answer) },
		"deletion observed":         func(m *testExpectations) { m.DeletionObserved(someKey, "a") },
		"delete accepted":           func(m *testExpectations) { m.Started(someKey); m.DeleteAccepted(t.Context(), someKey, "a") },
		"the next write fails":      func(m *testExpectations) { m.Started(someKey); m.Finished(someKey, nil) },
		"the cache never shows it":  func(m *testExpectations) { clock.Step(plan.CacheTimeout); m.Current(someKey, nil) },
		"the next write is running": func(m *testExpectations) { m.Started(someKey) },
	} {
		t.Run(name, func(t *testing.T) {
			grown := 0
			memory := newTestExpectations[types.NamespacedName](clock)
			memory.OnGrowth = func() { grown++ }
			for range 2 {
				memory.Started(someKey)
				memory.Finished(someKey, answer)
			}
			if objects, bytes := memory.Size.Objects(), memory.Size.Bytes(); objects != 1 || bytes != cachesize.SizeOf(answer) || grown != 2 {
				t.Errorf("after two writes %d objects of %d bytes are stored, OnGrowth was called %d times", objects, bytes, grown)
			}
			end(memory)
			if objects, bytes := memory.Size.Objects(), memory.Size.Bytes(); objects != 0 || bytes != 0 {
				t.Errorf("%d objects of %d bytes are still counted", objects, bytes)
			}
		})
	}
	memory := newTestExpectations[types.NamespacedName](clock)
	memory.Started(someKey)
	for number := range 10 * maxDeletedUIDs {
		memory.DeletionObserved(someKey, types.UID(fmt.Sprint(number)))
	}
	if ends := len(memory.pending[someKey].deletedUIDs); ends > maxDeletedUIDs {
		t.Errorf("%d deletions are stored during one write", ends)
	}
}
