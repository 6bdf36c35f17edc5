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

// identityGracePeriod limits how long a conflict that the previous leader recorded counts while this replica has not confirmed it. The
// period starts when this replica first observes the SyncTarget.
const identityGracePeriod = time.Minute

// clusterIdentity is the claim of a SyncTarget to stand for a cluster.
type clusterIdentity struct {
	uid       types.UID
	name      string
	inventory logicalcluster.Name
	created   time.Time
	cluster   string
}

func newClusterIdentity(request mcreconcile.Request, syncTarget *edgev2alpha1.SyncTarget, cluster string) clusterIdentity {
	return clusterIdentity{
		uid: syncTarget.UID, name: syncTarget.Name, inventory: logicalcluster.Name(request.ClusterName),
		created: syncTarget.CreationTimestamp.Time, cluster: cluster,
	}
}

func (c clusterIdentity) conflictMessage() string {
	if c.uid == "" {
		return "Another SyncTarget stood for the same cluster when it was last looked at; the hub is looking again."
	}
	return fmt.Sprintf("The SyncTarget %s of the workspace %s stands for the same cluster, and is older: remove one of them, or set spec.allowSharedCluster on this one.", c.name, c.inventory)
}

// isOlderThan reports whether c was created before other. The UID breaks ties.
func (c clusterIdentity) isOlderThan(other clusterIdentity) bool {
	if !c.created.Equal(other.created) {
		return c.created.Before(other.created)
	}
	return c.uid < other.uid
}

// clusterIdentities holds the claims of all SyncTargets of the hub.
type clusterIdentities struct {
	bySyncTarget map[types.UID]clusterIdentity
	// byCluster indexes the claims by cluster, so that the reconcile of one SyncTarget need not scan the fleet.
	byCluster map[string][]types.UID
}

// set stores a claim, and returns the other SyncTargets whose conflicts the claim may change.
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

// delete removes the claim of a SyncTarget, and returns the SyncTargets whose conflicts the removal may change.
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

// conflictingTarget returns the oldest SyncTarget that claims the same cluster, is in the same inventory
// workspace, and is older than own; nil if there is none. Claims in other workspaces do not count: a tenant
// could make its own server claim any identity.
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

// otherInventoryTarget returns a SyncTarget of another inventory workspace whose cluster claims the same
// identity; nil if there is none.
func (c *clusterIdentities) otherInventoryTarget(own clusterIdentity) *clusterIdentity {
	for _, uid := range c.byCluster[own.cluster] {
		if other := c.bySyncTarget[uid]; other.inventory != own.inventory {
			return &other
		}
	}
	return nil
}

// expectCluster sets the cluster in the registry that the connections of the SyncTarget must lead to. It
// returns how long findings of the previous leader about that cluster count.
func (c *Controller) expectCluster(syncTarget *edgev2alpha1.SyncTarget, state *syncTargetState) *startupGrace {
	known := c.Ledger.Get(syncTarget.UID)
	if state.startupGrace == nil {
		state.startupGrace = &startupGrace{until: trustAfterRestart(syncTarget, known, c.Ledger.PreviousRenewTime(), state.since)}
	}
	c.Registry.SetExpectedCluster(syncTarget.UID, targets.ExpectedCluster{Cluster: targets.Cluster(known.Cluster), TrustedUntil: state.startupGrace.until})
	return state.startupGrace
}

// identifyCluster records in the ledger which cluster the SyncTarget stands for, and finds the SyncTargets that
// claim the same cluster. It accepts only a cluster that a connection observed, or that the ledger contains
// from an earlier observation.
func (c *Controller) identifyCluster(ctx context.Context, request mcreconcile.Request, syncTarget *edgev2alpha1.SyncTarget, found *observedState, state *syncTargetState) error {
	known := c.Ledger.Get(syncTarget.UID)
	cluster := known.Cluster
	confirmed := false
	if found.connection != nil {
		if observed, ok := found.connection.Cluster(); ok && found.connection.Health.IsUp() {
			cluster = ledger.Cluster(observed)
		}
		other := found.connection.Health.Get().OtherCluster
		confirmed = other != (targets.Cluster{}) && syncTarget.Annotations[edgev2alpha1.AnnotationConfirmedCluster] == other.ConfirmationID()
		if confirmed {
			cluster = ledger.Cluster(other)
		}
	}
	conflicting := c.updateIdentity(request, syncTarget, cluster.ID, found)
	state.conflictSeen = state.conflictSeen || conflicting != nil
	found.conflictingTarget = effectiveConflict(syncTarget.Spec.AllowSharedCluster, conflicting, known.ClusterConflict && !state.conflictSeen, c.Clock.Since(state.since))
	err := c.Ledger.Update(ctx, syncTarget.UID, func(entry *ledger.Entry) {
		entry.Name, entry.Inventory, entry.ClusterConflict = syncTarget.Name, string(request.ClusterName), found.conflictingTarget != nil
		if confirmed {
			entry.ConfirmCluster(cluster, c.Clock.Now())
		}
		entry.Cluster = cluster
		entry.RecordNamespaces(namespacesOf(syncTarget))
	})
	if err != nil {
		return err
	}
	found.identified = cluster != (ledger.Cluster{}) && (confirmed || found.connection == nil || found.connection.Health.Get().Reason != targets.ReasonClusterChanged)
	if confirmed {
		c.expectCluster(syncTarget, state)
	}
	return nil
}

// updateIdentity stores the claim of the SyncTarget. It returns the older SyncTarget of the same workspace that claims the cluster, nil if there is none.
func (c *Controller) updateIdentity(request mcreconcile.Request, syncTarget *edgev2alpha1.SyncTarget, cluster string, found *observedState) *clusterIdentity {
	own := newClusterIdentity(request, syncTarget, cluster)
	conflicting, other, changed := c.store.setIdentity(own)
	found.clusterShared = other != nil
	if other != nil && changed {
		c.Log.Info("two SyncTargets of different inventory workspaces lead to clusters with the same identity",
			"cluster", cluster, "syncTarget", own.name, "inventory", own.inventory, "otherSyncTarget", other.name, "otherInventory", other.inventory)
	}
	return conflicting
}

// effectiveConflict returns the claim that keeps a SyncTarget from being synced, nil if there is none. The previous leader may have
// refused the SyncTarget for a conflicting one that this replica has not observed yet (unseen). Then effectiveConflict returns an empty
// claim until identityGracePeriod has passed.
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
