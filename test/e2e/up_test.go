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
	"strings"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/synchub-dev/synchub/test/framework"
)

const (
	markAnnotation    = "synchub.dev/mark"
	ownerLabel        = "synchub.dev/owner"
	ensuredAnnotation = "synchub.dev/ensured-by"
)

var _ = Describe("upsync", func() {
	It("keeps objects of the target in the mailbox, with their status", func(ctx SpecContext) {
		const ns = "up-kept"
		publishInstruments(ctx, "florin")
		florin, mailbox := target("florin"), sharedMailbox(ctx, "florin")
		apply(ctx, florin, documents(namespace(ns), configMap(ns, "settings", "green"), gauge(ns, "boiler", 3), meter(ns, 3)))
		DeferCleanup(func(ctx SpecContext) { remove(ctx, florin, meters, "", ns) })
		patch(ctx, florin, gauges, ns, "boiler", `{"status": {"reading": 7}}`, "status")
		patch(ctx, florin, meters, "", ns, `{"status": {"reading": 7}}`)
		before := identities(ctx, florin, configMaps, ns, "settings")
		apply(ctx, mailbox, syncerConfig(ns, fmt.Sprintf(`{upsync: [
			{apiGroup: "", resources: [configmaps], namespaces: [%[1]s], names: ["*"]},
			{apiGroup: up.example.com, resources: ["*"], namespaces: [%[1]s], names: [boiler, %[1]s]}]}`, ns)))
		above := readerOf(ctx, mailbox)

		Eventually(above(configMaps, ns, "settings", "data", "entry")).WithContext(ctx).Should(Equal("green"))
		Eventually(above(gauges, ns, "boiler", "spec", "size")).WithContext(ctx).Should(Equal("3"))
		Eventually(above(gauges, ns, "boiler", "status", "reading")).WithContext(ctx).Should(Equal("7"))
		Eventually(above(meters, "", ns, "spec", "size")).WithContext(ctx).Should(Equal("3"))
		Eventually(above(meters, "", ns, "status", "reading")).WithContext(ctx).Should(Equal("7"))
		Eventually(framework.Condition).WithContext(ctx).WithArguments(mailbox, syncerConfigs, "", ns, "Ready").Should(Equal("True"))
		Eventually(value).WithContext(ctx).WithArguments(mailbox, syncerConfigs, "", ns, "status", "synced").Should(Equal("3"))
		By("creating the namespace that they need, without a mark")
		Expect(above(namespaces, "", ns, "metadata", "annotations")()).To(And(ContainSubstring(ensuredAnnotation), Not(ContainSubstring(markAnnotation))))
		By("not changing the target's objects")
		Expect(identities(ctx, florin, configMaps, ns, "settings")).To(Equal(before))

		By("following changes")
		patch(ctx, florin, configMaps, ns, "settings", `{"metadata": {"labels": {"team": "red"}}, "data": {"entry": "blue", "more": "yes"}}`)
		Eventually(above(configMaps, ns, "settings", "data", "more")).WithContext(ctx).Should(Equal("yes"))
		Expect(above(configMaps, ns, "settings", "data", "entry")()).To(Equal("blue"))
		Expect(above(configMaps, ns, "settings", "metadata", "labels", "team")()).To(Equal("red"))
		patch(ctx, florin, configMaps, ns, "settings", `{"metadata": {"labels": {"team": null}}, "data": {"more": null}}`)
		Eventually(above(configMaps, ns, "settings", "data", "more")).WithContext(ctx).Should(BeEmpty())
		Expect(above(configMaps, ns, "settings", "metadata", "labels", "team")()).To(BeEmpty())
		patch(ctx, florin, gauges, ns, "boiler", `{"spec": {"size": 4}}`)
		patch(ctx, florin, gauges, ns, "boiler", `{"status": {"reading": 8}}`, "status")
		patch(ctx, florin, meters, "", ns, `{"spec": {"size": 4}, "status": {"reading": 8}}`)
		Eventually(above(gauges, ns, "boiler", "spec", "size")).WithContext(ctx).Should(Equal("4"))
		Eventually(above(gauges, ns, "boiler", "status", "reading")).WithContext(ctx).Should(Equal("8"))
		Eventually(above(meters, "", ns, "status", "reading")).WithContext(ctx).Should(Equal("8"))
		Expect(above(meters, "", ns, "spec", "size")()).To(Equal("4"))
		patch(ctx, florin, gauges, ns, "boiler", `{"status": null}`, "status")
		patch(ctx, florin, meters, "", ns, `{"status": null}`)
		Eventually(above(gauges, ns, "boiler", "status", "reading")).WithContext(ctx).Should(BeEmpty())
		Eventually(above(meters, "", ns, "status", "reading")).WithContext(ctx).Should(BeEmpty())

		By("reverting changes to them in the mailbox")
		patch(ctx, mailbox, configMaps, ns, "settings", `{"metadata": {"labels": {"synchub.dev/owner": "me"}}, "data": {"entry": "red"}}`)
		Eventually(above(configMaps, ns, "settings", "data", "entry")).WithContext(ctx).Should(Equal("blue"))
		Expect(above(configMaps, ns, "settings", "metadata", "labels", ownerLabel)()).NotTo(Equal("me"))
		patch(ctx, mailbox, gauges, ns, "boiler", `{"spec": {"size": 99}}`)
		Eventually(above(gauges, ns, "boiler", "spec", "size")).WithContext(ctx).Should(Equal("4"))
		patch(ctx, mailbox, gauges, ns, "boiler", `{"status": {"reading": 99}}`, "status")
		Eventually(above(gauges, ns, "boiler", "status", "reading")).WithContext(ctx).Should(BeEmpty())
		remove(ctx, mailbox, configMaps, ns, "settings")
		Eventually(above(configMaps, ns, "settings", "data", "entry")).WithContext(ctx).Should(Equal("blue"))

		By("tolerating other writers of these objects")
		const rounds = 20
		for i := range rounds {
			patch(ctx, mailbox, gauges, ns, "boiler", fmt.Sprintf(`{"metadata": {"annotations": {"note": "%d"}}}`, i))
			patch(ctx, florin, gauges, ns, "boiler", fmt.Sprintf(`{"spec": {"size": %d}}`, 100+i))
		}
		Eventually(above(gauges, ns, "boiler", "spec", "size")).WithContext(ctx).Should(Equal(fmt.Sprint(100 + rounds - 1)))
		Expect(reasons(ctx, mailbox, ns, "boiler")).To(BeEmpty())
		By("following an object that is created again")
		remove(ctx, florin, configMaps, ns, "settings")
		apply(ctx, florin, configMap(ns, "settings", "yellow"))
		Eventually(above(configMaps, ns, "settings", "data", "entry")).WithContext(ctx).Should(Equal("yellow"))
		By("deleting them when the originals are deleted")
		remove(ctx, florin, configMaps, ns, "settings")
		remove(ctx, florin, meters, "", ns)
		eventuallyGone(ctx, mailbox, configMaps, ns, "settings")
		eventuallyGone(ctx, mailbox, meters, "", ns)
		By("deleting them with the original namespace, which stays in the mailbox")
		remove(ctx, florin, namespaces, "", ns)
		eventuallyGone(ctx, mailbox, gauges, ns, "boiler")
		Expect(above(namespaces, "", ns, "status", "phase")()).To(Equal("Active"))
	}, NodeTimeout(3*time.Minute))

	It("creates an object a few times if somebody deletes it in the mailbox each time, and reports that there", thorough, func(ctx SpecContext) {
		const ns = "up-removed"
		florin, mailbox := target("florin"), sharedMailbox(ctx, "florin")
		apply(ctx, florin, documents(namespace(ns), configMap(ns, "theirs", "1"), configMap(ns, "other", "1")))
		apply(ctx, mailbox, documents(namespace(ns), syncerConfig(ns, fmt.Sprintf(`{upsync: [{apiGroup: "", resources: [configmaps], namespaces: [%s], names: ["*"]}]}`, ns))))
		above := readerOf(ctx, mailbox)
		Eventually(above(configMaps, ns, "other", "data", "entry")).WithContext(ctx).Should(Equal("1"))
		created := deleteAtOnce(ctx, mailbox, configMaps, ns, "theirs")
		By("reporting it in the config and as an event")
		Eventually(failures).WithContext(ctx).WithTimeout(time.Minute).WithArguments(mailbox, ns).Should(ConsistOf("RemovedInMailbox theirs"))
		Expect(failureMessage(ctx, mailbox, ns, "theirs")).To(ContainSubstring("deleted the object in the mailbox"))
		Eventually(reasons).WithContext(ctx).WithArguments(mailbox, ns, "theirs").Should(ContainElement("RemovedInMailbox"))
		// The first one was there before, two were made at once. The fourth waits for 15 s, the fifth for 30 s more, the sixth for a minute.
		Expect(created()).To(BeNumerically("<=", 5))
		By("not changing the other one, and creating the object at once when its source changes")
		before := identities(ctx, mailbox, configMaps, ns, "other")
		known := created()
		patch(ctx, florin, configMaps, ns, "theirs", `{"data": {"entry": "2"}}`)
		Eventually(created).WithContext(ctx).Should(BeNumerically(">", known))
		Expect(identities(ctx, mailbox, configMaps, ns, "other")).To(Equal(before))
	}, NodeTimeout(3*time.Minute))

	It("does not downsync upsynced objects, nor the reverse, and reports the objects that it leaves out", func(ctx SpecContext) {
		const ns = "up-and-down"
		florin, mailbox := target("florin"), sharedMailbox(ctx, "florin")
		above, below := readerOf(ctx, mailbox), readerOf(ctx, florin)
		down := fmt.Sprintf(`namespaceScope: {namespaces: [%s], resources: [{group: "", resource: configmaps, apiVersion: v1}]}`, ns)
		up := fmt.Sprintf(`upsync: [{apiGroup: "", resources: [configmaps], namespaces: [%s], names: ["*"]}]`, ns)
		apply(ctx, mailbox, documents(namespace(ns), configMap(ns, "went-down", "1"), syncerConfig(ns, "{"+down+"}")))
		Eventually(below(configMaps, ns, "went-down", "data", "entry")).WithContext(ctx).Should(Equal("1"))
		apply(ctx, florin, configMap(ns, "theirs", "1"))
		theirs := identities(ctx, florin, configMaps, ns, "theirs")

		apply(ctx, mailbox, syncerConfig(ns, "{"+down+", "+up+"}"))
		Eventually(above(configMaps, ns, "theirs", "data", "entry")).WithContext(ctx).Should(Equal("1"))
		apply(ctx, mailbox, configMap(ns, "late", "1"))
		Eventually(message).WithContext(ctx).WithArguments(mailbox, syncerConfigs, ns, "Overlapping").
			Should(And(ContainSubstring("configmaps "+ns+"/late"), Not(ContainSubstring("theirs")), Not(ContainSubstring("went-down"))))
		Expect(value(ctx, mailbox, syncerConfigs, "", ns, "status", "conditions")).To(ContainSubstring("SelectedUp"))
		By("keeping in sync, each in its direction")
		patch(ctx, mailbox, configMaps, ns, "went-down", `{"data": {"entry": "2"}}`)
		Eventually(below(configMaps, ns, "went-down", "data", "entry")).WithContext(ctx).Should(Equal("2"))
		staysFor(ctx, func() string { return fmt.Sprint(framework.Exists(ctx, florin, configMaps, ns, "late")) }, "false <nil>")
		Expect(identities(ctx, florin, configMaps, ns, "theirs")).To(Equal(theirs), "what came up is not sent down again")
		Expect(above(configMaps, ns, "went-down", "metadata", "annotations", markAnnotation)()).To(BeEmpty(), "what went down does not come up")
		By("treating a copy of an upsynced object as a user's own object")
		copied, err := framework.Get(ctx, mailbox, configMaps, ns, "theirs")
		Expect(err).NotTo(HaveOccurred())
		copied.SetName("copied")
		copied.SetResourceVersion("")
		copied.SetUID("")
		create(ctx, mailbox, configMaps, copied)

		By("downsyncing excluded objects, once upsync no longer selects them")
		apply(ctx, mailbox, syncerConfig(ns, "{"+down+"}"))
		eventuallyExists(ctx, florin, configMaps, ns, "late")
		eventuallyExists(ctx, florin, configMaps, ns, "copied")
		eventuallyGone(ctx, mailbox, configMaps, ns, "theirs")
		Expect(framework.Exists(ctx, mailbox, configMaps, ns, "copied")).To(BeTrue())
		Expect(identities(ctx, florin, configMaps, ns, "theirs")).To(Equal(theirs))
		Eventually(framework.Condition).WithContext(ctx).WithArguments(mailbox, syncerConfigs, "", ns, "Overlapping").Should(BeEmpty())
	}, NodeTimeout(3*time.Minute))

	It("overwrites only objects that KubeStellar's syncer brought up, where these may be adopted", thorough, func(ctx SpecContext) {
		const ns = "up-taken"
		publishInstruments(ctx, "florin")
		florin, mailbox := target("florin"), sharedMailbox(ctx, "florin")
		above := readerOf(ctx, mailbox)
		apply(ctx, florin, documents(namespace(ns), configMap(ns, "settings", "theirs"), configMap(ns, "other", "fine"),
			gauge(ns, "brought", 3), gauge(ns, "copied", 3), gauge(ns, "made", 3)))
		apply(ctx, mailbox, documents(namespace(ns), configMap(ns, "settings", "mine"), gauge(ns, "brought", 1), gauge(ns, "copied", 1), gauge(ns, "made", 1)))
		// An object that KubeStellar's syncer has upsynced names itself; the second is a copy under another name.
		for _, name := range []string{"brought", "copied"} {
			patch(ctx, mailbox, gauges, ns, name, fmt.Sprintf(`{"metadata": {"annotations": {"edge.kubestellar.io/upsynced": "Gauge/%s/brought"}}}`, ns))
		}
		brought, _, _ := strings.Cut(identities(ctx, mailbox, gauges, ns, "brought")["brought"], "@")
		apply(ctx, mailbox, syncerConfig(ns, fmt.Sprintf(`{upsync: [
			{apiGroup: "", resources: [configmaps], namespaces: [%[1]s], names: ["*"]},
			{apiGroup: up.example.com, resources: [gauges], namespaces: [%[1]s], names: ["*"]}]}`, ns)))

		Eventually(above(configMaps, ns, "other", "data", "entry")).WithContext(ctx).Should(Equal("fine"))
		Eventually(above(gauges, ns, "brought", "spec", "size")).WithContext(ctx).Should(Equal("3"))
		Expect(above(gauges, ns, "brought", "metadata", "uid")()).To(Equal(brought), "it is adopted, not created again")
		Expect(above(gauges, ns, "brought", "metadata", "annotations")()).To(And(ContainSubstring(markAnnotation), Not(ContainSubstring("kubestellar"))))
		Eventually(failures).WithContext(ctx).WithArguments(mailbox, ns).Should(ConsistOf("Conflict settings", "Conflict copied", "Conflict made"))
		for _, name := range []string{"settings", "copied", "made"} {
			Eventually(func() []string { return reasons(ctx, mailbox, ns, name) }).WithContext(ctx).Should(ConsistOf("Conflict"))
		}
		Expect(above(configMaps, ns, "settings", "data", "entry")()).To(Equal("mine"))
		Expect(above(gauges, ns, "copied", "spec", "size")()).To(Equal("1"))
		Expect(above(gauges, ns, "made", "spec", "size")()).To(Equal("1"))

		By("upsyncing it once the name is free")
		remove(ctx, mailbox, configMaps, ns, "settings")
		Eventually(above(configMaps, ns, "settings", "data", "entry")).WithContext(ctx).Should(Equal("theirs"))
		By("deleting an adopted object in the mailbox, like all upsynced objects, when the original is deleted")
		remove(ctx, florin, gauges, ns, "brought")
		eventuallyGone(ctx, mailbox, gauges, ns, "brought")
		By("not changing objects that were never upsynced")
		remove(ctx, florin, gauges, ns, "made")
		remove(ctx, florin, gauges, ns, "copied")
		Eventually(failures).WithContext(ctx).WithArguments(mailbox, ns).Should(BeEmpty())
		Expect(above(gauges, ns, "made", "spec", "size")()).To(Equal("1"))
	}, NodeTimeout(3*time.Minute))
})

// create creates an object without changes.
func create(ctx context.Context, config *rest.Config, resource schema.GroupVersionResource, object *unstructured.Unstructured) {
	GinkgoHelper()
	client, err := dynamic.NewForConfig(config)
	Expect(err).NotTo(HaveOccurred())
	_, err = client.Resource(resource).Namespace(object.GetNamespace()).Create(ctx, object, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
}

// deleteAtOnce deletes an object whenever it is there, until the spec ends. It returns a function that returns how many it has deleted.
func deleteAtOnce(ctx context.Context, config *rest.Config, resource schema.GroupVersionResource, namespace, name string) (deleted func() int64) {
	GinkgoHelper()
	client, err := dynamic.NewForConfig(config)
	Expect(err).NotTo(HaveOccurred())
	objects := client.Resource(resource).Namespace(namespace)
	ctx, cancel := context.WithCancel(ctx)
	events, err := objects.Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	Expect(err).NotTo(HaveOccurred())
	count, ended := &atomic.Int64{}, make(chan struct{})
	DeferCleanup(func() {
		cancel()
		events.Stop()
		<-ended
	})
	go func() {
		defer close(ended)
		for event := range events.ResultChan() {
			object, ok := event.Object.(*unstructured.Unstructured)
			if !ok || event.Type != watch.Added {
				continue
			}
			uid := object.GetUID()
			if objects.Delete(ctx, name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}}) == nil {
				count.Add(1)
			}
		}
	}()
	return count.Load
}
