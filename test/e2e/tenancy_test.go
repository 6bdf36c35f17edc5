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
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime/schema"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/placement/rules"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/tenancy"
	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/framework/installation"
)

const (
	podSecurity    = "pod-security.kubernetes.io/enforce"
	perWorkspace   = `{"spec": {"tenancy": {"namespaces": "PerWorkspace", "namespaceLabels": {"` + podSecurity + `": "baseline"}}}}`
	withoutTenancy = `{"spec": {"tenancy": null}}`
)

var priorityClasses = schema.GroupVersionResource{Group: "scheduling.k8s.io", Version: "v1", Resource: "priorityclasses"}

// ownNamespace returns the name on a cluster of a namespace of a workload workspace, with the default template.
func ownNamespace(ctx context.Context, workload *installation.Workload, namespace string) string {
	GinkgoHelper()
	cluster := value(ctx, workload.Config, logicalClusters, "", "cluster", "metadata", "annotations", "kcp.io/cluster")
	naming := tenancy.NamingOf(&edgev2alpha1.Tenancy{Namespaces: edgev2alpha1.NamespacesPerWorkspace})
	return naming.Namespace(logicalcluster.Name(cluster), namespace)
}

// labelOf returns a label of a namespace of a cluster; empty if there is none.
func labelOf(ctx context.Context, cluster, namespace, key string) string {
	GinkgoHelper()
	object, err := framework.Get(ctx, target(cluster), namespaces, "", namespace)
	Expect(err).NotTo(HaveOccurred())
	return object.GetLabels()[key]
}

var _ = Describe("teams on one cluster", Label("placement"), func() {
	It("have namespaces of their own, with the labels of the cluster's administrator", func(ctx SpecContext) {
		const ns = "tenancy-shop"
		inventory := newInventory(ctx, "tenancy")
		one, other := newWorkload(ctx, "tenancy-one"), newWorkload(ctx, "tenancy-other")
		Expect(inventory.Register(ctx, "florin", kubeconfigOf("florin"), map[string]string{"env": "prod"})).To(Succeed())
		patch(ctx, inventory.Config, installation.SyncTargets, "", "florin", perWorkspace)
		apply(ctx, inventory.Config, documents(location("one", "prod", one.Path), location("other", "prod", other.Path)))

		By("both teams place the same manifests")
		labelled := `
apiVersion: v1
kind: Namespace
metadata: {name: ` + ns + `, labels: {` + podSecurity + `: privileged, tier: gold, synchub.dev/workspace: forged}}
`
		for workload, entry := range map[*installation.Workload]string{one: "1", other: "2"} {
			eventuallyPlaced(ctx, workload, documents(labelled, configMap(ns, "prices", entry), placementOn("shop", ns)))
		}
		first, second := ownNamespace(ctx, one, ns), ownNamespace(ctx, other, ns)
		Eventually(value).WithArguments(ctx, target("florin"), configMaps, first, "prices", "data", "entry").Should(Equal("1"))
		Eventually(value).WithArguments(ctx, target("florin"), configMaps, second, "prices", "data", "entry").Should(Equal("2"))
		for _, workload := range []*installation.Workload{one, other} {
			Eventually(readyStatus).WithContext(ctx).WithArguments(workload, "shop").Should(Equal("True"))
		}
		Expect(framework.Exists(ctx, target("florin"), namespaces, "", ns)).To(BeFalse())

		By("the labels of the administrator count, and the others stay")
		Eventually(labelOf).WithContext(ctx).WithArguments("florin", first, podSecurity).Should(Equal("baseline"))
		Expect(labelOf(ctx, "florin", first, "tier")).To(Equal("gold"))
		Expect(labelOf(ctx, "florin", first, edgev2alpha1.LabelWorkspace)).To(HaveSuffix(first[len(ns)+1:]))
		Expect(value(ctx, target("florin"), namespaces, "", first, "metadata", "annotations", edgev2alpha1.AnnotationWorkspacePath)).To(Equal(one.Path))
		patch(ctx, inventory.Config, installation.SyncTargets, "", "florin", `{"spec": {"tenancy": {"namespaceLabels": {"`+podSecurity+`": "restricted"}}}}`)
		Eventually(labelOf).WithContext(ctx).WithArguments("florin", second, podSecurity).Should(Equal("restricted"))

		By("an edit of one team reaches its own namespace only")
		apply(ctx, one.Config, configMap(ns, "prices", "3"))
		Eventually(value).WithArguments(ctx, target("florin"), configMaps, first, "prices", "data", "entry").Should(Equal("3"))
		Expect(value(ctx, target("florin"), configMaps, second, "prices", "data", "entry")).To(Equal("2"))

		By("an object without a namespace is refused, until the administrator allows its kind")
		apply(ctx, one.Config, documents(`
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: tenancy-high}
value: 7
`, `
apiVersion: edge.kubestellar.io/v2alpha1
kind: EdgePlacement
metadata: {name: classes}
spec:
  locationSelectors: [{matchLabels: {env: prod}}]
  downsync: [{apiGroup: scheduling.k8s.io, resources: [priorityclasses], objectNames: [tenancy-high]}]
`))
		Eventually(framework.Field).WithContext(ctx).WithArguments(one.Config, edgePlacements, "", "classes", "status", "failures").Should(ContainSubstring(rules.ReasonClusterScoped))
		Expect(framework.Exists(ctx, target("florin"), priorityClasses, "", "tenancy-high")).To(BeFalse())
		patch(ctx, inventory.Config, installation.SyncTargets, "", "florin", `{"spec": {"tenancy": {"clusterScoped": [{"group": "scheduling.k8s.io", "resource": "priorityclasses"}]}}}`)
		eventuallyExists(ctx, target("florin"), priorityClasses, "", "tenancy-high")

		By("without the setting the first team has the name, and nothing of the second is lost")
		patch(ctx, inventory.Config, installation.SyncTargets, "", "florin", withoutTenancy)
		Eventually(func(g Gomega) {
			conflicts := 0
			for _, workload := range []*installation.Workload{one, other} {
				failures, err := framework.Field(ctx, workload.Config, edgePlacements, "", "shop", "status", "failures")
				g.Expect(err).NotTo(HaveOccurred())
				if failures != "" && failures != "[]" {
					g.Expect(failures).To(ContainSubstring(plan.ReasonConflict))
					conflicts++
				}
			}
			g.Expect(conflicts).To(Equal(1))
		}).Should(Succeed())
		winner, loser := first, second
		if value(ctx, target("florin"), configMaps, ns, "prices", "data", "entry") == "2" {
			winner, loser = second, first
		}
		eventuallyGone(ctx, target("florin"), configMaps, winner, "prices")
		Expect(framework.Exists(ctx, target("florin"), configMaps, loser, "prices")).To(BeTrue())

		By("with the setting they move back")
		patch(ctx, inventory.Config, installation.SyncTargets, "", "florin", perWorkspace)
		eventuallyExists(ctx, target("florin"), configMaps, winner, "prices")
		eventuallyGone(ctx, target("florin"), configMaps, ns, "prices")
		for _, workload := range []*installation.Workload{one, other} {
			Eventually(readyStatus).WithContext(ctx).WithArguments(workload, "shop").Should(Equal("True"))
		}

		By("a deleted placement withdraws one team's objects only")
		remove(ctx, one.Config, edgePlacements, "", "shop")
		eventuallyGone(ctx, target("florin"), configMaps, first, "prices")
		Expect(framework.Exists(ctx, target("florin"), configMaps, second, "prices")).To(BeTrue())
	}, NodeTimeout(5*time.Minute))
})
