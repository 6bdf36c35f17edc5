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

	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/explain"
	"github.com/synchub-dev/synchub/test/framework"
)

var pods = api{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "pods"}, kind: "Pod"}

var _ = Describe("marks", Label("escapes"), func() {
	// Two SyncTargets, a and b, use the same cluster.
	It("are valid only if the hub wrote them on the same object", func(ctx SpecContext) {
		const ns = "marks-forged"
		inventory := sharedInventory()
		florin := target("florin")
		register(ctx, inventory, "florin", "florin")
		b := register(ctx, inventory, "rival", "florin")
		below := readerOf(ctx, florin)
		apply(ctx, b, documents(namespace(ns), configMap(ns, "decoy", "x"), pod(ns, "barrier"), selecting(ns, configMaps, pods.GroupVersionResource)))
		eventuallyExists(ctx, florin, pods.GroupVersionResource, ns, "barrier")
		Eventually(below(configMaps, ns, "decoy", "metadata", "annotations", markAnnotation)).WithContext(ctx).Should(ContainSubstring(`"seal":"`))
		label, mark := below(configMaps, ns, "decoy", "metadata", "labels", ownerLabel)(), below(configMaps, ns, "decoy", "metadata", "annotations", markAnnotation)()

		By("having the controller of a StatefulSet create a Pod with a forged mark of b, for a source that b does not have")
		forged := strings.NewReplacer(`"resource":"configmaps"`, `"resource":"pods"`, `"kind":"ConfigMap"`, `"kind":"Pod"`, `"name":"decoy"`, `"name":"x-0"`).Replace(mark)
		apply(ctx, florin, fmt.Sprintf(`
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: x, namespace: %s}
spec:
  serviceName: x
  selector: {matchLabels: {app: x}}
  template:
    metadata: {labels: {app: x, %s: %s}, annotations: {%s: '%s'}}
    spec: {containers: [{name: x, image: x:1}]}
`, ns, ownerLabel, label, markAnnotation, forged))
		eventuallyExists(ctx, florin, pods.GroupVersionResource, ns, "x-0")
		By("copying b's own mark to an object of another kind, and of another name")
		copied := strings.ReplaceAll(configMap(ns, "copy", "theirs"), "metadata: {", fmt.Sprintf("metadata: {labels: {%s: %s}, annotations: {%s: '%s'}, ", ownerLabel, label, markAnnotation, mark))
		apply(ctx, florin, copied)
		before := identities(ctx, florin, pods.GroupVersionResource, ns, "x-0")
		Expect(before).To(HaveLen(1))

		By("deleting only the copies that b no longer selects")
		remove(ctx, b, pods.GroupVersionResource, ns, "barrier")
		eventuallyGone(ctx, florin, pods.GroupVersionResource, ns, "barrier")
		staysFor(ctx, below(pods.GroupVersionResource, ns, "x-0", "metadata", "deletionTimestamp"), "")
		Expect(framework.Exists(ctx, florin, configMaps, ns, "copy")).To(BeTrue())
		By("reporting the conflict")
		apply(ctx, b, pod(ns, "x-0"))
		Eventually(failureMessage).WithContext(ctx).WithArguments(b, ns, "x-0").Should(ContainSubstring("does not verify"))
		Expect(reasons(ctx, b, ns, "x-0")).To(ContainElement("Conflict"))
		remove(ctx, b, pods.GroupVersionResource, ns, "x-0")
		apply(ctx, b, configMap(ns, "last", "x"))
		eventuallyExists(ctx, florin, configMaps, ns, "last")
		staysFor(ctx, below(pods.GroupVersionResource, ns, "x-0", "metadata", "deletionTimestamp"), "")
		Expect(below(pods.GroupVersionResource, ns, "x-0", "metadata", "uid")()).NotTo(BeEmpty())
	}, NodeTimeout(3*time.Minute))

	It("keep the copies of one SyncTarget out of another one's mailbox", thorough, func(ctx SpecContext) {
		const ns = "marks-shared"
		inventory := sharedInventory()
		florin := target("florin")
		a, b := register(ctx, inventory, "florin", "florin"), register(ctx, inventory, "rival", "florin")
		above, below := readerOf(ctx, a), readerOf(ctx, florin)
		secret := func(name, content string) string {
			return fmt.Sprintf("apiVersion: v1\nkind: Secret\nmetadata: {name: %s, namespace: %s}\nstringData: {entry: %q}\n", name, ns, content)
		}
		inA := func(name string) func() string { return above(secrets, ns, name, "metadata", "name") }
		apply(ctx, a, syncerConfig(ns, fmt.Sprintf(`{upsync: [{apiGroup: "", resources: [secrets, namespaces], namespaces: [%[1]s], names: ["*"]}]}`, ns)))
		apply(ctx, b, documents(namespace(ns), secret("x", "first"), everythingIn(ns)))
		eventuallyExists(ctx, florin, secrets, ns, "x")
		apply(ctx, florin, secret("theirs", "1"))
		Eventually(inA("theirs")).WithContext(ctx).Should(Equal("theirs"))
		Expect(inA("x")()).To(BeEmpty())
		By("keeping its changes out, too")
		uid := below(secrets, ns, "x", "metadata", "uid")()
		apply(ctx, b, secret("x", "second"))
		Eventually(below(secrets, ns, "x", "data", "entry")).WithContext(ctx).Should(Equal("c2Vjb25k"))
		By("keeping out objects with a hub's mark, valid or not, and the objects that a controller created from them")
		label, mark := below(secrets, ns, "x", "metadata", "labels", ownerLabel)(), below(secrets, ns, "x", "metadata", "annotations", markAnnotation)()
		for name, metadata := range map[string]string{
			"labelled": "labels: {" + ownerLabel + ": " + label + "}",
			"marked":   "annotations: {" + markAnnotation + ": '" + mark + "'}",
			"nonsense": "annotations: {" + markAnnotation + ": x}",
			"later":    "annotations: {" + markAnnotation + `: '{"v":7}'}`,
		} {
			apply(ctx, florin, strings.Replace(secret(name, "x"), "metadata: {", "metadata: {"+metadata+", ", 1))
		}
		apply(ctx, florin, secret("after", "1"))
		Eventually(inA("after")).WithContext(ctx).Should(Equal("after"))
		for _, name := range []string{"x", "labelled", "marked", "nonsense", "later"} {
			Expect(inA(name)()).To(BeEmpty(), name)
		}
		Expect(below(secrets, ns, "x", "metadata", "uid")()).To(Equal(uid))
		Eventually(explained).WithContext(ctx).WithArguments(inventory, "florin", "secrets", ns+"/x").
			Should(And(HaveField("State", explain.Stopped), HaveField("Step", explain.StepObject), HaveField("Text", ContainSubstring("a hub brought it there"))))

		By("deleting objects that become another hub's, and upsyncing objects that become unowned")
		patch(ctx, florin, secrets, ns, "theirs", fmt.Sprintf(`{"metadata": {"labels": {%q: %q}}}`, ownerLabel, label))
		eventuallyGone(ctx, a, secrets, ns, "theirs")
		patch(ctx, florin, secrets, ns, "labelled", fmt.Sprintf(`{"metadata": {"labels": {%q: null}}}`, ownerLabel))
		Eventually(inA("labelled")).WithContext(ctx).Should(Equal("labelled"))
		patch(ctx, b, syncerConfigs, "", ns, `{"spec": {"deletionPolicy": "Orphan"}}`)
		Eventually(below(secrets, ns, "x", "metadata", "annotations", markAnnotation)).WithContext(ctx).Should(ContainSubstring(`"policy":"Orphan"`))
		remove(ctx, b, syncerConfigs, "", ns)
		Eventually(inA("x")).WithContext(ctx).Should(Equal("x"), "it was left to the cluster's administrator")
	}, NodeTimeout(3*time.Minute))

	It("are removed from a Namespace and a definition deleted in the mailbox, and added again with them", thorough, func(ctx SpecContext) {
		const ns, group, count = "marks-return", "return.example.com", 20
		florin, mailbox := target("florin"), sharedMailbox(ctx, "florin")
		below := readerOf(ctx, florin)
		tokens := custom(group, "v1", "tokens", "Token")
		crd := tokens.GroupResource().String()
		DeferCleanup(func(ctx SpecContext) { remove(ctx, florin, definitions, "", crd) })
		apply(ctx, mailbox, documents(namespace(ns), tokens.definition(), everythingIn(ns), syncerConfig(ns+"-itself", fmt.Sprintf(`{clusterScope: [
			{group: "", resource: namespaces, apiVersion: v1, objects: [%s]},
			{group: apiextensions.k8s.io, resource: customresourcedefinitions, apiVersion: v1, objects: [%s]}]}`, ns, crd))))
		fill(ctx, mailbox, ns, "item", count)
		Eventually(identities).WithContext(ctx).WithArguments(florin, configMaps, ns, "item").Should(HaveLen(count))
		marked := func(resource schema.GroupVersionResource, name string) AsyncAssertion {
			return Eventually(below(resource, "", name, "metadata", "annotations", markAnnotation)).WithContext(ctx)
		}
		marked(namespaces, ns).Should(Not(BeEmpty()))
		marked(definitions, crd).Should(Not(BeEmpty()))
		first, defined := below(namespaces, "", ns, "metadata", "uid")(), below(definitions, "", crd, "metadata", "uid")()

		By("removing their marks when they are deleted in the mailbox")
		remove(ctx, mailbox, namespaces, "", ns)
		remove(ctx, mailbox, definitions, "", crd)
		eventuallyReleased(ctx, namespaces, "", ns)
		eventuallyReleased(ctx, definitions, "", crd)
		eventuallyGone(ctx, mailbox, namespaces, "", ns)
		By("adding the marks again")
		apply(ctx, mailbox, documents(namespace(ns), tokens.definition()))
		fill(ctx, mailbox, ns, "item", count)
		marked(namespaces, ns).Should(Not(BeEmpty()))
		marked(definitions, crd).Should(Not(BeEmpty()))
		Expect([]string{below(namespaces, "", ns, "metadata", "uid")(), below(definitions, "", crd, "metadata", "uid")()}).To(Equal([]string{first, defined}))
		Eventually(identities).WithContext(ctx).WithArguments(florin, configMaps, ns, "item").Should(HaveLen(count))
		Eventually(framework.Condition).WithContext(ctx).WithArguments(mailbox, syncerConfigs, "", ns+"-itself", "Ready").Should(Equal("True"))
		Eventually(value).WithContext(ctx).WithArguments(mailbox, syncerConfigs, "", ns+"-itself", "status", "synced").Should(Equal("2"))

		By("not taking a Namespace that somebody else created in between")
		remove(ctx, mailbox, namespaces, "", ns)
		eventuallyReleased(ctx, namespaces, "", ns)
		value := below(namespaces, "", ns, "metadata", "annotations", ensuredAnnotation)()
		Expect(value).NotTo(BeEmpty())
		other := ns + "-theirs"
		apply(ctx, florin, strings.ReplaceAll(namespace(other), "metadata: {", fmt.Sprintf("metadata: {annotations: {%s: %s}, ", ensuredAnnotation, value)))
		DeferCleanup(func(ctx SpecContext) { remove(ctx, florin, namespaces, "", other) })
		apply(ctx, mailbox, documents(namespace(other), selectingNamespace(other)))
		Eventually(failureMessage).WithContext(ctx).WithArguments(mailbox, other+"-itself", other).Should(ContainSubstring("spec.adoption"))
	}, NodeTimeout(3*time.Minute))
})

// pod returns a Pod that a fake node runs.
func pod(namespace, name string) string {
	return pods.object(namespace, name, "spec: {containers: [{name: x, image: x:1}]}")
}
