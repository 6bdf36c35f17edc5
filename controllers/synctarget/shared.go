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

package synctarget

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/types"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/provider/ledger"
	"github.com/synchub-dev/synchub/provider/targets"
)

// acquaintance is for how long after a hub first saw a SyncTarget that stays refused without the other one being seen.
const acquaintance = time.Minute

// claim is a SyncTarget that stands for a cluster.
type claim struct {
	uid       types.UID
	name      string
	inventory logicalcluster.Name
	created   time.Time
	cluster   string
}

func (c claim) message() string {
	if c.uid == "" {
		return "Another SyncTarget stood for the same cluster when it was last looked at; the hub is looking again."
	}
	return fmt.Sprintf("The SyncTarget %s of the workspace %s stands for the same cluster, and is older: remove one of them, or set spec.allowSharedCluster on this one.", c.name, c.inventory)
}

// olderThan tells which of two claims came first.
func (c claim) olderThan(other claim) bool {
	if !c.created.Equal(other.created) {
		return c.created.Before(other.created)
	}
	return c.uid < other.uid
}

// claims are those of all SyncTargets of the hub.
type claims struct {
	all map[types.UID]claim
	// clusters holds who claims a cluster, so that a look at one SyncTarget is none at the fleet.
	clusters map[string][]types.UID
}

// set takes over a claim, and returns the other SyncTargets for which that may change something.
func (c *claims) set(next claim) (concerned []types.UID) {
	before, ok := c.all[next.uid]
	if ok && before == next {
		return nil
	}
	if c.all == nil {
		c.all, c.clusters = map[types.UID]claim{}, map[string][]types.UID{}
	}
	concerned = c.drop(next.uid)
	if next.cluster != before.cluster {
		concerned = append(concerned, c.clusters[next.cluster]...)
	}
	c.all[next.uid] = next
	if next.cluster != "" {
		c.clusters[next.cluster] = append(c.clusters[next.cluster], next.uid)
	}
	return concerned
}

// drop forgets a claim, and returns the SyncTargets for which that may change something.
func (c *claims) drop(syncTarget types.UID) (concerned []types.UID) {
	before, ok := c.all[syncTarget]
	if !ok {
		return nil
	}
	delete(c.all, syncTarget)
	others := slices.DeleteFunc(c.clusters[before.cluster], func(uid types.UID) bool { return uid == syncTarget })
	if len(others) == 0 {
		delete(c.clusters, before.cluster)
		return nil
	}
	c.clusters[before.cluster] = others
	return slices.Clone(others)
}

// rival returns the oldest SyncTarget of the same cluster and the same inventory workspace that is older than this one, nil if
// there is none. Whoever may write in another workspace could have his own server say anything.
func (c *claims) rival(mine claim) *claim {
	var oldest *claim
	for _, uid := range c.clusters[mine.cluster] {
		other := c.all[uid]
		if other.inventory == mine.inventory && other.olderThan(mine) && (oldest == nil || other.olderThan(*oldest)) {
			oldest = &other
		}
	}
	return oldest
}

// stranger returns a SyncTarget of another inventory workspace that leads to what says to be the same cluster, nil if there is
// none.
func (c *claims) stranger(mine claim) *claim {
	for _, uid := range c.clusters[mine.cluster] {
		if other := c.all[uid]; other.inventory != mine.inventory {
			return &other
		}
	}
	return nil
}

// expect says which cluster the connections of a SyncTarget must lead to, and returns for how long what the hub before has found
// out about it counts.
func (c *Controller) expect(syncTarget *edgev2alpha1.SyncTarget, memory *memory) *trust {
	known := c.ledger.Get(syncTarget.UID)
	if memory.trust == nil {
		memory.trust = &trust{Trust: trustIn(syncTarget, known, c.ledger.Led(), memory.since)}
	}
	c.registry.Expect(syncTarget.UID, targets.Expected{Cluster: targets.Cluster(known.Cluster), Trusted: memory.trust.Until})
	return memory.trust
}

// identify writes down which cluster a SyncTarget stands for, once its connection has found that out, and finds out who else
// stands for it. Only what the hub has observed counts, now or, by the ledger, before.
func (c *Controller) identify(ctx context.Context, request mcreconcile.Request, syncTarget *edgev2alpha1.SyncTarget, found *circumstances, memory *memory) error {
	known := c.ledger.Get(syncTarget.UID)
	cluster := known.Cluster
	confirmed := false
	if found.connection != nil {
		if observed, ok := found.connection.Cluster(); ok && found.connection.Up() {
			cluster = ledger.Cluster(observed)
		}
		other := found.connection.Health().Other
		confirmed = other != (targets.Cluster{}) && syncTarget.Annotations[edgev2alpha1.AnnotationConfirmedCluster] == other.Token()
		if confirmed {
			cluster = ledger.Cluster(other)
		}
	}
	rival := c.claim(request, syncTarget, cluster.ID, found)
	memory.rivalSeen = memory.rivalSeen || rival != nil
	found.rival = refusedFor(syncTarget.Spec.AllowSharedCluster, rival, known.Refused && !memory.rivalSeen, c.clock.Since(memory.since))
	err := c.ledger.Update(ctx, syncTarget.UID, func(entry *ledger.Entry) {
		entry.Name, entry.Inventory, entry.Refused = syncTarget.Name, string(request.ClusterName), found.rival != nil
		if confirmed {
			entry.Confirm(cluster, c.clock.Now())
		}
		entry.Cluster = cluster
		entry.Bind(namespacesOf(syncTarget))
	})
	if err != nil {
		return err
	}
	found.identified = cluster != (ledger.Cluster{}) && (confirmed || found.connection == nil || found.connection.Health().Reason != targets.ReasonClusterChanged)
	if confirmed {
		c.expect(syncTarget, memory)
	}
	return nil
}

// claim notes for which cluster a SyncTarget stands, has those looked at for which that changes something, and returns the older
// one of its workspace.
func (c *Controller) claim(request mcreconcile.Request, syncTarget *edgev2alpha1.SyncTarget, cluster string, found *circumstances) *claim {
	mine := claim{
		uid: syncTarget.UID, name: syncTarget.Name, inventory: logicalcluster.Name(request.ClusterName),
		created: syncTarget.CreationTimestamp.Time, cluster: cluster,
	}
	c.lock.Lock()
	concerned := c.claims.set(mine)
	rival, stranger := c.claims.rival(mine), c.claims.stranger(mine)
	c.lock.Unlock()
	found.shared = stranger != nil
	if stranger != nil && len(concerned) > 0 {
		c.log.Info("two SyncTargets of different inventory workspaces lead to what says to be the same cluster",
			"cluster", cluster, "syncTarget", mine.name, "inventory", mine.inventory, "otherSyncTarget", stranger.name, "otherInventory", stranger.inventory)
	}
	c.wake(concerned)
	return rival
}

// refusedFor returns the claim because of which a SyncTarget is not to be synced, nil if it is. One that the hub before refused, for
// a rival that this hub has not seen yet, stays so until it has had time to see that.
func refusedFor(allowed bool, rival *claim, unseen bool, seenFor time.Duration) *claim {
	switch {
	case allowed:
		return nil
	case rival == nil && unseen && seenFor < acquaintance:
		return &claim{}
	default:
		return rival
	}
}
