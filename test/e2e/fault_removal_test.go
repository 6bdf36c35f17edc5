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
	"net"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/framework/faults"
)

const forced = `{"metadata": {"annotations": {"synchub.dev/force-removal": "true"}}}`

var _ = Describe("a SyncTarget whose server accepts connections and never answers", thorough, Label("faults"), func() {
	It("reports what its deletion waits for, and is deleted at once when forced", func(ctx SpecContext) {
		const ns = "hanging"
		proxy := newProxy(ctx, clusters["florin"])
		inventory := newInventory(ctx, ns)
		for _, name := range []string{"patient", "urgent"} {
			Expect(inventory.Register(ctx, name, kubeconfigBy(proxy), nil)).To(Succeed())
			apply(ctx, mailboxOf(ctx, inventory, name), documents(namespace(ns+name), configMap(ns+name, "settings", "x"), everythingIn(ns+name)))
			eventuallyExists(ctx, target("florin"), configMaps, ns+name, "settings")
		}
		Expect(proxy.Set(ctx, faults.BlackHole)).To(Succeed())

		By("forcing the removal of one that still counts as up")
		patch(ctx, inventory.Config, syncTargets, "", "urgent", forced)
		remove(ctx, inventory.Config, syncTargets, "", "urgent")
		Eventually(framework.Exists).WithContext(ctx).WithArguments(inventory.Config, syncTargets, "", "urgent").WithTimeout(time.Minute).Should(BeFalse())
		Expect(noticesOf(ctx, inventory, "urgent")).To(ContainElement(HavePrefix("RemovalForced")))

		By("waiting for the other one until its removal is forced too")
		remove(ctx, inventory.Config, syncTargets, "", "patient")
		Eventually(message).WithContext(ctx).WithArguments(inventory.Config, syncTargets, "patient", "Ready").Should(And(
			ContainSubstring("cannot be reached"), ContainSubstring("configmaps"), ContainSubstring("force-removal")))
		patch(ctx, inventory.Config, syncTargets, "", "patient", forced)
		Eventually(framework.Exists).WithContext(ctx).WithArguments(inventory.Config, syncTargets, "", "patient").WithTimeout(time.Minute).Should(BeFalse())
	}, NodeTimeout(5*time.Minute))

	It("is deleted at once if nothing was placed there", func(ctx SpecContext) {
		const ns = "never-answered"
		inventory := newInventory(ctx, ns)
		Expect(inventory.Register(ctx, ns, silentKubeconfig(ctx), nil)).To(Succeed())
		Eventually(framework.Condition).WithContext(ctx).WithArguments(inventory.Config, syncTargets, "", ns, "MailboxReady").Should(Equal("True"))
		remove(ctx, inventory.Config, syncTargets, "", ns)
		Eventually(framework.Exists).WithContext(ctx).WithArguments(inventory.Config, syncTargets, "", ns).WithTimeout(time.Minute).Should(BeFalse())
	}, NodeTimeout(3*time.Minute))
})

// silentKubeconfig returns florin's kubeconfig with a server that accepts connections and never answers.
func silentKubeconfig(ctx context.Context) []byte {
	GinkgoHelper()
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(listener.Close)
	config, err := clientcmd.Load(kubeconfigOf("florin"))
	Expect(err).NotTo(HaveOccurred())
	for _, cluster := range config.Clusters {
		cluster.Server = "https://" + listener.Addr().String()
	}
	kubeconfig, err := clientcmd.Write(*config)
	Expect(err).NotTo(HaveOccurred())
	return kubeconfig
}
