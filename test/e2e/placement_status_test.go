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
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/placement"
	"github.com/synchub-dev/synchub/controllers/placement/rules"
	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/framework/installation"
)

// till returns a Deployment of two replicas that may run on some nodes, and has five seconds for each change.
func till(namespace, nodes string) string {
	return fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: till, namespace: %s}
spec:
  replicas: 2
  progressDeadlineSeconds: 5
  selector: {matchLabels: {app: till}}
  template:
    metadata: {labels: {app: till}}
    spec:
      nodeSelector: {%s}
      containers: [{name: till, image: example.org/till}]
`, namespace, nodes)
}

var _ = Describe("the status of a placement", Label("placement"), func() {
	It("reports the sync status and the health of the objects on each cluster", thorough, func(ctx SpecContext) {
		const ns = "placement-health"
		inventory, workload := newInventory(ctx, ns), newWorkload(ctx, ns+"-workload")
		for _, name := range []string{"florin", "guilder"} {
			Expect(inventory.Register(ctx, name, kubeconfigOf(name), map[string]string{"env": "prod"})).To(Succeed())
		}
		apply(ctx, inventory.Config, location("prod", "prod", workload.Path))
		counts := func(fields ...string) func() string {
			return func() (all string) {
				for _, field := range fields {
					all += value(ctx, workload.Config, edgePlacements, "", "shop", "status", field) + " "
				}
				return all
			}
		}

		By("objects run on both clusters")
		eventuallyPlaced(ctx, workload, documents(namespace(ns), configMap(ns, "prices", "1"), till(ns, ""), placementOn("shop", ns)))
		Eventually(counts("selected", "placed", "synced", "healthy", "failed")).WithContext(ctx).Should(Equal("2 4 4 4 0 "), "a ConfigMap and a Deployment on two clusters")
		Expect(framework.Condition(ctx, workload.Config, edgePlacements, "", "shop", edgev2alpha1.ConditionHealthy)).To(Equal("True"))
		Expect(readyReason(ctx, workload, "shop")).To(Equal(rules.ReasonInSync))
		Eventually(value).WithContext(ctx).WithArguments(mailboxOf(ctx, inventory, "florin"), syncerConfigs, "", placement.ConfigName, "status", "ready").Should(Equal("2"))

		plugin := func(args ...string) string { return runPlugin(ctx, workload.Path, args...) }
		described := func() string { return strings.Join(strings.Fields(plugin("describe", "placement", "shop")), " ") }
		Expect(described()).To(And(
			ContainSubstring("Pairs: 4: 4 placed, 4 synced, 4 healthy, 0 failed"),
			ContainSubstring("Object florin guilder configmaps "+ns+"/prices Healthy Healthy deployments.apps "+ns+"/till Healthy Healthy")))

		By("a Deployment that no cluster can run")
		apply(ctx, workload.Config, till(ns, "example.org/room: none"))
		Eventually(value).WithContext(ctx).WithArguments(workload.Config, edgePlacements, "", "shop", "status", "failures").
			Should(And(ContainSubstring("Unhealthy"), ContainSubstring("till"), ContainSubstring("florin"), ContainSubstring("guilder")))
		Eventually(counts("placed", "synced", "healthy", "failed")).WithContext(ctx).Should(Equal("4 4 2 0 "))

		By("a cluster that refuses an object")
		apply(ctx, target("florin"), configMap(ns, "taken", "theirs"))
		apply(ctx, workload.Config, documents(till(ns, ""), configMap(ns, "taken", "ours")))
		Eventually(counts("placed", "synced", "healthy", "failed")).WithContext(ctx).Should(Equal("6 5 5 1 "))
		Expect(value(ctx, workload.Config, edgePlacements, "", "shop", "status", "failures")).To(And(ContainSubstring("Conflict"), ContainSubstring("florin"), Not(ContainSubstring("guilder"))))
		Expect(value(ctx, target("florin"), configMaps, ns, "taken", "data", "entry")).To(Equal("theirs"))

		By("the plugin explains one object on one cluster, from the object's workspace")
		Expect(described()).To(And(
			ContainSubstring("configmaps "+ns+"/taken Conflict Healthy configmaps "+ns+"/prices Healthy Healthy"),
			ContainSubstring("configmaps "+ns+"/taken florin Conflict")))
		explained := func(target, name string) string {
			return plugin(append([]string{"explain", target, "configmaps", ns + "/" + name, "--hosting-kubeconfig", clusters["hosting"].Kubeconfig}, targetKubeconfig(inventory, target)...)...)
		}
		Expect(explained("florin", "taken")).To(And(ContainSubstring("Progress"), ContainSubstring("Conflict: "), ContainSubstring("Whether taken is on florin cannot be seen from here")))
		Expect(explained("guilder", "taken")).To(And(ContainSubstring("guilder is a cluster of shop"), ContainSubstring("taken is on guilder, in sync with the mailbox")))
		Expect(explained("krone", "taken")).To(ContainSubstring("krone is no cluster of shop"))

		By("a restart does not change the status")
		quiet(ctx)
		before := value(ctx, workload.Config, edgePlacements, "", "shop", "status")
		Expect(hub.Kill9()).To(Succeed())
		startHub(ctx)
		Eventually(placedPairs).WithContext(ctx).Should(BeNumerically(">=", 6))
		quiet(ctx)
		Consistently(value, "12s", "1s").WithContext(ctx).WithArguments(workload.Config, edgePlacements, "", "shop", "status").Should(Equal(before))
	}, NodeTimeout(5*time.Minute))

	It("brings the status of an object back from its destinations", func(ctx SpecContext) {
		const ns = "placement-status"
		inventory, workload := newInventory(ctx, ns), newWorkload(ctx, ns+"-workload")
		for name, env := range map[string]string{"florin": "prod", "guilder": "dev"} {
			Expect(inventory.Register(ctx, name, kubeconfigOf(name), map[string]string{"env": env})).To(Succeed())
		}
		apply(ctx, inventory.Config, location("prod", "prod", workload.Path))
		shown := func(fields ...string) string { return value(ctx, workload.Config, deployments, ns, "till", fields...) }
		count := func() string { return shown("metadata", "annotations", edgev2alpha1.AnnotationExecutingCount) }
		available := func() string { return shown("status", "availableReplicas") }

		By("of one")
		eventuallyPlaced(ctx, workload, documents(namespace(ns), till(ns, ""), placementOn("shop", ns)))
		patch(ctx, workload.Config, edgePlacements, "", "shop", `{"spec": {"wantSingletonReportedState": true}}`)
		Eventually(available).WithContext(ctx).Should(Equal("2"))
		Expect(count()).To(Equal("1"))
		Expect(shown("status", "observedGeneration")).To(Equal(shown("metadata", "generation")), "kubectl rollout status waits for it")

		By("of two, where no single status is correct")
		patch(ctx, inventory.Config, installation.SyncTargets, "", "guilder", `{"metadata": {"labels": {"env": "prod"}}}`)
		Eventually(count).WithContext(ctx).Should(Equal("2"))
		Eventually(available).WithContext(ctx).Should(BeEmpty())

		By("together, so that the numbers fit spec.replicas")
		patch(ctx, workload.Config, edgePlacements, "", "shop", `{"spec": {"aggregateStatus": true}}`)
		Eventually(available).WithContext(ctx).Should(Equal("2"))
		Expect(kubectlIn(ctx, workload.Path)("get", "deployment", "till", "--namespace", ns)).To(MatchRegexp(`till +2/2 +2 +2 `))
		Eventually(func() string { return shown("status", "observedGeneration") }).WithContext(ctx).Should(Equal(shown("metadata", "generation")))
		for _, name := range []string{"florin", "guilder"} {
			Expect(value(ctx, target(name), deployments, ns, "till", "metadata", "annotations")).NotTo(ContainSubstring(edgev2alpha1.AnnotationExecutingCount))
		}

		By("not written again after a restart")
		Eventually(value).WithContext(ctx).WithArguments(workload.Config, placedSlices, "", "shop", "destinations").Should(ContainSubstring("guilder"))
		quiet(ctx)
		Expect(hub.Kill9()).To(Succeed())
		startHub(ctx)
		Eventually(placedPairs).WithContext(ctx).Should(BeNumerically(">=", 2))
		quiet(ctx)
		Expect(requestCounts(ctx)).To(BeEmpty())

		By("not shown when it runs nowhere")
		remove(ctx, workload.Config, edgePlacements, "", "shop")
		Eventually(available).WithContext(ctx).Should(BeEmpty())
		Eventually(count).WithContext(ctx).Should(BeEmpty())
		Expect(framework.Exists(ctx, workload.Config, deployments, ns, "till")).To(BeTrue())
	}, NodeTimeout(5*time.Minute))
})
