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
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/explain"
	"github.com/synchub-dev/synchub/test/framework"
)

// wholeApplication is an application with the objects that public manifests have beside workloads. Its webhook and its policy match
// nothing.
const wholeApplication = `
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: whole, namespace: %[1]s}
rules: [{apiGroups: [""], resources: [configmaps], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: whole, namespace: %[1]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: whole}
subjects: [{kind: ServiceAccount, name: default, namespace: %[1]s}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: %[1]s, labels: {part-of: %[1]s-all}}
rules: [{apiGroups: [""], resources: [nodes], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: %[1]s-all}
aggregationRule: {clusterRoleSelectors: [{matchLabels: {part-of: %[1]s-all}}]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: %[1]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: %[1]s}
subjects: [{kind: User, apiGroup: rbac.authorization.k8s.io, name: nobody}]
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: whole, namespace: %[1]s}
spec: {maxReplicas: 3, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: whole}}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: whole, namespace: %[1]s}
spec: {minAvailable: 1, selector: {matchLabels: {app: whole}}}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: whole, namespace: %[1]s}
spec: {podSelector: {}, policyTypes: [Ingress]}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: whole, namespace: %[1]s}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: v1
kind: ResourceQuota
metadata: {name: whole, namespace: %[1]s}
spec: {hard: {configmaps: "10"}}
---
apiVersion: v1
kind: LimitRange
metadata: {name: whole, namespace: %[1]s}
spec: {limits: [{type: Container, default: {cpu: 100m}}]}
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: %[1]s}
value: 7
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: %[1]s}
webhooks:
- name: whole.example.com
  admissionReviewVersions: [v1]
  sideEffects: None
  failurePolicy: Fail
  clientConfig: {service: {name: whole, namespace: %[1]s}}
  rules: [{apiGroups: [%[1]s.example.com], apiVersions: [v1], operations: [CREATE], resources: [wholes]}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: %[1]s}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [%[1]s.example.com], apiVersions: [v1], operations: [CREATE], resources: [wholes]}]}
  validations: [{expression: "false"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: %[1]s}
spec: {policyName: %[1]s, validationActions: [Deny]}
`

// twinOf returns the twin that mailboxes have of a resource.
func twinOf(resource schema.GroupVersionResource) schema.GroupVersionResource {
	resource.Group = "denatured.synchub.dev"
	return resource
}

var _ = Describe("APIs that act inside kcp", Label("placement"), func() {
	It("go down whole, as inert twins in the mailbox, and are withdrawn", func(ctx SpecContext) {
		const ns = "placement-whole"
		publish(ctx, claims)
		inventory, workload := newInventory(ctx, ns), newWorkload(ctx, ns+"-workload")
		Expect(inventory.Register(ctx, "florin", kubeconfigOf("florin"), map[string]string{"env": "prod"})).To(Succeed())
		apply(ctx, inventory.Config, location("prod", "prod", workload.Path))
		cluster, mailbox := target("florin"), mailboxOf(ctx, inventory, "florin")
		admission := schema.GroupVersion{Group: "admissionregistration.k8s.io", Version: "v1"}
		acting := map[schema.GroupVersionResource][]string{
			accessV1.WithResource("roles"): {ns, "whole"}, accessV1.WithResource("rolebindings"): {ns, "whole"},
			accessV1.WithResource("clusterroles"): {"", ns}, accessV1.WithResource("clusterrolebindings"): {"", ns},
			quotasOfClusters: {ns, "whole"}, {Version: "v1", Resource: "limitranges"}: {ns, "whole"},
			admission.WithResource("validatingwebhookconfigurations"): {"", ns},
			admissionPolicies: {"", ns}, policyBindings: {"", ns},
		}
		plain := map[schema.GroupVersionResource][]string{
			{Group: "autoscaling", Version: "v2", Resource: "horizontalpodautoscalers"}: {ns, "whole"},
			{Group: "policy", Version: "v1", Resource: "poddisruptionbudgets"}:          {ns, "whole"},
			{Group: "networking.k8s.io", Version: "v1", Resource: "networkpolicies"}:    {ns, "whole"},
			{Group: "scheduling.k8s.io", Version: "v1", Resource: "priorityclasses"}:    {"", ns},
			claims.GroupVersionResource: {ns, "whole"},
		}

		By("one EdgePlacement, with the chart's PublishedResources alone")
		eventuallyPlaced(ctx, workload, documents(namespace(ns), fmt.Sprintf(wholeApplication, ns), fmt.Sprintf(`
apiVersion: edge.kubestellar.io/v2alpha1
kind: EdgePlacement
metadata: {name: shop}
spec:
  locationSelectors: [{matchLabels: {env: prod}}]
  downsync:
  - {namespaces: [%[1]s]}
  - {resources: [clusterroles, clusterrolebindings, priorityclasses, validatingwebhookconfigurations, validatingadmissionpolicies, validatingadmissionpolicybindings], objectNames: [%[1]s, %[1]s-all]}
`, ns)))
		for _, group := range []map[schema.GroupVersionResource][]string{acting, plain} {
			for resource, name := range group {
				eventuallyExists(ctx, cluster, resource, name[0], name[1])
			}
		}
		Eventually(readyStatus).WithContext(ctx).WithArguments(workload, "shop").Should(Equal("True"))
		// The cluster aggregates from its own roles.
		Eventually(value).WithContext(ctx).WithArguments(cluster, accessV1.WithResource("clusterroles"), "", ns+"-all", "rules").Should(ContainSubstring("nodes"))

		By("which have no effect in the mailbox")
		for resource, name := range acting {
			Expect(framework.Exists(ctx, mailbox, twinOf(resource), name[0], name[1])).To(BeTrue(), resource.Resource)
			Expect(framework.Exists(ctx, mailbox, resource, name[0], name[1])).To(BeFalse(), resource.Resource)
		}
		Expect(value(ctx, mailbox, twinOf(accessV1.WithResource("clusterroles")), "", ns+"-all", "rules")).To(BeEmpty())
		eventuallyHas(ctx, mailbox, twinOf(quotasOfClusters), ns, "whole", "10", "status", "hard", "configmaps")

		By("and are explained by the names that their users know")
		for _, named := range []string{"roles", "resourcequotas", "roles.rbac.authorization.k8s.io"} {
			Eventually(explained).WithContext(ctx).WithArguments(inventory, "florin", named, ns+"/whole").Should(comesTo(explain.Present, explain.OK, ""))
		}
		Expect(runPlugin(ctx, workload.Path, "explain", "florin", "clusterroles", ns)).To(ContainSubstring(ns + " is on florin"))

		By("and follow changes, while other people's changes on the cluster are undone")
		patch(ctx, workload.Config, accessV1.WithResource("roles"), ns, "whole", `{"rules": [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}]}`)
		Eventually(value).WithContext(ctx).WithArguments(cluster, accessV1.WithResource("roles"), ns, "whole", "rules").Should(ContainSubstring("secrets"))
		patch(ctx, cluster, accessV1.WithResource("clusterrolebindings"), "", ns, `{"subjects": []}`)
		Eventually(value).WithContext(ctx).WithArguments(cluster, accessV1.WithResource("clusterrolebindings"), "", ns, "subjects").Should(ContainSubstring("nobody"))
		remove(ctx, cluster, quotasOfClusters, ns, "whole")
		eventuallyExists(ctx, cluster, quotasOfClusters, ns, "whole")

		By("a user of the mailbox makes a twin by hand")
		apply(ctx, mailbox, documents(fmt.Sprintf(`
apiVersion: denatured.synchub.dev/v1
kind: Role
metadata: {name: by-hand, namespace: %s}
rules: [{apiGroups: [""], resources: [pods], verbs: [list]}]
`, ns), selecting(ns, twinOf(accessV1.WithResource("roles")))))
		Eventually(value).WithContext(ctx).WithArguments(cluster, accessV1.WithResource("roles"), ns, "by-hand", "rules").Should(ContainSubstring("pods"))
		remove(ctx, mailbox, twinOf(accessV1.WithResource("roles")), ns, "by-hand")
		eventuallyGone(ctx, cluster, accessV1.WithResource("roles"), ns, "by-hand")

		By("nothing is written at rest, and everything is withdrawn")
		quiet(ctx)
		remove(ctx, workload.Config, edgePlacements, "", "shop")
		for _, group := range []map[schema.GroupVersionResource][]string{acting, plain} {
			for resource, name := range group {
				eventuallyGone(ctx, cluster, resource, name[0], name[1])
			}
		}
		for resource, name := range acting {
			eventuallyGone(ctx, mailbox, twinOf(resource), name[0], name[1])
			Expect(framework.Exists(ctx, workload.Config, resource, name[0], name[1])).To(BeTrue(), resource.Resource)
		}
	}, NodeTimeout(5*time.Minute))
})
