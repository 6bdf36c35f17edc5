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
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/framework/installation"
)

var daemonSets = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "daemonsets"}

// publishShipped publishes an API with the files of the chart, even if another spec has published it differently.
func publishShipped(ctx SpecContext, resource string) {
	GinkgoHelper()
	root, err := framework.RepositoryRoot()
	Expect(err).NotTo(HaveOccurred())
	content, err := os.ReadFile(filepath.Join(root, "charts", "synchub", "files", "published", resource+".yaml"))
	Expect(err).NotTo(HaveOccurred())
	// Other specs publish the resource differently, under the same name.
	withdraw := func(ctx SpecContext) {
		remove(ctx, target("hosting"), publishedResources, "", resource)
		eventuallyGone(ctx, target("hosting"), publishedResources, "", resource)
	}
	withdraw(ctx)
	DeferCleanup(withdraw)
	apply(ctx, target("hosting"), string(content))
	generation := value(ctx, target("hosting"), publishedResources, "", resource, "metadata", "generation")
	Eventually(value).WithContext(ctx).WithArguments(target("hosting"), publishedResources, "", resource, "status", "observedGeneration").Should(Equal(generation))
	Eventually(framework.Condition).WithContext(ctx).WithArguments(target("hosting"), publishedResources, "", resource, "Ready").Should(Equal("True"))
}

// workload returns a StatefulSet, its Service and a DaemonSet as an installer writes them: without an update strategy and
// without a type.
func workload(namespace string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: ServiceAccount
metadata: {name: keeper, namespace: %[1]s, labels: {app: keeper}}
---
apiVersion: v1
kind: Service
metadata: {name: keeper, namespace: %[1]s, labels: {app: keeper}}
spec: {selector: {app: keeper}, ports: [{name: http, port: 8082}]}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: keeper, namespace: %[1]s, labels: {app: keeper}}
spec:
  replicas: 2
  serviceName: keeper
  selector: {matchLabels: {app: keeper}}
  template:
    metadata: {labels: {app: keeper}}
    spec:
      serviceAccountName: keeper
      nodeSelector: {kubernetes.io/os: linux}
      affinity:
        podAntiAffinity:
          preferredDuringSchedulingIgnoredDuringExecution:
          - {weight: 5, podAffinityTerm: {labelSelector: {matchLabels: {app: keeper}}, topologyKey: kubernetes.io/hostname}}
      containers:
      - name: keeper
        image: registry.invalid/keeper:1
        imagePullPolicy: IfNotPresent
        args: [--serve]
        env:
        - {name: LEVEL, valueFrom: {configMapKeyRef: {name: settings, key: level, optional: true}}}
        ports: [{containerPort: 8082}]
        readinessProbe: {httpGet: {path: /healthz, port: 8082}, initialDelaySeconds: 5, periodSeconds: 10}
        securityContext: {runAsNonRoot: true, readOnlyRootFilesystem: true, allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}, seccompProfile: {type: RuntimeDefault}}
        volumeMounts: [{name: certificates, mountPath: /certificates}, {name: scratch, mountPath: /scratch}]
      volumes:
      - {name: scratch, emptyDir: {}}
      - name: certificates
        projected:
          sources:
          - {secret: {name: certificates, optional: true, items: [{key: tls.crt, path: tls.crt}, {key: tls.key, path: tls.key}]}}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: watcher, namespace: %[1]s}
spec:
  selector: {matchLabels: {app: watcher}}
  template:
    metadata: {labels: {app: watcher}}
    spec:
      nodeSelector: {kubernetes.io/os: linux}
      containers: [{name: watcher, image: "registry.invalid/watcher:1"}]
`, namespace)
}

var _ = Describe("the reported state", thorough, Label("faults"), func() {
	It("does not claim objects to be in sync while no hub syncs", func(ctx SpecContext) {
		const ns = "claimed"
		inventory := sharedInventory()
		mailbox := register(ctx, inventory, "florin", "florin")
		apply(ctx, mailbox, documents(namespace(ns), configMap(ns, "settings", "before"), selecting(ns, configMaps)))
		readiness := func() string { return readyOf(ctx, mailbox, ns) }
		Eventually(readiness).WithContext(ctx).Should(HavePrefix("True InSync: "))

		patch(ctx, inventory.Config, syncTargets, "", "florin", `{"spec": {"suspend": true}}`)
		Eventually(readiness).WithContext(ctx).Should(And(HavePrefix("False NotSynced: "), ContainSubstring("SyncerReady of the SyncTarget florin is not True (Suspended)")))
		Expect(value(ctx, inventory.Config, syncTargets, "", "florin", "status", "counts")).To(BeEmpty())
		patch(ctx, mailbox, configMaps, ns, "settings", `{"data": {"entry": "after"}}`)
		Expect(hub.Kill9()).To(Succeed())
		startHub(ctx)
		Consistently(readiness, "5s").WithContext(ctx).Should(HavePrefix("False NotSynced: "))

		patch(ctx, inventory.Config, syncTargets, "", "florin", `{"spec": {"suspend": false}}`)
		Eventually(value).WithContext(ctx).WithArguments(target("florin"), configMaps, ns, "settings", "data", "entry").Should(Equal("after"))
		Eventually(readiness).WithContext(ctx).Should(HavePrefix("True InSync: "))
	}, NodeTimeout(3*time.Minute))

	It("is correct for rollouts in a mailbox, and names each failing object", func(ctx SpecContext) {
		const ns = "truth"
		publishShipped(ctx, "statefulsets")
		publishShipped(ctx, "services")
		inventory := newInventory(ctx, ns)
		florin := target("florin")
		apply(ctx, florin, documents(namespace(ns), configMap(ns, "taken", "theirs")))
		mailbox := register(ctx, inventory, "florin", "florin")
		apply(ctx, mailbox, documents(namespace(ns), configMap(ns, "taken", "ours"), configMap(ns, "settings", "x"), workload(ns),
			selecting(ns, configMaps, serviceAccounts.GroupVersionResource, services.GroupVersionResource, statefulSets.GroupVersionResource, daemonSets)))

		kubectl := kubectlIn(ctx, mailboxPath(ctx, inventory, "florin"))
		By("reporting that a StatefulSet and a DaemonSet without an updateStrategy are rolled out")
		Expect(value(ctx, mailbox, statefulSets.GroupVersionResource, ns, "keeper", "spec", "updateStrategy")).To(Equal("map[type:RollingUpdate]"))
		Eventually(kubectl).WithContext(ctx).WithArguments("-n", ns, "rollout", "status", "statefulset/keeper", "--watch=false").Should(ContainSubstring("rolling update complete 2 pods"))
		Eventually(kubectl).WithContext(ctx).WithArguments("-n", ns, "rollout", "status", "daemonset/watcher", "--watch=false").Should(ContainSubstring("successfully rolled out"))
		Expect(strings.Fields(kubectl("-n", ns, "get", "statefulset", "keeper"))).To(HaveExactElements(
			"NAME", "READY", "AGE", "keeper", "2/2", Not(BeEmpty())))
		Expect(strings.Fields(kubectl("-n", ns, "get", "daemonset", "watcher"))).To(HaveExactElements(
			"NAME", "DESIRED", "CURRENT", "READY", "UP-TO-DATE", "AVAILABLE", "NODE", "SELECTOR", "AGE", "watcher", "1", "1", "1", "1", "1", "kubernetes.io/os=linux", Not(BeEmpty())))
		Expect(kubectl("-n", ns, "get", "service", "keeper")).To(MatchRegexp(`\nkeeper +ClusterIP +<none> +<none> +8082/TCP `))
		By("leaving the rest of the strategy to the target, and following the next version")
		patch(ctx, mailbox, statefulSets.GroupVersionResource, ns, "keeper", `{"spec": {"template": {"metadata": {"labels": {"version": "2"}}}}}`)
		Eventually(kubectl).WithContext(ctx).WithArguments("-n", ns, "rollout", "status", "statefulset/keeper", "--timeout=60s").Should(ContainSubstring("rolling update complete 2 pods"))
		Expect(value(ctx, florin, statefulSets.GroupVersionResource, ns, "keeper", "spec", "template")).To(ContainSubstring("version:2"))

		By("naming the failing object in the mailbox, and in the status of the fleet")
		Eventually(failures).WithContext(ctx).WithArguments(mailbox, ns).Should(ConsistOf("Conflict taken"))
		plugin := func(args ...string) string { return runPlugin(ctx, inventory.Path, args...) }
		named := And(ContainSubstring("configmaps "+ns+"/taken: Conflict: the target has an object of this name"), Not(ContainSubstring("in sync")), ContainSubstring("1 failed"))
		Eventually(plugin).WithContext(ctx).WithArguments("status").Should(named)
		Expect(plugin("describe", "target", "florin")).To(named)
	}, NodeTimeout(4*time.Minute))
})

// mailboxPath returns the path of the mailbox of a SyncTarget.
func mailboxPath(ctx context.Context, inventory *installation.Inventory, name string) string {
	GinkgoHelper()
	syncTarget, err := inventory.SyncTarget(ctx, name)
	Expect(err).NotTo(HaveOccurred())
	return syncTarget.Status.Mailbox.Workspace
}

// kubectlIn returns a function that runs kubectl in a workspace and returns its output, preceded by an error if it fails.
func kubectlIn(ctx context.Context, workspace string) func(args ...string) string {
	GinkgoHelper()
	kubeconfig, err := suite.KCP.WorkspaceKubeconfig(workspace)
	Expect(err).NotTo(HaveOccurred())
	return kubectlWith(ctx, kubeconfig)
}

// kubectlWith returns a function that runs kubectl with a kubeconfig, and returns its output or its error.
func kubectlWith(ctx context.Context, kubeconfig string) func(args ...string) string {
	GinkgoHelper()
	cache := GinkgoT().TempDir()
	return func(args ...string) string {
		output, err := exec.CommandContext(ctx, filepath.Join(suite.Options.Bin, "kubectl"), append([]string{"--kubeconfig", kubeconfig, "--cache-dir", cache}, args...)...).CombinedOutput()
		if err != nil {
			return err.Error() + ": " + string(output)
		}
		return string(output)
	}
}
