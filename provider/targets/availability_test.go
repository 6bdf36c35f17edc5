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
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/synchub-dev/synchub/provider/kcp"
	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/framework/suite"
)

// unserved is a resource that no test defines.
var unserved = schema.GroupVersionResource{Group: "example.org", Version: "v1", Resource: "dreams"}

// definition returns the CRD of a kind with two versions. served determines whether the first is served.
func definition(plural, kind, served string) string {
	return `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: ` + plural + `.example.org}
spec:
  group: example.org
  scope: Namespaced
  names: {plural: ` + plural + `, kind: ` + kind + `}
  versions:
  - {name: v1, served: ` + served + `, storage: false, schema: {openAPIV3Schema: {type: object}}}
  - {name: v2, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}`
}

// The cache waits for a resource that is not served yet, or not any more, and keeps its objects.
func TestCacheWaitsForTheAPI(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	ctx := t.Context()
	target := steady(t)
	namespace, connection := newNamespace(t, target), connect(t, target)
	cogs := schema.GroupVersionResource{Group: "example.org", Version: "v1", Resource: "cogs"}
	apply := func(manifest string) {
		t.Helper()
		suite.Eventually(t, func(g Gomega) { g.Expect(framework.Apply(ctx, target.Config, manifest)).To(Succeed()) })
	}
	recorded := &eventRecorder{}
	var changes atomic.Int64
	cached := connection.Watches.NewCache(cogs, CacheOptions{Handler: recorded.handler(), OnAvailability: func() { changes.Add(1) }})
	g.Expect(cached.Availability()).To(BeZero())
	runInTest(t, cached.Run)
	suite.Eventually(t, func(g Gomega) { g.Expect(cached.Availability().Reason).To(Equal(ReasonNotServed)) })
	g.Expect(cached.Availability().Message).NotTo(BeEmpty())
	g.Expect(cached.HasSynced()).To(BeFalse())

	apply(definition("cogs", "Cog", "true"))
	waitForCacheSync(t, cached)
	g.Expect(cached.Availability()).To(BeZero())
	suite.Eventually(t, func(g Gomega) { g.Expect(changes.Load()).To(BeEquivalentTo(2)) })
	apply("{apiVersion: example.org/v2, kind: Cog, metadata: {name: stays, namespace: " + namespace + "}}")
	apply("{apiVersion: example.org/v2, kind: Cog, metadata: {name: goes, namespace: " + namespace + "}}")
	suite.Eventually(t, func(g Gomega) { g.Expect(namesIn(cached)).To(Equal([]string{"goes", "stays"})) })

	apply(definition("cogs", "Cog", "false"))
	suite.Eventually(t, func(g Gomega) { g.Expect(cached.Availability().Reason).To(Equal(ReasonNotServed)) })
	second := cogs.GroupResource().WithVersion("v2")
	g.Expect(framework.Delete(ctx, target.Config, second, namespace, "goes")).To(Succeed())
	apply("{apiVersion: example.org/v2, kind: Cog, metadata: {name: comes, namespace: " + namespace + "}}")
	g.Expect(namesIn(cached)).To(Equal([]string{"goes", "stays"}))
	g.Expect(recorded.all()).To(ConsistOf("added goes", "added stays"))

	apply(definition("cogs", "Cog", "true"))
	suite.Eventually(t, func(g Gomega) {
		g.Expect(cached.Availability()).To(BeZero())
		g.Expect(namesIn(cached)).To(Equal([]string{"comes", "stays"}))
		g.Expect(recorded.all()).To(ConsistOf("added goes", "added stays", "added comes", "deleted goes", "updated stays"), "with the same resourceVersion")
	})
	suite.Eventually(t, func(g Gomega) { g.Expect(changes.Load()).To(BeEquivalentTo(4)) })
}

// A forbidden list is retried with a backoff until it is allowed.
func TestCacheWaitsForPermission(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	ctx := t.Context()
	target := steady(t)
	namespace := newNamespace(t, target)
	user := "{kind: ServiceAccount, name: guest, namespace: " + namespace + "}"
	g.Expect(framework.Apply(ctx, target.Config, "{apiVersion: v1, kind: ServiceAccount, metadata: {name: guest, namespace: "+namespace+"}}")).To(Succeed())
	kubeconfig, err := target.ServiceAccountKubeconfig(ctx, namespace, "guest")
	g.Expect(err).NotTo(HaveOccurred())
	now := clocktesting.NewFakeClock(time.Now())
	connection, err := newRegistry(ctx, t, now).Connect(syncTarget, kubeconfig, kcp.Limits{})
	g.Expect(err).NotTo(HaveOccurred())
	suite.Eventually(t, func(g Gomega) { g.Expect(connection.Health.IsUp()).To(BeTrue()) })

	recorded := &eventRecorder{}
	cached := connection.Watches.NewCache(widgets, CacheOptions{Handler: recorded.handler()})
	runInTest(t, cached.Run)
	signalled := make(chan struct{}, 1)
	defer connection.Watches.Subscribe(Listener{OnNamespace: func(string, bool) {}, OnSynced: func() { signalled <- struct{}{} }})()
	suite.Eventually(t, func(g Gomega) { g.Expect(cached.Availability().Reason).To(Equal(ReasonForbidden)) })
	g.Expect(cached.Availability().Message).To(ContainSubstring("guest"))
	g.Expect(cached.HasSynced()).To(BeFalse())
	g.Expect(signalled).NotTo(Receive())

	g.Expect(framework.Apply(ctx, target.Config, `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: `+namespace+`}
rules:
- {apiGroups: [example.org], resources: [widgets], verbs: [list, watch]}
- {apiGroups: [""], resources: [namespaces], verbs: [list, watch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: `+namespace+`}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: `+namespace+`}
subjects: [`+user+`]`)).To(Succeed())
	suite.Eventually(t, func(g Gomega) {
		now.Step(servedRecheckInterval)
		g.Expect(cached.HasSynced()).To(BeTrue())
	})
	g.Expect(cached.Availability()).To(BeZero())
	g.Expect(recorded.all()).To(ContainElement("added served"))
	suite.Eventually(t, func(g Gomega) {
		now.Step(servedRecheckInterval)
		g.Expect(signalled).To(Receive())
	})
}

// An API that is not served causes one request every five minutes.
func TestUnservedResourcesAreRarelyRequested(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	target, now := steady(t), clocktesting.NewFakeClock(time.Now())
	var key atomic.Int64
	kubeconfig := newProxy(t, target, func(request *http.Request) {
		if strings.HasSuffix(request.URL.Path, "/"+unserved.Resource) {
			key.Add(1)
		}
	})
	connection, err := newRegistry(t.Context(), t, now).Connect(syncTarget, kubeconfig, kcp.Limits{})
	g.Expect(err).NotTo(HaveOccurred())
	suite.Eventually(t, func(g Gomega) { g.Expect(connection.Health.IsUp()).To(BeTrue()) })
	cached := connection.Watches.NewCache(unserved, CacheOptions{Handler: cache.ResourceEventHandlerFuncs{}})
	runInTest(t, cached.Run)
	// The gate sends one request when it starts, and one when it subscribes. The first list of APIs, and the first list of
	// definitions, may wake it together.
	suite.Eventually(t, func(g Gomega) {
		g.Expect(now.Waiters()).To(Equal(3), "the probe, the cache, and the list of APIs")
		g.Expect(key.Load()).To(BeNumerically(">=", 3))
		g.Expect(key.Load()).To(BeNumerically("<=", 4))
	})
	const rechecks = 3
	for range rechecks {
		before := key.Load()
		now.Step(servedRecheckInterval)
		suite.Eventually(t, func(g Gomega) {
			g.Expect(key.Load()).To(BeNumerically(">", before))
			g.Expect(now.Waiters()).To(Equal(3))
		})
	}
	// The fourth of the first requests may come after the first recheck.
	g.Expect(key.Load()).To(BeNumerically("<=", 4+rechecks))
}

func TestAvailabilityFrom(t *testing.T) {
	resource := unserved.GroupResource()
	for reason, errs := range map[string][]error{
		ReasonNotServed: {
			apierrors.NewGenericServerResponse(http.StatusNotFound, "list", resource, "", "404 page not found", 0, true),
			apierrors.NewNotFound(resource, ""),
			apierrors.NewMethodNotSupported(resource, "list"),
		},
		ReasonForbidden: {apierrors.NewForbidden(resource, "", errors.New("no"))},
		"": {
			nil, errors.New("broken"), apierrors.NewUnauthorized("no"), apierrors.NewServiceUnavailable("no"), apierrors.NewResourceExpired("no"),
			apierrors.NewInternalError(errors.New("no")), apierrors.NewTooManyRequests("no", 1),
			&apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonInvalid}},
		},
	} {
		for _, err := range errs {
			state := availabilityFrom(err)
			NewWithT(t).Expect(state.Reason).To(Equal(reason), "%v", err)
			if reason != "" {
				NewWithT(t).Expect(state.Message).To(Equal(err.Error()))
			}
		}
	}
}
