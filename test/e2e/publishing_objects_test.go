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

	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/explain"
	"github.com/synchub-dev/synchub/test/framework"
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

var _ = Describe("the rules of a PublishedResource", func() {
	It("give an API and its objects other names, and change them in both directions", func(ctx SpecContext) {
		const ns, group = "ruled", "ruled.example.com"
		widgets, gadgets := custom(group, "v1", "widgets", "Widget"), custom("shop."+group, "v1", "gadgets", "Gadget")
		define(ctx, target("hosting"), widgets)
		define(ctx, target("florin"), widgets)
		publishAs(ctx, "ruled", `
  resource: {group: ruled.example.com, resource: widgets, kind: Widget}
  projection: {group: shop.ruled.example.com, kind: Gadget, plural: gadgets, shortNames: [gg]}
  naming: {namespace: "{{ .Object.metadata.namespace }}-on-{{ .SyncTarget }}", name: "{{ .Object.spec.name }}"}
  mutation:
    down:
    - delete: {path: spec.secret}
    - set: {path: spec.size, value: {width: 2}}
    - regex: {path: "spec.images[*]", pattern: "^docker.io/", replacement: "mirror.example.com/"}
    - template: {path: "metadata.labels['came-from']", template: "{{ .Object.spec.name | upper }}"}
    - cel: {path: spec.replicas, expression: "value * 2"}
    up:
    - regex: {path: status.address, pattern: "[.]internal$", replacement: ".example.com"}
`)
		eventuallyPublished(ctx, "ruled")
		inventory := newInventory(ctx, ns)
		florin, mailbox := target("florin"), register(ctx, inventory, "florin", "florin")
		const below = ns + "-on-florin"
		apply(ctx, mailbox, documents(namespace(ns),
			gadgets.object(ns, "first", "spec: {name: one, secret: x, replicas: 2, images: [docker.io/app, other/app]}"),
			gadgets.object(ns, "broken", "spec: {name: two, replicas: many}"),
			gadgets.object(ns, "illegal", "spec: {name: not/legal, replicas: 1}"),
			selecting(ns, gadgets.GroupVersionResource)))
		read := readerOf(ctx, florin)
		Eventually(read(widgets.GroupVersionResource, below, "one", "spec")).WithContext(ctx).
			Should(Equal("map[images:[mirror.example.com/app other/app] name:one replicas:4 size:map[width:2]]"))
		Expect(value(ctx, florin, widgets.GroupVersionResource, below, "one", "metadata", "labels", "came-from")).To(Equal("ONE"))
		By("reporting on the object what a rule makes impossible")
		Eventually(reasons).WithContext(ctx).WithArguments(mailbox, ns, "broken").Should(ContainElement("RuleFailed"))
		Eventually(reasons).WithContext(ctx).WithArguments(mailbox, ns, "illegal").Should(ContainElement("Invalid"))
		By("returning the status through the rules for what comes up")
		patch(ctx, florin, widgets.GroupVersionResource, below, "one", `{"status": {"address": "one.internal", "ready": true}}`, "status")
		Eventually(readerOf(ctx, mailbox)(gadgets.GroupVersionResource, ns, "first", "status")).WithContext(ctx).Should(Equal("map[address:one.example.com ready:true]"))
		By("letting the first keep a name that two come to, until it goes")
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

	It("hold back what a filter does not let pass, and take away what stops passing", func(ctx SpecContext) {
		const ns, closed, group = "filtered", "filtered-closed", "filtered.example.com"
		widgets := custom(group, "v1", "widgets", "Widget")
		define(ctx, target("hosting"), widgets)
		define(ctx, target("guilder"), widgets)
		publishAs(ctx, "filtered", `
  resource: {group: filtered.example.com, resource: widgets}
  select: All
  filter:
    resource: {matchLabels: {tier: web}}
    namespace: {matchExpressions: [{key: closed, operator: DoesNotExist}]}
    cel: self.spec.size > 1
`)
		eventuallyPublished(ctx, "filtered")
		inventory := newInventory(ctx, ns)
		guilder, mailbox := target("guilder"), register(ctx, inventory, "guilder", "guilder")
		widget := func(namespace, name, tier string, size any) string {
			return fmt.Sprintf("apiVersion: %s/v1\nkind: Widget\nmetadata: {name: %s, namespace: %s, labels: {tier: %s}}\nspec: {size: %v}", group, name, namespace, tier, size)
		}
		apply(ctx, mailbox, documents(namespace(ns), namespace(closed), widget(ns, "passes", "web", 2), widget(ns, "other-tier", "db", 2),
			widget(ns, "small", "web", 1), widget(closed, "late", "web", 2)))
		By("sending what passes, without any config")
		eventuallyExists(ctx, guilder, widgets.GroupVersionResource, ns, "passes")
		eventuallyExists(ctx, guilder, widgets.GroupVersionResource, closed, "late")
		Expect(identities(ctx, guilder, widgets.GroupVersionResource, ns, "")).To(HaveLen(1))
		By("following the labels of objects and namespaces, and the expression")
		patch(ctx, mailbox, namespaces, "", closed, `{"metadata": {"labels": {"closed": "yes"}}}`)
		eventuallyGone(ctx, guilder, widgets.GroupVersionResource, closed, "late")
		apply(ctx, mailbox, documents(widget(ns, "other-tier", "web", 2), widget(ns, "small", "web", 3)))
		eventuallyExists(ctx, guilder, widgets.GroupVersionResource, ns, "other-tier")
		eventuallyExists(ctx, guilder, widgets.GroupVersionResource, ns, "small")
		By("neither sending nor taking away what the filter fails for")
		apply(ctx, mailbox, widget(ns, "passes", "web", "large"))
		Eventually(reasons).WithContext(ctx).WithArguments(mailbox, ns, "passes").Should(ContainElement("RuleFailed"))
		Expect(value(ctx, guilder, widgets.GroupVersionResource, ns, "passes", "spec", "size")).To(Equal("2"))
		patch(ctx, mailbox, namespaces, "", closed, `{"metadata": {"labels": {"closed": null}}}`)
		eventuallyExists(ctx, guilder, widgets.GroupVersionResource, closed, "late")
	}, NodeTimeout(4*time.Minute))

	It("leave ignored fields to the target, and change no value when they begin or cease to", func(ctx SpecContext) {
		const ns, group = "ignored", "ignored.example.com"
		widgets := custom(group, "v1", "widgets", "Widget")
		define(ctx, target("hosting"), widgets)
		define(ctx, target("florin"), widgets)
		publishAs(ctx, "ignored", `
  resource: {group: ignored.example.com, resource: widgets}
  ignoreFields:
  - {path: spec.replicas}
  - {path: spec.never, onCreate: false}
`)
		eventuallyPublished(ctx, "ignored")
		inventory := newInventory(ctx, ns)
		florin, mailbox := target("florin"), register(ctx, inventory, "florin", "florin")
		gvr := widgets.GroupVersionResource
		apply(ctx, mailbox, documents(namespace(ns), widgets.object(ns, "app", "spec: {replicas: 1, never: x, image: one, free: above}"), selecting(ns, gvr)))
		read := readerOf(ctx, florin)
		Eventually(read(gvr, ns, "app", "spec")).WithContext(ctx).Should(Equal("map[free:above image:one replicas:1]"))
		By("keeping what the target made of them when other fields change")
		patch(ctx, florin, gvr, ns, "app", `{"spec": {"replicas": 5}}`)
		patch(ctx, mailbox, gvr, ns, "app", `{"spec": {"image": "two", "replicas": 2}}`)
		Eventually(read(gvr, ns, "app", "spec", "image")).WithContext(ctx).Should(Equal("two"))
		Expect(read(gvr, ns, "app", "spec", "replicas")()).To(Equal("5"))
		By("ignoring one more: the value stays, also when the object changes")
		setIgnored := func(paths string) {
			GinkgoHelper()
			patch(ctx, target("hosting"), publishedResources, "", "ignored", `{"spec": {"ignoreFields": [`+paths+`]}}`)
			generation := value(ctx, target("hosting"), publishedResources, "", "ignored", "metadata", "generation")
			Eventually(value).WithContext(ctx).WithArguments(target("hosting"), publishedResources, "", "ignored", "status", "observedGeneration").Should(Equal(generation))
		}
		before := identities(ctx, florin, gvr, ns, "app")
		setIgnored(`{"path": "spec.replicas"}, {"path": "spec.free"}, {"path": "spec.never", "onCreate": false}`)
		patch(ctx, florin, gvr, ns, "app", `{"metadata": {"labels": {"seen": "yes"}}}`)
		patch(ctx, mailbox, gvr, ns, "app", `{"spec": {"image": "three", "free": "changed above"}}`)
		Eventually(read(gvr, ns, "app", "spec", "image")).WithContext(ctx).Should(Equal("three"))
		Expect(read(gvr, ns, "app", "spec")()).To(Equal("map[free:above image:three replicas:5]"))
		patch(ctx, florin, gvr, ns, "app", `{"spec": {"free": "below"}}`)
		By("ignoring nothing any more: the values stay until the object changes")
		setIgnored("")
		apply(ctx, mailbox, widgets.object(ns, "other", "spec: {replicas: 7}"))
		Eventually(read(gvr, ns, "other", "spec", "replicas")).WithContext(ctx).Should(Equal("7"))
		Expect(read(gvr, ns, "app", "spec")()).To(Equal("map[free:below image:three replicas:5]"))
		By("saying that they are left to the target, and both values")
		Eventually(readyOf).WithContext(ctx).WithArguments(mailbox, ns).Should(And(HavePrefix("True LeftToTarget: 1 of 2 objects are in sync."),
			ContainSubstring("widgets.ignored.example.com %s/app (spec.replicas, spec.free", ns)))
		Eventually(explained).WithContext(ctx).WithArguments(inventory, "florin", "widgets.ignored.example.com", ns+"/app").Should(And(
			comesTo(explain.Present, explain.Waiting, explain.StepContent),
			HaveField("Text", ContainSubstring("left to the target until the next change in the mailbox")),
			HaveField("Text", ContainSubstring("spec.replicas is 5 on the target and 2 in the mailbox"))))
		patch(ctx, mailbox, gvr, ns, "app", `{"spec": {"image": "four"}}`)
		Eventually(read(gvr, ns, "app", "spec")).WithContext(ctx).Should(Equal("map[free:changed above image:four never:x replicas:2]"))
		after := identities(ctx, florin, gvr, ns, "app")
		Expect(after["app"][:36]).To(Equal(before["app"][:36]), "it must be the same object all the time")
	}, NodeTimeout(4*time.Minute))

	It("keep an object in the mailbox until it is gone from the target, and let it go with the PublishedResource", func(ctx SpecContext) {
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
		inventory := newInventory(ctx, ns)
		florin, mailbox := target("florin"), register(ctx, inventory, "florin", "florin")
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
