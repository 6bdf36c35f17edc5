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

package sharded

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
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/provider/shards"
	"github.com/synchub-dev/synchub/test/framework"
	"github.com/synchub-dev/synchub/test/framework/faults"
	"github.com/synchub-dev/synchub/test/framework/installation"
	"github.com/synchub-dev/synchub/test/framework/servers"
	"github.com/synchub-dev/synchub/test/framework/skewedclock"
	"github.com/synchub-dev/synchub/test/framework/suite"
)

func TestMain(m *testing.M) { suite.Main(m) }

const (
	// count is the number of SyncTargets. That a replica of three has none of so many happens once in a hundred runs or less; nothing
	// depends on it.
	count = 12
	// objects is the number of ConfigMaps in each mailbox.
	objects = 5
	// patience is for a takeover on a busy machine.
	patience = 3 * time.Minute
)

var (
	configMaps = corev1.SchemeGroupVersion.WithResource("configmaps")
	leases     = schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}
	placements = edgev2alpha1.SchemeGroupVersion.WithResource("edgeplacements")
	published  = synchubv1alpha1.GroupVersion.WithResource("publishedresources")
	workspaces = schema.GroupVersionResource{Group: "tenancy.kcp.io", Version: "v1alpha1", Resource: "workspaces"}
)

func TestSharded(t *testing.T) {
	h := start(t)
	h.expectDivided(t)
	h.expectSync(t)
	h.expectCounts(t)
	h.expectPlacement(t)
	h.expectMovesWithoutWrites(t)
	h.expectKilledReplaced(t)
	h.expectPausedHarmless(t)
	h.expectEmptiedRegistrySurvived(t)
	h.expectCutReplicaReplaced(t)
	h.expectSkewedClocksHarmless(t)
	h.expectDeletion(t)
}

// hub is a hub of several replicas with its SyncTargets.
type hub struct {
	*WithT
	install   *installation.Installation
	inventory *installation.Inventory
	hosting   *servers.Target
	cluster   *servers.Target
	target    *rest.Config
	replicas  []*installation.Hub
	members   []member
	// edition is the content of all objects.
	edition int
}

// member is a SyncTarget with its mailbox. The namespace on the cluster has its name.
type member struct {
	name    string
	mailbox *rest.Config
}

func start(t *testing.T) *hub {
	t.Helper()
	h := &hub{WithT: NewWithT(t)}
	opts := suite.Options(t)
	h.hosting = suite.StartTarget(t, "hosting", servers.TargetOptions{})
	h.cluster = suite.StartTarget(t, "cluster", servers.TargetOptions{})
	h.target = h.cluster.Config
	var err error
	h.install, err = installation.New(t.Context(), opts, suite.KCP(t), h.hosting, filepath.Join(opts.Bin, "synchub-race"), 1)
	h.Expect(err).NotTo(HaveOccurred())
	h.install.HubArguments = []string{"--coordination", "sharded"}
	h.Expect(h.install.EnableTunnels()).To(Succeed())
	t.Cleanup(func() {
		for _, replica := range h.replicas {
			code, err := replica.Terminate(context.WithoutCancel(t.Context()))
			h.Expect(err).NotTo(HaveOccurred())
			h.Expect(code).To(BeZero(), replica.LogTail(30))
		}
	})
	for range 2 {
		h.startReplica(t)
	}
	h.inventory, err = h.install.NewInventory(t.Context(), "fleet")
	h.Expect(err).NotTo(HaveOccurred())
	kubeconfig, err := os.ReadFile(h.cluster.Kubeconfig)
	h.Expect(err).NotTo(HaveOccurred())
	for number := range count {
		one := member{name: fmt.Sprintf("member-%02d", number)}
		h.Expect(h.inventory.Register(t.Context(), one.name, kubeconfig, nil)).To(Succeed())
		h.members = append(h.members, one)
	}
	for i := range h.members {
		h.Eventually(func() (err error) {
			h.members[i].mailbox, err = h.inventory.Mailbox(t.Context(), h.members[i].name)
			return err
		}).WithTimeout(patience).Should(Succeed())
	}
	return h
}

func (h *hub) startReplica(t *testing.T, args ...string) *installation.Hub {
	t.Helper()
	replica, err := h.install.StartHub(args...)
	h.Expect(err).NotTo(HaveOccurred())
	h.add(t, replica)
	return replica
}

// add adds a replica that was started, once it is ready.
func (h *hub) add(t *testing.T, replica *installation.Hub) {
	t.Helper()
	h.replicas = append(h.replicas, replica)
	h.Expect(replica.AwaitReady(t.Context())).To(Succeed())
}

// hubs returns how many SyncTargets each replica serves, by status.hub, of those that are Ready.
func (h *hub) hubs(t *testing.T) map[string]int {
	t.Helper()
	found := map[string]int{}
	for _, one := range h.members {
		syncTarget, err := h.inventory.SyncTarget(t.Context(), one.name)
		h.Expect(err).NotTo(HaveOccurred())
		if meta.IsStatusConditionTrue(syncTarget.Status.Conditions, edgev2alpha1.ConditionReady) {
			found[syncTarget.Status.Hub]++
		}
	}
	return found
}

// ownedShards returns the number of shards of each replica.
func (h *hub) ownedShards(t *testing.T) (owned []int) {
	t.Helper()
	for _, replica := range h.replicas {
		samples, err := replica.Metrics(t.Context())
		h.Expect(err).NotTo(HaveOccurred())
		owned = append(owned, int(samples["synchub_shards_owned"]))
	}
	return owned
}

// expectDivided expects that two replicas share the SyncTargets, and that the statuses name each.
func (h *hub) expectDivided(t *testing.T) {
	t.Helper()
	h.Eventually(func() int {
		total := 0
		for _, number := range h.hubs(t) {
			total += number
		}
		return total
	}).WithTimeout(patience).Should(Equal(count))
	h.Eventually(func() map[string]int { return h.hubs(t) }).WithTimeout(patience).Should(HaveLen(2), "the heartbeats name the replicas")
	h.Eventually(func() []int { return h.ownedShards(t) }).WithTimeout(patience).Should(HaveEach(BeNumerically(">", 0)))
}

func (h *hub) content(namespace string) string {
	var text strings.Builder
	fmt.Fprintf(&text, "apiVersion: v1\nkind: Namespace\nmetadata: {name: %s}\n", namespace)
	for number := range objects {
		fmt.Fprintf(&text, "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: object-%d, namespace: %s}\ndata: {edition: %q}\n", number, namespace, fmt.Sprint(h.edition))
	}
	fmt.Fprintf(&text, `---
apiVersion: edge.kubestellar.io/v2alpha1
kind: SyncerConfig
metadata: {name: all}
spec:
  namespaceScope:
    namespaces: [%s]
    resources:
    - {group: "", resource: configmaps}
`, namespace)
	return text.String()
}

// edit writes another edition of all objects into all mailboxes.
func (h *hub) edit(t *testing.T) {
	t.Helper()
	h.edition++
	for _, one := range h.members {
		h.Eventually(framework.Apply).WithContext(t.Context()).WithArguments(one.mailbox, h.content(one.name)).WithTimeout(patience).Should(Succeed())
	}
}

// expectEdition expects that all objects arrive.
func (h *hub) expectEdition(t *testing.T) {
	t.Helper()
	for _, one := range h.members {
		h.Eventually(func() ([]string, error) {
			listed, err := framework.List(t.Context(), h.target, configMaps, one.name, "")
			var editions []string
			for i := range listed {
				if data, ok := listed[i].Object["data"].(map[string]any); ok && strings.HasPrefix(listed[i].GetName(), "object-") {
					editions = append(editions, fmt.Sprint(data["edition"]))
				}
			}
			return editions, err
		}).WithTimeout(patience).Should(And(HaveLen(objects), HaveEach(fmt.Sprint(h.edition))), one.name)
	}
}

// writes returns how many requests of the replicas changed objects of targets.
func (h *hub) writes(t *testing.T) (written float64) {
	t.Helper()
	for _, replica := range h.replicas {
		requests, err := replica.Requests(t.Context())
		h.Expect(err).NotTo(HaveOccurred())
		for kind, times := range requests {
			if kind.Destination == "target" && kind.Class == "object" && slices.Contains([]string{"create", "apply", "update", "patch", "delete"}, kind.Verb) {
				written += times
			}
		}
	}
	return written
}

// settledWrites returns the writes once their number stays the same: an object can be seen in a cluster before its writer has the answer that it
// counts.
func (h *hub) settledWrites(t *testing.T) float64 {
	t.Helper()
	last := -1.0
	h.Eventually(func() bool {
		now := h.writes(t)
		same := now == last
		last = now
		return same
	}).WithTimeout(patience).WithPolling(time.Second).Should(BeTrue(), "the replicas do not stop to write")
	return last
}

// versions returns the resourceVersions of all objects on the cluster.
func (h *hub) versions(t *testing.T) (found []string) {
	t.Helper()
	for _, one := range h.members {
		listed, err := framework.List(t.Context(), h.target, configMaps, one.name, "")
		h.Expect(err).NotTo(HaveOccurred())
		for i := range listed {
			found = append(found, one.name+"/"+listed[i].GetName()+"@"+listed[i].GetResourceVersion())
		}
	}
	slices.Sort(found)
	return found
}

// expectSync expects that each change is written once, by whichever replica.
func (h *hub) expectSync(t *testing.T) {
	t.Helper()
	h.edit(t)
	h.expectEdition(t)
	before := h.settledWrites(t)
	h.edit(t)
	h.expectEdition(t)
	h.Expect(h.settledWrites(t) - before).To(BeEquivalentTo(count * objects))
}

// expectCounts expects that the leader sums over what all replicas hold.
func (h *hub) expectCounts(t *testing.T) {
	t.Helper()
	h.Eventually(func() []string {
		var found []string
		for _, field := range []string{"targets", "objects"} {
			number, err := framework.Field(t.Context(), h.hosting.Config, published, "", "configmaps", "status", field)
			h.Expect(err).NotTo(HaveOccurred())
			found = append(found, number)
		}
		return found
	}).WithTimeout(patience).Should(Equal([]string{fmt.Sprint(count), fmt.Sprint(count * objects)}))
}

// placed is a namespace with a ConfigMap, and a placement that takes one cluster after the other.
const placed = `
apiVersion: v1
kind: Namespace
metadata: {name: tills}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: till, namespace: tills}
data: {edition: %q}
---
apiVersion: edge.kubestellar.io/v2alpha1
kind: EdgePlacement
metadata: {name: tills}
spec:
  locationSelectors: [{matchLabels: {env: prod}}]
  downsync: [{namespaces: [tills]}]
  rolloutStrategy: {type: Progressive, progressive: {maxConcurrency: 1, progressDeadline: 10m}}
`

// expectPlacement rolls a ConfigMap out, and then an edit, to two clusters with different owners; at least one of these does not lead.
func (h *hub) expectPlacement(t *testing.T) {
	t.Helper()
	workload, err := h.install.NewWorkload(t.Context(), "tills")
	h.Expect(err).NotTo(HaveOccurred())
	h.Expect(framework.Apply(t.Context(), h.inventory.Config, fmt.Sprintf(`{apiVersion: edge.kubestellar.io/v2alpha1, kind: Location, metadata: {name: prod, labels: {env: prod}},
		spec: {resource: {group: edge.kubestellar.io, version: v2alpha1, resource: synctargets}, instanceSelector: {matchLabels: {env: prod}}, availableTo: {workspaces: [%q]}}}`, workload.Path))).To(Succeed())
	east := h.registerHeldBy(t, "east", h.cluster, func(string) bool { return true })
	west := h.registerHeldBy(t, "west", h.hosting, func(holder string) bool { return holder != h.holderOf(t, east) })
	for _, next := range []string{"first", "second"} {
		h.Eventually(framework.Apply).WithContext(t.Context()).WithArguments(workload.Config, fmt.Sprintf(placed, next)).WithTimeout(patience).Should(Succeed())
		for _, config := range []*rest.Config{h.target, h.hosting.Config} {
			h.Eventually(framework.Field).WithContext(t.Context()).WithArguments(config, configMaps, "tills", "till", "data", "edition").WithTimeout(patience).Should(Equal(next))
		}
		h.Eventually(func(g Gomega) {
			object, err := framework.Get(t.Context(), workload.Config, placements, "", "tills")
			g.Expect(err).NotTo(HaveOccurred())
			var found edgev2alpha1.EdgePlacement
			g.Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &found)).To(Succeed())
			g.Expect(found.Status.Synced).To(BeEquivalentTo(2), "%+v", found.Status)
			g.Expect(found.Status.Healthy).To(BeEquivalentTo(2), "%+v", found.Status)
			g.Expect(found.Status.Rollout).NotTo(BeNil())
			g.Expect(found.Status.Rollout.Succeeded).To(BeEquivalentTo(2), "%+v", found.Status)
		}).WithTimeout(patience).Should(Succeed())
	}
	h.Expect(framework.Delete(t.Context(), workload.Config, placements, "", "tills")).To(Succeed())
	for _, config := range []*rest.Config{h.target, h.hosting.Config} {
		h.Eventually(framework.Exists).WithContext(t.Context()).WithArguments(config, configMaps, "tills", "till").WithTimeout(patience).Should(BeFalse())
	}
	for _, name := range []string{east, west} {
		h.Expect(framework.Delete(t.Context(), h.inventory.Config, installation.SyncTargets, "", name)).To(Succeed())
	}
	h.Eventually(framework.List).WithContext(t.Context()).WithArguments(h.inventory.Config, installation.SyncTargets, "", "").WithTimeout(patience).Should(HaveLen(count))
	for _, replica := range h.replicas {
		h.Expect(replica.WaitIdle(t.Context(), 2*time.Second, boundedByTime...)).To(Succeed())
	}
}

// boundedByTime are the writes whose rate the hub limits, however much changes.
var boundedByTime = []string{"syncerconfigs/status", "edgeplacements/status", "locations/status"}

// registerHeldBy makes SyncTargets until one has the owner that is wanted, and returns its name. Their UIDs are random.
func (h *hub) registerHeldBy(t *testing.T, name string, cluster *servers.Target, isWanted func(holder string) bool) string {
	t.Helper()
	kubeconfig, err := os.ReadFile(cluster.Kubeconfig)
	h.Expect(err).NotTo(HaveOccurred())
	for number := range 40 {
		tried := fmt.Sprint(name, "-", number)
		h.Expect(h.inventory.Register(t.Context(), tried, kubeconfig, map[string]string{"env": "prod"})).To(Succeed())
		if isWanted(h.holderOf(t, tried)) {
			return tried
		}
		h.Expect(framework.Delete(t.Context(), h.inventory.Config, installation.SyncTargets, "", tried)).To(Succeed())
	}
	t.Fatal("one replica holds all shards")
	return ""
}

// holderOf returns the replica that holds a SyncTarget.
func (h *hub) holderOf(t *testing.T, name string) string {
	t.Helper()
	syncTarget, err := h.inventory.SyncTarget(t.Context(), name)
	h.Expect(err).NotTo(HaveOccurred())
	holder, err := framework.Field(t.Context(), h.hosting.Config, leases, installation.Namespace, fmt.Sprintf("synchub-shard-%02d", shards.Of(syncTarget.UID)), "spec", "holderIdentity")
	h.Expect(err).NotTo(HaveOccurred())
	return holder
}

// expectMovesWithoutWrites starts a replica, which gets a share. Then one is started in the middle of a burst.
func (h *hub) expectMovesWithoutWrites(t *testing.T) {
	t.Helper()
	before, written := h.versions(t), h.settledWrites(t)
	h.startReplica(t)
	h.Eventually(func() []int { return h.ownedShards(t) }).WithTimeout(patience).Should(HaveEach(BeNumerically(">", 0)))
	h.Eventually(func() int { return len(h.hubs(t)) }).WithTimeout(patience).Should(BeNumerically(">", 2), "the heartbeats name the replicas")
	h.Expect(h.versions(t)).To(Equal(before))
	h.Expect(h.settledWrites(t)).To(Equal(written))

	replica, err := h.install.StartHub()
	h.Expect(err).NotTo(HaveOccurred())
	h.replicas = append(h.replicas, replica)
	for range 3 {
		h.edit(t)
	}
	h.Expect(replica.AwaitReady(t.Context())).To(Succeed())
	h.Eventually(func() []int { return h.ownedShards(t) }).WithTimeout(patience).Should(HaveEach(BeNumerically(">", 0)))
	h.edit(t)
	h.expectEdition(t)
}

// expectKilledReplaced kills replicas, the leader among them, while everything is edited.
func (h *hub) expectKilledReplaced(t *testing.T) {
	t.Helper()
	for range 2 {
		victim := h.replicas[0]
		h.replicas = h.replicas[1:]
		h.Expect(victim.Kill9()).To(Succeed())
		h.edit(t)
		h.expectEdition(t)
	}
}

// expectPausedHarmless pauses a replica until other replicas own its shards, and resumes it.
func (h *hub) expectPausedHarmless(t *testing.T) {
	t.Helper()
	paused, others := h.replicas[0], h.replicas[1:]
	h.Expect(paused.Pause()).To(Succeed())
	h.edit(t)
	h.expectEdition(t)
	h.replicas = others
	written, placed := h.settledWrites(t), h.versions(t)
	h.Expect(paused.Resume()).To(Succeed())
	// It ends if it led. Otherwise it detects that other replicas own its shards, and takes part again.
	h.Eventually(func() bool {
		samples, err := paused.Metrics(t.Context())
		return paused.Ended() || err == nil && int(samples["synchub_shards_owned"])+sum(h.ownedShards(t)) <= shards.Count
	}).WithTimeout(patience).Should(BeTrue())
	h.Expect(h.versions(t)).To(Equal(placed))
	h.Expect(h.settledWrites(t)).To(Equal(written))
	if paused.Ended() {
		h.startReplica(t)
	} else {
		h.replicas = append([]*installation.Hub{paused}, others...)
	}
	h.Eventually(func() []int { return h.ownedShards(t) }).WithTimeout(patience).Should(HaveEach(BeNumerically(">", 0)))
}

// expectEmptiedRegistrySurvived deletes the Leases that announce the replicas.
func (h *hub) expectEmptiedRegistrySurvived(t *testing.T) {
	t.Helper()
	announced, err := framework.List(t.Context(), h.hosting.Config, leases, installation.Namespace, "mcr.sigs.k8s.io/peer=true")
	h.Expect(err).NotTo(HaveOccurred())
	h.Expect(len(announced)).To(BeNumerically(">=", len(h.replicas)))
	for i := range announced {
		h.Expect(framework.Delete(t.Context(), h.hosting.Config, leases, installation.Namespace, announced[i].GetName())).To(Succeed())
	}
	written := h.settledWrites(t)
	h.edit(t)
	h.expectEdition(t)
	h.Expect(h.settledWrites(t) - written).To(BeEquivalentTo(count * objects))
	for _, replica := range h.replicas {
		h.Expect(replica.Ended()).To(BeFalse())
	}
}

// expectCutReplicaReplaced cuts the network between kcp and a replica that does not lead, which still reaches the hosting cluster and its Leases.
// All other replicas take over its work, and keep their own shards.
func (h *hub) expectCutReplicaReplaced(t *testing.T) {
	t.Helper()
	tunnel, err := faults.NewTunnel(t.Context())
	h.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { h.Expect(tunnel.Close()).To(Succeed()) })
	kubeconfig := filepath.Join(t.TempDir(), "kcp.kubeconfig")
	h.Expect(tunnel.Reroute(h.install.HubKubeconfig, kubeconfig)).To(Succeed())
	others := slices.Clone(h.replicas)
	cut := h.startReplica(t, "--kcp-kubeconfig", kubeconfig)
	h.Eventually(func() []int { return h.ownedShards(t) }).WithTimeout(patience).Should(HaveEach(BeNumerically(">", 0)))
	h.edit(t)
	h.expectEdition(t)

	h.replicas = others
	written := h.settledWrites(t)
	tunnel.Cut()
	h.edit(t)
	h.expectEdition(t)
	h.Expect(h.settledWrites(t) - written).To(BeEquivalentTo(count * objects))
	code, err := cut.Wait(t.Context())
	h.Expect(err).NotTo(HaveOccurred())
	h.Expect(code).NotTo(BeZero(), "it ends, and is started again")
	h.Expect(cut.LogTail(5)).To(ContainSubstring("steps down for another one"))
}

// expectSkewedClocksHarmless starts a replica whose clock is five minutes ahead, and then one whose clock is behind, and kills each. Both get a
// share and do its work once. Other replicas own it soon after they are killed.
func (h *hub) expectSkewedClocksHarmless(t *testing.T) {
	t.Helper()
	for _, offset := range []time.Duration{5 * time.Minute, -5 * time.Minute} {
		binary := filepath.Join(t.TempDir(), "synchub-skewed")
		h.Expect(skewedclock.Build(t.Context(), "./cmd/synchub", binary, offset)).To(Succeed())
		others := slices.Clone(h.replicas)
		skewed, err := h.install.StartBinary(binary)
		h.Expect(err).NotTo(HaveOccurred())
		h.add(t, skewed)
		h.Eventually(func() []int { return h.ownedShards(t) }).WithTimeout(patience).Should(HaveEach(BeNumerically(">", 0)), "with a clock off by %s", offset)
		h.Eventually(func() int { return sum(h.ownedShards(t)) }).WithTimeout(patience).Should(Equal(shards.Count))
		written := h.settledWrites(t)
		h.edit(t)
		h.expectEdition(t)
		h.Expect(h.settledWrites(t)-written).To(BeEquivalentTo(count*objects), "with a clock off by %s", offset)

		h.replicas = others
		h.Expect(skewed.Kill9()).To(Succeed())
		h.edit(t)
		h.expectEdition(t)
		h.expectAllOwned(t)
	}
}

// expectAllOwned expects that all shards have an owner for longer than a killed replica can seem to live. Shards that move have no owner for a
// moment.
func (h *hub) expectAllOwned(t *testing.T) {
	t.Helper()
	ownedAt := time.Now()
	h.Consistently(func() time.Duration {
		if sum(h.ownedShards(t)) == shards.Count {
			ownedAt = time.Now()
		}
		return time.Since(ownedAt)
	}).WithTimeout(90*time.Second).WithPolling(time.Second).Should(BeNumerically("<", 30*time.Second), "some shards have no owner")
}

func sum(all []int) (total int) {
	for _, one := range all {
		total += one
	}
	return total
}

// expectDeletion deletes all SyncTargets: the owners clean up, and the leader removes the mailboxes.
func (h *hub) expectDeletion(t *testing.T) {
	t.Helper()
	for _, one := range h.members {
		h.Expect(framework.Delete(t.Context(), h.inventory.Config, installation.SyncTargets, "", one.name)).To(Succeed())
	}
	h.Eventually(framework.List).WithContext(t.Context()).WithArguments(h.inventory.Config, installation.SyncTargets, "", "").WithTimeout(patience).Should(BeEmpty())
	h.Eventually(func() (names []string, err error) {
		listed, err := framework.List(t.Context(), h.install.InWorkspace(h.install.Workspace), workspaces, "", "")
		for i := range listed {
			if listed[i].GetDeletionTimestamp() == nil {
				names = append(names, listed[i].GetName())
			}
		}
		return names, err
	}).WithTimeout(patience).Should(BeEmpty())
	h.Expect(h.versions(t)).NotTo(BeEmpty(), "the objects stay, by the deletion policy of the SyncTargets")
}
