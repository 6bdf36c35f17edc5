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

package cachesize_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/synchub-dev/synchub/provider/cachesize"
)

// decoded decodes an object as a client does.
func decoded(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON([]byte(text)); err != nil {
		t.Fatal(err)
	}
	return object
}

func configMap(t testing.TB, name string, size int) *unstructured.Unstructured {
	t.Helper()
	return decoded(t, fmt.Sprintf(`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": %q, "namespace": "shop", "resourceVersion": "1",
		"uid": "6ff3a7d1-4c4c-4a0c-93bb-52a3a5f26a6f", "labels": {"app": "till"}}, "data": {"entry": %q}}`, name, strings.Repeat("x", size)))
}

func deployment(t testing.TB, name string) *unstructured.Unstructured {
	t.Helper()
	return decoded(t, fmt.Sprintf(`{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": %q, "namespace": "shop", "generation": 3},
		"spec": {"replicas": 3, "paused": false, "selector": {"matchLabels": {"app": "till"}}, "template": {"metadata": {"labels": {"app": "till"}},
		"spec": {"containers": [{"name": "till", "image": "registry.example.com/till:1.2.3", "ports": [{"containerPort": 8080}],
		"env": [{"name": "ONE", "value": "1"}, {"name": "TWO", "value": "2"}]}]}}}}`, name))
}

// The estimate is within a third of the measured size on the heap.
func TestSizeOfIsAccurate(t *testing.T) {
	const count = 2000
	for name, read := range map[string]func(number int) *unstructured.Unstructured{
		"small ConfigMaps": func(number int) *unstructured.Unstructured { return configMap(t, fmt.Sprint("box-", number), 10) },
		"large ConfigMaps": func(number int) *unstructured.Unstructured { return configMap(t, fmt.Sprint("box-", number), 2000) },
		"Deployments":      func(number int) *unstructured.Unstructured { return deployment(t, fmt.Sprint("till-", number)) },
	} {
		t.Run(name, func(t *testing.T) {
			before := heap()
			var all [count]*unstructured.Unstructured
			for number := range all {
				all[number] = read(number)
			}
			taken := heap() - before
			var estimate int64
			for _, object := range all {
				estimate += cachesize.SizeOf(object)
			}
			runtime.KeepAlive(all)
			if ratio := float64(estimate) / float64(taken); ratio < 0.67 || ratio > 1.5 {
				t.Errorf("%d objects take %d bytes, the estimate is %d (%.2f)", count, taken, estimate, ratio)
			}
		})
	}
}

func heap() int64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc) //nolint:gosec // no heap is that large
}

func TestSizeOfCostsNoMemory(t *testing.T) {
	object, stub := deployment(t, "till"), &metav1.ObjectMeta{Name: "till", Labels: map[string]string{"app": "till"}}
	if allocated := testing.AllocsPerRun(100, func() {
		cachesize.SizeOf(object)
		cachesize.SizeOf(stub)
	}); allocated > 0 {
		t.Errorf("%v allocations", allocated)
	}
}

func TestSizeOf(t *testing.T) {
	type stripped struct{ *unstructured.Unstructured }
	small, large := configMap(t, "box", 10), configMap(t, "box", 1010)
	if difference := cachesize.SizeOf(large) - cachesize.SizeOf(small); difference != 1000 {
		t.Errorf("1000 bytes more count for %d", difference)
	}
	if cachesize.SizeOf(stripped{small}) != cachesize.SizeOf(small) {
		t.Error("the memory around an object counts")
	}
	later := configMap(t, "box", 10)
	later.SetResourceVersion("123456789")
	if cachesize.SizeOf(later) != cachesize.SizeOf(small) {
		t.Error("another resourceVersion counts")
	}
	// Only a metadata.resourceVersion is exempt, and a server may send one of any length.
	later.SetResourceVersion(strings.Repeat("1", 5000))
	named := decoded(t, `{"apiVersion": "v1", "kind": "ConfigMap", "data": {"resourceVersion": "`+strings.Repeat("x", 5000)+`"}}`)
	endless := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "box", ResourceVersion: later.GetResourceVersion()}}
	for _, large := range []any{later, named, endless} {
		if size := cachesize.SizeOf(large); size < 4900 {
			t.Errorf("%T with a resourceVersion of 5000 bytes counts for %d", large, size)
		}
	}
	stub := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "box"}}
	before := cachesize.SizeOf(stub)
	stub.Annotations = map[string]string{"fingerprint": "0123456789"}
	if after := cachesize.SizeOf(stub); before == 0 || after-before < 20 {
		t.Errorf("metadata counts for %d, then %d", before, after)
	}
	if size := cachesize.SizeOf("something else"); size != 0 {
		t.Errorf("an unknown type counts for %d", size)
	}
}

// A deleted object no longer counts, and the wrapped handler receives every event.
func TestCounting(t *testing.T) {
	var events []string
	handler := cache.ResourceEventHandlerDetailedFuncs{
		AddFunc:    func(_ any, initial bool) { events = append(events, fmt.Sprint("added ", initial)) },
		UpdateFunc: func(_, _ any) { events = append(events, "updated") },
		DeleteFunc: func(object any) { events = append(events, fmt.Sprintf("deleted %T", object)) },
	}
	counter := &cachesize.Counter{}
	counting := counter.CountingHandler(handler)
	first, second, third := configMap(t, "first", 10), configMap(t, "second", 20), configMap(t, "third", 30)
	grown := configMap(t, "first", 500)
	expect := func(when string, objects ...*unstructured.Unstructured) {
		t.Helper()
		var bytes int64
		for _, object := range objects {
			bytes += cachesize.SizeOf(object)
		}
		if counter.Objects() != int64(len(objects)) || counter.Bytes() != bytes {
			t.Errorf("%s: want %d objects of %d bytes, got %d of %d", when, len(objects), bytes, counter.Objects(), counter.Bytes())
		}
	}
	expect("at first")
	counting.OnAdd(first, true)
	counting.OnAdd(second, false)
	counting.OnAdd(third, false)
	expect("three came", first, second, third)
	counting.OnUpdate(first, grown)
	expect("one grew", grown, second, third)
	counting.OnDelete(cache.DeletedFinalStateUnknown{Key: "shop/second", Obj: second})
	expect("an unobserved deletion", grown, third)
	counting.OnDelete(third)
	// The final state differs from the cached one.
	counting.OnDelete(first)
	expect("all were deleted")
	want := "added true,added false,added false,updated,deleted cache.DeletedFinalStateUnknown,deleted *unstructured.Unstructured,deleted *unstructured.Unstructured"
	if got := strings.Join(events, ","); got != want {
		t.Errorf("the handler received %s", got)
	}
}

// The cost for an event of an object of typical size.
func BenchmarkSizeOf(b *testing.B) {
	object := deployment(b, "till")
	b.ReportAllocs()
	for b.Loop() {
		cachesize.SizeOf(object)
	}
}

// A cache counts in its parent and in the parent's ancestors, until it is removed.
func TestAddToParent(t *testing.T) {
	var one, other, whole, all cachesize.Counter
	_ = whole.AddToParent(&all)
	takeOut := one.AddToParent(&whole)
	_ = other.AddToParent(&whole)
	one.Add(2, 200)
	other.Add(1, 50)
	one.Add(-1, -80)
	for _, sum := range []*cachesize.Counter{&whole, &all} {
		if sum.Objects() != 2 || sum.Bytes() != 170 {
			t.Errorf("got %d objects of %d bytes", sum.Objects(), sum.Bytes())
		}
	}
	takeOut()
	for _, sum := range []*cachesize.Counter{&whole, &all} {
		if sum.Objects() != 1 || sum.Bytes() != 50 {
			t.Errorf("got %d objects of %d bytes", sum.Objects(), sum.Bytes())
		}
	}
}
