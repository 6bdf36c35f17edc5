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
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/placement"
	"github.com/synchub-dev/synchub/controllers/placement/rules"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/framework/installation"
)

var (
	edgePlacements = schema.GroupVersionResource{Group: "edge.kubestellar.io", Version: "v2alpha1", Resource: "edgeplacements"}
	placedSlices   = schema.GroupVersionResource{Group: "edge.kubestellar.io", Version: "v2alpha1", Resource: "singleplacementslices"}
	locations      = schema.GroupVersionResource{Group: "edge.kubestellar.io", Version: "v2alpha1", Resource: "locations"}
)

// location returns a Location that selects SyncTargets by a label, and that a workspace may use.
func location(name, env, availableTo string) string {
	return fmt.Sprintf(`
apiVersion: edge.kubestellar.io/v2alpha1
kind: Location
metadata: {name: %[1]s, labels: {env: %[2]s}}
spec:
  resource: {group: edge.kubestellar.io, version: v2alpha1, resource: synctargets}
  instanceSelector: {matchLabels: {env: %[2]s}}
  availableTo: {workspaces: [%[3]q]}
`, name, env, availableTo)
}

// placementOn returns a placement of all objects of a namespace on the Locations for production.
func placementOn(name, namespace string) string {
	return fmt.Sprintf(`
apiVersion: edge.kubestellar.io/v2alpha1
kind: EdgePlacement
metadata: {name: %[1]s}
spec:
  locationSelectors: [{matchLabels: {env: prod}}]
  downsync: [{namespaces: [%[2]s]}]
`, name, namespace)
}

// newWorkload creates a workload workspace.
func newWorkload(ctx context.Context, name string, before ...string) *installation.Workload {
	GinkgoHelper()
	workload, err := synchub.NewWorkload(ctx, name, before...)
	Expect(err).NotTo(HaveOccurred())
	return workload
}

var _ = Describe("placement", Label("placement"), func() {
	It("copies objects to the clusters that a placement selects, follows changes, and withdraws them", func(ctx SpecContext) {
		const ns = "placement-journey"
		inventory, workload := newInventory(ctx, ns), newWorkload(ctx, ns+"-workload")
		for name, env := range map[string]string{"florin": "prod", "guilder": "dev"} {
			Expect(inventory.Register(ctx, name, kubeconfigOf(name), map[string]string{"env": env})).To(Succeed())
		}
		apply(ctx, inventory.Config, documents(location("prod", "prod", workload.Path), location("dev", "dev", workload.Path)))

		eventuallyPlaced(ctx, workload, documents(namespace(ns), configMap(ns, "prices", "1"), placementOn("shop", ns)))
		eventuallyExists(ctx, target("florin"), configMaps, ns, "prices")
		Eventually(readyStatus).WithContext(ctx).WithArguments(workload, "shop").Should(Equal("True"))
		Expect(value(ctx, workload.Config, edgePlacements, "", "shop", "status", "destinations")).To(Equal("1"))
		Eventually(value).WithArguments(ctx, workload.Config, placedSlices, "", "shop", "destinations").Should(ContainSubstring("florin"))

		By("an edit reaches the target")
		apply(ctx, workload.Config, configMap(ns, "prices", "2"))
		Eventually(value).WithArguments(ctx, target("florin"), configMaps, ns, "prices", "data", "entry").Should(Equal("2"))

		By("a label moves the objects to another cluster, which must have them first: it is away for a while")
		next, secret := mailboxOf(ctx, inventory, "guilder"), value(ctx, inventory.Config, installation.SyncTargets, "", "guilder", "spec", "kubeconfigSecretRef", "name")
		useSecret := func(name string) {
			patch(ctx, inventory.Config, installation.SyncTargets, "", "guilder", `{"spec": {"kubeconfigSecretRef": {"name": "`+name+`"}}}`)
		}
		useSecret("missing")
		Eventually(framework.Condition).WithContext(ctx).WithArguments(inventory.Config, installation.SyncTargets, "", "guilder", "Ready").ShouldNot(Equal("True"))
		patch(ctx, inventory.Config, installation.SyncTargets, "", "guilder", `{"metadata": {"labels": {"env": "prod"}}}`)
		patch(ctx, inventory.Config, installation.SyncTargets, "", "florin", `{"metadata": {"labels": {"env": "test"}}}`)
		eventuallyExists(ctx, next, configMaps, ns, "prices")
		Eventually(value).WithArguments(ctx, workload.Config, placedSlices, "", "shop", "destinations").ShouldNot(ContainSubstring("florin"))
		quiet(ctx)
		Expect(framework.Exists(ctx, target("florin"), configMaps, ns, "prices")).To(BeTrue())
		useSecret(secret)
		eventuallyExists(ctx, target("guilder"), configMaps, ns, "prices")
		eventuallyGone(ctx, target("florin"), configMaps, ns, "prices")

		By("a deleted source goes from the target")
		apply(ctx, workload.Config, configMap(ns, "second", "1"))
		eventuallyExists(ctx, target("guilder"), configMaps, ns, "second")
		remove(ctx, workload.Config, configMaps, ns, "second")
		eventuallyGone(ctx, target("guilder"), configMaps, ns, "second")
		Expect(framework.Exists(ctx, target("guilder"), configMaps, ns, "prices")).To(BeTrue())

		By("a deleted placement withdraws everything")
		remove(ctx, workload.Config, edgePlacements, "", "shop")
		eventuallyGone(ctx, target("guilder"), configMaps, ns, "prices")
	}, NodeTimeout(5*time.Minute))

	It("makes one write to the mailbox and one to the target per change, and none at rest or after a restart", thorough, SpecPriority(1), func(ctx SpecContext) {
		const ns = "placement-counted"
		inventory, workload := newInventory(ctx, ns), newWorkload(ctx, ns+"-workload")
		Expect(inventory.Register(ctx, "quiet", kubeconfigOf("hosting"), map[string]string{"env": "prod"})).To(Succeed())
		mailbox := mailboxOf(ctx, inventory, "quiet")
		apply(ctx, inventory.Config, location("prod", "prod", workload.Path))
		eventuallyPlaced(ctx, workload, documents(namespace(ns), configMap(ns, "settings", "green"), placementOn("shop", ns)))
		hosting := target("hosting")
		eventuallyExists(ctx, hosting, configMaps, ns, "settings")
		Eventually(readyStatus).WithContext(ctx).WithArguments(workload, "shop").Should(Equal("True"))
		eventuallyExists(ctx, workload.Config, placedSlices, "", "shop")

		counted := counting(ctx)
		entry := func(name, want string) func() {
			return func() {
				GinkgoHelper()
				Eventually(value).WithContext(ctx).WithArguments(hosting, configMaps, ns, name, "data", "entry").Should(Equal(want))
			}
		}
		counted("an update", func() { patch(ctx, workload.Config, configMaps, ns, "settings", `{"data": {"entry": "blue"}}`) }, entry("settings", "blue"),
			map[string]float64{"mailbox object update configmaps": 1, "target object apply configmaps": 1})
		counted("a create", func() { apply(ctx, workload.Config, configMap(ns, "other", "x")) }, entry("other", "x"),
			map[string]float64{"mailbox object create configmaps": 1, "target object apply configmaps": 1})
		counted("a repair in the mailbox", func() { patch(ctx, mailbox, configMaps, ns, "settings", `{"data": {"entry": "red"}}`) },
			func() {
				Eventually(value).WithContext(ctx).WithArguments(mailbox, configMaps, ns, "settings", "data", "entry").Should(Equal("blue"))
				entry("settings", "blue")()
			}, map[string]float64{"mailbox object update configmaps": 1, "target object apply configmaps": 2})
		counted("a key that goes", func() {
			patch(ctx, workload.Config, configMaps, ns, "settings", `{"data": {"entry": null, "next": "1"}}`)
		}, entry("settings", ""),
			map[string]float64{"mailbox object update configmaps": 1, "target object apply configmaps": 1})

		By("an idle restart")
		fill(ctx, workload.Config, ns, "item-", 20)
		Eventually(func() int { return len(identities(ctx, hosting, configMaps, ns, "item-")) }).WithContext(ctx).Should(Equal(20))
		Eventually(readyStatus).WithContext(ctx).WithArguments(workload, "shop").Should(Equal("True"))
		quiet(ctx)
		before := identities(ctx, mailbox, configMaps, ns, "")
		Expect(hub.Kill9()).To(Succeed())
		startHub(ctx)
		Eventually(placedPairs).WithContext(ctx).Should(BeNumerically(">=", 22))
		quiet(ctx)
		Expect(requestCounts(ctx)).To(BeEmpty(), "no object and no extra request across a restart with nothing changed")
		Expect(identities(ctx, mailbox, configMaps, ns, "")).To(Equal(before))

		By("a takeover by a standby, which has seen changes")
		syncTarget, err := inventory.SyncTarget(ctx, "quiet")
		Expect(err).NotTo(HaveOccurred())
		standby, err := synchub.StartHub()
		Expect(err).NotTo(HaveOccurred())
		Expect(standby.AwaitReady(ctx)).To(Succeed())
		Eventually(cachedOfTarget).WithContext(ctx).WithArguments(standby, string(syncTarget.UID), "configmaps").Should(BeNumerically(">=", 22))
		apply(ctx, workload.Config, configMap(ns, "later", "x"))
		remove(ctx, workload.Config, configMaps, ns, "item-0")
		eventuallyExists(ctx, hosting, configMaps, ns, "later")
		eventuallyGone(ctx, hosting, configMaps, ns, "item-0")
		// The status and the event about these changes are the leader's, and come some seconds later.
		settled(ctx)
		// A copy that the standby still had in its caches would be read again before it is withdrawn.
		Eventually(cachedOfKCP).WithContext(ctx).WithArguments(standby, "configmaps").Should(Equal(cachedOfKCP(ctx, hub, "configmaps")))
		before = identities(ctx, mailbox, configMaps, ns, "")
		code, err := hub.Terminate(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(code).To(BeZero())
		hub = standby
		Eventually(placedPairs).WithContext(ctx).Should(BeNumerically(">=", 22))
		quiet(ctx)
		Expect(requestCounts(ctx)).To(BeEmpty(), "no object and no extra request while on standby, nor across the takeover")
		Expect(identities(ctx, mailbox, configMaps, ns, "")).To(Equal(before))
		counting(ctx)("an update afterwards", func() { patch(ctx, workload.Config, configMaps, ns, "later", `{"data": {"entry": "y"}}`) }, entry("later", "y"),
			map[string]float64{"mailbox object update configmaps": 1, "target object apply configmaps": 1})
	}, NodeTimeout(6*time.Minute))

	It("places only where the administrator of the inventory allows it", func(ctx SpecContext) {
		const ns = "placement-allowed"
		inventory, workload, stranger := newInventory(ctx, ns), newWorkload(ctx, ns+"-workload"), newWorkload(ctx, ns+"-stranger")
		Expect(inventory.Register(ctx, "florin", kubeconfigOf("florin"), map[string]string{"env": "prod"})).To(Succeed())
		eventuallyExists(ctx, inventory.Config, locations, "", "default")
		apply(ctx, inventory.Config, location("prod", "prod", workload.Path))

		By("a workspace that the Location does not name places nothing, with any claimed path")
		patch(ctx, stranger.Config, logicalClusters, "", "cluster", fmt.Sprintf(`{"metadata": {"annotations": {"kcp.io/path": %q}}}`, workload.Path))
		for _, from := range []*installation.Workload{stranger, workload} {
			eventuallyPlaced(ctx, from, documents(namespace(ns), configMap(ns, "of-"+from.Config.Host[len(from.Config.Host)-5:], "1"), placementOn("shop", ns)))
		}
		Eventually(readyStatus).WithContext(ctx).WithArguments(workload, "shop").Should(Equal("True"))
		// The hub may have verified the stranger's own path before.
		Eventually(readyReason).WithContext(ctx).WithArguments(stranger, "shop").Should(Or(Equal("NoLocation"), Equal("PathUnverified")))
		Expect(value(ctx, stranger.Config, edgePlacements, "", "shop", "status", "destinations")).To(Equal("0"))
		Expect(identities(ctx, mailboxOf(ctx, inventory, "florin"), configMaps, ns, "of-")).To(HaveLen(1))

		By("the permission ends")
		patch(ctx, inventory.Config, locations, "", "prod", `{"spec": {"availableTo": {"workspaces": ["root:somebody-else"]}}}`)
		Eventually(readyReason).WithContext(ctx).WithArguments(workload, "shop").Should(Equal("NoLocation"))
		Eventually(identities).WithContext(ctx).WithArguments(target("florin"), configMaps, ns, "of-").Should(BeEmpty())
	}, NodeTimeout(5*time.Minute))

	It("does not change foreign objects, nor objects that it cannot verify", thorough, func(ctx SpecContext) {
		const ns = "placement-others"
		inventory, workload := newInventory(ctx, ns), newWorkload(ctx, ns+"-workload")
		Expect(inventory.Register(ctx, "florin", kubeconfigOf("florin"), map[string]string{"env": "prod"})).To(Succeed())
		mailbox := mailboxOf(ctx, inventory, "florin")
		apply(ctx, mailbox, documents(namespace(ns), configMap(ns, "taken", "theirs")))
		apply(ctx, inventory.Config, location("prod", "prod", workload.Path))
		eventuallyPlaced(ctx, workload, documents(namespace(ns), configMap(ns, "taken", "ours"), configMap(ns, "free", "1"), placementOn("shop", ns)))

		By("an object of the mailbox with the name")
		eventuallyExists(ctx, target("florin"), configMaps, ns, "free")
		Eventually(value).WithContext(ctx).WithArguments(workload.Config, edgePlacements, "", "shop", "status", "failures").Should(And(ContainSubstring("taken"), ContainSubstring("Conflict"), ContainSubstring("florin")))
		Expect(value(ctx, mailbox, configMaps, ns, "taken", "data", "entry")).To(Equal("theirs"))
		remove(ctx, mailbox, configMaps, ns, "taken")
		Eventually(value).WithContext(ctx).WithArguments(target("florin"), configMaps, ns, "taken", "data", "entry").Should(Equal("ours"))
		Eventually(readyStatus).WithContext(ctx).WithArguments(workload, "shop").Should(Equal("True"))

		By("objects that kcp creates, and copies, are never placed")
		Expect(value(ctx, workload.Config, configMaps, ns, "kube-root-ca.crt", "metadata", "name")).NotTo(BeEmpty())
		Expect(value(ctx, mailbox, configMaps, ns, "kube-root-ca.crt", "metadata", "annotations")).NotTo(ContainSubstring(ownership.MarkAnnotation))

		By("a mark that a tenant copies to another mailbox is not valid there")
		Expect(inventory.Register(ctx, "guilder", kubeconfigOf("guilder"), map[string]string{"env": "dev"})).To(Succeed())
		elsewhere := mailboxOf(ctx, inventory, "guilder")
		forged, err := framework.Get(ctx, mailbox, configMaps, ns, "free")
		Expect(err).NotTo(HaveOccurred())
		Expect(unstructured.SetNestedField(forged.Object, "forged", "data", "entry")).To(Succeed())
		for _, field := range []string{"uid", "resourceVersion", "creationTimestamp", "managedFields", "generation"} {
			unstructured.RemoveNestedField(forged.Object, "metadata", field)
		}
		content, err := forged.MarshalJSON()
		Expect(err).NotTo(HaveOccurred())
		apply(ctx, elsewhere, documents(namespace(ns), string(content)))
		patch(ctx, workload.Config, configMaps, ns, "free", `{"data": {"entry": "2"}}`)
		Eventually(value).WithContext(ctx).WithArguments(target("florin"), configMaps, ns, "free", "data", "entry").Should(Equal("2"))
		quiet(ctx)
		Expect(value(ctx, elsewhere, configMaps, ns, "free", "data", "entry")).To(Equal("forged"))

		By("roles reach the cluster, and do not act inside the mailbox")
		apply(ctx, workload.Config, fmt.Sprintf(`
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reader, namespace: %s}
rules: []
`, ns))
		eventuallyExists(ctx, target("florin"), roles, ns, "reader")
		Eventually(readyStatus).WithContext(ctx).WithArguments(workload, "shop").Should(Equal("True"))
		Expect(framework.Exists(ctx, mailbox, roles, ns, "reader")).To(BeFalse())
		remove(ctx, workload.Config, roles, ns, "reader")
		eventuallyGone(ctx, target("florin"), roles, ns, "reader")

		By("a placement that becomes invalid withdraws nothing")
		patch(ctx, workload.Config, edgePlacements, "", "shop", `{"spec": {"downsync": [{"labelSelectors": [{"matchLabels": {"-": "b"}}]}]}}`)
		Eventually(readyReason).WithContext(ctx).WithArguments(workload, "shop").Should(Equal("Invalid"))
		quiet(ctx)
		Expect(framework.Exists(ctx, target("florin"), configMaps, ns, "free")).To(BeTrue())
	}, NodeTimeout(5*time.Minute))

	It("repairs its SyncerConfigs and slices, and upsyncs only where a Location permits it", thorough, func(ctx SpecContext) {
		const ns = "placement-configs"
		inventory, workload := newInventory(ctx, ns), newWorkload(ctx, ns+"-workload")
		Expect(inventory.Register(ctx, "florin", kubeconfigOf("florin"), map[string]string{"env": "prod"})).To(Succeed())
		mailbox, cluster := mailboxOf(ctx, inventory, "florin"), target("florin")
		apply(ctx, inventory.Config, location("prod", "prod", workload.Path))
		eventuallyPlaced(ctx, workload, documents(namespace(ns), configMap(ns, "prices", "1"), placementOn("shop", ns)))
		eventuallyExists(ctx, cluster, configMaps, ns, "prices")
		placed := identities(ctx, cluster, configMaps, ns, "prices")

		By("without the permission nothing is upsynced")
		apply(ctx, cluster, configMap(ns, "report", "1"))
		patch(ctx, workload.Config, edgePlacements, "", "shop", fmt.Sprintf(`{"spec": {"upsync": [{"resources": ["configmaps"], "namespaces": [%q], "names": ["report"]}]}}`, ns))
		Eventually(framework.Condition).WithContext(ctx).WithArguments(workload.Config, edgePlacements, "", "shop", edgev2alpha1.ConditionUpsyncDenied).Should(Equal("True"))
		quiet(ctx)
		Expect(framework.Exists(ctx, mailbox, configMaps, ns, "report")).To(BeFalse())

		By("the permission is granted, and revoked")
		patch(ctx, inventory.Config, locations, "", "prod", `{"spec": {"availableTo": {"upsync": true}}}`)
		eventuallyExists(ctx, mailbox, configMaps, ns, "report")
		Eventually(framework.Condition).WithContext(ctx).WithArguments(workload.Config, edgePlacements, "", "shop", edgev2alpha1.ConditionUpsyncDenied).ShouldNot(Equal("True"))
		patch(ctx, inventory.Config, locations, "", "prod", `{"spec": {"availableTo": {"upsync": false}}}`)
		eventuallyGone(ctx, mailbox, configMaps, ns, "report")
		Expect(framework.Exists(ctx, cluster, configMaps, ns, "report")).To(BeTrue())

		By("objects that upsync selects are not downsynced")
		patch(ctx, inventory.Config, locations, "", "prod", `{"spec": {"availableTo": {"upsync": true}}}`)
		eventuallyExists(ctx, mailbox, configMaps, ns, "report")
		remove(ctx, cluster, configMaps, ns, "report")
		eventuallyGone(ctx, mailbox, configMaps, ns, "report")
		apply(ctx, workload.Config, configMap(ns, "report", "down"))
		Eventually(value).WithContext(ctx).WithArguments(workload.Config, edgePlacements, "", "shop", "status", "failures").Should(And(ContainSubstring("report"), ContainSubstring(rules.ReasonExcludedByUpsync)))
		Expect(framework.Exists(ctx, cluster, configMaps, ns, "report")).To(BeFalse())
		remove(ctx, workload.Config, configMaps, ns, "report")

		By("edited slices have no effect")
		Eventually(value).WithContext(ctx).WithArguments(workload.Config, placedSlices, "", "shop", "destinations").Should(ContainSubstring("florin"))
		patch(ctx, workload.Config, placedSlices, "", "shop", `{"destinations": []}`)
		Eventually(value).WithContext(ctx).WithArguments(workload.Config, placedSlices, "", "shop", "destinations").Should(ContainSubstring("florin"))

		By("a tenant of the mailbox edits the config, and deletes it")
		patch(ctx, mailbox, syncerConfigs, "", placement.ConfigName, `{"spec": {"namespaceScope": {"resources": []}}}`)
		selected := func() string {
			return value(ctx, mailbox, syncerConfigs, "", placement.ConfigName, "spec", "namespaceScope", "resources")
		}
		Eventually(selected).WithContext(ctx).Should(ContainSubstring("configmaps"))
		remove(ctx, mailbox, syncerConfigs, "", placement.ConfigName)
		Eventually(selected).WithContext(ctx).Should(ContainSubstring("configmaps"))

		By("a restart repairs it too")
		quiet(ctx)
		Expect(hub.Kill9()).To(Succeed())
		remove(ctx, mailbox, syncerConfigs, "", placement.ConfigName)
		startHub(ctx)
		Eventually(selected).WithContext(ctx).Should(ContainSubstring("configmaps"))
		quiet(ctx)
		Expect(identities(ctx, cluster, configMaps, ns, "prices")).To(Equal(placed), "the cluster kept its objects")
	}, NodeTimeout(5*time.Minute))

	It("keeps copies with the policy Orphan, and withdraws them when the binding is deleted", thorough, func(ctx SpecContext) {
		const ns = "placement-ends"
		inventory, workload := newInventory(ctx, ns), newWorkload(ctx, ns+"-workload")
		Expect(inventory.Register(ctx, "florin", kubeconfigOf("florin"), map[string]string{"env": "prod"})).To(Succeed())
		mailbox := mailboxOf(ctx, inventory, "florin")
		apply(ctx, inventory.Config, location("prod", "prod", workload.Path))
		eventuallyPlaced(ctx, workload, documents(namespace(ns), configMap(ns, "prices", "1"), placementOn("shop", ns)))
		eventuallyExists(ctx, target("florin"), configMaps, ns, "prices")

		By("an orphan stays, and may be taken over again")
		patch(ctx, workload.Config, edgePlacements, "", "shop", `{"spec": {"deletionPolicy": "Orphan"}}`)
		Eventually(value).WithContext(ctx).WithArguments(mailbox, configMaps, ns, "prices", "metadata", "annotations").Should(ContainSubstring("Orphan"))
		remove(ctx, workload.Config, edgePlacements, "", "shop")
		Eventually(value).WithContext(ctx).WithArguments(mailbox, configMaps, ns, "prices", "metadata", "annotations").ShouldNot(ContainSubstring("synchub.dev/mark"))
		quiet(ctx)
		Expect(framework.Exists(ctx, target("florin"), configMaps, ns, "prices")).To(BeTrue())
		apply(ctx, workload.Config, documents(configMap(ns, "prices", "2"), placementOn("shop", ns)))
		Eventually(value).WithContext(ctx).WithArguments(target("florin"), configMaps, ns, "prices", "data", "entry").Should(Equal("2"))

		By("a placement beyond the limit places nothing new, and withdraws nothing")
		Expect(hub.Kill9()).To(Succeed())
		startHub(ctx, "--max-placed-objects=2")
		fill(ctx, workload.Config, ns, "item-", 3)
		Eventually(readyReason).WithContext(ctx).WithArguments(workload, "shop").Should(Or(Equal("LimitExceeded"), Equal("ObjectsFailed")))
		quiet(ctx)
		Expect(len(identities(ctx, mailbox, configMaps, ns, "item-"))).To(BeNumerically("<=", 2))
		Expect(framework.Exists(ctx, target("florin"), configMaps, ns, "prices")).To(BeTrue())
		Expect(hub.Kill9()).To(Succeed())
		startHub(ctx)
		Eventually(identities).WithContext(ctx).WithArguments(target("florin"), configMaps, ns, "item-").Should(HaveLen(3))

		By("the binding is deleted while no hub runs: the next hub has no copy in its caches at first")
		Expect(hub.Kill9()).To(Succeed())
		remove(ctx, workload.Config, installation.APIBindings, "", "workload")
		startHub(ctx)
		eventuallyGone(ctx, target("florin"), configMaps, ns, "prices")
		Eventually(framework.Exists).WithContext(ctx).WithArguments(workload.Config, installation.APIBindings, "", "workload").Should(BeFalse())

		By("the whole workspace is deleted")
		Expect(workload.Bind(ctx)).To(Succeed())
		eventuallyPlaced(ctx, workload, placementOn("again", ns))
		eventuallyExists(ctx, target("florin"), configMaps, ns, "prices")
		root := synchub.InWorkspace("root")
		remove(ctx, root, workspaces, "", ns+"-workload")
		eventuallyGone(ctx, target("florin"), configMaps, ns, "prices")
		Eventually(framework.Exists).WithContext(ctx).WithArguments(root, workspaces, "", ns+"-workload").Should(BeFalse())
	}, NodeTimeout(5*time.Minute))
})

// eventuallyPlaced applies a manifest as soon as the workload workspace serves its APIs.
func eventuallyPlaced(ctx context.Context, workload *installation.Workload, manifest string) {
	GinkgoHelper()
	Eventually(framework.Apply).WithContext(ctx).WithArguments(workload.Config, manifest).Should(Succeed())
}

// readyStatus returns the status of the condition Ready of a placement, and readyReason its reason.
func readyStatus(ctx context.Context, workload *installation.Workload, name string) string {
	return placementCondition(ctx, workload, name, edgev2alpha1.ConditionReady, "status")
}

func readyReason(ctx context.Context, workload *installation.Workload, name string) string {
	return placementCondition(ctx, workload, name, edgev2alpha1.ConditionReady, "reason")
}

// placementCondition returns a field of a condition of a placement; empty if there is none.
func placementCondition(ctx context.Context, workload *installation.Workload, name, condition, field string) string {
	object, err := framework.Get(ctx, workload.Config, edgePlacements, "", name)
	if err != nil {
		return err.Error()
	}
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, found := range conditions {
		if one, _ := found.(map[string]any); one["type"] == condition {
			return fmt.Sprint(one[field])
		}
	}
	return ""
}

// cachedOfKCP returns how many objects of a resource of mailboxes and workload workspaces a replica caches.
func cachedOfKCP(ctx context.Context, replica *installation.Hub, resource string) (objects float64) {
	samples, err := replica.Metrics(ctx)
	if err != nil {
		return -1
	}
	for sample, count := range samples {
		if strings.HasPrefix(sample, "synchub_mailbox_cache_objects{") && strings.Contains(sample, `resource="`+resource+`"`) {
			objects += count
		}
	}
	return objects
}

// placedPairs returns how many pairs of an object and a destination the hub reports as placed.
func placedPairs(ctx context.Context) float64 {
	samples, err := hub.Metrics(ctx)
	if err != nil {
		return -1
	}
	return samples[`synchub_placement_pairs{state="placed"}`]
}
