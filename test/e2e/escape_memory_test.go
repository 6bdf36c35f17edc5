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
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/explain"
)

// large returns a ConfigMap of about so many bytes.
func large(namespace, name string, size int) string {
	return configMap(namespace, name, strings.Repeat("x", size))
}

// fillWithLarge creates ConfigMaps of a size, with numbers as names, in an existing namespace.
func fillWithLarge(ctx context.Context, mailbox *rest.Config, namespace string, count, size int) {
	GinkgoHelper()
	for number := range count {
		apply(ctx, mailbox, large(namespace, fmt.Sprint("large-", number), size))
	}
}

var _ = Describe("a mailbox over its limits", thorough, Label("escapes"), func() {
	It("takes no more memory than its limits, does not affect other mailboxes, and loses no object on the target", SpecPriority(1), func(ctx SpecContext) {
		const ns, other, size, count = "too-much", "enough", 200_000, 10
		inventory := newInventory(ctx, ns)
		mailbox, hosting := register(ctx, inventory, "greedy", "hosting"), target("hosting")
		neighbour := sharedMailbox(ctx, "florin")
		apply(ctx, neighbour, documents(namespace(other), everythingIn(other), configMap(other, "settings", "green")))
		eventuallyExists(ctx, target("florin"), configMaps, other, "settings")
		quiet(ctx)
		cached := func() float64 { return samples(ctx, "synchub_mailbox_cache_bytes", `resource="configmaps"`) }
		before := cached()

		By("caching only the metadata of unselected objects")
		apply(ctx, mailbox, namespace(ns))
		fillWithLarge(ctx, mailbox, ns, count, size)
		quiet(ctx)
		// It may be less than before: kcp deletes the mailboxes of other specs when it gets to it.
		Expect(cached() - before).To(BeNumerically("<", count*5_000))

		By("syncing the oldest up to the limit, and reporting that")
		const limit = 1 << 20
		patch(ctx, inventory.Config, syncTargets, "", "greedy", fmt.Sprintf(`{"spec": {"limits": {"mailboxBytes": %d}}}`, limit))
		apply(ctx, mailbox, everythingIn(ns))
		ready := func() string { return readyOf(ctx, mailbox, ns) }
		Eventually(ready).WithContext(ctx).Should(And(ContainSubstring("False MailboxLimitExceeded: "), ContainSubstring(fmt.Sprint(limit))))
		Eventually(func() int { return len(identities(ctx, hosting, configMaps, ns, "large-")) }).WithContext(ctx).Should(BeNumerically(">=", 3))
		quiet(ctx)
		placed := identities(ctx, hosting, configMaps, ns, "large-")
		Expect(len(placed)).To(BeNumerically("<=", limit/size))
		Expect(cached() - before).To(BeNumerically("<", limit))
		By("not affecting the neighbour")
		patch(ctx, neighbour, configMaps, other, "settings", `{"data": {"entry": "blue"}}`)
		Eventually(value).WithContext(ctx).WithArguments(target("florin"), configMaps, other, "settings", "data", "entry").Should(Equal("blue"))
		By("deleting no copy when the limit is lowered")
		patch(ctx, inventory.Config, syncTargets, "", "greedy", fmt.Sprintf(`{"spec": {"limits": {"mailboxBytes": %d}}}`, limit/4))
		Eventually(ready).WithContext(ctx).Should(ContainSubstring(fmt.Sprint(limit / 4)))
		quiet(ctx)
		Expect(identities(ctx, hosting, configMaps, ns, "large-")).To(Equal(placed))
		By("deleting the copies of deleted objects")
		var removed string
		for name := range placed {
			removed = name
		}
		remove(ctx, mailbox, configMaps, ns, removed)
		eventuallyGone(ctx, hosting, configMaps, ns, removed)

		By("syncing again when there is room")
		patch(ctx, inventory.Config, syncTargets, "", "greedy", `{"spec": {"limits": null}}`)
		Eventually(ready).WithContext(ctx).Should(ContainSubstring("InSync"))
		after := identities(ctx, hosting, configMaps, ns, "large-")
		Expect(after).To(HaveLen(count - 1))
		delete(placed, removed)
		for name, identity := range placed {
			Expect(after).To(HaveKeyWithValue(name, identity))
		}
	}, NodeTimeout(4*time.Minute))

	It("reads newly selected objects once", func(ctx SpecContext) {
		const ns, few, many = "selected-late", 3, 12
		inventory := newInventory(ctx, ns)
		mailbox, hosting := register(ctx, inventory, "late", "hosting"), target("hosting")
		apply(ctx, mailbox, documents(namespace(ns), everythingIn("another")))
		apply(ctx, hosting, namespace(ns))
		fill(ctx, mailbox, ns, "few-", few)
		arrived := func(prefix string, count int) func() {
			return func() {
				GinkgoHelper()
				Eventually(identities).WithContext(ctx).WithArguments(hosting, configMaps, ns, prefix).Should(HaveLen(count))
			}
		}
		selecting := func(prefix string, count int) string {
			names := make([]string, count)
			for i := range names {
				names[i] = fmt.Sprint(prefix, i)
			}
			return fmt.Sprintf(`
apiVersion: edge.kubestellar.io/v2alpha1
kind: SyncerConfig
metadata: {name: %s%s}
spec:
  namespacedObjects:
  - {group: "", apiVersion: v1, resource: configmaps, objectsByNamespace: [{namespace: %s, names: [%s]}]}
`, prefix, "config", ns, strings.Join(names, ", "))
		}
		fill(ctx, mailbox, ns, "many-", many)
		counted := counting(ctx)
		counted("a config that begins to select few", func() { apply(ctx, mailbox, selecting("few-", few)) }, arrived("few-", few), map[string]float64{
			"mailbox extra get configmaps": few, "target object apply configmaps": few,
		})
		counted("a config that begins to select many", func() { apply(ctx, mailbox, selecting("many-", many)) }, arrived("many-", many), map[string]float64{
			"mailbox extra list configmaps": 1, "target object apply configmaps": many,
		})
		By("reading nothing more after a restart")
		Expect(hub.Kill9()).To(Succeed())
		expectIdleStart(ctx, inventory, "late", few+many)
	}, NodeTimeout(4*time.Minute))

	It("is limited to a fair share when all mailboxes take too much memory, and evicted when it has too many objects", SpecPriority(1), func(ctx SpecContext) {
		const ns, other, size, large, small = "too-many", "few", 200_000, 40, 250
		inventory := newInventory(ctx, ns)
		mailbox, hosting := register(ctx, inventory, "greedy", "hosting"), target("hosting")
		neighbour := sharedMailbox(ctx, "florin")
		apply(ctx, neighbour, documents(namespace(other), everythingIn(other), configMap(other, "settings", "green")))
		eventuallyExists(ctx, target("florin"), configMaps, other, "settings")
		neighbourNoticesNothing := func(entry string) {
			GinkgoHelper()
			patch(ctx, neighbour, configMaps, other, "settings", fmt.Sprintf(`{"data": {"entry": %q}}`, entry))
			Eventually(value).WithContext(ctx).WithArguments(target("florin"), configMaps, other, "settings", "data", "entry").Should(Equal(entry))
		}
		ready := func() string { return readyOf(ctx, mailbox, ns) }
		metric := func(name string) func() float64 {
			return func() float64 {
				all, err := hub.Metrics(ctx)
				Expect(err).NotTo(HaveOccurred())
				Expect(all).To(HaveKey(name))
				return all[name]
			}
		}
		quiet(ctx)
		total := 2*int(metric("synchub_mailboxes_bytes")()) + 2<<20
		apply(ctx, mailbox, documents(namespace(ns), everythingIn(ns)))
		fillWithLarge(ctx, mailbox, ns, large, size)
		Eventually(func() int { return len(identities(ctx, hosting, configMaps, ns, "large-")) }).WithContext(ctx).Should(Equal(large))
		placed := identities(ctx, hosting, configMaps, ns, "large-")

		By("starting with less memory than the mailboxes have objects for")
		Expect(hub.Kill9()).To(Succeed())
		DeferCleanup(func(ctx SpecContext) {
			Expect(hub.Kill9()).To(Succeed())
			startHub(ctx)
		}, NodeTimeout(time.Minute))
		startHub(ctx, fmt.Sprintf("--mailboxes-max-bytes=%d", total))
		Eventually(ready).WithContext(ctx).Should(And(ContainSubstring("False MailboxLimitExceeded: "), ContainSubstring("--mailboxes-max-bytes")))
		Eventually(metric("synchub_mailboxes_fair_share_bytes")).WithContext(ctx).Should(BeNumerically(">", 0))
		neighbourNoticesNothing("blue")
		quiet(ctx)
		// Objects that arrive before the next review may exceed the limit for a moment.
		Eventually(metric("synchub_mailboxes_bytes")).WithContext(ctx).Should(BeNumerically("<=", total))
		Expect(metric("synchub_mailboxes_limited")()).To(BeEquivalentTo(1))
		Expect(identities(ctx, hosting, configMaps, ns, "large-")).To(Equal(placed), "nothing is deleted for it")
		Eventually(func(g Gomega) {
			syncTarget, err := inventory.SyncTarget(ctx, "greedy")
			g.Expect(err).NotTo(HaveOccurred())
			condition := meta.FindStatusCondition(syncTarget.Status.Conditions, edgev2alpha1.ConditionMailboxLimitExceeded)
			g.Expect(condition).To(HaveField("Message", ContainSubstring("--mailboxes-max-bytes")))
		}).WithContext(ctx).Should(Succeed())

		By("reading the missing objects when there is room")
		for number := 3; number < large; number++ {
			remove(ctx, mailbox, configMaps, ns, fmt.Sprint("large-", number))
		}
		fill(ctx, mailbox, ns, "small-", small)
		Eventually(ready).WithContext(ctx).Should(ContainSubstring("InSync"))
		Eventually(metric("synchub_mailboxes_fair_share_bytes")).WithContext(ctx).Should(BeZero())
		Eventually(identities).WithContext(ctx).WithArguments(hosting, configMaps, ns, "large-").Should(HaveLen(3))
		all := identities(ctx, hosting, configMaps, ns, "small-")
		Expect(all).To(HaveLen(small))

		By("caching nothing of a mailbox that has too many objects")
		quiet(ctx)
		cached := metric("synchub_mailboxes_bytes")()
		patch(ctx, inventory.Config, syncTargets, "", "greedy", fmt.Sprintf(`{"spec": {"limits": {"mailboxBytes": %d}}}`, small*900))
		Eventually(ready).WithContext(ctx).Should(And(ContainSubstring("False MailboxLimitExceeded: "), ContainSubstring("too many objects")))
		Expect(metric("synchub_mailboxes_evicted")()).To(BeEquivalentTo(1))
		Eventually(metric("synchub_mailboxes_bytes")).WithContext(ctx).Should(BeNumerically("<", cached-small*1_000))
		remove(ctx, mailbox, configMaps, ns, "small-0")
		neighbourNoticesNothing("red")
		quiet(ctx)
		Expect(identities(ctx, hosting, configMaps, ns, "small-")).To(Equal(all), "nothing is deleted, and nothing proven, even of what is gone")

		By("readmitting it when they fit")
		patch(ctx, inventory.Config, syncTargets, "", "greedy", `{"spec": {"limits": null}}`)
		Eventually(ready).WithContext(ctx).Should(ContainSubstring("InSync"))
		eventuallyGone(ctx, hosting, configMaps, ns, "small-0")
		delete(all, "small-0")
		Expect(identities(ctx, hosting, configMaps, ns, "small-")).To(Equal(all))
		Expect(metric("synchub_mailboxes_evicted")()).To(BeZero())
	}, NodeTimeout(6*time.Minute))

	It("limits one kind by its PublishedResource, so that other kinds are synced", func(ctx SpecContext) {
		const ns, group, count, limit = "crowded", "crowded.example.com", 8, 3
		widgets, gadgets := custom(group, "v1", "widgets", "Widget"), custom(group, "v1", "gadgets", "Gadget")
		for _, cluster := range []string{"hosting", "florin"} {
			define(ctx, target(cluster), widgets)
			define(ctx, target(cluster), gadgets)
		}
		publishAs(ctx, "crowded", fmt.Sprintf(`
  resource: {group: %s, resource: widgets}
  limits: {mailboxObjects: %d}
`, group, limit))
		publishAs(ctx, "crowded-all", fmt.Sprintf(`
  resource: {group: %s, resource: gadgets}
  select: All
  limits: {mailboxBytes: 1}
`, group))
		eventuallyPublished(ctx, "crowded", "crowded-all")
		inventory := newInventory(ctx, ns)
		mailbox, florin := register(ctx, inventory, "florin", "florin"), target("florin")
		apply(ctx, mailbox, documents(namespace(ns), selecting(ns, configMaps, widgets.GroupVersionResource)))
		create := func(number int) {
			apply(ctx, mailbox, widgets.object(ns, fmt.Sprint("widget-", number), "spec: {size: 1}"))
		}
		for number := range limit {
			create(number)
		}
		// Creation timestamps have a resolution of one second.
		first := time.Now()
		Eventually(time.Now).WithContext(ctx).Should(BeTemporally(">=", first.Truncate(time.Second).Add(time.Second)))
		for number := limit; number < count; number++ {
			create(number)
		}
		apply(ctx, mailbox, documents(gadgets.object(ns, "alone", "spec: {size: 1}"), configMap(ns, "settings", "green")))
		onTarget := func() map[string]string { return identities(ctx, florin, widgets.GroupVersionResource, ns, "widget-") }
		ready := func() string { return readyOf(ctx, mailbox, ns) }

		By("syncing the oldest of the kind, and all objects of other kinds")
		eventuallyExists(ctx, florin, configMaps, ns, "settings")
		Eventually(onTarget).WithContext(ctx).Should(HaveLen(limit))
		message := fmt.Sprintf("8 widgets.%s, but may have 3: the youngest 5 are not synced", group)
		Eventually(ready).WithContext(ctx).Should(And(HavePrefix("False MailboxLimitExceeded: "), ContainSubstring(message)))
		quiet(ctx)
		placed := onTarget()
		Expect(placed).To(HaveLen(limit))
		By("reporting each kind on the SyncTarget, and in the plugin")
		// The change itself causes a reconcile, not only the next heartbeat.
		patch(ctx, inventory.Config, syncTargets, "", "florin", `{"spec": {"limits": {"mailboxObjects": 1000}}}`)
		Eventually(func(g Gomega) {
			syncTarget, err := inventory.SyncTarget(ctx, "florin")
			g.Expect(err).NotTo(HaveOccurred())
			condition := meta.FindStatusCondition(syncTarget.Status.Conditions, edgev2alpha1.ConditionMailboxLimitExceeded)
			g.Expect(condition).To(HaveField("Message", And(ContainSubstring(message), ContainSubstring("gadgets.%s of", group), ContainSubstring("the youngest 1 is"))))
		}).WithContext(ctx).Should(Succeed())
		for number := range count {
			name := fmt.Sprint("widget-", number)
			if _, ok := placed[name]; !ok {
				Eventually(explained).WithContext(ctx).WithArguments(inventory, "florin", widgets.GroupResource().String(), ns+"/"+name).
					Should(And(comesTo(explain.Absent, explain.Stopped, explain.StepReport), HaveField("Text", ContainSubstring(message))))
				break
			}
		}

		By("deleting nothing and writing nothing when the limit is lowered")
		patch(ctx, target("hosting"), publishedResources, "", "crowded", `{"spec": {"limits": {"mailboxObjects": 1}}}`)
		Eventually(ready).WithContext(ctx).Should(ContainSubstring("but may have 1: the youngest 7"))
		for name := range placed {
			patch(ctx, mailbox, widgets.GroupVersionResource, ns, name, `{"metadata": {"annotations": {"changed": "yes"}}}`)
		}
		quiet(ctx)
		after := onTarget()
		kept := 0
		for name, identity := range placed {
			Expect(after).To(HaveKey(name))
			if after[name] == identity {
				kept++
			}
		}
		Expect(kept).To(Equal(limit-1), "only that which there is room for follows its mailbox")

		By("reading the missing objects when the limits are removed")
		patch(ctx, target("hosting"), publishedResources, "", "crowded", `{"spec": {"limits": null}}`)
		patch(ctx, target("hosting"), publishedResources, "", "crowded-all", `{"spec": {"limits": null}}`)
		Eventually(ready).WithContext(ctx).Should(ContainSubstring("InSync"))
		eventuallyExists(ctx, florin, gadgets.GroupVersionResource, ns, "alone")
		Expect(onTarget()).To(HaveLen(count))
	}, NodeTimeout(4*time.Minute))
})
