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

package shards

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/framework/installation"
	"github.com/synchub-dev/synchub/test/framework/servers"
	"github.com/synchub-dev/synchub/test/framework/suite"
)

// other is the shard beside the root shard.
const other = "second"

func TestMain(m *testing.M) { suite.Main(m) }

var (
	configMaps     = corev1.SchemeGroupVersion.WithResource("configmaps")
	deployments    = appsv1.SchemeGroupVersion.WithResource("deployments")
	workspaces     = schema.GroupVersionResource{Group: "tenancy.kcp.io", Version: "v1alpha1", Resource: "workspaces"}
	endpointSlices = schema.GroupVersionResource{Group: "apis.kcp.io", Version: "v1alpha1", Resource: "apiexportendpointslices"}
)

// content is what a mailbox has: a namespace of its name with a ConfigMap and a Deployment, and what selects them.
const content = `
apiVersion: v1
kind: Namespace
metadata: {name: %[1]s}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: %[1]s}
data: {entry: first}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: %[1]s}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: registry.invalid/web}]}
---
apiVersion: edge.kubestellar.io/v2alpha1
kind: SyncerConfig
metadata: {name: %[1]s}
spec:
  namespaceScope:
    namespaces: [%[1]s]
    resources:
    - {group: "", resource: configmaps}
    - {group: apps, resource: deployments}
`

func TestShards(t *testing.T) {
	h := start(t)
	h.expectBothEndpoints(t)
	h.expectSync(t)
	h.expectIdleRestart(t)
	h.expectOtherShardUnaffected(t)
}

// onRootShard is a workspace of the root shard. kcp schedules all other workspaces to any shard.
const onRootShard = `
apiVersion: tenancy.kcp.io/v1alpha1
kind: Workspace
metadata: {name: %s}
spec:
  type: {name: %s, path: root}
  location: {selector: {matchLabels: {name: root}}}
`

// hub is a hub with a SyncTarget whose mailbox is on each shard, by the name of the shard.
type hub struct {
	*WithT
	kcp       *servers.ShardedKCP
	install   *installation.Installation
	inventory *installation.Inventory
	replica   *installation.Hub
	target    *rest.Config
	members   map[string]member
}

// member is a SyncTarget and its mailbox.
type member struct {
	name    string
	mailbox *rest.Config
}

func start(t *testing.T) *hub {
	t.Helper()
	h := &hub{WithT: NewWithT(t), members: map[string]member{}}
	opts, cluster := suite.Options(t), suite.StartTarget(t, "hosting", servers.TargetOptions{})
	h.target = cluster.Config
	h.kcp = suite.Start(t, func(ctx context.Context, options servers.Options) (*servers.ShardedKCP, error) {
		return servers.StartShardedKCP(ctx, options, other)
	})
	var err error

	h.Eventually(framework.Apply).WithContext(t.Context()).WithArguments(h.kcp.Workspace("root"), fmt.Sprintf(onRootShard, "synchub", "universal")).Should(Succeed())
	h.install, err = installation.New(t.Context(), opts, h.kcp.KCP, cluster, filepath.Join(opts.Bin, "synchub-race"), 1)
	h.Expect(err).NotTo(HaveOccurred())
	h.startHub(t)
	t.Cleanup(func() {
		code, err := h.replica.Terminate(context.WithoutCancel(t.Context()))
		h.Expect(err).NotTo(HaveOccurred())
		h.Expect(code).To(BeZero(), h.replica.LogTail(30))
	})
	h.Expect(framework.Apply(t.Context(), h.kcp.Workspace("root"), fmt.Sprintf(onRootShard, "fleet", "inventory"))).To(Succeed())
	h.inventory, err = h.install.NewInventory(t.Context(), "fleet")
	h.Expect(err).NotTo(HaveOccurred())
	h.Eventually(func() error {
		_, err := framework.List(t.Context(), h.inventory.Config, installation.SyncTargets, "", "")
		return err
	}).Should(Succeed(), "the workspace serves SyncTargets")
	kubeconfig, err := os.ReadFile(cluster.Kubeconfig)
	h.Expect(err).NotTo(HaveOccurred())
	for number := 0; len(h.members) < len(h.kcp.Shards); number++ {
		h.Expect(number).To(BeNumerically("<", maxMembers), "kcp schedules mailboxes to all shards")
		h.register(t, fmt.Sprint("member-", number), kubeconfig)
	}
	for _, one := range h.members {
		h.Eventually(framework.Apply).WithContext(t.Context()).WithArguments(one.mailbox, fmt.Sprintf(content, one.name)).Should(Succeed())
	}
	return h
}

// maxMembers is how many SyncTargets are made until each shard has a mailbox. That all of so many are on one is a matter of one in
// thousands of millions.
const maxMembers = 32

// register makes a SyncTarget, and keeps it if it is the first with a mailbox on its shard.
func (h *hub) register(t *testing.T, name string, kubeconfig []byte) {
	t.Helper()
	h.Expect(h.inventory.Register(t.Context(), name, kubeconfig, nil)).To(Succeed())
	made := member{name: name}
	h.Eventually(func() (err error) { made.mailbox, err = h.inventory.Mailbox(t.Context(), name); return err }).Should(Succeed())
	syncTarget, err := h.inventory.SyncTarget(t.Context(), name)
	h.Expect(err).NotTo(HaveOccurred())
	parent, workspace := syncTarget.Status.Mailbox.Workspace[:len(h.install.Workspace)], syncTarget.Status.Mailbox.Workspace[len(h.install.Workspace)+1:]
	shard := other
	if h.shardHash(t, parent, workspace) == h.shardHash(t, "root", "synchub") {
		shard = servers.RootShard
	}
	if _, ok := h.members[shard]; !ok {
		h.members[shard] = made
	}
}

// shardHash returns how kcp names the shard of a workspace.
func (h *hub) shardHash(t *testing.T, parent, name string) string {
	t.Helper()
	workspace, err := framework.Get(t.Context(), h.kcp.Workspace(parent), workspaces, "", name)
	h.Expect(err).NotTo(HaveOccurred())
	hash := workspace.GetAnnotations()["internal.tenancy.kcp.io/shard"]
	h.Expect(hash).NotTo(BeEmpty())
	return hash
}

func (h *hub) startHub(t *testing.T) {
	t.Helper()
	var err error
	h.replica, err = h.install.StartHub()
	h.Expect(err).NotTo(HaveOccurred())
	h.Expect(h.replica.AwaitReady(t.Context())).To(Succeed())
}

// expectBothEndpoints expects that kcp publishes an endpoint for each shard.
func (h *hub) expectBothEndpoints(t *testing.T) {
	t.Helper()
	slice, err := framework.Get(t.Context(), h.install.InWorkspace(h.install.Workspace), endpointSlices, "", synchubv1alpha1.MailboxExport)
	h.Expect(err).NotTo(HaveOccurred())
	endpoints, _, err := unstructured.NestedSlice(slice.Object, "status", "endpoints")
	h.Expect(err).NotTo(HaveOccurred())
	h.Expect(endpoints).To(HaveLen(len(h.kcp.Shards)))
}

// expectSync expects that objects of both mailboxes go down, that their statuses come up, and that a deletion is followed.
func (h *hub) expectSync(t *testing.T) {
	t.Helper()
	for _, one := range h.members {
		h.Eventually(h.entry(t, h.target, configMaps, one.name, "settings", "data", "entry")).Should(Equal("first"))
		h.patch(t, one.mailbox, configMaps, one.name, "settings", `{"data": {"entry": "second"}}`)
		h.Eventually(h.entry(t, h.target, configMaps, one.name, "settings", "data", "entry")).Should(Equal("second"))
		h.Eventually(framework.Exists).WithContext(t.Context()).WithArguments(h.target, deployments, one.name, "web").Should(BeTrue())
		h.patch(t, h.target, deployments, one.name, "web", `{"status": {"replicas": 1, "readyReplicas": 1}}`, "status")
		h.Eventually(h.entry(t, one.mailbox, deployments, one.name, "web", "status", "readyReplicas")).Should(Equal("1"))
		h.Expect(framework.Apply(t.Context(), one.mailbox, fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: brief, namespace: %s}\n", one.name))).To(Succeed())
		h.Eventually(framework.Exists).WithContext(t.Context()).WithArguments(h.target, configMaps, one.name, "brief").Should(BeTrue())
		h.Expect(framework.Delete(t.Context(), one.mailbox, configMaps, one.name, "brief")).To(Succeed())
		h.Eventually(framework.Exists).WithContext(t.Context()).WithArguments(h.target, configMaps, one.name, "brief").Should(BeFalse())
	}
}

// boundedByTime are the writes whose rate the hub limits, however much changes.
var boundedByTime = []string{"syncerconfigs/status", "locations/status"}

// expectIdleRestart expects that the next hub writes nothing.
func (h *hub) expectIdleRestart(t *testing.T) {
	t.Helper()
	h.Expect(h.replica.WaitIdle(t.Context(), 2*time.Second, boundedByTime...)).To(Succeed())
	before := h.versions(t)
	code, err := h.replica.Terminate(t.Context())
	h.Expect(err).NotTo(HaveOccurred())
	h.Expect(code).To(BeZero())
	h.startHub(t)
	h.Eventually(func() map[string]float64 { return h.endpoints(t) }).Should(And(HaveLen(len(h.kcp.Shards)), HaveEach(1.0)))
	h.Expect(h.replica.WaitIdle(t.Context(), 2*time.Second, boundedByTime...)).To(Succeed())
	requests, err := h.replica.Requests(t.Context())
	h.Expect(err).NotTo(HaveOccurred())
	h.Expect(installation.Caused(requests, boundedByTime...)).To(BeEmpty())
	h.Expect(h.versions(t)).To(Equal(before))
}

// expectOtherShardUnaffected kills the second shard: its mailbox keeps its last known state, the other one is still synced, and when the shard
// is back the hub continues.
func (h *hub) expectOtherShardUnaffected(t *testing.T) {
	t.Helper()
	h.Expect(h.kcp.Shards[other].Kill9()).To(Succeed())
	h.Eventually(func() map[string]float64 { return h.endpoints(t) }).Should(ContainElement(0.0))
	kept := h.versions(t)
	onRoot, onOther := h.members[servers.RootShard], h.members[other]
	h.patch(t, onRoot.mailbox, configMaps, onRoot.name, "settings", `{"data": {"entry": "meanwhile"}}`)
	h.Eventually(h.entry(t, h.target, configMaps, onRoot.name, "settings", "data", "entry")).Should(Equal("meanwhile"))
	now := h.versions(t)
	h.Expect(now[other]).To(Equal(kept[other]))

	h.Expect(h.kcp.Shards[other].Start(t.Context())).To(Succeed())
	h.Eventually(func() error {
		return framework.Patch(t.Context(), onOther.mailbox, configMaps, onOther.name, "settings", `{"data": {"entry": "after"}}`)
	}).Should(Succeed())
	h.Eventually(h.entry(t, h.target, configMaps, onOther.name, "settings", "data", "entry")).Should(Equal("after"))
	h.Eventually(func() map[string]float64 { return h.endpoints(t) }).Should(HaveEach(1.0))
}

// endpoints returns for each endpoint of mailboxes whether the hub can watch it.
func (h *hub) endpoints(t *testing.T) map[string]float64 {
	t.Helper()
	samples, err := h.replica.Metrics(t.Context())
	h.Expect(err).NotTo(HaveOccurred())
	found := map[string]float64{}
	for sample, up := range samples {
		if strings.HasPrefix(sample, "synchub_mailbox_endpoint_up{") && strings.Contains(sample, "/"+synchubv1alpha1.MailboxExport+`"`) {
			found[sample] = up
		}
	}
	return found
}

// versions returns the objects on the target with their resourceVersions, by the shard of their mailbox.
func (h *hub) versions(t *testing.T) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	for shard, one := range h.members {
		for _, resource := range []schema.GroupVersionResource{configMaps, deployments} {
			listed, err := framework.List(t.Context(), h.target, resource, one.name, "")
			h.Expect(err).NotTo(HaveOccurred())
			for i := range listed {
				found[shard] = append(found[shard], resource.Resource+"/"+listed[i].GetName()+"@"+listed[i].GetResourceVersion())
			}
		}
		slices.Sort(found[shard])
	}
	return found
}

func (h *hub) patch(t *testing.T, config *rest.Config, resource schema.GroupVersionResource, namespace, name, patch string, subresources ...string) {
	t.Helper()
	h.Expect(framework.Patch(t.Context(), config, resource, namespace, name, patch, subresources...)).To(Succeed())
}

// entry returns a function for a field of an object.
func (h *hub) entry(t *testing.T, config *rest.Config, resource schema.GroupVersionResource, namespace, name string, path ...string) func() (string, error) {
	return func() (string, error) {
		return framework.Field(t.Context(), config, resource, namespace, name, path...)
	}
}
