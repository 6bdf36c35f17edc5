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
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/synchub-dev/synchub/provider/kcp"
	"github.com/synchub-dev/synchub/test/framework"
)

func TestResolve(t *testing.T) {
	t.Parallel()
	target := startTarget(t, steady)
	connection := connect(t, target)
	kindOf := func(group, version, kind string) schema.GroupVersionKind {
		return schema.GroupVersionKind{Group: group, Version: version, Kind: kind}
	}
	resource := func(group, version, resource string) schema.GroupVersionResource {
		return schema.GroupVersionResource{Group: group, Version: version, Resource: resource}
	}
	for kind, expected := range map[schema.GroupVersionKind]struct {
		resource   schema.GroupVersionResource
		namespaced bool
	}{
		kindOf("", "v1", "Pod"):                                        {resource("", "v1", "pods"), true},
		kindOf("", "", "Namespace"):                                    {resource("", "v1", "namespaces"), false},
		kindOf("apps", "", "Deployment"):                               {resource("apps", "v1", "deployments"), true},
		kindOf("autoscaling", "", "HorizontalPodAutoscaler"):           {resource("autoscaling", "v2", "horizontalpodautoscalers"), true},
		kindOf("autoscaling", "v1", "HorizontalPodAutoscaler"):         {resource("autoscaling", "v1", "horizontalpodautoscalers"), true},
		kindOf("rbac.authorization.k8s.io", "v1", "ClusterRole"):       {clusterRoles, false},
		kindOf("example.org", "v1", "Widget"):                          {widgets, true},
		kindOf("example.org", "v1", "Gadget"):                          {gadgets, false},
		kindOf("apiextensions.k8s.io", "", "CustomResourceDefinition"): {definitionsOfKinds, false},
	} {
		g := NewWithT(t)
		for range 2 {
			found, namespaced, err := connection.Resolve(t.Context(), kind)
			g.Expect(err).NotTo(HaveOccurred(), kind.String())
			g.Expect(found).To(Equal(expected.resource))
			g.Expect(namespaced).To(Equal(expected.namespaced))
		}
	}
	for _, kind := range []schema.GroupVersionKind{
		kindOf("", "v1", "Missing"), kindOf("", "v9", "Pod"), kindOf("", "", ""),
		kindOf("apps", "v1", "Pod"), kindOf("apps", "v9", "Deployment"), kindOf("apps", "", "Pod"),
		kindOf("missing.example.org", "v1", "Widget"), kindOf("missing.example.org", "", "Widget"),
		// Whatever a user writes leads nowhere else.
		kindOf("..", "v1", "Pod"), kindOf("", "../apis/apps/v1", "Deployment"), kindOf("apps/v1", "..", "Deployment"), kindOf("apps/v1", "", "Deployment"), kindOf("%2e%2e", "v1", "Pod"),
	} {
		_, _, err := connection.Resolve(t.Context(), kind)
		NewWithT(t).Expect(err).To(MatchError(ErrNotServed), "%v", kind)
	}
	_, _, err := connection.Resolve(ended(t), kindOf("batch", "v1", "Job"))
	g := NewWithT(t)
	g.Expect(err).To(HaveOccurred())
	g.Expect(err).NotTo(MatchError(ErrNotServed))
}

// What is known is not asked for again, until there is a reason to.
func TestResolveRemembers(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	ctx := t.Context()
	target, now := startTarget(t, steady), clocktesting.NewFakeClock(time.Now())
	var asked atomic.Int64
	kubeconfig := newProxy(t, target, func(request *http.Request) {
		if strings.HasSuffix(request.URL.Path, "/apis/example.org/v2") {
			asked.Add(1)
		}
	})
	connection, err := newRegistry(ctx, t, now).Connect(syncTarget, kubeconfig, kcp.Limits{})
	g.Expect(err).NotTo(HaveOccurred())
	eventually(t, func(g Gomega) { g.Expect(connection.Up()).To(BeTrue()) })
	kind := schema.GroupVersionKind{Group: "example.org", Version: "v2", Kind: "Sprocket"}
	resolve := func() error {
		_, _, err := connection.Resolve(ctx, kind)
		return err
	}
	h, _ := listen(t, connection, "sprockets")
	for range 2 {
		g.Eventually(h.synced).WithTimeout(patience).Should(Receive())
	}
	g.Expect(resolve()).To(MatchError(ErrNotServed))
	g.Expect(resolve()).To(MatchError(ErrNotServed))
	g.Expect(asked.Load()).To(BeEquivalentTo(2), "what is not served is not remembered")

	g.Expect(framework.Apply(ctx, target.Config, definition("sprockets", "Sprocket", "true"))).To(Succeed())
	eventually(t, func(g Gomega) { g.Expect(resolve()).To(Succeed()) })
	remembered := func(g Gomega) {
		before := asked.Load()
		g.Expect(resolve()).To(Succeed())
		g.Expect(asked.Load()).To(Equal(before))
	}
	eventually(t, remembered)
	before := asked.Load()
	now.Step(recheckInterval)
	g.Expect(resolve()).To(Succeed())
	g.Expect(asked.Load()).To(Equal(before+1), "aggregated APIs change without a signal")

	g.Expect(framework.Delete(ctx, target.Config, definitionsOfKinds, "", "sprockets.example.org")).To(Succeed())
	eventually(t, func(g Gomega) { g.Expect(resolve()).To(MatchError(ErrNotServed)) })

	// What was asked for before it was all forgotten may be wrong.
	_, drops, _ := connection.resolutions.get(kind)
	connection.resolutions.drop()
	connection.resolutions.put(kind, resolution{}, drops)
	_, _, ok := connection.resolutions.get(kind)
	g.Expect(ok).To(BeFalse())
}
