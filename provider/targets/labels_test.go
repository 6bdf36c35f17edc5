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
	"strings"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/framework/suite"
)

// After NamespaceLabels has returned known labels, each change of them is reported.
func TestNamespaceLabels(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	ctx := t.Context()
	target := steady(t)
	admin, proxy := administrator(t, target), newFlakyProxy(t, target)
	connection := connectTo(t, kubeconfigAt(t, target, proxy.URL()))
	namespace := func(name, labels string) {
		t.Helper()
		g.Expect(framework.Apply(ctx, target.Config, "{apiVersion: v1, kind: Namespace, metadata: {name: "+name+", labels: {"+labels+"}}}")).To(Succeed())
	}
	namespace("labelled-there", "team: a")
	namespace("labelled-twin", "team: a")
	var lock sync.Mutex
	recorded := map[string]int{}
	unsubscribe := connection.Watches.Subscribe(Listener{OnNamespaceLabels: func(name string) {
		lock.Lock()
		defer lock.Unlock()
		if strings.HasPrefix(name, "labelled-") {
			recorded[name]++
		}
	}})
	t.Cleanup(unsubscribe)
	expectChanges := func(want map[string]int) {
		t.Helper()
		suite.Eventually(t, func(g Gomega) {
			lock.Lock()
			defer lock.Unlock()
			g.Expect(recorded).To(Equal(want))
		})
	}
	shows := func(name string, want map[string]string) {
		t.Helper()
		suite.Eventually(t, func(g Gomega) {
			labels, known := connection.Watches.NamespaceLabels(name)
			g.Expect(known).To(BeTrue())
			// shows must not change the labels in the cache.
			labels = maps.Clone(labels)
			delete(labels, "kubernetes.io/metadata.name")
			g.Expect(labels).To(Equal(want))
		})
	}
	shows("labelled-there", map[string]string{"team": "a"})
	// An object can be visible before its namespace, so a missing namespace is unknown.
	if labels, known := connection.Watches.NamespaceLabels("labelled-none"); known || labels != nil {
		t.Errorf("a missing namespace has the labels %v", labels)
	}
	expectChanges(map[string]int{})

	namespace("labelled-comes", "team: b")
	expectChanges(map[string]int{"labelled-comes": 1})
	shows("labelled-comes", map[string]string{"team": "b"})
	namespace("labelled-there", "team: b, more: c")
	expectChanges(map[string]int{"labelled-comes": 1, "labelled-there": 1})
	shows("labelled-there", map[string]string{"team": "b", "more": "c"})
	// Other changes of a namespace are not reported.
	_, err := admin.Resource(namespacesResource).Patch(ctx, "labelled-there", types.MergePatchType, []byte(`{"metadata":{"annotations":{"note":"x"}}}`), metav1.PatchOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	finalize(ctx, g, admin, "labelled-twin")
	suite.Eventually(t, func(g Gomega) {
		_, known := connection.Watches.NamespaceLabels("labelled-twin")
		g.Expect(known).To(BeFalse())
	})
	expectChanges(map[string]int{"labelled-comes": 1, "labelled-there": 1})

	// A change during an interruption is reported afterwards; until then the last known labels count.
	proxy.Disconnect()
	suite.Eventually(t, func(g Gomega) { g.Expect(connection.Health.IsUp()).To(BeFalse()) })
	namespace("labelled-there", "team: c")
	namespace("labelled-twin", "team: z")
	labels, known := connection.Watches.NamespaceLabels("labelled-there")
	g.Expect(known).To(BeTrue())
	g.Expect(labels).To(HaveKeyWithValue("team", "b"))
	proxy.Reconnect(t)
	connection.Health.ProbeNow()
	expectChanges(map[string]int{"labelled-comes": 1, "labelled-there": 2, "labelled-twin": 1})
	shows("labelled-there", map[string]string{"team": "c"})
	shows("labelled-twin", map[string]string{"team": "z"})
	unsubscribe()
	namespace("labelled-there", "team: d")
	shows("labelled-there", map[string]string{"team": "d"})
	expectChanges(map[string]int{"labelled-comes": 1, "labelled-there": 2, "labelled-twin": 1})
	expectBackground(t, "namespaces", "list", "watch")
}

// The labels of namespaces are unknown until the target has shown its namespaces.
func TestNamespaceLabelsOfAnUnreachableTarget(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	target := steady(t)
	proxy := newFlakyProxy(t, target)
	connection := connectTo(t, kubeconfigAt(t, target, proxy.URL()))
	proxy.Disconnect()
	suite.Eventually(t, func(g Gomega) { g.Expect(connection.Health.IsUp()).To(BeFalse()) })
	for range 2 {
		_, known := connection.Watches.NamespaceLabels("default")
		g.Expect(known).To(BeFalse())
	}
	synced := make(chan struct{}, 1)
	t.Cleanup(connection.Watches.Subscribe(Listener{OnNamespace: func(string, bool) {}, OnSynced: func() { synced <- struct{}{} }}))
	proxy.Reconnect(t)
	connection.Health.ProbeNow()
	g.Eventually(synced).Should(Receive())
	// Callers that wait for the sync may rely on the labels.
	_, known := connection.Watches.NamespaceLabels("default")
	g.Expect(known).To(BeTrue())
}
