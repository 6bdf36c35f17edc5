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
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/synchub-dev/synchub/provider/metrics/requestmetrics"
	"github.com/synchub-dev/synchub/provider/requestclass"
	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/framework/suite"
)

// finalize deletes a namespace at once, in place of the namespace controller, which this cluster does not have.
func finalize(ctx context.Context, g Gomega, admin dynamic.Interface, name string) {
	g.Expect(admin.Resource(namespacesResource).Delete(ctx, name, metav1.DeleteOptions{})).To(Succeed())
	object, err := admin.Resource(namespacesResource).Get(ctx, name, metav1.GetOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	unstructured.RemoveNestedField(object.Object, "spec", "finalizers")
	_, err = admin.Resource(namespacesResource).Update(ctx, object, metav1.UpdateOptions{}, "finalize")
	g.Expect(err).NotTo(HaveOccurred())
}

// recordedSignals records the calls of a listener.
type recordedSignals struct {
	eventRecorder
	synced chan struct{}
}

func listen(t *testing.T, connection *Connection, interesting string) (*recordedSignals, func()) {
	t.Helper()
	h := &recordedSignals{synced: make(chan struct{}, 2)}
	note := func(what, name string) {
		if strings.Contains(name, interesting) {
			h.lock.Lock()
			defer h.lock.Unlock()
			h.calls = append(h.calls, what+" "+name)
		}
	}
	unsubscribe := connection.Watches.Subscribe(Listener{
		OnNamespace: func(name string, gone bool) {
			if gone {
				note("gone", name)
			} else {
				note("came", name)
			}
		},
		OnCRD:    func(resource schema.GroupResource) { note("defined", resource.Resource+" in "+resource.Group) },
		OnSynced: func() { h.synced <- struct{}{} },
	})
	t.Cleanup(unsubscribe)
	return h, unsubscribe
}

func TestNotifier(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	ctx := t.Context()
	target := steady(t)
	admin, proxy := administrator(t, target), newFlakyProxy(t, target)
	connection := connectTo(t, kubeconfigAt(t, target, proxy.URL()))
	namespace := func(name string) {
		t.Helper()
		g.Expect(framework.Apply(ctx, target.Config, "{apiVersion: v1, kind: Namespace, metadata: {name: "+name+"}}")).To(Succeed())
	}
	namespace("signal-there")
	namespace("signal-replaced")
	first, _ := listen(t, connection, "signal")
	for range 2 {
		g.Eventually(first.synced).Should(Receive())
	}
	second, unsubscribe := listen(t, connection, "signal")

	namespace("signal-comes")
	suite.Eventually(t, func(g Gomega) {
		g.Expect(first.all()).To(Equal([]string{"came signal-comes"}), "existing namespaces are not reported")
		g.Expect(second.all()).To(Equal(first.all()))
	})
	unsubscribe()
	unsubscribe()
	finalize(ctx, g, admin, "signal-there")
	suite.Eventually(t, func(g Gomega) {
		g.Expect(first.all()).To(Equal([]string{"came signal-comes", "gone signal-there"}), "changes of a namespace are not reported")
	})

	g.Expect(framework.Apply(ctx, target.Config, definition("signals", "Signal", "true"))).To(Succeed())
	suite.Eventually(t, func(g Gomega) { g.Expect(first.all()).To(ContainElement("defined signals in example.org")) })
	g.Expect(framework.Delete(ctx, target.Config, crdsResource, "", "signals.example.org")).To(Succeed())
	suite.Eventually(t, func(g Gomega) {
		_, err := framework.Get(ctx, target.Config, crdsResource, "", "signals.example.org")
		g.Expect(err).To(HaveOccurred())
	})

	// Changes during an interruption are reported afterwards.
	proxy.Disconnect()
	suite.Eventually(t, func(g Gomega) { g.Expect(connection.Health.IsUp()).To(BeFalse()) })
	before := len(first.all())
	finalize(ctx, g, admin, "signal-replaced")
	namespace("signal-replaced")
	finalize(ctx, g, admin, "signal-comes")
	proxy.Reconnect(t)
	connection.Health.ProbeNow()
	suite.Eventually(t, func(g Gomega) {
		g.Expect(first.all()[before:]).To(ContainElements("gone signal-replaced", "came signal-replaced", "gone signal-comes"))
	})
	g.Expect(second.all()).To(Equal([]string{"came signal-comes"}))
	expectBackground(t, "customresourcedefinitions", "list", "watch")
}

// expectBackground checks the class of the requests of this package's tests.
func expectBackground(t *testing.T, resource string, verbs ...string) {
	t.Helper()
	seen := 0
	for _, one := range framework.Gather(t, requestmetrics.Collectors()...) {
		if one.Labels["resource"] != resource || !slices.Contains(verbs, one.Labels["verb"]) {
			continue
		}
		seen++
		if one.Labels["class"] != string(requestclass.Background) {
			t.Errorf("a request counts as another class: %v", one.Labels)
		}
	}
	if seen == 0 {
		t.Errorf("no request for %s", resource)
	}
}
