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
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"
)

var roles = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "roles"}

// unlikely is the spec of a Deployment with fields that a cluster stores in another form: quantities, numbers
// that may be text, and defaulted fields.
const unlikely = `
replicas: 1
strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 1}}
selector: {matchLabels: {app: web}}
template:
  metadata: {labels: {app: web}}
  spec:
    securityContext: {}
    containers:
    - name: web
      image: registry.invalid/web
      ports: [{containerPort: 80}, {containerPort: 81, name: admin}]
      env: [{name: EMPTY}, {name: WHERE, valueFrom: {fieldRef: {fieldPath: metadata.namespace}}}]
      resources: {requests: {cpu: 1000m, memory: 1024Mi}, limits: {cpu: "1.50", memory: 1.5Gi, ephemeral-storage: "1e3"}}
      readinessProbe: {httpGet: {path: /, port: 80}}
      livenessProbe: {tcpSocket: {port: admin}}
      volumeMounts: [{name: scratch, mountPath: /scratch}, {name: settings, mountPath: /settings}]
    volumes:
    - {name: scratch, emptyDir: {sizeLimit: 0.5Gi}}
    - {name: settings, configMap: {name: settings}}
`

// mixture is the number of objects per resource, a thousand together, with their content in flow style.
var mixture = []struct {
	schema.GroupVersionResource
	kind    string
	count   int
	content string
}{
	{configMaps, "ConfigMap", 350, `{data: {one: "1"}, binaryData: {two: AAECAw==}}`},
	{secrets, "Secret", 300, `{stringData: {token: hunter2}, data: {key: aHVudGVyMg==}}`},
	{deployments, "Deployment", 250, ""},
	{serviceAccounts.GroupVersionResource, "ServiceAccount", 60, `{automountServiceAccountToken: false}`},
	{roles, "Role", 40, `{rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]}`},
}

var _ = Describe("rule 1: at rest", thorough, Label("requests"), func() {
	It("makes no request for a thousand objects when the hub restarts, and verifies that a config was deleted", SpecPriority(1), func(ctx SpecContext) {
		const ns, other = "thousand", "thousand-and-one"
		inventory := newInventory(ctx, ns)
		hosting, mailbox := target("hosting"), register(ctx, inventory, "quiet", "hosting")
		resources := make([]schema.GroupVersionResource, len(mixture))
		for i, kind := range mixture {
			resources[i] = kind.GroupVersionResource
		}
		apply(ctx, mailbox, documents(namespace(ns), namespace(other), configMap(other, "settings", "green"), selecting(other, configMaps), selecting(ns, resources...)))
		mix(ctx, mailbox, ns)
		Eventually(value).WithContext(ctx).WithArguments(mailbox, syncerConfigs, "", ns, "status", "synced").Should(Equal("1000"))
		eventuallyExists(ctx, hosting, configMaps, other, "settings")
		patch(ctx, hosting, deployments, ns, "object-0", `{"status": {"replicas": 1, "observedGeneration": 1}}`, "status")
		Eventually(value).WithContext(ctx).WithArguments(mailbox, deployments, ns, "object-0", "status", "replicas").Should(Equal("1"))
		quiet(ctx)
		everything := func(config *rest.Config) (all []map[string]string) {
			GinkgoHelper()
			for _, resource := range resources {
				all = append(all, identities(ctx, config, resource, ns, ""))
			}
			return all
		}
		above, below := everything(mailbox), everything(hosting)

		By("starting again")
		Expect(hub.Kill9()).To(Succeed())
		expectIdleStart(ctx, inventory, "quiet", 1000)
		Expect(everything(mailbox)).To(Equal(above))
		Expect(everything(hosting)).To(Equal(below))

		By("deleting a deleted config's copies only after verifying its absence")
		before := requestCounts(ctx)
		remove(ctx, mailbox, syncerConfigs, "", other)
		eventuallyGone(ctx, hosting, configMaps, other, "settings")
		quiet(ctx)
		Expect(difference(before, requestCounts(ctx))).To(And(
			HaveKeyWithValue("target object delete configmaps", BeEquivalentTo(1)),
			HaveKeyWithValue("mailbox extra list syncerconfigs", BeEquivalentTo(1)),
			HaveKey("mailbox extra get apibindings"), HaveKey("mailbox extra get logicalclusters")))
	}, NodeTimeout(4*time.Minute))
})

// mix creates the thousand objects in a mailbox, several at a time.
func mix(ctx context.Context, mailbox *rest.Config, namespace string) {
	GinkgoHelper()
	const writers = 16
	client, err := dynamic.NewForConfig(mailbox)
	Expect(err).NotTo(HaveOccurred())
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	for _, kind := range mixture {
		content, spec := map[string]any{}, map[string]any{}
		if kind.content == "" {
			Expect(yaml.Unmarshal([]byte(unlikely), &spec)).To(Succeed())
			content["spec"] = spec
		} else {
			Expect(yaml.Unmarshal([]byte(kind.content), &content)).To(Succeed())
		}
		object := &unstructured.Unstructured{Object: content}
		object.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.kind))
		for i := range kind.count {
			group.Go(func() error {
				object := object.DeepCopy()
				object.SetName(fmt.Sprintf("object-%d", i))
				_, err := client.Resource(kind.GroupVersionResource).Namespace(namespace).Create(ctx, object, metav1.CreateOptions{})
				return err
			})
		}
	}
	Expect(group.Wait()).To(Succeed())
}
