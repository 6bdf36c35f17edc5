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
	"github.com/synchub-dev/synchub/test/framework/installation"
)

// Attempts of a target's administrator, or of a user of a mailbox, to reach the other side.
var _ = Describe("routes between workspaces and targets without permission", thorough, Label("escapes"), func() {
	It("upsync no rights from a target to its mailbox, unless the PublishedResource allows it explicitly", func(ctx SpecContext) {
		const ns = "escape-rights"
		created := packages("escape-rights.example.com")
		created.clusterScoped = true
		hosting := target("hosting")
		publishOnTarget(ctx, created)
		define(ctx, hosting, created)
		mailbox := sharedMailbox(ctx, "hosting")
		grant := func(name string) string {
			return fmt.Sprintf(`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: %q, labels: {synchub.dev/mailbox-access: "true"}}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: mallory}]
`, name)
		}
		reserved, disguised := "synchub:escape-rights", "escape-rights-disguised"
		apply(ctx, hosting, documents(grant(ns), grant(reserved), created.object("", disguised, `
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: mallory}]`)))
		DeferCleanup(func(ctx SpecContext) {
			remove(ctx, hosting, clusterRoleBindings, "", ns)
			remove(ctx, hosting, clusterRoleBindings, "", reserved)
		})
		selected := fmt.Sprintf(`{upsync: [{apiGroup: rbac.authorization.k8s.io, resources: [clusterrolebindings], names: [%q, %q]}]}`, ns, reserved)
		apply(ctx, mailbox, documents(syncerConfig(ns, selected),
			config(ns+"-converted", fmt.Sprintf(`
  upsync:
  - {apiGroup: %s, resources: [packages], names: ["*"]}`, created.Group),
				renaming("group: rbac.authorization.k8s.io, kind: ClusterRoleBinding", "group: "+created.Group+", kind: Package")),
			fmt.Sprintf(`
apiVersion: edge.kubestellar.io/v2alpha1
kind: EdgeSyncConfig
metadata: {name: %[1]s}
spec:
  upSyncedResources:
  - {group: rbac.authorization.k8s.io, version: v1, kind: ClusterRoleBinding, name: %[1]s}
`, ns)))

		By("reporting the reason and the entry on each config")
		refused := And(HavePrefix("False PrivilegedUpsync"), ContainSubstring("spec.upsync[0].resources[0]"), ContainSubstring("spec.privilegedUpsync"))
		Eventually(readyOf).WithContext(ctx).WithArguments(mailbox, ns).Should(refused)
		Eventually(readyOf).WithContext(ctx).WithArguments(mailbox, ns+"-converted").Should(refused)
		Eventually(framework.Condition).WithContext(ctx).WithArguments(mailbox, edgeSyncConfigs, "", ns, "Ready").Should(Equal("False"))
		granted := func() string {
			found := ""
			for _, name := range []string{ns, reserved, disguised} {
				exists, err := framework.Exists(ctx, mailbox, clusterRoleBindings, "", name)
				Expect(err).NotTo(HaveOccurred())
				if exists {
					found += name + " "
				}
			}
			return found
		}
		staysFor(ctx, granted, "")

		By("upsyncing it where the operator allows it, except for reserved names, and without the hub's own label")
		allow := func(ctx SpecContext, policy string) {
			GinkgoHelper()
			patch(ctx, target("hosting"), publishedResources, "", "clusterrolebindings", fmt.Sprintf(`{"spec": {"privilegedUpsync": %s}}`, policy))
		}
		DeferCleanup(func(ctx SpecContext) { allow(ctx, "null") })
		allow(ctx, `"TargetGovernsMailbox"`)
		eventuallyExists(ctx, mailbox, clusterRoleBindings, "", ns)
		Expect(value(ctx, mailbox, clusterRoleBindings, "", ns, "metadata", "labels")).NotTo(ContainSubstring("mailbox-access"))
		Eventually(failures).WithContext(ctx).WithArguments(mailbox, ns).Should(ConsistOf("NameReserved " + reserved))
		By("keeping and reporting upsynced objects after the permission is revoked, until they are no longer selected")
		allow(ctx, "null")
		Eventually(failures).WithContext(ctx).WithArguments(mailbox, ns).Should(ContainElement("PrivilegedUpsync " + ns))
		staysFor(ctx, granted, ns+" ")
		remove(ctx, mailbox, edgeSyncConfigs, "", ns)
		remove(ctx, mailbox, syncerConfigs, "", ns)
		eventuallyGone(ctx, mailbox, clusterRoleBindings, "", ns)
	}, NodeTimeout(2*time.Minute))

	It("do not bypass the operator's naming by a conversion, nor reach unpublished kinds", func(ctx SpecContext) {
		const ns, group, mine = "escape-names", "escape-names.example.com", "tenant-escape-names"
		crates, pallets, skids := custom(group, "v1", "crates", "Crate"), custom(group, "v1", "pallets", "Pallet"), custom(group, "v1", "skids", "Skid")
		hosting := target("hosting")
		publish(ctx, crates, pallets)
		patch(ctx, hosting, publishedResources, "", "crates", `{"spec": {"naming": {"namespace": "tenant-{{ .Object.metadata.namespace }}"}}}`)
		define(ctx, hosting, crates, pallets, skids)
		mailbox := sharedMailbox(ctx, "hosting")
		apply(ctx, mailbox, documents(namespace(ns), crates.object(ns, "renamed", "spec: {}"), crates.object(ns, "as-pallet", "spec: {}"), crates.object(ns, "as-skid", "spec: {}"),
			config(ns, goingDown(ns, crates),
				renaming("group: "+group+", kind: Crate, name: renamed", "group: "+group+", kind: Crate, name: otherwise"),
				renaming("group: "+group+", kind: Crate, name: as-pallet", "group: "+group+", kind: Pallet, name: as-pallet"),
				renaming("group: "+group+", kind: Crate, name: as-skid", "group: "+group+", kind: Skid, name: as-skid"))))

		By("applying the operator's naming to the name from a conversion")
		eventuallyExists(ctx, hosting, crates.GroupVersionResource, mine, "otherwise")
		By("reporting rejected conversions, and pending objects")
		Eventually(failures).WithContext(ctx).WithArguments(mailbox, ns).Should(ConsistOf("ConversionBypassesRules as-pallet", "ConversionNotPublished as-skid"))
		Expect(readyOf(ctx, mailbox, ns)).To(And(HavePrefix("False Conversion"), ContainSubstring("spec.conversions[1]"), ContainSubstring("spec.naming"),
			ContainSubstring("spec.conversions[2] (Skid."+group+")")))
		staysFor(ctx, func() string {
			return fmt.Sprint(len(identities(ctx, hosting, crates.GroupVersionResource, ns, "")),
				len(identities(ctx, hosting, pallets.GroupVersionResource, "", "")), len(identities(ctx, hosting, skids.GroupVersionResource, "", "")))
		}, "0 0 0")
		By("converting once somebody publishes that kind, with the same naming")
		publish(ctx, skids)
		patch(ctx, hosting, publishedResources, "", "skids", `{"spec": {"naming": {"namespace": "tenant-{{ .Object.metadata.namespace }}"}}}`)
		eventuallyExists(ctx, hosting, skids.GroupVersionResource, mine, "as-skid")
		Expect(identities(ctx, hosting, skids.GroupVersionResource, ns, "")).To(BeEmpty())
	}, NodeTimeout(2*time.Minute))

	It("neither reach nor leave protected namespaces, unless a SyncTarget or a PublishedResource allows it", func(ctx SpecContext) {
		const ns, elsewhere, below = "escape-spaces", "escape-spaces-elsewhere", "below-escape-spaces"
		hosting := target("hosting")
		inventory := sharedInventory()
		mailbox := register(ctx, inventory, "hosting", "hosting")
		apply(ctx, hosting, secret("kube-system", below))
		DeferCleanup(func(ctx SpecContext) {
			remove(ctx, hosting, secrets, "kube-system", below)
			remove(ctx, hosting, secrets, "kube-system", ns)
		})
		apply(ctx, mailbox, documents(namespace(ns), namespace(elsewhere), namespace("kube-system"), namespace("kube-escape-spaces"),
			secret("kube-system", ns), deployment("kube-system", ns), configMap(elsewhere, ns, "x"),
			syncerConfig(ns, fmt.Sprintf(`{
			namespaceScope: {namespaces: [kube-system], resources: [{group: "", resource: secrets}, {group: apps, resource: deployments}]},
			namespacedObjects: [{group: "", resource: configmaps, objectsByNamespace: [{namespace: %[1]s, names: [%[2]s]}]}],
			clusterScope: [{group: "", resource: namespaces, objects: [kube-escape-spaces]}]}`, elsewhere, ns)),
			syncerConfig(ns+"-up", fmt.Sprintf(`{upsync: [{apiGroup: "", resources: [secrets], namespaces: [kube-system], names: [%s]}]}`, below))))
		eventuallyExists(ctx, hosting, configMaps, elsewhere, ns)
		Eventually(failures).WithContext(ctx).WithArguments(mailbox, ns).Should(ConsistOf("NamespaceProtected "+ns, "NamespaceProtected "+ns, "NamespaceProtected kube-escape-spaces"))
		Expect(failureMessage(ctx, mailbox, ns, ns)).To(ContainSubstring("spec.namespaces.allowProtected"))
		Eventually(readyOf).WithContext(ctx).WithArguments(mailbox, ns+"-up").Should(And(HavePrefix("False NamespaceProtected"), ContainSubstring("spec.upsync[0]"), ContainSubstring("kube-system")))
		reached := func() string {
			return fmt.Sprintf("%v %v %v", identities(ctx, hosting, secrets, "kube-system", ns), identities(ctx, hosting, deployments, "kube-system", ns),
				identities(ctx, mailbox, secrets, "kube-system", below))
		}
		staysFor(ctx, reached, "map[] map[] map[]")
		Expect(framework.Exists(ctx, hosting, namespaces, "", "kube-escape-spaces")).To(BeFalse())

		By("allowing it for one SyncTarget, without a restart")
		bound := func(namespaces string) {
			patch(ctx, inventory.Config, installation.SyncTargets, "", "hosting", `{"spec": {"namespaces": `+namespaces+`}}`)
		}
		bound(`{"allowProtected": ["kube-s*"]}`)
		eventuallyExists(ctx, hosting, secrets, "kube-system", ns)
		eventuallyExists(ctx, hosting, deployments, "kube-system", ns)
		eventuallyExists(ctx, mailbox, secrets, "kube-system", below)
		Eventually(readyOf).WithContext(ctx).WithArguments(mailbox, ns+"-up").Should(HavePrefix("True"))

		By("keeping and reporting existing objects after the permission is revoked")
		placed := reached()
		bound(fmt.Sprintf(`{"allowProtected": null, "only": [%q]}`, ns))
		Eventually(failures).WithContext(ctx).WithArguments(mailbox, ns).Should(ContainElements("NamespaceNotAllowed "+ns, "NamespaceNotAllowed kube-escape-spaces"))
		Eventually(failures).WithContext(ctx).WithArguments(mailbox, ns+"-up").Should(ConsistOf("NamespaceNotAllowed " + below))
		patch(ctx, mailbox, secrets, "kube-system", ns, `{"stringData": {"token": "changed"}}`)
		patch(ctx, mailbox, configMaps, elsewhere, ns, `{"data": {"entry": "changed"}}`)
		staysFor(ctx, reached, placed)
		Expect(value(ctx, hosting, configMaps, elsewhere, ns, "data", "entry")).To(Equal("x"))

		By("allowing it for one PublishedResource")
		allow := func(ctx SpecContext, policy string) {
			GinkgoHelper()
			patch(ctx, target("hosting"), publishedResources, "", "secrets", fmt.Sprintf(`{"spec": {"protectedNamespaces": %s}}`, policy))
		}
		DeferCleanup(func(ctx SpecContext) { allow(ctx, "null") })
		allow(ctx, `"Allow"`)
		bound("null")
		eventuallyHas(ctx, hosting, secrets, "kube-system", ns, "Y2hhbmdlZA==", "data", "token")
		Eventually(failures).WithContext(ctx).WithArguments(mailbox, ns).Should(ConsistOf("NamespaceProtected "+ns, "NamespaceProtected kube-escape-spaces"))
	}, NodeTimeout(2*time.Minute))
})
