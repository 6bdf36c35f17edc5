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
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime/schema"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/framework/installation"
)

var replicaSets = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "replicasets"}

// bringingUp adds entries of spec.upsync to a placement, for resources of the namespaces of the workspace.
func bringingUp(placement string, resources ...schema.GroupVersionResource) string {
	placement += "  upsync:\n"
	for _, one := range resources {
		placement += fmt.Sprintf("  - {apiGroup: %q, resources: [%s], namespaces: ['*'], names: ['*'], to: Workspace}\n", one.Group, one.Resource)
	}
	return placement
}

// inSight returns the names of the objects of a resource in a namespace of a workspace that came up from a cluster, or an error.
func inSight(ctx context.Context, workload *installation.Workload, resource schema.GroupVersionResource, namespace, cluster string) (names []string) {
	objects, err := framework.List(ctx, workload.Config, resource, namespace, edgev2alpha1.LabelSyncTarget+"="+cluster)
	if err != nil {
		// The workspace may not serve the API yet.
		return []string{err.Error()}
	}
	for i := range objects {
		names = append(names, objects[i].GetName())
	}
	slices.Sort(names)
	return names
}

// combineInto sets spec.aggregation of a placement.
func combineInto(ctx context.Context, workload *installation.Workload, placement, expression string) {
	GinkgoHelper()
	content, err := json.Marshal(map[string]any{"spec": map[string]any{"aggregation": map[string]any{"expression": expression}}})
	Expect(err).NotTo(HaveOccurred())
	patch(ctx, workload.Config, edgePlacements, "", placement, string(content))
}

var _ = Describe("objects of clusters in sight of a workload workspace", Label("placement"), func() {
	It("shows the Pods of two clusters, without anybody's permission, to the team that placed them", func(ctx SpecContext) {
		const ns = "sight-shop"
		inventory, workload, other := newInventory(ctx, "sight"), newWorkload(ctx, "sight-workload"), newWorkload(ctx, "sight-other")
		for _, name := range []string{"florin", "guilder"} {
			Expect(inventory.Register(ctx, name, kubeconfigOf(name), map[string]string{"env": "prod"})).To(Succeed())
			patch(ctx, inventory.Config, installation.SyncTargets, "", name, perWorkspace)
		}
		apply(ctx, inventory.Config, documents(location("one", "prod", workload.Path), location("other", "prod", other.Path)))

		By("two teams place the same manifests")
		eventuallyPlaced(ctx, other, documents(namespace(ns), till(ns, ""), bringingUp(placementOn("shop", ns), pods.GroupVersionResource, replicaSets)))
		eventuallyPlaced(ctx, workload, documents(namespace(ns), till(ns, ""), bringingUp(placementOn("shop", ns), pods.GroupVersionResource, replicaSets)))
		onCluster := ownNamespace(ctx, workload, ns)
		for _, name := range []string{"florin", "guilder"} {
			Eventually(inSight).WithContext(ctx).WithArguments(workload, pods.GroupVersionResource, ns, name).Should(HaveLen(2))
		}
		Eventually(inSight).WithContext(ctx).WithArguments(other, pods.GroupVersionResource, ns, "florin").Should(HaveLen(2))
		Expect(inSight(ctx, other, pods.GroupVersionResource, ns, "florin")).NotTo(ContainElements(inSight(ctx, workload, pods.GroupVersionResource, ns, "florin")))

		By("each has the name of its cluster, its labels and its status, and leads to the Deployment of the workspace")
		name := inSight(ctx, workload, pods.GroupVersionResource, ns, "florin")[0]
		origin := strings.TrimSuffix(name, ".florin")
		Eventually(value).WithContext(ctx).WithArguments(workload.Config, pods.GroupVersionResource, ns, name, "status", "phase").Should(Equal("Running"))
		pod, err := framework.Get(ctx, workload.Config, pods.GroupVersionResource, ns, name)
		Expect(err).NotTo(HaveOccurred())
		Expect(pod.GetLabels()).To(And(HaveKeyWithValue("app", "till"), HaveKeyWithValue(edgev2alpha1.LabelOriginName, origin), HaveKeyWithValue(edgev2alpha1.LabelOriginNamespace, onCluster)))
		Expect(pod.GetFinalizers()).To(BeEmpty())
		Expect(pod.GetOwnerReferences()).To(HaveLen(1))
		replicaSet, err := framework.Get(ctx, workload.Config, replicaSets, ns, pod.GetOwnerReferences()[0].Name)
		Expect(err).NotTo(HaveOccurred())
		Expect(pod.GetOwnerReferences()[0].UID).To(Equal(replicaSet.GetUID()))
		deployment, err := framework.Get(ctx, workload.Config, deployments, ns, "till")
		Expect(err).NotTo(HaveOccurred())
		Expect(replicaSet.GetOwnerReferences()).To(HaveLen(1))
		Expect(replicaSet.GetOwnerReferences()[0].UID).To(Equal(deployment.GetUID()))
		Eventually(value).WithContext(ctx).WithArguments(workload.Config, edgePlacements, "", "shop", "status", "upsynced").Should(Equal("6"), "four Pods and two ReplicaSets")

		By("an expression combines them into one value")
		const running = `objects.filter(o, o.kind == "Pod" && o.status.phase == "Running" && o.metadata.labels["synchub.dev/sync-target"] == "%s").size()`
		combineInto(ctx, workload, "shop", fmt.Sprintf(`{"florin": dyn({"running": `+running+`}), "guilder": dyn({"running": `+running+`}), "all": dyn(objects.size())}`, "florin", "guilder"))
		combined := func() string { return value(ctx, workload.Config, edgePlacements, "", "shop", "status", "aggregation") }
		Eventually(combined).Should(Equal("map[all:6 florin:map[running:2] guilder:map[running:2]]"))

		By("a restart writes nothing")
		quiet(ctx)
		Expect(hub.Kill9()).To(Succeed())
		startHub(ctx)
		quiet(ctx)
		for kind := range requestCounts(ctx) {
			Expect(kind).To(ContainSubstring(" extra get "), "a restart may read, and writes nothing")
		}

		By("a field that the next expression lacks goes, and a mistake affects the value alone")
		combineInto(ctx, workload, "shop", `{"all": objects.size()}`)
		Eventually(combined).Should(Equal("map[all:6]"))
		combineInto(ctx, workload, "shop", `{"all": objects.map(o, o.nothing)}`)
		Eventually(placementCondition).WithContext(ctx).WithArguments(workload, "shop", edgev2alpha1.ConditionAggregated, "message").Should(ContainSubstring("no such key: nothing"))
		Expect(combined()).To(BeEmpty())
		Expect(readyStatus(ctx, workload, "shop")).To(Equal("True"))

		By("edits are put back")
		patch(ctx, workload.Config, pods.GroupVersionResource, ns, name, `{"metadata": {"labels": {"app": "mine", "more": "yes"}}, "spec": {"priority": 7}}`)
		Eventually(func() map[string]string {
			found, err := framework.Get(ctx, workload.Config, pods.GroupVersionResource, ns, name)
			Expect(err).NotTo(HaveOccurred())
			return found.GetLabels()
		}).Should(And(HaveKeyWithValue("app", "till"), Not(HaveKey("more"))))
		remove(ctx, workload.Config, pods.GroupVersionResource, ns, name)
		eventuallyExists(ctx, workload.Config, pods.GroupVersionResource, ns, name)
		Expect(framework.Exists(ctx, target("florin"), pods.GroupVersionResource, onCluster, origin)).To(BeTrue())
		Expect(framework.Exists(ctx, target("florin"), pods.GroupVersionResource, onCluster, name)).To(BeFalse(), "it is not placed")

		By("a name that a user has is not overwritten")
		apply(ctx, workload.Config, configMap(ns, "report.florin", "mine"))
		patch(ctx, workload.Config, edgePlacements, "", "shop", `{"spec": {"downsync": [{"namespaces": ["`+ns+`"], "apiGroup": "apps"}], "upsync": [{"resources": ["pods", "configmaps"], "namespaces": ["`+ns+`"], "names": ["*"], "to": "Workspace"}]}}`)
		for _, cluster := range []string{"florin", "guilder"} {
			apply(ctx, target(cluster), configMap(onCluster, "report", cluster))
		}
		eventuallyExists(ctx, workload.Config, configMaps, ns, "report.guilder")
		Eventually(value).WithContext(ctx).WithArguments(workload.Config, edgePlacements, "", "shop", "status", "failures").Should(And(ContainSubstring("report.florin"), ContainSubstring(plan.ReasonConflict)))
		Expect(value(ctx, workload.Config, configMaps, ns, "report.florin", "data", "entry")).To(Equal("mine"))
		Eventually(inSight).WithContext(ctx).WithArguments(workload, replicaSets, ns, "florin").Should(BeEmpty(), "its entry is gone")

		By("a deleted placement takes them away")
		remove(ctx, workload.Config, edgePlacements, "", "shop")
		for _, cluster := range []string{"florin", "guilder"} {
			Eventually(inSight).WithContext(ctx).WithArguments(workload, pods.GroupVersionResource, ns, cluster).Should(BeEmpty())
			Eventually(inSight).WithContext(ctx).WithArguments(workload, configMaps, ns, cluster).Should(BeEmpty())
		}
		Expect(value(ctx, workload.Config, configMaps, ns, "report.florin", "data", "entry")).To(Equal("mine"))
		Eventually(framework.Exists).WithContext(ctx).WithArguments(workload.Config, edgePlacements, "", "shop").Should(BeFalse())
	}, NodeTimeout(5*time.Minute))
})
