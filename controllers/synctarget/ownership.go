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
	gosync "sync"

	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/provider/ledger"
	"github.com/synchub-dev/synchub/provider/targets"
)

// takeOver starts the work for a SyncTarget that this replica owns now. It reads the former owner's last
// record, because the cache of the ledger may be stale: all SyncTargets of the shards that this replica
// acquired together share one list. If the leader has deleted an entry while another replica owned the
// SyncTarget, takeOver writes it again.
func (c *Controller) takeOver(ctx context.Context, syncTarget types.UID) error {
	c.store.ownedState(syncTarget)
	if err := c.Ledger.EnsureFresh(ctx, c.store.ownedSince(syncTarget)); err != nil || !c.OtherOwners || c.Ledger.Has(syncTarget) {
		return err
	}
	return c.Ledger.Update(ctx, syncTarget, func(*ledger.Entry) {})
}

// reconcileUnowned reconciles a SyncTarget of another owner. If the owner is the leader, this replica may
// become the next leader, so it prepares. Otherwise it records the owner's findings.
func (c *Controller) reconcileUnowned(ctx context.Context, request mcreconcile.Request, inventory cluster.Cluster, syncTarget *edgev2alpha1.SyncTarget) (reconcile.Result, error) {
	if !c.OtherOwners {
		return reconcile.Result{}, c.prepare(ctx, request, inventory, syncTarget)
	}
	return c.recordUnowned(ctx, request, inventory, syncTarget)
}

// prepare connects a SyncTarget and fills its caches, so that this replica can continue at once when it owns
// the SyncTarget. It writes nothing. It relies on the ledger, not on the SyncTarget, and prepares only what the
// owner has recorded there.
func (c *Controller) prepare(ctx context.Context, request mcreconcile.Request, inventory cluster.Cluster, syncTarget *edgev2alpha1.SyncTarget) error {
	known := c.Ledger.Get(syncTarget.UID)
	if !mayPrepare(syncTarget, known) {
		c.stopWork(syncTarget.UID)
		return c.admitTunnel(ctx, request, inventory, syncTarget)
	}
	c.store.indexSecret(request, syncTarget)
	name := logicalcluster.Name(request.ClusterName)
	observed := observedState{identified: true}
	var err error
	if observed.mailbox, err = c.Mailboxes.Locate(ctx, name, syncTarget); err != nil {
		return err
	}
	c.Registry.SetExpectedCluster(syncTarget.UID, targets.ExpectedCluster{Cluster: targets.Cluster(known.Cluster)})
	if observed.connection, _, err = c.connect(ctx, inventory, syncTarget, c.store.stateOf(syncTarget.UID)); err != nil {
		return err
	}
	if observed.connection == nil || observed.connection.Health.Get().Reason == targets.ReasonClusterChanged || observed.mailbox.String() != known.Mailbox {
		c.stopSync(syncTarget.UID)
		return nil
	}
	target := targetFor(syncTarget, observed, known)
	target.Prepare = true
	c.Sync.StartSync(target)
	return nil
}

// mayPrepare reports whether the owner syncs a SyncTarget, according to the ledger and the spec.
func mayPrepare(syncTarget *edgev2alpha1.SyncTarget, known ledger.Entry) bool {
	return syncTarget.DeletionTimestamp == nil && !syncTarget.Spec.Suspend && !syncTarget.Spec.Drain &&
		known.Mailbox != "" && known.Cluster != (ledger.Cluster{}) && !known.ClusterConflict
}

// recordUnowned stops the work for a SyncTarget of another owner, and records which cluster it stands for, to
// compare that with the clusters of this replica's own SyncTargets. The leader also records from the ledger
// whether the SyncTarget is Ready, and reports an exceeded quota.
func (c *Controller) recordUnowned(ctx context.Context, request mcreconcile.Request, inventory cluster.Cluster, syncTarget *edgev2alpha1.SyncTarget) (reconcile.Result, error) {
	known := c.Ledger.Get(syncTarget.UID)
	if known.Ready != nil && c.Role.Leads() {
		c.Readiness.Set(syncTarget.UID, *known.Ready, c.Clock.Now(), readyChangedAt(syncTarget))
	} else {
		// A reconcile that ran when the shard was released may have set it.
		c.Readiness.Forget(syncTarget.UID)
	}
	if err := c.keepSchemaConnection(ctx, request, inventory, syncTarget); err != nil {
		return reconcile.Result{}, err
	}
	c.store.setIdentity(newClusterIdentity(request, syncTarget, known.Cluster.ID))
	if !c.Role.Leads() || syncTarget.DeletionTimestamp != nil {
		return reconcile.Result{}, nil
	}
	_, result, err := c.awaitQuota(ctx, request, inventory, syncTarget)
	return result, err
}

// keepSchemaConnection disconnects the cluster of a SyncTarget of another owner, unless this replica reads schemas from it.
func (c *Controller) keepSchemaConnection(ctx context.Context, request mcreconcile.Request, inventory cluster.Cluster, syncTarget *edgev2alpha1.SyncTarget) error {
	known := c.Ledger.Get(syncTarget.UID).Cluster
	if !c.store.get(syncTarget.UID).isSchemaSource || known == (ledger.Cluster{}) || syncTarget.DeletionTimestamp != nil {
		c.store.unindexSecret(request)
		c.stopAndDisconnect(syncTarget.UID)
		return c.admitTunnel(ctx, request, inventory, syncTarget)
	}
	c.stopSync(syncTarget.UID)
	c.store.indexSecret(request, syncTarget)
	c.Registry.SetExpectedCluster(syncTarget.UID, targets.ExpectedCluster{Cluster: targets.Cluster(known)})
	_, _, err := c.connect(ctx, inventory, syncTarget, c.store.stateOf(syncTarget.UID))
	return err
}

// StopShard ends all work of this replica for the SyncTargets of a shard. It returns once the replica no longer writes to their
// targets.
func (c *Controller) StopShard(shard int) {
	var stopping gosync.WaitGroup
	for _, syncTarget := range c.store.inShard(shard) {
		stopping.Go(func() {
			c.stopAndDisconnect(syncTarget)
			// If the SyncTarget returns, its readiness must be observed again.
			c.Readiness.Forget(syncTarget)
		})
	}
	stopping.Wait()
}
