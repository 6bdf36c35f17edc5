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
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/framework/installation"
)

var edgeSyncConfigs = schema.GroupVersionResource{Group: "edge.kubestellar.io", Version: "v2alpha1", Resource: "edgesyncconfigs"}

var _ = Describe("selection for upsync", func() {
	It("applies a wildcard to users' objects, not to objects that Kubernetes creates", func(ctx SpecContext) {
		const ns, empty = "up-wildcard", "up-wildcard-empty"
		inventory := sharedInventory()
		florin, mailbox := target("florin"), register(ctx, inventory, "florin", "florin")
		above := readerOf(ctx, mailbox)
		// The label excludes objects of other specs; the spec also sets it on Kubernetes' own objects.
		const labelled = `{"metadata": {"labels": {"spec": "up-wildcard"}}}`
		apply(ctx, florin, documents(namespace(ns), namespace(empty), configMap(ns, "settings", "green"), secret(ns, "token"),
			configMap("kube-public", ns, "system"), fmt.Sprintf(`
apiVersion: v1
kind: ServiceAccount
metadata: {name: robot, namespace: %s}
`, ns)))
		DeferCleanup(func(ctx SpecContext) { remove(ctx, florin, configMaps, "kube-public", ns) })
		eventuallyExists(ctx, florin, configMaps, ns, "kube-root-ca.crt")
		eventuallyExists(ctx, florin, serviceAccounts.GroupVersionResource, ns, "default")
		patch(ctx, florin, namespaces, "", ns, labelled)
		patch(ctx, florin, namespaces, "", empty, labelled)
		patch(ctx, florin, configMaps, "kube-public", ns, labelled)
		patch(ctx, florin, secrets, ns, "token", labelled)
		for _, name := range []string{"settings", "kube-root-ca.crt"} {
			patch(ctx, florin, configMaps, ns, name, labelled)
		}
		for _, name := range []string{"robot", "default"} {
			patch(ctx, florin, serviceAccounts.GroupVersionResource, ns, name, labelled)
		}
		const everything = `{apiGroup: "", resources: ["*"], namespaces: ["*"], names: ["*"], labelSelector: {matchLabels: {spec: up-wildcard}}}`
		apply(ctx, mailbox, syncerConfig(ns, "{upsync: ["+everything+"]}"))

		Eventually(above(configMaps, ns, "settings", "data", "entry")).WithContext(ctx).Should(Equal("green"))
		Eventually(above(secrets, ns, "token", "data", "token")).WithContext(ctx).Should(Equal("aHVudGVyMg=="))
		eventuallyExists(ctx, mailbox, serviceAccounts.GroupVersionResource, ns, "robot")
		Eventually(framework.Condition).WithContext(ctx).WithArguments(mailbox, syncerConfigs, "", ns, "Ready").Should(Equal("True"))
		Eventually(value).WithContext(ctx).WithArguments(mailbox, syncerConfigs, "", ns, "status", "selected").Should(Equal("3"))
		Expect(framework.Exists(ctx, mailbox, namespaces, "", empty)).To(BeFalse(), "no Namespace object comes up")
		Expect(framework.Exists(ctx, mailbox, configMaps, "kube-public", ns)).To(BeFalse())
		Expect(above(configMaps, ns, "kube-root-ca.crt", "metadata", "annotations")()).NotTo(ContainSubstring(markAnnotation))
		Expect(above(serviceAccounts.GroupVersionResource, ns, "default", "metadata", "annotations")()).NotTo(ContainSubstring(markAnnotation))

		By("upsyncing named objects: a namespace, also one created for its contents, and objects in an allowed namespace of Kubernetes")
		patch(ctx, inventory.Config, installation.SyncTargets, "", "florin", `{"spec": {"namespaces": {"allowProtected": ["kube-public"]}}}`)
		apply(ctx, mailbox, syncerConfig(ns, fmt.Sprintf(`{upsync: [%s,
			{apiGroup: "", resources: [namespaces], names: [%s, %s]},
			{apiGroup: "", resources: [configmaps], namespaces: [kube-public], names: [%[2]s]}]}`, everything, ns, empty)))
		for _, name := range []string{ns, empty} {
			Eventually(above(namespaces, "", name, "metadata", "labels", "spec")).WithContext(ctx).Should(Equal("up-wildcard"))
		}
		Eventually(above(configMaps, "kube-public", ns, "data", "entry")).WithContext(ctx).Should(Equal("system"))
		Eventually(framework.Condition).WithContext(ctx).WithArguments(mailbox, syncerConfigs, "", ns, "Ready").Should(Equal("True"))
		By("keeping a namespace in the mailbox, without marks, when it is deleted on the target: it may contain other objects")
		remove(ctx, florin, namespaces, "", empty)
		Eventually(above(namespaces, "", empty, "metadata", "annotations", markAnnotation)).WithContext(ctx).Should(BeEmpty())
		Expect(above(namespaces, "", empty, "status", "phase")()).To(Equal("Active"))
	}, NodeTimeout(3*time.Minute))

	It("follows every change of the selection", thorough, func(ctx SpecContext) {
		const ns = "up-selected"
		publishInstruments(ctx, "florin")
		florin, mailbox := target("florin"), sharedMailbox(ctx, "florin")
		above := readerOf(ctx, mailbox)
		apply(ctx, florin, documents(namespace(ns), configMap(ns, "first", "green"), configMap(ns, "second", "green"), configMap(ns, "plain", "green"),
			gauge(ns, "boiler", 3), gauge(ns, "dial", 3), gauge(ns, "edge", 3)))
		label := func(name, value string) {
			patch(ctx, florin, configMaps, ns, name, fmt.Sprintf(`{"metadata": {"labels": {"up": %s}}}`, value))
		}
		label("first", `"yes"`)
		label("second", `"yes"`)
		maps := fmt.Sprintf(`{apiGroup: "", resources: [configmaps], namespaces: [%s], names: ["*"], labelSelector: {matchLabels: {up: "yes"}}}`, ns)
		boiler := fmt.Sprintf(`{apiGroup: up.example.com, resources: [gauges], namespaces: [%s], names: [boiler]}`, ns)
		dial := fmt.Sprintf(`{apiGroup: up.example.com, resources: [gauges], namespaces: [%s], names: [dial]}`, ns)
		apply(ctx, mailbox, documents(syncerConfig(ns, fmt.Sprintf("{upsync: [%s, %s, %s]}", maps, boiler, dial)), fmt.Sprintf(`
apiVersion: edge.kubestellar.io/v2alpha1
kind: EdgeSyncConfig
metadata: {name: %[1]s}
spec:
  upSyncedResources:
  - {group: up.example.com, version: v1, kind: Gauge, namespace: %[1]s, name: edge}
`, ns)))
		eventuallyExists(ctx, mailbox, configMaps, ns, "first")
		eventuallyExists(ctx, mailbox, configMaps, ns, "second")
		for _, name := range []string{"boiler", "dial", "edge"} {
			Eventually(above(gauges, ns, name, "spec", "size")).WithContext(ctx).Should(Equal("3"))
		}
		Expect(framework.Exists(ctx, mailbox, configMaps, ns, "plain")).To(BeFalse())

		By("following labels")
		label("first", "null")
		label("plain", `"yes"`)
		eventuallyGone(ctx, mailbox, configMaps, ns, "first")
		eventuallyExists(ctx, mailbox, configMaps, ns, "plain")
		By("deleting only the upsynced objects of a removed entry")
		apply(ctx, mailbox, syncerConfig(ns, fmt.Sprintf("{upsync: [%s, %s]}", maps, boiler)))
		eventuallyGone(ctx, mailbox, gauges, ns, "dial")
		remove(ctx, mailbox, edgeSyncConfigs, "", ns)
		eventuallyGone(ctx, mailbox, gauges, ns, "edge")
		Expect(framework.Exists(ctx, mailbox, gauges, ns, "boiler")).To(BeTrue())

		By("not changing suspended objects, and catching up afterwards")
		patch(ctx, mailbox, syncerConfigs, "", ns, `{"spec": {"suspend": true}}`)
		Eventually(framework.Condition).WithContext(ctx).WithArguments(mailbox, syncerConfigs, "", ns, "Suspended").Should(Equal("True"))
		patch(ctx, florin, configMaps, ns, "second", `{"data": {"entry": "blue"}}`)
		remove(ctx, florin, gauges, ns, "boiler")
		staysFor(ctx, func() string {
			return above(configMaps, ns, "second", "data", "entry")() + " " + above(gauges, ns, "boiler", "spec", "size")()
		}, "green 3")
		patch(ctx, mailbox, syncerConfigs, "", ns, `{"spec": {"suspend": false}}`)
		Eventually(above(configMaps, ns, "second", "data", "entry")).WithContext(ctx).Should(Equal("blue"))
		eventuallyGone(ctx, mailbox, gauges, ns, "boiler")

		By("keeping it, without marks, with the policy Orphan")
		patch(ctx, mailbox, syncerConfigs, "", ns, `{"spec": {"deletionPolicy": "Orphan"}}`)
		Eventually(above(configMaps, ns, "second", "metadata", "annotations", markAnnotation)).WithContext(ctx).Should(ContainSubstring(`"policy":"Orphan"`))
		Eventually(above(configMaps, ns, "plain", "metadata", "annotations", markAnnotation)).WithContext(ctx).Should(ContainSubstring(`"policy":"Orphan"`))
		remove(ctx, florin, configMaps, ns, "plain")
		Eventually(above(configMaps, ns, "plain", "metadata", "annotations", markAnnotation)).WithContext(ctx).Should(BeEmpty())
		remove(ctx, mailbox, syncerConfigs, "", ns)
		Eventually(above(configMaps, ns, "second", "metadata", "annotations", markAnnotation)).WithContext(ctx).Should(BeEmpty())
		for _, name := range []string{"plain", "second"} {
			Expect(above(configMaps, ns, name, "metadata", "labels", ownerLabel)()).To(BeEmpty())
			Expect(framework.Exists(ctx, mailbox, configMaps, ns, name)).To(BeTrue())
		}
	}, NodeTimeout(3*time.Minute))

	It("catches up on changes that happened while the hub was down", thorough, func(ctx SpecContext) {
		const ns, vanished = "up-away", "up-away-vanished"
		publishInstruments(ctx, "florin")
		florin, mailbox := target("florin"), sharedMailbox(ctx, "florin")
		above := readerOf(ctx, mailbox)
		apply(ctx, florin, documents(namespace(ns), namespace(vanished), configMap(vanished, "inside", "x"),
			configMap(ns, "changed", "before"), configMap(ns, "gone", "x"), configMap(ns, "kept", "x"), configMap(ns, "removed-above", "x"),
			gauge(ns, "deselected", 3)))
		apply(ctx, mailbox, documents(
			syncerConfig(ns, fmt.Sprintf(`{upsync: [{apiGroup: "", resources: [configmaps], namespaces: [%s, %s], names: ["*"]}]}`, ns, vanished)),
			syncerConfig(ns+"-gauges", fmt.Sprintf(`{upsync: [{apiGroup: up.example.com, resources: [gauges], namespaces: [%s], names: ["*"]}]}`, ns))))
		for _, name := range []string{"changed", "gone", "kept", "removed-above"} {
			eventuallyExists(ctx, mailbox, configMaps, ns, name)
		}
		eventuallyExists(ctx, mailbox, configMaps, vanished, "inside")
		eventuallyExists(ctx, mailbox, gauges, ns, "deselected")
		quiet(ctx)
		kept := identities(ctx, mailbox, configMaps, ns, "kept")

		Expect(hub.Kill9()).To(Succeed())
		patch(ctx, florin, configMaps, ns, "changed", `{"data": {"entry": "after"}}`)
		remove(ctx, florin, configMaps, ns, "gone")
		apply(ctx, florin, configMap(ns, "new", "x"))
		remove(ctx, florin, namespaces, "", vanished)
		eventuallyGone(ctx, florin, namespaces, "", vanished)
		remove(ctx, mailbox, configMaps, ns, "removed-above")
		remove(ctx, mailbox, syncerConfigs, "", ns+"-gauges")
		startHub(ctx)

		Eventually(above(configMaps, ns, "changed", "data", "entry")).WithContext(ctx).Should(Equal("after"))
		eventuallyGone(ctx, mailbox, configMaps, ns, "gone")
		eventuallyExists(ctx, mailbox, configMaps, ns, "new")
		eventuallyGone(ctx, mailbox, configMaps, vanished, "inside")
		eventuallyExists(ctx, mailbox, configMaps, ns, "removed-above")
		eventuallyGone(ctx, mailbox, gauges, ns, "deselected")
		Expect(framework.Exists(ctx, florin, gauges, ns, "deselected")).To(BeTrue())
		Expect(identities(ctx, mailbox, configMaps, ns, "kept")).To(Equal(kept), "what was in sync must not be written again")
	}, NodeTimeout(4*time.Minute))
})
