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
	"fmt"
	"maps"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/placement/rules"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/test/framework"
)

// hostileActs are attacks on other teams; each returns manifests.
var hostileActs = []func(victim *team, stolen *unstructured.Unstructured) string{
	forgeMarks, collideNamespaces, escapePodSecurity, bindOthers, overrunQuota,
}

// forgeMarks copies the labels and annotations of a victim's copy on the cluster, and writes the labels of its namespace.
func forgeMarks(victim *team, stolen *unstructured.Unstructured) string {
	labels, _ := json.Marshal(stolen.GetLabels())
	annotations, _ := json.Marshal(stolen.GetAnnotations())
	unmarked := maps.Clone(stolen.GetAnnotations())
	delete(unmarked, ownership.MarkAnnotation)
	others, _ := json.Marshal(unmarked)
	return fmt.Sprintf(`
apiVersion: v1
kind: ConfigMap
metadata: {name: forged, namespace: shop, labels: %[1]s, annotations: %[2]s}
data: {entry: forged}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: disguised, namespace: shop, labels: %[1]s, annotations: %[3]s}
data: {entry: disguised}
---
apiVersion: v1
kind: Namespace
metadata:
  name: shop
  labels: {synchub.dev/workspace: %[4]q}
  annotations: {%[5]s: %[6]q}
`, labels, annotations, others, victim.hash, edgev2alpha1.AnnotationWorkspacePath, victim.Path)
}

// collideNamespaces has namespaces with the names of the victim's namespace on the cluster, and of the hub's own namespace there.
func collideNamespaces(victim *team, _ *unstructured.Unstructured) string {
	all := []string{}
	for _, name := range []string{victim.theirs(shop), edgev2alpha1.TenantsNamespace} {
		all = append(all, namespace(name), configMap(name, "settings", "collides"), placementOn(name, name))
	}
	return documents(all...)
}

// escapePodSecurity has the labels that let privileged Pods run, and a Deployment that needs them.
func escapePodSecurity(*team, *unstructured.Unstructured) string {
	return `
apiVersion: v1
kind: Namespace
metadata: {name: shop, labels: {` + podSecurity + `: privileged, pod-security.kubernetes.io/enforce-version: latest}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: privileged, namespace: shop}
spec:
  selector: {matchLabels: {app: privileged}}
  template:
    metadata: {labels: {app: privileged}}
    spec: {hostNetwork: true, containers: [{name: main, image: example.org/root:1}]}
`
}

// bindOthers gives rights to itself and to the victim's ServiceAccount, everywhere.
func bindOthers(victim *team, _ *unstructured.Unstructured) string {
	return fmt.Sprintf(`
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: escalates, namespace: shop}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{kind: ServiceAccount, name: web, namespace: shop}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: others, namespace: shop}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: edit}
subjects: [{kind: ServiceAccount, name: %[2]q, namespace: synchub-tenants}, {kind: ServiceAccount, name: web, namespace: %[1]q}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: hostile-binding}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{kind: ServiceAccount, name: web, namespace: shop}]
---
apiVersion: edge.kubestellar.io/v2alpha1
kind: EdgePlacement
metadata: {name: bindings}
spec:
  locationSelectors: [{matchLabels: {env: prod}}]
  downsync: [{apiGroup: rbac.authorization.k8s.io, resources: [clusterrolebindings], objectNames: [hostile-binding]}]
`, victim.theirs(shop), victim.hash)
}

// overrunQuota has more Secrets than the quota allows, and a larger quota.
func overrunQuota(*team, *unstructured.Unstructured) string {
	all := []string{`
apiVersion: v1
kind: ResourceQuota
metadata: {name: synchub-tenant, namespace: shop}
spec: {hard: {count/secrets: "100"}}
`}
	for i := range secretsQuota + 2 {
		all = append(all, fmt.Sprintf(`
apiVersion: v1
kind: Secret
metadata: {name: over-%d, namespace: shop}
`, i))
	}
	return documents(all...)
}

// victimOf returns the number of the team that a hostile team attacks.
func (s *hostileTeams) victimOf(hostile int) int { return (hostile + 1) % len(s.teams) }

// attack makes the first team do all that is hostile.
func (s *hostileTeams) attack(ctx context.Context) {
	GinkgoHelper()
	hostile, victim := s.teams[0], s.teams[s.victimOf(0)]
	stolen, err := framework.Get(ctx, target("florin"), configMaps, victim.theirs(shop), "settings")
	Expect(err).NotTo(HaveOccurred())
	for _, act := range hostileActs {
		apply(ctx, hostile.Config, act(victim, stolen))
	}
	cluster := target("florin")

	By("an object with a stolen mark is not placed, and with the other annotations it is an ordinary one")
	Eventually(value).WithArguments(ctx, cluster, configMaps, hostile.theirs(shop), "disguised", "data", "entry").Should(Equal("disguised"))
	Expect(framework.Exists(ctx, cluster, configMaps, hostile.theirs(shop), "forged")).To(BeFalse())
	By("a namespace that has the name of the victim's namespace gets a name of its own, and one like the hub's own gets nothing")
	Eventually(value).WithArguments(ctx, cluster, configMaps, hostile.theirs(victim.theirs(shop)), "settings", "data", "entry").Should(Equal("collides"))
	Eventually(value).WithArguments(ctx, hostile.Config, edgePlacements, "", edgev2alpha1.TenantsNamespace, "status", "failures").Should(ContainSubstring("protected"))
	Expect(framework.Exists(ctx, cluster, configMaps, edgev2alpha1.TenantsNamespace, "settings")).To(BeFalse())
	By("a Deployment in the network of the nodes has no Pods")
	eventuallyExists(ctx, cluster, deployments, hostile.theirs(shop), "privileged")
	Eventually(value).WithArguments(ctx, cluster, deployments, hostile.theirs(shop), "privileged", "status", "conditions").Should(ContainSubstring("violates PodSecurity"))
	By("the cluster denies rights that the team does not have, and a binding for others is one in its own namespaces")
	failures := func() string {
		return value(ctx, hostile.Config, edgePlacements, "", shop, "status", "failures")
	}
	Eventually(failures).Should(And(ContainSubstring("name:escalates"), ContainSubstring(plan.ReasonForbidden), ContainSubstring("exceeded quota")))
	Eventually(value).WithArguments(ctx, cluster, roleBindings, hostile.theirs(shop), "others", "subjects").
		Should(And(ContainSubstring("namespace:"+hostile.theirs(edgev2alpha1.TenantsNamespace)), ContainSubstring("namespace:"+hostile.theirs(victim.theirs(shop)))))
	Expect(framework.Exists(ctx, cluster, roleBindings, hostile.theirs(shop), "escalates")).To(BeFalse())
	Eventually(value).WithArguments(ctx, hostile.Config, edgePlacements, "", "bindings", "status", "failures").Should(ContainSubstring(rules.ReasonClusterScoped))
	By("the quota of the administrator counts")
	secretsThere := func() (count int, err error) {
		found, err := framework.List(ctx, cluster, secrets, hostile.theirs(shop), "")
		return len(found), err
	}
	Eventually(secretsThere).Should(Equal(secretsQuota))
	Expect(value(ctx, cluster, resourceQuotas, hostile.theirs(shop), "synchub-tenant", "spec", "hard")).To(Equal(fmt.Sprintf("map[count/secrets:%d]", secretsQuota)))

	By("nobody else is affected, and nobody learns of it")
	s.expectSeparate(ctx)
	s.expectSecrecy(ctx)
	for _, arguments := range [][]string{{"describe", "placement", shop}, {"describe", "placement", victim.theirs(shop)}, {"explain", s.name, "configmaps", shop + "/forged"}, {"explain", s.name, "configmaps", victim.theirs(shop) + "/settings"}} {
		Expect(runPlugin(ctx, hostile.Path, arguments...)).NotTo(Or(ContainSubstring(victim.name), ContainSubstring(victim.cluster)), "%v", arguments)
	}
}
