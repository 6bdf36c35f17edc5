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
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/framework/installation"
)

var (
	publishedResources = schema.GroupVersionResource{Group: "synchub.dev", Version: "v1alpha1", Resource: "publishedresources"}
	widgets            = schema.GroupVersionResource{Group: "fields.example.com", Version: "v1", Resource: "widgets"}
)

// The specs restore the chart's PublishedResources that they change.
var _ = Describe("fields of the API", func() {
	It("do not change the target of a suspended SyncTarget, and catch up afterwards", func(ctx SpecContext) {
		const ns = "suspended-target"
		inventory := sharedInventory()
		mailbox := register(ctx, inventory, "florin", "florin")
		apply(ctx, mailbox, documents(namespace(ns), configMap(ns, "settings", "before"), everythingIn(ns)))
		eventuallyExists(ctx, target("florin"), configMaps, ns, "settings")
		patch(ctx, inventory.Config, syncTargets, "", "florin", `{"spec": {"suspend": true}}`)
		Eventually(message).WithContext(ctx).WithArguments(inventory.Config, syncTargets, "florin", "SyncerReady").Should(ContainSubstring("suspend"))
		patch(ctx, mailbox, configMaps, ns, "settings", `{"data": {"entry": "after"}}`)
		staysFor(ctx, func() string { return value(ctx, target("florin"), configMaps, ns, "settings", "data", "entry") }, "before")
		patch(ctx, inventory.Config, syncTargets, "", "florin", `{"spec": {"suspend": false}}`)
		Eventually(value).WithContext(ctx).WithArguments(target("florin"), configMaps, ns, "settings", "data", "entry").Should(Equal("after"))
	}, NodeTimeout(2*time.Minute))

	It("do not change objects that only a suspended config selects, and catch up afterwards", func(ctx SpecContext) {
		const ns = "suspended-config"
		mailbox := sharedMailbox(ctx, "florin")
		apply(ctx, mailbox, documents(namespace(ns), configMap(ns, "settings", "before"), configMap(ns, "doomed", "x"), everythingIn(ns)))
		eventuallyExists(ctx, target("florin"), configMaps, ns, "settings")
		eventuallyExists(ctx, target("florin"), configMaps, ns, "doomed")
		patch(ctx, mailbox, syncerConfigs, "", ns, `{"spec": {"suspend": true}}`)
		Eventually(framework.Condition).WithContext(ctx).WithArguments(mailbox, syncerConfigs, "", ns, "Suspended").Should(Equal("True"))
		patch(ctx, mailbox, configMaps, ns, "settings", `{"data": {"entry": "after"}}`)
		remove(ctx, mailbox, configMaps, ns, "doomed")
		staysFor(ctx, func() string { return value(ctx, target("florin"), configMaps, ns, "settings", "data", "entry") }, "before")
		eventuallyExists(ctx, target("florin"), configMaps, ns, "doomed")
		patch(ctx, mailbox, syncerConfigs, "", ns, `{"spec": {"suspend": false}}`)
		Eventually(value).WithContext(ctx).WithArguments(target("florin"), configMaps, ns, "settings", "data", "entry").Should(Equal("after"))
		eventuallyGone(ctx, target("florin"), configMaps, ns, "doomed")
	}, NodeTimeout(2*time.Minute))

	It("return no status if a config or a PublishedResource disables it", func(ctx SpecContext) {
		const ns = "no-status"
		mailbox := sharedMailbox(ctx, "florin")
		returned := func() string { return value(ctx, mailbox, deployments, ns, "web", "status") }
		apply(ctx, mailbox, documents(namespace(ns), deployment(ns, "web"), everythingIn(ns)))
		patch(ctx, mailbox, syncerConfigs, "", ns, `{"spec": {"statusReturn": false}}`)
		Eventually(framework.Condition).WithContext(ctx).WithArguments(target("florin"), deployments, ns, "web", "Available").Should(Equal("True"))
		// A status that was returned before the change stays; the status of a new Deployment must not be returned.
		apply(ctx, mailbox, deployment(ns, "other"))
		Eventually(framework.Condition).WithContext(ctx).WithArguments(target("florin"), deployments, ns, "other", "Available").Should(Equal("True"))
		staysFor(ctx, func() string { return value(ctx, mailbox, deployments, ns, "other", "status") }, "")

		By("forbidding it for the resource instead")
		change(ctx, "deployments", `{"spec": {"statusReturn": false, "deletion": {"policy": "Orphan"}}}`, `{"spec": {"statusReturn": true, "deletion": null}}`)
		// The hub may see the change of the config before the change of the resource, whose second field shows that it has taken effect.
		eventuallyMarked(ctx, deployments, ns, "web", `"policy":"Orphan"`)
		patch(ctx, mailbox, syncerConfigs, "", ns, `{"spec": {"statusReturn": true}}`)
		staysFor(ctx, func() string { return value(ctx, mailbox, deployments, ns, "other", "status") }, "")
		By("allowing it again")
		patch(ctx, target("hosting"), publishedResources, "", "deployments", `{"spec": {"statusReturn": true, "deletion": null}}`)
		Eventually(framework.Condition).WithContext(ctx).WithArguments(mailbox, deployments, ns, "other", "Available").Should(Equal("True"))
		Eventually(returned).WithContext(ctx).Should(ContainSubstring("Available"))
	}, NodeTimeout(3*time.Minute))

	It("orphan copies by the policy of a config or a PublishedResource", func(ctx SpecContext) {
		const ns = "orphans"
		mailbox := sharedMailbox(ctx, "florin")
		apply(ctx, mailbox, documents(namespace(ns), configMap(ns, "by-config", "x"), secret(ns, "by-resource"), everythingIn(ns)))
		eventuallyExists(ctx, target("florin"), configMaps, ns, "by-config")
		eventuallyExists(ctx, target("florin"), secrets, ns, "by-resource")

		change(ctx, "secrets", `{"spec": {"deletion": {"policy": "Orphan"}}}`, `{"spec": {"deletion": null}}`)
		eventuallyMarked(ctx, secrets, ns, "by-resource", `"policy":"Orphan"`)
		remove(ctx, mailbox, secrets, ns, "by-resource")
		eventuallyReleased(ctx, secrets, ns, "by-resource")

		patch(ctx, mailbox, syncerConfigs, "", ns, `{"spec": {"deletionPolicy": "Orphan"}}`)
		eventuallyMarked(ctx, configMaps, ns, "by-config", `"policy":"Orphan"`)
		remove(ctx, mailbox, syncerConfigs, "", ns)
		eventuallyReleased(ctx, configMaps, ns, "by-config")
		Expect(value(ctx, target("florin"), configMaps, ns, "by-config", "data", "entry")).To(Equal("x"))
	}, NodeTimeout(3*time.Minute))

	It("delete a namespace with its contents where cascade allows it", func(ctx SpecContext) {
		const ns = "cascade"
		mailbox := sharedMailbox(ctx, "florin")
		change(ctx, "namespaces", `{"spec": {"deletion": {"cascade": true}}}`, `{"spec": {"deletion": null}}`)
		apply(ctx, mailbox, documents(namespace(ns), fmt.Sprintf(`
apiVersion: edge.kubestellar.io/v2alpha1
kind: SyncerConfig
metadata: {name: namespaces}
spec:
  clusterScope:
  - {group: "", resource: namespaces, apiVersion: v1, objects: [%s]}
`, ns)))
		eventuallyExists(ctx, target("florin"), namespaces, "", ns)
		apply(ctx, target("florin"), configMap(ns, "inside", "x"))
		remove(ctx, mailbox, syncerConfigs, "", "namespaces")
		eventuallyGone(ctx, target("florin"), namespaces, "", ns)
	}, NodeTimeout(3*time.Minute))

	It("take a schema from the key that a PublishedResource names", func(ctx SpecContext) {
		const ns = "widgets"
		crd := `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.fields.example.com}
spec:
  group: fields.example.com
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer}}}, status: {type: object, properties: {ready: {type: boolean}}}}}}
`
		hosting := target("hosting")
		apply(ctx, hosting, fmt.Sprintf(`
apiVersion: v1
kind: ConfigMap
metadata: {name: widgets, namespace: %s}
data:
  widget.yaml: |
    %s
`, installation.Namespace, strings.ReplaceAll(crd, "\n", "\n    ")))
		apply(ctx, hosting, `
apiVersion: synchub.dev/v1alpha1
kind: PublishedResource
metadata: {name: widgets}
spec:
  resource: {group: fields.example.com, kind: Widget}
  api: {source: Schema, schemaFrom: {configMap: {name: widgets, key: widget.yaml}}}
`)
		DeferCleanup(func(ctx SpecContext) { remove(ctx, hosting, publishedResources, "", "widgets") })
		Eventually(framework.Condition).WithContext(ctx).WithArguments(hosting, publishedResources, "", "widgets", "Ready").Should(Equal("True"))

		apply(ctx, target("florin"), crd)
		mailbox := sharedMailbox(ctx, "florin")
		apply(ctx, mailbox, documents(namespace(ns), `
apiVersion: fields.example.com/v1
kind: Widget
metadata: {name: wheel, namespace: widgets}
spec: {size: 3}
`, `
apiVersion: edge.kubestellar.io/v2alpha1
kind: SyncerConfig
metadata: {name: widgets}
spec:
  namespacedObjects:
  - {group: fields.example.com, resource: widgets, apiVersion: v1, objectsByNamespace: [{namespace: widgets, names: [wheel]}]}
`))
		Eventually(value).WithContext(ctx).WithArguments(target("florin"), widgets, ns, "wheel", "spec", "size").Should(Equal("3"))
		patch(ctx, target("florin"), widgets, ns, "wheel", `{"status": {"ready": true}}`, "status")
		Eventually(value).WithContext(ctx).WithArguments(mailbox, widgets, ns, "wheel", "status", "ready").Should(Equal("true"))
	}, NodeTimeout(3*time.Minute))
})

// change patches a PublishedResource, and restores it after the spec.
func change(ctx context.Context, name, content, back string) {
	GinkgoHelper()
	patch(ctx, target("hosting"), publishedResources, "", name, content)
	DeferCleanup(func(ctx SpecContext) { patch(ctx, target("hosting"), publishedResources, "", name, back) })
}

// staysFor expects that a value does not change for longer than the hub takes to act.
func staysFor(ctx context.Context, actual func() string, want string) {
	GinkgoHelper()
	Consistently(actual).WithContext(ctx).WithTimeout(3 * time.Second).WithPolling(200 * time.Millisecond).Should(Equal(want))
}

func eventuallyMarked(ctx context.Context, resource schema.GroupVersionResource, namespace, name, part string) {
	GinkgoHelper()
	Eventually(value).WithContext(ctx).WithArguments(target("florin"), resource, namespace, name, "metadata", "annotations", "synchub.dev/mark").Should(ContainSubstring(part))
}

// eventuallyReleased expects that an object on florin loses its marks and stays.
func eventuallyReleased(ctx context.Context, resource schema.GroupVersionResource, namespace, name string) {
	GinkgoHelper()
	Eventually(value).WithContext(ctx).WithArguments(target("florin"), resource, namespace, name, "metadata", "annotations", "synchub.dev/mark").Should(BeEmpty())
	Expect(value(ctx, target("florin"), resource, namespace, name, "metadata", "labels", "synchub.dev/owner")).To(BeEmpty())
	Expect(framework.Exists(ctx, target("florin"), resource, namespace, name)).To(BeTrue())
}
