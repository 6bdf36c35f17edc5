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

// identityGracePeriod is for how long after a hub first saw a SyncTarget that stays refused without the other one being seen.
const identityGracePeriod = time.Minute

// clusterIdentity is a SyncTarget that stands for a cluster.
type clusterIdentity struct {
	uid       types.UID
	name      string
	inventory logicalcluster.Name
	created   time.Time
	cluster   string
}

func (c clusterIdentity) conflictMessage() string {
	if c.uid == "" {
		return "Another SyncTarget stood for the same cluster when it was last looked at; the hub is looking again."
	}
	return fmt.Sprintf("The SyncTarget %s of the workspace %s stands for the same cluster, and is older: remove one of them, or set spec.allowSharedCluster on this one.", c.name, c.inventory)
}

// isOlderThan tells which of two claims came first.
func (c clusterIdentity) isOlderThan(other clusterIdentity) bool {
	if !c.created.Equal(other.created) {
		return c.created.Before(other.created)
	}
	return c.uid < other.uid
}

// clusterIdentities are those of all SyncTargets of the hub.
type clusterIdentities struct {
	bySyncTarget map[types.UID]clusterIdentity
	// byCluster holds who claims a cluster, so that a look at one SyncTarget is none at the fleet.
	byCluster map[string][]types.UID
}

// set takes over a claim, and returns the other SyncTargets for which that may change something.
func (c *clusterIdentities) set(next clusterIdentity) (concerned []types.UID) {
	before, ok := c.bySyncTarget[next.uid]
	if ok && before == next {
		return nil
	}
	if c.bySyncTarget == nil {
		c.bySyncTarget, c.byCluster = map[types.UID]clusterIdentity{}, map[string][]types.UID{}
	}
	concerned = c.delete(next.uid)
	if next.cluster != before.cluster {
		concerned = append(concerned, c.byCluster[next.cluster]...)
	}
	c.bySyncTarget[next.uid] = next
	if next.cluster != "" {
		c.byCluster[next.cluster] = append(c.byCluster[next.cluster], next.uid)
	}
	return concerned
}

// delete forgets a claim, and returns the SyncTargets for which that may change something.
func (c *clusterIdentities) delete(syncTarget types.UID) (concerned []types.UID) {
	before, ok := c.bySyncTarget[syncTarget]
	if !ok {
		return nil
	}
	delete(c.bySyncTarget, syncTarget)
	others := slices.DeleteFunc(c.byCluster[before.cluster], func(uid types.UID) bool { return uid == syncTarget })
	if len(others) == 0 {
		delete(c.byCluster, before.cluster)
		return nil
	}
	c.byCluster[before.cluster] = others
	return slices.Clone(others)
}

// conflictingTarget returns the oldest SyncTarget of the same cluster and the same inventory workspace that is older than this one, nil if
// there is none. Whoever may write in another workspace could have his own server say anything.
func (c *clusterIdentities) conflictingTarget(own clusterIdentity) *clusterIdentity {
	var oldest *clusterIdentity
	for _, uid := range c.byCluster[own.cluster] {
		other := c.bySyncTarget[uid]
		if other.inventory == own.inventory && other.isOlderThan(own) && (oldest == nil || other.isOlderThan(*oldest)) {
			oldest = &other
		}
	}
	return oldest
}

// otherInventoryTarget returns a SyncTarget of another inventory workspace that leads to what says to be the same cluster, nil if there is
// none.
func (c *clusterIdentities) otherInventoryTarget(own clusterIdentity) *clusterIdentity {
	for _, uid := range c.byCluster[own.cluster] {
		if other := c.bySyncTarget[uid]; other.inventory != own.inventory {
			return &other
		}
	}
	return nil
}

// expectCluster says which cluster the connections of a SyncTarget must lead to, and returns for how long what the hub before has found
// out about it counts.
func (c *Controller) expectCluster(syncTarget *edgev2alpha1.SyncTarget, state *targetState) *restartTrust {
	known := c.ledger.Get(syncTarget.UID)
	if state.restartTrust == nil {
		state.restartTrust = &restartTrust{Trust: trustAfterRestart(syncTarget, known, c.ledger.PreviousRenewTime(), state.since)}
	}
	c.registry.SetExpectedCluster(syncTarget.UID, targets.ExpectedCluster{Cluster: targets.Cluster(known.Cluster), TrustedUntil: state.restartTrust.Until})
	return state.restartTrust
}

// identifyCluster writes down which cluster a SyncTarget stands for, once its connection has found that out, and finds out who else
// stands for it. Only what the hub has observed counts, now or, by the ledger, before.
func (c *Controller) identifyCluster(ctx context.Context, request mcreconcile.Request, syncTarget *edgev2alpha1.SyncTarget, found *observedState, state *targetState) error {
	known := c.ledger.Get(syncTarget.UID)
	cluster := known.Cluster
	confirmed := false
	if found.connection != nil {
		if observed, ok := found.connection.Cluster(); ok && found.connection.IsUp() {
			cluster = ledger.Cluster(observed)
		}
		other := found.connection.Health().OtherCluster
		confirmed = other != (targets.Cluster{}) && syncTarget.Annotations[edgev2alpha1.AnnotationConfirmedCluster] == other.ConfirmationID()
		if confirmed {
			cluster = ledger.Cluster(other)
		}
	}
	conflicting := c.updateIdentity(request, syncTarget, cluster.ID, found)
	state.conflictSeen = state.conflictSeen || conflicting != nil
	found.conflictingTarget = effectiveConflict(syncTarget.Spec.AllowSharedCluster, conflicting, known.ClusterConflict && !state.conflictSeen, c.clock.Since(state.since))
	err := c.ledger.Update(ctx, syncTarget.UID, func(entry *ledger.Entry) {
		entry.Name, entry.Inventory, entry.ClusterConflict = syncTarget.Name, string(request.ClusterName), found.conflictingTarget != nil
		if confirmed {
			entry.ConfirmCluster(cluster, c.clock.Now())
		}
		entry.Cluster = cluster
		entry.RecordNamespaces(namespacesOf(syncTarget))
	})
	if err != nil {
		return err
	}
	found.identified = cluster != (ledger.Cluster{}) && (confirmed || found.connection == nil || found.connection.Health().Reason != targets.ReasonClusterChanged)
	if confirmed {
		c.expectCluster(syncTarget, state)
	}
	return nil
}

// updateIdentity notes for which cluster a SyncTarget stands, has those looked at for which that changes something, and returns the older
// one of its workspace.
func (c *Controller) updateIdentity(request mcreconcile.Request, syncTarget *edgev2alpha1.SyncTarget, cluster string, found *observedState) *clusterIdentity {
	own := clusterIdentity{
		uid: syncTarget.UID, name: syncTarget.Name, inventory: logicalcluster.Name(request.ClusterName),
		created: syncTarget.CreationTimestamp.Time, cluster: cluster,
	}
	c.lock.Lock()
	concerned := c.identities.set(own)
	conflicting, other := c.identities.conflictingTarget(own), c.identities.otherInventoryTarget(own)
	c.lock.Unlock()
	found.clusterShared = other != nil
	if other != nil && len(concerned) > 0 {
		c.log.Info("two SyncTargets of different inventory workspaces lead to what says to be the same cluster",
			"cluster", cluster, "syncTarget", own.name, "inventory", own.inventory, "otherSyncTarget", other.name, "otherInventory", other.inventory)
	}
	c.enqueue(concerned)
	return conflicting
}

// effectiveConflict returns the claim because of which a SyncTarget is not to be synced, nil if it is. One that the hub before refused, for
// a rival that this hub has not seen yet, stays so until it has had time to see that.
func effectiveConflict(allowed bool, conflicting *clusterIdentity, unseen bool, seenFor time.Duration) *clusterIdentity {
	switch {
	case allowed:
		return nil
	case conflicting == nil && unseen && seenFor < identityGracePeriod:
		return &clusterIdentity{}
	default:
		return conflicting
	}
}
