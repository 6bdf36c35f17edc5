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
)

// wishes are the names that are of interest, which may change at any time.
type wishes struct {
	lock  sync.Mutex
	names map[string]bool
}

func (w *wishes) set(name string, interesting bool) {
	w.lock.Lock()
	defer w.lock.Unlock()
	if w.names == nil {
		w.names = map[string]bool{}
	}
	w.names[name] = interesting
}

func (w *wishes) keep(object *unstructured.Unstructured) bool {
	w.lock.Lock()
	defer w.lock.Unlock()
	return w.names[object.GetName()] && object.GetLabels()[interest] != "false"
}

func TestBystanders(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	ctx := t.Context()
	target := startTarget(t, steady)
	connection, namespace := connect(t, target), newNamespace(t, target)
	key := func(name string) types.NamespacedName {
		return types.NamespacedName{Namespace: namespace, Name: name}
	}
	for name, interesting := range map[string]string{"a": "true", "b": "true", "c": "false"} {
		g.Expect(framework.Apply(ctx, target.Config, widget(namespace, name, interesting))).To(Succeed())
	}
	owned := "{apiVersion: example.org/v1, kind: Widget, metadata: {name: d, namespace: " + namespace + ", ownerReferences: [{apiVersion: v1, kind: A, name: a, uid: of-a, controller: true}], annotations: {note: kept}}}"
	g.Expect(framework.Apply(ctx, target.Config, owned)).To(Succeed())

	wished, told := &wishes{}, &events{}
	wished.set("a", true)
	var passedLock sync.Mutex
	passed := map[string]int{}
	options := FeedOptions{
		Scope: Scope{Namespaces: []string{namespace}}, Keep: wished.keep, Handler: told.handler(), Bystanders: true,
		Passed: func(stub metav1.ObjectMeta) { passedLock.Lock(); defer passedLock.Unlock(); passed[stub.Name]++ },
	}
	feed := connection.NewFeed(widgets, options)
	runInTest(t, feed.Run)
	waitSynced(t, feed)
	bystanders := func() map[string]metav1.ObjectMeta {
		all := map[string]metav1.ObjectMeta{}
		for _, stub := range feed.Bystanders() {
			all[stub.Name] = stub
		}
		return all
	}
	g.Expect(namesIn(feed)).To(Equal([]string{"a"}))
	g.Expect(slices.Sorted(maps.Keys(bystanders()))).To(Equal([]string{"b", "c", "d"}))
	passedLock.Lock()
	g.Expect(passed).To(Equal(map[string]int{"b": 1, "c": 1, "d": 1}))
	passedLock.Unlock()
	g.Expect(bystanders()["c"].Labels).To(Equal(map[string]string{interest: "false"}))
	d := bystanders()["d"]
	g.Expect(d.OwnerReferences).To(HaveLen(1))
	g.Expect(d.OwnerReferences[0].UID).To(Equal(types.UID("of-a")))
	g.Expect(d.UID).NotTo(BeEmpty())

	g.Expect(feed.Shown(key("a")).GetAnnotations()).To(Equal(feed.Get(key("a")).GetAnnotations()))
	g.Expect(feed.Shown(key("c")).GetLabels()).To(Equal(map[string]string{interest: "false"}))
	g.Expect(feed.Shown(key("none"))).To(BeNil())

	for _, name := range []string{"b", "c", "d", "none"} {
		wished.set(name, true)
		g.Expect(feed.Fetch(ctx, key(name))).To(Succeed())
	}
	g.Expect(namesIn(feed)).To(Equal([]string{"a", "b", "d"}), "c is of no interest for another reason, none is not there")
	g.Expect(told.all()).To(Equal([]string{"added a", "added b", "added d"}))
	g.Expect(slices.Sorted(maps.Keys(bystanders()))).To(Equal([]string{"c"}))
	g.Expect(feed.Get(key("d")).GetAnnotations()).To(HaveKeyWithValue("note", "kept"))
	g.Expect(feed.Get(key("d")).GetManagedFields()).To(BeEmpty())
	// What is held already is not told again.
	g.Expect(feed.Fetch(ctx, key("b"))).To(Succeed())
	g.Expect(feed.Fetch(ctx, key("a"))).To(Succeed())
	g.Expect(told.all()).To(HaveLen(3))
	// The watch goes on with what was fetched as with the rest.
	g.Expect(framework.Delete(ctx, target.Config, widgets, namespace, "d")).To(Succeed())
	eventually(t, func(g Gomega) { g.Expect(told.all()[3:]).To(Equal([]string{"deleted d"})) })

	g.Expect(feed.Fetch(ended(t), key("c"))).To(MatchError(ContainSubstring(namespace + "/c")))
	options.Bystanders = false
	options.Passed = func(metav1.ObjectMeta) { t.Error("a feed that remembers no bystanders tells of one") }
	other := connection.NewFeed(widgets, options)
	runInTest(t, other.Run)
	waitSynced(t, other)
	g.Expect(namesIn(other)).To(Equal([]string{"a", "b"}))
	g.Expect(other.Bystanders()).To(BeEmpty())
}
