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
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/synchub-dev/synchub/test/framework"
)

var _ = Describe("installCRD", func() {
	It("installs the definition on targets and keeps it in sync, and does not change definitions of other installers", func(ctx SpecContext) {
		const ns, group = "installed", "installed.example.com"
		const grown = sized + "\n  shape: {type: string}"
		pumps := custom(group, "v1", "pumps", "Pump")
		gvr, definition := pumps.GroupVersionResource, pumps.GroupResource().String()
		hosting, florin, guilder := target("hosting"), target("florin"), target("guilder")
		define(ctx, guilder, pumps)
		theirs := identities(ctx, guilder, definitions, "", definition)
		Expect(theirs).To(HaveLen(1))
		apply(ctx, hosting, pumps.withSpec(sized, "v1"))
		publishAs(ctx, "pumps", "\n  resource: {group: installed.example.com, resource: pumps, version: v1}\n  installCRD: true")
		eventuallyPublished(ctx, "pumps")
		inventory := sharedInventory()
		for _, name := range []string{"florin", "guilder"} {
			mailbox := register(ctx, inventory, name, name)
			apply(ctx, mailbox, documents(namespace(ns), pumps.object(ns, "one", `spec: {size: 1, port: "http"}`), selecting(ns, gvr)))
		}
		mailbox := mailboxOf(ctx, inventory, "florin")
		By("sending objects to both, by its own definition and by theirs")
		Eventually(framework.Condition).WithContext(ctx).WithArguments(florin, definitions, "", definition, "Established").Should(Equal("True"))
		for _, name := range []string{"florin", "guilder"} {
			Eventually(specOf).WithContext(ctx).WithArguments(target(name), gvr, ns, "one").Should(Equal(map[string]any{"size": int64(1), "port": "http"}), name)
		}
		By("syncing the target's definition when the published one changes, or when somebody changes it")
		placed := identities(ctx, florin, gvr, ns, "")
		apply(ctx, hosting, pumps.withSpec(grown, "v1"))
		versions := readerOf(ctx, florin)(definitions, "", definition, "spec", "versions")
		Eventually(versions).WithContext(ctx).Should(ContainSubstring("shape"))
		Eventually(func(g Gomega) {
			g.Expect(framework.Apply(ctx, mailbox, pumps.object(ns, "two", "spec: {size: 2, shape: round}"))).To(Succeed())
			g.Expect(value(ctx, mailbox, gvr, ns, "two", "spec", "shape")).To(Equal("round"), "in the mailbox")
			g.Expect(value(ctx, florin, gvr, ns, "two", "spec", "shape")).To(Equal("round"))
		}).WithContext(ctx).Should(Succeed())
		Expect(identities(ctx, florin, gvr, ns, "one")).To(HaveKeyWithValue("one", placed["one"]))
		patch(ctx, florin, definitions, "", definition, `{"spec": {"names": {"singular": "compressor"}}}`)
		Eventually(value).WithContext(ctx).WithArguments(florin, definitions, "", definition, "spec", "names", "singular").Should(Equal("pump"))
		By("adding a version, and never removing one")
		schemaName := readerOf(ctx, hosting)(publishedResources, "", "pumps", "status", "schemaName")
		apply(ctx, hosting, pumps.withSpec(grown, "v1", "v2"))
		Eventually(versions).WithContext(ctx).Should(ContainSubstring("name:v2"))
		before := schemaName()
		apply(ctx, hosting, pumps.withSpec(sized, "v1"))
		Eventually(schemaName).WithContext(ctx).ShouldNot(Equal(before))
		staysFor(ctx, func() string { return identities(ctx, florin, definitions, "", definition)[definition] }, identities(ctx, florin, definitions, "", definition)[definition])
		Expect(versions()).To(And(ContainSubstring("name:v2"), ContainSubstring("shape")))
		apply(ctx, mailbox, pumps.object(ns, "three", "spec: {size: 3}"))
		eventuallyExists(ctx, florin, gvr, ns, "three")
		Eventually(value).WithContext(ctx).WithArguments(florin, gvr, ns, "two", "spec", "shape").Should(BeEmpty(), "mailboxes have the field no more")
		By("keeping the definition when it is no longer published")
		placed = identities(ctx, florin, gvr, ns, "")
		remove(ctx, hosting, publishedResources, "", "pumps")
		Eventually(reasons).WithContext(ctx).WithArguments(hosting, "default", "pumps").Should(ContainElement("Unpublished"))
		staysFor(ctx, func() string { return versions() }, versions())
		Expect(identities(ctx, florin, gvr, ns, "")).To(Equal(placed))
		Expect(identities(ctx, guilder, definitions, "", definition)).To(Equal(theirs), "nobody has touched it")
	}, NodeTimeout(4*time.Minute))
})
