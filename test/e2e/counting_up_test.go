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

// Upsync costs the mailbox one write per change, and one more for a status that is a subresource; it costs the target only
// watches. As in the other counting specs the target has no controllers.
var _ = Describe("rule 1: requests per change that comes up", thorough, Label("requests"), func() {
	It("makes one write per change and none at rest, on both sides", SpecPriority(1), func(ctx SpecContext) {
		const ns, count = "counted-up", 30
		publishInstruments(ctx, "hosting")
		inventory := newInventory(ctx, ns)
		hosting, mailbox := target("hosting"), register(ctx, inventory, "quiet", "hosting")
		above := readerOf(ctx, mailbox)
		apply(ctx, hosting, namespace(ns))
		apply(ctx, mailbox, syncerConfig(ns, fmt.Sprintf(`{upsync: [
			{apiGroup: "", resources: [configmaps], namespaces: [%[1]s], names: ["*"]},
			{apiGroup: up.example.com, resources: [gauges], namespaces: [%[1]s], names: ["*"], labelSelector: {matchLabels: {up: "yes"}}},
			{apiGroup: up.example.com, resources: [meters], names: [%[1]s]}]}`, ns)))
		counted := counting(ctx)
		reads := func(read func() string, want string) func() {
			return func() {
				GinkgoHelper()
				Eventually(read).WithContext(ctx).Should(Equal(want))
			}
		}
		quiet(ctx)
		entry := above(configMaps, ns, "settings", "data", "entry")
		reading := above(gauges, ns, "boiler", "status", "reading")

		counted("a create in a missing namespace", func() { apply(ctx, hosting, configMap(ns, "settings", "green")) }, reads(entry, "green"), map[string]float64{
			"mailbox object create configmaps": 1, // refused: the namespace is missing
			"mailbox extra create namespaces":  1,
			"mailbox extra create configmaps":  1,
		})
		counted("a create", func() { apply(ctx, hosting, configMap(ns, "other", "x")) },
			func() { eventuallyExists(ctx, mailbox, configMaps, ns, "other") },
			map[string]float64{"mailbox object create configmaps": 1})
		counted("an update", func() { patch(ctx, hosting, configMaps, ns, "settings", `{"data": {"entry": "blue"}}`) }, reads(entry, "blue"),
			map[string]float64{"mailbox object update configmaps": 1})
		counted("an update that changes nothing up there",
			func() {
				patch(ctx, hosting, configMaps, ns, "settings", `{"metadata": {"annotations": {"kcp.io/note": "x"}}}`)
			}, func() {}, map[string]float64{})
		counted("a repair", func() { patch(ctx, mailbox, configMaps, ns, "settings", `{"data": {"entry": "red"}}`) }, reads(entry, "blue"),
			map[string]float64{"mailbox object update configmaps": 1})
		counted("a deletion", func() { remove(ctx, hosting, configMaps, ns, "other") },
			func() { eventuallyGone(ctx, mailbox, configMaps, ns, "other") },
			map[string]float64{"mailbox object delete configmaps": 1})

		By("a status that is a subresource")
		apply(ctx, hosting, gauge(ns, "boiler", 3))
		patch(ctx, hosting, gauges, ns, "boiler", `{"status": {"reading": 1}}`, "status") // not selected yet
		counted("a create with a status", func() { patch(ctx, hosting, gauges, ns, "boiler", `{"metadata": {"labels": {"up": "yes"}}}`) }, reads(reading, "1"),
			map[string]float64{"mailbox object create gauges": 1, "mailbox object patch gauges/status": 1})
		counted("a status", func() { patch(ctx, hosting, gauges, ns, "boiler", `{"status": {"reading": 2}}`, "status") }, reads(reading, "2"),
			map[string]float64{"mailbox object patch gauges/status": 1})
		counted("an update of the rest", func() { patch(ctx, hosting, gauges, ns, "boiler", `{"spec": {"size": 4}}`) },
			reads(above(gauges, ns, "boiler", "spec", "size"), "4"),
			map[string]float64{"mailbox object update gauges": 1})

		By("a status that is part of the object")
		apply(ctx, hosting, meter(ns, 3))
		DeferCleanup(func(ctx SpecContext) { remove(ctx, hosting, meters, "", ns) })
		reads(above(meters, "", ns, "spec", "size"), "3")()
		quiet(ctx)
		counted("a status", func() { patch(ctx, hosting, meters, "", ns, `{"status": {"reading": 2}}`) },
			reads(above(meters, "", ns, "status", "reading"), "2"),
			map[string]float64{"mailbox object patch meters": 1})
		counted("an update of both", func() { patch(ctx, hosting, meters, "", ns, `{"spec": {"size": 4}, "status": {"reading": 3}}`) },
			reads(above(meters, "", ns, "status", "reading"), "3"),
			map[string]float64{"mailbox object update meters": 1})

		By("an idle restart")
		fill(ctx, hosting, ns, "item-", count)
		Eventually(func() int { return len(identities(ctx, mailbox, configMaps, ns, "item-")) }).WithContext(ctx).Should(Equal(count))
		quiet(ctx)
		before := identities(ctx, mailbox, configMaps, ns, "")
		Expect(hub.Kill9()).To(Succeed())
		expectIdleStart(ctx, inventory, "quiet", count)
		Expect(identities(ctx, mailbox, configMaps, ns, "")).To(Equal(before))
	}, NodeTimeout(6*time.Minute))
})
