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
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/framework/faults"
	"github.com/synchub-dev/synchub/test/framework/installation"
	"github.com/synchub-dev/synchub/test/framework/servers"
)

// mostRequests is the maximum number of requests to a target during its trouble, which lasts about a minute.
const mostRequests = 40

// All SyncTargets use one cluster, each through its own proxy.
var _ = Describe("targets with faults", thorough, Label("faults"), func() {
	It("are reported by a condition, do not affect other targets, and catch up without a loss", SpecPriority(1), func(ctx SpecContext) {
		const ns = "ailing"
		cluster := newCluster(ctx, ns)
		proxies := map[string]*faults.Proxy{}
		for _, name := range []string{"slow", "trickling", "silent", "failing", "refusing"} {
			proxies[name] = newProxy(ctx, cluster)
		}
		inventory := newInventory(ctx, ns)
		ailing := map[string]*rest.Config{}
		for name, proxy := range proxies {
			Expect(inventory.Register(ctx, name, kubeconfigBy(proxy), nil)).To(Succeed())
		}
		Expect(inventory.Register(ctx, "expired", kubeconfigOf(ns), nil)).To(Succeed())
		others := newHealthyTarget(ctx, ns+"-others")
		for _, name := range []string{"slow", "trickling", "silent", "failing", "refusing", "expired"} {
			ailing[name] = mailboxOf(ctx, inventory, name)
			in := ns + "-" + name
			apply(ctx, ailing[name], documents(namespace(in), configMap(in, "settings", "before"), configMap(in, "unwanted", "x"), everythingIn(in)))
		}
		for name := range ailing {
			eventuallyExists(ctx, target(ns), configMaps, ns+"-"+name, "unwanted")
			Eventually(value).WithContext(ctx).WithArguments(target(ns), configMaps, ns+"-"+name, "settings", "data", "entry").Should(Equal("before"))
		}
		quiet(ctx)
		arrived := followStates(ctx, target(ns))
		before, rounds := requestsToTargets(ctx), others.rounds

		// Each fault lasts until all of them are set.
		expire(ctx, inventory, "expired", cluster)
		for _, fault := range []struct {
			name string
			is   faults.Fault
		}{{"slow", faults.Slow}, {"trickling", faults.Trickle}, {"silent", faults.BlackHole}, {"failing", faults.Failing}, {"refusing", faults.Refused}} {
			By("having one that is " + fault.name)
			Expect(proxies[fault.name].Set(ctx, fault.is)).To(Succeed())
			changeAll(ctx, ailing[fault.name], ns+"-"+fault.name)
			others.measure(ctx, string(fault.is))
		}
		for name, reason := range map[string]string{
			"slow": "Connected", "trickling": "TargetUnreachable", "silent": "TargetUnreachable",
			"failing": "TargetUnreachable", "refusing": "TargetUnreachable", "expired": "TokenExpired",
		} {
			Eventually(reasonOf).WithContext(ctx).WithArguments(inventory, name, "HeartbeatHealthy").Should(Equal(reason), name)
		}
		changeAll(ctx, ailing["expired"], ns+"-expired")
		others.measure(ctx, "an expired token, and all of these")
		cost := requestsToTargets(ctx) - before - float64(measured*(others.rounds-rounds))
		AddReportEntry("requests to six targets in trouble", cost, ReportEntryVisibilityAlways)
		Expect(cost).To(BeNumerically("<=", mostRequests*len(ailing)))

		By("catching up")
		for _, proxy := range proxies {
			Expect(proxy.Set(ctx, faults.None)).To(Succeed())
		}
		Expect(inventory.Register(ctx, "expired", kubeconfigOf(ns), nil)).To(Succeed())
		for name := range ailing {
			eventuallyChanged(ctx, arrived, ns+"-"+name)
			Eventually(framework.Condition).WithContext(ctx).WithArguments(inventory.Config, syncTargets, "", name, "Ready").Should(Equal("True"), name)
		}

		By("having the cluster's etcd refuse all writes")
		Expect(cluster.SetReadOnly(ctx, true)).To(Succeed())
		for name, mailbox := range ailing {
			patch(ctx, mailbox, configMaps, ns+"-"+name, "settings", `{"data": {"entry": "full"}}`)
		}
		for name, mailbox := range ailing {
			Eventually(failures).WithContext(ctx).WithArguments(mailbox, ns+"-"+name).Should(ConsistOf("Failed settings"))
			Expect(value(ctx, mailbox, syncerConfigs, "", ns+"-"+name, "status", "failures")).To(ContainSubstring("database space exceeded"))
		}
		others.measure(ctx, "an etcd without space")
		Expect(cluster.SetReadOnly(ctx, false)).To(Succeed())
		for name, mailbox := range ailing {
			in := types.NamespacedName{Namespace: ns + "-" + name, Name: "settings"}
			Eventually(arrived.last).WithContext(ctx).WithArguments(in).Should(Equal("full"), name)
			Eventually(failures).WithContext(ctx).WithArguments(mailbox, in.Namespace).Should(BeEmpty())
			Expect(framework.Condition(ctx, inventory.Config, syncTargets, "", name, "Ready")).To(Equal("True"), name)
		}

		By("having written each state once, and deleted only the copies of deleted objects")
		quiet(ctx)
		for name := range ailing {
			in := ns + "-" + name
			Expect(arrived.gone(in)).To(ConsistOf("unwanted"), name)
			Expect(arrived.entries(types.NamespacedName{Namespace: in, Name: "added"})).To(Equal([]string{"new"}), name)
			entries := arrived.entries(types.NamespacedName{Namespace: in, Name: "settings"})
			Expect(entries).To(BeElementOf([]string{"two", "full"}, []string{"one", "two", "full"}), name)
		}
	}, NodeTimeout(5*time.Minute))
})

func newProxy(ctx context.Context, cluster *servers.Target) *faults.Proxy {
	GinkgoHelper()
	proxy, err := faults.NewProxy(ctx, cluster.Config)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(proxy.Close)
	return proxy
}

func kubeconfigBy(proxy *faults.Proxy) []byte {
	GinkgoHelper()
	kubeconfig, err := proxy.Kubeconfig()
	Expect(err).NotTo(HaveOccurred())
	return kubeconfig
}

// changeAll updates a ConfigMap twice, adds one and deletes another.
func changeAll(ctx context.Context, mailbox *rest.Config, namespace string) {
	GinkgoHelper()
	patch(ctx, mailbox, configMaps, namespace, "settings", `{"data": {"entry": "one"}}`)
	remove(ctx, mailbox, configMaps, namespace, "unwanted")
	apply(ctx, mailbox, configMap(namespace, "added", "new"))
	patch(ctx, mailbox, configMaps, namespace, "settings", `{"data": {"entry": "two"}}`)
}

// eventuallyChanged waits until all changes of changeAll have arrived.
func eventuallyChanged(ctx context.Context, arrived *arrivals, namespace string) {
	GinkgoHelper()
	Eventually(arrived.last).WithContext(ctx).WithArguments(types.NamespacedName{Namespace: namespace, Name: "settings"}).Should(Equal("two"), namespace)
	Eventually(arrived.last).WithContext(ctx).WithArguments(types.NamespacedName{Namespace: namespace, Name: "added"}).Should(Equal("new"), namespace)
	Eventually(arrived.gone).WithContext(ctx).WithArguments(namespace).Should(ConsistOf("unwanted"))
}

// expire gives a SyncTarget a token that expires in a few seconds, and that its ServiceAccount may not renew.
func expire(ctx context.Context, inventory *installation.Inventory, name string, cluster *servers.Target) {
	GinkgoHelper()
	apply(ctx, cluster.Config, fmt.Sprintf(`
apiVersion: v1
kind: ServiceAccount
metadata: {name: %[1]s, namespace: default}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: %[1]s}
rules:
- {apiGroups: ["", apps, apiextensions.k8s.io], resources: [configmaps, secrets, deployments, namespaces, customresourcedefinitions], verbs: ["*"]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: %[1]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: %[1]s}
subjects: [{kind: ServiceAccount, name: %[1]s, namespace: default}]
`, name))
	kubeconfig, err := cluster.ShortLivedKubeconfig(ctx, "default", name, 5*time.Second)
	Expect(err).NotTo(HaveOccurred())
	Expect(inventory.Register(ctx, name, kubeconfig, nil)).To(Succeed())
}

// requestsToTargets returns the number of all requests of the hub to targets.
func requestsToTargets(ctx context.Context) (total float64) {
	GinkgoHelper()
	requests, err := hub.Requests(ctx)
	Expect(err).NotTo(HaveOccurred())
	for kind, count := range requests {
		if kind.Destination == "target" {
			total += count
		}
	}
	return total
}
