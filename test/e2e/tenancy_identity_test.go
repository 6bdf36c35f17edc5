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
	"strings"

	"github.com/kcp-dev/logicalcluster/v3"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/tenancy"
	"github.com/synchub-dev/synchub/test/framework"
)

var resourceQuotas = schema.GroupVersionResource{Version: "v1", Resource: "resourcequotas"}

// tenantsOnly is a ClusterRole of workspaces, and a policy that lets nobody else create Deployments in their namespaces.
func tenantsOnly(name string) string { //nolint:unparam // the name belongs to the spec
	return fmt.Sprintf(`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: %[1]s}
rules:
- {apiGroups: [apps], resources: [deployments], verbs: [create, patch, delete]}
- {apiGroups: [""], resources: [configmaps], verbs: [create, patch, delete]}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: %[1]s}
spec:
  matchConstraints:
    namespaceSelector: {matchLabels: {spec: %[1]s}}
    resourceRules: [{apiGroups: [apps], apiVersions: [v1], operations: [CREATE], resources: [deployments]}]
  validations:
  - expression: "request.userInfo.username.startsWith('system:serviceaccount:synchub-tenants:')"
    message: only tenants write here
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: %[1]s}
spec: {policyName: %[1]s, validationActions: [Deny]}
`, name)
}

var _ = Describe("an identity per workspace", thorough, Label("placement"), func() {
	It("lets the cluster decide what a workspace may do, and leaves the hub without rights to write workloads", func(ctx SpecContext) {
		const ns = "tenant-identity"
		inventory, workload := newInventory(ctx, ns), newWorkload(ctx, ns+"-workload")
		admin := userOf(ctx, inventory)
		cluster := target("florin")
		apply(ctx, cluster, tenantsOnly(ns))
		DeferCleanup(func(ctx SpecContext) {
			for _, kind := range []string{"validatingadmissionpolicybindings", "validatingadmissionpolicies"} {
				remove(ctx, cluster, schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: kind}, "", ns)
			}
			remove(ctx, cluster, schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"}, "", ns)
		})

		By("the operator registers a cluster for tenants")
		kubeconfig := []string{"--target-kubeconfig", clusters["florin"].Kubeconfig}
		registered := admin.succeeds(ctx, append([]string{"synchub", "register", ns, "--labels", "env=prod", "--tenancy", "PerWorkspace", "--tenant-role", ns, "--yes"}, kubeconfig...)...)
		Expect(registered.errs).To(ContainSubstring("Workspaces get the ClusterRole " + ns + " in their own namespaces."))
		Expect(framework.Condition(ctx, inventory.Config, syncTargets, "", ns, "SyncerAuthorized")).To(Equal("True"))
		patch(ctx, inventory.Config, syncTargets, "", ns, fmt.Sprintf(`{"spec": {"deletionPolicy": "Delete", "tenancy": {"namespaceLabels": {"spec": %q}, "resourceQuota": {"hard": {"count/configmaps": "10"}}}}}`, ns))
		apply(ctx, inventory.Config, location("prod", "prod", workload.Path))

		By("a team places what its role allows, and a Secret")
		eventuallyPlaced(ctx, workload, documents(namespace("shop"), configMap("shop", "settings", "x"), `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: main, image: example.org/web:1}]}
---
apiVersion: v1
kind: Secret
metadata: {name: password, namespace: shop}
stringData: {a: b}
`, placementOn("shop", "shop")))
		logicalCluster := logicalcluster.Name(value(ctx, workload.Config, namespaces, "", "shop", "metadata", "annotations", logicalcluster.AnnotationKey))
		hash := tenancy.WorkspaceHash(logicalCluster)
		theirs := "shop-" + hash
		eventuallyExists(ctx, cluster, configMaps, theirs, "settings")
		Eventually(framework.Condition).WithContext(ctx).WithArguments(cluster, deployments, theirs, "web", "Available").Should(Equal("True"))
		Expect(value(ctx, cluster, namespaces, "", theirs, "metadata", "labels", "synchub.dev/workspace")).To(Equal(hash))
		Expect(value(ctx, cluster, roleBindings, theirs, "synchub-tenant", "roleRef", "name")).To(Equal(ns))
		Expect(framework.Exists(ctx, cluster, resourceQuotas, theirs, "synchub-tenant")).To(BeTrue())
		Expect(framework.Exists(ctx, cluster, serviceAccounts.GroupVersionResource, "synchub-tenants", hash)).To(BeTrue())

		By("the cluster denies the Secret, and the team reads that with the cluster's words")
		Eventually(value).WithContext(ctx).WithArguments(workload.Config, edgePlacements, "", "shop", "status", "failures").Should(And(
			ContainSubstring("reason:Forbidden"), ContainSubstring(`"system:serviceaccount:synchub-tenants:`+hash+`" cannot patch resource "secrets"`)))
		Expect(framework.Exists(ctx, cluster, secrets, theirs, "password")).To(BeFalse())

		By("an object that the role may not remove is reported until it may")
		noDelete := strings.Replace(tenantsOnly(ns), "resources: [configmaps], verbs: [create, patch, delete]", "resources: [configmaps], verbs: [create, patch]", 1)
		apply(ctx, cluster, noDelete)
		remove(ctx, workload.Config, configMaps, "shop", "settings")
		Eventually(value).WithContext(ctx).WithArguments(workload.Config, edgePlacements, "", "shop", "status", "failures").Should(And(
			MatchRegexp(`clusterNamespace:%s message:the target does not let system:serviceaccount:synchub-tenants:%s remove the object`, theirs, hash),
			ContainSubstring("name:settings namespace:shop reason:"+plan.ReasonCannotWithdraw), ContainSubstring("syncTarget:"+ns)))
		apply(ctx, cluster, tenantsOnly(ns))
		patch(ctx, inventory.Config, syncTargets, "", ns, `{"spec": {"tenancy": {"resourceQuota": {"hard": {"count/configmaps": "11"}}}}}`)
		eventuallyGone(ctx, cluster, configMaps, theirs, "settings")
		Eventually(value).WithContext(ctx).WithArguments(workload.Config, edgePlacements, "", "shop", "status", "failures").ShouldNot(ContainSubstring(plan.ReasonCannotWithdraw))
		apply(ctx, workload.Config, configMap("shop", "settings", "y"))
		eventuallyExists(ctx, cluster, configMaps, theirs, "settings")

		By("the administrator allows it")
		apply(ctx, cluster, tenantsOnly(ns)+fmt.Sprintf(`
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: edit, namespace: %s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: edit}
subjects: [{kind: ServiceAccount, namespace: synchub-tenants, name: %s}]
`, theirs, hash))
		patch(ctx, workload.Config, secrets, "shop", "password", `{"metadata": {"labels": {"try": "again"}}}`)
		eventuallyExists(ctx, cluster, secrets, theirs, "password")
		Eventually(readyStatus).WithContext(ctx).WithArguments(workload, "shop").Should(Equal("True"))

		By("the team withdraws everything")
		remove(ctx, workload.Config, edgePlacements, "", "shop")
		for _, gone := range []struct {
			resource schema.GroupVersionResource
			name     string
		}{{deployments, "web"}, {configMaps, "settings"}, {secrets, "password"}} {
			eventuallyGone(ctx, cluster, gone.resource, theirs, gone.name)
		}

		By("the operator removes the cluster")
		admin.succeeds(ctx, append([]string{"synchub", "unregister", ns, "--yes"}, kubeconfig...)...)
		Expect(framework.Exists(ctx, cluster, serviceAccounts.GroupVersionResource, "synchub-tenants", hash)).To(BeFalse())
		Expect(framework.Exists(ctx, cluster, roleBindings, theirs, "synchub-tenant")).To(BeFalse())
		Expect(madeFor(ctx, "florin", ns)).To(BeEmpty())
		remove(ctx, cluster, namespaces, "", theirs)
	})
})
