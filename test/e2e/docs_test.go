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
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/framework/servers"
)

// Blocks of commands and of configuration in the documentation.
var (
	shellBlock = regexp.MustCompile("(?ms)^```sh\n(.*?)^```$")
	yamlBlock  = regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$")
)

// The pages use the same names for their objects, so they run one after the other.
var _ = Describe("the documentation", Ordered, ContinueOnFailure, SpecPriority(2), thorough, func() {
	It("has working commands in Getting started", func(ctx SpecContext) {
		run(ctx, "getting-started", nil, blocks(page("getting-started.md"), shellBlock))
	}, NodeTimeout(6*time.Minute))

	It("has working commands for the migration from KubeStellar", func(ctx SpecContext) {
		const ns, syncer = "migrating", "kubestellar-syncer-guilder-1x2y3z4w"
		guilder := target("guilder")
		leaveAsKubeStellar(ctx, ns, syncer)
		kubeconfig, err := suite.KCP.WorkspaceKubeconfig("root:old-mailbox")
		Expect(err).NotTo(HaveOccurred())
		uid := value(ctx, guilder, deployments, ns, "till", "metadata", "uid")

		start := page("getting-started.md")
		registered, _, found := strings.Cut(start, "### 5.")
		Expect(found).To(BeTrue())
		script := append(blocks(registered, shellBlock), blocks(page("migrating.md"), shellBlock)...)
		script = append(script, checkMigration(ns)...)
		atStart := blocks(start, shellBlock)
		run(ctx, "migrating", map[string]string{"OLD_MAILBOX_KUBECONFIG": kubeconfig, "OLD_SYNCER": syncer},
			append(script, atStart[len(atStart)-2:]...))

		By("keeping the remaining copies on the target")
		Expect(value(ctx, guilder, deployments, ns, "till", "metadata", "uid")).To(Equal(uid))
		replicaSets, err := framework.List(ctx, guilder, deployments.GroupVersion().WithResource("replicasets"), ns, "")
		Expect(err).NotTo(HaveOccurred())
		Expect(replicaSets).To(HaveLen(1), "no pod may be restarted")
		Expect(value(ctx, guilder, oldPolicies.GroupVersionResource, ns, "limits", "spec")).To(Equal("map[kept:3]"))
		Expect(value(ctx, guilder, configMaps, ns, "once", "data", "entry")).To(Equal("theirs"))
		downsynced := func(name string) string {
			return value(ctx, guilder, configMaps, ns, name, "metadata", "annotations", "edge.kubestellar.io/downsynced")
		}
		for _, name := range []string{"settings", "once"} {
			Expect(downsynced(name)).To(BeEmpty(), name)
		}
		for _, name := range []string{"forgotten", "region"} {
			Expect(downsynced(name)).NotTo(BeEmpty(), name)
		}
		Expect(framework.Exists(ctx, guilder, namespaces, "", syncer)).To(BeFalse())
	}, NodeTimeout(6*time.Minute))
})

var _ = Describe("the documentation of configs", thorough, func() {
	It("has valid examples of configs", func(ctx SpecContext) {
		inventory := newInventory(ctx, "docs-examples")
		mailbox := register(ctx, inventory, "florin", "florin")
		apply(ctx, mailbox, namespace("shop"))
		examples := blocks(page("syncerconfig.md"), yamlBlock)
		Expect(len(examples)).To(BeNumerically(">", 8))
		named := map[string]string{}
		for i, example := range examples {
			if strings.HasPrefix(example, "apiVersion:") {
				apply(ctx, mailbox, example)
				continue
			}
			name := fmt.Sprintf("example-%d", i)
			named[name] = example
			apply(ctx, mailbox, config(name, "\n  "+strings.ReplaceAll(strings.TrimSpace(example), "\n", "\n  ")))
		}
		for name, example := range named {
			Eventually(readyOf).WithContext(ctx).WithArguments(mailbox, name).Should(And(Not(BeEmpty()), Not(ContainSubstring("InvalidEntry"))), example)
		}
		Eventually(value).WithContext(ctx).WithArguments(mailbox, edgeSyncConfigs, "", "shop", "status", "conditions").
			Should(And(Not(BeEmpty()), Not(ContainSubstring("InvalidEntry"))))
	}, NodeTimeout(3*time.Minute))
})

func page(name string) string {
	GinkgoHelper()
	root, err := framework.RepositoryRoot()
	Expect(err).NotTo(HaveOccurred())
	content, err := os.ReadFile(filepath.Join(root, "docs", name))
	Expect(err).NotTo(HaveOccurred())
	return string(content)
}

// blocks returns the blocks of one kind on a page, in order.
func blocks(page string, kind *regexp.Regexp) []string {
	GinkgoHelper()
	var found []string
	for _, block := range kind.FindAllStringSubmatch(page, -1) {
		found = append(found, block[1])
	}
	Expect(found).NotTo(BeEmpty())
	return found
}

// blockWith returns the only block of a page that contains a text.
func blockWith(page string, kind *regexp.Regexp, text string) string {
	GinkgoHelper()
	found := slices.DeleteFunc(blocks(page, kind), func(block string) bool { return !strings.Contains(block, text) })
	Expect(found).To(HaveLen(1))
	return found[0]
}

// run executes blocks of commands in one bash session, which must succeed. synchub and kubectl are in its PATH, and the
// variables of the getting-started page are set.
func run(ctx context.Context, name string, variables map[string]string, blocks []string) {
	GinkgoHelper()
	root, err := framework.RepositoryRoot()
	Expect(err).NotTo(HaveOccurred())
	script := append([]string{"set -xeuo pipefail", "cd " + root, "trap 'kill $(jobs -p) 2>/dev/null || true' EXIT"}, blocks...)
	home := filepath.Join(suite.Options.Dir, name)
	Expect(os.MkdirAll(home, 0o755)).To(Succeed())
	for name, tool := range map[string]string{"synchub": "synchub-race", "kubectl": "kubectl", "kubectl-synchub": "kubectl-synchub"} {
		Expect(os.Symlink(filepath.Join(suite.Options.Bin, tool), filepath.Join(home, name))).To(Succeed())
	}
	environment := []string{
		"PATH=" + home + ":" + os.Getenv("PATH"),
		"HOME=" + home,
		"KCP_KUBECONFIG=" + suite.KCP.Kubeconfig,
		"HUB_KUBECONFIG=" + synchub.HubKubeconfig,
		"HUB_USER=" + synchub.HubUser,
		"HOSTING_KUBECONFIG=" + clusters["florin"].Kubeconfig,
		"TARGET_KUBECONFIG=" + clusters["guilder"].Kubeconfig,
		"PROVIDER_WORKSPACE=root:synchub-docs",
	}
	for name, value := range variables {
		environment = append(environment, name+"="+value)
	}
	process, err := servers.Start(suite.Options, name, "/bin/bash", []string{"-c", strings.Join(script, "\n")}, environment)
	Expect(err).NotTo(HaveOccurred())
	code, err := process.Wait(ctx)
	Expect(err).NotTo(HaveOccurred())
	Expect(code).To(BeZero(), process.LogTail(40))
}

// The APIs of an installation of KubeStellar. Its mailboxes do not validate objects.
var (
	oldPolicies    = custom("example.com", "v1", "policies", "Policy")
	oldDeployments = custom("apps", "v1", "deployments", "Deployment")
	oldConfigs     = []api{
		{GroupVersionResource: syncerConfigs, kind: "SyncerConfig", clusterScoped: true},
		{GroupVersionResource: edgeSyncConfigs, kind: "EdgeSyncConfig", clusterScoped: true},
	}
)

// leaveAsKubeStellar creates a mailbox root:old-mailbox, the objects that KubeStellar's syncer has copied from it to
// guilder, and the syncer itself.
func leaveAsKubeStellar(ctx context.Context, ns, syncer string) {
	GinkgoHelper()
	const reader = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: shop-reader}
rules: [{apiGroups: [""], resources: [configmaps], verbs: [get]}]
`
	limits := oldPolicies.object(ns, "limits", "spec: {kept: 1, dropped: 2}")
	guilder := target("guilder")
	define(ctx, guilder, oldPolicies)
	patch(ctx, guilder, definitions, "", "policies.example.com", `{"metadata": {"annotations": {"edge.kubestellar.io/downsynced": "CustomResourceDefinition//policies.example.com"}}}`)
	apply(ctx, guilder, documents(namespace(ns), namespace(syncer), deployment(syncer, "syncer"), configMap(ns, "report", "from the target")))
	client, err := dynamic.NewForConfig(guilder)
	Expect(err).NotTo(HaveOccurred())
	place := func(resource schema.GroupVersionResource, manifest, downsynced string) {
		object := &unstructured.Unstructured{}
		Expect(yaml.Unmarshal([]byte(manifest), &object.Object)).To(Succeed())
		object.SetAnnotations(map[string]string{"edge.kubestellar.io/downsynced": downsynced})
		_, err := client.Resource(resource).Namespace(object.GetNamespace()).Create(ctx, object, metav1.CreateOptions{FieldManager: "syncer"})
		Expect(err).NotTo(HaveOccurred())
	}
	place(deployments, deployment(ns, "till"), "Deployment/"+ns+"/till")
	place(oldPolicies.GroupVersionResource, limits, "Policy/"+ns+"/limits")
	place(clusterRoles, reader, "ClusterRole//shop-reader")
	for name, placed := range map[string]string{"settings": "settings", "once": "once", "forgotten": "forgotten", "region": "region-of-guilder"} {
		place(configMaps, configMap(ns, name, "theirs"), "ConfigMap/"+ns+"/"+placed)
	}
	Eventually(framework.Condition).WithContext(ctx).WithArguments(guilder, deployments, ns, "till", "Available").Should(Equal("True"))

	_, err = framework.CreateWorkspace(ctx, suite.KCP.Config, "root", "old-mailbox", "")
	Expect(err).NotTo(HaveOccurred())
	mailbox := synchub.InWorkspace("root:old-mailbox")
	define(ctx, mailbox, append([]api{oldPolicies, oldDeployments}, oldConfigs...)...)
	apply(ctx, mailbox, documents(namespace(ns), deployment(ns, "till"), limits, reader,
		configMap(ns, "settings", "theirs"), configMap(ns, "once", "ours"), configMap(ns, "region-of-guilder", "theirs"),
		configMap(ns, "report", "from the target"), configMap(ns, "lost", "from the target"), fmt.Sprintf(`
apiVersion: edge.kubestellar.io/v2alpha1
kind: SyncerConfig
metadata: {name: the-one}
spec:
  namespaceScope:
    namespaces: [%[1]s]
    resources:
    - {group: apps, resource: deployments, apiVersion: v1}
    - {group: example.com, resource: policies, apiVersion: v1}
  namespacedObjects:
  - {group: "", resource: configmaps, apiVersion: v1, objectsByNamespace: [{namespace: %[1]s, names: [settings, once]}]}
  clusterScope:
  - {group: rbac.authorization.k8s.io, resource: clusterroles, apiVersion: v1}
  - {group: apiextensions.k8s.io, resource: customresourcedefinitions, apiVersion: v1, objects: [policies.example.com]}
  upsync:
  - {apiGroup: "", resources: [configmaps], namespaces: [%[1]s], names: [report, lost]}
---
apiVersion: edge.kubestellar.io/v2alpha1
kind: EdgeSyncConfig
metadata: {name: older}
spec:
  downSyncedResources:
  - {version: v1, kind: ConfigMap, namespace: %[1]s, name: region-of-guilder}
  conversions:
  - upstream: {version: v1, kind: ConfigMap, name: region-of-guilder}
    downstream: {version: v1, kind: ConfigMap, name: region}
`, ns)))
	patch(ctx, mailbox, configMaps, ns, "once", `{"metadata": {"annotations": {"edge.kubestellar.io/downsync-overwrite": "false"}}}`)
	for _, name := range []string{"report", "lost"} {
		patch(ctx, mailbox, configMaps, ns, name, fmt.Sprintf(`{"metadata": {"annotations": {"edge.kubestellar.io/upsynced": "ConfigMap/%s/%s"}}}`, ns, name))
	}
}

// checkMigration returns commands that fail unless the result is as the page describes. They run after all steps of the
// page.
func checkMigration(ns string) []string {
	above, below := `ws "$MAILBOX" --namespace `+ns, `kubectl --kubeconfig "$TARGET_KUBECONFIG" --namespace `+ns
	return []string{
		// Some results exist at once, and some only after the hub has reconciled.
		above + ` wait --for=jsonpath='{.metadata.annotations.synchub\.dev/mark}' configmap/report --timeout=60s`,
		`test -z "$(` + above + ` get configmap report --output 'jsonpath={.metadata.annotations.edge\.kubestellar\.io/upsynced}')"`,
		`test -n "$(` + above + ` get configmap lost --output 'jsonpath={.metadata.annotations.edge\.kubestellar\.io/upsynced}')"`,
		above + ` wait --for=jsonpath='{.status.failures[0].reason}'=Conflict edgesyncconfig/older --timeout=60s`,
		below + ` wait --for=jsonpath='{.metadata.annotations.synchub\.dev/mark}' crd/policies.example.com --timeout=60s`,
		above + ` patch policy limits --type merge --patch '{"spec": {"kept": 3, "dropped": null}}'`,
		below + ` wait --for=jsonpath='{.spec.kept}'=3 policy/limits --timeout=60s`,
	}
}
