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

var _ = Describe("configs of one mailbox", func() {
	It("are combined, and a change of one affects only the objects that it selects", func(ctx SpecContext) {
		const ns = "together"
		florin, mailbox := target("florin"), sharedMailbox(ctx, "florin")
		byLabel := func(spec string) string {
			return syncerConfig("wide", fmt.Sprintf(`{namespaceScope: {namespaces: [%s], resources: [{group: "", resource: configmaps, apiVersion: v1%s}]}}`, ns, spec))
		}
		apply(ctx, mailbox, documents(namespace(ns),
			configMap(ns, "wide-1", "x"), configMap(ns, "wide-2", "x"), configMap(ns, "shared", "x"), secret(ns, "older"), configMap(ns, "older", "x"),
			byLabel(""), syncerConfig("narrow", fmt.Sprintf(`{namespacedObjects: [
				{group: "", resource: configmaps, apiVersion: v1, objectsByNamespace: [{namespace: %[1]s, names: [shared]}]},
				{group: "", resource: secrets, apiVersion: v1, objectsByNamespace: [{namespace: %[1]s, names: [narrow]}]}]}`, ns)),
			secret(ns, "narrow"), fmt.Sprintf(`
apiVersion: edge.kubestellar.io/v2alpha1
kind: EdgeSyncConfig
metadata: {name: older}
spec:
  downSyncedResources:
  - {kind: ConfigMap, version: v1, namespace: %[1]s, name: older}
  - {kind: Secret, version: v1, namespace: %[1]s, name: older}
`, ns)))
		placed := func(prefix string) map[string]string {
			GinkgoHelper()
			found := identities(ctx, florin, configMaps, ns, prefix)
			for name, identity := range identities(ctx, florin, secrets, ns, prefix) {
				found["secret "+name] = identity
			}
			return found
		}
		names := func() []string {
			var all []string
			for name := range placed("") {
				if name != "kube-root-ca.crt" {
					all = append(all, name)
				}
			}
			return all
		}
		By("downsyncing the objects that any of them selects")
		Eventually(names).WithContext(ctx).Should(ConsistOf("wide-1", "wide-2", "shared", "older", "secret older", "secret narrow"))
		for _, count := range []struct{ config, selected string }{{"wide", "4"}, {"narrow", "2"}} {
			Eventually(value).WithContext(ctx).WithArguments(mailbox, syncerConfigs, "", count.config, "status", "synced").Should(Equal(count.selected))
		}
		Eventually(value).WithContext(ctx).WithArguments(mailbox, edgeSyncConfigs, "", "older", "status", "synced").Should(Equal("2"))
		before := []map[string]string{placed("shared"), placed("older"), placed("narrow")}
		untouched := func() {
			GinkgoHelper()
			Expect([]map[string]string{placed("shared"), placed("older"), placed("narrow")}).To(Equal(before))
		}

		By("deleting copies of objects that no config selects any more, although the mailbox has them")
		patch(ctx, mailbox, configMaps, ns, "wide-2", `{"metadata": {"labels": {"stays": "yes"}}}`)
		Eventually(value).WithContext(ctx).WithArguments(florin, configMaps, ns, "wide-2", "metadata", "labels", "stays").Should(Equal("yes"))
		apply(ctx, mailbox, byLabel(`, labelSelector: {matchLabels: {stays: "yes"}}`))
		eventuallyGone(ctx, florin, configMaps, ns, "wide-1")
		Expect(framework.Exists(ctx, mailbox, configMaps, ns, "wide-1")).To(BeTrue())
		Eventually(names).WithContext(ctx).Should(ConsistOf("wide-2", "shared", "older", "secret older", "secret narrow"))
		untouched()

		By("following the selection of an active config, also if a suspended one selects the same objects")
		patch(ctx, mailbox, syncerConfigs, "", "narrow", `{"spec": {"suspend": true}}`)
		Eventually(framework.Condition).WithContext(ctx).WithArguments(mailbox, syncerConfigs, "", "narrow", "Suspended").Should(Equal("True"))
		apply(ctx, mailbox, byLabel(""))
		Eventually(value).WithContext(ctx).WithArguments(florin, configMaps, ns, "wide-1", "data", "entry").Should(Equal("x"))
		untouched()
		patch(ctx, mailbox, configMaps, ns, "shared", `{"data": {"entry": "changed"}}`)
		patch(ctx, mailbox, secrets, ns, "narrow", `{"stringData": {"token": "changed"}}`)
		Eventually(value).WithContext(ctx).WithArguments(florin, configMaps, ns, "shared", "data", "entry").Should(Equal("changed"))
		staysFor(ctx, func() string { return fmt.Sprint(placed("narrow")) }, fmt.Sprint(before[2]))
		patch(ctx, mailbox, syncerConfigs, "", "narrow", `{"spec": {"suspend": false}}`)
		Eventually(func() map[string]string { return placed("narrow") }).WithContext(ctx).ShouldNot(Equal(before[2]))

		By("keeping copies, without marks, that only a deleted config with the policy Orphan selected")
		patch(ctx, mailbox, syncerConfigs, "", "narrow", `{"spec": {"deletionPolicy": "Orphan"}}`)
		eventuallyMarked(ctx, secrets, ns, "narrow", `"policy":"Orphan"`)
		eventuallyMarked(ctx, configMaps, ns, "shared", `"policy":"Orphan"`)
		untouchedWide, untouchedOlder := placed("wide"), placed("older")
		remove(ctx, mailbox, syncerConfigs, "", "narrow")
		eventuallyReleased(ctx, secrets, ns, "narrow")
		eventuallyMarked(ctx, configMaps, ns, "shared", `"policy":"Delete"`)
		Expect(placed("wide")).To(Equal(untouchedWide))

		By("deleting copies of objects that only a deleted config selected")
		remove(ctx, mailbox, syncerConfigs, "", "wide")
		eventuallyGone(ctx, florin, configMaps, ns, "wide-1")
		Eventually(names).WithContext(ctx).Should(ConsistOf("older", "secret older", "secret narrow"))
		Expect(placed("older")).To(Equal(untouchedOlder))
		patch(ctx, mailbox, edgeSyncConfigs, "", "older", `{"spec": {"downSyncedResources": null}}`)
		Eventually(names).WithContext(ctx).Should(ConsistOf("secret narrow"))
	}, NodeTimeout(3*time.Minute))
})
