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
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/provider/targets"
)

// acquaintance is for how long after a hub began to lead a SyncTarget stays refused without the other one being seen.
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
	began time.Time
	all   map[types.UID]claim
}

// set takes over a claim, and returns the other SyncTargets for which that may change something.
func (c *claims) set(next claim) (concerned []types.UID) {
	before, ok := c.all[next.uid]
	if ok && before == next {
		return nil
	}
	if c.all == nil {
		c.all = map[types.UID]claim{}
	}
	concerned = c.of(before.cluster, next.uid)
	if next.cluster != before.cluster {
		concerned = append(concerned, c.of(next.cluster, next.uid)...)
	}
	c.all[next.uid] = next
	return concerned
}

// drop forgets a claim, and returns the SyncTargets for which that may change something.
func (c *claims) drop(syncTarget types.UID) (concerned []types.UID) {
	before, ok := c.all[syncTarget]
	if !ok {
		return nil
	}
	delete(c.all, syncTarget)
	return c.of(before.cluster, syncTarget)
}

// of returns the other SyncTargets of a cluster.
func (c *claims) of(cluster string, but types.UID) (found []types.UID) {
	if cluster == "" {
		return nil
	}
	for uid, other := range c.all {
		if uid != but && other.cluster == cluster {
			found = append(found, uid)
		}
	}
	return found
}

// rival returns the oldest SyncTarget of the same cluster that is older than this one, nil if there is none.
func (c *claims) rival(mine claim) *claim {
	var oldest *claim
	for _, uid := range c.of(mine.cluster, mine.uid) {
		if other := c.all[uid]; other.olderThan(mine) && (oldest == nil || other.olderThan(*oldest)) {
			oldest = &other
		}
	}
	return oldest
}

// identify finds out which cluster a SyncTarget stands for, and returns the one because of which it is not to be synced.
func (c *Controller) identify(ctx context.Context, request mcreconcile.Request, syncTarget *edgev2alpha1.SyncTarget, connection *targets.Connection) *claim {
	mine := claim{
		uid: syncTarget.UID, name: syncTarget.Name, inventory: logicalcluster.Name(request.ClusterName),
		created: syncTarget.CreationTimestamp.Time, cluster: syncTarget.Status.ClusterID,
	}
	if connection != nil && connection.Up() {
		if id, known := connection.ClusterID(ctx); known {
			mine.cluster = id
		}
	}
	c.lock.Lock()
	concerned := c.claims.set(mine)
	rival := c.claims.rival(mine)
	c.lock.Unlock()
	c.wake(concerned)
	switch {
	case syncTarget.Spec.AllowSharedCluster:
		return nil
	case rival == nil && wasRefused(syncTarget) && c.clock.Since(c.claims.began) < acquaintance:
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
