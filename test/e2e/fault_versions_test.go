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
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"

	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/explain"
	"github.com/synchub-dev/synchub/test/framework"
)

// lampsIn is the namespace of objects that go to several targets in several versions.
const lampsIn = "several"

// namingVersion returns a config that selects the API, with a version if one is given. It upsyncs the object "theirs" of
// the target.
func (a api) namingVersion(name, version string) string {
	return fmt.Sprintf(`
apiVersion: edge.kubestellar.io/v2alpha1
kind: SyncerConfig
metadata: {name: %[1]s}
spec:
  namespaceScope: {namespaces: [%[2]s], resources: [{group: %[3]s, resource: %[4]s, apiVersion: %[5]q}]}
  upsync: [{apiGroup: %[3]s, resources: [%[4]s], namespaces: [%[2]s], names: [theirs]}]
`, name, lampsIn, a.Group, a.Resource, version)
}

// withoutServing returns the CRD with one of its versions no longer served.
func withoutServing(definition, version string) string {
	return strings.Replace(definition, "- name: "+version+"\n    served: true", "- name: "+version+"\n    served: false", 1)
}

// appliedAs returns the version in which the hub last applied an object on a target.
func appliedAs(ctx context.Context, config *rest.Config, kind api, namespace, name string) string {
	object, err := framework.Get(ctx, config, kind.GroupVersionResource, namespace, name)
	if err != nil {
		return err.Error()
	}
	for _, entry := range object.GetManagedFields() {
		if strings.HasPrefix(entry.Manager, "synchub") && entry.Operation == "Apply" {
			return strings.TrimPrefix(entry.APIVersion, kind.Group+"/")
		}
	}
	return ""
}

var _ = Describe("an API in several versions", thorough, Label("faults"), func() {
	It("is synced to each target in a served version or in the one that an entry names, and changes versions without loss", SpecPriority(1), func(ctx SpecContext) {
		const ns, group = lampsIn, "several.example.com"
		alpha, beta, stable := custom(group, "v1alpha1", "lamps", "Lamp"), custom(group, "v1beta1", "lamps", "Lamp"), custom(group, "v1", "lamps", "Lamp")
		hosting, florin, guilder := target("hosting"), target("florin"), target("guilder")
		apply(ctx, hosting, stable.withSpec(sized, "v1", "v1beta1", "v1alpha1"))
		apply(ctx, florin, stable.withSpec(sized, "v1beta1"))
		apply(ctx, guilder, stable.withSpec(sized, "v1", "v1beta1"))
		publishAs(ctx, ns, "\n  resource: {group: several.example.com, resource: lamps}")
		eventuallyPublished(ctx, ns)
		inventory := newInventory(ctx, ns)
		older, newer := register(ctx, inventory, "florin", "florin"), register(ctx, inventory, "guilder", "guilder")
		apply(ctx, florin, documents(namespace(ns), beta.object(ns, "theirs", "spec: {size: 9}")))
		for _, mailbox := range []*rest.Config{older, newer} {
			apply(ctx, mailbox, documents(namespace(ns), stable.object(ns, "one", "spec: {size: 1}"), alpha.object(ns, "two", "spec: {size: 2}"), stable.namingVersion(ns, "")))
		}
		state := func(name string) func() string {
			return func() string { return syncedResource(ctx, inventory, name, "lamps") }
		}
		writes := func(count float64) map[string]float64 { return map[string]float64{"target object apply lamps": count} }
		in := func(config *rest.Config, kind api) func() {
			return func() {
				GinkgoHelper()
				for _, name := range []string{"one", "two"} {
					Eventually(appliedAs).WithContext(ctx).WithArguments(config, kind, ns, name).Should(Equal(kind.Version), name)
				}
			}
		}

		in(florin, beta)()
		in(guilder, stable)()
		Expect(value(ctx, florin, beta.GroupVersionResource, ns, "two", "spec", "size")).To(Equal("2"))
		eventuallyExists(ctx, older, stable.GroupVersionResource, ns, "theirs")
		Eventually(state("florin")).WithContext(ctx).Should(HavePrefix("Accepted Compatible: "))
		Eventually(message).WithContext(ctx).WithArguments(older, syncerConfigs, ns, "Ready").Should(ContainSubstring("All selected objects are in sync"))
		Expect(explained(ctx, inventory, "florin", "lamps", ns+"/one")).To(comesTo(explain.Present, explain.OK, ""))
		By("returning the status in the version of the mailbox")
		patch(ctx, florin, beta.GroupVersionResource, ns, "one", `{"status": {"lit": true}}`, "status")
		Eventually(value).WithContext(ctx).WithArguments(older, stable.GroupVersionResource, ns, "one", "status", "lit").Should(Equal("true"))

		By("staying there when the hub starts again")
		quiet(ctx)
		Expect(hub.Kill9()).To(Succeed())
		startHub(ctx)
		syncTarget, err := inventory.SyncTarget(ctx, "florin")
		Expect(err).NotTo(HaveOccurred())
		Eventually(looked).WithContext(ctx).WithArguments(string(syncTarget.UID)).Should(BeNumerically(">=", 3))
		quiet(ctx)
		Expect(requestCounts(ctx)).To(BeEmpty())

		counted := counting(ctx)
		placed, upsynced := uids(ctx, florin, beta), identities(ctx, older, stable.GroupVersionResource, ns, "theirs")
		counted("a target that is upgraded, and has only the new version from one moment to the next",
			func() { apply(ctx, florin, withoutServing(stable.withSpec(sized, "v1", "v1beta1"), "v1beta1")) }, in(florin, stable), writes(2))
		counted("the end of the old version, in which nothing is stored any more", func() {
			patch(ctx, florin, stable.GroupVersionResource, ns, "theirs", `{"metadata": {"labels": {"stored": "again"}}}`)
			Eventually(value).WithContext(ctx).WithArguments(older, stable.GroupVersionResource, ns, "theirs", "metadata", "labels", "stored").Should(Equal("again"))
			patch(ctx, florin, definitions, "", stable.GroupResource().String(), `{"status": {"storedVersions": ["v1"]}}`, "status")
			apply(ctx, florin, stable.withSpec(sized, "v1"))
		}, func() {}, map[string]float64{"mailbox object update lamps": 1})
		Expect(uids(ctx, florin, stable)).To(Equal(placed), "nothing was deleted and made again")
		Expect(identities(ctx, older, stable.GroupVersionResource, ns, "theirs")["theirs"]).To(HavePrefix(upsynced["theirs"][:36]), "what came up neither")
		counted("a change after that", func() { patch(ctx, older, stable.GroupVersionResource, ns, "one", `{"spec": {"size": 5}}`) }, func() {
			Eventually(value).WithContext(ctx).WithArguments(florin, stable.GroupVersionResource, ns, "one", "spec", "size").Should(Equal("5"))
		}, map[string]float64{
			"target object apply lamps": 1, // refused: managedFields have the status in a version that is no longer served
			"target extra get lamps":    1,
			"target extra patch lamps":  1,
			"target extra apply lamps":  1,
		})

		counted("another change", func() { patch(ctx, older, stable.GroupVersionResource, ns, "one", `{"spec": {"size": 6}}`) }, func() {
			Eventually(value).WithContext(ctx).WithArguments(florin, stable.GroupVersionResource, ns, "one", "spec", "size").Should(Equal("6"))
		}, writes(1))

		placed = uids(ctx, guilder, stable)
		counted("an entry that names another version", func() { apply(ctx, newer, stable.namingVersion(ns, "v1beta1")) }, in(guilder, beta), writes(2))
		counted("an entry of a younger config that names the first version, which is reported as overruled",
			func() { apply(ctx, newer, stable.namingVersion(ns+"-younger", "v1")) }, func() {
				Eventually(message).WithContext(ctx).WithArguments(newer, syncerConfigs, ns+"-younger", "Overlapping").
					Should(ContainSubstring("names v1 for lamps.several.example.com, spec.namespaceScope.resources[0] of SyncerConfig/several names v1beta1"))
			}, map[string]float64{})
		Expect(message(ctx, newer, syncerConfigs, ns, "Overlapping")).To(BeEmpty())
		before := requestCounts(ctx)
		counted("the end of that config, which takes a proof", func() { remove(ctx, newer, syncerConfigs, "", ns+"-younger") }, func() {
			Eventually(func() map[string]float64 { return difference(before, requestCounts(ctx)) }).WithContext(ctx).Should(HaveKey("mailbox extra list syncerconfigs"))
		}, map[string]float64{"mailbox extra get apibindings": 2, "mailbox extra get logicalclusters": 2, "mailbox extra list syncerconfigs": 1})
		counted("an entry with a version that the target does not serve, which is reported", func() { apply(ctx, newer, stable.namingVersion(ns, "v1alpha1")) }, func() {
			Eventually(message).WithContext(ctx).WithArguments(newer, syncerConfigs, ns, "Ready").
				Should(And(ContainSubstring("Served by the target in other versions only"), ContainSubstring("v1, v1beta1 only")))
		}, map[string]float64{})
		Expect(uids(ctx, guilder, stable)).To(Equal(placed), "all stays as it was")
		counted("an entry that names none", func() { apply(ctx, newer, stable.namingVersion(ns, "")) }, in(guilder, stable), writes(2))
	}, NodeTimeout(4*time.Minute))
})

// uids returns the UIDs of all lamps by name.
func uids(ctx context.Context, config *rest.Config, kind api) map[string]string {
	GinkgoHelper()
	found := identities(ctx, config, kind.GroupVersionResource, lampsIn, "")
	for name, identity := range found {
		found[name], _, _ = strings.Cut(identity, "@")
	}
	return found
}
