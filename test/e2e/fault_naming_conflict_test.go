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
	"strconv"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/explain"
	"github.com/synchub-dev/synchub/controllers/syncmanager/namelock"
	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/framework/installation"
)

var _ = Describe("a definition that reaches a mailbox before its API is published", thorough, Label("faults"), func() {
	It("is reported on all affected objects, and once it is deleted the API is bound", func(ctx SpecContext) {
		const ns, group = "name-taken", "taken.example.com"
		gizmos, laters := custom(group, "v1", "gizmos", "Gizmo"), custom(group, "v1", "laters", "Later")
		inventory, mailbox := withTakenName(ctx, ns, gizmos, gizmos, laters)
		apply(ctx, mailbox, documents(namespace(ns), gizmos.object(ns, "early", "spec: {}"), selecting(ns, gizmos.GroupVersionResource, laters.GroupVersionResource)))
		publishOwn(ctx, ns, gizmos)
		toDo := And(ContainSubstring(gizmos.GroupResource().String()), ContainSubstring("Delete the CustomResourceDefinition"))
		Eventually(message).WithContext(ctx).WithArguments(inventory.Config, syncTargets, "florin", "APIsMissing").Should(toDo)
		Eventually(message).WithContext(ctx).WithArguments(mailbox, syncerConfigs, ns, "APIsMissing").Should(toDo)
		Eventually(message).WithContext(ctx).WithArguments(mailbox, syncerConfigs, ns, "Ready").Should(ContainSubstring("Not served by the mailbox"))
		eventuallyCounted(ctx, ns, ContainSubstring("florin"), 1)
		Eventually(explained).WithContext(ctx).WithArguments(inventory, "florin", gizmos.GroupResource().String(), ns+"/early").
			Should(And(comesTo(explain.Absent, explain.Stopped, explain.StepPublished), HaveField("Text", toDo)))

		By("placing objects of the API on all other clusters, and naming the one that lacks it")
		define(ctx, target("guilder"), gizmos)
		Expect(inventory.Register(ctx, "guilder", kubeconfigOf("guilder"), map[string]string{"env": "prod"})).To(Succeed())
		patch(ctx, inventory.Config, syncTargets, "", "florin", `{"metadata": {"labels": {"env": "prod"}}}`)
		other := mailboxOf(ctx, inventory, "guilder")
		workload := newWorkload(ctx, ns+"-workload")
		apply(ctx, inventory.Config, location("prod", "prod", workload.Path))
		eventuallyPlaced(ctx, workload, documents(namespace(ns), gizmos.object(ns, "placed", "spec: {}"), placementOn("shop", ns)))
		eventuallyExists(ctx, other, gizmos.GroupVersionResource, ns, "placed")
		eventuallyExists(ctx, target("guilder"), gizmos.GroupVersionResource, ns, "placed")
		lacking := func() string { return value(ctx, workload.Config, edgePlacements, "", "shop", "status", "failures") }
		Eventually(lacking).WithContext(ctx).Should(And(ContainSubstring("NotServed"), ContainSubstring("placed"), ContainSubstring("florin"), Not(ContainSubstring("guilder"))))

		By("binding APIs that are published later")
		publishOwn(ctx, ns+"-later", laters)
		Eventually(framework.Apply).WithContext(ctx).WithArguments(mailbox, laters.object(ns, "late", "spec: {}")).Should(Succeed())
		eventuallyExists(ctx, target("florin"), laters.GroupVersionResource, ns, "late")

		By("freeing the name, which kcp keeps for a definition that is gone")
		Expect(framework.Exists(ctx, mailbox, gizmos.GroupVersionResource, ns, "early")).To(BeTrue(), "the hub removes nothing that a tenant made")
		remove(ctx, mailbox, definitions, "", gizmos.GroupResource().String())
		Eventually(message).WithContext(ctx).WithArguments(inventory.Config, syncTargets, "florin", "APIsMissing").Should(BeEmpty())
		// An object that is applied while kcp still serves the definition goes with it.
		Eventually(func(g Gomega) {
			g.Expect(framework.Apply(ctx, mailbox, gizmos.object(ns, "early", "spec: {}"))).To(Succeed())
			g.Expect(framework.Exists(ctx, target("florin"), gizmos.GroupVersionResource, ns, "early")).To(BeTrue())
		}).WithContext(ctx).Should(Succeed())
		Eventually(framework.Condition).WithContext(ctx).WithArguments(mailbox, syncerConfigs, "", ns, "Ready").Should(Equal("True"))
		eventuallyCounted(ctx, ns, BeEmpty(), 0)
		Eventually(lacking).WithContext(ctx).Should(Equal("[]"))
		eventuallyExists(ctx, target("florin"), gizmos.GroupVersionResource, ns, "placed")
	}, NodeTimeout(6*time.Minute))

	It("does not block other APIs, if it only has the kind's name", func(ctx SpecContext) {
		const ns, group = "kind-taken", "kind-taken.example.com"
		gizmos, laters, squatters := custom(group, "v1", "gizmos", "Gizmo"), custom(group, "v1", "laters", "Later"), custom(group, "v1", "squatters", "Gizmo")
		inventory, mailbox := withTakenName(ctx, ns, squatters, gizmos, laters)
		apply(ctx, mailbox, documents(namespace(ns), selecting(ns, laters.GroupVersionResource)))
		for name, api := range map[string]api{ns: gizmos, ns + "-later": laters} {
			publishAs(ctx, name, fmt.Sprintf("\n  resource: {group: %s, resource: %s}\n", api.Group, api.Resource))
		}
		// kcp stops at the conflict: what comes after it in the export arrives once the hub has put the one with the conflict last.
		Eventually(framework.Apply).WithContext(ctx).WithArguments(mailbox, laters.object(ns, "late", "spec: {}")).Should(Succeed())
		eventuallyExists(ctx, target("florin"), laters.GroupVersionResource, ns, "late")
		Eventually(message).WithContext(ctx).WithArguments(inventory.Config, syncTargets, "florin", "APIsMissing").Should(And(
			ContainSubstring(gizmos.GroupResource().String()), Not(ContainSubstring(laters.GroupResource().String())),
			ContainSubstring("kcp reports"), ContainSubstring(squatters.GroupResource().String())))
		remove(ctx, mailbox, definitions, "", squatters.GroupResource().String())
		Eventually(message).WithContext(ctx).WithArguments(inventory.Config, syncTargets, "florin", "APIsMissing").Should(BeEmpty())
	}, NodeTimeout(4*time.Minute))

	It("does not block a removal", func(ctx SpecContext) {
		const ns, group = "taken-removed", "taken-removed.example.com"
		gizmos := custom(group, "v1", "gizmos", "Gizmo")
		inventory, _ := withTakenName(ctx, ns, gizmos, gizmos)
		publishOwn(ctx, ns, gizmos)
		Eventually(message).WithContext(ctx).WithArguments(inventory.Config, syncTargets, "florin", "APIsMissing").Should(ContainSubstring(gizmos.GroupResource().String()))
		workspace := workspaceOf(ctx, inventory, "florin")
		remove(ctx, inventory.Config, syncTargets, "", "florin")
		eventuallyGone(ctx, inventory.Config, syncTargets, "", "florin")
		eventuallyGone(ctx, synchub.InWorkspace(synchub.Workspace), workspaces, "", workspace)
	}, NodeTimeout(3*time.Minute))
})

// withTakenName registers florin with APIs that the hosting cluster has too, and creates a CRD in the mailbox that takes
// their names.
func withTakenName(ctx context.Context, name string, taken api, apis ...api) (*installation.Inventory, *rest.Config) {
	GinkgoHelper()
	define(ctx, target("hosting"), apis...)
	define(ctx, target("florin"), apis...)
	inventory := newInventory(ctx, name)
	mailbox := register(ctx, inventory, "florin", "florin")
	define(ctx, mailbox, taken)
	// kcp records the owner of a name a little later.
	Eventually(value).WithContext(ctx).WithArguments(mailbox, logicalClusters, "", "cluster", "metadata", "annotations", namelock.Annotation).
		Should(ContainSubstring(`%q:{"c":true}`, taken.GroupResource().String()))
	return inventory, mailbox
}

var logicalClusters = schema.GroupVersionResource{Group: "core.kcp.io", Version: "v1alpha1", Resource: "logicalclusters"}

// publishOwn publishes an API with the schema of the hosting cluster.
func publishOwn(ctx context.Context, name string, api api) {
	GinkgoHelper()
	publishAs(ctx, name, fmt.Sprintf("\n  resource: {group: %s, resource: %s}\n", api.Group, api.Resource))
	eventuallyPublished(ctx, name)
}

// eventuallyCounted waits until a PublishedResource reports the mailboxes that lack it. All other mailboxes have it, also the mailboxes of other
// specs. The hub counts once a minute, and at each change of a PublishedResource.
func eventuallyCounted(ctx context.Context, name string, text OmegaMatcher, missing int) {
	GinkgoHelper()
	mailboxes := func(name string) int {
		count, _ := strconv.Atoi(value(ctx, target("hosting"), publishedResources, "", name, "status", "mailboxes"))
		return count
	}
	Eventually(func(g Gomega) {
		patch(ctx, target("hosting"), publishedResources, "", name, fmt.Sprintf(`{"metadata": {"annotations": {"e2e": %q}}}`, time.Now().String()))
		g.Expect(message(ctx, target("hosting"), publishedResources, name, "APIsMissing")).To(text)
		g.Expect(mailboxes(name)).To(Equal(mailboxes("configmaps") - missing))
	}).WithContext(ctx).WithPolling(time.Second).Should(Succeed())
}
