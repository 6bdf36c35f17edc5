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
	"github.com/onsi/gomega/types"

	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/framework/installation"
)

var (
	// indentedBlock matches a block of commands of a page, and outputBlock their documented output.
	indentedBlock = regexp.MustCompile(`(?m)(?:^    kubectl .*\n)+`)
	outputBlock   = regexp.MustCompile("(?ms)^```output\n(.*?)^```$")
	age           = regexp.MustCompile(`^\d+s$`)
	// namespaceOfWorkspace is the name on a cluster of the namespace app of a workspace.
	namespaceOfWorkspace = regexp.MustCompile(`\bapp-[0-9a-v]{12}\b`)
)

// showsLinesOf matches an output that has all lines of a page's block in their order. Spaces, ages, hashes of workspaces and the lines "..." do
// not count. An object on its way in the block may have arrived.
func showsLinesOf(block string) types.GomegaMatcher {
	var pattern strings.Builder
	pattern.WriteString(`(?s)`)
	for line := range strings.Lines(block) {
		fields := strings.Fields(line)
		if len(fields) == 0 || fields[0] == "..." {
			continue
		}
		if strings.HasPrefix(line, "On Their Way") {
			break
		}
		for i, field := range fields {
			switch {
			case field == "InProgress":
				fields[i] = `(?:InProgress|Healthy)`
			case age.MatchString(field):
				fields[i] = `\w+`
			case namespaceOfWorkspace.MatchString(field):
				fields[i] = namespaceOfWorkspace.String()
			default:
				fields[i] = regexp.QuoteMeta(field)
			}
		}
		pattern.WriteString(`.*?` + strings.Join(fields, `\s+`) + `\s*?\n`)
	}
	return MatchRegexp(pattern.String())
}

var _ = Describe("the first examples of the README and of the page about placement", thorough, Label("placement"), func() {
	It("work, print the documented output, and can be repeated for a second team", func(ctx SpecContext) {
		const ns = "readme"
		root, err := framework.RepositoryRoot()
		Expect(err).NotTo(HaveOccurred())
		section := func(name, from, to string) (commands, outputs []string) {
			content, err := os.ReadFile(filepath.Join(root, name))
			Expect(err).NotTo(HaveOccurred())
			_, part, found := strings.Cut(string(content), from)
			Expect(found).To(BeTrue())
			part, _, found = strings.Cut(part, to)
			Expect(found).To(BeTrue())
			for _, match := range outputBlock.FindAllStringSubmatch(part, -1) {
				outputs = append(outputs, match[1])
			}
			return indentedBlock.FindAllString(part, -1), outputs
		}
		follow := func(inventory *installation.Inventory, workspace, block string, replaced ...string) {
			kubeconfig, err := suite.KCP.WorkspaceKubeconfig(workspace)
			Expect(err).NotTo(HaveOccurred())
			// There is no terminal to ask on, and each block has the kubeconfig of its workspace.
			replaced = append(replaced, "synchub allow", "synchub allow --yes", "FLORIN_KUBECONFIG", clusters["florin"].Kubeconfig)
			block = regexp.MustCompile(`(?m)^    kubectl ws .*\n`).ReplaceAllString(block, "")
			block = strings.NewReplacer(append(replaced, "root:inventory", inventory.Path+" --provider-workspace "+synchub.Workspace)...).Replace(block)
			run(ctx, ns+strings.NewReplacer(":", "-", "/", "-").Replace(workspace), map[string]string{"KUBECONFIG": kubeconfig}, []string{block})
		}
		newTeam := func(name string) string {
			_, err := framework.CreateWorkspace(ctx, suite.KCP.Config, "root", name, "universal")
			Expect(err).NotTo(HaveOccurred())
			return "root:" + name
		}

		By("the README's")
		commands, outputs := section("README.md", "## Two teams", "## Try it")
		Expect(commands).To(HaveLen(3), "the administrator's commands, the teams', and a look at the cluster")
		Expect(outputs).To(HaveLen(2))
		shared, shop, bank := newInventory(ctx, ns+"-shared"), newTeam(ns+"-shop"), newTeam(ns+"-bank")
		follow(shared, shared.Path, commands[0], "root:shop", shop, "root:bank", bank)
		for _, team := range []string{shop, bank} {
			follow(shared, team, commands[1])
			Expect(kubectlIn(ctx, team)("get", "deployment", "web", "--namespace", "app")).To(showsLinesOf(outputs[0]))
		}
		list := strings.Fields(strings.ReplaceAll(commands[2], "FLORIN_KUBECONFIG", clusters["florin"].Kubeconfig))
		Expect(kubectlWith(ctx, clusters["florin"].Kubeconfig)(list[1:]...)).To(showsLinesOf(outputs[1]))

		By("the page's, for two teams")
		inventory := newInventory(ctx, ns)
		for _, name := range []string{"florin", "guilder"} {
			Expect(inventory.Register(ctx, name, kubeconfigOf(name), nil)).To(Succeed())
			Eventually(framework.Condition).WithContext(ctx).WithArguments(inventory.Config, installation.SyncTargets, "", name, "Ready").Should(Equal("True"))
		}
		eventuallyExists(ctx, inventory.Config, locations, "", "default")
		By("the page's, for a second team, which removes nothing of the first")
		commands, outputs = section("docs/placement.md", "## Quick start", "## Bind compute")
		Expect(outputs).To(HaveLen(1))
		runPlugin(ctx, inventory.Path, "allow", "default", "--workspace", shop, "--yes")
		second := newTeam(ns + "-annex")
		placement := strings.ReplaceAll(inventory.Path, ":", ".")
		ofSecond := []string{"--namespace shop", "--namespace annex", "namespace shop", "namespace annex", "root.inventory", placement, "root:shop", second}
		follow(inventory, inventory.Path, commands[0], ofSecond...)
		Expect(value(ctx, inventory.Config, locations, "", "default", "spec", "availableTo", "workspaces")).To(Equal("[" + shop + " " + second + "]"))
		follow(inventory, second, commands[1], ofSecond...)
		shown := strings.ReplaceAll(outputs[0], "root.inventory", placement)
		placements, placedIn, _ := strings.Cut(shown, "\n\n")
		kubectl := kubectlIn(ctx, second)
		Eventually(kubectl).WithContext(ctx).WithArguments("get", "edgeplacement", placement).Should(showsLinesOf(placements + "\n"))
		_, columns, found := strings.Cut(commands[2], "--output custom-columns='")
		Expect(found).To(BeTrue())
		columns, _, _ = strings.Cut(columns, "'")
		Expect(kubectl("get", "singleplacementslice", placement, "--output", "custom-columns="+columns)).To(showsLinesOf(placedIn))
		By("an object that a cluster has already")
		_, outputs = section("docs/placement.md", "## Check the state of objects", "## Roll changes out")
		Expect(outputs).To(HaveLen(1))
		apply(ctx, target("florin"), deployment("annex", "till"))
		Expect(kubectl("create", "deployment", "till", "--image", "example.org/till", "--namespace", "annex")).To(HaveSuffix("created\n"))
		shown = strings.ReplaceAll(outputs[0], "shop/", "annex/")
		Eventually(runPlugin).WithContext(ctx).WithArguments(second, "describe", "placement", placement).Should(showsLinesOf(shown))
	}, NodeTimeout(6*time.Minute))
})
