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
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/framework/installation"
)

// These specs repeat KubeStellar's tests of its syncer with the hub, where no other spec covers them. Mailboxes have the
// custom resources from PublishedResources, and targets from CRDs that somebody installed there; CRDs in a mailbox are
// synced as objects.
var _ = Describe("compatibility with KubeStellar's syncer", func() {
	It("follows an EdgeSyncConfig down and up", func(ctx SpecContext) {
		const ns = "edge-sync-config"
		jigs, unknown := custom("tools.example.com", "v1", "jigs", "Jig"), custom("tools.example.com", "v1", "clamps", "Clamp")
		packages := packages("edge.tools.example.com")
		publish(ctx, jigs, parcels)
		publishOnTarget(ctx, packages)
		guilder := target("guilder")
		define(ctx, guilder, jigs, packages)
		mailbox := sharedMailbox(ctx, "guilder")
		apply(ctx, mailbox, documents(namespace(ns), configMap(ns, "settings", "x"), configMap(ns, "other", "x"),
			unknown.definition(), jigs.object(ns, "above", "spec: {foo: bar}"), fmt.Sprintf(`
apiVersion: edge.kubestellar.io/v2alpha1
kind: EdgeSyncConfig
metadata: {name: %[1]s}
spec:
  downSyncedResources:
  - {version: v1, kind: Namespace, name: %[1]s}
  - {version: v1, kind: ConfigMap, namespace: %[1]s, name: settings}
  - {group: apiextensions.k8s.io, version: v1, kind: CustomResourceDefinition, name: %[2]s}
  - {group: %[3]s, version: v1, kind: Jig, namespace: %[1]s, name: above}
  upSyncedResources:
  - {group: %[3]s, version: v1, kind: Jig, namespace: %[1]s, name: below}
  - {group: above.example.com, version: v1, kind: Parcel, namespace: %[1]s, name: "*"}
  conversions:
  - {upstream: {version: v1, kind: ConfigMap, name: settings}, downstream: {version: v1, kind: ConfigMap, name: renamed}}
  - {upstream: {group: above.example.com, version: v1, kind: Parcel}, downstream: {group: %[4]s, version: v1beta1, kind: Package}}
`, ns, unknown.GroupResource(), jigs.Group, packages.Group)))
		eventuallyExists(ctx, guilder, configMaps, ns, "renamed")
		eventuallyHas(ctx, guilder, jigs.GroupVersionResource, ns, "above", "bar", "spec", "foo")
		Eventually(framework.Condition).WithContext(ctx).WithArguments(guilder, definitions, "", unknown.GroupResource().String(), "Established").Should(Equal("True"))
		apply(ctx, guilder, jigs.object(ns, "below", "spec: {foo: bar}"))
		eventuallyHas(ctx, mailbox, jigs.GroupVersionResource, ns, "below", "bar", "spec", "foo")
		apply(ctx, guilder, packages.object(ns, "named-as-above", "spec: {weight: 1, paper: brown}"))
		eventuallyHas(ctx, mailbox, parcels.GroupVersionResource, ns, "named-as-above", "1", "spec", "weight")
		Eventually(framework.Condition).WithContext(ctx).WithArguments(mailbox, edgeSyncConfigs, "", ns, "Ready").Should(Equal("True"))
		Expect(framework.Exists(ctx, guilder, configMaps, ns, "other")).To(BeFalse())
	}, NodeTimeout(2*time.Minute))

	It("follows SyncerConfigs with names, with wildcards, and with names that do not exist", func(ctx SpecContext) {
		const ns = "syncer-configs"
		tools := custom("tools.example.com", "v1", "tools", "Tool")
		spares := custom("tools.example.com", "v1", "spares", "Spare")
		shelves := api{GroupVersionResource: tools.GroupVersion().WithResource("shelves"), kind: "Shelf", clusterScoped: true}
		publish(ctx, tools)
		inventory := sharedInventory()
		// The same objects go to three targets, each by another config.
		upByName := fmt.Sprintf(`
  upsync:
  - {apiGroup: %s, resources: [tools], namespaces: [%s], names: [below]}`, tools.Group, ns)
		definitionsByName := fmt.Sprintf(`
  clusterScope:
  - {group: apiextensions.k8s.io, resource: customresourcedefinitions, apiVersion: v1, objects: [%s, %s]}`, spares.GroupResource(), shelves.GroupResource())
		configs := map[string]string{
			"florin": fmt.Sprintf(`
  namespaceScope:
    namespaces: [%s]
    resources:
    - {group: "", resource: configmaps, apiVersion: v1}
    - {group: %s, resource: tools, apiVersion: v1}`, ns, tools.Group) + definitionsByName + upByName,
			"guilder": fmt.Sprintf(`
  namespaceScope:
    namespaces: [%s]
    resources:
    - {group: "", resource: "*", apiVersion: v1}
    - {group: %[2]s, resource: "*", apiVersion: v1}
  clusterScope:
  - {group: apiextensions.k8s.io, resource: customresourcedefinitions, apiVersion: v1, objects: ["*"], labelSelector: {matchLabels: {spec: %[1]s}}}
  upsync:
  - {apiGroup: %[2]s, resources: ["*"], namespaces: ["*"], names: [below]}`, ns, tools.Group),
			"hosting": fmt.Sprintf(`
  namespacedObjects:
  - {group: "", resource: configmaps, apiVersion: v1, objectsByNamespace: [{namespace: %[1]s, names: [settings, never-made]}, {namespace: never-made, names: [settings]}]}
  - {group: %[2]s, resource: tools, apiVersion: v1, objectsByNamespace: [{namespace: %[1]s, names: [above]}]}`, ns, tools.Group) + definitionsByName + upByName,
		}
		registerAll(ctx, inventory, "florin", "guilder", "hosting")
		labelled := func(api api) string {
			return strings.Replace(api.definition(), "metadata: {", "metadata: {labels: {spec: "+ns+"}, ", 1)
		}
		for name := range configs {
			define(ctx, target(name), tools)
			apply(ctx, mailboxOf(ctx, inventory, name), documents(namespace(ns), labelled(spares), labelled(shelves),
				configMap(ns, "settings", "x"), tools.object(ns, "above", "spec: {foo: bar}"), config(ns, configs[name])))
		}
		for name := range configs {
			cluster, mailbox := target(name), mailboxOf(ctx, inventory, name)
			By("downsyncing to " + name)
			eventuallyHas(ctx, cluster, configMaps, ns, "settings", "x", "data", "entry")
			eventuallyHas(ctx, cluster, tools.GroupVersionResource, ns, "above", "bar", "spec", "foo")
			for _, definition := range []api{spares, shelves} {
				Eventually(framework.Condition).WithContext(ctx).WithArguments(cluster, definitions, "", definition.GroupResource().String(), "Established").Should(Equal("True"))
			}
			By("upsyncing from " + name)
			apply(ctx, cluster, tools.object(ns, "below", "spec: {foo: bar, size: 1}"))
			eventuallyHas(ctx, mailbox, tools.GroupVersionResource, ns, "below", "bar", "spec", "foo")
			patch(ctx, cluster, tools.GroupVersionResource, ns, "below", `{"spec": {"foo": "bar update"}}`)
			eventuallyHas(ctx, mailbox, tools.GroupVersionResource, ns, "below", "bar update", "spec", "foo")
			Eventually(readyOf).WithContext(ctx).WithArguments(mailbox, ns).Should(HavePrefix("True"))
			Expect(framework.Exists(ctx, cluster, namespaces, "", "never-made")).To(BeFalse())
		}
	}, NodeTimeout(2*time.Minute))
})

// registerAll creates SyncTargets for some clusters of the suite, with the names of the clusters.
func registerAll(ctx context.Context, inventory *installation.Inventory, targets ...string) {
	GinkgoHelper()
	for _, name := range targets {
		Expect(inventory.Register(ctx, name, kubeconfigOf(name), nil)).To(Succeed())
	}
}
