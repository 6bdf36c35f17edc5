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

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/synchub-dev/synchub/test/framework"
)

var _ = Describe("credentials of a target", thorough, Label("requests"), func() {
	It("can change during a burst without lost or repeated writes", func(ctx SpecContext) {
		const ns, count = "rotated", 200
		inventory := newInventory(ctx, ns)
		mailbox := register(ctx, inventory, "florin", "florin")
		apply(ctx, mailbox, documents(namespace(ns), configMap(ns, "first", "1"), everythingIn(ns)))
		eventuallyExists(ctx, target("florin"), configMaps, ns, "first")
		quiet(ctx)
		created, changed := writesOfConfigMaps(ctx)

		for part := range 4 {
			fill(ctx, mailbox, ns, fmt.Sprintf("burst-%d-", part), count/4)
			kubeconfig := fmt.Appendf(kubeconfigOf("florin"), "\n# changed %d\n", part)
			Expect(inventory.Register(ctx, "florin", kubeconfig, nil)).To(Succeed())
		}
		placed := identities(ctx, target("florin"), configMaps, ns, "burst-")
		Eventually(func() int { return len(identities(ctx, target("florin"), configMaps, ns, "burst-")) }).WithContext(ctx).Should(Equal(count))
		quiet(ctx)
		Expect(framework.Condition(ctx, inventory.Config, syncTargets, "", "florin", "Ready")).To(Equal("True"))
		after := identities(ctx, target("florin"), configMaps, ns, "burst-")
		for name, identity := range placed {
			Expect(after).To(HaveKeyWithValue(name, identity))
		}
		createdAfter, changedAfter := writesOfConfigMaps(ctx)
		Expect(createdAfter-created).To(BeNumerically("<=", count), "no object is created twice")
		Expect(changedAfter).To(Equal(changed), "none is written again")

		By("refusing a kubeconfig that would run a program, and disconnecting; and naming a field that has no effect")
		exec := strings.Replace(string(kubeconfigOf("florin")), "token:", "exec: {apiVersion: client.authentication.k8s.io/v1, command: /bin/false, interactiveMode: Never}\n    token:", 1)
		Expect(inventory.Register(ctx, "florin", []byte(exec), nil)).To(Succeed())
		Eventually(value).WithContext(ctx).WithArguments(inventory.Config, syncTargets, "", "florin", "status", "conditions").Should(ContainSubstring("users.user.exec"))
		patch(ctx, inventory.Config, syncTargets, "", "florin", `{"spec": {"evictAfter": "2030-01-01T00:00:00Z"}}`)
		Eventually(message).WithContext(ctx).WithArguments(inventory.Config, syncTargets, "florin", "NotImplemented").Should(ContainSubstring("spec.evictAfter"))
		apply(ctx, mailbox, configMap(ns, "later", "x"))
		Expect(inventory.Register(ctx, "florin", kubeconfigOf("florin"), nil)).To(Succeed())
		eventuallyExists(ctx, target("florin"), configMaps, ns, "later")
	}, NodeTimeout(4*time.Minute))
})

// writesOfConfigMaps returns how many ConfigMaps the hub has created on targets, and how many updates it has made.
func writesOfConfigMaps(ctx context.Context) (created, changed float64) {
	GinkgoHelper()
	samples, err := hub.Metrics(ctx)
	Expect(err).NotTo(HaveOccurred())
	for sample, count := range samples {
		if !strings.HasPrefix(sample, "synchub_requests_total{") || !strings.Contains(sample, `resource="configmaps"`) ||
			!strings.Contains(sample, `destination="target"`) || !strings.Contains(sample, `verb="apply"`) {
			continue
		}
		switch {
		case strings.Contains(sample, `code="201"`):
			created += count
		case strings.Contains(sample, `code="200"`):
			changed += count
		}
	}
	return created, changed
}
