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
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/framework/installation"
)

var (
	syncTargets = installation.SyncTargets
	workspaces  = schema.GroupVersionResource{Group: "tenancy.kcp.io", Version: "v1alpha1", Resource: "workspaces"}
)

var _ = Describe("restarts and removals", Serial, func() {
	It("loses and duplicates nothing when the hub is killed in the middle of a burst", func(ctx SpecContext) {
		const ns, count = "killed", 150
		inventory := newInventory(ctx, ns)
		mailbox := register(ctx, inventory, "florin", "florin")
		apply(ctx, mailbox, documents(namespace(ns), everythingIn(ns)))
		fill(ctx, mailbox, ns, "before-", count)
		Expect(hub.Kill9()).To(Succeed())
		placed := identities(ctx, target("florin"), configMaps, ns, "")
		GinkgoWriter.Printf("%d objects were placed when the hub was killed\n", len(placed))
		fill(ctx, mailbox, ns, "meanwhile-", 20)
		startHub(ctx)

		Eventually(func() int {
			return len(identities(ctx, target("florin"), configMaps, ns, "before-")) + len(identities(ctx, target("florin"), configMaps, ns, "meanwhile-"))
		}).WithContext(ctx).Should(Equal(count + 20))
		after := identities(ctx, target("florin"), configMaps, ns, "")
		for name, identity := range placed {
			Expect(after).To(HaveKeyWithValue(name, identity), "what was placed before must not be written again")
		}
	}, NodeTimeout(4*time.Minute))

	It("deletes and loses nothing when kcp is killed while there is much to do", func(ctx SpecContext) {
		const ns, count, more = "kcp-killed", 200, 100
		inventory := newInventory(ctx, ns)
		hosting, mailbox := target("hosting"), register(ctx, inventory, "quiet", "hosting")
		apply(ctx, mailbox, documents(namespace(ns), everythingIn(ns)))
		fill(ctx, mailbox, ns, "before-", count)
		Eventually(func() map[string]string { return identities(ctx, hosting, configMaps, ns, "before-") }).WithContext(ctx).Should(HaveLen(count))
		placed := identities(ctx, hosting, configMaps, ns, "before-")
		followed := follow(ctx, hosting, ns, configMaps)
		DeferCleanup(func(ctx SpecContext) {
			if suite.KCP.Process().Ended() {
				Expect(suite.KCP.Start(ctx)).To(Succeed())
			}
		})

		var written atomic.Int64
		writing := make(chan struct{})
		client, err := dynamic.NewForConfig(mailbox)
		Expect(err).NotTo(HaveOccurred())
		go func() {
			defer GinkgoRecover()
			defer close(writing)
			for i := range more {
				object := &unstructured.Unstructured{Object: map[string]any{
					"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": fmt.Sprintf("meanwhile-%d", i)},
				}}
				Eventually(func() bool {
					_, err := client.Resource(configMaps).Namespace(ns).Create(ctx, object, metav1.CreateOptions{})
					return err == nil || apierrors.IsAlreadyExists(err)
				}).WithContext(ctx).Should(BeTrue())
				written.Add(1)
			}
		}()
		Eventually(written.Load).WithContext(ctx).Should(BeNumerically(">", more/4))
		Expect(suite.KCP.Kill9()).To(Succeed())
		GinkgoWriter.Printf("%d objects were written when kcp was killed\n", written.Load())
		Expect(suite.KCP.Start(ctx)).To(Succeed())
		Eventually(writing).WithContext(ctx).Should(BeClosed())

		Eventually(func() map[string]string { return identities(ctx, hosting, configMaps, ns, "meanwhile-") }).WithContext(ctx).Should(HaveLen(more))
		Eventually(value).WithContext(ctx).WithArguments(mailbox, syncerConfigs, "", ns, "status", "synced").Should(Equal(fmt.Sprint(count + more)))
		By("following changes and deletions again")
		patch(ctx, mailbox, configMaps, ns, "meanwhile-1", `{"data": {"entry": "after"}}`)
		Eventually(value).WithContext(ctx).WithArguments(hosting, configMaps, ns, "meanwhile-1", "data", "entry").Should(Equal("after"))
		remove(ctx, mailbox, configMaps, ns, "meanwhile-0")
		eventuallyGone(ctx, hosting, configMaps, ns, "meanwhile-0")
		Expect(identities(ctx, hosting, configMaps, ns, "before-")).To(Equal(placed), "what was placed before must not be written again")
		Eventually(followed.endedAt).WithContext(ctx).WithArguments("configmaps/meanwhile-0").ShouldNot(BeZero())
		for name := range identities(ctx, hosting, configMaps, ns, "") {
			Expect(followed.endedAt("configmaps/"+name)).To(BeZero(), "%s may not have been deleted meanwhile", name)
		}
	}, NodeTimeout(5*time.Minute))

	It("hands over to a second replica, at once on shutdown and after the lease when killed", func(ctx SpecContext) {
		const ns = "handover"
		inventory := newInventory(ctx, ns)
		mailbox := register(ctx, inventory, "florin", "florin")
		apply(ctx, mailbox, documents(namespace(ns), configMap(ns, "one", "1"), everythingIn(ns)))
		eventuallyExists(ctx, target("florin"), configMaps, ns, "one")
		before := identities(ctx, target("florin"), configMaps, ns, "one")

		second, err := synchub.StartHub()
		Expect(err).NotTo(HaveOccurred())
		Expect(second.AwaitReady(ctx)).To(Succeed(), "a replica on standby is ready")
		code, err := hub.Terminate(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(code).To(BeZero())
		hub = second
		apply(ctx, mailbox, configMap(ns, "two", "2"))
		eventuallyExists(ctx, target("florin"), configMaps, ns, "two")

		third, err := synchub.StartHub()
		Expect(err).NotTo(HaveOccurred())
		Expect(third.AwaitReady(ctx)).To(Succeed())
		Expect(hub.Kill9()).To(Succeed())
		hub = third
		apply(ctx, mailbox, configMap(ns, "three", "3"))
		eventuallyExists(ctx, target("florin"), configMaps, ns, "three")
		Expect(identities(ctx, target("florin"), configMaps, ns, "one")).To(Equal(before))
	}, NodeTimeout(4*time.Minute))

	It("prunes what a config had placed that vanished while the hub was down", func(ctx SpecContext) {
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
		startHub(ctx)
		eventuallyGone(ctx, target("florin"), configMaps, ns, "settings")
		eventuallyGone(ctx, target("florin"), deployments, ns, "web")
		By("forgetting the pairs only then")
		Eventually(value).WithContext(ctx).WithArguments(inventory.Config, syncTargets, "", "florin", "status", "syncedResources").Should(BeEmpty())
	}, NodeTimeout(4*time.Minute))

	It("parks a target that is away, takes it up when it is back, and lets the other go on meanwhile", func(ctx SpecContext) {
		const ns = "parked"
		inventory := newInventory(ctx, ns)
		for _, name := range []string{"florin", "guilder"} {
			apply(ctx, register(ctx, inventory, name, name), documents(namespace(ns), configMap(ns, "settings", "before"), configMap(ns, "unwanted", "x"), everythingIn(ns)))
			eventuallyExists(ctx, target(name), configMaps, ns, "settings")
			eventuallyExists(ctx, target(name), configMaps, ns, "unwanted")
		}
		away := suite.Targets["guilder"]
		DeferCleanup(func(ctx SpecContext) {
			if away.Process().Ended() {
				Expect(away.Start(ctx)).To(Succeed())
			}
		})
		Expect(away.Kill9()).To(Succeed())
		Eventually(framework.Condition).WithContext(ctx).WithArguments(inventory.Config, syncTargets, "", "guilder", "Ready").Should(Equal("False"))
		for _, name := range []string{"florin", "guilder"} {
			mailbox := mailboxConfig(ctx, inventory, name)
			patch(ctx, mailbox, configMaps, ns, "settings", `{"data": {"entry": "after"}}`)
			remove(ctx, mailbox, configMaps, ns, "unwanted")
		}
		Eventually(value).WithContext(ctx).WithArguments(target("florin"), configMaps, ns, "settings", "data", "entry").Should(Equal("after"))
		eventuallyGone(ctx, target("florin"), configMaps, ns, "unwanted")
		Expect(framework.Condition(ctx, inventory.Config, syncTargets, "", "florin", "Ready")).To(Equal("True"))

		Expect(away.Start(ctx)).To(Succeed())
		Eventually(value).WithContext(ctx).WithArguments(target("guilder"), configMaps, ns, "settings", "data", "entry").Should(Equal("after"))
		eventuallyGone(ctx, target("guilder"), configMaps, ns, "unwanted")
		Eventually(framework.Condition).WithContext(ctx).WithArguments(inventory.Config, syncTargets, "", "guilder", "Ready").Should(Equal("True"))
	}, NodeTimeout(5*time.Minute))

	It("removes the mailbox and the controllers of a SyncTarget that is deleted, and leaves its target alone", func(ctx SpecContext) {
		const ns = "removed"
		inventory := newInventory(ctx, ns)
		// Another one stays, and with it what all of them share.
		other := register(ctx, inventory, "guilder", "guilder")
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

		remove(ctx, inventory.Config, syncTargets, "", "florin")
		eventuallyGone(ctx, inventory.Config, syncTargets, "", "florin")
		provider := synchub.InWorkspace(installation.Workspace)
		mailboxName := syncTarget.Status.Mailbox.Workspace[len(installation.Workspace)+1:]
		eventuallyGone(ctx, provider, workspaces, "", mailboxName)
		Eventually(seriesOf).WithContext(ctx).WithArguments(string(syncTarget.UID)).Should(BeZero())
		By("leaving no goroutine of its controllers behind")
		// One sync controller has more goroutines than this; idle connections come and go.
		const others = 8
		Eventually(goroutines).WithContext(ctx).Should(BeNumerically("<=", before+others))
		Expect(value(ctx, target("florin"), configMaps, ns, "settings", "data", "entry")).To(Equal("green"))
		Expect(framework.Exists(ctx, target("florin"), namespaces, "", ns)).To(BeTrue(), fmt.Sprintf("the namespace %s", ns))
	}, NodeTimeout(4*time.Minute))
})
