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

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/test/framework"
)

var podDisruptionBudgets = schema.GroupVersionResource{Group: "policy", Version: "v1", Resource: "poddisruptionbudgets"}

var _ = Describe("a cluster with namespaces of each workspace", thorough, Label("placement"), func() {
	It("keeps copies, and what came up, while a change of the inventory can be undone", func(ctx SpecContext) {
		const ns, grace = "tenancy-grace", 20 * time.Second
		inventory, workload := newInventory(ctx, ns), newWorkload(ctx, ns+"-workload")
		Expect(inventory.Register(ctx, "florin", kubeconfigOf("florin"), map[string]string{"env": "prod"})).To(Succeed())
		patch(ctx, inventory.Config, syncTargets, "", "florin", perWorkspace)
		const allowed = `{"spec": {"availableTo": {"upsync": true, "workspaces": ["root:` + ns + `-workload"]}}}`
		apply(ctx, inventory.Config, location("prod", "prod", workload.Path))
		patch(ctx, inventory.Config, locations, "", "prod", allowed)
		theirs := ownNamespace(ctx, workload, ns)
		eventuallyPlaced(ctx, workload, documents(namespace(ns), configMap(ns, "prices", "1"), `
apiVersion: edge.kubestellar.io/v2alpha1
kind: EdgePlacement
metadata: {name: shop}
spec:
  locationSelectors: [{matchLabels: {env: prod}}]
  downsync: [{namespaces: [`+ns+`]}]
  upsync: [{apiGroup: "", resources: [configmaps], namespaces: [`+theirs+`], names: [report]}]
`))
		eventuallyExists(ctx, target("florin"), configMaps, theirs, "prices")
		apply(ctx, target("florin"), configMap(theirs, "report", "from the cluster"))
		mailbox := mailboxOf(ctx, inventory, "florin")
		eventuallyExists(ctx, mailbox, configMaps, theirs, "report")
		restart := func(ctx SpecContext, args ...string) {
			Expect(hub.Kill9()).To(Succeed())
			startHub(ctx, args...)
		}
		restart(ctx, "--withdrawal-grace="+grace.String())
		DeferCleanup(func(ctx SpecContext) { restart(ctx) }, NodeTimeout(2*time.Minute))
		Eventually(readyStatus).WithContext(ctx).WithArguments(workload, "shop").Should(Equal("True"))
		pending := func() string {
			return placementCondition(ctx, workload, "shop", edgev2alpha1.ConditionWithdrawalPending, "status")
		}
		all := func() []map[string]string {
			return []map[string]string{
				identities(ctx, target("florin"), configMaps, theirs, ""), identities(ctx, mailbox, configMaps, theirs, ""), identities(ctx, target("florin"), namespaces, "", theirs),
			}
		}
		before := all()

		By("the change is undone: nothing was withdrawn, in either direction")
		patch(ctx, inventory.Config, locations, "", "prod", `{"spec": {"availableTo": {"workspaces": []}}}`)
		Eventually(pending).WithContext(ctx).Should(Equal("True"))
		quiet(ctx)
		Expect(all()).To(Equal(before))
		patch(ctx, inventory.Config, locations, "", "prod", allowed)
		Eventually(pending).WithContext(ctx).Should(BeEmpty())
		Eventually(readyStatus).WithContext(ctx).WithArguments(workload, "shop").Should(Equal("True"))
		Expect(all()).To(Equal(before))

		By("after the wait the copies go from the cluster, and what came up goes from the mailbox")
		patch(ctx, inventory.Config, locations, "", "prod", `{"spec": {"availableTo": {"workspaces": []}}}`)
		eventuallyGone(ctx, target("florin"), configMaps, theirs, "prices")
		eventuallyGone(ctx, mailbox, configMaps, theirs, "report")
		Expect(framework.Exists(ctx, target("florin"), configMaps, theirs, "report")).To(BeTrue())
		remove(ctx, target("florin"), namespaces, "", theirs)
	}, NodeTimeout(5*time.Minute))

	It("gets all but the objects whose API it lacks, and their placement says so", func(ctx SpecContext) {
		const ns = "tenancy-lacks"
		cluster := newCluster(ctx, ns)
		Expect(cluster.RestartWith(ctx, "--runtime-config=policy/v1=false")).To(Succeed())
		inventory, workload := newInventory(ctx, ns), newWorkload(ctx, ns+"-workload")
		Expect(inventory.Register(ctx, ns, kubeconfigOf(ns), map[string]string{"env": "prod"})).To(Succeed())
		patch(ctx, inventory.Config, syncTargets, "", ns, perWorkspace)
		apply(ctx, inventory.Config, location("prod", "prod", workload.Path))
		eventuallyPlaced(ctx, workload, documents(namespace(ns), `
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web, namespace: `+ns+`}
spec: {maxUnavailable: 1, selector: {matchLabels: {app: web}}}
`, placementOn("shop", ns)))
		Eventually(value).WithArguments(ctx, workload.Config, edgePlacements, "", "shop", "status", "failures").Should(
			And(ContainSubstring("resource:poddisruptionbudgets"), ContainSubstring("reason:"+plan.ReasonNotServed), ContainSubstring("syncTarget:"+ns)))
		Eventually(placementCondition).WithContext(ctx).WithArguments(workload, "shop", edgev2alpha1.ConditionReady, "message").Should(ContainSubstring("poddisruptionbudgets.policy"))

		By("other objects are not delayed")
		theirs := ownNamespace(ctx, workload, ns)
		apply(ctx, workload.Config, documents(configMap(ns, "prices", "1"), deployment(ns, "web")))
		eventuallyExists(ctx, cluster.Config, configMaps, theirs, "prices")
		eventuallyExists(ctx, cluster.Config, deployments, theirs, "web")
		Expect(framework.Condition(ctx, inventory.Config, syncTargets, "", ns, edgev2alpha1.ConditionReady)).To(Equal("True"))

		By("once the cluster serves the API, it gets the object")
		Expect(cluster.RestartWith(ctx)).To(Succeed())
		Eventually(value).WithArguments(ctx, workload.Config, edgePlacements, "", "shop", "status", "failures").Should(Equal("[]"))
		eventuallyExists(ctx, cluster.Config, podDisruptionBudgets, theirs, "web")
	}, NodeTimeout(5*time.Minute))
})
