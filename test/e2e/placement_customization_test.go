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
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/framework/installation"
)

var customizers = schema.GroupVersionResource{Group: "edge.kubestellar.io", Version: "v2alpha1", Resource: "customizers"}

var _ = Describe("the placement of customized objects", func() {
	It("gives each cluster its own values", SpecPriority(1), func(ctx SpecContext) {
		const ns = "placement-values"
		inventory, workload := newInventory(ctx, ns), newWorkload(ctx, ns+"-workload")
		for name, city := range map[string]string{"florin": "Florence", "guilder": "Gouda"} {
			Expect(inventory.Register(ctx, name, kubeconfigOf(name), map[string]string{"env": "prod"})).To(Succeed())
			patch(ctx, inventory.Config, installation.SyncTargets, "", name, `{"metadata": {"annotations": {"shop.example/city": "`+city+`"}}}`)
		}
		apply(ctx, inventory.Config, location("prod", "prod", workload.Path))
		patch(ctx, inventory.Config, locations, "", "prod", `{"metadata": {"annotations": {"shop.example/currency": "EUR"}}}`)
		entry := func(cluster, name string) func() string {
			return func() string { return value(ctx, target(cluster), configMaps, ns, name, "data", "entry") }
		}
		failures := func() string { return value(ctx, workload.Config, edgePlacements, "", "shop", "status", "failures") }

		By("parameters in an object")
		eventuallyPlaced(ctx, workload, documents(namespace(ns), placementOn("shop", ns), `
apiVersion: v1
kind: ConfigMap
metadata:
  name: sign
  namespace: `+ns+`
  annotations: {edge.kubestellar.io/expand-parameters: "true"}
data: {entry: "%(shop.example/city), in %(shop.example/currency), 100%% %(env)"}
`))
		Eventually(entry("florin", "sign")).WithContext(ctx).Should(Equal("Florence, in EUR, 100% prod"))
		Eventually(entry("guilder", "sign")).WithContext(ctx).Should(Equal("Gouda, in EUR, 100% prod"))
		Expect(value(ctx, target("florin"), configMaps, ns, "sign", "metadata", "annotations")).NotTo(ContainSubstring("expand-parameters"))

		By("a missing Customizer is created")
		apply(ctx, workload.Config, `
apiVersion: v1
kind: ConfigMap
metadata:
  name: prices
  namespace: `+ns+`
  annotations: {edge.kubestellar.io/customizer: till}
data: {entry: none}
`)
		Eventually(failures).WithContext(ctx).Should(And(ContainSubstring("CustomizerNotFound"), ContainSubstring(ns+"/till")))
		customizer := func(text string) string {
			return `
apiVersion: edge.kubestellar.io/v2alpha1
kind: Customizer
metadata:
  name: till
  namespace: ` + ns + `
  annotations: {edge.kubestellar.io/expand-parameters: "true"}
replacements:
- {path: "$.data.entry", value: '"` + text + `"'}
- {path: "$.metadata.annotations['synchub.dev/status-by']", value: '"nobody may set this"'}
- {path: "$.metadata.annotations['shop.example/note']", value: '"anybody may set this"'}
`
		}
		apply(ctx, workload.Config, customizer("prices of %(shop.example/city)"))
		Eventually(entry("florin", "prices")).WithContext(ctx).Should(Equal("prices of Florence"))
		Eventually(entry("guilder", "prices")).WithContext(ctx).Should(Equal("prices of Gouda"))
		Expect(value(ctx, target("guilder"), configMaps, ns, "prices", "metadata", "annotations")).To(And(ContainSubstring("anybody"), Not(ContainSubstring("nobody"))))
		Eventually(failures).WithContext(ctx).Should(Equal("[]"))

		By("a change is written once, and only to the affected clusters")
		counted := counting(ctx)
		counted("a value of one cluster", func() {
			patch(ctx, inventory.Config, installation.SyncTargets, "", "florin", `{"metadata": {"annotations": {"shop.example/city": "Firenze"}}}`)
		}, func() {
			GinkgoHelper()
			Eventually(entry("florin", "prices")).WithContext(ctx).Should(Equal("prices of Firenze"))
			Eventually(entry("florin", "sign")).WithContext(ctx).Should(Equal("Firenze, in EUR, 100% prod"))
		}, map[string]float64{"mailbox object update configmaps": 2, "target object apply configmaps": 2})
		counted("a Customizer", func() { apply(ctx, workload.Config, customizer("new prices of %(shop.example/city)")) }, func() {
			GinkgoHelper()
			Eventually(entry("florin", "prices")).WithContext(ctx).Should(Equal("new prices of Firenze"))
			Eventually(entry("guilder", "prices")).WithContext(ctx).Should(Equal("new prices of Gouda"))
		}, map[string]float64{"mailbox object update configmaps": 2, "target object apply configmaps": 2})

		By("a parameter that one cluster lacks fails there, and nothing is withdrawn")
		patch(ctx, inventory.Config, installation.SyncTargets, "", "guilder", `{"metadata": {"annotations": {"shop.example/city": null}}}`)
		Eventually(failures).WithContext(ctx).Should(And(ContainSubstring("UnknownParameter"), ContainSubstring("shop.example/city"), ContainSubstring("guilder"), Not(ContainSubstring("florin"))))
		remove(ctx, workload.Config, customizers, ns, "till")
		Eventually(failures).WithContext(ctx).Should(And(ContainSubstring("CustomizerNotFound"), ContainSubstring("florin")))
		quiet(ctx)
		Expect(entry("florin", "prices")()).To(Equal("new prices of Firenze"))
		Expect(entry("guilder", "prices")()).To(Equal("new prices of Gouda"))

		By("nothing is written after a restart")
		apply(ctx, workload.Config, customizer("new prices of %(shop.example/city)"))
		patch(ctx, inventory.Config, installation.SyncTargets, "", "guilder", `{"metadata": {"annotations": {"shop.example/city": "Gouda"}}}`)
		Eventually(failures).WithContext(ctx).Should(Equal("[]"))
		quiet(ctx)
		Expect(hub.Kill9()).To(Succeed())
		startHub(ctx)
		Eventually(placedPairs).WithContext(ctx).Should(BeNumerically(">=", 4))
		quiet(ctx)
		Expect(requestCounts(ctx)).To(BeEmpty())

		By("a deleted placement withdraws the copies")
		remove(ctx, workload.Config, edgePlacements, "", "shop")
		eventuallyGone(ctx, target("florin"), configMaps, ns, "prices")
		eventuallyGone(ctx, target("guilder"), configMaps, ns, "sign")
		Expect(framework.Exists(ctx, workload.Config, configMaps, ns, "prices")).To(BeTrue())
	}, NodeTimeout(5*time.Minute))
})
