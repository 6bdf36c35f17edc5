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
	"k8s.io/client-go/rest"

	"github.com/synchub-dev/synchub/test/framework"
)

var _ = Describe("an unreachable target", thorough, Label("requests"), func() {
	It("is paused, syncs again when it is reachable, and does not affect another target", SpecPriority(1), func(ctx SpecContext) {
		const ns = "parked"
		away := newCluster(ctx, "away")
		inventory, healthy := newInventory(ctx, ns), sharedInventory()
		mailboxes := map[string]*rest.Config{"florin": register(ctx, healthy, "florin", "florin"), "away": register(ctx, inventory, "away", "away")}
		for name, mailbox := range mailboxes {
			apply(ctx, mailbox, documents(namespace(ns), configMap(ns, "settings", "before"), configMap(ns, "unwanted", "x"), everythingIn(ns)))
			eventuallyExists(ctx, target(name), configMaps, ns, "settings")
			eventuallyExists(ctx, target(name), configMaps, ns, "unwanted")
		}
		Expect(away.Kill9()).To(Succeed())
		Eventually(framework.Condition).WithContext(ctx).WithArguments(inventory.Config, syncTargets, "", "away", "Ready").Should(Equal("False"))
		readiness := func() string { return readyOf(ctx, mailboxes["away"], ns) }
		Eventually(readiness).WithContext(ctx).Should(And(HavePrefix("False NotSynced: "), ContainSubstring("(TargetUnreachable)")))
		for _, mailbox := range mailboxes {
			patch(ctx, mailbox, configMaps, ns, "settings", `{"data": {"entry": "after"}}`)
			remove(ctx, mailbox, configMaps, ns, "unwanted")
		}
		Eventually(value).WithContext(ctx).WithArguments(target("florin"), configMaps, ns, "settings", "data", "entry").Should(Equal("after"))
		eventuallyGone(ctx, target("florin"), configMaps, ns, "unwanted")
		Expect(framework.Condition(ctx, healthy.Config, syncTargets, "", "florin", "Ready")).To(Equal("True"))

		Expect(away.Start(ctx)).To(Succeed())
		Eventually(value).WithContext(ctx).WithArguments(target("away"), configMaps, ns, "settings", "data", "entry").Should(Equal("after"))
		eventuallyGone(ctx, target("away"), configMaps, ns, "unwanted")
		Eventually(framework.Condition).WithContext(ctx).WithArguments(inventory.Config, syncTargets, "", "away", "Ready").Should(Equal("True"))
		Eventually(readiness).WithContext(ctx).ShouldNot(HavePrefix("False NotSynced: "))
	}, NodeTimeout(5*time.Minute))
})
