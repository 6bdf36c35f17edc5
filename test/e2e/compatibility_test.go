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

	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/framework/installation"
)

var _ = Describe("compatibility", func() {
	It("does not sync objects with fields that a target's schema lacks, reports the reason, and syncs them after the schema changes", func(ctx SpecContext) {
		const ns, group = "compatible", "compatible.example.dev"
		const narrow, wide = "{size: {type: integer, maximum: 5}}", "{size: {type: integer, maximum: 9}}"
		widgets, warned, gadgets := custom(group, "v1", "widgets", "Widget"), custom(group, "v1", "warned", "Warning"), custom(group, "v1", "gadgets", "Gadget")
		apply(ctx, target("florin"), documents(widgets.with(narrow), warned.with(narrow),
			// The target serves the resource, but not in the version that mailboxes have.
			strings.ReplaceAll(gadgets.with(wide), "name: v1\n", "name: v2\n")))
		for _, published := range []api{widgets, warned, gadgets} {
			name := ns + "-" + published.Resource
			apply(ctx, target("hosting"), fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, namespace: %s}\ndata:\n  crd.yaml: |\n    %s",
				name, installation.Namespace, strings.ReplaceAll(published.with(wide), "\n", "\n    ")))
			publishAs(ctx, name, fmt.Sprintf(`
  resource: {group: %s, resource: %s}
  api: {source: Schema, schemaFrom: {configMap: {name: %s}}}`, group, published.Resource, name))
		}
		eventuallyPublished(ctx, ns+"-widgets", ns+"-warned", ns+"-gadgets")

		inventory := sharedInventory()
		mailbox := register(ctx, inventory, "florin", "florin")
		apply(ctx, mailbox, documents(namespace(ns), configMap(ns, "settings", "x"), widgets.object(ns, "large", "spec: {size: 9}"),
			warned.object(ns, "small", "spec: {size: 3}"), gadgets.object(ns, "small", "spec: {size: 3}"),
			selecting(ns, widgets.GroupVersionResource, warned.GroupVersionResource, gadgets.GroupVersionResource, configMaps)))
		state := func(resource string) func() string {
			return func() string { return syncedResource(ctx, inventory, "florin", resource) }
		}
		refused := And(HavePrefix("Incompatible SchemaIncompatible: "), ContainSubstring("spec.size: the target takes numbers (…, 5], the mailbox (…, 9]"))

		Eventually(state("widgets")).WithContext(ctx).Should(refused)
		Eventually(state("warned")).WithContext(ctx).Should(refused)
		Eventually(state("gadgets")).WithContext(ctx).Should(And(HavePrefix("Incompatible VersionNotServed: "), ContainSubstring("v2 only")))
		By("syncing all other resources")
		eventuallyExists(ctx, target("florin"), configMaps, ns, "settings")
		Eventually(state("configmaps")).WithContext(ctx).Should(HavePrefix("Accepted "))
		quiet(ctx)
		Expect(framework.Exists(ctx, target("florin"), widgets.GroupVersionResource, ns, "large")).To(BeFalse())
		Expect(framework.Exists(ctx, target("florin"), warned.GroupVersionResource, ns, "small")).To(BeFalse())

		By("syncing an incompatible object where the PublishedResource allows it")
		patch(ctx, target("hosting"), publishedResources, "", ns+"-warned", `{"spec": {"compatibility": "Warn"}}`)
		eventuallyExists(ctx, target("florin"), warned.GroupVersionResource, ns, "small")
		Expect(state("warned")()).To(refused)
		Expect(state("widgets")()).To(refused)

		By("comparing again when the target's definition gets the field")
		apply(ctx, target("florin"), widgets.with(wide))
		Eventually(state("widgets")).WithContext(ctx).Should(HavePrefix("Accepted Compatible: "))
		eventuallyExists(ctx, target("florin"), widgets.GroupVersionResource, ns, "large")
		Expect(state("gadgets")()).To(HavePrefix("Incompatible VersionNotServed: "))
	}, NodeTimeout(3*time.Minute))
})

// with returns the API's CRD with only these properties in the spec, in YAML's flow style.
func (a api) with(properties string) string {
	return strings.Replace(a.definition(), "{type: object, x-kubernetes-preserve-unknown-fields: true}",
		"{type: object, properties: {spec: {type: object, properties: "+properties+"}}}", 1)
}

// syncedResource returns the hub's state of a resource, as "state reason: message".
func syncedResource(ctx context.Context, inventory *installation.Inventory, syncTarget, resource string) string {
	GinkgoHelper()
	found, err := inventory.SyncTarget(ctx, syncTarget)
	Expect(err).NotTo(HaveOccurred())
	for _, entry := range found.Status.SyncedResources {
		if entry.Resource == resource {
			return fmt.Sprintf("%s %s: %s", entry.State, entry.Reason, entry.Message)
		}
	}
	return ""
}
