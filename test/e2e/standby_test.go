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
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/synchub-dev/synchub/test/framework/faults"
	"github.com/synchub-dev/synchub/test/framework/installation"
)

var _ = Describe("standby replicas", thorough, func() {
	It("fill their caches, write nothing, and list nothing again when they lead", Label("faults"), func(ctx SpecContext) {
		const ns, count = "standby", 100
		inventory := newInventory(ctx, ns)
		mailbox := register(ctx, inventory, "quiet", "hosting")
		hosting := target("hosting")
		apply(ctx, mailbox, documents(namespace(ns), everythingIn(ns)))
		fill(ctx, mailbox, ns, "object-", count)
		Eventually(func() int { return len(identities(ctx, hosting, configMaps, ns, "object-")) }).WithContext(ctx).Should(Equal(count))
		Eventually(value).WithContext(ctx).WithArguments(inventory.Config, syncTargets, "", "quiet", "status", "syncedResources").Should(ContainSubstring("configmaps"))
		quiet(ctx)
		syncTarget, err := inventory.SyncTarget(ctx, "quiet")
		Expect(err).NotTo(HaveOccurred())

		standby, err := synchub.StartHub()
		Expect(err).NotTo(HaveOccurred())
		Expect(standby.AwaitReady(ctx)).To(Succeed())
		Eventually(cachedOfTarget).WithContext(ctx).WithArguments(standby, string(syncTarget.UID), "configmaps").Should(BeNumerically("==", count))

		By("leaving all writes to the leader")
		patch(ctx, mailbox, configMaps, ns, "object-0", `{"data": {"number": "changed"}}`)
		patch(ctx, hosting, configMaps, ns, "object-1", `{"data": {"number": "by somebody else"}}`)
		remove(ctx, mailbox, configMaps, ns, "object-2")
		apply(ctx, mailbox, documents(namespace("standby-other"), selecting("standby-other", configMaps)))
		remove(ctx, mailbox, syncerConfigs, "", "standby-other")
		Eventually(value).WithContext(ctx).WithArguments(hosting, configMaps, ns, "object-0", "data", "number").Should(Equal("changed"))
		Eventually(value).WithContext(ctx).WithArguments(hosting, configMaps, ns, "object-1", "data", "number").Should(Equal("1"))
		eventuallyGone(ctx, hosting, configMaps, ns, "object-2")
		quiet(ctx)
		Eventually(cachedOfTarget).WithContext(ctx).WithArguments(standby, string(syncTarget.UID), "configmaps").Should(BeNumerically("==", count-1))
		requests, err := standby.Requests(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(writesAmong(requests)).To(BeEmpty())
		Expect(installation.Caused(requests)).To(And(HaveLen(3),
			HaveKey("mailbox extra get apibindings"), HaveKey("mailbox extra get logicalclusters"), HaveKey("mailbox extra list syncerconfigs"),
		), "the replica proves by itself that a config is gone, and nothing else")
		placed := identities(ctx, hosting, configMaps, ns, "")

		By("leading")
		code, err := hub.Terminate(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(code).To(BeZero())
		hub = standby
		apply(ctx, mailbox, configMap(ns, "first", "1"))
		eventuallyExists(ctx, hosting, configMaps, ns, "first")
		Eventually(looked).WithContext(ctx).WithArguments(string(syncTarget.UID)).Should(BeNumerically(">=", count))
		quiet(ctx)
		after, err := standby.Requests(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(difference(installation.Caused(requests), installation.Caused(after, boundedByTime...))).To(Equal(map[string]float64{"target object apply configmaps": 1}))
		Expect(requestsOfCaches(requests)).To(HaveKey(ContainSubstring("target background watch configmaps")))
		Expect(requestsOfCaches(after)).To(Equal(requestsOfCaches(requests)), "all caches were full")
		now := identities(ctx, hosting, configMaps, ns, "")
		maps.DeleteFunc(now, func(name, _ string) bool { return name == "first" })
		Expect(now).To(Equal(placed))
	}, NodeTimeout(4*time.Minute))

	It("write nothing after a pause in which another one took the Lease", Label("faults"), func(ctx SpecContext) {
		const ns, count = "paused", 50
		mailbox := sharedMailbox(ctx, "florin")
		apply(ctx, mailbox, documents(namespace(ns), everythingIn(ns)))
		fill(ctx, mailbox, ns, "object-", count)
		Eventually(func() int { return len(identities(ctx, target("florin"), configMaps, ns, "object-")) }).WithContext(ctx).Should(Equal(count))
		standby, err := synchub.StartHub()
		Expect(err).NotTo(HaveOccurred())
		Expect(standby.AwaitReady(ctx)).To(Succeed())

		former := hub
		Expect(former.Pause()).To(Succeed())
		hub = standby
		patch(ctx, mailbox, configMaps, ns, "object-0", `{"data": {"number": "changed"}}`)
		remove(ctx, mailbox, configMaps, ns, "object-1")
		patch(ctx, target("florin"), configMaps, ns, "object-2", `{"data": {"number": "by somebody else"}}`)
		Eventually(value).WithContext(ctx).WithArguments(target("florin"), configMaps, ns, "object-0", "data", "number").Should(Equal("changed"))
		eventuallyGone(ctx, target("florin"), configMaps, ns, "object-1")
		Eventually(value).WithContext(ctx).WithArguments(target("florin"), configMaps, ns, "object-2", "data", "number").Should(Equal("2"))
		quiet(ctx)
		placed, kept := identities(ctx, target("florin"), configMaps, ns, ""), identities(ctx, mailbox, configMaps, ns, "")

		Expect(former.Resume()).To(Succeed())
		code, err := former.Wait(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(code).NotTo(BeZero(), "the replica ends, and is started again")
		Expect(identities(ctx, target("florin"), configMaps, ns, "")).To(Equal(placed))
		Expect(identities(ctx, mailbox, configMaps, ns, "")).To(Equal(kept))
	}, NodeTimeout(4*time.Minute))

	It("lose and duplicate nothing when the Lease is deleted in the middle of a burst", Label("faults"), func(ctx SpecContext) {
		const ns, count = "unleased", 100
		mailbox := sharedMailbox(ctx, "florin")
		apply(ctx, mailbox, documents(namespace(ns), everythingIn(ns)))
		standby, err := synchub.StartHub()
		Expect(err).NotTo(HaveOccurred())
		Expect(standby.AwaitReady(ctx)).To(Succeed())
		replicas := []*installation.Hub{hub, standby}
		filled := make(chan struct{})
		go func() {
			defer GinkgoRecover()
			defer close(filled)
			fill(ctx, mailbox, ns, "object-", count)
		}()
		Eventually(func() int { return len(identities(ctx, target("florin"), configMaps, ns, "object-")) }).WithContext(ctx).Should(BeNumerically(">", count/5))
		remove(ctx, target("hosting"), leases, installation.Namespace, "synchub")
		placed := identities(ctx, target("florin"), configMaps, ns, "object-")
		Eventually(filled).WithContext(ctx).Should(BeClosed())
		Eventually(func() int { return len(identities(ctx, target("florin"), configMaps, ns, "object-")) }).WithContext(ctx).Should(Equal(count))

		By("having one leader again, and the other one ended or on standby")
		Eventually(value).WithContext(ctx).WithArguments(target("hosting"), leases, installation.Namespace, "synchub", "spec", "holderIdentity").ShouldNot(BeEmpty())
		Eventually(func() (leading int) {
			for _, replica := range replicas {
				if samples, err := replica.Metrics(ctx); err == nil && samples[`leader_election_master_status{name="synchub"}`] == 1 {
					leading++
					hub = replica
				}
			}
			return leading
		}).WithContext(ctx).Should(Equal(1))
		patch(ctx, mailbox, configMaps, ns, "object-0", `{"data": {"number": "changed"}}`)
		Eventually(value).WithContext(ctx).WithArguments(target("florin"), configMaps, ns, "object-0", "data", "number").Should(Equal("changed"))
		after := identities(ctx, target("florin"), configMaps, ns, "object-")
		delete(placed, "object-0")
		for name, identity := range placed {
			Expect(after).To(HaveKeyWithValue(name, identity), "what was placed before must not be written again")
		}
		for _, replica := range replicas {
			if replica != hub && !replica.Ended() {
				_, err := replica.Terminate(ctx)
				Expect(err).NotTo(HaveOccurred())
			}
		}
	}, NodeTimeout(4*time.Minute))
})

var _ = Describe("a leader that cannot reach kcp", thorough, func() {
	It("gives up the Lease to a replica that can, and nothing is lost or duplicated", Label("faults"), func(ctx SpecContext) {
		const ns, count = "parted", 50
		mailbox := sharedMailbox(ctx, "florin")
		apply(ctx, mailbox, documents(namespace(ns), everythingIn(ns)))
		fill(ctx, mailbox, ns, "object-", count)
		Eventually(func() int { return len(identities(ctx, target("florin"), configMaps, ns, "object-")) }).WithContext(ctx).Should(Equal(count))
		tunnel, err := faults.NewTunnel(ctx)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(tunnel.Close)
		code, err := hub.Terminate(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(code).To(BeZero())
		startHub(ctx, "--kcp-kubeconfig", tunnelled(tunnel))
		Eventually(value).WithContext(ctx).WithArguments(target("hosting"), leases, installation.Namespace, "synchub", "spec", "holderIdentity").ShouldNot(BeEmpty())
		standby, err := synchub.StartHub()
		Expect(err).NotTo(HaveOccurred())
		Expect(standby.AwaitReady(ctx)).To(Succeed())
		patch(ctx, mailbox, configMaps, ns, "object-0", `{"data": {"number": "before"}}`)
		Eventually(value).WithContext(ctx).WithArguments(target("florin"), configMaps, ns, "object-0", "data", "number").Should(Equal("before"))
		quiet(ctx)
		placed := identities(ctx, target("florin"), configMaps, ns, "")

		served := readerOf(ctx, sharedInventory().Config)(syncTargets, "", "florin", "status", "hub")
		former := served()
		Expect(former).NotTo(BeEmpty())
		Expect(readerOf(ctx, sharedInventory().Config)(syncTargets, "", "florin", "status", "hubVersion")()).NotTo(BeEmpty())

		parted := time.Now()
		tunnel.Cut()
		leader := hub
		hub = standby
		patch(ctx, mailbox, configMaps, ns, "object-0", `{"data": {"number": "meanwhile"}}`)
		remove(ctx, mailbox, configMaps, ns, "object-1")
		code, err = leader.Wait(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(code).NotTo(BeZero(), "the replica ends, and is started again")
		Expect(leader.LogTail(5)).To(ContainSubstring("steps down for another one"))
		Eventually(value).WithContext(ctx).WithArguments(target("florin"), configMaps, ns, "object-0", "data", "number").Should(Equal("meanwhile"))
		eventuallyGone(ctx, target("florin"), configMaps, ns, "object-1")
		AddReportEntry("until a change arrives after the leader lost kcp", time.Since(parted).Round(time.Second), ReportEntryVisibilityAlways)
		Eventually(served).WithContext(ctx).ShouldNot(Equal(former), "the next heartbeat names the other replica")
		now := identities(ctx, target("florin"), configMaps, ns, "")
		for _, changed := range []string{"object-0", "object-1"} {
			delete(now, changed)
			delete(placed, changed)
		}
		Expect(now).To(Equal(placed))
	}, NodeTimeout(5*time.Minute))
})

var _ = Describe("a replica that is ended while kcp refuses connections", thorough, func() {
	It("ends in time", Label("faults"), func(ctx SpecContext) {
		tunnel, err := faults.NewTunnel(ctx)
		Expect(err).NotTo(HaveOccurred())
		code, err := hub.Terminate(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(code).To(BeZero())
		startHub(ctx, "--kcp-kubeconfig", tunnelled(tunnel))
		// A hub that cannot read its ledger at the start ends at once.
		quiet(ctx)
		Expect(tunnel.Close()).To(Succeed())
		// The more requests were refused, the longer client-go waits until the next one.
		Eventually(func() (refused float64, err error) {
			requests, err := hub.Requests(ctx)
			for kind, count := range requests {
				if kind.Destination != "target" && kind.Code == "error" {
					refused += count
				}
			}
			return refused, err
		}).WithContext(ctx).WithTimeout(3 * time.Minute).Should(BeNumerically(">=", 80))
		code, err = hub.Terminate(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(code).To(BeZero(), hub.LogTail(5))
		startEndedHub(ctx)
	}, NodeTimeout(5*time.Minute))
})

// tunnelled returns a kubeconfig of the hub's user that reaches kcp through a tunnel.
func tunnelled(tunnel *faults.Tunnel) (path string) {
	GinkgoHelper()
	path = filepath.Join(GinkgoT().TempDir(), "tunnelled.kubeconfig")
	Expect(tunnel.Reroute(synchub.HubKubeconfig, path)).To(Succeed())
	return path
}

// cachedOfTarget returns how many objects of a resource of a target the replica caches.
func cachedOfTarget(ctx context.Context, replica *installation.Hub, syncTarget, resource string) (objects float64) {
	samples, err := replica.Metrics(ctx)
	if err != nil {
		return -1
	}
	for sample, count := range samples {
		if strings.HasPrefix(sample, "synchub_target_cache_objects{") && strings.Contains(sample, syncTarget) && strings.Contains(sample, `resource="`+resource+`"`) {
			objects += count
		}
	}
	return objects
}

// readVerbs are the verbs of requests that change nothing.
var readVerbs = []string{"get", "list", "watch"}

// writesAmong returns the requests that may change something. Reviews are not stored.
func writesAmong(requests map[installation.Request]float64) map[string]float64 {
	writes := map[string]float64{}
	for kind, count := range requests {
		if !slices.Contains(readVerbs, kind.Verb) && !strings.HasSuffix(kind.Resource, "reviews") {
			writes[kind.String()] += count
		}
	}
	return writes
}

// listsAndWatches returns the lists and watches of mailboxes and targets.
func listsAndWatches(requests map[installation.Request]float64) map[string]float64 {
	found := map[string]float64{}
	for kind, count := range requests {
		if kind.Destination != "control" && (kind.Verb == "list" || kind.Verb == "watch") {
			found[kind.String()] += count
		}
	}
	return found
}

// requestsOfCaches returns the requests that fill caches: lists in mailboxes, and watches of ConfigMaps on targets. A leader also lists
// on targets what nothing selects any more, of other SyncTargets too.
func requestsOfCaches(requests map[installation.Request]float64) map[string]float64 {
	found := map[string]float64{}
	for kind, count := range requests {
		// Nothing caches SyncRules: the leader lists them once to find out which ones it must write.
		if kind.Destination == "mailbox" && kind.Verb == "list" && kind.Resource != "syncrules" || kind.Destination == "target" && kind.Verb == "watch" && kind.Resource == "configmaps" {
			found[kind.String()] += count
		}
	}
	return found
}
