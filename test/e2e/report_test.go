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
	"net/url"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"

	"github.com/synchub-dev/synchub/test/framework"
)

// Ledgers are on the target from the start and published late; Receipts are published first and come to the target late.
var (
	ledgers  = custom("report.example.com", "v1", "ledgers", "Ledger")
	receipts = custom("report.example.com", "v1", "receipts", "Receipt")
)

// clerk returns a ServiceAccount of a namespace with some more rules than the hub needs anywhere.
func clerk(namespace, rules string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: ServiceAccount
metadata: {name: clerk, namespace: %[1]s}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: clerk-of-%[1]s}
rules:
- {apiGroups: [""], resources: [namespaces], verbs: [get, list, watch, create]}
- {apiGroups: [apiextensions.k8s.io], resources: [customresourcedefinitions], verbs: [get, list, watch]}
%[2]s
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: clerk-of-%[1]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: clerk-of-%[1]s}
subjects: [{kind: ServiceAccount, name: clerk, namespace: %[1]s}]
`, namespace, rules)
}

var _ = Describe("reports", func() {
	It("name the resources that a config cannot sync, until it can", thorough, func(ctx SpecContext) {
		const ns = "cannot-have"
		const few = `- {apiGroups: ["", report.example.com], resources: [configmaps, ledgers, receipts], verbs: ["*"]}`
		inventory := newInventory(ctx, ns)
		florin := target("florin")
		define(ctx, florin, ledgers)
		publish(ctx, receipts)
		apply(ctx, florin, documents(namespace(ns), clerk(ns, few)))
		admit := func() {
			GinkgoHelper()
			kubeconfig, err := clusters["florin"].ServiceAccountKubeconfig(ctx, ns, "clerk")
			Expect(err).NotTo(HaveOccurred())
			Expect(inventory.Register(ctx, "florin", kubeconfig, nil)).To(Succeed())
		}
		admit()
		mailbox := mailboxOf(ctx, inventory, "florin")
		apply(ctx, mailbox, documents(namespace(ns), configMap(ns, "settings", "green"), secret(ns, "token"),
			receipts.object(ns, "bread", "spec: {price: 3}"),
			selecting(ns, configMaps, ledgers.GroupVersionResource, receipts.GroupVersionResource, secrets),
			syncerConfig("upwards", fmt.Sprintf(`{upsync: [{apiGroup: report.example.com, resources: [receipts, ledgers], namespaces: [%s-up], names: ["*"]}]}`, ns)),
			fmt.Sprintf(`
apiVersion: edge.kubestellar.io/v2alpha1
kind: EdgeSyncConfig
metadata: {name: older}
spec:
  downSyncedResources: [{kind: Ledger, group: report.example.com, version: v1, namespace: %s, name: "*"}]
`, ns), `
apiVersion: edge.kubestellar.io/v2alpha1
kind: SyncerConfig
metadata: {name: nothing}
spec:
  clusterScope:
  - {group: rbac.authorization.k8s.io, resource: clusterroles, apiVersion: v1, objects: ["*"], labelSelector: {matchLabels: {no: one}}}
  - {group: "", resource: namespaces, apiVersion: v1}
  namespacedObjects:
  - {group: "", resource: secrets, apiVersion: v1, objectsByNamespace: [{namespace: none, names: []}]}
`))
		By("naming each with its reason, also entries without a list")
		const notPublished, notServed, notPermitted = "Not published by the hub: ", "Not served by the target: ", "Not permitted on the target: "
		readiness := func(config string) string { return readyOf(ctx, mailbox, config) }
		entry := func(number int, what string) string {
			return fmt.Sprintf("spec.namespaceScope.resources[%d] (%s)", number, what)
		}
		Eventually(readiness).WithContext(ctx).WithArguments(ns).Should(And(HavePrefix("False NotPublished: "),
			ContainSubstring(notPublished+entry(1, "report.example.com/v1 ledgers")+"."),
			ContainSubstring(notServed+entry(2, "report.example.com/v1 receipts")),
			ContainSubstring(notPermitted+entry(3, "v1 secrets"))))
		Eventually(readiness).WithContext(ctx).WithArguments("upwards").Should(And(HavePrefix("False NotPublished: "),
			ContainSubstring(notPublished+"spec.upsync[0].resources[1] (report.example.com ledgers)."),
			ContainSubstring(notServed+"spec.upsync[0].resources[0] (report.example.com receipts)")))
		Eventually(func() string {
			return value(ctx, mailbox, edgeSyncConfigs, "", "older", "status", "conditions")
		}).WithContext(ctx).Should(And(ContainSubstring("NotPublished"), ContainSubstring("spec.downSyncedResources[0] (report.example.com/v1 Ledger)")))
		Eventually(message).WithContext(ctx).WithArguments(mailbox, syncerConfigs, "nothing", "SelectsNothing").
			Should(And(ContainSubstring("spec.clusterScope[1]"), ContainSubstring("spec.namespacedObjects[0]"), Not(ContainSubstring("spec.clusterScope[0]"))))
		By("not delaying other objects")
		Eventually(value).WithContext(ctx).WithArguments(florin, configMaps, ns, "settings", "data", "entry").Should(Equal("green"))

		By("starting with a newly published resource")
		publish(ctx, ledgers)
		apply(ctx, mailbox, ledgers.object(ns, "household", "spec: {balance: 7}"))
		Eventually(value).WithContext(ctx).WithArguments(florin, ledgers.GroupVersionResource, ns, "household", "spec", "balance").Should(Equal("7"))
		Eventually(readiness).WithContext(ctx).WithArguments(ns).Should(And(HavePrefix("False NotServed: "), ContainSubstring(notPermitted)))
		By("starting with a newly served resource")
		define(ctx, florin, receipts)
		apply(ctx, florin, documents(namespace(ns+"-up"), receipts.object(ns+"-up", "milk", "spec: {price: 2}")))
		Eventually(value).WithContext(ctx).WithArguments(florin, receipts.GroupVersionResource, ns, "bread", "spec", "price").Should(Equal("3"))
		Eventually(value).WithContext(ctx).WithArguments(mailbox, receipts.GroupVersionResource, ns+"-up", "milk", "spec", "price").Should(Equal("2"))
		Eventually(readiness).WithContext(ctx).WithArguments(ns).Should(HavePrefix("False Forbidden: "))
		Eventually(readiness).WithContext(ctx).WithArguments("upwards").Should(HavePrefix("True InSync: "))
		By("starting with the permitted resources, at the latest when the hub reconnects")
		apply(ctx, florin, clerk(ns, few+"\n"+`- {apiGroups: [""], resources: [secrets], verbs: ["*"]}`))
		admit()
		eventuallyExists(ctx, florin, secrets, ns, "token")
		Eventually(readiness).WithContext(ctx).WithArguments(ns).Should(HavePrefix("True InSync: "))
	}, NodeTimeout(3*time.Minute))

	It("list failures, with one event for each reason, and do not reveal the target's address", func(ctx SpecContext) {
		const ns = "failing"
		inventory := newInventory(ctx, ns)
		florin, mailbox := target("florin"), register(ctx, inventory, "florin", "florin")
		publish(ctx, services)
		role := fmt.Sprintf("apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: %s}\nrules: []\n", ns)
		apply(ctx, florin, documents(namespace(ns), role, namespace(ns+"-up"), configMap(ns+"-up", "fine", "x"), configMap(ns+"-up", "rival", "x")))
		DeferCleanup(func(ctx SpecContext) { remove(ctx, florin, clusterRoles, "", ns) })
		apply(ctx, mailbox, documents(namespace(ns), role, namespace(ns+"-up"), configMap(ns+"-up", "rival", "mine"), configMap(ns, "fine", "x"),
			front(ns, `{name: one, port: 99999}`), fmt.Sprintf(`
apiVersion: edge.kubestellar.io/v2alpha1
kind: SyncerConfig
metadata: {name: %[1]s}
spec:
  namespaceScope:
    namespaces: [%[1]s]
    resources:
    - {group: "", resource: configmaps, apiVersion: v1}
    - {group: "", resource: services, apiVersion: v1}
  clusterScope:
  - {group: rbac.authorization.k8s.io, resource: clusterroles, apiVersion: v1, objects: [%[1]s]}
  upsync:
  - {apiGroup: "", resources: [configmaps], namespaces: [%[1]s-up], names: ["*"]}
`, ns)))
		syncTarget, err := inventory.SyncTarget(ctx, "florin")
		Expect(err).NotTo(HaveOccurred())
		count := func(name string, labels ...string) func() float64 {
			return func() float64 {
				return samples(ctx, name, append(labels, fmt.Sprintf("sync_target=%q", syncTarget.UID))...)
			}
		}
		failing := func(labels ...string) func() float64 { return count("synchub_sync_failing_objects", labels...) }
		actions := func(labels ...string) func() float64 { return count("synchub_sync_actions_total", labels...) }

		By("listing each with its reason and message")
		Eventually(failures).WithContext(ctx).WithArguments(mailbox, ns).Should(ConsistOf("Invalid front", "Conflict "+ns, "Conflict rival"))
		Expect(readyOf(ctx, mailbox, ns)).To(HavePrefix("False ObjectsFailed: 3 of 5 objects failed"))
		Expect(failureMessage(ctx, mailbox, ns, "front")).To(And(ContainSubstring("spec.ports[0].port"), ContainSubstring("99999")))
		Expect(failureMessage(ctx, mailbox, ns, ns)).To(ContainSubstring("the target has an object of this name"))
		Expect(failureMessage(ctx, mailbox, ns, "rival")).To(ContainSubstring("the mailbox has an object of this name"))
		By("counting them by target, resource and direction")
		Eventually(failing(`resource="services"`, `reason="Invalid"`)).WithContext(ctx).Should(BeEquivalentTo(1))
		Expect(failing(`resource="clusterroles.rbac.authorization.k8s.io"`, `reason="Conflict"`)()).To(BeEquivalentTo(1))
		Expect(failing(`resource="configmaps"`, `reason="Conflict"`)()).To(BeEquivalentTo(1))
		for _, direction := range []string{"down", "up"} {
			created := actions(`resource="configmaps"`, `action="Create"`, `result="done"`, fmt.Sprintf("direction=%q", direction))
			Eventually(created).WithContext(ctx).Should(BeEquivalentTo(1), direction)
		}

		By("recording one event on the object, for any number of attempts")
		Eventually(actions(`resource="services"`, `direction="down"`, `result="failed"`)).WithContext(ctx).Should(BeNumerically(">", 4))
		Expect(reasons(ctx, mailbox, ns, "front")).To(ConsistOf("Invalid"))
		Expect(reasons(ctx, mailbox, ns+"-up", "rival")).To(ConsistOf("Conflict"))
		Expect(reasons(ctx, mailbox, "default", ns)).To(ConsistOf("Conflict"))
		By("recording another event for another reason, and none after the failure ends")
		patch(ctx, mailbox, services.GroupVersionResource, ns, "front", `{"spec": {"ports": [{"name": "one", "port": 80}]}}`)
		Eventually(failing(`resource="services"`)).WithContext(ctx).Should(BeZero())
		patch(ctx, mailbox, services.GroupVersionResource, ns, "front", `{"spec": {"clusterIP": "None"}}`)
		Eventually(failures).WithContext(ctx).WithArguments(mailbox, ns).Should(ConsistOf("Immutable front", "Conflict "+ns, "Conflict rival"))
		Eventually(func() []string { return reasons(ctx, mailbox, ns, "front") }).WithContext(ctx).Should(ConsistOf("Invalid", "Immutable"))
		By("never revealing the target's address")
		address, err := url.Parse(florin.Host)
		Expect(err).NotTo(HaveOccurred())
		Expect(everythingSaid(ctx, mailbox, ns)).To(And(ContainSubstring("99999"), Not(ContainSubstring(address.Host)), Not(ContainSubstring(address.Hostname()))))
	}, NodeTimeout(3*time.Minute))
})

// everythingSaid returns all text that users of a mailbox can read about a config and its objects.
func everythingSaid(ctx context.Context, mailbox *rest.Config, config string) string {
	GinkgoHelper()
	listed, err := framework.List(ctx, mailbox, events, "", "")
	Expect(err).NotTo(HaveOccurred())
	object, err := framework.Get(ctx, mailbox, syncerConfigs, "", config)
	Expect(err).NotTo(HaveOccurred())
	text, err := json.Marshal(append(listed, *object))
	Expect(err).NotTo(HaveOccurred())
	return string(text)
}

// samples returns the sum of the hub's samples with a name and all of these labels.
func samples(ctx context.Context, name string, labels ...string) (sum float64) {
	all, err := hub.Metrics(ctx)
	if err != nil {
		return -1
	}
	for sample, count := range all {
		lacks := func(label string) bool { return !strings.Contains(sample, label) }
		if strings.HasPrefix(sample, name+"{") && !slices.ContainsFunc(labels, lacks) {
			sum += count
		}
	}
	return sum
}
