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
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/synchub-dev/synchub/test/framework"
)

// Mailboxes have Parcels and Notices. Targets have Packages instead, in a separate group for each spec.
var (
	parcels = custom("above.example.com", "v1", "parcels", "Parcel")
	notices = custom("above.example.com", "v1", "notices", "Notice")
)

func packages(group string) api { return custom(group, "v1beta1", "packages", "Package") }

// renaming returns an item of spec.conversions; both sides are YAML in flow style.
func renaming(upstream, downstream string) string {
	return fmt.Sprintf("\n  - {upstream: {%s}, downstream: {%s}}", upstream, downstream)
}

// toPackages returns the conversion of Parcels to Packages by name; "" matches all that have no other conversion.
func toPackages(group, above, below string) string {
	name := func(name string) string {
		if name == "" {
			return `"*"`
		}
		return name
	}
	return renaming("group: above.example.com, version: v1, kind: Parcel, name: "+name(above),
		fmt.Sprintf("group: %s, version: v1beta1, kind: Package, name: %s", group, name(below)))
}

func configMapsCalled(above, below string) string {
	return renaming("version: v1, kind: ConfigMap, name: "+above, "version: v1, kind: ConfigMap, name: "+below)
}

// config returns a SyncerConfig; entries and conversions are YAML below spec.
func config(name, entries string, conversions ...string) string {
	manifest := fmt.Sprintf("apiVersion: edge.kubestellar.io/v2alpha1\nkind: SyncerConfig\nmetadata: {name: %s}\nspec:%s", name, entries)
	if len(conversions) > 0 {
		manifest += "\n  conversions:"
	}
	for _, conversion := range conversions {
		manifest += conversion
	}
	return manifest
}

// goingDown returns the entries that select all objects of some resources in a namespace.
func goingDown(namespace string, apis ...api) string {
	entries := "\n  namespacedObjects:"
	for _, api := range apis {
		entries += fmt.Sprintf("\n  - {group: %q, resource: %s, apiVersion: %s, objectsByNamespace: [{namespace: %s, names: [\"*\"]}]}",
			api.Group, api.Resource, api.Version, namespace)
	}
	return entries
}

var configMapAPI = api{GroupVersionResource: configMaps, kind: "ConfigMap", claimed: true}

func eventuallyHas(ctx context.Context, config *rest.Config, resource schema.GroupVersionResource, namespace, name, want string, path ...string) {
	GinkgoHelper()
	Eventually(value).WithContext(ctx).WithArguments(append([]any{config, resource, namespace, name}, anys(path)...)...).Should(Equal(want), "%s %s/%s", resource.Resource, namespace, name)
}

func anys(texts []string) []any {
	all := make([]any, len(texts))
	for i, text := range texts {
		all[i] = text
	}
	return all
}

var _ = Describe("conversions", func() {
	It("give objects and their definitions another group, version, kind and name on the target", func(ctx SpecContext) {
		const ns, below = "renatured", "renatured.example.com"
		denatured := packages(below + ".denatured")
		packages := packages(below)
		publish(ctx, parcels, notices)
		publishOnTarget(ctx, packages)
		florin, mailbox := target("florin"), sharedMailbox(ctx, "florin")
		apply(ctx, mailbox, documents(namespace(ns),
			parcels.object(ns, "first", "spec: {weight: 1, paper: brown}"), parcels.object(ns, "second", "spec: {weight: 2, paper: brown}"),
			notices.object(ns, "news", "data: {entry: fine}"), configMap(ns, "denatured", "renamed"), configMap(ns, "plain", "as it is"),
			config(ns, goingDown(ns, parcels, notices, configMapAPI)+fmt.Sprintf(`
  clusterScope:
  - {group: apiextensions.k8s.io, resource: customresourcedefinitions, apiVersion: v1, objects: [%s]}`, denatured.GroupResource()),
				toPackages(below, "first", "number-one"), toPackages(below, "", ""),
				renaming("group: above.example.com, version: v1, kind: Notice", "version: v1, kind: ConfigMap"),
				configMapsCalled("denatured", "natured"),
				renaming("group: apiextensions.k8s.io, kind: CustomResourceDefinition, name: "+denatured.GroupResource().String(),
					"group: apiextensions.k8s.io, kind: CustomResourceDefinition, name: "+packages.GroupResource().String()))))

		By("converting to APIs that the target serves, also from and to the core group")
		eventuallyHas(ctx, florin, configMaps, ns, "natured", "renamed", "data", "entry")
		eventuallyHas(ctx, florin, configMaps, ns, "plain", "as it is", "data", "entry")
		eventuallyHas(ctx, florin, configMaps, ns, "news", "fine", "data", "entry")
		Expect(framework.Exists(ctx, florin, configMaps, ns, "denatured")).To(BeFalse())
		By("naming an API that it does not serve")
		Eventually(readyOf).WithContext(ctx).WithArguments(mailbox, ns).Should(And(HavePrefix("False NotServed"), ContainSubstring("Package."+below)))

		By("converting that too when its definition is installed, under its real name on the target")
		apply(ctx, mailbox, denatured.definition())
		eventuallyHas(ctx, florin, definitions, "", packages.GroupResource().String(), below, "spec", "group")
		By("downsyncing the pending objects")
		eventuallyHas(ctx, florin, packages.GroupVersionResource, ns, "number-one", "1", "spec", "weight")
		eventuallyHas(ctx, florin, packages.GroupVersionResource, ns, "second", "2", "spec", "weight")
		Expect(framework.Exists(ctx, florin, packages.GroupVersionResource, ns, "first")).To(BeFalse())
		By("reporting InSync")
		Eventually(readyOf).WithContext(ctx).WithArguments(mailbox, ns).Should(HavePrefix("True"))
		Eventually(value).WithContext(ctx).WithArguments(mailbox, syncerConfigs, "", ns, "status", "synced").Should(Equal("6"))

		By("following changes, repairing, and returning the status")
		patch(ctx, mailbox, parcels.GroupVersionResource, ns, "first", `{"spec": {"weight": 3}}`)
		eventuallyHas(ctx, florin, packages.GroupVersionResource, ns, "number-one", "3", "spec", "weight")
		patch(ctx, florin, packages.GroupVersionResource, ns, "number-one", `{"spec": {"weight": 4}}`)
		eventuallyHas(ctx, florin, packages.GroupVersionResource, ns, "number-one", "3", "spec", "weight")
		remove(ctx, florin, packages.GroupVersionResource, ns, "number-one")
		eventuallyHas(ctx, florin, packages.GroupVersionResource, ns, "number-one", "3", "spec", "weight")
		patch(ctx, florin, packages.GroupVersionResource, ns, "number-one", `{"status": {"delivered": true}}`, "status")
		eventuallyHas(ctx, mailbox, parcels.GroupVersionResource, ns, "first", "true", "status", "delivered")

		By("following deletions")
		remove(ctx, mailbox, parcels.GroupVersionResource, ns, "first")
		remove(ctx, mailbox, configMaps, ns, "denatured")
		eventuallyGone(ctx, florin, packages.GroupVersionResource, ns, "number-one")
		eventuallyGone(ctx, florin, configMaps, ns, "natured")
		By("deleting copies that are no longer selected, except the definition")
		remove(ctx, mailbox, syncerConfigs, "", ns)
		eventuallyGone(ctx, florin, packages.GroupVersionResource, ns, "second")
		eventuallyGone(ctx, florin, configMaps, ns, "news")
		eventuallyHas(ctx, florin, definitions, "", packages.GroupResource().String(), "", "metadata", "annotations", "synchub.dev/mark")
		Expect(framework.Exists(ctx, florin, definitions, "", packages.GroupResource().String())).To(BeTrue())
	}, NodeTimeout(2*time.Minute))

	It("create the new copy before they delete the old one when the conversion changes", thorough, func(ctx SpecContext) {
		const ns, below = "moved", "moved.example.com"
		packages, boxes, same := packages(below), custom(below, "v1", "boxes", "Box"), custom(below, "v1", "parcels", "Parcel")
		publish(ctx, parcels)
		publishOnTarget(ctx, packages, boxes, same)
		guilder := target("guilder")
		define(ctx, guilder, packages, boxes, same)
		mailbox := sharedMailbox(ctx, "guilder")
		history := follow(ctx, guilder, ns, configMaps, packages.GroupVersionResource, boxes.GroupVersionResource, same.GroupVersionResource)
		entries := goingDown(ns, parcels, configMapAPI)
		apply(ctx, mailbox, documents(namespace(ns), parcels.object(ns, "first", "spec: {weight: 1, paper: brown}"),
			configMap(ns, "settings", "x"), config(ns, entries, toPackages(below, "", ""), configMapsCalled("settings", "one"))))
		eventuallyExists(ctx, guilder, packages.GroupVersionResource, ns, "first")
		eventuallyExists(ctx, guilder, configMaps, ns, "one")

		By("to another name")
		apply(ctx, mailbox, config(ns, entries, toPackages(below, "first", "number-one"), configMapsCalled("settings", "two")))
		history.expectMoved(ctx, "packages/first", "packages/number-one")
		history.expectMoved(ctx, "configmaps/one", "configmaps/two")
		By("to another kind")
		apply(ctx, mailbox, config(ns, entries,
			renaming("group: above.example.com, kind: Parcel", "group: "+below+", kind: Box"), configMapsCalled("settings", "two")))
		history.expectMoved(ctx, "packages/number-one", "boxes/first")
		By("to another group, of any kind, and to its own name")
		apply(ctx, mailbox, config(ns, entries, renaming(`group: above.example.com, kind: "*"`, "group: "+below+`, kind: "*"`)))
		history.expectMoved(ctx, "boxes/first", "parcels/first")
		history.expectMoved(ctx, "configmaps/two", "configmaps/settings")
		By("not while another object has the new name")
		apply(ctx, guilder, packages.object(ns, "first", "spec: {weight: 100, paper: brown}"))
		apply(ctx, mailbox, config(ns, entries, toPackages(below, "", "")))
		Eventually(failures).WithContext(ctx).WithArguments(mailbox, ns).Should(ConsistOf("Conflict first"))
		Expect(framework.Exists(ctx, guilder, same.GroupVersionResource, ns, "first")).To(BeTrue())
		Expect(value(ctx, guilder, packages.GroupVersionResource, ns, "first", "spec", "weight")).To(Equal("100"))
		remove(ctx, guilder, packages.GroupVersionResource, ns, "first")
		eventuallyGone(ctx, guilder, same.GroupVersionResource, ns, "first")
		Expect(value(ctx, guilder, packages.GroupVersionResource, ns, "first", "spec", "weight")).To(Equal("1"))
		Eventually(readyOf).WithContext(ctx).WithArguments(mailbox, ns).Should(HavePrefix("True"))
	}, NodeTimeout(2*time.Minute))

	It("give a name to the first of two sources, and apply the oldest of two configs", thorough, func(ctx SpecContext) {
		const ns = "one-name"
		florin, mailbox := target("florin"), sharedMailbox(ctx, "florin")
		entries := goingDown(ns, configMapAPI)
		apply(ctx, mailbox, documents(namespace(ns), configMap(ns, "first", "the first"), configMap(ns, "settings", "x"),
			config(ns, entries, configMapsCalled("first", "shared"), configMapsCalled("second", "shared"), configMapsCalled("settings", "renamed"))))
		eventuallyHas(ctx, florin, configMaps, ns, "shared", "the first", "data", "entry")
		eventuallyExists(ctx, florin, configMaps, ns, "renamed")

		By("two sources of one name")
		apply(ctx, mailbox, configMap(ns, "second", "the second"))
		Eventually(failures).WithContext(ctx).WithArguments(mailbox, ns).Should(ConsistOf("Conflict second"))
		patch(ctx, mailbox, configMaps, ns, "first", `{"data": {"entry": "still the first"}}`)
		eventuallyHas(ctx, florin, configMaps, ns, "shared", "still the first", "data", "entry")

		By("two configs with different names for one object")
		apply(ctx, mailbox, config(ns+"-younger", entries, configMapsCalled("settings", "otherwise")))
		Eventually(framework.Condition).WithContext(ctx).WithArguments(mailbox, syncerConfigs, "", ns+"-younger", "Overlapping").Should(Equal("True"))
		Expect(message(ctx, mailbox, syncerConfigs, ns+"-younger", "Overlapping")).To(ContainSubstring("settings"))
		Expect(framework.Condition(ctx, mailbox, syncerConfigs, "", ns, "Overlapping")).To(BeEmpty())
		Expect(framework.Exists(ctx, florin, configMaps, ns, "otherwise")).To(BeFalse())

		By("the younger config applies")
		remove(ctx, mailbox, syncerConfigs, "", ns)
		eventuallyExists(ctx, florin, configMaps, ns, "otherwise")
		eventuallyGone(ctx, florin, configMaps, ns, "renamed")
		Eventually(framework.Condition).WithContext(ctx).WithArguments(mailbox, syncerConfigs, "", ns+"-younger", "Overlapping").Should(BeEmpty())
		By("the second source gets a name of its own")
		eventuallyHas(ctx, florin, configMaps, ns, "second", "the second", "data", "entry")
		eventuallyHas(ctx, florin, configMaps, ns, "first", "still the first", "data", "entry")
		eventuallyGone(ctx, florin, configMaps, ns, "shared")
	}, NodeTimeout(2*time.Minute))

	It("upsync objects under their names in the mailbox", thorough, func(ctx SpecContext) {
		const ns, below = "raised-as", "raised.example.com"
		packages := packages(below)
		publish(ctx, parcels)
		publishOnTarget(ctx, packages)
		guilder := target("guilder")
		define(ctx, guilder, packages)
		mailbox := sharedMailbox(ctx, "guilder")
		entries := fmt.Sprintf(`
  upsync:
  - {apiGroup: %s, resources: [packages], namespaces: [%s], names: ["*"]}
  - {apiGroup: "", resources: [configmaps], namespaces: [%s], names: [report]}`, below, ns, ns)
		apply(ctx, guilder, documents(namespace(ns), configMap(ns, "report", "x"),
			packages.object(ns, "number-one", "spec: {weight: 1, paper: brown}"), packages.object(ns, "second", "spec: {weight: 2, paper: brown}")))
		patch(ctx, guilder, packages.GroupVersionResource, ns, "number-one", `{"status": {"delivered": true}}`, "status")
		apply(ctx, mailbox, config(ns, entries, toPackages(below, "first", "number-one"), toPackages(below, "", ""), configMapsCalled("above", "report")))

		eventuallyHas(ctx, mailbox, parcels.GroupVersionResource, ns, "first", "true", "status", "delivered")
		eventuallyHas(ctx, mailbox, parcels.GroupVersionResource, ns, "second", "2", "spec", "weight")
		eventuallyHas(ctx, mailbox, configMaps, ns, "above", "x", "data", "entry")
		Expect(framework.Exists(ctx, mailbox, parcels.GroupVersionResource, ns, "number-one")).To(BeFalse())
		Eventually(readyOf).WithContext(ctx).WithArguments(mailbox, ns).Should(HavePrefix("True"))

		By("following changes, and reverting changes in the mailbox")
		patch(ctx, guilder, packages.GroupVersionResource, ns, "number-one", `{"spec": {"weight": 3}}`)
		eventuallyHas(ctx, mailbox, parcels.GroupVersionResource, ns, "first", "3", "spec", "weight")
		patch(ctx, mailbox, parcels.GroupVersionResource, ns, "first", `{"spec": {"weight": 4}}`)
		eventuallyHas(ctx, mailbox, parcels.GroupVersionResource, ns, "first", "3", "spec", "weight")
		By("moving objects with a changed name")
		above := follow(ctx, mailbox, ns, parcels.GroupVersionResource, configMaps)
		apply(ctx, mailbox, config(ns, entries, toPackages(below, "renamed", "number-one"), toPackages(below, "", "")))
		above.expectMoved(ctx, "parcels/first", "parcels/renamed")
		above.expectMoved(ctx, "configmaps/above", "configmaps/report")
		eventuallyHas(ctx, mailbox, parcels.GroupVersionResource, ns, "renamed", "true", "status", "delivered")
		By("never downsyncing upsynced objects")
		Expect(framework.Exists(ctx, guilder, packages.GroupVersionResource, ns, "renamed")).To(BeFalse())
		Expect(framework.Exists(ctx, guilder, configMaps, ns, "above")).To(BeFalse())
		By("following deletions")
		remove(ctx, guilder, packages.GroupVersionResource, ns, "number-one")
		eventuallyGone(ctx, mailbox, parcels.GroupVersionResource, ns, "renamed")
		Expect(framework.Exists(ctx, mailbox, parcels.GroupVersionResource, ns, "second")).To(BeTrue())
		By("deleting upsynced objects that are no longer selected")
		remove(ctx, mailbox, syncerConfigs, "", ns)
		eventuallyGone(ctx, mailbox, parcels.GroupVersionResource, ns, "second")
		eventuallyGone(ctx, mailbox, configMaps, ns, "report")
		Expect(framework.Exists(ctx, guilder, packages.GroupVersionResource, ns, "second")).To(BeTrue())
	}, NodeTimeout(2*time.Minute))
})

// readyOf returns the status, reason and message of the condition Ready of a SyncerConfig.
func readyOf(ctx context.Context, mailbox *rest.Config, name string) string {
	object, err := framework.Get(ctx, mailbox, syncerConfigs, "", name)
	if err != nil {
		return err.Error()
	}
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, condition := range conditions {
		if fields := condition.(map[string]any); fields["type"] == "Ready" {
			return fmt.Sprintf("%s %s: %s", fields["status"], fields["reason"], fields["message"])
		}
	}
	return ""
}
