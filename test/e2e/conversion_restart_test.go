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
)

var _ = Describe("conversions, across restarts and without extra requests", thorough, Label("requests"), func() {
	It("deletes the copies of a conversion that was removed while the hub was down", func(ctx SpecContext) {
		const ns, below = "while-down", "down.example.com"
		packages, kept := packages(below), custom(below, "v1", "keepsakes", "Keepsake")
		publish(ctx, parcels, notices)
		publishOnTarget(ctx, packages, kept)
		hosting := target("hosting")
		define(ctx, hosting, parcels, packages, kept)
		mailbox := sharedMailbox(ctx, "hosting")
		entries := goingDown(ns, parcels, notices, configMapAPI)
		apply(ctx, mailbox, documents(namespace(ns), parcels.object(ns, "first", "spec: {weight: 1, paper: brown}"),
			notices.object(ns, "news", "spec: {}"), configMap(ns, "settings", "x"),
			config(ns, entries, toPackages(below, "first", "number-one"), configMapsCalled("settings", "renamed"),
				renaming("group: above.example.com, kind: Notice", "group: "+below+", version: v1, kind: Keepsake"))))
		eventuallyExists(ctx, hosting, packages.GroupVersionResource, ns, "number-one")
		eventuallyExists(ctx, hosting, kept.GroupVersionResource, ns, "news")
		eventuallyExists(ctx, hosting, configMaps, ns, "renamed")

		Expect(hub.Kill9()).To(Succeed())
		// Notices are no longer selected; all other objects get their own names back.
		apply(ctx, mailbox, config(ns, goingDown(ns, parcels, configMapAPI)))
		startHub(ctx)
		eventuallyExists(ctx, hosting, parcels.GroupVersionResource, ns, "first")
		eventuallyExists(ctx, hosting, configMaps, ns, "settings")
		eventuallyGone(ctx, hosting, packages.GroupVersionResource, ns, "number-one")
		eventuallyGone(ctx, hosting, configMaps, ns, "renamed")
		eventuallyGone(ctx, hosting, kept.GroupVersionResource, ns, "news")
	}, NodeTimeout(2*time.Minute))

	It("makes one write per change and none at rest", SpecPriority(1), func(ctx SpecContext) {
		const ns, below = "counted-names", "counted.example.com"
		packages := packages(below)
		publish(ctx, parcels)
		publishOnTarget(ctx, packages)
		hosting := target("hosting")
		define(ctx, hosting, packages)
		apply(ctx, hosting, namespace(ns))
		inventory := newInventory(ctx, ns)
		mailbox := register(ctx, inventory, "hosting", "hosting")
		entries := goingDown(ns, parcels, configMapAPI) + fmt.Sprintf(`
  upsync:
  - {apiGroup: %s, resources: [packages], namespaces: [%s], names: [theirs]}`, below, ns)
		named := func(below string) string {
			return config(ns, entries, toPackages("counted.example.com", "first", below), toPackages("counted.example.com", "", ""), configMapsCalled("settings", "renamed"))
		}
		apply(ctx, mailbox, documents(namespace(ns), configMap(ns, "settings", "x"), named("number-one")))
		eventuallyExists(ctx, hosting, configMaps, ns, "renamed")
		Eventually(readyOf).WithContext(ctx).WithArguments(mailbox, ns).Should(HavePrefix("True"))

		counted := counting(ctx)
		counted("a create", func() { apply(ctx, mailbox, parcels.object(ns, "first", "spec: {weight: 1, paper: brown}")) },
			func() { eventuallyExists(ctx, hosting, packages.GroupVersionResource, ns, "number-one") },
			map[string]float64{"target object apply packages": 1})
		counted("an update", func() { patch(ctx, mailbox, parcels.GroupVersionResource, ns, "first", `{"spec": {"weight": 2}}`) },
			func() {
				eventuallyHas(ctx, hosting, packages.GroupVersionResource, ns, "number-one", "2", "spec", "weight")
			},
			map[string]float64{"target object apply packages": 1})
		counted("a status", func() {
			patch(ctx, hosting, packages.GroupVersionResource, ns, "number-one", `{"status": {"delivered": true}}`, "status")
		},
			func() {
				eventuallyHas(ctx, mailbox, parcels.GroupVersionResource, ns, "first", "true", "status", "delivered")
			},
			map[string]float64{"mailbox object patch parcels/status": 1})
		counted("a create from below", func() { apply(ctx, hosting, packages.object(ns, "theirs", "spec: {weight: 1, paper: brown}")) },
			func() { eventuallyExists(ctx, mailbox, parcels.GroupVersionResource, ns, "theirs") },
			map[string]float64{"mailbox object create parcels": 1})
		counted("a move", func() { apply(ctx, mailbox, named("moved")) },
			func() { eventuallyGone(ctx, hosting, packages.GroupVersionResource, ns, "number-one") },
			map[string]float64{
				"target object apply packages":        1,
				"target object delete packages":       1,
				"mailbox object patch parcels/status": 1, // the new one has none yet
			})

		By("an idle restart")
		before := identities(ctx, hosting, packages.GroupVersionResource, ns, "")
		_, err := hub.Terminate(ctx)
		Expect(err).NotTo(HaveOccurred())
		expectIdleStart(ctx, inventory, "hosting", 3) // two Parcels and a ConfigMap
		Expect(identities(ctx, hosting, packages.GroupVersionResource, ns, "")).To(Equal(before))
	}, NodeTimeout(4*time.Minute))
})
