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
	"regexp"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/framework/faults"
	"github.com/synchub-dev/synchub/test/framework/installation"
)

// These specs are about the tunnel itself. With CONNECTION=Tunnel all other specs run through tunnels too.
var _ = Describe("A cluster that dials the hub", func() {
	reasonOf := func(ctx context.Context, inventory *installation.Inventory, name, condition string) func() string {
		return func() string {
			syncTarget, err := inventory.SyncTarget(ctx, name)
			if err != nil {
				return err.Error()
			}
			for _, one := range syncTarget.Status.Conditions {
				if one.Type == condition {
					return string(one.Status) + " " + one.Reason
				}
			}
			return ""
		}
	}
	handshakes := func(ctx context.Context, result string) float64 {
		metrics, err := hub.Metrics(ctx)
		Expect(err).NotTo(HaveOccurred())
		return metrics[fmt.Sprintf(`synchub_tunnel_handshakes_total{result="%s"}`, result)]
	}
	stop := func(tunnel *installation.Tunnel) {
		DeferCleanup(func() { _ = tunnel.Kill9() })
	}

	It("keeps all copies while the link is cut, and gets each change once when it is back", func(ctx SpecContext) {
		const ns, count = "tunnel-cut", 20
		inventory := newInventory(ctx, ns)
		tunnel, err := inventory.RegisterTunnel(ctx, "away", kubeconfigOf("hosting"), nil, true)
		Expect(err).NotTo(HaveOccurred())
		stop(tunnel)
		mailbox := mailboxOf(ctx, inventory, "away")
		apply(ctx, mailbox, documents(namespace(ns), everythingIn(ns)))
		fill(ctx, mailbox, ns, "object-", count)
		Eventually(func() int { return len(identities(ctx, target("hosting"), configMaps, ns, "object-")) }).WithContext(ctx).Should(Equal(count))
		quiet(ctx)
		placed := identities(ctx, target("hosting"), configMaps, ns, "")

		synchub.Balancer.Cut(true)
		DeferCleanup(func() { synchub.Balancer.Cut(false) })
		patch(ctx, mailbox, configMaps, ns, "object-0", `{"data": {"number": "changed"}}`)
		remove(ctx, mailbox, configMaps, ns, "object-1")
		Eventually(reasonOf(ctx, inventory, "away", edgev2alpha1.ConditionReady)).WithContext(ctx).Should(Equal("False TunnelClosed"))
		Expect(identities(ctx, target("hosting"), configMaps, ns, "")).To(Equal(placed))

		// A request that waited for the tunnel ends after some seconds.
		Expect(hub.WaitIdle(ctx, 7*time.Second, boundedByTime...)).To(Succeed())
		before, err := hub.Requests(ctx)
		Expect(err).NotTo(HaveOccurred())
		synchub.Balancer.Cut(false)
		Eventually(value).WithContext(ctx).WithArguments(target("hosting"), configMaps, ns, "object-0", "data", "number").Should(Equal("changed"))
		eventuallyGone(ctx, target("hosting"), configMaps, ns, "object-1")
		Eventually(reasonOf(ctx, inventory, "away", edgev2alpha1.ConditionReady)).WithContext(ctx).Should(HavePrefix("True"))
		quiet(ctx)
		after, err := hub.Requests(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(writesToTargets(difference(installation.Caused(before), installation.Caused(after)))).To(Equal(map[string]float64{
			"target object apply configmaps": 1, "target object delete configmaps": 1,
		}))
		now := identities(ctx, target("hosting"), configMaps, ns, "")
		for name, identity := range placed {
			if name != "object-0" && name != "object-1" {
				Expect(now).To(HaveKeyWithValue(name, identity))
			}
		}
	}, NodeTimeout(4*time.Minute))

	It("is the only cluster that its token admits", thorough, Label("escapes"), func(ctx SpecContext) {
		const ns = "tunnel-trust"
		inventory := newInventory(ctx, ns)
		one, err := inventory.RegisterTunnel(ctx, "one", kubeconfigOf("hosting"), nil, true)
		Expect(err).NotTo(HaveOccurred())
		stop(one)
		two, err := inventory.RegisterTunnel(ctx, "two", kubeconfigOf("florin"), nil, true)
		Expect(err).NotTo(HaveOccurred())
		stop(two)
		mailbox := mailboxOf(ctx, inventory, "one")
		apply(ctx, mailbox, documents(namespace(ns), configMap(ns, "settings", "first"), everythingIn(ns)))
		eventuallyExists(ctx, target("hosting"), configMaps, ns, "settings")
		mailboxOf(ctx, inventory, "two")

		By("refusing wrong tokens")
		unauthorized := handshakes(ctx, "unauthorized")
		for _, token := range []string{"", two.Token, one.Token + "x"} {
			intruder, err := inventory.StartTunnel(one.SyncTarget, kubeconfigOf("guilder"), token)
			Expect(err).NotTo(HaveOccurred())
			DeferCleanup(func() { _ = intruder.Kill9() })
			Eventually(handshakes).WithContext(ctx).WithArguments("unauthorized").Should(BeNumerically(">", unauthorized))
			Expect(intruder.Kill9()).To(Succeed())
			unauthorized = handshakes(ctx, "unauthorized")
		}

		By("refusing another cluster with the right token")
		intruder, err := inventory.StartTunnel(one.SyncTarget, kubeconfigOf("guilder"), one.Token)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func() { _ = intruder.Kill9() })
		Eventually(reasonOf(ctx, inventory, "one", edgev2alpha1.ConditionTunnelRefused)).WithContext(ctx).Should(Equal("True ClusterChanged"))
		patch(ctx, mailbox, configMaps, ns, "settings", `{"data": {"entry": "second"}}`)
		Eventually(value).WithContext(ctx).WithArguments(target("hosting"), configMaps, ns, "settings", "data", "entry").Should(Equal("second"))
		Expect(framework.Condition(ctx, inventory.Config, syncTargets, "", "one", "Ready")).To(Equal("True"))

		By("refusing it also when it is the only one")
		Expect(one.Kill9()).To(Succeed())
		Eventually(reasonOf(ctx, inventory, "one", edgev2alpha1.ConditionReady)).WithContext(ctx).Should(Equal("False ClusterChanged"))
		Expect(framework.Exists(ctx, target("guilder"), configMaps, ns, "settings")).To(BeFalse())
		Expect(intruder.Kill9()).To(Succeed())
		back, err := inventory.StartTunnel(one.SyncTarget, kubeconfigOf("hosting"), one.Token)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func() { _ = back.Kill9() })
		Eventually(reasonOf(ctx, inventory, "one", edgev2alpha1.ConditionReady)).WithContext(ctx).Should(HavePrefix("True"))
		Eventually(reasonOf(ctx, inventory, "one", edgev2alpha1.ConditionTunnelRefused)).WithContext(ctx).Should(BeEmpty())
	}, NodeTimeout(5*time.Minute))

	It("loses and duplicates nothing when the replica with its tunnel is killed in a burst, or connections break", thorough, Label("faults"), func(ctx SpecContext) {
		const ns, count = "tunnel-burst", 200
		inventory := newInventory(ctx, ns)
		tunnel, err := inventory.RegisterTunnel(ctx, "away", kubeconfigOf("hosting"), nil, true)
		Expect(err).NotTo(HaveOccurred())
		stop(tunnel)
		mailbox := mailboxOf(ctx, inventory, "away")
		apply(ctx, mailbox, documents(namespace(ns), everythingIn(ns)))
		placed := func(prefix string) func() int {
			return func() int { return len(identities(ctx, target("hosting"), configMaps, ns, prefix)) }
		}

		By("breaking connections during a burst")
		broken, cancel := context.WithCancel(ctx)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			ticker := time.NewTicker(700 * time.Millisecond)
			defer ticker.Stop()
			for {
				select {
				case <-broken.Done():
					return
				case <-ticker.C:
					synchub.Balancer.Drop()
				}
			}
		}()
		fill(ctx, mailbox, ns, "broken-", count)
		Eventually(placed("broken-")).WithContext(ctx).Should(Equal(count))
		cancel()
		<-ended
		Eventually(reasonOf(ctx, inventory, "away", edgev2alpha1.ConditionReady)).WithContext(ctx).Should(HavePrefix("True"))

		By("killing the replica during another")
		standby, err := synchub.StartHub()
		Expect(err).NotTo(HaveOccurred())
		Expect(standby.AwaitReady(ctx)).To(Succeed())
		filled := make(chan struct{})
		go func() {
			defer close(filled)
			defer GinkgoRecover()
			fill(ctx, mailbox, ns, "killed-", count)
		}()
		Eventually(placed("killed-")).WithContext(ctx).Should(BeNumerically(">", count/10))
		Expect(hub.Kill9()).To(Succeed())
		hub = standby
		<-filled
		Eventually(placed("killed-")).WithContext(ctx).Should(Equal(count))
		quiet(ctx)
		Expect(identities(ctx, target("hosting"), configMaps, ns, "broken-")).To(HaveLen(count))
		before := identities(ctx, target("hosting"), configMaps, ns, "")

		By("cutting the link again and again at rest, where three of ten connections are lost")
		synchub.Balancer.Lose(0.3)
		DeferCleanup(func() { synchub.Balancer.Lose(0) })
		for range 5 {
			opened := handshakes(ctx, "opened")
			synchub.Balancer.Drop()
			Eventually(handshakes).WithContext(ctx).WithArguments("opened").Should(BeNumerically(">", opened))
		}
		Eventually(reasonOf(ctx, inventory, "away", edgev2alpha1.ConditionReady)).WithContext(ctx).Should(HavePrefix("True"))
		quiet(ctx)
		Expect(identities(ctx, target("hosting"), configMaps, ns, "")).To(Equal(before))
	}, NodeTimeout(6*time.Minute))

	It("does not disturb other clusters, whatever it does", thorough, Label("escapes"), func(ctx SpecContext) {
		const ns, changes, memory = "tunnel-hostile", 20, 512 << 20
		inventory := newInventory(ctx, ns)
		Expect(inventory.Register(ctx, "honest", kubeconfigOf("florin"), nil)).To(Succeed())
		mailbox := mailboxOf(ctx, inventory, "honest")
		apply(ctx, mailbox, documents(namespace(ns), configMap(ns, "settings", "first"), everythingIn(ns)))
		eventuallyExists(ctx, target("florin"), configMaps, ns, "settings")
		before := residentMemory(ctx)

		hostile := map[string]*faults.HostileTunnel{}
		for name, attack := range faults.Hostilities {
			admitted, err := inventory.AdmitTunnel(ctx, fmt.Sprintf("hostile-%d", len(hostile)), nil, false)
			Expect(err).NotTo(HaveOccurred())
			hostile[name], err = faults.OpenHostileTunnel(ctx, admitted.SyncTarget.Status.Tunnel.URL, []byte(admitted.SyncTarget.Status.Tunnel.CertificateAuthority), string(admitted.SyncTarget.UID), admitted.Token, attack)
			Expect(err).NotTo(HaveOccurred())
			DeferCleanup(hostile[name].Close)
			Eventually(reasonOf(ctx, inventory, admitted.SyncTarget.Name, edgev2alpha1.ConditionMailboxReady)).WithContext(ctx).Should(HavePrefix("True"))
			apply(ctx, mailboxConfig(ctx, inventory, admitted.SyncTarget.Name), documents(namespace(ns), configMap(ns, "settings", "first"), everythingIn(ns)))
		}
		for name, one := range hostile {
			Eventually(one.Attacks).WithContext(ctx).Should(BeNumerically(">", 0), name)
		}
		for change := range changes {
			wanted := fmt.Sprint(change)
			patch(ctx, mailbox, configMaps, ns, "settings", fmt.Sprintf(`{"data": {"entry": %q}}`, wanted))
			Eventually(value).WithContext(ctx).WithArguments(target("florin"), configMaps, ns, "settings", "data", "entry").Should(Equal(wanted))
		}
		Expect(framework.Condition(ctx, inventory.Config, syncTargets, "", "honest", "Ready")).To(Equal("True"))
		Expect(residentMemory(ctx)).To(BeNumerically("<", before+memory))
	}, NodeTimeout(5*time.Minute))
})

// isTargetWrite matches a counted request that writes an object to a target.
var isTargetWrite = regexp.MustCompile(`^target object `)

// writesToTargets leaves the writes to targets of the counted requests.
func writesToTargets(requests map[string]float64) map[string]float64 {
	left := map[string]float64{}
	for request, count := range requests {
		if count > 0 && isTargetWrite.MatchString(request) {
			left[request] = count
		}
	}
	return left
}
