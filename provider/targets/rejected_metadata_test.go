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
	"slices"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/framework/suite"
)

// filterByName selects objects by name. The names may change at any time.
type filterByName struct {
	lock  sync.Mutex
	names map[string]bool
}

func (w *filterByName) set(name string, interesting bool) {
	w.lock.Lock()
	defer w.lock.Unlock()
	if w.names == nil {
		w.names = map[string]bool{}
	}
	w.names[name] = interesting
}

func (w *filterByName) matches(object *unstructured.Unstructured) bool {
	w.lock.Lock()
	defer w.lock.Unlock()
	return w.names[object.GetName()] && object.GetLabels()[interestLabel] != "false"
}

func TestRejectedMetadata(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	ctx := t.Context()
	target := steady(t)
	connection, namespace := connect(t, target), newNamespace(t, target)
	key := func(name string) types.NamespacedName {
		return types.NamespacedName{Namespace: namespace, Name: name}
	}
	for name, interesting := range map[string]string{"a": "true", "b": "true", "c": "false"} {
		g.Expect(framework.Apply(ctx, target.Config, widget(namespace, name, interesting))).To(Succeed())
	}
	owned := "{apiVersion: example.org/v1, kind: Widget, metadata: {name: d, namespace: " + namespace + ", ownerReferences: [{apiVersion: v1, kind: A, name: a, uid: of-a, controller: true}], annotations: {note: kept}}}"
	g.Expect(framework.Apply(ctx, target.Config, owned)).To(Succeed())

	filter, recorded := &filterByName{}, &eventRecorder{}
	filter.set("a", true)
	var passedLock sync.Mutex
	passed := map[string]int{}
	options := FilteredCacheOptions{
		Scope: Scope{Namespaces: []string{namespace}}, Filter: filter.matches, Handler: recorded.handler(), KeepRejectedMetadata: true,
		OnRejected: func(partial metav1.ObjectMeta) { passedLock.Lock(); defer passedLock.Unlock(); passed[partial.Name]++ },
	}
	filtered := connection.Watches.NewFilteredCache(widgets, options)
	runInTest(t, filtered.Run)
	waitForCacheSync(t, filtered)
	neighbours := func() map[string]metav1.ObjectMeta {
		all := map[string]metav1.ObjectMeta{}
		for _, partial := range filtered.RejectedMetadata() {
			all[partial.Name] = partial
		}
		return all
	}
	g.Expect(namesIn(filtered)).To(Equal([]string{"a"}))
	g.Expect(slices.Sorted(maps.Keys(neighbours()))).To(Equal([]string{"b", "c", "d"}))
	passedLock.Lock()
	g.Expect(passed).To(Equal(map[string]int{"b": 1, "c": 1, "d": 1}))
	passedLock.Unlock()
	g.Expect(neighbours()["c"].Labels).To(Equal(map[string]string{interestLabel: "false"}))
	d := neighbours()["d"]
	g.Expect(d.OwnerReferences).To(HaveLen(1))
	g.Expect(d.OwnerReferences[0].UID).To(Equal(types.UID("of-a")))
	g.Expect(d.UID).NotTo(BeEmpty())

	g.Expect(filtered.GetMetadata(key("a")).GetAnnotations()).To(Equal(filtered.Get(key("a")).GetAnnotations()))
	g.Expect(filtered.GetMetadata(key("c")).GetLabels()).To(Equal(map[string]string{interestLabel: "false"}))
	g.Expect(filtered.GetMetadata(key("none"))).To(BeNil())

	for _, name := range []string{"b", "c", "d", "none"} {
		filter.set(name, true)
		g.Expect(filtered.Fetch(ctx, key(name))).To(Succeed())
	}
	g.Expect(namesIn(filtered)).To(Equal([]string{"a", "b", "d"}), "c is excluded by another filter, and none does not exist")
	g.Expect(recorded.all()).To(Equal([]string{"added a", "added b", "added d"}))
	g.Expect(slices.Sorted(maps.Keys(neighbours()))).To(Equal([]string{"c"}))
	g.Expect(filtered.Get(key("d")).GetAnnotations()).To(HaveKeyWithValue("note", "kept"))
	g.Expect(filtered.Get(key("d")).GetManagedFields()).To(BeEmpty())
	// An unchanged object causes no event.
	g.Expect(filtered.Fetch(ctx, key("b"))).To(Succeed())
	g.Expect(filtered.Fetch(ctx, key("a"))).To(Succeed())
	g.Expect(recorded.all()).To(HaveLen(3))
	// The watch treats a fetched object like any other one.
	g.Expect(framework.Delete(ctx, target.Config, widgets, namespace, "d")).To(Succeed())
	suite.Eventually(t, func(g Gomega) { g.Expect(recorded.all()[3:]).To(Equal([]string{"deleted d"})) })

	g.Expect(filtered.Fetch(ended(t), key("c"))).To(MatchError(ContainSubstring(namespace + "/c")))
	options.KeepRejectedMetadata = false
	options.OnRejected = func(metav1.ObjectMeta) { t.Error("a cache that keeps no rejected metadata reports some") }
	other := connection.Watches.NewFilteredCache(widgets, options)
	runInTest(t, other.Run)
	waitForCacheSync(t, other)
	g.Expect(namesIn(other)).To(Equal([]string{"a", "b"}))
	g.Expect(other.RejectedMetadata()).To(BeEmpty())
}
