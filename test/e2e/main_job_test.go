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
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/framework/servers"
)

var (
	configMaps    = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	deployments   = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	namespaces    = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	secrets       = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	syncerConfigs = schema.GroupVersionResource{Group: "edge.kubestellar.io", Version: "v2alpha1", Resource: "syncerconfigs"}
)

// deployment returns a Deployment with a defaulted port protocol and a quantity that the target writes in another form.
func deployment(namespace, name string) string {
	return fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[2]s, namespace: %[1]s}
spec:
  replicas: 2
  selector: {matchLabels: {app: %[2]s}}
  template:
    metadata: {labels: {app: %[2]s}}
    spec:
      containers:
      - name: %[2]s
        image: registry.invalid/%[2]s:1
        ports: [{containerPort: 80}]
        resources: {requests: {cpu: 1000m}}
        volumeMounts: [{name: scratch, mountPath: /scratch}]
      volumes: [{name: scratch, emptyDir: {}}]
`, namespace, name)
}

func secret(namespace, name string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: Secret
metadata: {name: %s, namespace: %s}
stringData: {token: hunter2}
`, name, namespace)
}

// everythingIn returns a config that selects the ConfigMaps, Secrets and Deployments of a namespace.
func everythingIn(namespace string) string {
	return fmt.Sprintf(`
apiVersion: edge.kubestellar.io/v2alpha1
kind: SyncerConfig
metadata: {name: %[1]s}
spec:
  namespaceScope:
    namespaces: [%[1]s]
    resources:
    - {group: "", resource: configmaps, apiVersion: v1}
    - {group: "", resource: secrets, apiVersion: v1}
    - {group: apps, resource: deployments, apiVersion: v1}
`, namespace)
}

var _ = Describe("the main job", func() {
	It("keeps two targets in sync while a third one does not exist", func(ctx SpecContext) {
		const ns = "main-job"
		inventory := newInventory(ctx, ns)
		port, err := servers.FreePort()
		Expect(err).NotTo(HaveOccurred())
		Expect(inventory.Register(ctx, "nowhere", []byte(fmt.Sprintf(`
apiVersion: v1
kind: Config
current-context: nowhere
contexts: [{name: nowhere, context: {cluster: nowhere, user: nobody}}]
clusters: [{name: nowhere, cluster: {server: "https://127.0.0.1:%d"}}]
users: [{name: nobody, user: {token: none}}]
`, port)), nil)).To(Succeed())

		Expect(inventory.Register(ctx, "florin", kubeconfigOf("florin"), nil)).To(Succeed())
		// A SyncTarget may name the namespace of the Secret and its key.
		apply(ctx, inventory.Config, documents(namespace("vault"), fmt.Sprintf(`
apiVersion: v1
kind: Secret
metadata: {name: admin, namespace: vault, labels: {synchub.dev/credential: kubeconfig}, annotations: {synchub.dev/allowed-sync-targets: guilder}}
stringData:
  admin.yaml: |
    %s
`, strings.ReplaceAll(string(kubeconfigOf("guilder")), "\n", "\n    ")), `
apiVersion: edge.kubestellar.io/v2alpha1
kind: SyncTarget
metadata: {name: guilder}
spec: {allowSharedCluster: true, kubeconfigSecretRef: {namespace: vault, name: admin, key: admin.yaml}}
`))
		for _, name := range []string{"florin", "guilder"} {
			mailbox := mailboxOf(ctx, inventory, name)
			apply(ctx, mailbox, documents(namespace(ns), configMap(ns, "settings", "green on "+name), secret(ns, "token"), deployment(ns, "web"), everythingIn(ns)))
		}
		for _, name := range []string{"florin", "guilder"} {
			mailbox := mailboxOf(ctx, inventory, name)
			By("downsyncing all objects to " + name)
			Eventually(value).WithContext(ctx).WithArguments(target(name), configMaps, ns, "settings", "data", "entry").Should(Equal("green on " + name))
			Eventually(value).WithContext(ctx).WithArguments(target(name), secrets, ns, "token", "data", "token").Should(Equal("aHVudGVyMg=="))
			By("returning the status of " + name)
			Eventually(framework.Condition).WithContext(ctx).WithArguments(target(name), deployments, ns, "web", "Available").Should(Equal("True"))
			Eventually(framework.Condition).WithContext(ctx).WithArguments(mailbox, deployments, ns, "web", "Available").Should(Equal("True"))
			Eventually(framework.Condition).WithContext(ctx).WithArguments(mailbox, syncerConfigs, "", ns, "Ready").Should(Equal("True"))
			Eventually(value).WithContext(ctx).WithArguments(mailbox, syncerConfigs, "", ns, "status", "synced").Should(Equal("3"))
		}
		Eventually(framework.Condition).WithContext(ctx).WithArguments(inventory.Config, syncTargets, "", "nowhere", "HeartbeatHealthy").Should(Equal("False"))

		florin, mailbox := target("florin"), mailboxOf(ctx, inventory, "florin")
		By("following a change")
		patch(ctx, mailbox, configMaps, ns, "settings", `{"data": {"entry": "blue", "more": "yes"}}`)
		Eventually(value).WithContext(ctx).WithArguments(florin, configMaps, ns, "settings", "data", "more").Should(Equal("yes"))
		Expect(value(ctx, florin, configMaps, ns, "settings", "data", "entry")).To(Equal("blue"))
		patch(ctx, mailbox, configMaps, ns, "settings", `{"data": {"more": null}}`)
		Eventually(value).WithContext(ctx).WithArguments(florin, configMaps, ns, "settings", "data", "more").Should(BeEmpty())

		By("repairing an edited copy")
		patch(ctx, florin, configMaps, ns, "settings", `{"data": {"entry": "red"}}`)
		Eventually(value).WithContext(ctx).WithArguments(florin, configMaps, ns, "settings", "data", "entry").Should(Equal("blue"))
		By("keeping fields that another manager added")
		patch(ctx, florin, configMaps, ns, "settings", `{"data": {"theirs": "stays"}}`)
		patch(ctx, mailbox, configMaps, ns, "settings", `{"data": {"entry": "black"}}`)
		Eventually(value).WithContext(ctx).WithArguments(florin, configMaps, ns, "settings", "data", "entry").Should(Equal("black"))
		Expect(value(ctx, florin, configMaps, ns, "settings", "data", "theirs")).To(Equal("stays"))
		By("creating a deleted copy again")
		remove(ctx, florin, configMaps, ns, "settings")
		Eventually(value).WithContext(ctx).WithArguments(florin, configMaps, ns, "settings", "data", "entry").Should(Equal("black"))
		By("restoring a removed label")
		patch(ctx, florin, configMaps, ns, "settings", `{"metadata": {"labels": {"synchub.dev/owner": null}}}`)
		Eventually(value).WithContext(ctx).WithArguments(florin, configMaps, ns, "settings", "metadata", "labels", "synchub.dev/owner").ShouldNot(BeEmpty())

		By("following a deletion")
		remove(ctx, mailbox, configMaps, ns, "settings")
		eventuallyGone(ctx, florin, configMaps, ns, "settings")
		By("deleting copies that are no longer selected")
		patch(ctx, mailbox, syncerConfigs, "", ns, `{"spec": {"namespaceScope": {"resources": [{"group": "", "resource": "secrets", "apiVersion": "v1"}]}}}`)
		eventuallyGone(ctx, florin, deployments, ns, "web")
		Expect(framework.Exists(ctx, florin, secrets, ns, "token")).To(BeTrue())
		Expect(framework.Exists(ctx, mailbox, deployments, ns, "web")).To(BeTrue())
		By("keeping the namespace, which was created for its contents only")
		Expect(framework.Exists(ctx, florin, namespaces, "", ns)).To(BeTrue())
		By("not changing the other target")
		Expect(value(ctx, target("guilder"), configMaps, ns, "settings", "data", "entry")).To(Equal("green on guilder"))
	}, NodeTimeout(5*time.Minute))
})
