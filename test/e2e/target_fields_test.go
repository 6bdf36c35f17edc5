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

	"github.com/synchub-dev/synchub/test/framework"
)

var _ = Describe("targets: the fields of an object", func() {
	It("have the mailbox's values where it sets them, and the target's elsewhere", func(ctx SpecContext) {
		const ns = "fields-of-both"
		florin, mailbox := target("florin"), sharedMailbox(ctx, "florin")
		publish(ctx, services, serviceAccounts)
		apply(ctx, mailbox, documents(namespace(ns), front(ns, `{name: one, port: 80}`), fmt.Sprintf(`
apiVersion: v1
kind: ServiceAccount
metadata: {name: robot, namespace: %[1]s}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: %[1]s, annotations: {deployment.kubernetes.io/revision: "77"}}
spec:
  minReadySeconds: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: web, image: "registry.invalid/web:1", env: [{name: KEPT, value: "1"}, {name: DROPPED, value: "2"}]}
      - {name: helper, image: "registry.invalid/helper:1"}
`, ns), selecting(ns, services.GroupVersionResource, serviceAccounts.GroupVersionResource, deployments)))
		web := func(path ...string) string { return value(ctx, florin, deployments, ns, "web", path...) }
		containers := func() string { return web("spec", "template", "spec", "containers") }
		address := func() string {
			return value(ctx, florin, services.GroupVersionResource, ns, "front", "spec", "clusterIP")
		}
		eventuallyExists(ctx, florin, serviceAccounts.GroupVersionResource, ns, "robot")
		Eventually(address).WithContext(ctx).ShouldNot(BeEmpty())
		Eventually(web).WithContext(ctx).WithArguments("metadata", "annotations", "deployment.kubernetes.io/revision").Should(Equal("1"))

		By("keeping additions of other managers on the target")
		given := address()
		patch(ctx, florin, serviceAccounts.GroupVersionResource, ns, "robot", `{"secrets": [{"name": "minted"}]}`)
		apply(ctx, florin, fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: %s}
spec: {template: {spec: {containers: [{name: sidecar, image: "registry.invalid/sidecar:1"}]}}}
`, ns))
		Eventually(web).WithContext(ctx).WithArguments("metadata", "annotations", "deployment.kubernetes.io/revision").Should(Equal("2"))
		By("removing fields, list items and nested items that the mailbox removes")
		patch(ctx, mailbox, deployments, ns, "web", `{"spec": {"minReadySeconds": null, "template": {"spec": {"containers": [
			{"name": "web", "image": "registry.invalid/web:2", "env": [{"name": "KEPT", "value": "1"}]}]}}}}`)
		patch(ctx, mailbox, serviceAccounts.GroupVersionResource, ns, "robot", `{"metadata": {"labels": {"team": "blue"}}}`)
		patch(ctx, mailbox, services.GroupVersionResource, ns, "front", `{"spec": {"selector": {"app": "other"}}}`)
		Eventually(containers).WithContext(ctx).Should(And(ContainSubstring("web:2"), ContainSubstring("KEPT"), ContainSubstring("sidecar:1"),
			Not(ContainSubstring("DROPPED")), Not(ContainSubstring("helper"))))
		Expect(web("spec", "minReadySeconds")).To(BeEmpty())
		Eventually(value).WithContext(ctx).WithArguments(florin, serviceAccounts.GroupVersionResource, ns, "robot", "metadata", "labels", "team").Should(Equal("blue"))
		Eventually(value).WithContext(ctx).WithArguments(florin, services.GroupVersionResource, ns, "front", "spec", "selector", "app").Should(Equal("other"))
		Eventually(web).WithContext(ctx).WithArguments("metadata", "annotations", "deployment.kubernetes.io/revision").Should(Equal("3"))

		By("not changing other managers' fields")
		Eventually(framework.Condition).WithContext(ctx).WithArguments(florin, deployments, ns, "web", "Available").Should(Equal("True"))
		Expect(web("spec", "progressDeadlineSeconds")).To(Equal("600"), "the target's default")
		Expect(value(ctx, mailbox, deployments, ns, "web", "spec", "progressDeadlineSeconds")).To(BeEmpty())
		rest := func() string {
			return fmt.Sprint(web("metadata", "generation"), containers(), address(),
				value(ctx, florin, serviceAccounts.GroupVersionResource, ns, "robot", "secrets"),
				identities(ctx, florin, serviceAccounts.GroupVersionResource, ns, "robot"), identities(ctx, florin, services.GroupVersionResource, ns, "front"))
		}
		staysFor(ctx, rest, rest())
		Expect(rest()).To(And(ContainSubstring("minted"), ContainSubstring("sidecar:1"), ContainSubstring(given)))
		Eventually(framework.Condition).WithContext(ctx).WithArguments(mailbox, syncerConfigs, "", ns, "Ready").Should(Equal("True"))
	}, NodeTimeout(3*time.Minute))
})
