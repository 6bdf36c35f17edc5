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
	"encoding/json"
	"os/exec"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/explain"
	"github.com/synchub-dev/synchub/test/framework/installation"
)

// explained returns the plugin's explanation of an object, with an administrator's permissions.
func explained(ctx context.Context, inventory *installation.Inventory, args ...string) (explain.Result, error) {
	kubeconfig, err := suite.KCP.WorkspaceKubeconfig(inventory.Path)
	if err != nil {
		return explain.Result{}, err
	}
	command := exec.CommandContext(ctx, filepath.Join(suite.Options.Bin, "kubectl-synchub"), append([]string{
		"explain", "--kubeconfig", kubeconfig, "--hosting-kubeconfig", clusters["hosting"].Kubeconfig, "-o", "json",
	}, args...)...)
	out, err := command.Output()
	if err != nil {
		return explain.Result{}, err
	}
	var told explain.Explanation
	err = json.Unmarshal(out, &told)
	GinkgoWriter.Println(string(out))
	return told.Result, err
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
		inventory := sharedInventory(ctx)
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
		ask("replicasets.apps", ns+"/web").Should(comesTo(explain.Absent, explain.Stopped, explain.StepPublished))

		By("telling what an operator did")
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
})
