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

package e2e

import (
	"context"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/synchub-dev/synchub/test/framework/installation"
)

// These specs prove the first rule of the design: one write per change, nothing at rest. The hub counts its own requests in
// the HTTP transport; see provider/metrics/requestmetrics. The target has no controllers, so only the test makes changes.
var _ = Describe("rule 1: requests per change", func() {
	It("makes one write per change, on both sides", SpecPriority(1), func(ctx SpecContext) {
		const ns = "counted"
		inventory := newInventory(ctx, ns)
		mailbox := register(ctx, inventory, "quiet", "hosting")
		apply(ctx, mailbox, documents(namespace(ns), everythingIn(ns)))
		hosting := target("hosting")

		counted := counting(ctx)
		entry := func(want string) func() {
			return func() {
				GinkgoHelper()
				Eventually(value).WithContext(ctx).WithArguments(hosting, configMaps, ns, "settings", "data", "entry").Should(Equal(want))
			}
		}
		counted("a create in a missing namespace", func() { apply(ctx, mailbox, configMap(ns, "settings", "green")) }, entry("green"), map[string]float64{
			"target object apply configmaps": 1, // refused: the namespace is missing
			"target extra create namespaces": 1,
			"target extra apply configmaps":  1,
		})
		counted("a create", func() { apply(ctx, mailbox, configMap(ns, "other", "x")) },
			func() { eventuallyExists(ctx, hosting, configMaps, ns, "other") },
			map[string]float64{"target object apply configmaps": 1})
		counted("an update", func() { patch(ctx, mailbox, configMaps, ns, "settings", `{"data": {"entry": "blue"}}`) }, entry("blue"),
			map[string]float64{"target object apply configmaps": 1})
		counted("an update that changes nothing down there",
			func() {
				patch(ctx, mailbox, configMaps, ns, "settings", `{"metadata": {"annotations": {"kcp.io/note": "x"}}}`)
			}, func() {}, map[string]float64{})
		counted("a repair", func() { patch(ctx, hosting, configMaps, ns, "settings", `{"data": {"entry": "red"}}`) }, entry("blue"),
			map[string]float64{"target object apply configmaps": 1})
		counted("a create of a Deployment", func() { apply(ctx, mailbox, deployment(ns, "web")) },
			func() { eventuallyExists(ctx, hosting, deployments, ns, "web") },
			map[string]float64{"target object apply deployments": 1})
		counted("a status", func() { patch(ctx, hosting, deployments, ns, "web", `{"status": {"replicas": 2}}`, "status") },
			func() {
				Eventually(value).WithContext(ctx).WithArguments(mailbox, deployments, ns, "web", "status", "replicas").Should(Equal("2"))
			},
			map[string]float64{"mailbox object patch deployments/status": 1})
		counted("the first deletion, which takes a proof and a list", func() { remove(ctx, mailbox, configMaps, ns, "other") },
			func() { eventuallyGone(ctx, hosting, configMaps, ns, "other") },
			map[string]float64{
				"target object delete configmaps":   1,
				"mailbox extra get apibindings":     2, // the list must have been made under an unchanged binding
				"mailbox extra get logicalclusters": 2,
				"mailbox extra list configmaps":     2, // one at the version where the object was last seen: docs/design/0033-restored-kcp.md
			})
		counted("a deletion", func() { remove(ctx, mailbox, configMaps, ns, "settings") },
			func() { eventuallyGone(ctx, hosting, configMaps, ns, "settings") },
			map[string]float64{
				"target object delete configmaps":   1,
				"mailbox extra get apibindings":     1,
				"mailbox extra get logicalclusters": 1,
			})
	}, NodeTimeout(4*time.Minute))
})

// counting returns a function that makes a change, waits until the change has arrived, and compares the requests.
func counting(ctx context.Context) func(what string, act, arrived func(), expected map[string]float64) {
	GinkgoHelper()
	quiet(ctx)
	return func(what string, act, arrived func(), expected map[string]float64) {
		GinkgoHelper()
		By(what)
		before := requestCounts(ctx)
		act()
		arrived()
		quiet(ctx)
		Expect(difference(before, requestCounts(ctx))).To(Equal(expected), what)
	}
}

// expectIdleStart starts a hub. It expects the hub to reconcile the given number of objects of a SyncTarget without a
// request for any, and to read nothing of the target but lists.
func expectIdleStart(ctx context.Context, inventory *installation.Inventory, name string, objects int) {
	GinkgoHelper()
	startHub(ctx)
	syncTarget, err := inventory.SyncTarget(ctx, name)
	Expect(err).NotTo(HaveOccurred())
	Eventually(looked).WithContext(ctx).WithArguments(string(syncTarget.UID)).Should(BeNumerically(">=", objects))
	quiet(ctx)
	Expect(requestCounts(ctx)).To(BeEmpty(), "no object and no extra request across a restart with nothing changed")
	Expect(readsOfTargets(ctx)).To(BeEmpty(), "which cluster it is was known before")
}

// readsOfTargets returns the hub's reads from targets by kind, except lists, watches, discovery, health probes, and reads
// of the CRDs that the hub installs.
func readsOfTargets(ctx context.Context) map[string]float64 {
	GinkgoHelper()
	requests, err := hub.Requests(ctx)
	Expect(err).NotTo(HaveOccurred())
	reads := map[string]float64{}
	for kind, count := range requests {
		if kind.Destination == "target" && kind.Verb == "get" && kind.Resource != "none" && kind.Resource != "customresourcedefinitions" {
			reads[kind.String()] += count
		}
	}
	return reads
}

// boundedByTime are the writes whose rate the hub limits, however much changes.
var boundedByTime = []string{"syncerconfigs/status", "edgeplacements/status", "locations/status"}

// requestCounts returns the hub's requests for changes, by destination, class, verb and resource.
func requestCounts(ctx context.Context) map[string]float64 {
	GinkgoHelper()
	requests, err := hub.Requests(ctx)
	Expect(err).NotTo(HaveOccurred())
	return installation.Caused(requests, boundedByTime...)
}

func difference(before, after map[string]float64) map[string]float64 {
	changed := map[string]float64{}
	for key, count := range after {
		if count != before[key] {
			changed[key] = count - before[key]
		}
	}
	return changed
}

// quiet returns when the hub has made no request for a change for a while.
func quiet(ctx context.Context) {
	GinkgoHelper()
	ctx, cancel := context.WithTimeout(ctx, 90*time.Second)
	defer cancel()
	Expect(hub.WaitIdle(ctx, time.Second, boundedByTime...)).To(Succeed())
}

// settled returns when the hub has made no request for a change, nor written a status whose rate it limits, for longer than it puts
// off such a status.
func settled(ctx context.Context) {
	GinkgoHelper()
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	Expect(hub.WaitIdle(ctx, 7*time.Second)).To(Succeed())
}

// looked returns how many objects of a SyncTarget the hub has reconciled.
func looked(ctx context.Context, syncTarget string) (total float64) {
	samples, err := hub.Metrics(ctx)
	if err != nil {
		return 0
	}
	for sample, count := range samples {
		if strings.HasPrefix(sample, "synchub_sync_actions_total{") && strings.Contains(sample, syncTarget) {
			total += count
		}
	}
	return total
}

// seriesOf returns the number of the hub's metric series for a SyncTarget.
func seriesOf(ctx context.Context, syncTarget string) (series int) {
	samples, err := hub.Metrics(ctx)
	if err != nil {
		return -1
	}
	for sample := range samples {
		if strings.Contains(sample, syncTarget) {
			series++
		}
	}
	return series
}

// goroutines returns the number of the hub's goroutines.
func goroutines(ctx context.Context) float64 {
	samples, err := hub.Metrics(ctx)
	if err != nil {
		return -1
	}
	return samples["go_goroutines"]
}
