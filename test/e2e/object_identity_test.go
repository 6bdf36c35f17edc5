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
	"k8s.io/client-go/rest"

	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/test/framework"
)

var claims = api{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumeclaims"}, kind: "PersistentVolumeClaim"}

var _ = Describe("different objects with the same name", func() {
	It("leak nothing from one workspace to another, and do not keep a namespace", thorough, Label("placement"), func(ctx SpecContext) {
		const ns = "identity"
		publish(ctx, claims)
		inventory, first, second := newInventory(ctx, ns), newWorkload(ctx, ns+"-first"), newWorkload(ctx, ns+"-second")
		Expect(inventory.Register(ctx, "florin", kubeconfigOf("florin"), map[string]string{"env": "prod"})).To(Succeed())
		florin, mailbox := target("florin"), mailboxOf(ctx, inventory, "florin")
		apply(ctx, inventory.Config, strings.Replace(location("prod", "prod", first.Path), "]", fmt.Sprintf(", %q]", second.Path), 2))
		everything := func(entry string) string {
			return documents(namespace(ns), configMap(ns, "prices", entry), fmt.Sprintf(`
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, namespace: %[1]s}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: v1
kind: Secret
metadata: {name: key, namespace: %[1]s}
stringData: {entry: %[2]q}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: %[1]s}
spec:
  selector: {matchLabels: {app: web}}
  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: main, image: example.org/web}]}}
`, ns, entry), placementOn("shop", ns))
		}
		named := map[string]schema.GroupVersionResource{"prices": configMaps, "data": claims.GroupVersionResource, "key": secrets, "web": deployments}
		uids := func() map[string]string {
			found := map[string]string{}
			for name, resource := range named {
				found[name] = value(ctx, florin, resource, ns, name, "metadata", "uid")
			}
			return found
		}
		eventuallyPlaced(ctx, first, everything("first"))
		Eventually(readyStatus).WithContext(ctx).WithArguments(first, "shop").Should(Equal("True"))
		before := uids()

		By("keeping the second one pending")
		eventuallyPlaced(ctx, second, everything("second"))
		Eventually(readyReason).WithContext(ctx).WithArguments(second, "shop").Should(Equal("ObjectsFailed"))
		Expect(uids()).To(Equal(before))

		By("giving the second one only the name")
		remove(ctx, first.Config, edgePlacements, "", "shop")
		Eventually(readyStatus).WithContext(ctx).WithTimeout(2*time.Minute).WithArguments(second, "shop").Should(Equal("True"))
		for name, uid := range uids() {
			Expect(uid).NotTo(Or(BeEmpty(), Equal(before[name])), "%s is the first workspace's", name)
		}
		Expect(value(ctx, florin, configMaps, ns, "prices", "data", "entry")).To(Equal("second"))

		By("releasing the namespace when nobody places it any more")
		remove(ctx, second.Config, edgePlacements, "", "shop")
		for name, resource := range named {
			eventuallyGone(ctx, florin, resource, ns, name)
		}
		marks := func(config *rest.Config) string {
			return value(ctx, config, namespaces, "", ns, "metadata", "labels") + value(ctx, config, namespaces, "", ns, "metadata", "annotations")
		}
		for _, config := range []*rest.Config{mailbox, florin} {
			Eventually(marks).WithContext(ctx).WithArguments(config).ShouldNot(Or(ContainSubstring("synchub.dev/mark"), ContainSubstring("synchub.dev/owner")))
		}
		uid := value(ctx, florin, namespaces, "", ns, "metadata", "uid")
		remove(ctx, florin, namespaces, "", ns)
		eventuallyGone(ctx, florin, namespaces, "", ns)
		quiet(ctx)
		Expect(framework.Exists(ctx, florin, namespaces, "", ns)).To(BeFalse(), "the deletion of %s was undone", uid)
		eventuallyPlaced(ctx, first, placementOn("shop", ns))
		Eventually(readyStatus).WithContext(ctx).WithArguments(first, "shop").Should(Equal("True"))
	}, NodeTimeout(5*time.Minute))

	It("are created a few times if the cluster deletes them, and not again once they have completed", func(ctx SpecContext) {
		const ns = "identity-removed"
		publish(ctx, jobs)
		florin, mailbox := target("florin"), sharedMailbox(ctx, "florin")
		apply(ctx, mailbox, documents(namespace(ns), fmt.Sprintf(`
apiVersion: batch/v1
kind: Job
metadata: {name: migrate, namespace: %[1]s}
spec:
  ttlSecondsAfterFinished: 0
  activeDeadlineSeconds: 1
  backoffLimit: 0
  template: {spec: {restartPolicy: Never, containers: [{name: main, image: example.org/migrate}]}}
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
apiVersion: edge.kubestellar.io/v2alpha1
kind: SyncerConfig
metadata: {name: %[1]s}
spec:
  namespacedObjects:
  - {group: batch, resource: jobs, apiVersion: v1, objectsByNamespace: [{namespace: %[1]s, names: [migrate]}]}
  - {group: "", resource: secrets, apiVersion: v1, objectsByNamespace: [{namespace: %[1]s, names: [robot-token]}]}
`, ns)))
		By("keeping the result of a Job that the cluster has removed")
		Eventually(value).WithContext(ctx).WithTimeout(time.Minute).WithArguments(mailbox, jobs.GroupVersionResource, ns, "migrate", "status", "conditions").Should(ContainSubstring("DeadlineExceeded"))
		eventuallyGone(ctx, florin, jobs.GroupVersionResource, ns, "migrate")
		// A hub that is killed before it has noted the end of a run may run the Job again.
		Eventually(value).WithContext(ctx).WithArguments(mailbox, jobs.GroupVersionResource, ns, "migrate", "metadata", "annotations", ownership.FinishedAnnotation).ShouldNot(BeEmpty())
		By("reporting the Secret that the cluster removes each time")
		Eventually(failures).WithContext(ctx).WithTimeout(time.Minute).WithArguments(mailbox, ns).Should(ConsistOf("RemovedByCluster robot-token"))
		Expect(failureMessage(ctx, mailbox, ns, "robot-token")).To(ContainSubstring("ServiceAccount " + ns + "/robot"))
		Expect(hub.Kill9()).To(Succeed())
		startHub(ctx)
		Eventually(failures).WithContext(ctx).WithTimeout(time.Minute).WithArguments(mailbox, ns).Should(ConsistOf("RemovedByCluster robot-token"))
		Expect(framework.Exists(ctx, florin, jobs.GroupVersionResource, ns, "migrate")).To(BeFalse(), "the Job runs again")
	}, NodeTimeout(3*time.Minute))
})
