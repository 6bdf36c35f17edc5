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

	"github.com/synchub-dev/synchub/test/framework"
)

var (
	configMaps    = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	deployments   = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	namespaces    = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	secrets       = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	syncerConfigs = schema.GroupVersionResource{Group: "edge.kubestellar.io", Version: "v2alpha1", Resource: "syncerconfigs"}
)

// workload is a namespace with a Deployment, a ConfigMap and a Secret, and a config that selects them.
func workload(namespace string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: Namespace
metadata: {name: %[1]s}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: %[1]s}
data: {colour: green}
---
apiVersion: v1
kind: Secret
metadata: {name: token, namespace: %[1]s}
stringData: {token: hunter2}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: %[1]s}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: web
        image: registry.invalid/web:1
        ports: [{containerPort: 80}]
        resources: {requests: {cpu: 1000m}}
---
%[2]s
`, namespace, config(namespace, namespace))
}

func config(name, namespace string) string {
	return fmt.Sprintf(`
apiVersion: edge.kubestellar.io/v2alpha1
kind: SyncerConfig
metadata: {name: %s}
spec:
  namespaceScope:
    namespaces: [%s]
    resources:
    - {group: "", resource: configmaps, apiVersion: v1}
    - {group: "", resource: secrets, apiVersion: v1}
    - {group: apps, resource: deployments, apiVersion: v1}
`, name, namespace)
}

var _ = Describe("the main job", func() {
	It("keeps two targets in step while a third does not exist", func(ctx SpecContext) {
		inventory := newInventory(ctx, "main-job")
		mailbox := register(ctx, inventory, "florin", "florin")
		Expect(framework.Apply(ctx, mailbox, workload("main-job"))).To(Succeed())
		florin := suite.Targets["florin"].Config
		Eventually(framework.Condition).WithContext(ctx).WithArguments(florin, deployments, "main-job", "web", "Available").Should(Equal("True"))
		Eventually(framework.Condition).WithContext(ctx).WithArguments(mailbox, deployments, "main-job", "web", "Available").Should(Equal("True"))
	}, NodeTimeout(3*time.Minute))
})
