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
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/synchub-dev/synchub/test/framework"
)

// Readings have a status subresource, Tellings a status without one. Stickers are not published.
var (
	readings = custom("status.example.com", "v1", "readings", "Reading")
	messages = api{GroupVersionResource: schema.GroupVersionResource{Group: "status.example.com", Version: "v1", Resource: "tellings"}, kind: "Telling", plainStatus: true}
	stickers = custom("status.example.com", "v1", "stickers", "Sticker")
)

var _ = Describe("status", func() {
	It("is copied from the target unchanged, with and without a subresource", func(ctx SpecContext) {
		const ns = "status-returned"
		florin := target("florin")
		// The target validates Readings more strictly than the mailbox.
		apply(ctx, florin, strings.Replace(readings.definition(), "schema: {openAPIV3Schema: {",
			"schema: {openAPIV3Schema: {properties: {spec: {type: object, x-kubernetes-preserve-unknown-fields: true, properties: {size: {type: integer, maximum: 10}}}}, ", 1))
		define(ctx, florin, messages)
		publish(ctx, readings, messages)
		mailbox := sharedMailbox(ctx, "florin")
		apply(ctx, mailbox, documents(namespace(ns), readings.object(ns, "one", "spec: {size: 1}"), messages.object(ns, "one", "spec: {size: 1}"),
			selecting(ns, readings.GroupVersionResource, messages.GroupVersionResource)))
		below := func(resource api, path ...string) string {
			return value(ctx, florin, resource.GroupVersionResource, ns, "one", path...)
		}
		above := func(resource api, path ...string) string {
			return value(ctx, mailbox, resource.GroupVersionResource, ns, "one", path...)
		}
		report := func(resource api, status string) {
			GinkgoHelper()
			var subresources []string
			if !resource.plainStatus {
				subresources = append(subresources, "status")
			}
			patch(ctx, florin, resource.GroupVersionResource, ns, "one", fmt.Sprintf(`{"status": %s}`, status), subresources...)
		}
		for _, resource := range []api{readings, messages} {
			By("returning the status of " + resource.Resource)
			Eventually(below).WithContext(ctx).WithArguments(resource, "spec", "size").Should(Equal("1"))
			report(resource, `{"phase": "Warm", "parts": [{"name": "a", "value": 1}]}`)
			Eventually(above).WithContext(ctx).WithArguments(resource, "status").Should(Equal("map[parts:[map[name:a value:1]] phase:Warm]"))
			report(resource, `{"parts": [{"name": "b"}], "phase": null}`)
			Eventually(above).WithContext(ctx).WithArguments(resource, "status").Should(Equal("map[parts:[map[name:b]]]"))
			By("clearing it when it disappears, and removing a status that somebody else writes")
			report(resource, `null`)
			Eventually(above).WithContext(ctx).WithArguments(resource, "status", "parts").Should(BeEmpty())
			if resource.plainStatus {
				patch(ctx, mailbox, resource.GroupVersionResource, ns, "one", `{"status": {"phase": "Invented"}}`)
			} else {
				patch(ctx, mailbox, resource.GroupVersionResource, ns, "one", `{"status": {"phase": "Invented"}}`, "status")
			}
			Eventually(above).WithContext(ctx).WithArguments(resource, "status", "phase").Should(BeEmpty())
			Expect(below(resource, "status")).To(BeEmpty())
		}

		By("never returning an older status during many changes, and ending with the newest")
		const changes, unseen = 60, 5
		seen := map[string]func() []int64{}
		for _, resource := range []api{readings, messages} {
			seen[resource.Resource] = followCount(ctx, mailbox, resource.GroupVersionResource, ns, "one")
			for i := range changes {
				report(resource, fmt.Sprintf(`{"count": %d}`, i+1))
			}
			Eventually(seen[resource.Resource]).WithContext(ctx).Should(ContainElement(BeEquivalentTo(changes)))
			Expect(slices.IsSorted(seen[resource.Resource]())).To(BeTrue(), "%v", seen[resource.Resource]())
		}
		By("returning only the newest status after the config was suspended")
		patch(ctx, mailbox, syncerConfigs, "", ns, `{"spec": {"suspend": true}}`)
		Eventually(framework.Condition).WithContext(ctx).WithArguments(mailbox, syncerConfigs, "", ns, "Suspended").Should(Equal("True"))
		wanted := map[string][]int64{}
		for _, resource := range []api{readings, messages} {
			wanted[resource.Resource] = append(seen[resource.Resource](), changes+unseen)
			for i := range unseen {
				report(resource, fmt.Sprintf(`{"count": %d}`, changes+i+1))
			}
		}
		patch(ctx, mailbox, syncerConfigs, "", ns, `{"spec": {"suspend": false}}`)
		for resource, all := range wanted {
			Eventually(seen[resource]).WithContext(ctx).Should(Equal(all))
		}

		By("counting generations as the mailbox does")
		patch(ctx, florin, readings.GroupVersionResource, ns, "one", `{"spec": {"size": 2}}`)
		Eventually(below).WithContext(ctx).WithArguments(readings, "spec", "size").Should(Equal("1"))
		Expect(below(readings, "metadata", "generation")).To(Equal("3"))
		Expect(above(readings, "metadata", "generation")).To(Equal("1"))
		observed := func(generation int) string {
			return fmt.Sprintf(`{"count": null, "observedGeneration": %[1]d, "conditions": [{"type": "Ready", "observedGeneration": %[1]d}]}`, generation)
		}
		report(readings, observed(2))
		Eventually(above).WithContext(ctx).WithArguments(readings, "status").Should(Equal("map[conditions:[map[observedGeneration:0 type:Ready]] observedGeneration:0]"))
		report(readings, observed(3))
		Eventually(above).WithContext(ctx).WithArguments(readings, "status").Should(Equal("map[conditions:[map[observedGeneration:1 type:Ready]] observedGeneration:1]"))
		By("following the target also while it refuses a change, which it thus has not observed")
		patch(ctx, mailbox, readings.GroupVersionResource, ns, "one", `{"spec": {"size": 11}}`)
		Eventually(failures).WithContext(ctx).WithArguments(mailbox, ns).Should(ConsistOf("Invalid one"))
		report(readings, `{"phase": "Old"}`)
		Eventually(above).WithContext(ctx).WithArguments(readings, "status", "phase").Should(Equal("Old"))
		Expect(above(readings, "status", "observedGeneration")).To(Equal("1"))
		Expect(above(readings, "metadata", "generation")).To(Equal("2"))
	}, NodeTimeout(3*time.Minute))

	It("is not written for objects that kcp reconciles itself", func(ctx SpecContext) {
		const ns = "status-native"
		florin, mailbox := target("florin"), sharedMailbox(ctx, "florin")
		stickersName := stickers.GroupResource().String()
		define(ctx, mailbox, stickers)
		apply(ctx, mailbox, documents(namespace(ns), syncerConfig(ns, fmt.Sprintf(`{clusterScope: [
			{group: "", resource: namespaces, apiVersion: v1, objects: [%s]},
			{group: apiextensions.k8s.io, resource: customresourcedefinitions, apiVersion: v1, objects: [%s]}]}`, ns, stickersName))))
		Eventually(framework.Condition).WithContext(ctx).WithArguments(florin, definitions, "", stickersName, "Established").Should(Equal("True"))
		eventuallyExists(ctx, florin, namespaces, "", ns)
		own := func() string {
			return value(ctx, mailbox, namespaces, "", ns, "status") + value(ctx, mailbox, definitions, "", stickersName, "status")
		}
		before := own()
		Expect(before).To(And(ContainSubstring("Active"), ContainSubstring("Established")))
		for resource, name := range map[schema.GroupVersionResource]string{namespaces: ns, definitions: stickersName} {
			patch(ctx, florin, resource, "", name, `{"status": {"conditions": [{"type": "Told", "status": "True", "reason": "R", "message": "m", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}}`, "status")
			// The arrival of this later change shows that the hub has observed the status.
			patch(ctx, mailbox, resource, "", name, `{"metadata": {"labels": {"synced": "yes"}}}`)
			Eventually(value).WithContext(ctx).WithArguments(florin, resource, "", name, "metadata", "labels", "synced").Should(Equal("yes"))
		}
		staysFor(ctx, own, before)
	}, NodeTimeout(2*time.Minute))

	It("makes kubectl rollout status in the mailbox correct", func(ctx SpecContext) {
		const ns = "rollout"
		inventory := sharedInventory()
		florin, mailbox := target("florin"), register(ctx, inventory, "florin", "florin")
		syncTarget, err := inventory.SyncTarget(ctx, "florin")
		Expect(err).NotTo(HaveOccurred())
		kubeconfig, err := suite.KCP.WorkspaceKubeconfig(syncTarget.Status.Mailbox.Workspace)
		Expect(err).NotTo(HaveOccurred())
		cache := GinkgoT().TempDir()
		rollout := func(arguments ...string) string {
			arguments = append([]string{"--kubeconfig", kubeconfig, "--cache-dir", cache, "-n", ns, "rollout", "status", "deployment/web"}, arguments...)
			output, err := exec.CommandContext(ctx, filepath.Join(suite.Options.Bin, "kubectl"), arguments...).CombinedOutput()
			if err != nil {
				return err.Error() + ": " + string(output)
			}
			return string(output)
		}
		apply(ctx, mailbox, documents(namespace(ns), deployment(ns, "web"), selecting(ns, deployments)))
		Eventually(framework.Condition).WithContext(ctx).WithArguments(mailbox, deployments, ns, "web", "Available").Should(Equal("True"))

		By("changing the generation on the target")
		patch(ctx, florin, deployments, ns, "web", `{"spec": {"replicas": 5}}`)
		Eventually(value).WithContext(ctx).WithArguments(florin, deployments, ns, "web", "spec", "replicas").Should(Equal("2"))
		Expect(value(ctx, florin, deployments, ns, "web", "metadata", "generation")).NotTo(Equal(value(ctx, mailbox, deployments, ns, "web", "metadata", "generation")))
		const done = "successfully rolled out"
		Expect(rollout("--timeout=60s")).To(ContainSubstring(done))

		By("not being complete before the target has the change, which a suspended config delays")
		patch(ctx, mailbox, syncerConfigs, "", ns, `{"spec": {"suspend": true}}`)
		Eventually(framework.Condition).WithContext(ctx).WithArguments(mailbox, syncerConfigs, "", ns, "Suspended").Should(Equal("True"))
		patch(ctx, mailbox, deployments, ns, "web", `{"spec": {"template": {"metadata": {"labels": {"version": "2"}}, "spec": {"nodeSelector": {"no": "node"}}}}}`)
		Expect(rollout("--watch=false")).To(ContainSubstring("Waiting for deployment spec update to be observed"))
		By("not being complete while the new version cannot start")
		watched := make(chan string, 1)
		go func() { watched <- rollout("--timeout=90s") }()
		patch(ctx, mailbox, syncerConfigs, "", ns, `{"spec": {"suspend": false}}`)
		Eventually(value).WithContext(ctx).WithArguments(mailbox, deployments, ns, "web", "status", "updatedReplicas").Should(Equal("1"))
		Eventually(rollout).WithArguments("--watch=false").WithContext(ctx).Should(ContainSubstring("1 out of 2 new replicas have been updated"))
		Expect(watched).NotTo(Receive())
		By("being complete when it has started")
		patch(ctx, mailbox, deployments, ns, "web", `{"spec": {"template": {"spec": {"nodeSelector": null}}}}`)
		Eventually(watched).WithContext(ctx).Should(Receive(ContainSubstring(done)))
		status, err := framework.Get(ctx, florin, deployments, ns, "web")
		Expect(err).NotTo(HaveOccurred())
		for field, want := range map[string]int64{"observedGeneration": status.GetGeneration(), "updatedReplicas": 2, "availableReplicas": 2, "replicas": 2} {
			number, _, err := unstructured.NestedInt64(status.Object, "status", field)
			Expect(err).NotTo(HaveOccurred())
			Expect(number).To(Equal(want), field)
		}
		Expect(value(ctx, florin, deployments, ns, "web", "spec", "template")).To(And(ContainSubstring("version:2"), Not(ContainSubstring("nodeSelector"))))
	}, NodeTimeout(3*time.Minute))
})

// followCount returns a function that returns all values of an object's status.count so far, until the spec ends.
func followCount(ctx context.Context, config *rest.Config, resource schema.GroupVersionResource, namespace, name string) func() []int64 {
	GinkgoHelper()
	client, err := dynamic.NewForConfig(config)
	Expect(err).NotTo(HaveOccurred())
	changes, err := client.Resource(resource).Namespace(namespace).Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(changes.Stop)
	var lock sync.Mutex
	var counts []int64
	go func() {
		for change := range changes.ResultChan() {
			object, ok := change.Object.(*unstructured.Unstructured)
			if !ok {
				continue
			}
			count, found, _ := unstructured.NestedInt64(object.Object, "status", "count")
			lock.Lock()
			if found && (len(counts) == 0 || counts[len(counts)-1] != count) {
				counts = append(counts, count)
			}
			lock.Unlock()
		}
	}()
	return func() []int64 {
		lock.Lock()
		defer lock.Unlock()
		return slices.Clone(counts)
	}
}
