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
)

var _ = Describe("targets: pending objects", func() {
	It("are synced when a name becomes free and when a namespace has been deleted", thorough, SpecPriority(1), func(ctx SpecContext) {
		const taken, ending = "waits-for-name", "waits-for-namespace"
		florin, mailbox := target("florin"), sharedMailbox(ctx, "florin")
		apply(ctx, florin, documents(namespace(taken), configMap(taken, "settings", "theirs")))
		for _, ns := range []string{taken, ending} {
			apply(ctx, mailbox, documents(namespace(ns), configMap(ns, "settings", "ours"), secret(ns, "token"), everythingIn(ns)))
		}
		entry := func(namespace string) string {
			return value(ctx, florin, configMaps, namespace, "settings", "data", "entry")
		}
		Eventually(failures).WithContext(ctx).WithArguments(mailbox, taken).Should(ConsistOf("Conflict settings"))
		Eventually(func() []string { return reasons(ctx, mailbox, taken, "settings") }).WithContext(ctx).Should(ConsistOf("Conflict"))
		refused := time.Now()

		By("reporting a namespace that is ending on the target")
		Eventually(entry).WithContext(ctx).WithArguments(ending).Should(Equal("ours"))
		eventuallyExists(ctx, florin, secrets, ending, "token")
		apply(ctx, florin, configMap(ending, "holds", "x"))
		patch(ctx, florin, configMaps, ending, "holds", `{"metadata": {"finalizers": ["example.com/holds"]}}`)
		uid := value(ctx, florin, namespaces, "", ending, "metadata", "uid")
		remove(ctx, florin, namespaces, "", ending)
		Eventually(failures).WithContext(ctx).WithArguments(mailbox, ending).Should(ConsistOf("NamespaceTerminating settings", "NamespaceTerminating token"))
		By("creating it and its contents again once it is deleted")
		patch(ctx, florin, configMaps, ending, "holds", `{"metadata": {"finalizers": null}}`)
		Eventually(entry).WithContext(ctx).WithArguments(ending).Should(Equal("ours"))
		eventuallyExists(ctx, florin, secrets, ending, "token")
		Expect(value(ctx, florin, namespaces, "", ending, "metadata", "uid")).NotTo(Equal(uid))
		Eventually(failures).WithContext(ctx).WithArguments(mailbox, ending).Should(BeEmpty())

		By("retrying a name as soon as it is free, long before the next attempt")
		// Without the watch, retries would follow 0.1, 0.3, ... 25.5 and 51.1 seconds after the first attempt, which was at
		// most five seconds before the report.
		Eventually(func() time.Duration { return time.Since(refused) }).WithContext(ctx).Should(BeNumerically(">", 26*time.Second))
		Expect(entry(taken)).To(Equal("theirs"))
		remove(ctx, florin, configMaps, taken, "settings")
		Eventually(entry).WithContext(ctx).WithArguments(taken).WithTimeout(15 * time.Second).Should(Equal("ours"))
		Eventually(failures).WithContext(ctx).WithArguments(mailbox, taken).Should(BeEmpty())
		Eventually(framework.Condition).WithContext(ctx).WithArguments(mailbox, syncerConfigs, "", taken, "Ready").Should(Equal("True"))
	}, NodeTimeout(4*time.Minute))

	It("are reported by name where the target does not permit them", thorough, func(ctx SpecContext) {
		const ns = "narrow"
		inventory := newInventory(ctx, ns)
		florin := target("florin")
		apply(ctx, florin, documents(namespace(ns), fmt.Sprintf(`
apiVersion: v1
kind: ServiceAccount
metadata: {name: hub, namespace: %[1]s}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: %[1]s}
rules:
- {apiGroups: [""], resources: [namespaces], verbs: [get, list, watch]}
- {apiGroups: [""], resources: [secrets], verbs: [get, list, watch]}
- {apiGroups: [""], resources: [configmaps], verbs: ["*"]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: %[1]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: %[1]s}
subjects: [{kind: ServiceAccount, name: hub, namespace: %[1]s}]
`, ns)))
		kubeconfig, err := clusters["florin"].ServiceAccountKubeconfig(ctx, ns, "hub")
		Expect(err).NotTo(HaveOccurred())
		Expect(inventory.Register(ctx, ns, kubeconfig, nil)).To(Succeed())
		mailbox := mailboxOf(ctx, inventory, ns)
		apply(ctx, mailbox, documents(namespace(ns), configMap(ns, "settings", "green"), secret(ns, "token"), deployment(ns, "web"), everythingIn(ns)))

		By("syncing permitted objects")
		Eventually(value).WithContext(ctx).WithArguments(florin, configMaps, ns, "settings", "data", "entry").Should(Equal("green"))
		patch(ctx, mailbox, configMaps, ns, "settings", `{"data": {"entry": null, "other": "blue"}}`)
		Eventually(value).WithContext(ctx).WithArguments(florin, configMaps, ns, "settings", "data").Should(Equal("map[other:blue]"))
		By("naming a resource that may not be read, and an object that may not be written")
		Eventually(failures).WithContext(ctx).WithArguments(mailbox, ns).Should(ConsistOf("Forbidden token"))
		Expect(failureMessage(ctx, mailbox, ns, "token")).To(ContainSubstring(`cannot`))
		Eventually(message).WithContext(ctx).WithArguments(mailbox, syncerConfigs, ns, "Ready").
			Should(And(ContainSubstring("Not permitted on the target"), ContainSubstring("deployments.apps")))
		Expect(framework.Condition(ctx, mailbox, syncerConfigs, "", ns, "Ready")).To(Equal("False"))
		Eventually(func() []string { return reasons(ctx, mailbox, ns, "token") }).WithContext(ctx).Should(ConsistOf("Forbidden"))

		By("syncing it at the next change after it was permitted")
		patch(ctx, florin, clusterRoles, "", ns, `{"rules": [{"apiGroups": [""], "resources": ["configmaps", "secrets", "namespaces"], "verbs": ["*"]}]}`)
		changes := 0
		Eventually(func() (bool, error) {
			changes++
			patch(ctx, mailbox, secrets, ns, "token", fmt.Sprintf(`{"metadata": {"labels": {"change": "%d"}}}`, changes))
			return framework.Exists(ctx, florin, secrets, ns, "token")
		}).WithContext(ctx).WithPolling(500 * time.Millisecond).Should(BeTrue())
		Eventually(failures).WithContext(ctx).WithArguments(mailbox, ns).Should(BeEmpty())
	}, NodeTimeout(3*time.Minute))
})
