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
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/diff"
	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/framework/installation"
)

// diffOf runs kubectl synchub diff in a workspace about manifests, and returns its report and exit status.
func diffOf(ctx context.Context, workspace, manifest string, args ...string) (report diff.Report, status int) {
	GinkgoHelper()
	kubeconfig, err := suite.KCP.WorkspaceKubeconfig(workspace)
	Expect(err).NotTo(HaveOccurred())
	args = append(append([]string{"synchub", "diff"}, args...), "-f", "-", "-o", "json", "--kubeconfig", kubeconfig)
	if synchub.Connection == edgev2alpha1.ConnectionTunnel {
		args = append(args, "--target-kubeconfig", kubeconfigOfAll())
	}
	command := exec.CommandContext(ctx, filepath.Join(suite.Options.Bin, "kubectl"), args...)
	command.Env = append(os.Environ(), "PATH="+suite.Options.Bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	command.Stdin = strings.NewReader(manifest)
	var out, errs bytes.Buffer
	command.Stdout, command.Stderr = &out, &errs
	err = command.Run()
	GinkgoWriter.Println(out.String(), errs.String(), err)
	Expect(json.Unmarshal(out.Bytes(), &report)).To(Succeed(), errs.String())
	return report, command.ProcessState.ExitCode()
}

// kubeconfigOfAll returns a kubeconfig with a context for each of the suite's clusters.
func kubeconfigOfAll() string {
	GinkgoHelper()
	all := clientcmdapi.NewConfig()
	for _, name := range shared {
		config, err := clientcmd.LoadFromFile(clusters[name].Kubeconfig)
		Expect(err).NotTo(HaveOccurred())
		current := config.Contexts[config.CurrentContext]
		all.Clusters[name], all.AuthInfos[name] = config.Clusters[current.Cluster], config.AuthInfos[current.AuthInfo]
		all.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	}
	file := filepath.Join(GinkgoT().TempDir(), "kubeconfig")
	Expect(clientcmd.WriteToFile(*all, file)).To(Succeed())
	return file
}

// changesOf returns the changes of a report, in one line each.
func changesOf(report diff.Report) (lines []string) {
	for _, change := range report.Changes {
		lines = append(lines, strings.Join(change.SyncTargets, ",")+" "+string(change.Action)+" "+change.String())
	}
	return lines
}

var _ = Describe("kubectl synchub diff", Label("placement"), func() {
	It("shows what a change would do to each cluster, and just that happens", func(ctx SpecContext) {
		const ns = "diffed"
		inventory, workload := newInventory(ctx, ns), newWorkload(ctx, ns+"-workload")
		for name, env := range map[string]string{"florin": "prod", "guilder": "dev"} {
			Expect(inventory.Register(ctx, name, kubeconfigOf(name), map[string]string{"env": env})).To(Succeed())
		}
		apply(ctx, inventory.Config, documents(location("prod", "prod", workload.Path), location("dev", "dev", workload.Path)))
		placement := func(envs string) string {
			return strings.Replace(placementOn("shop", ns), "[{matchLabels: {env: prod}}]", "[{matchExpressions: [{key: env, operator: In, values: ["+envs+"]}]}]", 1)
		}
		byLabel := strings.Replace(placement("dev"), "[{namespaces: ["+ns+"]}]", "[{namespaces: ["+ns+"], labelSelectors: [{matchLabels: {stage: test}}]}]", 1)
		byLabel = strings.Replace(byLabel, "name: shop", "name: stage", 1)
		eventuallyPlaced(ctx, workload, documents(namespace(ns), configMap(ns, "prices", "1"), deployment(ns, "web"), placement("prod"), byLabel))
		Eventually(readyStatus).WithContext(ctx).WithArguments(workload, "shop").Should(Equal("True"))
		eventuallyExists(ctx, target("florin"), deployments, ns, "web")
		Eventually(value).WithArguments(ctx, workload.Config, placedSlices, "", "stage", "destinations").Should(ContainSubstring("guilder"))
		// The hub looks for new workspaces every few seconds.
		for _, workspace := range []*rest.Config{workload.Config, mailboxOf(ctx, inventory, "florin"), mailboxOf(ctx, inventory, "guilder")} {
			Eventually(value).WithContext(ctx).WithArguments(workspace, syncRules, "", edgev2alpha1.SyncRulesName, "status", "publishedResources").ShouldNot(BeEmpty())
		}
		quiet(ctx)
		before := identities(ctx, target("florin"), configMaps, ns, "")

		By("an edit, a new object with the cluster's defaults, and one that stays")
		scaled := strings.Replace(deployment(ns, "web"), "replicas: 2", "replicas: 3", 1)
		report, status := diffOf(ctx, workload.Path, documents(configMap(ns, "prices", "1"), scaled, deployment(ns, "api")))
		Expect(changesOf(report)).To(ConsistOf("florin Create Deployment diffed/api", "florin Update Deployment diffed/web"))
		Expect(status).To(Equal(1))
		for _, change := range report.Changes {
			if change.Action == diff.Update {
				Expect(change.Fields).To(ConsistOf(diff.Field{Path: "spec.replicas", Before: 2.0, After: 3.0}))
			} else {
				Expect(change.Fields).To(ContainElement(HaveField("After", HaveKeyWithValue("progressDeadlineSeconds", 600.0))), "the cluster has the default")
			}
		}

		By("a label brings an object to another cluster, too")
		labelled := strings.Replace(configMap(ns, "prices", "1"), "metadata: {", "metadata: {labels: {stage: test}, ", 1)
		report, _ = diffOf(ctx, workload.Path, labelled)
		Expect(changesOf(report)).To(ConsistOf("florin Update ConfigMap diffed/prices", "guilder Create ConfigMap diffed/prices"))
		apply(ctx, workload.Config, labelled)
		eventuallyExists(ctx, target("guilder"), configMaps, ns, "prices")
		quiet(ctx)

		By("an EdgePlacement moves all objects")
		report, status = diffOf(ctx, workload.Path, placement("dev"), "placement")
		Expect(changesOf(report)).To(ConsistOf(
			"florin Delete ConfigMap diffed/prices", "florin Delete Deployment diffed/web", "guilder Create Deployment diffed/web",
		))
		Expect(status).To(Equal(1))

		By("a Location gives its clusters to others")
		report, _ = diffOf(ctx, inventory.Path, strings.Replace(location("prod", "prod", workload.Path), "instanceSelector: {matchLabels: {env: prod}}", "instanceSelector: {}", 1), "location")
		Expect(changesOf(report)).To(ConsistOf("guilder Create Deployment diffed/web"))

		By("rules of a PublishedResource, in all mailboxes of an inventory")
		rules := func(more string) string {
			return "{apiVersion: synchub.dev/v1alpha1, kind: PublishedResource, metadata: {name: configmaps}, spec: {resource: {group: \"\", resource: configmaps}" + more + "}}"
		}
		report, status = diffOf(ctx, inventory.Path, rules(""), "published-resource")
		Expect(changesOf(report)).To(BeEmpty())
		Expect(status).To(BeZero())
		report, _ = diffOf(ctx, inventory.Path, rules(`, mutation: {down: [{cel: {path: data.entry, expression: '"9"'}}]}`), "published-resource")
		Expect(changesOf(report)).To(ConsistOf("florin,guilder Update ConfigMap diffed/prices"))

		By("manifests in the mailboxes of an inventory")
		apply(ctx, mailboxOf(ctx, inventory, "guilder"), documents(namespace(ns+"-own"), everythingIn(ns+"-own")))
		report, _ = diffOf(ctx, inventory.Path, documents(namespace(ns+"-own"), configMap(ns+"-own", "own", "1")), "--sync-targets", "guilder")
		Expect(changesOf(report)).To(ConsistOf("guilder Create ConfigMap diffed-own/own"))

		By("nothing was written, and what was shown happens")
		Expect(framework.Exists(ctx, target("florin"), deployments, ns, "api")).To(BeFalse())
		Expect(value(ctx, target("florin"), deployments, ns, "web", "spec", "replicas")).To(Equal("2"))
		Expect(identities(ctx, target("florin"), configMaps, ns, "")).To(HaveLen(len(before)))
		apply(ctx, workload.Config, documents(scaled, deployment(ns, "api")))
		Eventually(value).WithArguments(ctx, target("florin"), deployments, ns, "web", "spec", "replicas").Should(Equal("3"))
		eventuallyExists(ctx, target("florin"), deployments, ns, "api")
		quiet(ctx)
		report, status = diffOf(ctx, workload.Path, documents(scaled, deployment(ns, "api")))
		Expect(changesOf(report)).To(BeEmpty())
		Expect(status).To(BeZero())

		By("a cluster that cannot be asked is named")
		patch(ctx, inventory.Config, installation.SyncTargets, "", "florin", `{"spec": {"kubeconfigSecretRef": {"name": "missing"}}}`)
		if synchub.Connection != edgev2alpha1.ConnectionTunnel {
			report, status = diffOf(ctx, workload.Path, deployment(ns, "api"))
			Expect(report.Problems).To(ContainElement(And(HaveField("SyncTargets", ConsistOf("florin")), HaveField("Message", ContainSubstring("Secret")))))
			Expect(status).To(Equal(2))
		}
	}, NodeTimeout(5*time.Minute))
})
