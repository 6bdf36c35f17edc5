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
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/test/framework"
)

var _ = Describe("the administrator of an inventory", Label("placement"), func() {
	It("allows a Location to one workspace after another", thorough, func(ctx SpecContext) {
		const ns = "placement-verb"
		inventory := newInventory(ctx, ns)
		admin := userOf(ctx, inventory)
		admin.succeeds(ctx, "synchub", "register", ns, "--target-kubeconfig", clusters["florin"].Kubeconfig)
		eventuallyExists(ctx, inventory.Config, locations, "", "default")
		var teams []string
		for _, name := range []string{ns + "-shop", ns + "-annex"} {
			_, err := framework.CreateWorkspace(ctx, suite.KCP.Config, "root", name, "universal")
			Expect(err).NotTo(HaveOccurred())
			teams = append(teams, "root:"+name)
		}
		bind := func(team string) output {
			kubeconfig, err := suite.KCP.WorkspaceKubeconfig(team)
			Expect(err).NotTo(HaveOccurred())
			return admin.runs(ctx, "synchub", "bind", "compute", inventory.Path, "--provider-workspace", synchub.Workspace, "--kubeconfig", kubeconfig)
		}

		By("a workspace binds compute before it may use the Location")
		got := bind(teams[0])
		Expect(got.err).To(HaveOccurred())
		Expect(got.errs).To(And(ContainSubstring("also selects the objects in the namespace default"), ContainSubstring("kubectl synchub allow LOCATION --workspace "+teams[0])))

		By("the Location is allowed, first to one workspace, then to another")
		got = admin.runs(ctx, "synchub", "allow", "default", "--workspace", teams[0])
		Expect(got.err).To(HaveOccurred())
		Expect(got.errs).To(And(ContainSubstring("0 objects of "+teams[0]+" come to "+ns+" (EdgePlacement root."+ns+")."), ContainSubstring("nothing was changed: give --yes to confirm")))
		for _, team := range teams {
			admin.succeeds(ctx, "synchub", "allow", "default", "--workspace", team, "--yes")
			Expect(bind(team).err).NotTo(HaveOccurred())
		}
		Expect(value(ctx, inventory.Config, locations, "", "default", "spec", "availableTo", "workspaces")).To(Equal("[" + strings.Join(teams, " ") + "]"))
	}, NodeTimeout(4*time.Minute))

	It("has time to undo a change that would take many objects from clusters", thorough, func(ctx SpecContext) {
		const ns, grace = "placement-grace", 25 * time.Second
		inventory, workload := newInventory(ctx, ns), newWorkload(ctx, ns+"-workload")
		names := []string{"florin", "guilder"}
		for _, name := range names {
			Expect(inventory.Register(ctx, name, kubeconfigOf(name), map[string]string{"env": "prod"})).To(Succeed())
		}
		apply(ctx, inventory.Config, location("prod", "prod", workload.Path))
		eventuallyPlaced(ctx, workload, documents(namespace(ns), configMap(ns, "prices", "1"), configMap(ns, "goods", "1"), configMap(ns, "hours", "1"), placementOn("shop", ns)))
		Eventually(readyStatus).WithContext(ctx).WithArguments(workload, "shop").Should(Equal("True"))
		restart := func(ctx SpecContext, args ...string) {
			Expect(hub.Kill9()).To(Succeed())
			startHub(ctx, args...)
		}
		restart(ctx, "--withdrawal-grace="+grace.String())
		DeferCleanup(func(ctx SpecContext) { restart(ctx) }, NodeTimeout(2*time.Minute))
		allow := func(more ...string) string {
			return runPlugin(ctx, inventory.Path, append([]string{"allow", "prod", "--workspace", workload.Path, "--yes"}, more...)...)
		}
		pending := func() []string {
			ofLocation, err := framework.Condition(ctx, inventory.Config, locations, "", "prod", edgev2alpha1.ConditionWithdrawalPending)
			Expect(err).NotTo(HaveOccurred())
			return []string{placementCondition(ctx, workload, "shop", edgev2alpha1.ConditionWithdrawalPending, "status"), ofLocation}
		}
		placed := func() (copies []map[string]string) {
			for _, name := range names {
				copies = append(copies, identities(ctx, target(name), configMaps, ns, ""))
			}
			return copies
		}
		before := placed()

		By("the change is undone: nothing was withdrawn")
		Expect(allow("--remove")).To(ContainSubstring("3 objects of " + workload.Path + " leave florin and guilder (EdgePlacement shop)."))
		Eventually(pending).WithContext(ctx).Should(Equal([]string{"True", "True"}))
		Expect(placementCondition(ctx, workload, "shop", edgev2alpha1.ConditionWithdrawalPending, "message")).To(ContainSubstring("withdraws 6 copies at "))
		Expect(allow()).To(ContainSubstring("3 objects of " + workload.Path + " come to florin and guilder (EdgePlacement shop)."))
		Eventually(pending).WithContext(ctx).Should(Equal([]string{"", ""}))
		Eventually(readyStatus).WithContext(ctx).WithArguments(workload, "shop").Should(Equal("True"))
		Expect(placed()).To(Equal(before))

		By("a restart during the wait does not shorten it")
		patch(ctx, inventory.Config, locations, "", "prod", `{"metadata": {"labels": {"env": "test"}}}`)
		Eventually(pending).WithContext(ctx).Should(Equal([]string{"True", "True"}))
		restart(ctx, "--withdrawal-grace="+grace.String())
		started := time.Now()
		Eventually(pending).WithContext(ctx).Should(Equal([]string{"True", "True"}))

		By("what the team asks for does not wait")
		remove(ctx, workload.Config, configMaps, ns, "hours")
		for _, name := range names {
			eventuallyGone(ctx, target(name), configMaps, ns, "hours")
		}
		Expect(time.Since(started)).To(BeNumerically("<", grace))
		apply(ctx, workload.Config, configMap(ns, "new", "1"))
		for _, name := range names {
			Expect(framework.Exists(ctx, target(name), configMaps, ns, "prices")).To(BeTrue())
		}

		By("the copies go after the wait")
		for _, name := range names {
			eventuallyGone(ctx, target(name), configMaps, ns, "prices")
			Expect(framework.Exists(ctx, target(name), configMaps, ns, "new")).To(BeFalse(), "nothing new comes during the wait")
		}
		Expect(time.Since(started)).To(BeNumerically(">", grace-time.Second))
		Eventually(pending).WithContext(ctx).Should(Equal([]string{"", ""}))
		warnings, err := framework.List(ctx, inventory.Config, events, "default", "")
		Expect(err).NotTo(HaveOccurred())
		Expect(warnings).To(ContainElement(HaveField("Object", HaveKeyWithValue("reason", edgev2alpha1.ConditionWithdrawalPending))))

		By("a team that narrows its selector does not wait")
		patch(ctx, inventory.Config, locations, "", "prod", `{"metadata": {"labels": {"env": "prod"}}}`)
		for _, name := range names {
			eventuallyExists(ctx, target(name), configMaps, ns, "prices")
		}
		Eventually(readyStatus).WithContext(ctx).WithArguments(workload, "shop").Should(Equal("True"))
		narrowed := time.Now()
		patch(ctx, workload.Config, edgePlacements, "", "shop", `{"spec": {"locationSelectors": [{"matchLabels": {"env": "none"}}]}}`)
		for _, name := range names {
			eventuallyGone(ctx, target(name), configMaps, ns, "prices")
		}
		Expect(time.Since(narrowed)).To(BeNumerically("<", grace))
	}, NodeTimeout(6*time.Minute))
})
