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
	"slices"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/framework/suite"
)

// interestLabel is a label on objects of interest.
const interestLabel = "example.org/interest"

func widget(namespace, name, interesting string) string {
	return "{apiVersion: example.org/v1, kind: Widget, metadata: {name: " + name + ", namespace: " + namespace + ", labels: {" + interestLabel + ": \"" + interesting + "\"}}}"
}

// startFilteredCache runs a cache of the Widgets that are of interest, without their interestLabel.
func startFilteredCache(t *testing.T, connection *Connection, scope Scope) (*FilteredCache, *eventRecorder) {
	t.Helper()
	recorded := &eventRecorder{}
	filtered := connection.Watches.NewFilteredCache(widgets, FilteredCacheOptions{
		Scope:  scope,
		Filter: func(object *unstructured.Unstructured) bool { return object.GetLabels()[interestLabel] == "true" },
		Transform: func(object any) (any, error) {
			object.(*unstructured.Unstructured).SetLabels(nil)
			return object, nil
		},
		Handler: recorded.handler(),
	})
	runInTest(t, filtered.Run)
	waitForCacheSync(t, filtered)
	return filtered, recorded
}

func TestFilteredCacheScopes(t *testing.T) {
	t.Parallel()
	target := steady(t)
	connection := connect(t, target)
	first := newNamespace(t, target)
	second := first + "-2"
	g := NewWithT(t)
	g.Expect(framework.Apply(t.Context(), target.Config, "{apiVersion: v1, kind: Namespace, metadata: {name: "+second+"}}")).To(Succeed())
	for _, manifest := range []string{
		widget(first, "a", "true"), widget(first, "b", "true"), widget(first, "dull", "false"),
		widget(second, "a", "true"), widget(second, "c", "true"), widget(second, "dull", "false"),
	} {
		g.Expect(framework.Apply(t.Context(), target.Config, manifest)).To(Succeed())
	}
	key := func(namespace, name string) types.NamespacedName {
		return types.NamespacedName{Namespace: namespace, Name: name}
	}
	for name, tt := range map[string]struct {
		scope    Scope
		watches  int
		expected []string
	}{
		"nothing":                 {Scope{}, 0, nil},
		"a name":                  {Scope{Names: []types.NamespacedName{key(first, "b")}}, 1, []string{first + "/b"}},
		"names in two namespaces": {Scope{Names: []types.NamespacedName{key(first, "a"), key(second, "a"), key(second, "dull"), key(second, "a")}}, 3, []string{first + "/a", second + "/a"}},
		"a namespace":             {Scope{Namespaces: []string{second}}, 1, []string{second + "/a", second + "/c"}},
		"namespaces":              {Scope{Namespaces: []string{first, second, first, "missing"}}, 3, []string{first + "/a", first + "/b", second + "/a", second + "/c"}},
		"a namespace and names":   {Scope{Namespaces: []string{first}, Names: []types.NamespacedName{key(first, "a"), key(second, "c")}}, 2, []string{first + "/a", first + "/b", second + "/c"}},
		"all, with a namespace":   {Scope{All: true, Namespaces: []string{first}}, 1, []string{first + "/a", first + "/b", second + "/a", second + "/c"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			filtered, recorded := startFilteredCache(t, connection, tt.scope)
			g.Expect(filtered.parts).To(HaveLen(tt.watches))
			g.Expect(filtered.HasSynced()).To(BeTrue())
			g.Expect(filtered.Availability()).To(BeZero())
			var keys []string
			for _, object := range filtered.List() {
				g.Expect(filtered.Get(keyOf(object))).To(BeIdenticalTo(object))
				if slices.Contains([]string{first, second}, object.GetNamespace()) {
					keys = append(keys, keyOf(object).String())
				}
			}
			g.Expect(keys).To(ConsistOf(tt.expected))
			g.Expect(recorded.all()).To(HaveLen(len(filtered.List())))
			g.Expect(filtered.Get(key(first, "dull"))).To(BeNil())
		})
	}
}

// An object that the filter rejects is absent from the cache.
func TestFilteredCacheReportsOnlyMatches(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	ctx := t.Context()
	target := steady(t)
	admin, namespace, proxy := administrator(t, target), newNamespace(t, target), newFlakyProxy(t, target)
	connection := connectTo(t, kubeconfigAt(t, target, proxy.URL()))
	apply := func(name, interesting string) {
		t.Helper()
		g.Expect(framework.Apply(ctx, target.Config, widget(namespace, name, interesting))).To(Succeed())
	}
	for name, interesting := range map[string]string{"a": "true", "b": "false", "c": "true", "d": "false"} {
		apply(name, interesting)
	}
	filtered, recorded := startFilteredCache(t, connection, Scope{Namespaces: []string{namespace}})
	g.Expect(recorded.all()).To(ConsistOf("added a", "added c"))
	seen := len(recorded.all())
	expect := func(what ...string) {
		t.Helper()
		suite.Eventually(t, func(g Gomega) { g.Expect(recorded.all()[seen:]).To(Equal(what)) })
		seen += len(what)
	}
	cached := filtered.Get(types.NamespacedName{Namespace: namespace, Name: "a"})
	g.Expect(cached.GetKind()).To(Equal("Widget"))
	g.Expect(cached.GetLabels()).To(BeEmpty())
	g.Expect(cached.GetManagedFields()).To(BeEmpty())

	apply("b", "true")
	expect("added b")
	g.Expect(namesIn(filtered)).To(Equal([]string{"a", "b", "c"}))
	_, err := admin.Resource(widgets).Namespace(namespace).Patch(ctx, "b", types.MergePatchType, []byte(`{"spec":{"x":"y"},"metadata":{"finalizers":["example.org/hold"]}}`), metav1.PatchOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	expect("updated b")
	apply("a", "false")
	expect("deleted a")
	g.Expect(namesIn(filtered)).To(Equal([]string{"b", "c"}))
	g.Expect(framework.Delete(ctx, target.Config, widgets, namespace, "d")).To(Succeed())
	g.Expect(framework.Delete(ctx, target.Config, widgets, namespace, "a")).To(Succeed())

	// The object ceases to be of interest when it is deleted.
	g.Expect(framework.Delete(ctx, target.Config, widgets, namespace, "b")).To(Succeed())
	expect("updated b")
	_, err = admin.Resource(widgets).Namespace(namespace).Patch(ctx, "b", types.MergePatchType, []byte(`{"metadata":{"finalizers":null,"labels":null}}`), metav1.PatchOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	expect("deleted b")

	// Changes during an interruption are reported afterwards.
	apply("e", "true")
	apply("f", "true")
	expect("added e", "added f")
	proxy.Disconnect()
	suite.Eventually(t, func(g Gomega) { g.Expect(connection.Health.IsUp()).To(BeFalse()) })
	g.Expect(framework.Delete(ctx, target.Config, widgets, namespace, "c")).To(Succeed())
	apply("e", "false")
	apply("g", "true")
	apply("h", "false")
	g.Expect(namesIn(filtered)).To(Equal([]string{"c", "e", "f"}))
	proxy.Reconnect(t)
	connection.Health.ProbeNow()
	suite.Eventually(t, func(g Gomega) {
		g.Expect(recorded.all()[seen:]).To(ConsistOf("deleted c", "deleted e", "added g"))
		g.Expect(namesIn(filtered)).To(Equal([]string{"f", "g"}))
	})
	g.Expect(filtered.List()).To(HaveLen(2))
}

// OnAvailability is called when a filtered cache becomes unreadable, and when it becomes readable.
func TestFilteredCacheAvailability(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	target := steady(t)
	connection := connect(t, target)
	var lock sync.Mutex
	calls := 0
	filtered := connection.Watches.NewFilteredCache(unserved.GroupResource().WithVersion("v9"), FilteredCacheOptions{
		Scope:          Scope{Namespaces: []string{"default", "kube-system"}},
		Handler:        cache.ResourceEventHandlerFuncs{},
		OnAvailability: func() { lock.Lock(); defer lock.Unlock(); calls++ },
	})
	runInTest(t, filtered.Run)
	suite.Eventually(t, func(g Gomega) {
		g.Expect(filtered.Availability().Reason).To(Equal(ReasonNotServed))
		lock.Lock()
		defer lock.Unlock()
		g.Expect(calls).To(Equal(2), "once for each watch")
	})
	g.Expect(filtered.HasSynced()).To(BeFalse())
	g.Expect(filtered.WaitForCacheSync(ended(t))).To(BeFalse())
}

func TestFilteredCacheTransform(t *testing.T) {
	g := NewWithT(t)
	filtered := &FilteredCache{fetched: map[types.NamespacedName]struct{}{}, options: FilteredCacheOptions{
		Filter:    func(object *unstructured.Unstructured) bool { return object.GetLabels()[interestLabel] != "" },
		Transform: func(any) (any, error) { return &unstructured.Unstructured{}, nil },
	}}
	object := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{
		"namespace": "n", "name": "a", "uid": "u", "resourceVersion": "7", "managedFields": []any{}, "annotations": map[string]any{"a": "b"},
	}}}
	partial, err := filtered.transform(object.DeepCopy())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(partial).To(Equal(&metav1.ObjectMeta{Namespace: "n", Name: "a", UID: "u", ResourceVersion: "7"}))
	g.Expect(filtered.transform(partial)).To(BeIdenticalTo(partial))

	object.SetLabels(map[string]string{interestLabel: "true"})
	kept, err := filtered.transform(object.DeepCopy())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(filtered.transform(kept)).To(Equal(kept), "transformed objects are not filtered again")

	filtered.options.Transform = func(any) (any, error) { return "a string", nil }
	_, err = filtered.transform(object.DeepCopy())
	g.Expect(err).To(MatchError(ContainSubstring("n/a was reduced to a string")))
}
