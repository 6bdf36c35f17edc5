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

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/provider/ledger"
	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/framework/installation"
)

// Variations of the other attacks, and mistakes of operators.
var _ = Describe("variations", thorough, Label("escapes"), func() {
	It("of objects that a tenant or a target's administrator writes affect only their own mailbox", func(ctx SpecContext) {
		const ns, kcpSystem = "variations", "kcp-system"
		inventory := sharedInventory()
		florin, guilder := target("florin"), target("guilder")
		victim, own := register(ctx, inventory, "guilder", "guilder"), register(ctx, inventory, "florin", "florin")
		config := syncerConfig(ns+"-up", fmt.Sprintf(`{upsync: [{apiGroup: "", resources: [configmaps], namespaces: [%s], names: [risen]}]}`, ns))
		apply(ctx, victim, documents(namespace(ns), configMap(ns, "settings", "theirs"), everythingIn(ns)))
		apply(ctx, own, documents(namespace(ns), everythingIn(ns), config))
		eventuallyExists(ctx, guilder, configMaps, ns, "settings")

		By("labelling an object as another mailbox's, where kcp allows it")
		of := syncTargetOf(ctx, inventory, "guilder").Status.Mailbox.Cluster
		_ = framework.Apply(ctx, own, strings.Replace(configMap(ns, "stray", "x"), "metadata: {", "metadata: {annotations: {kcp.io/cluster: "+of+"}, ", 1))
		By("writing the hub's labels and annotations")
		apply(ctx, own, strings.Replace(secret(ns, "credential"), "metadata: {",
			"metadata: {labels: {mine: x, synchub.dev/credential: kubeconfig}, annotations: {synchub.dev/allowed-sync-targets: guilder}, ", 1))
		eventuallyExists(ctx, florin, secrets, ns, "credential")
		Expect(value(ctx, florin, secrets, ns, "credential", "metadata", "labels")).To(And(ContainSubstring("mine"), Not(ContainSubstring("synchub.dev/credential"))))
		Expect(value(ctx, florin, secrets, ns, "credential", "metadata", "annotations")).NotTo(ContainSubstring("allowed-sync-targets"))
		Expect(identities(ctx, guilder, configMaps, ns, "stray")).To(BeEmpty())
		Expect(identities(ctx, victim, configMaps, ns, "stray")).To(BeEmpty())

		By("copying the mark of an upsynced object to another object")
		apply(ctx, florin, configMap(ns, "risen", "x"))
		eventuallyExists(ctx, own, configMaps, ns, "risen")
		above := readerOf(ctx, own)
		label, mark := above(configMaps, ns, "risen", "metadata", "labels", ownerLabel)(), above(configMaps, ns, "risen", "metadata", "annotations", markAnnotation)()
		Expect(mark).NotTo(BeEmpty())
		apply(ctx, own, strings.Replace(configMap(ns, "copy", "x"), "metadata: {", fmt.Sprintf("metadata: {labels: {%s: %s}, annotations: {%s: '%s'}, ", ownerLabel, label, markAnnotation, mark), 1))
		eventuallyExists(ctx, florin, configMaps, ns, "copy")
		remove(ctx, florin, configMaps, ns, "risen")
		eventuallyGone(ctx, own, configMaps, ns, "risen")
		Expect(identities(ctx, own, configMaps, ns, "copy")).To(HaveLen(1))

		By("bringing up a key for an APIExport of the mailbox")
		apply(ctx, florin, documents(namespace(kcpSystem), secret(kcpSystem, "widgets")))
		DeferCleanup(func(ctx SpecContext) { remove(ctx, florin, namespaces, "", kcpSystem) })
		apply(ctx, own, syncerConfig(ns+"-key", `{upsync: [{apiGroup: "", resources: [secrets], namespaces: [kcp-system], names: [widgets]}]}`))
		Eventually(readyOf).WithContext(ctx).WithArguments(own, ns+"-key").Should(HavePrefix("False NamespaceProtected"))
		patch(ctx, inventory.Config, syncTargets, "", "florin", `{"spec": {"namespaces": {"allowProtected": ["kcp-system"]}}}`)
		Eventually(failures).WithContext(ctx).WithArguments(own, ns+"-key").Should(ConsistOf("NameReserved widgets"))
		Expect(framework.Exists(ctx, own, secrets, kcpSystem, "widgets")).To(BeFalse())
	}, NodeTimeout(6*time.Minute))

	It("of a foreign mailbox workspace, a deleted ledger and a second hub are reported", SpecPriority(1), func(ctx SpecContext) {
		const ns = "premade"
		provider := synchub.InWorkspace(synchub.Workspace)
		By("creating the mailbox before the hub does")
		Expect(hub.Kill9()).To(Succeed())
		inventory := newInventory(ctx, ns)
		Expect(inventory.Register(ctx, "florin", kubeconfigOf("florin"), nil)).To(Succeed())
		syncTarget := syncTargetOf(ctx, inventory, "florin")
		name := fmt.Sprintf("%s-mb-%s", syncTarget.Annotations["kcp.io/cluster"], syncTarget.UID)
		apply(ctx, provider, fmt.Sprintf(`
apiVersion: tenancy.kcp.io/v1alpha1
kind: Workspace
metadata: {name: %s, annotations: {%s: florin}}
spec: {type: {name: mailbox, path: %s}}
`, name, edgev2alpha1.AnnotationSyncTargetName, synchub.Workspace))
		startHub(ctx)
		Eventually(reasonOf).WithContext(ctx).WithArguments(inventory, "florin", "MailboxReady").Should(Equal("ForeignWorkspace"))
		Expect(message(ctx, inventory.Config, syncTargets, "florin", "MailboxReady")).To(And(ContainSubstring("was made by"), ContainSubstring(synchub.HubUser)))
		Expect(syncTargetOf(ctx, inventory, "florin").Status.Mailbox).To(BeNil())
		By("creating it once the foreign one is deleted")
		// A kcp that is still initializing a workspace may never end its deletion.
		Eventually(value).WithContext(ctx).WithArguments(provider, workspaces, "", name, "status", "phase").Should(Equal("Ready"))
		remove(ctx, provider, workspaces, "", name)
		mailbox := mailboxOf(ctx, inventory, "florin")
		apply(ctx, mailbox, documents(namespace(ns), configMap(ns, "settings", "x"), everythingIn(ns)))
		eventuallyExists(ctx, target("florin"), configMaps, ns, "settings")
		placed := identities(ctx, target("florin"), configMaps, ns, "settings")

		By("deleting the ledger")
		Expect(hub.Kill9()).To(Succeed())
		remove(ctx, provider, configMaps, ledger.Namespace, string(syncTarget.UID))
		startHub(ctx)
		Eventually(noticesOf).WithContext(ctx).WithArguments(inventory, "florin").Should(ContainElement(HavePrefix("StateLost: ")))
		apply(ctx, mailbox, configMap(ns, "later", "x"))
		eventuallyExists(ctx, target("florin"), configMaps, ns, "later")
		Expect(identities(ctx, target("florin"), configMaps, ns, "settings")).To(Equal(placed))

		By("refusing to start a second hub with another Lease")
		elsewhere := ns + "-elsewhere"
		apply(ctx, target("hosting"), documents(namespace(elsewhere), fmt.Sprintf(`
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: leader, namespace: %s}
rules: [{apiGroups: [coordination.k8s.io], resources: [leases], verbs: [create, get, update]}]
`, elsewhere), fmt.Sprintf(`
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: leader, namespace: %s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: leader}
subjects: [{kind: ServiceAccount, name: %s, namespace: %s}]
`, elsewhere, installation.ServiceAccount, installation.Namespace)))
		another, err := synchub.StartHub("--leader-election-namespace", elsewhere)
		Expect(err).NotTo(HaveOccurred())
		Eventually(another.Ended).WithContext(ctx).Should(BeTrue())
		Expect(another.LogTail(30)).To(ContainSubstring("another hub works with this provider workspace"))
		apply(ctx, mailbox, configMap(ns, "last", "x"))
		eventuallyExists(ctx, target("florin"), configMaps, ns, "last")
	}, NodeTimeout(6*time.Minute))

	It("of a kubeconfig that is swapped during the deletion of its SyncTarget delete nothing on the other cluster", func(ctx SpecContext) {
		const ns = "swapped-leaving"
		inventory := newInventory(ctx, ns)
		one, other := register(ctx, inventory, "one", "florin"), register(ctx, inventory, "other", "guilder")
		florin, guilder := target("florin"), target("guilder")
		patch(ctx, inventory.Config, syncTargets, "", "one", `{"spec": {"deletionPolicy": "Delete"}}`)
		apply(ctx, one, documents(namespace(ns), configMap(ns, "of-one", "x"), configMap(ns, "blocked", "x"), everythingIn(ns)))
		apply(ctx, other, documents(namespace(ns), configMap(ns, "of-other", "x"), configMap(ns, "blocked", "x"), everythingIn(ns)))
		eventuallyExists(ctx, florin, configMaps, ns, "of-one")
		eventuallyExists(ctx, florin, configMaps, ns, "blocked")
		eventuallyExists(ctx, guilder, configMaps, ns, "blocked")
		eventuallyExists(ctx, guilder, configMaps, ns, "of-other")
		patch(ctx, florin, configMaps, ns, "blocked", `{"metadata": {"finalizers": ["example.com/hold"]}}`)
		// Kubernetes makes it when it likes to.
		eventuallyExists(ctx, guilder, configMaps, ns, "kube-root-ca.crt")
		before := identities(ctx, guilder, configMaps, ns, "")

		remove(ctx, inventory.Config, syncTargets, "", "one")
		eventuallyGone(ctx, florin, configMaps, ns, "of-one")
		setKubeconfig(ctx, inventory, "one", kubeconfigOf("guilder"))
		Eventually(reasonOf).WithContext(ctx).WithArguments(inventory, "one", "SyncerReady").Should(Equal("CleanupBlocked"))
		Expect(message(ctx, inventory.Config, syncTargets, "one", "Ready")).To(And(ContainSubstring("leads to another cluster"), ContainSubstring("configmaps")))
		staysFor(ctx, func() string { return fmt.Sprint(identities(ctx, guilder, configMaps, ns, "")) }, fmt.Sprint(before))
		By("continuing when the kubeconfig leads back")
		setKubeconfig(ctx, inventory, "one", kubeconfigOf("florin"))
		patch(ctx, florin, configMaps, ns, "blocked", `{"metadata": {"finalizers": null}}`)
		eventuallyGone(ctx, inventory.Config, syncTargets, "", "one")
		eventuallyGone(ctx, florin, configMaps, ns, "blocked")
		Expect(identities(ctx, guilder, configMaps, ns, "")).To(Equal(before))
		Expect(framework.Condition(ctx, inventory.Config, syncTargets, "", "other", "Ready")).To(Equal("True"))
	}, NodeTimeout(6*time.Minute))
})
