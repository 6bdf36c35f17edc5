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
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/synchub-dev/synchub/provider/ledger"
	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/framework/installation"
)

var (
	syncTargets = installation.SyncTargets
	leases      = schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}
	workspaces  = schema.GroupVersionResource{Group: "tenancy.kcp.io", Version: "v1alpha1", Resource: "workspaces"}
)

var _ = Describe("restarts and removals", func() {
	It("loses and duplicates nothing when the hub is killed in the middle of a burst", thorough, Label("faults"), func(ctx SpecContext) {
		const ns, count = "killed", 150
		mailbox := sharedMailbox(ctx, "florin")
		apply(ctx, mailbox, documents(namespace(ns), everythingIn(ns)))
		filled := make(chan struct{})
		go func() {
			defer GinkgoRecover()
			defer close(filled)
			fill(ctx, mailbox, ns, "before-", count)
		}()
		Eventually(func() int { return len(identities(ctx, target("florin"), configMaps, ns, "before-")) }).WithContext(ctx).Should(BeNumerically(">", count/5))
		Expect(hub.Kill9()).To(Succeed())
		placed := identities(ctx, target("florin"), configMaps, ns, "")
		Eventually(filled).WithContext(ctx).Should(BeClosed())
		GinkgoWriter.Printf("%d objects were placed when the hub was killed\n", len(placed))
		fill(ctx, mailbox, ns, "during-", 20)
		startHub(ctx)

		Eventually(func() int {
			return len(identities(ctx, target("florin"), configMaps, ns, "before-")) + len(identities(ctx, target("florin"), configMaps, ns, "during-"))
		}).WithContext(ctx).Should(Equal(count + 20))
		after := identities(ctx, target("florin"), configMaps, ns, "")
		for name, identity := range placed {
			Expect(after).To(HaveKeyWithValue(name, identity), "what was placed before must not be written again")
		}
	}, NodeTimeout(4*time.Minute))

	It("hands over to a second replica, at once on shutdown and after the lease when killed, with any clock skew", thorough, Label("faults"), func(ctx SpecContext) {
		const ns = "handover"
		inventory := sharedInventory()
		mailbox := register(ctx, inventory, "florin", "florin")
		apply(ctx, mailbox, documents(namespace(ns), configMap(ns, "one", "1"), everythingIn(ns)))
		eventuallyExists(ctx, target("florin"), configMaps, ns, "one")
		before := identities(ctx, target("florin"), configMaps, ns, "one")

		second, err := synchub.StartHub("--standby=cold")
		Expect(err).NotTo(HaveOccurred())
		Expect(second.AwaitReady(ctx)).To(Succeed(), "a replica on standby is ready")
		requests, err := second.Requests(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(listsAndWatches(requests)).To(BeEmpty(), "a cold one fills no cache")
		code, err := hub.Terminate(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(code).To(BeZero())
		hub = second
		apply(ctx, mailbox, configMap(ns, "two", "2"))
		eventuallyExists(ctx, target("florin"), configMaps, ns, "two")

		third, err := synchub.StartHub()
		Expect(err).NotTo(HaveOccurred())
		Expect(third.AwaitReady(ctx)).To(Succeed())
		killed := time.Now()
		Expect(hub.Kill9()).To(Succeed())
		ahead := killed.Add(3 * time.Hour).UTC()
		leaveTimes(ctx, inventory, "florin", ahead)
		hub = third
		apply(ctx, mailbox, configMap(ns, "three", "3"))
		eventuallyExists(ctx, target("florin"), configMaps, ns, "three")
		AddReportEntry("until a change arrives after the leader was killed", time.Since(killed).Round(time.Second/10), ReportEntryVisibilityAlways)
		led := readerOf(ctx, synchub.InWorkspace(synchub.Workspace))(configMaps, ledger.Namespace, "leader", "data", "led")
		Eventually(led).WithContext(ctx).ShouldNot(Equal(ahead.Format(time.RFC3339)))
		Expect(identities(ctx, target("florin"), configMaps, ns, "one")).To(Equal(before))
	}, NodeTimeout(4*time.Minute))

	It("deletes the copies of a config that was deleted while the hub was down", thorough, func(ctx SpecContext) {
		const ns = "vanished"
		inventory := newInventory(ctx, ns)
		mailbox := register(ctx, inventory, "florin", "florin")
		apply(ctx, mailbox, documents(namespace(ns), configMap(ns, "settings", "green"), deployment(ns, "web"), everythingIn(ns)))
		eventuallyExists(ctx, target("florin"), configMaps, ns, "settings")
		eventuallyExists(ctx, target("florin"), deployments, ns, "web")
		Eventually(value).WithContext(ctx).WithArguments(inventory.Config, syncTargets, "", "florin", "status", "syncedResources").Should(ContainSubstring("configmaps"))

		Expect(hub.Kill9()).To(Succeed())
		remove(ctx, mailbox, syncerConfigs, "", ns)
		remove(ctx, mailbox, deployments, ns, "web")
		launchHub(ctx)
		untilGone, stop := context.WithCancel(ctx)
		defer stop()
		stayed := make(chan error, 1)
		go func() { stayed <- hub.StayReady(untilGone) }()
		eventuallyGone(ctx, target("florin"), configMaps, ns, "settings")
		eventuallyGone(ctx, target("florin"), deployments, ns, "web")
		stop()
		Expect(<-stayed).To(Succeed(), "a hub that is ready stays so: an upgrade ends the former replica then")
		By("deleting the metrics of the pairs only then")
		Eventually(value).WithContext(ctx).WithArguments(inventory.Config, syncTargets, "", "florin", "status", "syncedResources").Should(BeEmpty())
	}, NodeTimeout(4*time.Minute))

	It("removes the mailbox, the state and the controllers of a deleted SyncTarget, and leaves its objects without an owner", thorough, func(ctx SpecContext) {
		const ns = "removed"
		inventory := newInventory(ctx, ns)
		// Another SyncTarget stays, and with it the state that all of them share.
		other := sharedMailbox(ctx, "guilder")
		apply(ctx, other, documents(namespace(ns), configMap(ns, "settings", "green"), everythingIn(ns)))
		eventuallyExists(ctx, target("guilder"), configMaps, ns, "settings")
		quiet(ctx)
		before := goroutines(ctx)
		mailbox := register(ctx, inventory, "florin", "florin")
		apply(ctx, mailbox, documents(namespace(ns), configMap(ns, "settings", "green"), everythingIn(ns)))
		eventuallyExists(ctx, target("florin"), configMaps, ns, "settings")
		syncTarget, err := inventory.SyncTarget(ctx, "florin")
		Expect(err).NotTo(HaveOccurred())
		Expect(seriesOf(ctx, string(syncTarget.UID))).NotTo(BeZero())
		provider := synchub.InWorkspace(synchub.Workspace)
		Expect(value(ctx, provider, configMaps, ledger.Namespace, string(syncTarget.UID), "data")).To(
			And(ContainSubstring(`"name":"florin"`), ContainSubstring(syncTargetOf(ctx, inventory, "florin").Status.ClusterID)))

		remove(ctx, inventory.Config, syncTargets, "", "florin")
		eventuallyGone(ctx, inventory.Config, syncTargets, "", "florin")
		mailboxName := syncTarget.Status.Mailbox.Workspace[len(synchub.Workspace)+1:]
		eventuallyGone(ctx, provider, workspaces, "", mailboxName)
		eventuallyGone(ctx, provider, configMaps, ledger.Namespace, string(syncTarget.UID))
		Eventually(seriesOf).WithContext(ctx).WithArguments(string(syncTarget.UID)).Should(BeZero())
		By("leaking no goroutine of its controllers")
		// One sync controller has more goroutines than this; the goroutines of idle connections come and go.
		const unrelated = 8
		Eventually(goroutines).WithContext(ctx).Should(BeNumerically("<=", before+unrelated))
		eventuallyReleased(ctx, configMaps, ns, "settings")
		Expect(framework.Exists(ctx, target("florin"), namespaces, "", ns)).To(BeTrue())
		By("adopting nothing for another SyncTarget")
		mailbox = register(ctx, inventory, "florin", "florin")
		apply(ctx, mailbox, documents(namespace(ns), configMap(ns, "settings", "later"), everythingIn(ns)))
		Eventually(reasons).WithContext(ctx).WithArguments(mailbox, ns, "settings").Should(ContainElement("Conflict"))
		Expect(value(ctx, target("florin"), configMaps, ns, "settings", "data", "entry")).To(Equal("green"))
	}, NodeTimeout(4*time.Minute))
})

// leaveTimes sets all timestamps that a replica writes by its own clock and other replicas read.
func leaveTimes(ctx context.Context, inventory *installation.Inventory, syncTarget string, now time.Time) {
	GinkgoHelper()
	micro, second := now.Format("2006-01-02T15:04:05.000000Z07:00"), now.Format(time.RFC3339)
	patch(ctx, target("hosting"), leases, installation.Namespace, "synchub", fmt.Sprintf(`{"spec": {"acquireTime": %[1]q, "renewTime": %[1]q}}`, micro))
	patch(ctx, synchub.InWorkspace(synchub.Workspace), configMaps, ledger.Namespace, "leader", fmt.Sprintf(`{"data": {"led": %q}}`, second))
	patch(ctx, inventory.Config, syncTargets, "", syncTarget, fmt.Sprintf(`{"status": {"lastSyncerHeartbeatTime": %q}}`, second), "status")
}
