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
	"slices"
	"strconv"
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

const ownedSelector = "example.org/owner=us"

// eventRecorder records the events of a cache.
type eventRecorder struct {
	lock  sync.Mutex
	calls []string
}

func (e *eventRecorder) add(what string, object any) {
	e.lock.Lock()
	defer e.lock.Unlock()
	if unknown, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = unknown.Obj
	}
	e.calls = append(e.calls, what+" "+object.(*unstructured.Unstructured).GetName())
}

func (e *eventRecorder) handler() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { e.add("added", object) },
		UpdateFunc: func(_, object any) { e.add("updated", object) },
		DeleteFunc: func(object any) { e.add("deleted", object) },
	}
}

func (e *eventRecorder) all() []string {
	e.lock.Lock()
	defer e.lock.Unlock()
	return slices.Clone(e.calls)
}

// startCache runs a cache of ConfigMaps, without their data, until the test ends, and returns when it is synced.
func startCache(t *testing.T, connection *Connection, selector string) (*Cache, *eventRecorder) {
	t.Helper()
	recorded := &eventRecorder{}
	withoutData := func(object any) (any, error) {
		unstructured.RemoveNestedField(object.(*unstructured.Unstructured).Object, "data")
		return object, nil
	}
	cached := connection.Watches.NewCache(configMaps, CacheOptions{Selector: selector, Transform: withoutData, Handler: recorded.handler(), Indexers: cache.Indexers{
		byLength: func(object any) ([]string, error) {
			return []string{strconv.Itoa(len(object.(*unstructured.Unstructured).GetName()))}, nil
		},
	}})
	runInTest(t, cached.Run)
	waitForCacheSync(t, cached)
	return cached, recorded
}

// byLength is an index of names by their length.
const byLength = "length"

// runInTest calls run in the background until the test ends.
func runInTest(t *testing.T, run func(context.Context)) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { run(ctx) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
}

func waitForCacheSync(t *testing.T, objects interface{ WaitForCacheSync(context.Context) bool }) {
	t.Helper()
	waiting, stop := context.WithTimeout(t.Context(), suite.Timeout)
	defer stop()
	if !objects.WaitForCacheSync(waiting) {
		t.Fatal("the objects are not there")
	}
}

func namesIn[O metav1.Object](objects interface{ List() []O }) []string {
	var names []string
	for _, object := range objects.List() {
		names = append(names, object.GetName())
	}
	slices.Sort(names)
	return names
}

func ownedConfigMap(namespace, name, value string) string {
	return "{apiVersion: v1, kind: ConfigMap, metadata: {name: " + name + ", namespace: " + namespace + ", labels: {example.org/owner: us}}, data: {key: \"" + value + "\"}}"
}

// The network is cut while the target changes: the cache misses no change.
func TestCacheResumes(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	ctx := t.Context()
	target := steady(t)
	namespace, proxy := newNamespace(t, target), newFlakyProxy(t, target)
	connection := connectTo(t, kubeconfigAt(t, target, proxy.URL()))
	g.Expect(connection.Objects.HasNoObjects(ctx, configMaps, ownedSelector)).To(BeTrue())
	for _, manifest := range []string{
		ownedConfigMap(namespace, "stays", "1"), ownedConfigMap(namespace, "changes", "1"), ownedConfigMap(namespace, "goes", "1"),
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: foreign, namespace: " + namespace + "}}",
	} {
		g.Expect(framework.Apply(ctx, target.Config, manifest)).To(Succeed())
	}
	g.Expect(connection.Objects.HasNoObjects(ctx, configMaps, ownedSelector)).To(BeFalse())
	g.Expect(connection.Objects.HasNoObjects(ctx, configMaps, "example.org/owner=them")).To(BeTrue())

	cached, recorded := startCache(t, connection, ownedSelector)
	g.Expect(cached.HasSynced()).To(BeTrue())
	g.Expect(namesIn(cached)).To(Equal([]string{"changes", "goes", "stays"}))
	g.Expect(cached.Len()).To(Equal(3))
	g.Expect(recorded.all()).To(ConsistOf("added changes", "added goes", "added stays"))
	stays := types.NamespacedName{Namespace: namespace, Name: "stays"}
	g.Expect(cached.Get(stays).UnstructuredContent()).NotTo(HaveKey("data"), "the cache keeps only the result of the transform")
	g.Expect(cached.Get(stays).GetUID()).NotTo(BeEmpty())
	g.Expect(cached.Get(types.NamespacedName{Namespace: namespace, Name: "foreign"})).To(BeNil())
	g.Expect(cached.Get(types.NamespacedName{Name: "stays"})).To(BeNil())
	g.Expect(cached.ByIndex(byLength, "7")).To(ConsistOf(HaveField("GetName()", "changes")))
	g.Expect(cached.ByIndex(byLength, "1")).To(BeEmpty())
	g.Expect(cached.ByIndex("none", "7")).To(BeEmpty())
	g.Expect(cached.Availability()).To(BeZero())

	proxy.Disconnect()
	suite.Eventually(t, func(g Gomega) { g.Expect(connection.Health.IsUp()).To(BeFalse()) })
	g.Expect(framework.Apply(ctx, target.Config, ownedConfigMap(namespace, "changes", "2"))).To(Succeed())
	g.Expect(framework.Apply(ctx, target.Config, ownedConfigMap(namespace, "comes", "1"))).To(Succeed())
	g.Expect(framework.Delete(ctx, target.Config, configMaps, namespace, "goes")).To(Succeed())
	changed, err := framework.Get(ctx, target.Config, configMaps, namespace, "changes")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(namesIn(cached)).To(Equal([]string{"changes", "goes", "stays"}), "cached objects stay")
	g.Expect(cached.HasReached(namespace, cached.Get(stays).GetResourceVersion())).To(BeTrue())
	g.Expect(cached.HasReached(namespace, changed.GetResourceVersion())).To(BeFalse(), "the cache did not get the later change")
	g.Expect(cached.HasReached(namespace, "no number")).To(BeTrue(), "an invalid resourceVersion counts as reached")

	proxy.Reconnect(t)
	connection.Health.ProbeNow()
	suite.Eventually(t, func(g Gomega) {
		g.Expect(namesIn(cached)).To(Equal([]string{"changes", "comes", "stays"}))
		g.Expect(cached.Get(types.NamespacedName{Namespace: namespace, Name: "changes"}).GetResourceVersion()).To(Equal(changed.GetResourceVersion()))
		g.Expect(recorded.all()).To(ContainElements("updated changes", "added comes", "deleted goes"))
		g.Expect(cached.HasReached(namespace, changed.GetResourceVersion())).To(BeTrue())
	})
}

// While the target is down, only the probe sends requests to it.
func TestCacheWaitsForTheTarget(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	target := steady(t)
	namespace, proxy := newNamespace(t, target), newFlakyProxy(t, target)
	connection := connectTo(t, kubeconfigAt(t, target, proxy.URL()))
	proxy.Disconnect()
	for range failuresUntilDown {
		connection.Health.ProbeNow()
	}
	suite.Eventually(t, func(g Gomega) {
		connection.Health.ProbeNow()
		g.Expect(connection.Health.IsUp()).To(BeFalse())
	})
	cached := connection.Watches.NewCache(configMaps, CacheOptions{Selector: ownedSelector, Handler: cache.ResourceEventHandlerFuncs{}})
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { cached.Run(ctx) })
	g.Expect(cached.HasSynced()).To(BeFalse())
	g.Expect(cached.Len()).To(BeZero())

	_, err := administrator(t, target).Resource(configMaps).Namespace(namespace).Create(ctx, kinds[0].object(namespace, "a"), metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	proxy.Reconnect(t)
	connection.Health.ProbeNow()
	waiting, stop := context.WithTimeout(ctx, suite.Timeout)
	defer stop()
	g.Expect(cached.WaitForCacheSync(waiting)).To(BeTrue())
	cancel()
	running.Wait()
	g.Expect(cached.WaitForCacheSync(ctx)).To(BeTrue())
}
