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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/synchub-dev/synchub/test/framework"
)

// Three kinds, so that each can have another adoption rule.
var (
	relics = custom("adoption.example.com", "v1", "relics", "Relic")
	twins  = custom("adoption.example.com", "v1", "twins", "Twin")
	spoils = custom("adoption.example.com", "v1", "spoils", "Spoil")
)

// front returns a Service with some ports, as the items of a list.
func front(namespace, ports string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: Service
metadata: {name: front, namespace: %s}
spec: {selector: {app: web}, ports: [%s]}
`, namespace, ports)
}

var _ = Describe("targets", func() {
	It("adopt the copies of KubeStellar's syncer", thorough, func(ctx SpecContext) {
		const ns = "adoption"
		const relic, service = `spec: {kept: 1, dropped: 2, parts: [a, b, c]}`, `{name: one, port: 80}, {name: two, port: 81}`
		inventory := sharedInventory()
		florin, mailbox := target("florin"), register(ctx, inventory, "florin", "florin")
		publish(ctx, relics, twins, spoils, services)
		for resource, rule := range map[string]string{"relics": "KubeStellar", "services": "KubeStellar", "twins": "IfIdentical", "spoils": "Always"} {
			patch(ctx, target("hosting"), publishedResources, "", resource, fmt.Sprintf(`{"spec": {"adoption": %q}}`, rule))
		}
		define(ctx, florin, relics, twins, spoils)
		apply(ctx, florin, documents(namespace(ns),
			twins.object(ns, "same", `spec: {size: 1}`), twins.object(ns, "different", `spec: {size: 1}`), spoils.object(ns, "any", `spec: {size: 1, theirs: 1}`)))
		placeAsKubeStellar(ctx, florin, relics, relics.object(ns, "mine", relic), "Relic/"+ns+"/mine")
		placeAsKubeStellar(ctx, florin, relics, relics.object(ns, "copied", relic), "Relic/"+ns+"/mine")
		placeAsKubeStellar(ctx, florin, relics, relics.object(ns, "plain", relic), "")
		placeAsKubeStellar(ctx, florin, services, front(ns, service), "Service/"+ns+"/front")
		patch(ctx, florin, relics.GroupVersionResource, ns, "mine", `{"spec": {"assigned": "by a controller"}}`)
		address := value(ctx, florin, services.GroupVersionResource, ns, "front", "spec", "clusterIP")
		Expect(address).NotTo(BeEmpty())

		apply(ctx, mailbox, documents(namespace(ns), front(ns, service),
			relics.object(ns, "mine", relic), relics.object(ns, "copied", `spec: {ours: 1}`), relics.object(ns, "plain", `spec: {ours: 1}`),
			twins.object(ns, "same", `spec: {size: 1}`), twins.object(ns, "different", `spec: {size: 2}`), spoils.object(ns, "any", `spec: {size: 2, ours: 1}`),
			selecting(ns, relics.GroupVersionResource, twins.GroupVersionResource, spoils.GroupVersionResource, services.GroupVersionResource)))
		By("adopting only objects that the rules allow")
		eventuallyMarked(ctx, relics.GroupVersionResource, ns, "mine", `"adopted":true`)
		eventuallyMarked(ctx, services.GroupVersionResource, ns, "front", `"adopted":true`)
		eventuallyMarked(ctx, twins.GroupVersionResource, ns, "same", `"adopted":true`)
		Eventually(value).WithContext(ctx).WithArguments(florin, spoils.GroupVersionResource, ns, "any", "spec").Should(Equal("map[ours:1 size:2 theirs:1]"))
		Eventually(failures).WithContext(ctx).WithArguments(mailbox, ns).Should(ConsistOf("Conflict copied", "Conflict plain", "Conflict different"))
		for _, name := range []string{"copied", "plain"} {
			Expect(value(ctx, florin, relics.GroupVersionResource, ns, name, "spec")).To(Equal("map[dropped:2 kept:1 parts:[a b c]]"))
		}
		By("removing KubeStellar's annotations from adopted objects")
		for _, object := range []struct {
			api
			name string
		}{{relics, "mine"}, {services, "front"}} {
			Eventually(value).WithContext(ctx).WithArguments(florin, object.GroupVersionResource, ns, object.name, "metadata", "annotations").
				ShouldNot(ContainSubstring("downsynced"))
		}

		By("following the mailbox, also when a field or a list item is removed")
		patch(ctx, mailbox, relics.GroupVersionResource, ns, "mine", `{"spec": {"dropped": null, "parts": ["a", "c"]}}`)
		Eventually(value).WithContext(ctx).WithArguments(florin, relics.GroupVersionResource, ns, "mine", "spec").
			Should(Equal("map[assigned:by a controller kept:1 parts:[a c]]"))
		apply(ctx, mailbox, front(ns, `{name: one, port: 80}`))
		Eventually(value).WithContext(ctx).WithArguments(florin, services.GroupVersionResource, ns, "front", "spec", "ports").
			ShouldNot(ContainSubstring("port:81"))
		Expect(value(ctx, florin, services.GroupVersionResource, ns, "front", "spec", "ports")).To(ContainSubstring("port:80"))
		Expect(value(ctx, florin, services.GroupVersionResource, ns, "front", "spec", "clusterIP")).To(Equal(address))
		patch(ctx, mailbox, spoils.GroupVersionResource, ns, "any", `{"spec": {"ours": null}}`)
		Eventually(value).WithContext(ctx).WithArguments(florin, spoils.GroupVersionResource, ns, "any", "spec").Should(Equal("map[size:2 theirs:1]"))
		By("adopting objects that have become identical")
		patch(ctx, mailbox, twins.GroupVersionResource, ns, "different", `{"spec": {"size": 1}}`)
		eventuallyMarked(ctx, twins.GroupVersionResource, ns, "different", `"adopted":true`)

		By("not changing another mailbox's copies, with any adoption policy")
		other := register(ctx, inventory, "rival", "florin")
		apply(ctx, other, documents(namespace(ns), spoils.object(ns, "any", `spec: {size: 3}`), selecting(ns, spoils.GroupVersionResource)))
		Eventually(failures).WithContext(ctx).WithArguments(other, ns).Should(ConsistOf("Conflict any"))
		Expect(value(ctx, florin, spoils.GroupVersionResource, ns, "any", "spec", "size")).To(Equal("2"))
		By("deleting an adopted object when it is deleted in the mailbox")
		remove(ctx, mailbox, relics.GroupVersionResource, ns, "mine")
		eventuallyGone(ctx, florin, relics.GroupVersionResource, ns, "mine")
	}, NodeTimeout(3*time.Minute))

	It("replace an object with a changed immutable field, once the target accepts the new one in a dry run", thorough, func(ctx SpecContext) {
		const ns = "immutable"
		florin, mailbox := target("florin"), sharedMailbox(ctx, "florin")
		publish(ctx, services, statefulSets, jobs)
		task := func(restartPolicy string, version int) string {
			return fmt.Sprintf(`
apiVersion: batch/v1
kind: Job
metadata: {name: task, namespace: %s}
spec: {template: {spec: {restartPolicy: %s, containers: [{name: main, image: "registry.invalid/task:%d"}]}}}
`, ns, restartPolicy, version)
		}
		apply(ctx, mailbox, documents(namespace(ns), deployment(ns, "web"), task("Never", 1), fmt.Sprintf(`
apiVersion: v1
kind: Service
metadata: {name: front, namespace: %[1]s}
spec: {clusterIP: 10.0.0.11, ports: [{port: 80}]}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: store, namespace: %[1]s}
spec:
  serviceName: store
  selector: {matchLabels: {app: store}}
  template:
    metadata: {labels: {app: store}}
    spec: {containers: [{name: store, image: "registry.invalid/store:1"}]}
  volumeClaimTemplates:
  - {metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}
`, ns), selecting(ns, deployments, jobs.GroupVersionResource, services.GroupVersionResource, statefulSets.GroupVersionResource)))
		objects := map[string]schema.GroupVersionResource{
			"web": deployments, "task": jobs.GroupVersionResource, "front": services.GroupVersionResource, "store": statefulSets.GroupVersionResource,
		}
		before := map[string]string{}
		uid := func(name string) string { return value(ctx, florin, objects[name], ns, name, "metadata", "uid") }
		for name := range objects {
			Eventually(uid).WithArguments(name).WithContext(ctx).ShouldNot(BeEmpty())
			before[name] = uid(name)
		}

		By("reporting the field, and not changing the object")
		patch(ctx, mailbox, deployments, ns, "web", `{"spec": {"selector": {"matchLabels": {"app": "other"}}, "template": {"metadata": {"labels": {"app": "other"}}}}}`)
		apply(ctx, mailbox, task("Never", 2))
		patch(ctx, mailbox, services.GroupVersionResource, ns, "front", `{"spec": {"clusterIP": "10.0.0.12"}}`)
		patch(ctx, mailbox, statefulSets.GroupVersionResource, ns, "store", `{"spec": {"volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "2Gi"}}}}]}}`)
		Eventually(failures).WithContext(ctx).WithArguments(mailbox, ns).Should(ConsistOf("Immutable web", "Immutable task", "Immutable front", "Immutable store"))
		for name, field := range map[string]string{"web": "spec.selector", "task": "spec.template", "front": "spec.clusterIP", "store": "statefulset spec for fields other than"} {
			Expect(failureMessage(ctx, mailbox, ns, name)).To(ContainSubstring(field))
			Expect(uid(name)).To(Equal(before[name]))
		}

		By("replacing it where the PublishedResource allows it")
		change(ctx, "jobs", `{"spec": {"replace": true}}`, `{"spec": {"replace": false}}`)
		template := func() string { return value(ctx, florin, jobs.GroupVersionResource, ns, "task", "spec", "template") }
		Eventually(template).WithContext(ctx).Should(ContainSubstring("task:2"))
		replaced := uid("task")
		Expect(replaced).NotTo(Equal(before["task"]))
		Eventually(failures).WithContext(ctx).WithArguments(mailbox, ns).Should(ConsistOf("Immutable web", "Immutable front", "Immutable store"))
		By("not deleting it if the target would refuse the new one")
		apply(ctx, mailbox, task("Always", 3))
		Eventually(failureMessage).WithContext(ctx).WithArguments(mailbox, ns, "task").Should(And(ContainSubstring("spec.template"), ContainSubstring("restartPolicy")))
		staysFor(ctx, func() string { return uid("task") }, replaced)
		By("replacing it once the new one is valid")
		apply(ctx, mailbox, task("Never", 3))
		Eventually(template).WithContext(ctx).Should(ContainSubstring("task:3"))
		for name := range objects {
			if name != "task" {
				Expect(uid(name)).To(Equal(before[name]))
			}
		}
	}, NodeTimeout(3*time.Minute))
})

// placeAsKubeStellar writes an object to a target as KubeStellar's syncer does: it creates the object, then updates the
// whole object, without managedFields and with an annotation that names this or another object.
func placeAsKubeStellar(ctx context.Context, config *rest.Config, resource api, manifest, downsynced string) {
	GinkgoHelper()
	object := &unstructured.Unstructured{}
	Expect(yaml.Unmarshal([]byte(manifest), &object.Object)).To(Succeed())
	if downsynced != "" {
		object.SetAnnotations(map[string]string{"edge.kubestellar.io/downsynced": downsynced})
	}
	cluster, err := dynamic.NewForConfig(config)
	Expect(err).NotTo(HaveOccurred())
	client := cluster.Resource(resource.GroupVersionResource).Namespace(object.GetNamespace())
	created, err := client.Create(ctx, object, metav1.CreateOptions{FieldManager: "syncer"})
	Expect(err).NotTo(HaveOccurred())
	object.SetUID(created.GetUID())
	object.SetResourceVersion(created.GetResourceVersion())
	Expect(unstructured.SetNestedSlice(object.Object, []any{}, "metadata", "managedFields")).To(Succeed())
	_, err = client.Update(ctx, object, metav1.UpdateOptions{FieldManager: "syncer"})
	Expect(err).NotTo(HaveOccurred())
}

// failureMessage returns the message of a failed object in the status of a config.
func failureMessage(ctx context.Context, mailbox *rest.Config, config, name string) string {
	object, err := framework.Get(ctx, mailbox, syncerConfigs, "", config)
	if err != nil {
		return err.Error()
	}
	list, _, _ := unstructured.NestedSlice(object.Object, "status", "failures")
	for _, failure := range list {
		if fields := failure.(map[string]any); fields["name"] == name {
			return fmt.Sprint(fields["message"])
		}
	}
	return ""
}
