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
	"fmt"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/test/framework"
)

var _ = Describe("the audit trail", thorough, Label("placement"), func() {
	It("answers when a cluster went away, and who removed what, and a restarted hub does not repeat it", SpecPriority(1), func(ctx SpecContext) {
		const ns = "audit"
		away := newCluster(ctx, "audited")
		inventory, workload := newInventory(ctx, ns), newWorkload(ctx, ns+"-workload")
		for name, env := range map[string]string{"audited": "test", "guilder": "prod"} {
			Expect(inventory.Register(ctx, name, kubeconfigOf(name), map[string]string{"env": env})).To(Succeed())
		}
		apply(ctx, inventory.Config, documents(location("prod", "prod", workload.Path), location("test", "test", workload.Path)))
		eventuallyPlaced(ctx, workload, documents(namespace(ns), configMap(ns, "prices", "1"), configMap(ns, "goods", "1"), fmt.Sprintf(`
apiVersion: edge.kubestellar.io/v2alpha1
kind: EdgePlacement
metadata: {name: shop}
spec:
  locationSelectors: [{}]
  downsync: [{namespaces: [%s]}]
`, ns)))
		Eventually(readyStatus).WithContext(ctx).WithArguments(workload, "shop").Should(Equal("True"))
		onSyncTarget := func() []string { return eventsOn(ctx, inventory.Config, "audited") }
		onPlacement := func() []string { return eventsOn(ctx, workload.Config, "shop") }
		Eventually(onPlacement).WithContext(ctx).Should(ContainElement(And(HavePrefix("Normal Placed: "), ContainSubstring("audited"))))
		Eventually(onSyncTarget).WithContext(ctx).Should(ContainElement(HavePrefix("Normal Ready: ")))

		By("the first objects are counted")
		Eventually(value).WithContext(ctx).WithArguments(inventory.Config, syncTargets, "", "audited", "status", "counts", "synced").ShouldNot(BeElementOf("", "0"))

		By("a cluster goes away")
		Expect(away.Kill9()).To(Succeed())
		Eventually(onSyncTarget).WithContext(ctx).Should(ContainElement(And(HavePrefix("Warning TargetUnreachable: The SyncTarget was Ready since 20"), ContainSubstring(", and is not any more."))))
		Eventually(placementCondition).WithContext(ctx).WithArguments(workload, "shop", edgev2alpha1.ConditionReady, "message").Should(ContainSubstring("Not Ready, and counted as last observed: audited since 20"))
		Expect(away.Start(ctx)).To(Succeed())
		Eventually(onSyncTarget).WithContext(ctx).Should(ContainElement(And(HavePrefix("Normal Ready: "), ContainSubstring("It was not Ready since 20"), HaveSuffix(": TargetUnreachable."))))
		Eventually(placementCondition).WithContext(ctx).WithArguments(workload, "shop", edgev2alpha1.ConditionReady, "message").ShouldNot(ContainSubstring("Not Ready"))

		By("the administrator of the inventory takes a Location away, and the team deletes an object")
		remove(ctx, inventory.Config, locations, "", "test")
		eventuallyGone(ctx, target("audited"), configMaps, ns, "goods")
		remove(ctx, workload.Config, configMaps, ns, "goods")
		eventuallyGone(ctx, target("guilder"), configMaps, ns, "goods")
		Eventually(onPlacement).WithContext(ctx).Should(And(
			ContainElement(And(HavePrefix("Warning Withdrawn: "), ContainSubstring("from audited ("), ContainSubstring("because the inventory no longer offers these SyncTargets"), ContainSubstring("configmaps "+ns+"/prices"))),
			ContainElement(And(HavePrefix("Normal Withdrawn: "), ContainSubstring("from guilder (1), because the objects were deleted in this workspace. Objects: configmaps "+ns+"/goods."))),
		))

		By("a restart changes nothing, and has no events")
		settled(ctx)
		trail := func() []string { return slices.Concat(onSyncTarget(), onPlacement()) }
		before := trail()
		Expect(hub.Kill9()).To(Succeed())
		startHub(ctx)
		settled(ctx)
		Expect(trail()).To(ConsistOf(before))
	}, NodeTimeout(5*time.Minute))

	It("mirrors what a cluster refuses to the object of the team", func(ctx SpecContext) {
		const ns = "audit-refused"
		inventory, workload := newInventory(ctx, ns), newWorkload(ctx, ns+"-workload")
		Expect(inventory.Register(ctx, "guilder", kubeconfigOf("guilder"), map[string]string{"env": "prod"})).To(Succeed())
		apply(ctx, inventory.Config, location("prod", "prod", workload.Path))
		// The cluster has an object of the name already.
		apply(ctx, target("guilder"), documents(namespace(ns), configMap(ns, "taken", "of the cluster")))
		eventuallyPlaced(ctx, workload, documents(namespace(ns), configMap(ns, "taken", "1"), configMap(ns, "free", "1"), placementOn("shop", ns)))
		Eventually(eventsOn).WithContext(ctx).WithArguments(workload.Config, "taken").Should(ConsistOf(And(HavePrefix("Warning Conflict: On guilder: "), ContainSubstring("choose another name"))))
		Expect(eventsOn(ctx, workload.Config, "free")).To(BeEmpty())

		By("the failure is counted")
		Eventually(value).WithContext(ctx).WithArguments(inventory.Config, syncTargets, "", "guilder", "status", "counts", "failed").Should(Equal("1"))
	}, NodeTimeout(5*time.Minute))
})

// eventsOn returns the events on an object of a workspace, each with its type and reason first.
func eventsOn(ctx context.Context, workspace *rest.Config, name string) (found []string) {
	GinkgoHelper()
	list, err := framework.List(ctx, workspace, events, "", "")
	Expect(err).NotTo(HaveOccurred())
	for _, event := range list {
		if about, _, _ := unstructured.NestedString(event.Object, "involvedObject", "name"); about == name {
			found = append(found, fmt.Sprintf("%v %v: %v", event.Object["type"], event.Object["reason"], event.Object["message"]))
		}
	}
	return found
}
