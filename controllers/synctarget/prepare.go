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

	"github.com/kcp-dev/logicalcluster/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/provider/inventories"
	"github.com/synchub-dev/synchub/provider/ledger"
	"github.com/synchub-dev/synchub/provider/targets"
)

// prepare connects a SyncTarget and fills its caches on a replica that does not lead, so that the replica can go on at once when it
// does. It writes nothing. It believes the ledger, not the SyncTarget, and prepares only what the leader has placed before.
func (c *Controller) prepare(ctx context.Context, request mcreconcile.Request) error {
	c.markPrepared(request)
	if err := c.Ledger.WaitForLoad(ctx); err != nil || c.Role.Leads() {
		// onElected enqueues it, if this replica leads by now.
		return err
	}
	inventory, err := c.Manager.GetCluster(ctx, request.ClusterName)
	if err != nil {
		return err
	}
	var syncTarget edgev2alpha1.SyncTarget
	if err := inventory.GetClient().Get(ctx, request.NamespacedName, &syncTarget); err != nil {
		if apierrors.IsNotFound(err) {
			c.untrack(request)
			c.forgetPrepared(request)
			return nil
		}
		return err
	}
	if inventories.TooLarge(&syncTarget) != "" {
		return nil
	}
	known := c.Ledger.Get(syncTarget.UID)
	c.track(request, syncTarget.UID)
	if !mayPrepare(&syncTarget, known) {
		c.stopWork(syncTarget.UID)
		return c.admitTunnel(ctx, request, inventory, &syncTarget)
	}
	c.indexSecret(request, &syncTarget)
	name := logicalcluster.Name(request.ClusterName)
	observed := observedState{identified: true}
	if observed.mailbox, err = c.Mailboxes.Locate(ctx, name, &syncTarget); err != nil {
		return err
	}
	c.Registry.SetExpectedCluster(syncTarget.UID, targets.ExpectedCluster{Cluster: targets.Cluster(known.Cluster)})
	if observed.connection, _, err = c.connect(ctx, inventory, &syncTarget, c.stateOf(syncTarget.UID)); err != nil {
		return err
	}
	if observed.connection == nil || observed.connection.Health().Reason == targets.ReasonClusterChanged || observed.mailbox.String() != known.Mailbox {
		c.Sync.StopSync(syncTarget.UID)
		return nil
	}
	target := targetFor(name, &syncTarget, observed, known)
	target.Prepare = true
	c.Sync.StartSync(target)
	return nil
}

// mayPrepare reports whether the leader syncs a SyncTarget, as far as the ledger and the spec tell.
func mayPrepare(syncTarget *edgev2alpha1.SyncTarget, known ledger.Entry) bool {
	return syncTarget.DeletionTimestamp == nil && !syncTarget.Spec.Suspend && !syncTarget.Spec.Drain &&
		known.Mailbox != "" && known.Cluster != (ledger.Cluster{}) && !known.ClusterConflict
}

// markPrepared notes that a SyncTarget must be reconciled again when this replica leads.
func (c *Controller) markPrepared(request mcreconcile.Request) {
	c.lock.Lock()
	defer c.lock.Unlock()
	if c.Role.Leads() {
		// onElected may have run already.
		c.queue.Add(request)
		return
	}
	c.prepared[request] = struct{}{}
}

// forgetPrepared removes a deleted SyncTarget from prepared.
func (c *Controller) forgetPrepared(request mcreconcile.Request) {
	c.lock.Lock()
	defer c.lock.Unlock()
	delete(c.prepared, request)
}

// onElected enqueues all prepared SyncTargets, or all SyncTargets if they are sharded. In the first case it drops their states except the
// Secrets: the replica observed the rest before it led.
func (c *Controller) onElected(queue requestQueue) {
	c.lock.Lock()
	defer c.lock.Unlock()
	if c.Role.IsSharded() {
		// The leader reports exceeded quotas.
		for _, request := range c.requests {
			queue.Add(request)
		}
		return
	}
	now := c.Clock.Now()
	for uid, state := range c.states {
		c.states[uid] = &syncTargetState{since: now, secret: state.secret, supersededVersion: state.supersededVersion}
	}
	for request := range c.prepared {
		queue.Add(request)
	}
	clear(c.prepared)
}
