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

	"github.com/kcp-dev/logicalcluster/v3"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/framework/installation"
)

// fatten adds data that the hub does not need, close to the API server's limits: a long annotation to the SyncTarget, and a
// large Secret to its workspace.
func fatten(ctx context.Context, inventory *installation.Inventory, name string) {
	GinkgoHelper()
	patch(ctx, inventory.Config, syncTargets, "", name, fmt.Sprintf(`{"metadata": {"annotations": {"example.com/long": %q}}}`, strings.Repeat("x", 200<<10)))
	writer, err := client.New(inventory.Config, client.Options{})
	Expect(err).NotTo(HaveOccurred())
	Expect(writer.Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name + "-large", Labels: map[string]string{edgev2alpha1.LabelCredential: edgev2alpha1.CredentialKubeconfig},
			Annotations: map[string]string{edgev2alpha1.AnnotationAllowedSyncTargets: name}},
		Data: map[string][]byte{"kubeconfig": []byte(strings.Repeat("#", 900<<10))},
	})).To(Succeed())
}

var _ = Describe("an inventory workspace with too many SyncTargets", thorough, Label("escapes"), func() {
	It("gets a limited number of mailboxes, fills no cache, and does not affect other inventories", SpecPriority(1), func(ctx SpecContext) {
		const ns, limit, many = "asks-for-little", 2, 6
		modest, greedy := newInventory(ctx, ns), newInventory(ctx, "asks-for-much")
		mailbox := register(ctx, modest, "before", "florin")
		apply(ctx, mailbox, documents(namespace(ns), everythingIn(ns), configMap(ns, "settings", "green")))
		eventuallyExists(ctx, target("florin"), configMaps, ns, "settings")
		name := func(number int) string { return fmt.Sprint("greedy-", number) }
		for number := range limit + 1 {
			Expect(greedy.Register(ctx, name(number), kubeconfigOf("hosting"), nil)).To(Succeed())
		}
		for number := range limit + 1 {
			mailboxOf(ctx, greedy, name(number))
		}
		prefix := logicalcluster.From(syncTargetOf(ctx, greedy, name(0))).String() + "-mb-"
		made := func() (count int) {
			all, err := framework.List(ctx, synchub.InWorkspace(synchub.Workspace), workspaces, "", "")
			Expect(err).NotTo(HaveOccurred())
			for i := range all {
				if strings.HasPrefix(all[i].GetName(), prefix) {
					count++
				}
			}
			return count
		}
		Expect(made()).To(Equal(limit + 1))

		By("keeping existing mailboxes when the limit is lowered")
		Expect(hub.Kill9()).To(Succeed())
		DeferCleanup(func(ctx SpecContext) {
			Expect(hub.Kill9()).To(Succeed())
			startHub(ctx)
		}, NodeTimeout(time.Minute))
		startHub(ctx, fmt.Sprintf("--inventory-max-mailboxes=%d", limit))
		for number := range limit + 1 {
			patch(ctx, greedy.Config, syncTargets, "", name(number), `{"spec": {"unschedulable": true}}`)
			Eventually(func() *metav1.Condition {
				return meta.FindStatusCondition(syncTargetOf(ctx, greedy, name(number)).Status.Conditions, edgev2alpha1.ConditionMailboxReady)
			}).WithContext(ctx).Should(HaveValue(And(HaveField("Reason", "Ready"), HaveField("ObservedGeneration", syncTargetOf(ctx, greedy, name(number)).Generation))))
		}

		By("creating no further mailboxes, and reporting that")
		for number := limit + 1; number < many; number++ {
			Expect(greedy.Register(ctx, name(number), kubeconfigOf("hosting"), nil)).To(Succeed())
			fatten(ctx, greedy, name(number))
		}
		for number := limit + 1; number < many; number++ {
			for _, condition := range []string{"MailboxReady", "Ready"} {
				Eventually(reasonOf).WithContext(ctx).WithArguments(greedy, name(number), condition).Should(Equal("TooManyMailboxes"))
			}
		}
		Expect(message(ctx, greedy.Config, syncTargets, name(limit+1), "MailboxReady")).To(ContainSubstring("--inventory-max-mailboxes"))
		refused := func() float64 {
			all, err := hub.Metrics(ctx)
			Expect(err).NotTo(HaveOccurred())
			return all["synchub_sync_targets_over_quota"]
		}
		Expect(refused()).To(BeEquivalentTo(many - limit - 1))

		By("not trusting their statuses")
		victim := syncTargetOf(ctx, modest, "before").Status.Mailbox
		patch(ctx, greedy.Config, syncTargets, "", name(limit+1), fmt.Sprintf(`{"status": {"mailbox": {"cluster": %q}, "conditions": [
			{"type": "MailboxReady", "status": "True", "reason": "Ready", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}}`, victim.Cluster), "status")
		Eventually(reasonOf).WithContext(ctx).WithArguments(greedy, name(limit+1), "MailboxReady").Should(Equal("TooManyMailboxes"))
		Expect(made()).To(Equal(limit + 1))

		By("caching neither annotations nor the data of Secrets")
		for _, resource := range []string{"synctargets", "secrets"} {
			Expect(samples(ctx, "synchub_inventory_cache_bytes", fmt.Sprintf("resource=%q", resource))).To(And(BeNumerically(">", 0), BeNumerically("<", 256<<10)))
		}
		By("refusing a kubeconfig that is too large")
		patch(ctx, greedy.Config, syncTargets, "", name(limit), fmt.Sprintf(`{"spec": {"kubeconfigSecretRef": {"name": "%s-large"}}}`, name(limit+1)))
		patch(ctx, greedy.Config, secrets, "default", name(limit+1)+"-large", fmt.Sprintf(`{"metadata": {"annotations": {%q: %q}}}`, edgev2alpha1.AnnotationAllowedSyncTargets, name(limit)))
		Eventually(reasonOf).WithContext(ctx).WithArguments(greedy, name(limit), "HeartbeatHealthy").Should(Equal("CredentialsRefused"))
		Expect(message(ctx, greedy.Config, syncTargets, name(limit), "HeartbeatHealthy")).To(ContainSubstring("its size"))

		By("serving the other inventory as before")
		patch(ctx, mailbox, configMaps, ns, "settings", `{"data": {"entry": "blue"}}`)
		Eventually(value).WithContext(ctx).WithArguments(target("florin"), configMaps, ns, "settings", "data", "entry").Should(Equal("blue"))
		after := register(ctx, modest, "after", "guilder")
		apply(ctx, after, documents(namespace(ns), everythingIn(ns), configMap(ns, "settings", "red")))
		eventuallyExists(ctx, target("guilder"), configMaps, ns, "settings")

		By("creating a mailbox when there are fewer")
		for number := range limit {
			remove(ctx, greedy.Config, syncTargets, "", name(number))
		}
		Eventually(refused).WithContext(ctx).WithTimeout(3 * time.Minute).Should(BeEquivalentTo(many - limit - 2))
		Expect(made()).To(BeNumerically("<=", limit))
	}, NodeTimeout(8*time.Minute))
})
