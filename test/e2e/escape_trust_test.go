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
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/framework/installation"
)

var _ = Describe("the hub's source of truth", thorough, Label("escapes"), func() {
	It("is not the status of a SyncTarget", func(ctx SpecContext) {
		const ns = "believed"
		victims, attackers := newInventory(ctx, ns+"-victim"), newInventory(ctx, ns+"-attacker")
		victim, own := register(ctx, victims, "victim", "florin"), register(ctx, attackers, "attacker", "guilder")
		apply(ctx, victim, documents(namespace(ns), configMap(ns, "secret-plan", "theirs"), everythingIn(ns)))
		eventuallyExists(ctx, target("florin"), configMaps, ns, "secret-plan")
		before := syncTargetOf(ctx, attackers, "attacker")
		forge := func() {
			GinkgoHelper()
			forged, err := json.Marshal(map[string]any{"status": map[string]any{
				"mailbox":         syncTargetOf(ctx, victims, "victim").Status.Mailbox,
				"clusterID":       syncTargetOf(ctx, victims, "victim").Status.ClusterID,
				"syncedResources": []any{map[string]any{"group": "*", "resource": "*", "own": true, "state": "Accepted"}},
			}})
			Expect(err).NotTo(HaveOccurred())
			patch(ctx, attackers.Config, syncTargets, "", "attacker", string(forged), "status")
		}
		expectOwn := func(entry string) {
			GinkgoHelper()
			Eventually(func(g Gomega) {
				status := syncTargetOf(ctx, attackers, "attacker").Status
				g.Expect(status.Mailbox).To(Equal(before.Status.Mailbox))
				g.Expect(status.ClusterID).To(Equal(before.Status.ClusterID))
				g.Expect(status.SyncedResources).NotTo(ContainElement(HaveField("Resource", "*")))
			}).WithContext(ctx).Should(Succeed())
			apply(ctx, own, documents(namespace(ns), configMap(ns, "own", entry), everythingIn(ns)))
			Eventually(value).WithContext(ctx).WithArguments(target("guilder"), configMaps, ns, "own", "data", "entry").Should(Equal(entry))
			Expect(identities(ctx, target("guilder"), configMaps, ns, "secret-plan")).To(BeEmpty())
		}

		forge()
		expectOwn("one")
		By("nor when a hub starts with it")
		Expect(hub.Kill9()).To(Succeed())
		forge()
		startHub(ctx)
		expectOwn("two")
		Expect(value(ctx, victim, configMaps, ns, "secret-plan", "data", "entry")).To(Equal("theirs"))
		By("reading its copies from the ledger, although the status was emptied")
		Expect(hub.Kill9()).To(Succeed())
		patch(ctx, attackers.Config, syncTargets, "", "attacker", `{"status": {"syncedResources": null, "clusterID": null, "mailbox": null}}`, "status")
		remove(ctx, own, syncerConfigs, "", ns)
		startHub(ctx)
		eventuallyGone(ctx, target("guilder"), configMaps, ns, "own")
	}, NodeTimeout(4*time.Minute))

	It("is not another tenant's claim on a cluster", func(ctx SpecContext) {
		const ns = "claimed"
		attackers, victims := newInventory(ctx, ns+"-attacker"), newInventory(ctx, ns+"-victim")
		By("registering a server that claims to be the victim's cluster, before the victim")
		Expect(attackers.Register(ctx, "first", impostor(ctx, "florin"), nil)).To(Succeed())
		Eventually(framework.Condition).WithContext(ctx).WithArguments(attackers.Config, syncTargets, "", "first", "HeartbeatHealthy").Should(Equal("True"))
		Expect(victims.RegisterExclusive(ctx, "victim", kubeconfigOf("florin"))).To(Succeed())
		mailboxOf(ctx, victims, "victim")
		for _, side := range []struct {
			inventory   *installation.Inventory
			name, other string
		}{{victims, "victim", "first"}, {attackers, "first", "victim"}} {
			Eventually(framework.Condition).WithContext(ctx).WithArguments(side.inventory.Config, syncTargets, "", side.name, edgev2alpha1.ConditionClusterShared).Should(Equal("True"))
			shared := message(ctx, side.inventory.Config, syncTargets, side.name, edgev2alpha1.ConditionClusterShared)
			Expect(shared).NotTo(Or(ContainSubstring(side.other), ContainSubstring("attacker"), ContainSubstring(string(syncTargetOf(ctx, victims, "victim").UID))))
		}
		Expect(framework.Condition(ctx, victims.Config, syncTargets, "", "victim", "Ready")).To(Equal("True"))
	}, NodeTimeout(3*time.Minute))

	It("is one cluster for each SyncTarget, until an operator confirms another one", func(ctx SpecContext) {
		const ns = "swapped"
		inventory := newInventory(ctx, ns)
		one, other := register(ctx, inventory, "one", "florin"), register(ctx, inventory, "other", "guilder")
		apply(ctx, one, documents(namespace(ns), configMap(ns, "of-one", "x"), everythingIn(ns)))
		apply(ctx, other, documents(namespace(ns), configMap(ns, "of-other", "x"), everythingIn(ns)))
		eventuallyExists(ctx, target("florin"), configMaps, ns, "of-one")
		eventuallyExists(ctx, target("guilder"), configMaps, ns, "of-other")
		swap := func(first, second string) {
			GinkgoHelper()
			setKubeconfig(ctx, inventory, "one", kubeconfigOf(first))
			setKubeconfig(ctx, inventory, "other", kubeconfigOf(second))
		}

		By("swapping the kubeconfigs while objects move")
		swap("guilder", "florin")
		apply(ctx, one, configMap(ns, "of-one-late", "x"))
		apply(ctx, other, configMap(ns, "of-other-late", "x"))
		for _, name := range []string{"one", "other"} {
			Eventually(reasonOf).WithContext(ctx).WithArguments(inventory, name, "SyncerReady").Should(Equal("ClusterChanged"))
			Expect(message(ctx, inventory.Config, syncTargets, name, "Ready")).To(ContainSubstring("kubectl synchub confirm-cluster " + name))
		}
		Expect(syncTargetOf(ctx, inventory, "one").Status.ObservedClusterID).To(Equal(syncTargetOf(ctx, inventory, "other").Status.ClusterID))
		By("and restarting the hub")
		Expect(hub.Kill9()).To(Succeed())
		startHub(ctx)
		Eventually(reasonOf).WithContext(ctx).WithArguments(inventory, "one", "SyncerReady").Should(Equal("ClusterChanged"))
		swap("florin", "guilder")
		eventuallyExists(ctx, target("florin"), configMaps, ns, "of-one-late")
		eventuallyExists(ctx, target("guilder"), configMaps, ns, "of-other-late")
		Expect(identities(ctx, target("guilder"), configMaps, ns, "of-one")).To(BeEmpty())
		Expect(identities(ctx, target("florin"), configMaps, ns, "of-other")).To(BeEmpty())

		for _, name := range []string{"one", "other"} {
			Eventually(framework.Condition).WithContext(ctx).WithArguments(inventory.Config, syncTargets, "", name, "Ready").Should(Equal("True"))
		}

		By("moving one on purpose")
		setKubeconfig(ctx, inventory, "one", kubeconfigOf("guilder"))
		Eventually(reasonOf).WithContext(ctx).WithArguments(inventory, "one", "SyncerReady").Should(Equal("ClusterChanged"))
		former := syncTargetOf(ctx, inventory, "one").Status
		Expect(former.ObservedClusterID).To(Equal(syncTargetOf(ctx, inventory, "other").Status.ClusterID))
		patch(ctx, inventory.Config, syncTargets, "", "one", fmt.Sprintf(`{"metadata": {"annotations": {%q: %q}}}`, edgev2alpha1.AnnotationConfirmedCluster, former.ObservedClusterID))
		eventuallyExists(ctx, target("guilder"), configMaps, ns, "of-one-late")
		Eventually(func(g Gomega) {
			status := syncTargetOf(ctx, inventory, "one").Status
			g.Expect(status.ClusterID).To(Equal(former.ObservedClusterID))
			g.Expect(status.ObservedClusterID).To(BeEmpty())
			g.Expect(status.FormerClusters).To(ConsistOf(And(HaveField("ClusterID", former.ClusterID), HaveField("Resources", Not(BeEmpty())))))
		}).WithContext(ctx).Should(Succeed())
		Expect(identities(ctx, target("florin"), configMaps, ns, "of-one")).NotTo(BeEmpty(), "what is there is left there, and listed")
	}, NodeTimeout(4*time.Minute))
})

func syncTargetOf(ctx context.Context, inventory *installation.Inventory, name string) *edgev2alpha1.SyncTarget {
	GinkgoHelper()
	syncTarget, err := inventory.SyncTarget(ctx, name)
	Expect(err).NotTo(HaveOccurred())
	return syncTarget
}

func reasonOf(ctx context.Context, inventory *installation.Inventory, name, condition string) string {
	for _, one := range syncTargetOf(ctx, inventory, name).Status.Conditions {
		if one.Type == condition {
			return one.Reason
		}
	}
	return ""
}

func setKubeconfig(ctx context.Context, inventory *installation.Inventory, name string, kubeconfig []byte) {
	GinkgoHelper()
	content, err := json.Marshal(map[string]any{"stringData": map[string]any{"kubeconfig": string(kubeconfig)}})
	Expect(err).NotTo(HaveOccurred())
	patch(ctx, inventory.Config, secrets, "default", name+"-kubeconfig", string(content))
}

// impostor serves, until the spec ends, the identity of a cluster of the suite, and returns a kubeconfig for the server.
func impostor(ctx context.Context, cluster string) []byte {
	GinkgoHelper()
	genuine, err := framework.Get(ctx, target(cluster), namespaces, "", "kube-system")
	Expect(err).NotTo(HaveOccurred())
	server := httptest.NewTLSServer(http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
		writer.Header().Set("Content-Type", "application/json")
		switch {
		case request.URL.Path == "/version":
			_, _ = fmt.Fprint(writer, `{"gitVersion": "v1.35.4"}`)
		case strings.HasSuffix(request.URL.Path, "/namespaces/kube-system"):
			_, _ = fmt.Fprintf(writer, `{"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": {"name": "kube-system", "uid": %q}}`, genuine.GetUID())
		default:
			writer.WriteHeader(http.StatusNotFound)
			_, _ = fmt.Fprint(writer, `{"apiVersion": "v1", "kind": "Status", "status": "Failure", "reason": "NotFound", "code": 404}`)
		}
	}))
	DeferCleanup(server.Close)
	config := clientcmdapi.NewConfig()
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: server.URL, CertificateAuthorityData: authority, TLSServerName: "example.com"}
	config.AuthInfos["u"] = &clientcmdapi.AuthInfo{Token: "none"}
	config.Contexts["c"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	config.CurrentContext = "c"
	kubeconfig, err := clientcmd.Write(*config)
	Expect(err).NotTo(HaveOccurred())
	return kubeconfig
}
