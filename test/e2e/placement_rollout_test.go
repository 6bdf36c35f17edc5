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
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/placement/rules"
	"github.com/synchub-dev/synchub/test/framework/installation"
)

const rolloutNamespace = "placement-rollout"

// rollingTill is a Deployment of an edition that runs on nodes that the SyncTarget names.
func rollingTill(edition string) string {
	return fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata:
  name: till
  namespace: %[1]s
  labels: {edition: %[2]q}
  annotations: {edge.kubestellar.io/expand-parameters: "true"}
spec:
  progressDeadlineSeconds: 5
  selector: {matchLabels: {app: till}}
  template:
    metadata: {labels: {app: till, edition: %[2]q}}
    spec:
      nodeSelector: {kubernetes.io/os: "%%(nodes)"}
      containers: [{name: till, image: example.org/till}]
`, rolloutNamespace, edition)
}

var _ = Describe("a rollout", func() {
	It("continues with the next cluster when the one before is healthy, stops at a failure, and can be paused", SpecPriority(1), func(ctx SpecContext) {
		const ns = rolloutNamespace
		inventory, workload := newInventory(ctx, ns), newWorkload(ctx, ns+"-workload")
		for name, wave := range map[string]string{"florin": "2", "guilder": "1"} {
			Expect(inventory.Register(ctx, name, kubeconfigOf(name), map[string]string{"env": "prod", "wave": wave})).To(Succeed())
			patch(ctx, inventory.Config, installation.SyncTargets, "", name, `{"metadata": {"annotations": {"nodes": "linux"}}}`)
		}
		apply(ctx, inventory.Config, location("prod", "prod", workload.Path))
		edition := func(name string) func() string {
			return func() string {
				return value(ctx, target(name), deployments, ns, "till", "metadata", "labels", "edition")
			}
		}
		rolledOut := func() string {
			return placementCondition(ctx, workload, "shop", edgev2alpha1.ConditionRolledOut, "reason")
		}
		counts := func() (text string) {
			for _, field := range []string{"succeeded", "progressing", "failed", "waiting"} {
				text += value(ctx, workload.Config, edgePlacements, "", "shop", "status", "rollout", field) + " "
			}
			return text
		}

		plugin := func(args ...string) string {
			return runPlugin(ctx, workload.Path, append([]string{"rollout"}, args...)...)
		}

		By("the first objects go group by group too")
		eventuallyPlaced(ctx, workload, documents(namespace(ns), rollingTill("1"), placementOn("shop", ns)+"  rolloutStrategy: {type: ProgressivePerGroup, groupBy: wave}\n"))
		Eventually(edition("guilder")).WithContext(ctx).Should(Equal("1"))
		Eventually(edition("florin")).WithContext(ctx).Should(Equal("1"))
		Expect(plugin("status", "shop", "--timeout=2m")).To(ContainSubstring("shop is rolled out"))
		Expect(rolledOut()).To(Equal(rules.ReasonComplete))
		Expect(counts()).To(Equal("2 0 0 0 "))

		By("a paused one does not continue")
		Expect(plugin("pause", "shop")).To(Equal("edgeplacement.edge.kubestellar.io/shop paused\n"))
		Expect(plugin("pause", "shop")).To(ContainSubstring("already paused"))
		Eventually(value).WithContext(ctx).WithArguments(workload.Config, edgePlacements, "", "shop", "status", "specGeneration").Should(Equal("2"))
		apply(ctx, workload.Config, rollingTill("2"))
		Eventually(rolledOut).WithContext(ctx).Should(Equal(rules.ReasonPaused))
		quiet(ctx)
		Expect(edition("guilder")()).To(Equal("1"))
		Expect(readyReason(ctx, workload, "shop")).To(Equal(rules.ReasonWaitingForRollout))
		Expect(plugin("resume", "shop")).To(ContainSubstring("resumed"))
		Eventually(rolledOut).WithContext(ctx).ShouldNot(Equal(rules.ReasonPaused))
		Expect(plugin("status", "shop", "--timeout=2m")).To(ContainSubstring("shop is rolled out"))
		Expect(edition("florin")()).To(Equal("2"))

		By("a paused one continues without a strategy too")
		Expect(plugin("pause", "shop")).To(ContainSubstring("paused"))
		patch(ctx, workload.Config, edgePlacements, "", "shop", `{"spec": {"rolloutStrategy": null}}`)
		apply(ctx, workload.Config, rollingTill("2a"))
		Eventually(rolledOut).WithContext(ctx).Should(Equal(rules.ReasonPaused))
		Expect(edition("guilder")()).To(Equal("2"))
		Expect(plugin("resume", "shop", "--wait", "--timeout=2m")).To(And(ContainSubstring("resumed"), ContainSubstring("shop is rolled out")))
		Expect(edition("guilder")()).To(Equal("2a"))
		patch(ctx, workload.Config, edgePlacements, "", "shop", `{"spec": {"rolloutStrategy": {"type": "ProgressivePerGroup", "groupBy": "wave"}}}`)
		Eventually(rolledOut).WithContext(ctx).Should(Equal(rules.ReasonComplete))

		By("rollout status does not report the state before an edit")
		apply(ctx, workload.Config, rollingTill("2b"))
		Expect(plugin("status", "shop", "--timeout=2m")).To(ContainSubstring("shop is rolled out"))
		Expect(edition("guilder")()).To(Equal("2b"))
		Expect(edition("florin")()).To(Equal("2b"))

		By("the hub keeps each completed revision, and counts no revision that a user creates")
		uid := value(ctx, workload.Config, edgePlacements, "", "shop", "metadata", "uid")
		apply(ctx, workload.Config, fmt.Sprintf(`
apiVersion: edge.kubestellar.io/v2alpha1
kind: PlacementRevision
metadata: {name: planted, labels: {%s: %s}}
placement: shop
revision: 99
`, edgev2alpha1.LabelPlacement, uid))
		Eventually(plugin).WithArguments("history", "shop").Should(And(ContainSubstring("REVISION"), MatchRegexp(`(?m)^4 +1 `)))

		By("a failure in the first group stops it")
		patch(ctx, inventory.Config, installation.SyncTargets, "", "guilder", `{"metadata": {"annotations": {"nodes": "none"}}}`)
		Eventually(rolledOut).WithContext(ctx).Should(Equal(rules.ReasonDestinationsFailed))
		apply(ctx, workload.Config, rollingTill("3"))
		Eventually(edition("guilder")).WithContext(ctx).Should(Equal("3"))
		Eventually(rolledOut).WithContext(ctx).Should(Equal(rules.ReasonStopped))
		Expect(counts()).To(Equal("0 0 1 1 "))
		Expect(value(ctx, workload.Config, edgePlacements, "", "shop", "status", "rollout", "failedClusters")).To(ContainSubstring("guilder"))
		Expect(edition("florin")()).To(Equal("2b"))

		By("undo restores the healthy revision of the last complete rollout")
		patch(ctx, inventory.Config, installation.SyncTargets, "", "guilder", `{"metadata": {"annotations": {"nodes": "linux"}}}`)
		Expect(plugin("undo", "shop", "--dry-run=server")).To(And(ContainSubstring("till restored (server dry run)"),
			MatchRegexp(`(?m)^- +edition: "3"$`), MatchRegexp(`(?m)^\+ +edition: "?2b"?$`)))
		Expect(value(ctx, workload.Config, deployments, ns, "till", "metadata", "labels", "edition")).To(Equal("3"))
		Expect(plugin("undo", "shop", "--wait", "--timeout=2m")).To(And(HavePrefix("Going back to revision 4.\ndeployment.apps/till restored\n"), ContainSubstring("shop is rolled out")))
		Expect([]string{edition("florin")(), edition("guilder")()}).To(Equal([]string{"2b", "2b"}))
		// The hub keeps the edition after it has reported it; if the cluster failed before that, it would keep none.
		Eventually(plugin).WithArguments("history", "shop").Should(MatchRegexp(`(?m)^5 +1 `))
		patch(ctx, inventory.Config, installation.SyncTargets, "", "guilder", `{"metadata": {"annotations": {"nodes": "none"}}}`)
		// Otherwise the new edition could be healthy there before the hub has seen the annotation.
		Eventually(rolledOut).WithContext(ctx).Should(Equal(rules.ReasonDestinationsFailed))
		apply(ctx, workload.Config, rollingTill("3"))
		Eventually(edition("guilder")).WithContext(ctx).Should(Equal("3"))
		Eventually(rolledOut).WithContext(ctx).Should(Equal(rules.ReasonStopped))

		By("a restart does not continue it, and writes nothing")
		// The cluster may show the failure of the edition before for a moment.
		settled(ctx)
		Expect(rolledOut()).To(Equal(rules.ReasonStopped))
		Expect(hub.Kill9()).To(Succeed())
		startHub(ctx)
		Eventually(placedPairs).WithContext(ctx).Should(BeNumerically(">=", 1))
		settled(ctx)
		Expect(requestCounts(ctx)).To(BeEmpty())
		Expect(edition("florin")()).To(Equal("2b"))
		Expect(rolledOut()).To(Equal(rules.ReasonStopped))

		By("it continues after the cluster is repaired")
		patch(ctx, inventory.Config, installation.SyncTargets, "", "guilder", `{"metadata": {"annotations": {"nodes": "linux"}}}`)
		Eventually(edition("florin")).WithContext(ctx).Should(Equal("3"))
		Eventually(rolledOut).WithContext(ctx).Should(Equal(rules.ReasonComplete))

		By("the sixth revision replaces the first")
		Eventually(plugin).WithArguments("history", "shop").Should(And(MatchRegexp(`(?m)^6 +1 `), Not(MatchRegexp(`(?m)^1 +1 `)), MatchRegexp(`(?m)^99 +0 `)))
	}, NodeTimeout(5*time.Minute))
})
