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
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/synchub-dev/synchub/test/framework"
)

// The policy engine warden has 30 objects: the objects of testdata/warden.yaml, and eight CRDs. Mailboxes have rules and findings
// from PublishedResources, so their CRDs are in the mailbox under denatured names. The CRDs that only the engine uses are
// there under their own names.
var (
	wardenRules     = custom("warden.example.com", "v1", "rules", "Rule")
	clusterRules    = api{GroupVersionResource: wardenRules.GroupVersion().WithResource("clusterrules"), kind: "ClusterRule", clusterScoped: true}
	findings        = custom("warden.example.com", "v1", "findings", "Finding")
	clusterFindings = api{GroupVersionResource: wardenRules.GroupVersion().WithResource("clusterfindings"), kind: "ClusterFinding", clusterScoped: true}

	wardensPublic  = []api{wardenRules, clusterRules, findings, clusterFindings}
	wardensPrivate = []api{
		custom("warden.example.com", "v1", "scans", "Scan"), custom("warden.example.com", "v1", "cleanups", "Cleanup"),
		custom("warden.example.com", "v1", "exemptions", "Exemption"), custom("warden.example.com", "v1", "digests", "Digest"),
	}

	accessV1 = schema.GroupVersion{Group: "rbac.authorization.k8s.io", Version: "v1"}

	// wardensResources are the resources of the engine's namespaced objects.
	wardensResources = []schema.GroupVersionResource{
		serviceAccounts.GroupVersionResource, configMaps, services.GroupVersionResource, deployments,
		accessV1.WithResource("roles"), accessV1.WithResource("rolebindings"), wardenRules.GroupVersionResource,
	}
)

const denatured = ".denatured"

// warden returns the objects of the policy engine as they are in a mailbox.
func warden() string {
	GinkgoHelper()
	chart, err := os.ReadFile("testdata/warden.yaml")
	Expect(err).NotTo(HaveOccurred())
	manifests := []string{string(chart)}
	for _, api := range wardensPublic {
		api.Group += denatured
		manifests = append(manifests, api.definition())
	}
	for _, api := range wardensPrivate {
		manifests = append(manifests, api.definition())
	}
	return documents(manifests...)
}

// wardensConfig returns a config that selects the policy engine, and its findings for upsync. The caller selects the
// namespaced objects.
func wardensConfig(inNamespaces string) string {
	var names, conversions []string
	for _, api := range wardensPublic {
		name := api.GroupResource().String()
		names = append(names, name+denatured)
		conversions = append(conversions, renaming("group: apiextensions.k8s.io, kind: CustomResourceDefinition, name: "+name+denatured,
			"group: apiextensions.k8s.io, kind: CustomResourceDefinition, name: "+name))
	}
	for _, api := range wardensPrivate {
		names = append(names, api.GroupResource().String())
	}
	return config("warden", inNamespaces+fmt.Sprintf(`
  clusterScope:
  - {group: "", resource: namespaces, apiVersion: v1, objects: [warden, warded]}
  - {group: apiextensions.k8s.io, resource: customresourcedefinitions, apiVersion: v1, objects: [%s]}
  - group: rbac.authorization.k8s.io
    resource: clusterroles
    apiVersion: v1
    objects: ["warden:rules", "warden:findings", "warden:inspect", "warden:events", "warden:requests"]
  - group: rbac.authorization.k8s.io
    resource: clusterrolebindings
    apiVersion: v1
    objects: ["warden:rules", "warden:findings", "warden:inspect"]
  - {group: warden.example.com, resource: clusterrules, apiVersion: v1, objects: ["*"]}
  upsync:
  - {apiGroup: warden.example.com, resources: [findings, clusterfindings], namespaces: [warded], names: ["*"]}`, strings.Join(names, ", ")), conversions...)
}

// byScope selects all objects of some resources in namespaces. byObject does the same with an entry for each resource.
func byScope(namespaces string, resources ...schema.GroupVersionResource) string {
	entries := fmt.Sprintf("\n  namespaceScope:\n    namespaces: [%s]\n    resources:", namespaces)
	for _, resource := range resources {
		entries += fmt.Sprintf("\n    - {group: %q, resource: %s, apiVersion: %s}", resource.Group, resource.Resource, resource.Version)
	}
	return entries
}

func byObject(namespaces string, resources ...schema.GroupVersionResource) string {
	entries := "\n  namespacedObjects:"
	for _, resource := range resources {
		entries += fmt.Sprintf("\n  - group: %q\n    resource: %s\n    apiVersion: %s\n    objectsByNamespace:", resource.Group, resource.Resource, resource.Version)
		for namespace := range strings.SplitSeq(namespaces, ", ") {
			entries += fmt.Sprintf("\n    - {namespace: %s, names: [\"*\"]}", namespace)
		}
	}
	return entries
}

func publishWarden(ctx context.Context) {
	GinkgoHelper()
	publish(ctx, append([]api{services}, wardensPublic...)...)
}

// wardensObjects is the number of downsynced objects of the policy engine.
const wardensObjects = "30"

var _ = Describe("a policy engine", thorough, func() {
	It("is downsynced with its definitions and policies, and its reports are upsynced", func(ctx SpecContext) {
		publishWarden(ctx)
		cluster, mailbox := target("florin"), sharedMailbox(ctx, "florin")
		apply(ctx, mailbox, documents(wardensConfig(byObject("warden, warded", wardensResources...)), warden()))
		By("running")
		Eventually(framework.Condition).WithContext(ctx).WithArguments(mailbox, deployments, "warden", "warden", "Available").Should(Equal("True"))
		Eventually(readyOf).WithContext(ctx).WithArguments(mailbox, "warden").Should(HavePrefix("True"))
		Eventually(value).WithContext(ctx).WithArguments(mailbox, syncerConfigs, "", "warden", "status", "synced").Should(Equal(wardensObjects))
		Expect(value(ctx, cluster, wardenRules.GroupVersionResource, "warded", "require-owner", "spec", "require", "labels", "owner")).To(Equal("?*"))
		Expect(framework.Exists(ctx, cluster, clusterRules.GroupVersionResource, "", "warden-namespaces-have-teams")).To(BeTrue())
		Expect(value(ctx, cluster, accessV1.WithResource("clusterrolebindings"), "", "warden:findings", "roleRef", "name")).To(Equal("warden:findings"))

		By("reporting")
		apply(ctx, cluster, documents(
			findings.object("warded", "require-owner", "summary: {passed: 1, failed: 0}"),
			findings.object("warden", "not-asked-for", "summary: {passed: 1, failed: 0}"),
			clusterFindings.object("", "warden-teams", "summary: {passed: 7, failed: 2}")))
		eventuallyHas(ctx, mailbox, findings.GroupVersionResource, "warded", "require-owner", "0", "summary", "failed")
		eventuallyHas(ctx, mailbox, clusterFindings.GroupVersionResource, "", "warden-teams", "2", "summary", "failed")
		patch(ctx, cluster, findings.GroupVersionResource, "warded", "require-owner", `{"summary": {"failed": 3}}`)
		eventuallyHas(ctx, mailbox, findings.GroupVersionResource, "warded", "require-owner", "3", "summary", "failed")
		remove(ctx, cluster, clusterFindings.GroupVersionResource, "", "warden-teams")
		eventuallyGone(ctx, mailbox, clusterFindings.GroupVersionResource, "", "warden-teams")
		Expect(framework.Exists(ctx, mailbox, findings.GroupVersionResource, "warden", "not-asked-for")).To(BeFalse())
	}, NodeTimeout(2*time.Minute))

	It("is created in order on an empty target", func(ctx SpecContext) {
		publishWarden(ctx)
		hosting := target("hosting")
		// A shared mailbox may have been synced before, and the order applies to a first sync.
		inventory := newInventory(ctx, "warden-in-order")
		mailbox := register(ctx, inventory, "hosting", "hosting")
		By("creating all objects in the mailbox while the target is suspended")
		patch(ctx, inventory.Config, syncTargets, "", "hosting", `{"spec": {"suspend": true}}`)
		Eventually(message).WithContext(ctx).WithArguments(inventory.Config, syncTargets, "hosting", "SyncerReady").Should(ContainSubstring("suspend"))
		private := wardensResources[:len(wardensResources)-1]
		apply(ctx, mailbox, documents(wardensConfig(byScope("warden", private...)+byObject("warded", wardenRules.GroupVersionResource)), warden()))

		waves := [][]string{
			{"namespaces/warden", "namespaces/warded"},
			nil,
			{
				"serviceaccounts/warden", "serviceaccounts/janitor", "roles/leader", "rolebindings/leader",
				"clusterroles/warden:rules", "clusterroles/warden:findings", "clusterroles/warden:inspect", "clusterroles/warden:events", "clusterroles/warden:requests",
				"clusterrolebindings/warden:rules", "clusterrolebindings/warden:findings", "clusterrolebindings/warden:inspect",
			},
			{"configmaps/warden", "configmaps/warden-metrics"},
			{"services/warden", "services/warden-metrics", "deployments/warden"},
		}
		for _, api := range append(wardensPublic, wardensPrivate...) {
			waves[1] = append(waves[1], "customresourcedefinitions/"+api.GroupResource().String())
		}
		history := follow(ctx, hosting, "", append([]schema.GroupVersionResource{
			namespaces, definitions, accessV1.WithResource("clusterroles"), accessV1.WithResource("clusterrolebindings"),
		}, private...)...)
		before := refusedCreates(ctx)
		patch(ctx, inventory.Config, syncTargets, "", "hosting", `{"spec": {"suspend": false}}`)
		Eventually(readyOf).WithContext(ctx).WithArguments(mailbox, "warden").Should(HavePrefix("True"))
		Eventually(value).WithContext(ctx).WithArguments(mailbox, syncerConfigs, "", "warden", "status", "synced").Should(Equal(wardensObjects))

		latest := 0
		for _, wave := range waves {
			next := 0
			for _, object := range wave {
				Eventually(history.cameAt).WithContext(ctx).WithArguments(object).ShouldNot(BeZero(), object)
				Expect(history.cameAt(object)).To(BeNumerically(">", latest), "%s must come after all that goes before it", object)
				next = max(next, history.cameAt(object))
			}
			latest = next
		}
		Expect(refusedCreates(ctx)-before).To(BeZero(), "nothing may be tried before what it needs is there")
	}, NodeTimeout(2*time.Minute))
})

// refusedCreates returns how often targets have refused an apply because something was missing.
func refusedCreates(ctx context.Context) (total float64) {
	GinkgoHelper()
	samples, err := hub.Metrics(ctx)
	Expect(err).NotTo(HaveOccurred())
	for sample, count := range samples {
		if strings.HasPrefix(sample, "synchub_requests_total{") && strings.Contains(sample, `code="404"`) &&
			strings.Contains(sample, `destination="target"`) && strings.Contains(sample, `verb="apply"`) {
			total += count
		}
	}
	return total
}
