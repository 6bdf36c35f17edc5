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
	"encoding/base64"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/synchub-dev/synchub/test/framework"
)

var _ = Describe("targets: objects that belong to the cluster", func() {
	It("are never synced by a wildcard, and by name only where the hub owns them", thorough, func(ctx SpecContext) {
		const ns = "own-objects"
		inventory := newInventory(ctx, ns)
		florin, mailbox := target("florin"), register(ctx, inventory, "florin", "florin")
		publish(ctx, serviceAccounts)
		apply(ctx, mailbox, documents(namespace(ns), namespace("kube-system"), fmt.Sprintf(`
apiVersion: v1
kind: ConfigMap
metadata: {name: kube-root-ca.crt, namespace: %[1]s, labels: {from: mailbox}}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: default, namespace: %[1]s, labels: {from: mailbox}}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: robot, namespace: %[1]s}
---
apiVersion: v1
kind: Secret
metadata: {name: robot-token, namespace: %[1]s, annotations: {kubernetes.io/service-account.name: robot}}
type: kubernetes.io/service-account-token
---
apiVersion: v1
kind: Secret
metadata: {name: bootstrap-token-abcdef, namespace: %[1]s}
type: bootstrap.kubernetes.io/token
stringData: {token-id: abcdef}
---
apiVersion: v1
kind: Secret
metadata: {name: pull, namespace: %[1]s, annotations: {openshift.io/token-secret.name: robot-token}}
type: kubernetes.io/dockerconfigjson
stringData: {.dockerconfigjson: "{}"}
`, ns), configMap("kube-system", ns, "never"), configMap(ns, "settings", "green"), `
apiVersion: edge.kubestellar.io/v2alpha1
kind: SyncerConfig
metadata: {name: everything}
spec:
  namespaceScope:
    namespaces: ["*"]
    resources:
    - {group: "", resource: configmaps, apiVersion: v1}
    - {group: "", resource: secrets, apiVersion: v1}
    - {group: "", resource: serviceaccounts, apiVersion: v1}
`))
		By("rejecting objects that only their own cluster can use, and syncing the rest")
		eventuallyExists(ctx, florin, configMaps, ns, "settings")
		eventuallyExists(ctx, florin, serviceAccounts.GroupVersionResource, ns, "robot")
		Eventually(failures).WithContext(ctx).WithArguments(mailbox, "everything").Should(ConsistOf("Invalid pull"))
		Expect(failureMessage(ctx, mailbox, "everything", "pull")).To(ContainSubstring("openshift.io/token-secret.name"))
		eventuallyExists(ctx, florin, configMaps, ns, "kube-root-ca.crt")
		eventuallyExists(ctx, florin, serviceAccounts.GroupVersionResource, ns, "default")
		staysFor(ctx, func() string {
			return fmt.Sprintf("%v %v %q %q", identities(ctx, florin, secrets, ns, ""), identities(ctx, florin, configMaps, "kube-system", ns),
				value(ctx, florin, configMaps, ns, "kube-root-ca.crt", "metadata", "labels"),
				value(ctx, florin, serviceAccounts.GroupVersionResource, ns, "default", "metadata", "labels"))
		}, `map[] map[] "" ""`)

		By("reporting a conflict for a named object that belongs to the target")
		apply(ctx, mailbox, fmt.Sprintf(`
apiVersion: edge.kubestellar.io/v2alpha1
kind: SyncerConfig
metadata: {name: named}
spec:
  namespacedObjects:
  - {group: "", resource: configmaps, apiVersion: v1, objectsByNamespace: [{namespace: %[1]s, names: [kube-root-ca.crt]}]}
  - {group: "", resource: serviceaccounts, apiVersion: v1, objectsByNamespace: [{namespace: %[1]s, names: [default]}]}
  - {group: "", resource: secrets, apiVersion: v1, objectsByNamespace: [{namespace: %[1]s, names: [robot-token]}]}
`, ns))
		Eventually(failures).WithContext(ctx).WithArguments(mailbox, "named").Should(ConsistOf("Conflict kube-root-ca.crt", "Conflict default"))
		Expect(value(ctx, florin, configMaps, ns, "kube-root-ca.crt", "metadata", "labels")).To(BeEmpty())
		Expect(value(ctx, florin, serviceAccounts.GroupVersionResource, ns, "default", "metadata", "labels")).To(BeEmpty())
		By("keeping the token that the target fills into a named Secret")
		token := func() string {
			data, err := base64.StdEncoding.DecodeString(value(ctx, florin, secrets, ns, "robot-token", "data", "token"))
			Expect(err).NotTo(HaveOccurred())
			return string(data)
		}
		Eventually(token).WithContext(ctx).ShouldNot(BeEmpty())
		filled := token()
		config := rest.AnonymousClientConfig(florin)
		config.BearerToken = filled
		client, err := kubernetes.NewForConfig(config)
		Expect(err).NotTo(HaveOccurred())
		review, err := client.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(review.Status.UserInfo.Username).To(Equal("system:serviceaccount:" + ns + ":robot"))
		staysFor(ctx, token, filled)
	}, NodeTimeout(3*time.Minute))

	It("are kept in a namespace, whether the hub created, found or synced it", func(ctx SpecContext) {
		const made, found = "namespace-made", "namespace-found"
		florin, mailbox := target("florin"), sharedMailbox(ctx, "florin")
		foreign := `{"metadata": {"labels": {"team": "theirs"}, "annotations": {"note": "theirs"}}}`
		label := func(namespace, key string) string {
			return value(ctx, florin, namespaces, "", namespace, "metadata", "labels", key)
		}
		keepsForeign := func(namespace string) {
			GinkgoHelper()
			Expect(label(namespace, "team")).To(Equal("theirs"))
			Expect(value(ctx, florin, namespaces, "", namespace, "metadata", "annotations", "note")).To(Equal("theirs"))
			Expect(value(ctx, florin, namespaces, "", namespace, "status", "phase")).To(Equal("Active"))
		}
		apply(ctx, florin, documents(namespace(found), configMap(found, "theirs", "x")))
		patch(ctx, florin, namespaces, "", found, foreign)
		untouched := value(ctx, florin, namespaces, "", found, "metadata", "resourceVersion")
		for _, ns := range []string{made, found} {
			apply(ctx, mailbox, documents(namespace(ns), configMap(ns, "settings", "green"), everythingIn(ns)))
			eventuallyExists(ctx, florin, configMaps, ns, "settings")
			patch(ctx, mailbox, namespaces, "", ns, `{"metadata": {"labels": {"colour": "green", "team": "ours"}}}`)
		}
		patch(ctx, florin, namespaces, "", made, foreign)
		apply(ctx, florin, configMap(made, "theirs", "x"))

		By("downsyncing a selected namespace, unless it is somebody else's")
		patch(ctx, mailbox, namespaces, "", made, `{"metadata": {"labels": {"team": null}}}`)
		apply(ctx, mailbox, fmt.Sprintf(`
apiVersion: edge.kubestellar.io/v2alpha1
kind: SyncerConfig
metadata: {name: namespaces}
spec:
  clusterScope:
  - {group: "", resource: namespaces, apiVersion: v1, objects: [%s, %s]}
`, made, found))
		Eventually(label).WithContext(ctx).WithArguments(made, "colour").Should(Equal("green"))
		Eventually(failures).WithContext(ctx).WithArguments(mailbox, "namespaces").Should(ConsistOf("Conflict " + found))
		keepsForeign(made)
		patch(ctx, mailbox, namespaces, "", made, `{"metadata": {"labels": {"colour": null}}}`)
		Eventually(label).WithContext(ctx).WithArguments(made, "colour").Should(BeEmpty())
		keepsForeign(made)

		By("keeping it when nothing is selected any more")
		for _, config := range []string{"namespaces", made, found} {
			remove(ctx, mailbox, syncerConfigs, "", config)
		}
		for _, ns := range []string{made, found} {
			eventuallyGone(ctx, florin, configMaps, ns, "settings")
			keepsForeign(ns)
			Expect(framework.Exists(ctx, florin, configMaps, ns, "theirs")).To(BeTrue())
		}
		Eventually(value).WithContext(ctx).WithArguments(florin, namespaces, "", made, "metadata", "annotations").ShouldNot(ContainSubstring("synchub.dev/mark"))
		Expect(label(made, ownerLabel)).To(BeEmpty())
		Expect(value(ctx, florin, namespaces, "", found, "metadata", "resourceVersion")).To(Equal(untouched))
	}, NodeTimeout(3*time.Minute))
})
