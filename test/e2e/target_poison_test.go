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
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/synchub-dev/synchub/test/framework"
)

var (
	clusterRoles      = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"}
	admissionPolicies = schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingadmissionpolicies"}
	policyBindings    = schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingadmissionpolicybindings"}
)

// noPoison returns an admission policy that denies some ConfigMaps of a namespace, and the deletion of one.
func noPoison(namespace string) string {
	return fmt.Sprintf(`
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: %[1]s}
spec:
  matchConstraints:
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %[1]s}}
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE, UPDATE, DELETE], resources: [configmaps]}]
  validations:
  - {expression: "request.operation != 'DELETE' || oldObject.metadata.name != 'kept'", message: this one must stay}
  - {expression: "request.operation == 'DELETE' || !has(object.data) || !('entry' in object.data) || object.data.entry != 'poison'", message: nothing poisonous here}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: %[1]s}
spec: {policyName: %[1]s, validationActions: [Deny]}
`, namespace)
}

var _ = Describe("targets: rejected objects", func() {
	It("are reported by name, and do not affect other objects", thorough, Label("faults"), func(ctx SpecContext) {
		const ns, good = "poison", 50
		florin, mailbox := target("florin"), sharedMailbox(ctx, "florin")
		publish(ctx, services)
		apply(ctx, florin, documents(namespace(ns), noPoison(ns)))
		DeferCleanup(func(ctx SpecContext) {
			remove(ctx, florin, policyBindings, "", ns)
			remove(ctx, florin, admissionPolicies, "", ns)
		})
		cluster, err := dynamic.NewForConfig(florin)
		Expect(err).NotTo(HaveOccurred())
		Eventually(func() bool {
			probe := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "probe"}, "data": map[string]any{"entry": "poison"},
			}}
			_, err := cluster.Resource(configMaps).Namespace(ns).Create(ctx, probe, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			return apierrors.IsInvalid(err)
		}).WithContext(ctx).Should(BeTrue(), "the policy must be in force")

		By("rejecting each with a reason")
		apply(ctx, mailbox, documents(namespace(ns), configMap(ns, "denied", "poison"), configMap(ns, "large", "x"), deployment(ns, "invalid"), fmt.Sprintf(`
apiVersion: v1
kind: Service
metadata: {name: not.a.label, namespace: %s}
spec: {ports: [{port: 80}]}
`, ns), selecting(ns, configMaps, deployments, services.GroupVersionResource)))
		// The mailbox accepts this annotation. The target does not, since the hub's mark is added to it.
		patch(ctx, mailbox, configMaps, ns, "large", fmt.Sprintf(`{"metadata": {"annotations": {"note": %q}}}`, strings.Repeat("x", 261900)))
		patch(ctx, mailbox, deployments, ns, "invalid", `{"spec": {"template": {"metadata": {"labels": {"app": "unlike the selector"}}}}}`)
		refused := ConsistOf("AdmissionDenied denied", "TooLarge large", "Invalid invalid", "Invalid not.a.label")
		Eventually(failures).WithContext(ctx).WithArguments(mailbox, ns).Should(refused)
		Expect(failureMessage(ctx, mailbox, ns, "denied")).To(ContainSubstring("nothing poisonous here"))
		Expect(failureMessage(ctx, mailbox, ns, "invalid")).To(ContainSubstring("spec.template.metadata.labels"))
		Expect(failureMessage(ctx, mailbox, ns, "not.a.label")).To(ContainSubstring("metadata.name"))

		By("placing all other objects")
		fill(ctx, mailbox, ns, "good-", good)
		Eventually(func() int { return len(identities(ctx, florin, configMaps, ns, "good-")) }).WithContext(ctx).WithTimeout(20 * time.Second).Should(Equal(good))
		for i := range good {
			patch(ctx, mailbox, configMaps, ns, fmt.Sprintf("good-%d", i), `{"data": {"number": "changed"}}`)
		}
		Eventually(func() int {
			objects, err := framework.List(ctx, florin, configMaps, ns, "")
			Expect(err).NotTo(HaveOccurred())
			changed := 0
			for _, object := range objects {
				if number, _, _ := unstructured.NestedString(object.Object, "data", "number"); number == "changed" {
					changed++
				}
			}
			return changed
		}).WithContext(ctx).WithTimeout(20 * time.Second).Should(Equal(good))
		Eventually(value).WithContext(ctx).WithArguments(mailbox, syncerConfigs, "", ns, "status", "synced").Should(Equal(fmt.Sprint(good)))
		Expect(failures(ctx, mailbox, ns)).To(refused)
		By("recording one event on each of them")
		for name, reason := range map[string]string{"denied": "AdmissionDenied", "large": "TooLarge", "invalid": "Invalid", "not.a.label": "Invalid"} {
			Eventually(func() []string { return reasons(ctx, mailbox, ns, name) }).WithContext(ctx).Should(ConsistOf(reason))
		}
		By("reporting an object that must not be deleted, while that lasts")
		apply(ctx, mailbox, configMap(ns, "kept", "x"))
		eventuallyExists(ctx, florin, configMaps, ns, "kept")
		remove(ctx, mailbox, configMaps, ns, "kept")
		Eventually(failures).WithContext(ctx).WithArguments(mailbox, ns).Should(ContainElement("AdmissionDenied kept"))
		Consistently(failures).WithContext(ctx).WithArguments(mailbox, ns).WithTimeout(2 * time.Second).Should(ContainElement("AdmissionDenied kept"))
		Expect(failureMessage(ctx, mailbox, ns, "kept")).To(ContainSubstring("this one must stay"))
		remove(ctx, florin, policyBindings, "", ns)
		eventuallyGone(ctx, florin, configMaps, ns, "kept")

		By("syncing a corrected object")
		patch(ctx, mailbox, configMaps, ns, "denied", `{"data": {"entry": "harmless"}}`)
		eventuallyExists(ctx, florin, configMaps, ns, "denied")
		Eventually(failures).WithContext(ctx).WithArguments(mailbox, ns).Should(ConsistOf("TooLarge large", "Invalid invalid", "Invalid not.a.label"))
	}, NodeTimeout(3*time.Minute))
})
