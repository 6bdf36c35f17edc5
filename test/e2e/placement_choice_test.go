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
	"github.com/synchub-dev/synchub/controllers/placement/rules"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/framework/installation"
)

var _ = Describe("a placement on some of many clusters", thorough, Label("placement"), func() {
	It("keeps the chosen cluster while it matches, and creates the new copies before it deletes the old ones", func(ctx SpecContext) {
		const ns = "placement-choice"
		inventory, workload := newInventory(ctx, ns), newWorkload(ctx, ns+"-workload")
		for _, name := range []string{"florin", "guilder"} {
			Expect(inventory.Register(ctx, name, kubeconfigOf(name), map[string]string{"env": "prod"})).To(Succeed())
		}
		// With both to choose from, the first choice is the one that would always be made.
		for _, name := range []string{"florin", "guilder"} {
			Eventually(framework.Condition).WithContext(ctx).WithArguments(inventory.Config, installation.SyncTargets, "", name, "Ready").Should(Equal("True"))
		}
		apply(ctx, inventory.Config, location("prod", "prod", workload.Path))
		chosen := func() string {
			for _, name := range []string{"florin", "guilder"} {
				if strings.Contains(value(ctx, workload.Config, placedSlices, "", "shop", "destinations"), name) {
					return name
				}
			}
			return ""
		}
		otherThan := func(name string) string { return map[string]string{"florin": "guilder", "guilder": "florin"}[name] }
		moved := func(from string) {
			GinkgoHelper()
			eventuallyExists(ctx, target(otherThan(from)), configMaps, ns, "prices")
			eventuallyGone(ctx, target(from), configMaps, ns, "prices")
			Eventually(chosen).WithContext(ctx).Should(Equal(otherThan(from)))
		}

		By("one cluster of two")
		eventuallyPlaced(ctx, workload, documents(namespace(ns), configMap(ns, "prices", "1"), placementOn("shop", ns)+"  numberOfClusters: 1\n"))
		Eventually(readyStatus).WithContext(ctx).WithArguments(workload, "shop").Should(Equal("True"))
		Eventually(chosen).WithContext(ctx).ShouldNot(BeEmpty())
		first := chosen()
		Expect(value(ctx, workload.Config, edgePlacements, "", "shop", "status", "destinations")).To(Equal("1"))
		eventuallyExists(ctx, target(first), configMaps, ns, "prices")
		Expect(framework.Exists(ctx, target(otherThan(first)), configMaps, ns, "prices")).To(BeFalse())

		By("a cordoned cluster is replaced, and its return changes nothing")
		patch(ctx, inventory.Config, installation.SyncTargets, "", first, `{"spec": {"unschedulable": true}}`)
		moved(first)
		second := otherThan(first)
		patch(ctx, inventory.Config, installation.SyncTargets, "", first, `{"spec": {"unschedulable": false}}`)
		quiet(ctx)
		Expect(chosen()).To(Equal(second))

		By("a restart does not change the choice, although a new choice would differ, and writes nothing")
		quiet(ctx)
		Expect(hub.Kill9()).To(Succeed())
		startHub(ctx)
		Eventually(placedPairs).WithContext(ctx).Should(BeNumerically(">=", 1))
		quiet(ctx)
		Expect(requestCounts(ctx)).To(BeEmpty())
		Expect(chosen()).To(Equal(second))

		By("mistakes in the Location and in the placement change nothing, and are no reason to choose another cluster afterwards, or after a restart")
		// The schema refuses other invalid selectors.
		patch(ctx, inventory.Config, locations, "", "prod", `{"spec": {"instanceSelector": {"matchLabels": {"-": "prod"}}}}`)
		Eventually(readyReason).WithContext(ctx).WithArguments(workload, "shop").Should(Equal(rules.ReasonNoLocation))
		selectLocations := func(key string) {
			patch(ctx, workload.Config, edgePlacements, "", "shop", `{"spec": {"locationSelectors": [{"matchLabels": {"`+key+`": "prod"}}]}}`)
		}
		selectLocations("-")
		Eventually(readyReason).WithContext(ctx).WithArguments(workload, "shop").Should(Equal(plan.ReasonInvalid))
		quiet(ctx)
		Expect(hub.Kill9()).To(Succeed())
		startHub(ctx)
		selectLocations("env")
		Eventually(readyReason).WithContext(ctx).WithArguments(workload, "shop").Should(Equal(rules.ReasonNoLocation))
		patch(ctx, inventory.Config, locations, "", "prod", `{"spec": {"instanceSelector": {"matchLabels": {"-": null}}}}`)
		Eventually(chosen).WithContext(ctx).Should(Equal(second))
		quiet(ctx)
		Expect(chosen()).To(Equal(second))
		Expect(framework.Exists(ctx, target(first), configMaps, ns, "prices")).To(BeFalse())

		By("a cluster that does not match any more is replaced at once")
		patch(ctx, inventory.Config, installation.SyncTargets, "", second, `{"metadata": {"labels": {"env": "test"}}}`)
		moved(second)
		first, second = second, first
		patch(ctx, inventory.Config, installation.SyncTargets, "", first, `{"metadata": {"labels": {"env": "prod"}}}`)

		By("a cluster that is not Ready for longer than is tolerated is replaced")
		patch(ctx, workload.Config, edgePlacements, "", "shop", `{"spec": {"tolerationSeconds": 1}}`)
		useSecret := func(name, secret string) {
			patch(ctx, inventory.Config, installation.SyncTargets, "", name, `{"spec": {"kubeconfigSecretRef": {"name": "`+secret+`"}}}`)
		}
		secretOf := func(name string) string {
			return value(ctx, inventory.Config, installation.SyncTargets, "", name, "spec", "kubeconfigSecretRef", "name")
		}
		secret := secretOf(second)
		useSecret(second, "missing")
		eventuallyExists(ctx, target(first), configMaps, ns, "prices")
		useSecret(second, secret)
		moved(second)

		By("but not if there is no replacement")
		first, second = second, first
		patch(ctx, inventory.Config, installation.SyncTargets, "", first, `{"metadata": {"labels": {"env": "test"}}}`)
		mailbox, secret := mailboxOf(ctx, inventory, second), secretOf(second)
		useSecret(second, "missing")
		Eventually(framework.Condition).WithContext(ctx).WithArguments(inventory.Config, installation.SyncTargets, "", second, "Ready").ShouldNot(Equal("True"))
		Consistently(framework.Exists, "4s", "1s").WithContext(ctx).WithArguments(mailbox, configMaps, ns, "prices").Should(BeTrue())
		patch(ctx, inventory.Config, installation.SyncTargets, "", first, `{"metadata": {"labels": {"env": "prod"}}}`)
		eventuallyExists(ctx, target(first), configMaps, ns, "prices")
		useSecret(second, secret)
		moved(second)

		By("more clusters than exist")
		patch(ctx, workload.Config, edgePlacements, "", "shop", `{"spec": {"numberOfClusters": 3}}`)
		eventuallyExists(ctx, target(second), configMaps, ns, "prices")
		Eventually(framework.Condition).WithContext(ctx).WithArguments(workload.Config, edgePlacements, "", "shop", edgev2alpha1.ConditionTooFewClusters).Should(Equal("True"))
		patch(ctx, workload.Config, edgePlacements, "", "shop", `{"spec": {"numberOfClusters": null, "tolerationSeconds": null}}`)
		Eventually(framework.Condition).WithContext(ctx).WithArguments(workload.Config, edgePlacements, "", "shop", edgev2alpha1.ConditionTooFewClusters).Should(BeEmpty())
	}, NodeTimeout(5*time.Minute))
})
