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

var _ = Describe("targets: objects that are created once", func() {
	It("are not changed until the annotation in the mailbox changes, in all orders", func(ctx SpecContext) {
		const ns, overwrite = "create-once", "edge.kubestellar.io/downsync-overwrite"
		florin, mailbox := target("florin"), sharedMailbox(ctx, "florin")
		names := []string{"always", "once", "kept", "dropped"}
		overwritten := func(name, setting string) {
			GinkgoHelper()
			patch(ctx, mailbox, configMaps, ns, name, fmt.Sprintf(`{"metadata": {"annotations": {%q: %s}}}`, overwrite, setting))
		}
		apply(ctx, mailbox, namespace(ns))
		for _, name := range names {
			apply(ctx, mailbox, configMap(ns, name, "first"))
			if name != "always" {
				overwritten(name, `"false"`)
			}
		}
		apply(ctx, mailbox, everythingIn(ns))
		entry := func(name string) string { return value(ctx, florin, configMaps, ns, name, "data", "entry") }
		entries := func() string { return entry("once") + " " + entry("kept") + " " + entry("dropped") }
		for _, name := range names {
			Eventually(entry).WithContext(ctx).WithArguments(name).Should(Equal("first"))
		}

		By("keeping changes made on the target, and not applying later changes of the mailbox")
		for _, name := range names {
			patch(ctx, florin, configMaps, ns, name, `{"data": {"entry": "theirs"}}`)
		}
		Eventually(entry).WithContext(ctx).WithArguments("always").Should(Equal("first"))
		for _, name := range names {
			patch(ctx, mailbox, configMaps, ns, name, `{"data": {"entry": "second"}}`)
		}
		Eventually(entry).WithContext(ctx).WithArguments("always").Should(Equal("second"))
		By("restoring only a removed label")
		patch(ctx, florin, configMaps, ns, "once", `{"metadata": {"labels": {"synchub.dev/owner": null}}}`)
		Eventually(value).WithContext(ctx).WithArguments(florin, configMaps, ns, "once", "metadata", "labels", "synchub.dev/owner").ShouldNot(BeEmpty())
		staysFor(ctx, entries, "theirs theirs theirs")

		By("overwriting it when the annotation is true or removed")
		overwritten("once", `"true"`)
		overwritten("dropped", `null`)
		Eventually(entries).WithContext(ctx).Should(Equal("second theirs second"))
		patch(ctx, florin, configMaps, ns, "once", `{"data": {"entry": "theirs"}}`)
		Eventually(entry).WithContext(ctx).WithArguments("once").Should(Equal("second"))
		By("adding the annotation again")
		overwritten("once", `"false"`)
		eventuallyMarked(ctx, configMaps, ns, "once", `"policy":"CreateOnly"`)
		patch(ctx, mailbox, configMaps, ns, "once", `{"data": {"entry": "third"}}`)
		patch(ctx, mailbox, configMaps, ns, "always", `{"data": {"entry": "third"}}`)
		Eventually(entry).WithContext(ctx).WithArguments("always").Should(Equal("third"))
		staysFor(ctx, entries, "second theirs second")
		overwritten("once", `null`)
		Eventually(entry).WithContext(ctx).WithArguments("once").Should(Equal("third"))
		Eventually(value).WithContext(ctx).WithArguments(florin, configMaps, ns, "once", "metadata", "annotations", overwrite).Should(BeEmpty())

		By("keeping it, without marks, when it is deleted in the mailbox")
		for _, name := range names {
			remove(ctx, mailbox, configMaps, ns, name)
		}
		for _, name := range []string{"always", "once", "dropped"} {
			eventuallyGone(ctx, florin, configMaps, ns, name)
		}
		eventuallyReleased(ctx, configMaps, ns, "kept")
		Expect(entry("kept")).To(Equal("theirs"))
		Eventually(framework.Condition).WithContext(ctx).WithArguments(mailbox, syncerConfigs, "", ns, "Ready").Should(Equal("True"))
	}, NodeTimeout(3*time.Minute))
})
