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
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
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

// rival returns the oldest SyncTarget of the same cluster that is older than this one, nil if there is none.
func (c *claims) rival(mine claim) *claim {
	var oldest *claim
	for _, uid := range c.clusters[mine.cluster] {
		if other := c.all[uid]; other.olderThan(mine) && (oldest == nil || other.olderThan(*oldest)) {
			oldest = &other
		}
	}
	return oldest
}

// identify finds out which cluster a SyncTarget stands for, and returns the one because of which it is not to be synced. As long
// as the hub before is trusted, that is the one that it has found.
func (c *Controller) identify(ctx context.Context, request mcreconcile.Request, syncTarget *edgev2alpha1.SyncTarget, found circumstances, memory *memory) *claim {
	mine := claim{
		uid: syncTarget.UID, name: syncTarget.Name, inventory: logicalcluster.Name(request.ClusterName),
		created: syncTarget.CreationTimestamp.Time, cluster: syncTarget.Status.ClusterID,
	}
	if found.connection != nil && found.connection.Up() && !c.clock.Now().Before(found.trusted.Until) {
		if id, known := found.connection.ClusterID(ctx); known {
			mine.cluster = id
		}
	}
	c.lock.Lock()
	concerned := c.claims.set(mine)
	rival := c.claims.rival(mine)
	c.lock.Unlock()
	c.wake(concerned)
	return refusedFor(syncTarget, rival, c.clock.Since(memory.since))
}

// refusedFor returns the claim because of which a SyncTarget is not to be synced, nil if it is. One that was refused stays so
// until the hub has had time to see the other one.
func refusedFor(syncTarget *edgev2alpha1.SyncTarget, rival *claim, seenFor time.Duration) *claim {
	switch {
	case syncTarget.Spec.AllowSharedCluster:
		return nil
	case rival == nil && wasRefused(syncTarget) && seenFor < acquaintance:
		return &claim{}
	default:
		return rival
	}
}

// wasRefused tells whether the hub did not sync a SyncTarget because of another when it last looked.
func wasRefused(syncTarget *edgev2alpha1.SyncTarget) bool {
	syncer := meta.FindStatusCondition(syncTarget.Status.Conditions, edgev2alpha1.ConditionSyncerReady)
	return syncer != nil && syncer.Reason == ReasonSharedCluster && syncTarget.Status.ClusterID != ""
}
