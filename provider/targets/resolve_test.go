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
	"github.com/synchub-dev/synchub/test/framework/suite"
)

func TestResolve(t *testing.T) {
	t.Parallel()
	target := steady(t)
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
		kindOf("apiextensions.k8s.io", "", "CustomResourceDefinition"): {crdsResource, false},
	} {
		g := NewWithT(t)
		for range 2 {
			found, namespaced, err := connection.APIs.Resolve(t.Context(), kind)
			g.Expect(err).NotTo(HaveOccurred(), kind.String())
			g.Expect(found).To(Equal(expected.resource))
			g.Expect(namespaced).To(Equal(expected.namespaced))
		}
	}
	for _, kind := range []schema.GroupVersionKind{
		kindOf("", "v1", "Missing"), kindOf("", "v9", "Pod"), kindOf("", "", ""),
		kindOf("apps", "v1", "Pod"), kindOf("apps", "v9", "Deployment"), kindOf("apps", "", "Pod"),
		kindOf("missing.example.org", "v1", "Widget"), kindOf("missing.example.org", "", "Widget"),
		// No text of a user may lead to another path.
		kindOf("..", "v1", "Pod"), kindOf("", "../apis/apps/v1", "Deployment"), kindOf("apps/v1", "..", "Deployment"), kindOf("apps/v1", "", "Deployment"), kindOf("%2e%2e", "v1", "Pod"),
	} {
		_, _, err := connection.APIs.Resolve(t.Context(), kind)
		NewWithT(t).Expect(err).To(MatchError(ErrNotServed), "%v", kind)
	}
	_, _, err := connection.APIs.Resolve(ended(t), kindOf("batch", "v1", "Job"))
	g := NewWithT(t)
	g.Expect(err).To(HaveOccurred())
	g.Expect(err).NotTo(MatchError(ErrNotServed))
}

// A resource may be served in some versions of its group only. That no version serves it is an answer, too.
func TestServedVersionsAsync(t *testing.T) {
	t.Parallel()
	target := steady(t)
	connection := connect(t, target)
	for resource, want := range map[schema.GroupResource][]string{
		{Group: "autoscaling", Resource: "horizontalpodautoscalers"}: {"v2", "v1"},
		{Group: "example.org", Resource: "widgets"}:                  {"v1"},
		{Resource: "pods"}:                                  {"v1"},
		{Group: "autoscaling", Resource: "pods"}:            nil,
		{Group: "missing.example.org", Resource: "widgets"}: nil,
		{Group: "../api/v1", Resource: "pods"}:              nil,
	} {
		suite.Eventually(t, func(g Gomega) {
			versions, err := connection.APIs.ServedVersionsAsync(resource)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(versions).To(Equal(want), resource.String())
		})
	}
}

// A cached result is not requested again without a cause.
func TestResolveRemembers(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	ctx := t.Context()
	target, now := steady(t), clocktesting.NewFakeClock(time.Now())
	var requests atomic.Int64
	kubeconfig := newProxy(t, target, func(request *http.Request) {
		if strings.HasSuffix(request.URL.Path, "/apis/example.org/v2") {
			requests.Add(1)
		}
	})
	connection, err := newRegistry(ctx, t, now).Connect(syncTarget, kubeconfig, kcp.Limits{})
	g.Expect(err).NotTo(HaveOccurred())
	suite.Eventually(t, func(g Gomega) { g.Expect(connection.Health.IsUp()).To(BeTrue()) })
	kind := schema.GroupVersionKind{Group: "example.org", Version: "v2", Kind: "Sprocket"}
	resolve := func() error {
		_, _, err := connection.APIs.Resolve(ctx, kind)
		return err
	}
	h, _ := listen(t, connection, "sprockets")
	for range 2 {
		g.Eventually(h.synced).Should(Receive())
	}
	g.Expect(resolve()).To(MatchError(ErrNotServed))
	g.Expect(resolve()).To(MatchError(ErrNotServed))
	g.Expect(requests.Load()).To(BeEquivalentTo(2), "the answer \"not served\" is not cached")

	g.Expect(framework.Apply(ctx, target.Config, definition("sprockets", "Sprocket", "true"))).To(Succeed())
	suite.Eventually(t, func(g Gomega) { g.Expect(resolve()).To(Succeed()) })
	remembered := func(g Gomega) {
		before := requests.Load()
		g.Expect(resolve()).To(Succeed())
		g.Expect(requests.Load()).To(Equal(before))
	}
	suite.Eventually(t, remembered)
	before := requests.Load()
	now.Step(servedRecheckInterval)
	g.Expect(resolve()).To(Succeed())
	g.Expect(requests.Load()).To(Equal(before+1), "aggregated APIs change without a signal")

	g.Expect(framework.Delete(ctx, target.Config, crdsResource, "", "sprockets.example.org")).To(Succeed())
	suite.Eventually(t, func(g Gomega) {
		// A result from discovery just after a change expires soon.
		now.Step(crdChangedPollInterval)
		g.Expect(resolve()).To(MatchError(ErrNotServed))
	})

	// A result that was requested before the cache was emptied may be wrong.
	stale := lookup{GroupVersion: kind.GroupVersion(), kind: kind.Kind}
	_, drops, _ := connection.APIs.discovered.get(stale)
	connection.APIs.discovered.reset()
	connection.APIs.discovered.put(stale, lookupResult{}, drops, now.Now())
	_, _, ok := connection.APIs.discovered.get(stale)
	g.Expect(ok).To(BeFalse())
}

// Discovery lags behind a change of a definition.
func TestLookupsAreRepeatedAfterACRDChange(t *testing.T) {
	t.Parallel()
	g, changed := NewWithT(t), time.Now()
	var r discoveryCache
	remembers := func(now time.Time) time.Duration {
		_, drops, _ := r.get(lookup{kind: "Widget"})
		r.put(lookup{kind: "Widget"}, lookupResult{}, drops, now)
		found, _, ok := r.get(lookup{kind: "Widget"})
		g.Expect(ok).To(BeTrue())
		return found.until.Sub(now)
	}
	g.Expect(remembers(changed)).To(Equal(servedRecheckInterval))
	r.crdChanged(changed)
	_, _, ok := r.get(lookup{kind: "Widget"})
	g.Expect(ok).To(BeFalse())
	g.Expect(remembers(changed)).To(Equal(crdChangedPollInterval))
	g.Expect(remembers(changed.Add(crdChangedPollPeriod - 1))).To(Equal(crdChangedPollInterval))
	g.Expect(remembers(changed.Add(crdChangedPollPeriod))).To(Equal(servedRecheckInterval))
}

func TestResolveResource(t *testing.T) {
	t.Parallel()
	connection := connect(t, steady(t))
	resource := func(group, version, resource string) schema.GroupVersionResource {
		return schema.GroupVersionResource{Group: group, Version: version, Resource: resource}
	}
	for key, expected := range map[schema.GroupVersionResource]struct {
		kind       string
		namespaced bool
	}{
		resource("", "v1", "pods"):                                       {"Pod", true},
		resource("", "", "namespaces"):                                   {"Namespace", false},
		resource("apps", "v1", "deployments"):                            {"Deployment", true},
		resource("autoscaling", "", "horizontalpodautoscalers"):          {"HorizontalPodAutoscaler", true},
		resource("policy", "v1", "poddisruptionbudgets"):                 {"PodDisruptionBudget", true},
		resource("discovery.k8s.io", "", "endpointslices"):               {"EndpointSlice", true},
		resource("apiregistration.k8s.io", "v1", "apiservices"):          {"APIService", false},
		resource("authorization.k8s.io", "", "selfsubjectaccessreviews"): {"SelfSubjectAccessReview", false},
		widgets: {"Widget", true},
		gadgets: {"Gadget", false},
	} {
		g := NewWithT(t)
		for range 2 {
			kind, namespaced, err := connection.APIs.ResolveResource(t.Context(), key)
			g.Expect(err).NotTo(HaveOccurred(), key.String())
			g.Expect(kind).To(Equal(expected.kind))
			g.Expect(namespaced).To(Equal(expected.namespaced))
		}
	}
	for _, key := range []schema.GroupVersionResource{
		resource("", "v1", "missing"), resource("", "v9", "pods"), resource("", "", ""), resource("", "v1", ""), resource("", "v1", "Pod"),
		resource("apps", "v1", "pods"), resource("apps", "v9", "deployments"), resource("apps", "", "pods"),
		resource("missing.example.org", "v1", "widgets"), resource("missing.example.org", "", "widgets"),
		// A subresource is no resource, though it may have a kind of its own.
		resource("apps", "v1", "deployments/scale"), resource("", "v1", "pods/eviction"),
		// No text of a user may lead to another path.
		resource("..", "v1", "pods"), resource("", "../apis/apps/v1", "deployments"), resource("apps/v1", "", "deployments"), resource("%2e%2e", "v1", "pods"),
	} {
		_, _, err := connection.APIs.ResolveResource(t.Context(), key)
		NewWithT(t).Expect(err).To(MatchError(ErrNotServed), "%v", key)
	}
	_, _, err := connection.APIs.ResolveResource(ended(t), resource("batch", "v1", "jobs"))
	g := NewWithT(t)
	g.Expect(err).To(HaveOccurred())
	g.Expect(err).NotTo(MatchError(ErrNotServed))
}

// A resource and a kind of one name are two lookups.
func TestResolveResourceRemembers(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	target, now := steady(t), clocktesting.NewFakeClock(time.Now())
	var requests atomic.Int64
	kubeconfig := newProxy(t, target, func(request *http.Request) {
		if strings.HasSuffix(request.URL.Path, "/apis/example.org/v1") {
			requests.Add(1)
		}
	})
	connection, err := newRegistry(t.Context(), t, now).Connect(syncTarget, kubeconfig, kcp.Limits{})
	g.Expect(err).NotTo(HaveOccurred())
	suite.Eventually(t, func(g Gomega) { g.Expect(connection.Health.IsUp()).To(BeTrue()) })
	h, _ := listen(t, connection, "no resource of this test")
	for range 2 {
		g.Eventually(h.synced).Should(Receive())
	}
	resolve := func(g Gomega) {
		kind, _, err := connection.APIs.ResolveResource(t.Context(), widgets)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(kind).To(Equal("Widget"))
	}
	// CRDs of other tests empty the cache of the connection.
	suite.Eventually(t, func(g Gomega) {
		resolve(g)
		before := requests.Load()
		resolve(g)
		g.Expect(requests.Load()).To(Equal(before))
	})
	_, _, err = connection.APIs.Resolve(t.Context(), widgets.GroupVersion().WithKind("widgets"))
	g.Expect(err).To(MatchError(ErrNotServed))
	before := requests.Load()
	now.Step(servedRecheckInterval)
	resolve(g)
	g.Expect(requests.Load()).To(Equal(before + 1))
}

// Discovery uses the same transport as all requests to the target.
func TestDiscovery(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	proxy := newFlakyProxy(t, steady(t))
	connection := connectTo(t, kubeconfigAt(t, steady(t), proxy.URL()))
	document, err := connection.Discovery.RESTClient().Get().AbsPath("/openapi/v3").Do(t.Context()).Raw()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(document)).To(ContainSubstring("apis/apps/v1"))
	proxy.Disconnect()
	_, err = connection.Discovery.RESTClient().Get().AbsPath("/openapi/v3").MaxRetries(0).Do(t.Context()).Raw()
	g.Expect(err).To(HaveOccurred())
}
