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
	"regexp"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/synchub-dev/synchub/test/framework"
)

// grantsUse matches the command in a condition that lets a SyncTarget use a Secret.
var grantsUse = regexp.MustCompile("`kubectl (annotate secret [^`]+)`")

// Attacks of a user of an inventory workspace who may create SyncTargets and write their status, but not read Secrets.
var _ = Describe("a registration", thorough, Label("escapes"), func() {
	It("does not let a SyncTarget use a Secret that does not name it", func(ctx SpecContext) {
		const ns = "stolen-secret"
		inventory := newInventory(ctx, ns)
		owned := register(ctx, inventory, "owner", "florin")
		apply(ctx, owned, documents(namespace(ns), configMap(ns, "settings", "x"), everythingIn(ns)))
		eventuallyExists(ctx, target("florin"), configMaps, ns, "settings")
		refused := func() string { return message(ctx, inventory.Config, syncTargets, "thief", "Ready") }

		By("naming another SyncTarget's Secret")
		apply(ctx, inventory.Config, `
apiVersion: edge.kubestellar.io/v2alpha1
kind: SyncTarget
metadata: {name: thief}
spec: {allowSharedCluster: true, kubeconfigSecretRef: {name: owner-kubeconfig}}
`)
		Eventually(refused).WithContext(ctx).Should(MatchRegexp("does not allow this SyncTarget to use it.*kubectl annotate secret owner-kubeconfig"))
		Eventually(framework.Condition).WithContext(ctx).WithArguments(inventory.Config, syncTargets, "", "thief", "MailboxReady").Should(Equal("True"))
		mailbox := mailboxConfig(ctx, inventory, "thief")
		apply(ctx, mailbox, documents(namespace(ns), configMap(ns, "stolen", "x"), everythingIn(ns)))
		staysFor(ctx, func() string { return value(ctx, inventory.Config, syncTargets, "", "thief", "status", "clusterID") }, "")
		Expect(framework.Exists(ctx, target("florin"), configMaps, ns, "stolen")).To(BeFalse())
		Expect(framework.Condition(ctx, inventory.Config, syncTargets, "", "thief", "HeartbeatHealthy")).To(Equal("Unknown"), "nobody has tried to connect")
		Expect(framework.Condition(ctx, inventory.Config, syncTargets, "", "owner", "Ready")).To(Equal("True"))

		By("being allowed by somebody who may change the Secret, with the command in the condition")
		command := grantsUse.FindStringSubmatch(refused())
		Expect(command).To(HaveLen(2))
		allowed := value(ctx, inventory.Config, secrets, "default", "owner-kubeconfig", "metadata", "annotations", "synchub.dev/allowed-sync-targets")
		kubectl := userOf(ctx, inventory)
		kubectl.succeeds(ctx, strings.Fields(strings.ReplaceAll(command[1], "EXISTING", allowed))...)
		eventuallyExists(ctx, target("florin"), configMaps, ns, "stolen")

		By("losing it again")
		kubectl.succeeds(ctx, "annotate", "secret", "owner-kubeconfig", "--namespace", "default", "--overwrite", "synchub.dev/allowed-sync-targets=owner")
		Eventually(refused).WithContext(ctx).Should(ContainSubstring("does not allow this SyncTarget to use it"))
		patch(ctx, mailbox, configMaps, ns, "stolen", `{"data": {"entry": "later"}}`)
		patch(ctx, owned, configMaps, ns, "settings", `{"data": {"entry": "later"}}`)
		Eventually(value).WithContext(ctx).WithArguments(target("florin"), configMaps, ns, "settings", "data", "entry").Should(Equal("later"), "the owner is not disturbed")
		staysFor(ctx, func() string { return value(ctx, target("florin"), configMaps, ns, "stolen", "data", "entry") }, "x")
	}, NodeTimeout(2*time.Minute))
})

var _ = Describe("a tenant", thorough, Label("escapes"), func() {
	It("cannot change Pod Security where the policy in docs/security.md is applied", func(ctx SpecContext) {
		const ns = "pod-security"
		guilder := target("guilder")
		apply(ctx, guilder, blockWith(page("security.md"), yamlBlock, "kind: ValidatingAdmissionPolicy"))
		DeferCleanup(func(ctx SpecContext) {
			for _, kind := range []string{"validatingadmissionpolicybindings", "validatingadmissionpolicies"} {
				remove(ctx, guilder, schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: kind}, "", "synchub-pod-security")
			}
		})
		inventory := newInventory(ctx, ns)
		kubectl := userOf(ctx, inventory)
		kubectl.succeeds(ctx, "synchub", "register", ns, "--target-kubeconfig", clusters["guilder"].Kubeconfig, "--resources", "namespaces,configmaps", "--yes")
		mailbox := mailboxOf(ctx, inventory, ns)
		const privileged = `{"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "privileged"}}}`
		apply(ctx, mailbox, documents(namespace(ns), configMap(ns, "settings", "x"), everythingIn(ns), selectingNamespace(ns)))
		eventuallyExists(ctx, guilder, configMaps, ns, "settings")
		patch(ctx, mailbox, namespaces, "", ns, privileged)
		Eventually(value).WithContext(ctx).WithArguments(mailbox, syncerConfigs, "", ns+"-itself", "status", "failures").
			Should(ContainSubstring("labels for Pod Security are set by the cluster's administrator"))
		Expect(value(ctx, guilder, namespaces, "", ns, "metadata", "labels")).NotTo(ContainSubstring("privileged"))
	}, NodeTimeout(2*time.Minute))
})

var _ = Describe("a cluster that had another SyncTarget", thorough, func() {
	It("is adopted with all its objects by register --adopt", func(ctx SpecContext) {
		const ns, count = "readopted", 50
		inventory := newInventory(ctx, ns)
		kubectl := userOf(ctx, inventory)
		admin := []string{"--target-kubeconfig", clusters["florin"].Kubeconfig}
		register := append([]string{"synchub", "register", ns}, admin...)
		place := func() {
			mailbox := mailboxOf(ctx, inventory, ns)
			apply(ctx, mailbox, namespace(ns))
			fill(ctx, mailbox, ns, "settings-", count)
			apply(ctx, mailbox, everythingIn(ns))
		}
		kubectl.succeeds(ctx, register...)
		place()
		Eventually(func() int { return len(identities(ctx, target("florin"), configMaps, ns, "settings-")) }).WithContext(ctx).Should(Equal(count))
		before := identities(ctx, target("florin"), configMaps, ns, "settings-")

		began := time.Now()
		removed := kubectl.onTerminal(ctx, append([]string{"synchub", "unregister", ns, "--yes"}, admin...)...)
		AddReportEntry("unregister", fmt.Sprintf("%s\n%s", time.Since(began).Round(time.Second/10), removed.errs), ReportEntryVisibilityAlways)
		Expect(removed.errs).To(ContainSubstring("Waiting for"), "it names the objects that it waits for")

		kubectl.succeeds(ctx, append(register, "--adopt")...)
		Expect(value(ctx, inventory.Config, syncTargets, "", ns, "spec", "adoption")).To(Equal("IfIdentical"))
		place()
		for name := range before {
			eventuallyMarked(ctx, configMaps, ns, name, `"adopted":true`)
		}
		Eventually(readyOf).WithContext(ctx).WithArguments(mailboxOf(ctx, inventory, ns), ns).Should(HavePrefix("True"))
		kubectl.succeeds(ctx, append(register, "--adopt=Never")...)
		Expect(value(ctx, inventory.Config, syncTargets, "", ns, "spec", "adoption")).To(BeEmpty())
	}, NodeTimeout(4*time.Minute))
})
