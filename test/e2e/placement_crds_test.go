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

	"github.com/synchub-dev/synchub/test/framework"
)

// placementWithCRD returns a placement of all objects of a namespace, and of a CustomResourceDefinition, on the Locations for production.
func placementWithCRD(name, namespace, crd string) string {
	return fmt.Sprintf(`
apiVersion: edge.kubestellar.io/v2alpha1
kind: EdgePlacement
metadata: {name: %s}
spec:
  locationSelectors: [{matchLabels: {env: prod}}]
  downsync:
  - namespaces: [%s]
  - {apiGroup: apiextensions.k8s.io, resources: [customresourcedefinitions], objectNames: [%s]}
`, name, namespace, crd)
}

var _ = Describe("a placed CustomResourceDefinition", Label("placement"), func() {
	It("is installed on the clusters before its controller, without any objects", func(ctx SpecContext) {
		const ns = "placement-crd"
		valves := custom("crd.example.com", "v1", "valves", "Valve")
		name, florin, hosting := valves.GroupResource().String(), target("florin"), target("hosting")
		apply(ctx, hosting, valves.withSpec(sized, "v1"))
		publishAs(ctx, "valves", "\n  resource: {group: crd.example.com, resource: valves, version: v1}\n  installCRD: true")
		eventuallyPublished(ctx, "valves")
		// The workspace has the definition first, so kcp cannot bind the published API there and never completes the binding.
		inventory, workload := newInventory(ctx, ns), newWorkload(ctx, ns+"-workload", valves.withSpec(sized, "v1"))
		Expect(inventory.Register(ctx, "florin", kubeconfigOf("florin"), map[string]string{"env": "prod"})).To(Succeed())
		apply(ctx, inventory.Config, location("prod", "prod", workload.Path))
		apply(ctx, workload.Config, documents(namespace(ns), deployment(ns, "operator")))
		eventuallyPlaced(ctx, workload, placementWithCRD("shop", ns, name))

		Eventually(readyStatus).WithContext(ctx).WithArguments(workload, "shop").Should(Equal("True"))
		Expect(framework.Condition(ctx, florin, definitions, "", name, "Established")).To(Equal("True"))
		Expect(value(ctx, florin, definitions, "", name, "metadata", "labels")).To(ContainSubstring("synchub.dev/installed-by"))
		Expect(framework.Exists(ctx, mailboxOf(ctx, inventory, "florin"), definitions, "", name)).To(BeFalse(), "it would act in the mailbox")
		Expect(value(ctx, workload.Config, edgePlacements, "", "shop", "status", "synced")).To(Equal("2"))
		created := readerOf(ctx, florin)
		Expect(created(definitions, "", name, "metadata", "creationTimestamp")() <= created(deployments, ns, "operator", "metadata", "creationTimestamp")()).To(BeTrue())

		By("the definition stays when the placement goes")
		remove(ctx, workload.Config, edgePlacements, "", "shop")
		eventuallyGone(ctx, florin, deployments, ns, "operator")
		Expect(framework.Exists(ctx, florin, definitions, "", name)).To(BeTrue())
	}, NodeTimeout(4*time.Minute))

	It("without a PublishedResource is copied in full once the operator allows it, and follows its source", thorough, func(ctx SpecContext) {
		const ns = "placement-crd-own"
		gears := custom("crdown.example.com", "v1", "gears", "Gear")
		name, florin := gears.GroupResource().String(), target("florin")
		governs := func(ctx SpecContext, policy string) {
			patch(ctx, target("hosting"), publishedResources, "", "customresourcedefinitions", `{"spec": {"privilegedUpsync": `+policy+`}}`)
		}
		inventory, workload := newInventory(ctx, ns), newWorkload(ctx, ns+"-workload")
		Expect(inventory.Register(ctx, "florin", kubeconfigOf("florin"), map[string]string{"env": "prod"})).To(Succeed())
		apply(ctx, inventory.Config, location("prod", "prod", workload.Path))
		apply(ctx, workload.Config, documents(namespace(ns), gears.withSpec(sized, "v1")))
		eventuallyPlaced(ctx, workload, placementWithCRD("shop", ns, name))
		failures := func() string { return value(ctx, workload.Config, edgePlacements, "", "shop", "status", "failures") }
		Eventually(failures).WithContext(ctx).Should(And(ContainSubstring("Privileged"), ContainSubstring("spec.installCRD")))

		By("the operator allows it")
		DeferCleanup(func(ctx SpecContext) { governs(ctx, "null") })
		governs(ctx, `"TargetGovernsMailbox"`)
		Eventually(framework.Condition).WithContext(ctx).WithArguments(florin, definitions, "", name, "Established").Should(Equal("True"))
		versions := readerOf(ctx, florin)(definitions, "", name, "spec", "versions")
		Expect(versions()).To(ContainSubstring("port"))
		Eventually(readyStatus).WithContext(ctx).WithArguments(workload, "shop").Should(Equal("True"))
		apply(ctx, workload.Config, gears.withSpec(sized+"\n  shape: {type: string}", "v1"))
		Eventually(versions).WithContext(ctx).Should(ContainSubstring("shape"))

		By("it is withdrawn, and stays on the cluster as all definitions do")
		remove(ctx, workload.Config, edgePlacements, "", "shop")
		Eventually(value).WithContext(ctx).WithArguments(mailboxOf(ctx, inventory, "florin"), definitions, "", name, "metadata", "labels").ShouldNot(ContainSubstring("synchub.dev/owner"))
		Expect(framework.Exists(ctx, florin, definitions, "", name)).To(BeTrue())
	}, NodeTimeout(4*time.Minute))
})
