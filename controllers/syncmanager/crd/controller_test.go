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

package crd_test

import (
	"net/http"
	"runtime/pprof"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/synchub-dev/synchub/controllers/syncmanager/crd"
	"github.com/synchub-dev/synchub/test/framework/suite"
)

// A stopped controller leaves no goroutine behind. The test runs before the parallel ones, because it inspects the whole process.
func TestControllerLeaksNothing(t *testing.T) {
	g, way := NewWithT(t), newConnectedTarget(t)
	source, slow := unique("v1"), unique("v1")
	controller := startController(t, way)
	controller.SetInstallations([]crd.Installation{installationOf(source)})
	controller.waitForReason(t, source, crd.ReasonInSync)
	g.Expect(goroutines(t)).To(BeNumerically(">", 0), "else this test shows nothing")

	// The controller stops in the middle of a request, too.
	arrived := make(chan struct{})
	var once sync.Once
	way.interfere.Store(new(func(_ http.ResponseWriter, request *http.Request) bool {
		if strings.HasSuffix(request.URL.Path, slow.Name) {
			once.Do(func() { close(arrived) })
			<-request.Context().Done()
			return true
		}
		return false
	}))
	controller.SetInstallations([]crd.Installation{installationOf(source), installationOf(slow)})
	g.Eventually(arrived).Should(BeClosed())
	changes := controller.changes.Load()
	controller.stop()
	g.Expect(goroutines(t)).To(BeZero())
	g.Expect(controller.state(slow).Reason).To(Equal(crd.ReasonPending), "that it ended is no failure")
	g.Expect(controller.changes.Load()).To(Equal(changes))

	// It also stops while the target is down.
	far := newConnectedTarget(t)
	far.interfere.Store(new(func(http.ResponseWriter, *http.Request) bool { panic(http.ErrAbortHandler) }))
	suite.Eventually(t, func(g Gomega) {
		far.Health.ProbeNow()
		g.Expect(far.Health.IsUp()).To(BeFalse())
	})
	waiting := startController(t, far)
	waiting.SetInstallations([]crd.Installation{installationOf(source)})
	suite.Eventually(t, func(g Gomega) { g.Expect(goroutines(t)).To(BeNumerically(">", 0)) })
	waiting.stop()
	g.Expect(goroutines(t)).To(BeZero())
	g.Expect(far.reads(source.Name)).To(BeEmpty())

	// The stopped controllers have no subscriptions left.
	witness := startController(t, way)
	witness.SetInstallations([]crd.Installation{installationOf(source)})
	witness.waitForReason(t, source, crd.ReasonInSync)
	touched := len(way.reads(source.Name))
	touch(t, source.Name)
	suite.Eventually(t, func(g Gomega) { g.Expect(len(way.reads(source.Name))).To(BeNumerically(">", touched)) })
	g.Expect(controller.state(source).Reason).To(Equal(crd.ReasonInSync))
	witness.stop()
	g.Expect(goroutines(t)).To(BeZero())
}

// goroutines counts the goroutines that run code of a controller.
func goroutines(t *testing.T) int {
	t.Helper()
	var text strings.Builder
	if err := pprof.Lookup("goroutine").WriteTo(&text, 2); err != nil {
		t.Fatal(err)
	}
	return strings.Count(text.String(), "crd.(*Controller).")
}

// waitForProbe returns after a few more probes of the target.
func waitForProbe(t *testing.T, way *testTarget) {
	t.Helper()
	before := way.probes()
	suite.Eventually(t, func(g Gomega) {
		way.Health.ProbeNow()
		g.Expect(way.probes()).To(BeNumerically(">", before+3))
	})
}

// Discovery results from the moment after a CRD was deleted are checked again soon. CRDs of other tests would invalidate the
// connection's discovery cache anyway, so this test runs before them.
func TestControllerRechecksDiscovery(t *testing.T) {
	g, ctx, way := NewWithT(t), t.Context(), newConnectedTarget(t)
	source := unique("v1")
	controller := startController(t, way)
	controller.SetInstallations([]crd.Installation{installationOf(source)})
	controller.waitForReason(t, source, crd.ReasonInSync)
	before := getCRD(ctx, g, t, source.Name)
	var asked atomic.Int64
	way.interfere.Store(new(func(writer http.ResponseWriter, request *http.Request) bool {
		if !strings.HasSuffix(request.URL.Path, "/apis/"+group+"/v1") || asked.Add(1) > 2 {
			return false
		}
		writer.Header().Set("Content-Type", "application/json")
		_, _ = writer.Write([]byte(`{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "` + group + `/v1", "resources": [
			{"name": "` + source.Spec.Names.Plural + `", "kind": "` + source.Spec.Names.Kind + `", "namespaced": true, "verbs": ["list"]}]}`))
		return true
	}))
	deleteCRD(t, source.Name)
	controller.waitForReason(t, source, crd.ReasonNotNeeded)
	controller.waitForReason(t, source, crd.ReasonInSync)
	g.Expect(getCRD(ctx, g, t, source.Name).UID).NotTo(Equal(before.UID))
}

// A change between the first read and the start of the watch is not missed.
func TestControllerRechecksOnceTheWatchHasSynced(t *testing.T) {
	t.Parallel()
	g, ctx, way := NewWithT(t), t.Context(), newConnectedTarget(t)
	source := unique("v1")
	createCRD(t, source)
	let := make(chan struct{})
	release := sync.OnceFunc(func() { close(let) })
	defer release()
	way.interfere.Store(new(func(_ http.ResponseWriter, request *http.Request) bool {
		if strings.HasSuffix(request.URL.Path, "/customresourcedefinitions") {
			<-let
		}
		return false
	}))
	controller := startController(t, way)
	controller.SetInstallations([]crd.Installation{installationOf(source)})
	suite.Eventually(t, func(g Gomega) { g.Expect(controller.state(source).Reason).NotTo(Equal(crd.ReasonPending)) })
	deleteCRD(t, source.Name)
	suite.Eventually(t, func(g Gomega) {
		_, err := administrator(t).Resource(definitions).Get(ctx, source.Name, metav1.GetOptions{})
		g.Expect(err).To(HaveOccurred())
	})
	g.Expect(way.writes(source.Name)).To(BeEmpty())
	release()
	g.Expect(controller.waitForReason(t, source, crd.ReasonInSync).Installed).To(BeTrue())
}

// A few CRDs are reconciled concurrently. So one slow response causes no delay, and many CRDs do not overload
// the target.
func TestControllerBoundsConcurrency(t *testing.T) {
	t.Parallel()
	const limit = 4
	g, way := NewWithT(t), newConnectedTarget(t)
	var all []crd.Installation
	names := map[string]bool{}
	for range 3 * limit {
		source := unique("v1")
		createCRD(t, source)
		names["/"+source.Name], all = true, append(all, installationOf(source))
	}
	var now, most atomic.Int64
	let := make(chan struct{})
	release := sync.OnceFunc(func() { close(let) })
	defer release()
	way.interfere.Store(new(func(_ http.ResponseWriter, request *http.Request) bool {
		if names[request.URL.Path[strings.LastIndex(request.URL.Path, "/"):]] {
			together := now.Add(1)
			defer now.Add(-1)
			for seen := most.Load(); together > seen && !most.CompareAndSwap(seen, together); seen = most.Load() {
			}
			<-let
		}
		return false
	}))
	controller := startController(t, way)
	controller.SetInstallations(all)
	suite.Eventually(t, func(g Gomega) { g.Expect(now.Load()).To(BeEquivalentTo(limit)) })
	// A further request would have arrived after some more probes.
	waitForProbe(t, way)
	release()
	suite.Eventually(t, func(g Gomega) {
		for _, state := range controller.States() {
			g.Expect(state.Reason).To(Equal(crd.ReasonNotOwned))
		}
	})
	g.Expect(most.Load()).To(BeEquivalentTo(limit))
}

// The controller sends nothing while the target is down, and tries everything when it is up again.
func TestControllerWaitsForTheTarget(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	// With this clock the target is probed only when a caller requests a probe.
	way := newTestTarget(t, clocktesting.NewFakeClock(time.Now()))
	source, second := unique("v1"), unique("v1")
	var away atomic.Bool
	way.interfere.Store(new(func(http.ResponseWriter, *http.Request) bool {
		if away.Load() {
			panic(http.ErrAbortHandler)
		}
		return false
	}))
	comesBack := func() {
		away.Store(false)
		suite.Eventually(t, func(g Gomega) {
			way.Health.ProbeNow()
			g.Expect(way.Health.IsUp()).To(BeTrue(), "one probe is not enough")
		})
	}
	away.Store(true)
	suite.Eventually(t, func(g Gomega) {
		way.Health.ProbeNow()
		g.Expect(way.Health.IsUp()).To(BeFalse())
	})
	controller := startController(t, way)
	controller.SetInstallations([]crd.Installation{installationOf(source), installationOf(second)})
	waitForProbe(t, way)
	g.Expect(controller.state(source).Reason).To(Equal(crd.ReasonPending))
	g.Expect(way.reads(source.Name)).To(BeEmpty())
	g.Expect(way.writes(source.Name)).To(BeEmpty())
	comesBack()
	controller.waitForReason(t, source, crd.ReasonInSync)
	controller.waitForReason(t, second, crd.ReasonInSync)

	// The target goes down when the controller must write.
	changed := source.DeepCopy()
	changed.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties = nil
	away.Store(true)
	controller.SetInstallations([]crd.Installation{installationOf(changed), installationOf(second)})
	state := controller.waitForReason(t, source, crd.ReasonTargetUnreachable)
	g.Expect(state.Ready && state.Installed).To(BeTrue(), "what was known is not known to have changed")
	suite.Eventually(t, func(g Gomega) { g.Expect(way.Health.IsUp()).To(BeFalse(), "the controller makes the connection probe") })
	comesBack()
	controller.waitForReason(t, source, crd.ReasonInSync)
	g.Expect(getCRD(t.Context(), g, t, source.Name).Spec.Versions[0].Schema.OpenAPIV3Schema.Properties).To(BeEmpty())
	// A reconcile of the other CRD may have been running, or due, when the target went down.
	controller.waitForReason(t, second, crd.ReasonInSync)
}
