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
)

var _ = Describe("drift that is only reported", Label("placement"), func() {
	It("is seen by the team and the operator, and taken back by the next change", func(ctx SpecContext) {
		const ns = "drifted"
		inventory, workload := newInventory(ctx, ns), newWorkload(ctx, ns+"-workload")
		Expect(inventory.Register(ctx, "florin", kubeconfigOf("florin"), map[string]string{"env": "prod"})).To(Succeed())
		apply(ctx, inventory.Config, location("prod", "prod", workload.Path))
		apply(ctx, workload.Config, documents(namespace(ns), configMap(ns, "settings", "ours")))
		patch(ctx, workload.Config, configMaps, ns, "settings", `{"metadata": {"annotations": {"synchub.dev/drift": "Report"}}}`)
		eventuallyPlaced(ctx, workload, placementOn("shop", ns))
		entry := func() string { return value(ctx, target("florin"), configMaps, ns, "settings", "data", "entry") }
		Eventually(entry).WithContext(ctx).Should(Equal("ours"))

		By("the status of the EdgePlacement has the field with both values, and the SyncTarget has none")
		patch(ctx, target("florin"), configMaps, ns, "settings", `{"data": {"entry": "theirs"}}`)
		Eventually(readerOf(ctx, workload.Config)(edgePlacements, "", "shop", "status", "failures")).WithContext(ctx).
			Should(And(ContainSubstring("Drifted"), ContainSubstring(".data.entry"), ContainSubstring("ours"), ContainSubstring("theirs")))
		Eventually(readerOf(ctx, inventory.Config)(syncTargets, "", "florin", "status", "failures")).WithContext(ctx).
			Should(And(ContainSubstring("Drifted"), ContainSubstring(".data.entry"), Not(ContainSubstring("theirs"))))
		Expect(entry()).To(Equal("theirs"))

		By("kubectl synchub lists it in both workspaces, and explains it")
		listed := And(ContainSubstring("configmaps "+ns+"/settings"), ContainSubstring("florin"), ContainSubstring(".data.entry"), ContainSubstring(`"ours"`), ContainSubstring(`"theirs"`))
		Expect(runPlugin(ctx, workload.Path, "drift", "--placement", "shop")).To(listed)
		Eventually(func() string { return runPlugin(ctx, inventory.Path, "drift") }).WithContext(ctx).Should(listed)
		Expect(runPlugin(ctx, workload.Path, "explain", "florin", "configmaps", ns+"/settings")).To(ContainSubstring("Drifted"))
		Expect(entry()).To(Equal("theirs"))

		By("a flag that has no effect there is refused")
		refused := userOf(ctx, inventory).runs(ctx, "synchub", "drift", "--workspace", workload.Path, "-l", "env=prod")
		Expect(refused.err).To(HaveOccurred())
		Expect(refused.errs).To(ContainSubstring("--selector is for inventory workspaces"))

		By("the next change of the object takes the field back")
		patch(ctx, workload.Config, configMaps, ns, "settings", `{"data": {"entry": "new"}}`)
		Eventually(entry).WithContext(ctx).Should(Equal("new"))
		Eventually(readyStatus).WithContext(ctx).WithArguments(workload, "shop").Should(Equal("True"))
		Expect(runPlugin(ctx, workload.Path, "drift")).To(ContainSubstring("Nothing differs"))
	}, NodeTimeout(4*time.Minute))
})
