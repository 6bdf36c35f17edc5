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
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/framework/installation"
)

// The policy engine sentry checks objects by Policies, and writes a PolicyReport for each of them.
var (
	policies      = custom("sentry.example.com", "v1", "policies", "Policy")
	policyReports = custom("sentry.example.com", "v1", "policyreports", "PolicyReport")
)

// sentry returns the policy engine and a policy, as its chart would install them into a namespace, without the definitions.
func sentry(namespaceName string) string {
	return documents(namespace(namespaceName), configMap(namespaceName, "sentry-settings", "strict"), fmt.Sprintf(`
apiVersion: v1
kind: ServiceAccount
metadata: {name: sentry, namespace: %[1]s}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: sentry, namespace: %[1]s}
spec:
  replicas: 1
  selector: {matchLabels: {app: sentry}}
  template:
    metadata: {labels: {app: sentry}}
    spec:
      serviceAccountName: sentry
      containers: [{name: sentry, image: example.org/sentry:1}]
`, namespaceName), policies.object(namespaceName, "require-owner", "spec: {require: {labels: [owner]}}"))
}

const sentryNamespace = "placement-sentry"

// otherInventory matches the suffix that distinguishes clusters with the same name in several inventories.
var otherInventory = regexp.MustCompile(`@\S+`)

// policyReport returns the manifest of a report that the engine writes on a cluster.
func policyReport(passed, failed int) string {
	return policyReports.object(sentryNamespace, "require-owner", fmt.Sprintf("summary: {passed: %d, failed: %d}", passed, failed))
}

var _ = Describe("placement of a policy engine", thorough, Label("placement"), func() {
	It("runs on all clusters with a label, and one command reads all reports", func(ctx SpecContext) {
		const ns = sentryNamespace
		DeferCleanup(func(ctx SpecContext) {
			for _, one := range []api{policies, policyReports} {
				remove(ctx, target("hosting"), publishedResources, "", one.GroupResource().String())
				for _, name := range []string{"florin", "guilder", "hosting"} {
					remove(ctx, target(name), definitions, "", one.GroupResource().String())
				}
			}
		})
		inventory, workload := newInventory(ctx, ns), newWorkload(ctx, ns+"-workload")
		for name, env := range map[string]string{"florin": "prod", "guilder": "prod", "hosting": "dev"} {
			Expect(inventory.Register(ctx, name, kubeconfigOf(name), map[string]string{"env": env})).To(Succeed())
		}
		apply(ctx, inventory.Config, location("prod", "prod", workload.Path))
		patch(ctx, inventory.Config, locations, "", "prod", `{"spec": {"availableTo": {"upsync": true}}}`)

		By("the operator publishes the definitions of the engine, which the hub installs on the clusters")
		file := filepath.Join(GinkgoT().TempDir(), "sentry-crds.yaml")
		columns := `
    additionalPrinterColumns:
    - {name: Passed, type: integer, jsonPath: .summary.passed}
    - {name: Failed, type: integer, jsonPath: .summary.failed}
`
		Expect(os.WriteFile(file, []byte(documents(policies.definition(), policyReports.definition()+columns)), 0o600)).To(Succeed())
		publishFile(ctx, file, "--install-crd")

		By("a user writes the engine and a policy in one workspace")
		eventuallyPlaced(ctx, workload, documents(sentry(ns), placementOn("sentry", ns)+fmt.Sprintf(`
  upsync: [{apiGroup: %s, resources: [policyreports], namespaces: [%s], names: ["*"], to: Workspace}]
`, policyReports.Group, ns)))
		for _, name := range []string{"florin", "guilder"} {
			Eventually(framework.Condition).WithContext(ctx).WithArguments(target(name), deployments, ns, "sentry", "Available").Should(Equal("True"), name)
			eventuallyHas(ctx, target(name), policies.GroupVersionResource, ns, "require-owner", "[owner]", "spec", "require", "labels")
			Expect(framework.Exists(ctx, target(name), serviceAccounts.GroupVersionResource, ns, "sentry")).To(BeTrue())
		}
		Eventually(framework.Condition).WithContext(ctx).WithArguments(workload.Config, edgePlacements, "", "sentry", edgev2alpha1.ConditionHealthy).Should(Equal("True"))
		Expect(framework.Exists(ctx, target("hosting"), namespaces, "", ns)).To(BeFalse())

		By("the engine reports on each cluster")
		reports := func() string {
			lines := strings.Split(runPlugin(ctx, inventory.Path, "get", "policyreports", "-A", "--all-mailboxes", "--provider-workspace", synchub.Workspace), "\n")
			for i, line := range lines {
				// Other specs may have a cluster of this name in an inventory of theirs.
				lines[i] = otherInventory.ReplaceAllString(strings.Join(strings.Fields(line), " "), "")
			}
			return strings.Join(lines, "\n")
		}
		apply(ctx, target("florin"), policyReport(3, 1))
		apply(ctx, target("guilder"), policyReport(5, 0))
		Eventually(reports).WithContext(ctx).Should(MatchRegexp(`^TARGET NAMESPACE NAME PASSED FAILED AGE\nflorin %[1]s require-owner 3 1 \S+\nguilder %[1]s require-owner 5 0 \S+\n$`, ns))

		By("a change of the policy, and of a report")
		patch(ctx, workload.Config, policies.GroupVersionResource, ns, "require-owner", `{"spec": {"require": {"labels": ["owner", "team"]}}}`)
		for _, name := range []string{"florin", "guilder"} {
			eventuallyHas(ctx, target(name), policies.GroupVersionResource, ns, "require-owner", "[owner team]", "spec", "require", "labels")
		}
		apply(ctx, target("florin"), policyReport(2, 2))
		Eventually(reports).WithContext(ctx).Should(ContainSubstring("florin " + ns + " require-owner 2 2 "))

		By("another cluster gets the label")
		patch(ctx, inventory.Config, installation.SyncTargets, "", "hosting", `{"metadata": {"labels": {"env": "prod"}}}`)
		eventuallyHas(ctx, target("hosting"), policies.GroupVersionResource, ns, "require-owner", "[owner team]", "spec", "require", "labels")
		eventuallyExists(ctx, target("hosting"), deployments, ns, "sentry")
		apply(ctx, target("hosting"), policyReport(0, 7))
		Eventually(reports).WithContext(ctx).Should(ContainSubstring("hosting " + ns + " require-owner 0 7 "))

		By("the user sees the reports of all clusters in the workspace")
		for name, want := range map[string]string{"florin": "2 2", "guilder": "5 0", "hosting": "0 7"} {
			Eventually(func() string {
				report := func(field string) string {
					return value(ctx, workload.Config, policyReports.GroupVersionResource, ns, "require-owner."+name, "summary", field)
				}
				return report("passed") + " " + report("failed")
			}).WithContext(ctx).Should(Equal(want), name)
		}

		By("a cluster leaves the inventory, and its report the workspace")
		remove(ctx, inventory.Config, installation.SyncTargets, "", "hosting")
		eventuallyGone(ctx, workload.Config, policyReports.GroupVersionResource, ns, "require-owner.hosting")
		Expect(framework.Exists(ctx, target("hosting"), policyReports.GroupVersionResource, ns, "require-owner")).To(BeTrue())

		By("the engine is withdrawn, and its reports stay on the clusters")
		remove(ctx, workload.Config, edgePlacements, "", "sentry")
		for _, name := range []string{"florin", "guilder"} {
			eventuallyGone(ctx, workload.Config, policyReports.GroupVersionResource, ns, "require-owner."+name)
			eventuallyGone(ctx, target(name), deployments, ns, "sentry")
			eventuallyGone(ctx, mailboxOf(ctx, inventory, name), policyReports.GroupVersionResource, ns, "require-owner")
			Expect(framework.Exists(ctx, target(name), policyReports.GroupVersionResource, ns, "require-owner")).To(BeTrue())
		}
	}, NodeTimeout(5*time.Minute))
})
