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
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/mailbox"
	"github.com/synchub-dev/synchub/provider/ledger"
	"github.com/synchub-dev/synchub/provider/shards"
	"github.com/synchub-dev/synchub/provider/targets"
)

// takeOver reads what the former owner of a SyncTarget recorded last: the cache of the ledger may be behind. All SyncTargets of a shard
// share a list. If somebody has deleted the entry since, it is written again.
func (c *Controller) takeOver(ctx context.Context, syncTarget types.UID) error {
	c.lock.Lock()
	since := &c.ownedSince[shards.Of(syncTarget)]
	if since.IsZero() {
		*since = c.Clock.Now()
	}
	ownedSince := *since
	c.lock.Unlock()
	if err := c.Ledger.EnsureFresh(ctx, ownedSince); err != nil || c.Ledger.Has(syncTarget) {
		return err
	}
	return c.Ledger.Update(ctx, syncTarget, func(*ledger.Entry) {})
}

// reconcileUnowned stops the work for a SyncTarget that another replica holds, and records which cluster it stands for, to compare with those of this
// replica's own SyncTargets. The leader also reports an exceeded quota.
func (c *Controller) reconcileUnowned(ctx context.Context, request mcreconcile.Request, inventory cluster.Cluster, syncTarget *edgev2alpha1.SyncTarget) (reconcile.Result, error) {
	if err := c.keepSchemaConnection(ctx, request, inventory, syncTarget); err != nil {
		return reconcile.Result{}, err
	}
	c.lock.Lock()
	concerned := c.identities.set(clusterIdentity{
		uid: syncTarget.UID, name: syncTarget.Name, inventory: logicalcluster.Name(request.ClusterName),
		created: syncTarget.CreationTimestamp.Time, cluster: c.Ledger.Get(syncTarget.UID).Cluster.ID,
	})
	c.lock.Unlock()
	c.enqueue(concerned...)
	if !c.Role.Leads() {
		// A reconcile that ran when the shard was lost may have set it.
		c.Readiness.Forget(syncTarget.UID)
	}
	if !c.Role.Leads() || syncTarget.DeletionTimestamp != nil {
		return reconcile.Result{}, nil
	}
	switch c.quotaState(request, syncTarget.UID) {
	case mailbox.QuotaUndecided:
		return reconcile.Result{RequeueAfter: quotaRetryInterval}, nil
	case mailbox.QuotaExceeded:
		return c.reportQuotaExceeded(ctx, inventory, syncTarget)
	case mailbox.QuotaGranted:
	}
	return reconcile.Result{}, nil
}

// keepSchemaConnection disconnects the cluster of a SyncTarget that another replica holds, unless this replica reads schemas from it.
func (c *Controller) keepSchemaConnection(ctx context.Context, request mcreconcile.Request, inventory cluster.Cluster, syncTarget *edgev2alpha1.SyncTarget) error {
	known := c.Ledger.Get(syncTarget.UID).Cluster
	c.lock.Lock()
	_, isSource := c.schemaSources[syncTarget.UID]
	c.lock.Unlock()
	if !isSource || known == (ledger.Cluster{}) || syncTarget.DeletionTimestamp != nil {
		c.lock.Lock()
		c.secretIndex.delete(request)
		c.lock.Unlock()
		c.stopAndDisconnect(syncTarget.UID)
		return c.admitTunnel(ctx, request, inventory, syncTarget)
	}
	c.stopSync(syncTarget.UID)
	c.indexSecret(request, syncTarget)
	c.Registry.SetExpectedCluster(syncTarget.UID, targets.ExpectedCluster{Cluster: targets.Cluster(known)})
	_, _, err := c.connect(ctx, inventory, syncTarget, c.stateOf(syncTarget.UID))
	return err
}

// ConnectForSchemas makes this replica connect to the cluster of a SyncTarget, whichever replica holds it. Schemas are read through this
// connection, nothing is written.
func (c *Controller) ConnectForSchemas(syncTarget types.UID) {
	c.lock.Lock()
	_, known := c.schemaSources[syncTarget]
	c.schemaSources[syncTarget] = struct{}{}
	c.lock.Unlock()
	if !known {
		c.enqueue(syncTarget)
	}
}

// followLedger is a source of the SyncTargets whose entries another replica has changed.
func (c *Controller) followLedger(ctx context.Context, _ requestQueue) error {
	c.Ledger.Subscribe(ctx, func(syncTarget types.UID) { c.enqueue(syncTarget) })
	return nil
}

// onShardChanged resets the states of the SyncTargets of a shard that this replica got or lost, and enqueues them.
func (c *Controller) onShardChanged(queue requestQueue, shard int) {
	c.lock.Lock()
	defer c.lock.Unlock()
	now := c.Clock.Now()
	c.ownedSince[shard] = now
	for syncTarget, request := range c.requests {
		if shards.Of(syncTarget) == shard {
			if !c.Role.Owns(syncTarget) {
				c.ownedSince[shard] = time.Time{}
			}
			c.states[syncTarget] = &syncTargetState{since: now}
			queue.Add(request)
		}
	}
}

// StopShard ends all work of this replica for the SyncTargets of a shard. It returns once the replica no longer writes to their
// targets.
func (c *Controller) StopShard(shard int) {
	c.lock.Lock()
	var held []types.UID
	for syncTarget := range c.requests {
		if shards.Of(syncTarget) == shard {
			held = append(held, syncTarget)
		}
	}
	c.lock.Unlock()
	var stopping gosync.WaitGroup
	for _, syncTarget := range held {
		stopping.Go(func() {
			c.stopAndDisconnect(syncTarget)
			// If it comes back, it must be found out anew.
			c.Readiness.Forget(syncTarget)
		})
	}
	stopping.Wait()
}
