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
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/framework/installation"
)

// denaturedGroup has the APIs that would act inside kcp under their own group.
const denaturedGroup = "inert.example.com"

var quotasOfClusters = schema.GroupVersionResource{Version: "v1", Resource: "resourcequotas"}

var _ = Describe("placed objects under another API", thorough, Label("placement"), func() {
	It("have their own APIs and names only on the clusters", func(ctx SpecContext) {
		const ns, group = "placement-denatured", "denatured-placement.example.com"
		gates := custom(group, "v1", "gates", "Gate")
		barriers := custom(denaturedGroup, "v1beta1", "barriers", "Barrier")
		quotas := custom(denaturedGroup, "v1", "resourcequotas", "ResourceQuota")
		clusterRoles := custom(denaturedGroup, "v1", "clusterroles", "ClusterRole")

		By("the operator publishes APIs under another group")
		apply(ctx, target("hosting"), fmt.Sprintf(`
apiVersion: v1
kind: ConfigMap
metadata: {name: schema-denatured-gates, namespace: %s}
data:
  crd.yaml: |
    %s
`, installation.Namespace, strings.ReplaceAll(gates.definition(), "\n", "\n    ")))
		inertGroup := "\n  projection: {group: " + denaturedGroup + "}"
		publishAs(ctx, "denatured-resourcequotas", `
  resource: {group: "", resource: resourcequotas, kind: ResourceQuota, version: v1}`+inertGroup)
		publishAs(ctx, "denatured-clusterroles", `
  resource: {group: rbac.authorization.k8s.io, resource: clusterroles, kind: ClusterRole, version: v1}`+inertGroup)
		publishAs(ctx, "denatured-definitions", `
  resource: {group: apiextensions.k8s.io, resource: customresourcedefinitions, kind: CustomResourceDefinition, version: v1}`+inertGroup)
		publishAs(ctx, "denatured-gates", fmt.Sprintf(`
  resource: {group: %s, resource: gates, kind: Gate, version: v1}
  projection: {group: %s, kind: Barrier, plural: barriers, version: v1beta1}
  api: {schemaFrom: {configMap: {name: schema-denatured-gates}}}
  naming: {name: '{{ .Object.metadata.name | trimPrefix "denatured-" }}'}`, group, denaturedGroup))
		eventuallyPublished(ctx, "denatured-resourcequotas", "denatured-clusterroles", "denatured-definitions", "denatured-gates")

		inventory, workload := newInventory(ctx, ns), newWorkload(ctx, ns+"-workload")
		for _, name := range []string{"florin", "guilder"} {
			Expect(inventory.Register(ctx, name, kubeconfigOf(name), map[string]string{"env": "prod"})).To(Succeed())
		}
		apply(ctx, inventory.Config, location("prod", "prod", workload.Path))

		eventuallyPlaced(ctx, workload, documents(namespace(ns),
			quotas.object(ns, "small", `spec: {hard: {configmaps: "5"}}`),
			clusterRoles.object("", ns, `rules: [{apiGroups: [`+group+`], resources: [gates], verbs: [get]}]`),
			strings.Replace(gates.definition(), "apiextensions.k8s.io/v1", denaturedGroup+"/v1", 1),
			barriers.object(ns, "denatured-north", "spec: {open: true}"),
			fmt.Sprintf(`
apiVersion: edge.kubestellar.io/v2alpha1
kind: EdgePlacement
metadata: {name: shop}
spec:
  locationSelectors: [{matchLabels: {env: prod}}]
  downsync:
  - {namespaces: [%[2]s]}
  - {apiGroup: %[1]s, resources: [clusterroles], objectNames: [%[2]s]}
  - {apiGroup: %[1]s, resources: [customresourcedefinitions], objectNames: [%[3]s]}
`, denaturedGroup, ns, gates.GroupResource())))
		for _, name := range []string{"florin", "guilder"} {
			eventuallyHas(ctx, target(name), quotasOfClusters, ns, "small", "5", "status", "hard", "configmaps")
			eventuallyHas(ctx, target(name), definitions, "", gates.GroupResource().String(), "Gate", "spec", "names", "kind")
			eventuallyHas(ctx, target(name), gates.GroupVersionResource, ns, "north", "true", "spec", "open")
			eventuallyExists(ctx, target(name), accessV1.WithResource("clusterroles"), "", ns)
			mailbox := mailboxOf(ctx, inventory, name)
			eventuallyHas(ctx, mailbox, quotas.GroupVersionResource, ns, "small", "5", "status", "hard", "configmaps")
			for _, config := range []*rest.Config{workload.Config, mailbox} {
				Expect(framework.Exists(ctx, config, accessV1.WithResource("clusterroles"), "", ns)).To(BeFalse())
				Expect(framework.Exists(ctx, config, definitions, "", gates.GroupResource().String())).To(BeFalse())
				Expect(framework.Exists(ctx, config, quotasOfClusters, ns, "small")).To(BeFalse())
			}
		}

		By("withdrawing the placement removes them from the clusters")
		remove(ctx, workload.Config, edgePlacements, "", "shop")
		for _, name := range []string{"florin", "guilder"} {
			eventuallyGone(ctx, target(name), gates.GroupVersionResource, ns, "north")
			eventuallyGone(ctx, target(name), quotasOfClusters, ns, "small")
			eventuallyGone(ctx, target(name), accessV1.WithResource("clusterroles"), "", ns)
			// The hub keeps definitions, whose deletion would delete their objects.
			remove(ctx, target(name), definitions, "", gates.GroupResource().String())
		}
	}, NodeTimeout(4*time.Minute))
})
