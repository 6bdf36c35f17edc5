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
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/framework/installation"
)

// publishAs creates a PublishedResource with a YAML spec, until the spec of the test ends.
func publishAs(ctx context.Context, name, spec string) {
	GinkgoHelper()
	hosting := target("hosting")
	apply(ctx, hosting, fmt.Sprintf("apiVersion: synchub.dev/v1alpha1\nkind: PublishedResource\nmetadata: {name: %s}\nspec:%s", name, spec))
	DeferCleanup(func(ctx SpecContext) { remove(ctx, hosting, publishedResources, "", name) })
}

func eventuallyPublished(ctx context.Context, names ...string) {
	GinkgoHelper()
	for _, name := range names {
		Eventually(framework.Condition).WithContext(ctx).WithArguments(target("hosting"), publishedResources, "", name, "Ready").
			Should(Equal("True"), "%s must be published", name)
	}
}

// annotateFlorin sets an annotation of the shared SyncTarget florin to a JSON value.
func annotateFlorin(ctx context.Context, city string) {
	GinkgoHelper()
	patch(ctx, sharedInventory().Config, installation.SyncTargets, "", "florin", `{"metadata": {"annotations": {"ruled.example.com/city": `+city+`}}}`)
}

var _ = Describe("the rules of a PublishedResource", func() {
	It("give an API and its objects other names, and change them in both directions", func(ctx SpecContext) {
		const ns, group = "ruled", "ruled.example.com"
		widgets, gadgets := custom(group, "v1", "widgets", "Widget"), custom("shop."+group, "v1", "gadgets", "Gadget")
		define(ctx, target("hosting"), widgets)
		define(ctx, target("florin"), widgets)
		publishAs(ctx, "ruled", `
  resource: {group: ruled.example.com, resource: widgets, kind: Widget}
  projection: {group: shop.ruled.example.com, kind: Gadget, plural: gadgets, shortNames: [gg]}
  filter: {cel: "self.spec.name != 'excluded'"}
  ignoreFields: [{path: spec.never, onCreate: false}]
  naming: {namespace: "{{ .Object.metadata.namespace }}-on-{{ .SyncTarget }}", name: "{{ .Object.spec.name }}"}
  mutation:
    down:
    - delete: {path: spec.secret}
    - set: {path: spec.size, value: {width: 2}}
    - regex: {path: "spec.images[*]", pattern: "^docker.io/", replacement: "mirror.example.com/"}
    - template: {path: "metadata.labels['came-from']", template: "{{ .Object.spec.name | upper }}"}
    - cel: {path: spec.replicas, expression: "value * 2"}
    - cel: {path: spec.city, expression: "syncTarget.metadata.annotations[?'ruled.example.com/city'].orValue('unknown')"}
    up:
    - template: {path: status.cluster, template: "{{ .SyncTarget.metadata.name }}"}
    - regex: {path: status.address, pattern: "[.]internal$", replacement: ".example.com"}
`)
		eventuallyPublished(ctx, "ruled")
		florin, mailbox := target("florin"), sharedMailbox(ctx, "florin")
		const below = ns + "-on-florin"
		apply(ctx, mailbox, documents(namespace(ns),
			gadgets.object(ns, "first", "spec: {name: one, secret: x, never: x, replicas: 2, images: [docker.io/app, other/app]}"),
			gadgets.object(ns, "filtered", "spec: {name: excluded, replicas: 1}"),
			gadgets.object(ns, "broken", "spec: {name: two, replicas: many}"),
			gadgets.object(ns, "illegal", "spec: {name: not/legal, replicas: 1}"),
			selecting(ns, gadgets.GroupVersionResource)))
		read := readerOf(ctx, florin)
		Eventually(read(widgets.GroupVersionResource, below, "one", "spec")).WithContext(ctx).
			Should(Equal("map[city:unknown images:[mirror.example.com/app other/app] name:one replicas:4 size:map[width:2]]"))
		Expect(value(ctx, florin, widgets.GroupVersionResource, below, "one", "metadata", "labels", "came-from")).To(Equal("ONE"))
		Expect(framework.Exists(ctx, florin, widgets.GroupVersionResource, below, "excluded")).To(BeFalse())
		By("reporting on the object that a rule fails")
		Eventually(reasons).WithContext(ctx).WithArguments(mailbox, ns, "broken").Should(ContainElement("RuleFailed"))
		Eventually(reasons).WithContext(ctx).WithArguments(mailbox, ns, "illegal").Should(ContainElement("Invalid"))
		By("returning the status through the rules for upsync")
		patch(ctx, florin, widgets.GroupVersionResource, below, "one", `{"status": {"address": "one.internal", "ready": true}}`, "status")
		Eventually(readerOf(ctx, mailbox)(gadgets.GroupVersionResource, ns, "first", "status")).WithContext(ctx).Should(Equal("map[address:one.example.com cluster:florin ready:true]"))
		By("applying another value of the SyncTarget")
		annotateFlorin(ctx, `"Florence"`)
		Eventually(read(widgets.GroupVersionResource, below, "one", "spec", "city")).WithContext(ctx).Should(Equal("Florence"))
		annotateFlorin(ctx, "null")
		Eventually(read(widgets.GroupVersionResource, below, "one", "spec", "city")).WithContext(ctx).Should(Equal("unknown"))
		By("keeping a name for the first of two objects, until the first is deleted")
		apply(ctx, mailbox, gadgets.object(ns, "second", "spec: {name: one, replicas: 9}"))
		Eventually(reasons).WithContext(ctx).WithArguments(mailbox, ns, "second").Should(ContainElement("Conflict"))
		Expect(value(ctx, florin, widgets.GroupVersionResource, below, "one", "spec", "replicas")).To(Equal("4"))
		remove(ctx, mailbox, gadgets.GroupVersionResource, ns, "first")
		Eventually(read(widgets.GroupVersionResource, below, "one", "spec", "replicas")).WithContext(ctx).Should(Equal("18"))
		By("moving objects when the rule for their names changes")
		patch(ctx, target("hosting"), publishedResources, "", "ruled", `{"spec": {"naming": {"name": "moved-{{ .Object.spec.name }}"}}}`)
		Eventually(read(widgets.GroupVersionResource, below, "moved-one", "spec", "replicas")).WithContext(ctx).Should(Equal("18"))
		eventuallyGone(ctx, florin, widgets.GroupVersionResource, below, "one")
	}, NodeTimeout(4*time.Minute))

	It("keep an object in the mailbox until its copy is deleted, and release it with the PublishedResource", func(ctx SpecContext) {
		const ns, group = "waiting", "waiting.example.com"
		widgets := custom(group, "v1", "widgets", "Widget")
		gvr := widgets.GroupVersionResource
		define(ctx, target("hosting"), widgets)
		define(ctx, target("florin"), widgets)
		publishAs(ctx, "waiting", `
  resource: {group: waiting.example.com, resource: widgets}
  deletion: {waitForTarget: true}
`)
		eventuallyPublished(ctx, "waiting")
		florin, mailbox := target("florin"), sharedMailbox(ctx, "florin")
		apply(ctx, mailbox, documents(namespace(ns), widgets.object(ns, "slow", "spec: {}"), widgets.object(ns, "kept", "spec: {}"), selecting(ns, gvr)))
		eventuallyExists(ctx, florin, gvr, ns, "slow")
		eventuallyExists(ctx, florin, gvr, ns, "kept")
		patch(ctx, florin, gvr, ns, "slow", `{"metadata": {"finalizers": ["example.com/slow"]}}`)
		remove(ctx, mailbox, gvr, ns, "slow")
		Eventually(value).WithContext(ctx).WithArguments(florin, gvr, ns, "slow", "metadata", "deletionTimestamp").ShouldNot(BeEmpty())
		Consistently(framework.Exists).WithContext(ctx).WithArguments(mailbox, gvr, ns, "slow").WithTimeout(2 * time.Second).Should(BeTrue())
		patch(ctx, florin, gvr, ns, "slow", `{"metadata": {"finalizers": null}}`)
		eventuallyGone(ctx, mailbox, gvr, ns, "slow")
		By("unpublishing it")
		Expect(value(ctx, mailbox, gvr, ns, "kept", "metadata", "finalizers")).To(ContainSubstring("synchub.dev"))
		remove(ctx, target("hosting"), publishedResources, "", "waiting")
		eventuallyGone(ctx, target("hosting"), publishedResources, "", "waiting")
		Expect(value(ctx, mailbox, gvr, ns, "kept", "metadata", "finalizers")).To(BeEmpty())
		Expect(framework.Exists(ctx, florin, gvr, ns, "kept")).To(BeTrue(), "unpublishing removes nothing")
	}, NodeTimeout(4*time.Minute))
})
