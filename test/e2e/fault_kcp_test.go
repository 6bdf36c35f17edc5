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
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/test/framework"
)

var _ = Describe("mailboxes with faults", thorough, Label("faults"), func() {
	It("do not affect other mailboxes, and lose no copy", SpecPriority(1), func(ctx SpecContext) {
		const ns, count, group = "unsettled", 5, "unsettled.example.com"
		widgets := custom(group, "v1", "widgets", "Widget")
		gvr := widgets.GroupVersionResource
		define(ctx, target("hosting"), widgets)
		define(ctx, target("florin"), widgets)
		publishAs(ctx, ns, "\n  resource: {group: "+group+", resource: widgets}\n")
		eventuallyPublished(ctx, ns)
		inventory := newInventory(ctx, ns)
		florin, mailbox := target("florin"), register(ctx, inventory, "florin", "florin")
		selected := selecting(ns, configMaps, gvr)
		apply(ctx, mailbox, documents(namespace(ns), widgets.object(ns, "one", "spec: {size: 1}"), selected))
		fill(ctx, mailbox, ns, "item-", count)
		Eventually(func() map[string]string { return identities(ctx, florin, configMaps, ns, "item-") }).WithContext(ctx).Should(HaveLen(count))
		eventuallyExists(ctx, florin, gvr, ns, "one")
		others := newHealthyTarget(ctx, ns+"-others")
		followed := follow(ctx, florin, ns, configMaps, gvr)
		entry := func(name string) func() string { return readerOf(ctx, florin)(configMaps, ns, name, "data", "number") }

		By("rejecting a claim")
		answer(ctx, mailbox, "Rejected")
		Eventually(claimHasEffect).WithContext(ctx).WithArguments(mailbox, "configmaps", "Rejected").Should(BeTrue())
		others.measure(ctx, "a rejected claim")
		answer(ctx, mailbox, "Accepted")
		// kcp refuses a write whose claims change while it is admitted.
		Eventually(claimHasEffect).WithContext(ctx).WithArguments(mailbox, "configmaps", "Accepted").Should(BeTrue())
		patch(ctx, mailbox, configMaps, ns, "item-0", `{"data": {"number": "claimed"}}`)
		Eventually(entry("item-0")).WithContext(ctx).Should(Equal("claimed"))

		By("emptying the list of endpoints, as kcp does for a partition that is not there")
		provider := synchub.InWorkspace(synchub.Workspace)
		endpoints := readerOf(ctx, provider)(endpointSlices, "", synchubv1alpha1.MailboxExport, "status", "endpoints")
		patch(ctx, provider, endpointSlices, "", synchubv1alpha1.MailboxExport, `{"spec": {"partition": "nowhere"}}`)
		DeferCleanup(patch, provider, endpointSlices, "", synchubv1alpha1.MailboxExport, `{"spec": {"partition": null}}`)
		Eventually(endpoints).WithContext(ctx).Should(Or(BeEmpty(), Equal("[]")))
		patch(ctx, mailbox, configMaps, ns, "item-1", `{"data": {"number": "unseen"}}`)
		remove(ctx, mailbox, configMaps, ns, "item-2")
		patch(ctx, provider, endpointSlices, "", synchubv1alpha1.MailboxExport, `{"spec": {"partition": null}}`)
		Eventually(endpoints).WithContext(ctx).ShouldNot(Or(BeEmpty(), Equal("[]")))
		restored := time.Now()
		Eventually(entry("item-1")).WithContext(ctx).Should(Equal("unseen"))
		AddReportEntry("until a change arrives after the list of endpoints is filled again", time.Since(restored).Round(time.Millisecond), ReportEntryVisibilityAlways)
		Eventually(followed.endedAt).WithContext(ctx).WithArguments("configmaps/item-2").ShouldNot(BeZero())
		others.measure(ctx, "no fault, after the list of endpoints was filled again")

		By("removing the binding, so that kcp deletes the stored objects, and binding again")
		former := bindingOf(ctx, mailbox)
		remove(ctx, mailbox, apiBindings, "", former.GetName())
		eventuallyGone(ctx, mailbox, apiBindings, "", former.GetName())
		others.measure(ctx, "a removed binding")
		bindAgain(ctx, mailbox, former)
		Eventually(reasonOf).WithContext(ctx).WithArguments(inventory, "florin", "SyncerReady").Should(Equal("MailboxRebound"))
		apply(ctx, mailbox, selecting(ns, configMaps))
		patch(ctx, mailbox, configMaps, ns, "item-0", `{"data": {"number": "bound"}}`)
		Eventually(entry("item-0")).WithContext(ctx).Should(Equal("bound"))
		Consistently(framework.Exists).WithContext(ctx).WithArguments(florin, gvr, ns, "one").WithTimeout(absenceVerified).WithPolling(time.Second).Should(BeTrue())

		By("unpublishing an API")
		remove(ctx, target("hosting"), publishedResources, "", ns)
		others.measure(ctx, "an unpublished API")
		eventuallyGone(ctx, target("hosting"), publishedResources, "", ns)

		By("deleting the mailbox")
		cluster := syncTargetOf(ctx, inventory, "florin").Status.Mailbox.Cluster
		remove(ctx, provider, workspaces, "", workspaceOf(ctx, inventory, "florin"))
		others.measure(ctx, "a mailbox that is deleted")
		Eventually(value).WithContext(ctx).WithArguments(inventory.Config, syncTargets, "", "florin", "status", "mailbox", "cluster").ShouldNot(Or(BeEmpty(), Equal(cluster)))
		mailbox = mailboxOf(ctx, inventory, "florin")
		apply(ctx, mailbox, documents(namespace(ns), selecting(ns, configMaps), configMap(ns, "item-0", "x")))
		patch(ctx, mailbox, configMaps, ns, "item-0", `{"data": {"number": "remade"}}`)
		Eventually(entry("item-0")).WithContext(ctx).Should(Equal("remade"))

		By("having deleted only the copies of objects deleted in the mailbox")
		quiet(ctx)
		for _, name := range []string{"configmaps/item-0", "configmaps/item-1", "configmaps/item-3", "configmaps/item-4", "widgets/one"} {
			Expect(followed.endedAt(name)).To(BeZero(), name)
		}
	}, NodeTimeout(5*time.Minute))
})

// bindAgain creates a binding equal to a former one.
func bindAgain(ctx context.Context, mailbox *rest.Config, former unstructured.Unstructured) {
	GinkgoHelper()
	client, err := dynamic.NewForConfig(mailbox)
	Expect(err).NotTo(HaveOccurred())
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": former.GetAPIVersion(), "kind": former.GetKind(), "metadata": map[string]any{"name": "again"}, "spec": former.Object["spec"],
	}}
	_, err = client.Resource(apiBindings).Create(ctx, object, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
}
