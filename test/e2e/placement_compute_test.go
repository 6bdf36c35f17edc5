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
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/synchub-dev/synchub/test/framework"
)

var _ = Describe("a workspace that binds compute", func() {
	It("runs a Deployment on a registered cluster, with its status for kubectl, and its Pods in the mailbox", func(ctx SpecContext) {
		const ns, path = "placement-compute", "root:placement-compute-shop"
		inventory := newInventory(ctx, ns)
		admin := userOf(ctx, inventory)

		By("the administrator of the inventory registers a cluster, and lets the workspace use it")
		admin.succeeds(ctx, "synchub", "register", ns, "--target-kubeconfig", clusters["florin"].Kubeconfig)
		eventuallyExists(ctx, inventory.Config, locations, "", "default")
		admin.succeeds(ctx, "synchub", "allow", "default", "--workspace", path, "--yes")
		admin.succeeds(ctx, "patch", "location", "default", "--type", "merge", "--patch", `{"spec": {"availableTo": {"upsync": true}}}`)

		By("a user binds compute in an ordinary workspace")
		_, err := framework.CreateWorkspace(ctx, suite.KCP.Config, "root", strings.TrimPrefix(path, "root:"), "universal")
		Expect(err).NotTo(HaveOccurred())
		bind := func(flags ...string) string {
			return runPlugin(ctx, path, append([]string{"bind", "compute", inventory.Path, "--provider-workspace", synchub.Workspace}, flags...)...)
		}
		Expect(bind()).To(ContainSubstring("edgeplacement.edge.kubestellar.io/root." + ns + " created"))
		kubectl := kubectlIn(ctx, path)

		By("kubectl creates a Deployment, and follows its rollout")
		Expect(kubectl("create", "namespace", ns)).To(HaveSuffix("created\n"))
		Expect(kubectl("create", "deployment", "kiosk", "--image", "example.org/kiosk:1", "--replicas", "2", "--namespace", ns)).To(HaveSuffix("created\n"))
		rolledOut := func() string {
			return kubectl("rollout", "status", "deployment/kiosk", "--namespace", ns, "--timeout", "2m")
		}
		Expect(rolledOut()).To(ContainSubstring("successfully rolled out"))
		Expect(value(ctx, target("florin"), deployments, ns, "kiosk", "status", "availableReplicas")).To(Equal("2"))
		Expect(kubectl("set", "image", "deployment/kiosk", "kiosk=example.org/kiosk:2", "--namespace", ns)).To(HaveSuffix("image updated\n"))
		Expect(rolledOut()).To(ContainSubstring("successfully rolled out"))
		Expect(value(ctx, target("florin"), deployments, ns, "kiosk", "spec", "template")).To(ContainSubstring("example.org/kiosk:2"))

		By("kubectl's patch is refused where kcp would lose the image")
		Expect(kubectl("set", "env", "deployment/kiosk", "COLOR=red", "--namespace", ns)).To(ContainSubstring("kcp would lose fields or items of containers"))
		Expect(kubectl("get", "deployment", "kiosk", "--namespace", ns, "--output", "jsonpath={.spec.template.spec.containers[0].image}")).To(Equal("example.org/kiosk:2"))

		By("the Pods come up into the mailbox, and not into the workspace")
		Expect(kubectl("patch", "edgeplacement", "root."+ns, "--type", "merge", "--patch",
			`{"spec": {"upsync": [{"apiGroup": "", "resources": ["pods"], "namespaces": ["`+ns+`"], "names": ["*"]}]}}`)).To(HaveSuffix("patched\n"))
		pods := func(columns ...string) func() string {
			return func() string {
				return runPlugin(ctx, inventory.Path, append([]string{"get", "pods", "-A", "--all-mailboxes", "--provider-workspace", synchub.Workspace}, columns...)...)
			}
		}
		Eventually(pods()).WithContext(ctx).Should(MatchRegexp(`(?m)^%[1]s +%[1]s +kiosk-\S+ .*\n%[1]s +%[1]s +kiosk-\S+ `, ns), "the cluster, the namespace and the name of each")
		Eventually(pods("-o", "custom-columns=IMAGE:.spec.containers[0].image,PHASE:.status.phase")).WithContext(ctx).
			Should(MatchRegexp(`(?m)^example\.org/kiosk:2 +Running\nexample\.org/kiosk:2 +Running$`))
		Expect(kubectl("get", "pods", "--namespace", ns)).To(ContainSubstring("No resources found"))

		By("binding again keeps what the user has set, and can wait until the clusters have the objects")
		Expect(kubectl("set", "image", "deployment/kiosk", "kiosk=example.org/kiosk:3", "--namespace", ns)).To(HaveSuffix("image updated\n"))
		Expect(bind("--wait", "--timeout=2m")).To(And(ContainSubstring("edgeplacement.edge.kubestellar.io/root."+ns+" unchanged"), ContainSubstring("is rolled out")))
		Expect(value(ctx, target("florin"), deployments, ns, "kiosk", "spec", "template")).To(ContainSubstring("example.org/kiosk:3"))
		Expect(value(ctx, synchub.InWorkspace(path), edgePlacements, "", "root."+ns, "spec", "upsync")).To(ContainSubstring("pods"))

		By("unbinding compute withdraws the Deployment, and with it the Pods")
		runPlugin(ctx, path, "unbind", "compute", inventory.Path, "--provider-workspace", synchub.Workspace, "--yes")
		eventuallyGone(ctx, target("florin"), deployments, ns, "kiosk")
		Expect(kubectl("get", "deployment", "kiosk", "--namespace", ns, "-o", "name")).To(Equal("deployment.apps/kiosk\n"))
	}, NodeTimeout(5*time.Minute))
})
