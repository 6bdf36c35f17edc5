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
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/explain"
	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/framework/installation"
)

var syncRules = edgev2alpha1.SchemeGroupVersion.WithResource("syncrules")

// explained returns the plugin's explanation of an object, with an administrator's permissions and the PublishedResources themselves.
func explained(ctx context.Context, inventory *installation.Inventory, args ...string) (explain.Result, error) {
	return explainedToTeam(ctx, inventory, append(args, "--hosting-kubeconfig", clusters["hosting"].Kubeconfig)...)
}

// targetKubeconfig returns the arguments that give the plugin a kubeconfig of a cluster that opens a tunnel: its inventory has none. A SyncTarget
// that a spec has registered itself has the name of its cluster.
func targetKubeconfig(inventory *installation.Inventory, syncTarget string) []string {
	cluster, ok := clusters[cmp.Or(clusterOf[inventory.Path+"/"+syncTarget], syncTarget)]
	if !ok || synchub.Connection != edgev2alpha1.ConnectionTunnel {
		return nil
	}
	return []string{"--target-kubeconfig", cluster.Kubeconfig}
}

// explainedToTeam returns the plugin's explanation of an object to users without access to the hosting cluster.
func explainedToTeam(ctx context.Context, inventory *installation.Inventory, args ...string) (explain.Result, error) {
	kubeconfig, err := suite.KCP.WorkspaceKubeconfig(inventory.Path)
	if err != nil {
		return explain.Result{}, err
	}
	command := exec.CommandContext(ctx, filepath.Join(suite.Options.Bin, "kubectl-synchub"), append([]string{
		"explain", "--kubeconfig", kubeconfig, "-o", "json",
	}, append(args, targetKubeconfig(inventory, args[0])...)...)...)
	out, err := command.Output()
	if err != nil {
		return explain.Result{}, err
	}
	var explanation explain.Explanation
	err = json.Unmarshal(out, &explanation)
	GinkgoWriter.Println(string(out))
	return explanation.Result, err
}

// runPlugin runs the plugin in a workspace and returns its output. The command must succeed.
func runPlugin(ctx context.Context, workspace string, args ...string) string {
	GinkgoHelper()
	kubeconfig, err := suite.KCP.WorkspaceKubeconfig(workspace)
	Expect(err).NotTo(HaveOccurred())
	output, err := exec.CommandContext(ctx, filepath.Join(suite.Options.Bin, "kubectl-synchub"), append(args, "--kubeconfig", kubeconfig)...).CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(output))
	return string(output)
}

func comesTo(presence explain.Presence, state explain.State, step string) OmegaMatcher {
	return And(HaveField("OnTarget", presence), HaveField("State", state), HaveField("Step", step))
}

var _ = Describe("the plugin", func() {
	It("explains why an object is on a target or is not", func(ctx SpecContext) {
		const ns = "explained"
		inventory := sharedInventory()
		apply(ctx, target("florin"), documents(namespace(ns), configMap(ns, "taken", "x")))
		mailbox := register(ctx, inventory, "florin", "florin")
		apply(ctx, mailbox, documents(namespace(ns), configMap(ns, "settings", "x"), configMap(ns, "taken", "y"), deployment(ns, "web"), namespace(ns+"-not"), configMap(ns+"-not", "other", "x"), everythingIn(ns)))
		ask := func(resource, name string) AsyncAssertion {
			return Eventually(explained).WithContext(ctx).WithArguments(inventory, "florin", resource, name)
		}

		ask("cm", ns+"/settings").Should(comesTo(explain.Present, explain.OK, ""))
		// The status is compared too.
		ask("deploy", ns+"/web").Should(comesTo(explain.Present, explain.OK, ""))
		ask("configmaps", ns+"/taken").Should(And(comesTo(explain.Present, explain.Stopped, explain.StepReport), HaveField("Text", ContainSubstring("the target has an object of this name"))))
		ask("configmaps", ns+"-not/other").Should(comesTo(explain.Absent, explain.Stopped, explain.StepSelected))
		ask("configmaps", ns+"/absent").Should(comesTo(explain.Absent, explain.Stopped, explain.StepObject))
		ask("replicationcontrollers", ns+"/web").Should(comesTo(explain.Absent, explain.Stopped, explain.StepPublished))

		By("reporting the operator's change")
		patch(ctx, inventory.Config, syncTargets, "", "florin", `{"spec": {"unschedulable": true}}`)
		// The hub may hear of the object before it hears of the SyncTarget.
		Eventually(func() bool {
			syncTarget := syncTargetOf(ctx, inventory, "florin")
			ready := meta.FindStatusCondition(syncTarget.Status.Conditions, edgev2alpha1.ConditionReady)
			return ready != nil && ready.ObservedGeneration == syncTarget.Generation
		}).WithContext(ctx).Should(BeTrue())
		apply(ctx, mailbox, configMap(ns, "new", "x"))
		ask("configmaps", ns+"/new").Should(And(comesTo(explain.Absent, explain.Stopped, explain.StepReport), HaveField("Text", ContainSubstring("spec.unschedulable"))))
		patch(ctx, inventory.Config, syncTargets, "", "florin", `{"spec": {"unschedulable": false, "suspend": true}}`)
		ask("configmaps", ns+"/settings").Should(comesTo(explain.Present, explain.Stopped, explain.StepSyncTarget))
	}, NodeTimeout(3*time.Minute))

	It("explains with the hub's SyncRules in each workspace, which the hub restores after a change", func(ctx SpecContext) {
		const ns = "explained-rules"
		inventory, workload := newInventory(ctx, ns), newWorkload(ctx, ns+"-workload")
		gadgets := custom("rules.example.com", "v1", "gadgets", "Gadget")
		define(ctx, target("hosting"), gadgets)
		define(ctx, target("florin"), gadgets)
		publishAs(ctx, "gadgets-"+ns, `
  resource: {group: rules.example.com, resource: gadgets}
  filter: {resource: {matchLabels: {tier: gold}}}
  naming: {name: "{{ .Object.metadata.name }}-here"}
`)
		mailbox := register(ctx, inventory, "florin", "florin")
		gadget := func(name, tier string) string {
			return fmt.Sprintf("\n---\n{apiVersion: rules.example.com/v1, kind: Gadget, metadata: {name: %s, namespace: %s, labels: {tier: %s}}}", name, ns, tier)
		}
		eventuallyPublished(ctx, "gadgets-"+ns)
		Eventually(framework.Apply).WithContext(ctx).WithArguments(mailbox, documents(namespace(ns), gadget("one", "gold"), gadget("two", "tin"), selecting(ns, gadgets.GroupVersionResource))).Should(Succeed())

		By("the rules are in the mailbox and in the workload workspace, without other tenants' SyncTargets")
		for _, workspace := range []*rest.Config{mailbox, workload.Config} {
			Eventually(value).WithContext(ctx).WithArguments(workspace, syncRules, "", edgev2alpha1.SyncRulesName, "status", "publishedResources").
				Should(And(ContainSubstring("gadgets-"+ns), ContainSubstring("gold"), ContainSubstring("configmaps"), Not(ContainSubstring("schemaFrom"))))
			Expect(value(ctx, workspace, syncRules, "", edgev2alpha1.SyncRulesName, "status", "hub")).NotTo(BeEmpty())
		}

		By("a team without the hosting cluster sees no step as unknown")
		Eventually(explainedToTeam).WithContext(ctx).WithArguments(inventory, "florin", "gadgets", ns+"/one").Should(comesTo(explain.Present, explain.OK, ""))
		Eventually(explainedToTeam).WithContext(ctx).WithArguments(inventory, "florin", "gadgets", ns+"/two").Should(And(
			comesTo(explain.Absent, explain.Stopped, explain.StepFilter), HaveField("Text", ContainSubstring("gadgets-"+ns))))

		By("forged rules have no effect, and are replaced when the hub compares them")
		patch(ctx, mailbox, syncRules, "", edgev2alpha1.SyncRulesName, `{"status": {"hub": "forged", "publishedResources": []}}`, "status")
		remove(ctx, workload.Config, syncRules, "", edgev2alpha1.SyncRulesName)
		Consistently(framework.Exists, "2s").WithContext(ctx).WithArguments(target("florin"), gadgets.GroupVersionResource, ns, "one-here").Should(BeTrue())
		Expect(framework.Exists(ctx, target("florin"), gadgets.GroupVersionResource, ns, "two-here")).To(BeFalse())
		Expect(hub.Kill9()).To(Succeed())
		startHub(ctx)
		for _, workspace := range []*rest.Config{mailbox, workload.Config} {
			Eventually(value).WithContext(ctx).WithArguments(workspace, syncRules, "", edgev2alpha1.SyncRulesName, "status", "publishedResources").Should(ContainSubstring("gadgets-" + ns))
		}
		Expect(value(ctx, mailbox, syncRules, "", edgev2alpha1.SyncRulesName, "status", "hub")).NotTo(Equal("forged"))
	}, NodeTimeout(4*time.Minute))
})
