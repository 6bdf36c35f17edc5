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
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/framework/faults"
	"github.com/synchub-dev/synchub/test/framework/installation"
)

var clusterRoleBindings = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterrolebindings"}

var _ = Describe("drain, deletion and access", func() {
	It("continues after the hub was killed", thorough, func(ctx SpecContext) {
		const ns = "killed-departing"
		inventory := newInventory(ctx, ns)
		mailbox := register(ctx, inventory, "florin", "florin")
		apply(ctx, mailbox, documents(namespace(ns), configMap(ns, "blocked", "x"), configMap(ns, "settings", "x"), secret(ns, "key"), deployment(ns, "web"), everythingIn(ns)))
		eventuallyExists(ctx, target("florin"), configMaps, ns, "blocked")
		eventuallyExists(ctx, target("florin"), configMaps, ns, "settings")
		eventuallyExists(ctx, target("florin"), secrets, ns, "key")
		eventuallyExists(ctx, target("florin"), deployments, ns, "web")
		workspace := workspaceOf(ctx, inventory, "florin")
		patch(ctx, target("florin"), configMaps, ns, "blocked", `{"metadata": {"finalizers": ["drain.example.com/blocked"]}}`)
		apply(ctx, target("florin"), configMap(ns, "local", "x"))

		patch(ctx, inventory.Config, syncTargets, "", "florin", `{"spec": {"deletionPolicy": "Delete"}}`)
		remove(ctx, inventory.Config, syncTargets, "", "florin")
		Eventually(value).WithContext(ctx).WithArguments(inventory.Config, syncTargets, "", "florin", "status", "cleanup", "left").Should(And(ContainSubstring("blocked"), ContainSubstring("Terminating")))
		Expect(hub.Kill9()).To(Succeed())
		startHub(ctx)
		patch(ctx, target("florin"), configMaps, ns, "blocked", `{"metadata": {"finalizers": null}}`)
		eventuallyGone(ctx, inventory.Config, syncTargets, "", "florin")
		for resource, name := range map[schema.GroupVersionResource]string{configMaps: "settings", secrets: "key", deployments: "web"} {
			Expect(framework.Exists(ctx, target("florin"), resource, ns, name)).To(BeFalse(), name)
		}
		Expect(framework.Exists(ctx, target("florin"), configMaps, ns, "blocked")).To(BeFalse())
		eventuallyGone(ctx, synchub.InWorkspace(synchub.Workspace), workspaces, "", workspace)
		By("keeping foreign objects")
		Expect(framework.Exists(ctx, target("florin"), configMaps, ns, "local")).To(BeTrue())
	}, NodeTimeout(4*time.Minute))

	It("waits for an unreachable target when its SyncTarget is deleted, and skips the cleanup when forced", thorough, func(ctx SpecContext) {
		const ns, group = "forced", "forced.example.com"
		proxy := newProxy(ctx, clusters["florin"])
		gvr := publishWaiting(ctx, "florin", group, ns)
		inventory := newInventory(ctx, ns)
		Expect(inventory.Register(ctx, ns, kubeconfigBy(proxy), nil)).To(Succeed())
		mailbox := mailboxOf(ctx, inventory, ns)
		apply(ctx, mailbox, documents(namespace(ns), custom(group, "v1", "widgets", "Widget").object(ns, "blocked", "spec: {}"), selecting(ns, gvr)))
		eventuallyExists(ctx, target("florin"), gvr, ns, "blocked")
		Expect(value(ctx, mailbox, gvr, ns, "blocked", "metadata", "finalizers")).To(ContainSubstring("wait-for-target"))
		workspace := workspaceOf(ctx, inventory, ns)

		Expect(proxy.Set(ctx, faults.Refused)).To(Succeed())
		remove(ctx, inventory.Config, syncTargets, "", ns)
		Eventually(message).WithContext(ctx).WithArguments(inventory.Config, syncTargets, ns, "Ready").Should(And(ContainSubstring("widgets."+group), ContainSubstring("waits")))
		patch(ctx, inventory.Config, syncTargets, "", ns, `{"metadata": {"annotations": {"synchub.dev/force-removal": "true"}}}`)
		eventuallyGone(ctx, inventory.Config, syncTargets, "", ns)
		eventuallyGone(ctx, synchub.InWorkspace(synchub.Workspace), workspaces, "", workspace)
		Expect(noticesOf(ctx, inventory, ns)).To(ContainElement(And(HavePrefix("RemovalForced"), ContainSubstring("widgets."+group))))
	}, NodeTimeout(4*time.Minute))

	It("deletes all copies from a drained target, and creates them again afterwards", func(ctx SpecContext) {
		const ns = "drained"
		inventory := newInventory(ctx, ns)
		mailbox := register(ctx, inventory, "florin", "florin")
		apply(ctx, mailbox, documents(namespace(ns), configMap(ns, "settings", "x"), deployment(ns, "web"), everythingIn(ns), selectingNamespace(ns)))
		eventuallyExists(ctx, target("florin"), configMaps, ns, "settings")
		eventuallyMarked(ctx, namespaces, "", ns, "Delete")

		patch(ctx, inventory.Config, syncTargets, "", "florin", `{"spec": {"drain": true}}`)
		Eventually(framework.Condition).WithContext(ctx).WithArguments(inventory.Config, syncTargets, "", "florin", "Drained").Should(Equal("True"))
		Expect(framework.Exists(ctx, target("florin"), configMaps, ns, "settings")).To(BeFalse())
		Expect(framework.Exists(ctx, target("florin"), deployments, ns, "web")).To(BeFalse())
		syncTarget, err := inventory.SyncTarget(ctx, "florin")
		Expect(err).NotTo(HaveOccurred())
		Expect(syncTarget.Status.Cleanup.Remaining).To(HaveValue(BeZero()))
		Expect(fmt.Sprint(syncTarget.Status.Cleanup.Left)).To(ContainSubstring(ns + " NotCascading"))
		By("placing nothing while it is drained")
		apply(ctx, mailbox, configMap(ns, "late", "x"))
		Consistently(framework.Exists).WithContext(ctx).WithArguments(target("florin"), configMaps, ns, "late").WithTimeout(2 * time.Second).Should(BeFalse())

		patch(ctx, inventory.Config, syncTargets, "", "florin", `{"spec": {"drain": false}}`)
		for _, name := range []string{"settings", "late"} {
			eventuallyExists(ctx, target("florin"), configMaps, ns, name)
		}
		eventuallyExists(ctx, target("florin"), deployments, ns, "web")
		Eventually(value).WithContext(ctx).WithArguments(inventory.Config, syncTargets, "", "florin", "status", "cleanup").Should(BeEmpty())
		Eventually(framework.Condition).WithContext(ctx).WithArguments(mailbox, syncerConfigs, "", ns, "Ready").Should(Equal("True"))
	}, NodeTimeout(3*time.Minute))

	It("grants users their rights in the mailbox, and revokes them", func(ctx SpecContext) {
		inventory := sharedInventory()
		mailbox := register(ctx, inventory, "florin", "florin")
		patch(ctx, inventory.Config, syncTargets, "", "florin", `{"spec": {"mailboxAccess": [
			{"clusterRole": "view", "subjects": [{"kind": "User", "name": "alice"}]}, {"clusterRole": "edit", "subjects": [{"kind": "Group", "name": "crew"}]}]}}`)
		Eventually(value).WithContext(ctx).WithArguments(mailbox, clusterRoleBindings, "", "synchub:view", "subjects").Should(ContainSubstring("alice"))
		eventuallyExists(ctx, mailbox, clusterRoleBindings, "", "synchub:edit")
		apply(ctx, mailbox, `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: accessible-plain}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: bob}]
---
apiVersion: edge.kubestellar.io/v2alpha1
kind: SyncerConfig
metadata: {name: bindings}
spec:
  clusterScope:
  - {group: rbac.authorization.k8s.io, resource: clusterrolebindings, apiVersion: v1, objects: [accessible-plain, "synchub:view", "synchub:edit"]}
`)
		eventuallyExists(ctx, target("florin"), clusterRoleBindings, "", "accessible-plain")
		Consistently(framework.Exists).WithContext(ctx).WithArguments(target("florin"), clusterRoleBindings, "", "synchub:view").WithTimeout(2 * time.Second).Should(BeFalse())
		patch(ctx, inventory.Config, syncTargets, "", "florin", `{"spec": {"mailboxAccess": [{"clusterRole": "view", "subjects": [{"kind": "User", "name": "carol"}]}]}}`)
		Eventually(value).WithContext(ctx).WithArguments(mailbox, clusterRoleBindings, "", "synchub:view", "subjects").Should(ContainSubstring("carol"))
		eventuallyGone(ctx, mailbox, clusterRoleBindings, "", "synchub:edit")
		patch(ctx, inventory.Config, syncTargets, "", "florin", `{"spec": {"mailboxAccess": null}}`)
		eventuallyGone(ctx, mailbox, clusterRoleBindings, "", "synchub:view")

		By("reporting remaining rights that a user gave to another user")
		undeclared := func() string { return message(ctx, inventory.Config, syncTargets, "florin", "UndeclaredAccess") }
		Eventually(undeclared).Should(And(HavePrefix("1 role bindings"), ContainSubstring("ClusterRoleBinding accessible-plain (ClusterRole view for User bob)")))
		remove(ctx, mailbox, clusterRoleBindings, "", "accessible-plain")
		patch(ctx, inventory.Config, syncTargets, "", "florin", `{"spec": {"unschedulable": true}}`)
		Eventually(undeclared).Should(BeEmpty())
	}, NodeTimeout(3*time.Minute))

	It("rejects the younger of two SyncTargets of one cluster, unless that is allowed", thorough, func(ctx SpecContext) {
		const ns = "shared-cluster"
		inventory := newInventory(ctx, ns)
		older := register(ctx, inventory, "older", "florin")
		mailbox := register(ctx, inventory, "younger", "florin")
		patch(ctx, inventory.Config, syncTargets, "", "younger", `{"spec": {"allowSharedCluster": false}}`)
		Eventually(message).WithContext(ctx).WithArguments(inventory.Config, syncTargets, "younger", "SyncerReady").Should(ContainSubstring("SyncTarget older"))
		apply(ctx, mailbox, documents(namespace(ns), configMap(ns, "settings", "x"), everythingIn(ns)))
		Consistently(framework.Exists).WithContext(ctx).WithArguments(target("florin"), configMaps, ns, "settings").WithTimeout(2 * time.Second).Should(BeFalse())
		apply(ctx, older, documents(namespace(ns), configMap(ns, "first", "x"), everythingIn(ns)))
		eventuallyExists(ctx, target("florin"), configMaps, ns, "first")
		patch(ctx, inventory.Config, syncTargets, "", "younger", `{"spec": {"allowSharedCluster": true}}`)
		eventuallyExists(ctx, target("florin"), configMaps, ns, "settings")
		By("accepting it when it is the only one left")
		patch(ctx, inventory.Config, syncTargets, "", "younger", `{"spec": {"allowSharedCluster": false}}`)
		Eventually(framework.Condition).WithContext(ctx).WithArguments(inventory.Config, syncTargets, "", "younger", "SyncerReady").Should(Equal("False"))
		remove(ctx, inventory.Config, syncTargets, "", "older")
		Eventually(framework.Condition).WithContext(ctx).WithArguments(inventory.Config, syncTargets, "", "younger", "SyncerReady").Should(Equal("True"))
	}, NodeTimeout(3*time.Minute))

	It("creates a manually deleted mailbox again, and does not change the target", thorough, func(ctx SpecContext) {
		const ns, group = "remade", "remade.example.com"
		gvr := publishWaiting(ctx, "florin", group, ns)
		inventory := newInventory(ctx, ns)
		mailbox := register(ctx, inventory, "florin", "florin")
		blocked := custom(group, "v1", "widgets", "Widget").object(ns, "blocked", "spec: {}")
		apply(ctx, mailbox, documents(namespace(ns), configMap(ns, "settings", "x"), blocked, everythingIn(ns)))
		apply(ctx, mailbox, strings.ReplaceAll(selecting(ns, gvr), "name: "+ns, "name: "+ns+"-widgets"))
		eventuallyExists(ctx, target("florin"), configMaps, ns, "settings")
		eventuallyExists(ctx, target("florin"), gvr, ns, "blocked")
		former, err := inventory.SyncTarget(ctx, "florin")
		Expect(err).NotTo(HaveOccurred())
		before := identities(ctx, target("florin"), configMaps, ns, "settings")

		remove(ctx, synchub.InWorkspace(synchub.Workspace), workspaces, "", workspaceOf(ctx, inventory, "florin"))
		Eventually(value).WithContext(ctx).WithArguments(inventory.Config, syncTargets, "", "florin", "status", "mailbox", "cluster").
			ShouldNot(Or(BeEmpty(), Equal(former.Status.Mailbox.Cluster)))
		mailbox = mailboxOf(ctx, inventory, "florin")
		Expect(noticesOf(ctx, inventory, "florin")).To(ContainElement(And(HavePrefix("WorkspaceLost"), ContainSubstring(former.Status.Mailbox.Cluster))))
		Expect(identities(ctx, target("florin"), configMaps, ns, "settings")).To(Equal(before))
		eventuallyExists(ctx, target("florin"), gvr, ns, "blocked")
		By("adopting the objects that the new one selects")
		apply(ctx, mailbox, documents(namespace(ns), configMap(ns, "settings", "y"), everythingIn(ns)))
		Eventually(value).WithContext(ctx).WithArguments(target("florin"), configMaps, ns, "settings", "data", "entry").Should(Equal("y"))
	}, NodeTimeout(4*time.Minute))
})

// publishWaiting publishes widgets of a group with spec.deletion.waitForTarget.
func publishWaiting(ctx context.Context, cluster, group, name string) schema.GroupVersionResource {
	GinkgoHelper()
	widgets := custom(group, "v1", "widgets", "Widget")
	define(ctx, target("hosting"), widgets)
	define(ctx, target(cluster), widgets)
	publishAs(ctx, name, fmt.Sprintf(`
  resource: {group: %s, resource: widgets}
  deletion: {waitForTarget: true}
`, group))
	eventuallyPublished(ctx, name)
	return widgets.GroupVersionResource
}

// workspaceOf returns the name of a SyncTarget's mailbox workspace.
func workspaceOf(ctx context.Context, inventory *installation.Inventory, syncTarget string) string {
	GinkgoHelper()
	found, err := inventory.SyncTarget(ctx, syncTarget)
	Expect(err).NotTo(HaveOccurred())
	return strings.TrimPrefix(found.Status.Mailbox.Workspace, synchub.Workspace+":")
}

// noticesOf returns the events on a SyncTarget, each with its reason first.
func noticesOf(ctx context.Context, inventory *installation.Inventory, syncTarget string) (notices []string) {
	GinkgoHelper()
	list, err := framework.List(ctx, inventory.Config, schema.GroupVersionResource{Version: "v1", Resource: "events"}, "default", "")
	Expect(err).NotTo(HaveOccurred())
	for _, event := range list {
		if name, _, _ := unstructured.NestedString(event.Object, "involvedObject", "name"); name == syncTarget {
			notices = append(notices, fmt.Sprintf("%v: %v", event.Object["reason"], event.Object["message"]))
		}
	}
	return notices
}

// eventuallyObserved waits until the hub has observed the present spec of a SyncTarget.
func eventuallyObserved(ctx context.Context, inventory *installation.Inventory, name string) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		syncTarget, err := inventory.SyncTarget(ctx, name)
		g.Expect(err).NotTo(HaveOccurred())
		for _, condition := range syncTarget.Status.Conditions {
			if condition.Type == "SyncerReady" {
				g.Expect(condition.ObservedGeneration).To(Equal(syncTarget.Generation))
			}
		}
	}).WithContext(ctx).Should(Succeed())
}

// selectingNamespace returns a SyncerConfig that selects the namespace itself.
func selectingNamespace(name string) string {
	return fmt.Sprintf(`
apiVersion: edge.kubestellar.io/v2alpha1
kind: SyncerConfig
metadata: {name: %s-itself}
spec:
  clusterScope:
  - {group: "", resource: namespaces, apiVersion: v1, objects: [%s]}
`, name, name)
}
