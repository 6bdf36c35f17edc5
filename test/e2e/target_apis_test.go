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
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/synchub-dev/synchub/test/framework"
)

var _ = Describe("an API that a target stops serving", thorough, Label("faults"), func() {
	It("is no proof that its objects were deleted, and is in sync soon after it is served again", SpecPriority(1), func(ctx SpecContext) {
		const ns = "switched"
		cluster := newCluster(ctx, ns)
		inventory := newInventory(ctx, ns)
		mailbox := register(ctx, inventory, ns, ns)
		apply(ctx, mailbox, documents(namespace(ns), deployment(ns, "stays"), deployment(ns, "goes"), everythingIn(ns)))
		for _, name := range []string{"stays", "goes"} {
			eventuallyExists(ctx, cluster.Config, deployments, ns, name)
		}
		ready := func() string { return readyOf(ctx, mailbox, ns) }

		By("switching the API off")
		Expect(cluster.RestartWith(ctx, "--runtime-config=apps/v1=false")).To(Succeed())
		Eventually(ready).WithContext(ctx).Should(HavePrefix("False NotServed: "))
		remove(ctx, mailbox, deployments, ns, "goes")
		Eventually(failures).WithContext(ctx).WithArguments(mailbox, ns).Should(ConsistOf("NotServed goes"))

		By("draining the target, which does not complete while the API is off")
		patch(ctx, inventory.Config, syncTargets, "", ns, `{"spec": {"drain": true}}`)
		Eventually(value).WithContext(ctx).WithArguments(inventory.Config, syncTargets, "", ns, "status", "cleanup", "left").Should(ContainSubstring("NotServed"))
		Eventually(framework.Condition).WithContext(ctx).WithArguments(inventory.Config, syncTargets, "", ns, "Drained").Should(Equal("False"))
		patch(ctx, inventory.Config, syncTargets, "", ns, `{"spec": {"drain": false}}`)

		By("switching it on again")
		Expect(cluster.RestartWith(ctx)).To(Succeed())
		eventuallyGone(ctx, cluster.Config, deployments, ns, "goes")
		Eventually(ready).WithContext(ctx).ShouldNot(ContainSubstring("NotServed"))
		Expect(framework.Exists(ctx, cluster.Config, deployments, ns, "stays")).To(BeTrue())
		Eventually(failures).WithContext(ctx).WithArguments(mailbox, ns).Should(BeEmpty())
	}, NodeTimeout(5*time.Minute))
})
