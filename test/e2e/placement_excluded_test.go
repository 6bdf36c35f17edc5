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
)

var _ = Describe("objects that cannot be placed", thorough, Label("placement"), func() {
	It("block no other object, and are counted and named like unselected objects", func(ctx SpecContext) {
		const ns = "placement-excluded"
		inventory, workload := newInventory(ctx, ns), newWorkload(ctx, ns+"-workload")
		for _, name := range []string{"florin", "guilder"} {
			Expect(inventory.Register(ctx, name, kubeconfigOf(name), map[string]string{"env": "prod"})).To(Succeed())
		}
		apply(ctx, inventory.Config, location("prod", "prod", workload.Path))
		role := func(kind, metadata string) string {
			return fmt.Sprintf("apiVersion: rbac.authorization.k8s.io/v1\nkind: %s\nmetadata: {%s}\nrules: []\n", kind, metadata)
		}
		for _, name := range []string{"florin", "guilder"} {
			apply(ctx, target(name), documents(namespace(ns), configMap(ns, "taken", "theirs")))
		}
		apply(ctx, workload.Config, documents(namespace(ns), namespace("kube-system"), configMap(ns, "prices", "1"), configMap(ns, "taken", "ours"),
			role("ClusterRole", "name: "+ns), role("ClusterRole", "name: 'system:"+ns+"'"), configMap("kube-system", ns, "1")))
		eventuallyPlaced(ctx, workload, placementOn("shop", ns)+"  rolloutStrategy: {type: Progressive, progressive: {maxConcurrency: 1}}\n")

		By("the rollout continues with the second cluster, and reports the missing object at its end")
		for _, name := range []string{"florin", "guilder"} {
			eventuallyExists(ctx, target(name), configMaps, ns, "prices")
		}
		Eventually(placementCondition).WithContext(ctx).WithArguments(workload, "shop", edgev2alpha1.ConditionRolledOut, "reason").Should(Equal(rules.ReasonObjectsFailed))
		Expect(placementCondition(ctx, workload, "shop", edgev2alpha1.ConditionRolledOut, "message")).To(ContainSubstring("configmaps " + ns + "/taken on florin (Conflict)"))

		By("all other objects are counted with their reasons")
		excluded := readerOf(ctx, workload.Config)(edgePlacements, "", "shop", "status", "excludedObjects")
		Eventually(excluded).WithContext(ctx).Should(And(ContainSubstring("NotSelected"), ContainSubstring("SystemName"), ContainSubstring("SystemNamespace"), Not(ContainSubstring("workspace-admin"))))
		Expect(value(ctx, workload.Config, edgePlacements, "", "shop", "status", "excluded")).To(Equal("3"))
		Expect(runPlugin(ctx, workload.Path, "describe", "placement", "shop")).To(And(ContainSubstring("2 selected, 3 not placed"), ContainSubstring("Not Placed:")))

		By("objects that kcp creates in every workspace are not counted")
		patch(ctx, workload.Config, edgePlacements, "", "shop", fmt.Sprintf(
			`{"spec": {"downsync": [{"namespaces": [%q], "resources": ["configmaps"], "objectNames": ["prices"]}, {"apiGroup": "rbac.authorization.k8s.io", "resources": ["clusterrolebindings"]}]}}`, ns))
		Eventually(readyStatus).WithContext(ctx).WithArguments(workload, "shop").Should(Equal("True"))
	}, NodeTimeout(4*time.Minute))
})
