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
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/framework/installation"
)

// hubKubeconfig writes the hub's kubeconfig for a SyncTarget to a file of the user.
func hubKubeconfig(ctx context.Context, inventory *installation.Inventory, user *user, name string) string {
	GinkgoHelper()
	content, err := base64.StdEncoding.DecodeString(value(ctx, inventory.Config, secrets, "default", name+"-kubeconfig", "data", "kubeconfig"))
	Expect(err).NotTo(HaveOccurred())
	file := filepath.Join(user.home, "hub.kubeconfig")
	Expect(os.WriteFile(file, content, 0o600)).To(Succeed())
	return file
}

// Attacks of a user who may write everything in a mailbox, on a cluster where the hub may use only a few namespaces.
var _ = Describe("a registration for namespaces", thorough, Label("escapes"), func() {
	It("limits the hub to these namespaces, and follows their changes and their removal", SpecPriority(1), func(ctx SpecContext) {
		const ns, one, two, three = "bounded", "bounded-one", "bounded-two", "bounded-three"
		florin := target("florin")
		inventory := newInventory(ctx, ns)
		kubectl := userOf(ctx, inventory)
		admin := []string{"--target-kubeconfig", clusters["florin"].Kubeconfig}
		register := func(namespaces string, more ...string) []string {
			return append(append([]string{"synchub", "register", ns, "--namespaces", namespaces}, admin...), more...)
		}

		By("refusing invalid namespaces")
		for namespaces, why := range map[string]string{
			one + "," + two: `--namespaces: the target has no namespace "bounded-one"`,
			"kube-system":   "--namespaces: kube-system is protected",
			"Shop":          `--namespaces: "Shop" is not the name of a namespace`,
			"synchub":       "--namespaces: synchub is where",
		} {
			refused := kubectl.runs(ctx, register(namespaces)...)
			Expect(refused.err).To(HaveOccurred())
			Expect(refused.errs).To(ContainSubstring(why))
		}
		apply(ctx, florin, documents(namespace(one), namespace(two), namespace(three)))
		refused := kubectl.runs(ctx, register(one, "--resources", "configmaps,clusterroles.rbac.authorization.k8s.io")...)
		Expect(refused.errs).To(ContainSubstring("clusterroles.rbac.authorization.k8s.io: its objects are in no namespace"))
		Expect(framework.List(ctx, inventory.Config, syncTargets, "", "")).To(BeEmpty())
		Expect(madeFor(ctx, "florin", ns)).To(BeEmpty())

		By("showing and creating it")
		shown := kubectl.succeeds(ctx, register(one+","+two, "--dry-run=client", "-o", "yaml")...)
		Expect(shown.out).To(And(ContainSubstring("only:\n    - bounded-one\n    - bounded-two\n"), ContainSubstring("namespace: bounded-two")))
		kubectl.succeeds(ctx, register(one+","+two, "--dry-run=server")...)
		Expect(madeFor(ctx, "florin", ns)).To(BeEmpty())
		kubectl.succeeds(ctx, register(one+","+two)...)
		Expect(framework.Condition(ctx, inventory.Config, syncTargets, "", ns, "SyncerAuthorized")).To(Equal("True"))
		hub := hubKubeconfig(ctx, inventory, kubectl, ns)
		may := func(args ...string) string {
			return strings.TrimSpace(kubectl.runs(ctx, append([]string{"--kubeconfig", hub, "auth", "can-i"}, args...)...).out)
		}
		Expect(may("create", "deployments.apps", "--namespace", one)).To(Equal("yes"))
		for _, question := range []string{
			"get configmaps --namespace " + three, "create pods --namespace kube-system", "list configmaps --all-namespaces", "list secrets --namespace synchub",
			"list namespaces", "create namespaces", "patch namespaces/" + one, "list customresourcedefinitions.apiextensions.k8s.io", "create clusterroles.rbac.authorization.k8s.io",
			"create rolebindings.rbac.authorization.k8s.io --namespace " + three, "escalate roles.rbac.authorization.k8s.io --namespace " + one,
		} {
			Expect(may(strings.Fields(question)...)).To(Equal("no"), question)
		}

		By("syncing in both directions in each, and reporting other objects")
		mailbox := mailboxOf(ctx, inventory, ns)
		everywhere := strings.Join([]string{one, two, three}, ", ")
		for _, namespaced := range []string{one, two, three} {
			apply(ctx, florin, configMap(namespaced, "risen", namespaced))
			apply(ctx, mailbox, documents(namespace(namespaced), configMap(namespaced, "settings", "x")))
		}
		apply(ctx, mailbox, documents(deployment(one, "web"),
			syncerConfig(ns, fmt.Sprintf(`{namespaceScope: {namespaces: [%[1]s], resources: [{group: "", resource: configmaps, apiVersion: v1}, {group: apps, resource: deployments, apiVersion: v1}]},
				upsync: [{apiGroup: "", resources: [configmaps], namespaces: [%[1]s], names: [risen]}]}`, everywhere)),
			"{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: "+ns+"}}",
			syncerConfig(ns+"-cluster", `{clusterScope: [{group: rbac.authorization.k8s.io, resource: clusterroles, apiVersion: v1, objects: [`+ns+`]}]}`)))
		for _, used := range []string{one, two} {
			eventuallyExists(ctx, florin, configMaps, used, "settings")
			eventuallyExists(ctx, mailbox, configMaps, used, "risen")
		}
		Eventually(value).WithContext(ctx).WithArguments(mailbox, deployments, one, "web", "status", "availableReplicas").Should(Equal("2"))
		Eventually(failures).WithContext(ctx).WithArguments(mailbox, ns).Should(ContainElement("NamespaceNotAllowed settings"))
		Expect(framework.Exists(ctx, florin, configMaps, three, "settings")).To(BeFalse())
		Expect(framework.Exists(ctx, mailbox, configMaps, three, "risen")).To(BeFalse())
		Eventually(message).WithContext(ctx).WithArguments(mailbox, syncerConfigs, ns+"-cluster", "Ready").Should(ContainSubstring("clusterroles"))
		Eventually(message).WithContext(ctx).WithArguments(inventory.Config, syncTargets, ns, "SyncerAuthorized").Should(ContainSubstring("clusterroles.rbac.authorization.k8s.io"))
		Expect(framework.Condition(ctx, inventory.Config, syncTargets, "", ns, "Ready")).To(Equal("True"))

		By("changing and deleting objects on either side")
		patch(ctx, mailbox, configMaps, one, "settings", `{"data": {"entry": "later"}}`)
		patch(ctx, florin, configMaps, two, "risen", `{"data": {"entry": "later"}}`)
		eventuallyHas(ctx, florin, configMaps, one, "settings", "later", "data", "entry")
		eventuallyHas(ctx, mailbox, configMaps, two, "risen", "later", "data", "entry")
		apply(ctx, mailbox, configMap(two, "passing", "x"))
		eventuallyExists(ctx, florin, configMaps, two, "passing")
		remove(ctx, mailbox, configMaps, two, "passing")
		eventuallyGone(ctx, florin, configMaps, two, "passing")

		By("exchanging one namespace for another")
		before := [2]map[string]string{identities(ctx, florin, configMaps, one, "settings"), identities(ctx, florin, configMaps, two, "settings")}
		grows := kubectl.runs(ctx, register(one+","+three)...)
		Expect(grows.errs).To(MatchRegexp("would grow by: .*configmaps \\(create, delete, get, list, patch, watch\\).* in the namespace bounded-three"))
		Expect(grows.err).To(HaveOccurred())
		kubectl.succeeds(ctx, register(one+","+three, "--yes", "--wait=false")...)
		Expect(may("list", "configmaps", "--namespace", two)).To(Equal("no"))
		Expect(may("list", "configmaps", "--namespace", three)).To(Equal("yes"))
		eventuallyExists(ctx, florin, configMaps, three, "settings")
		eventuallyExists(ctx, mailbox, configMaps, three, "risen")
		Eventually(message).WithContext(ctx).WithArguments(inventory.Config, syncTargets, ns, "NamespacesLeft").Should(ContainSubstring("bounded-two"))
		Eventually(failures).WithContext(ctx).WithArguments(mailbox, ns).Should(ContainElement("NamespaceNotAllowed settings"))
		Expect(identities(ctx, florin, configMaps, one, "settings")).To(Equal(before[0]), "what stays is not written to")
		Expect(identities(ctx, florin, configMaps, two, "settings")).To(Equal(before[1]), "what was left is as it was")
		Expect(framework.Exists(ctx, mailbox, configMaps, two, "risen")).To(BeTrue(), "what came up stays")

		By("continuing in other namespaces while some namespaces and their rights are missing")
		bind := func(names string) {
			patch(ctx, inventory.Config, syncTargets, "", ns, fmt.Sprintf(`{"spec": {"deletionPolicy": "Delete", "namespaces": {"only": [%s]}}}`, names))
		}
		remove(ctx, florin, namespaces, "", three)
		eventuallyGone(ctx, florin, namespaces, "", three)
		bind(`"bounded-one", "bounded-three", "bounded-four"`)
		Eventually(message).WithContext(ctx).WithArguments(inventory.Config, syncTargets, ns, "SyncerAuthorized").Should(ContainSubstring("in the namespaces bounded-four, bounded-three"))
		patch(ctx, mailbox, configMaps, one, "settings", `{"data": {"entry": "last"}}`)
		eventuallyHas(ctx, florin, configMaps, one, "settings", "last", "data", "entry")
		bind(`"bounded-one", "bounded-three"`)

		By("unregistering, which leaves the copies that the hub may not delete")
		removed := kubectl.succeeds(ctx, append([]string{"synchub", "unregister", ns, "--yes"}, admin...)...)
		Expect(removed.errs).To(And(ContainSubstring("configmaps bounded-two/* stays: Forbidden"), ContainSubstring("clusterroles.rbac.authorization.k8s.io * stays: Forbidden")))
		Expect(framework.Exists(ctx, florin, configMaps, one, "settings")).To(BeFalse())
		Expect(framework.Exists(ctx, florin, configMaps, one, "risen")).To(BeTrue())
		Expect(framework.Exists(ctx, florin, deployments, one, "web")).To(BeFalse())
		Expect(identities(ctx, florin, configMaps, two, "settings")).To(Equal(before[1]))
		Expect(madeFor(ctx, "florin", ns)).To(BeEmpty())
	}, NodeTimeout(4*time.Minute))
})
