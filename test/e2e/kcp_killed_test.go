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
	"k8s.io/client-go/dynamic"
)

// Serial: the hubs of the other processes use the same kcp.
var _ = Describe("mailboxes", Serial, thorough, Label("faults"), func() {
	It("delete and lose nothing when kcp is killed during a burst", func(ctx SpecContext) {
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
					"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": fmt.Sprintf("during-%d", i)},
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
		ready, at := time.Now(), len(identities(ctx, hosting, configMaps, ns, "during-"))
		Eventually(func() int { return len(identities(ctx, hosting, configMaps, ns, "during-")) }).WithContext(ctx).Should(Or(BeNumerically(">", at), Equal(more)))
		AddReportEntry("until a change arrives after kcp is ready again", time.Since(ready).Round(time.Second/10), ReportEntryVisibilityAlways)
		Eventually(writing).WithContext(ctx).Should(BeClosed())

		Eventually(func() map[string]string { return identities(ctx, hosting, configMaps, ns, "during-") }).WithContext(ctx).Should(HaveLen(more))
		Eventually(value).WithContext(ctx).WithArguments(mailbox, syncerConfigs, "", ns, "status", "synced").Should(Equal(fmt.Sprint(count + more)))
		By("following changes and deletions again")
		patch(ctx, mailbox, configMaps, ns, "during-1", `{"data": {"entry": "after"}}`)
		Eventually(value).WithContext(ctx).WithArguments(hosting, configMaps, ns, "during-1", "data", "entry").Should(Equal("after"))
		remove(ctx, mailbox, configMaps, ns, "during-0")
		eventuallyGone(ctx, hosting, configMaps, ns, "during-0")
		Expect(identities(ctx, hosting, configMaps, ns, "before-")).To(Equal(placed), "what was placed before must not be written again")
		Eventually(followed.endedAt).WithContext(ctx).WithArguments("configmaps/during-0").ShouldNot(BeZero())
		for name := range identities(ctx, hosting, configMaps, ns, "") {
			Expect(followed.endedAt("configmaps/"+name)).To(BeZero(), "%s may not have been deleted in between", name)
		}
	}, NodeTimeout(5*time.Minute))
})
