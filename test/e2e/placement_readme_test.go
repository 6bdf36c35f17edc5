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
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/framework/installation"
)

// indentedBlock matches a block of commands of the README.
var indentedBlock = regexp.MustCompile(`(?m)(?:^    kubectl .*\n)+`)

var _ = Describe("the first example of the README", thorough, Label("placement"), func() {
	It("works as it stands", func(ctx SpecContext) {
		const ns = "readme"
		root, err := framework.RepositoryRoot()
		Expect(err).NotTo(HaveOccurred())
		readme, err := os.ReadFile(filepath.Join(root, "README.md"))
		Expect(err).NotTo(HaveOccurred())
		_, example, found := strings.Cut(string(readme), "## Write once")
		Expect(found).To(BeTrue())
		example, _, _ = strings.Cut(example, "## Try it")
		commands := indentedBlock.FindAllString(example, -1)
		Expect(commands).To(HaveLen(2), "those of the administrator and those of the team")

		inventory := newInventory(ctx, ns)
		for _, name := range []string{"florin", "guilder"} {
			Expect(inventory.Register(ctx, name, kubeconfigOf(name), nil)).To(Succeed())
			Eventually(framework.Condition).WithContext(ctx).WithArguments(inventory.Config, installation.SyncTargets, "", name, "Ready").Should(Equal("True"))
		}
		_, err = framework.CreateWorkspace(ctx, suite.KCP.Config, "root", ns+"-shop", "universal")
		Expect(err).NotTo(HaveOccurred())
		Eventually(framework.Exists).WithContext(ctx).WithArguments(inventory.Config, locations, "", "default").Should(BeTrue())
		for i, workspace := range []string{inventory.Path, "root:" + ns + "-shop"} {
			kubeconfig, err := suite.KCP.WorkspaceKubeconfig(workspace)
			Expect(err).NotTo(HaveOccurred())
			block := strings.NewReplacer("root:inventory", inventory.Path+" --provider-workspace "+synchub.Workspace, "root:shop", "root:"+ns+"-shop").Replace(commands[i])
			run(ctx, ns+workspace[strings.LastIndex(workspace, ":")+1:], map[string]string{"KUBECONFIG": kubeconfig}, []string{block})
		}
		described := strings.Join(strings.Fields(runPlugin(ctx, "root:"+ns+"-shop", "describe", "placement", "shop")), " ")
		Expect(described).To(ContainSubstring("florin guilder deployments.apps shop/web Healthy Healthy"))
	}, NodeTimeout(4*time.Minute))
})
