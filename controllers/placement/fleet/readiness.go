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

package fleet

import (
	"maps"
	"sync"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/internal/topic"
)

// readiness knows which SyncTargets are not Ready. It is no part of the [Snapshot], so that a cluster that comes and goes concerns
// only those who choose clusters, and no withdrawal has to be verified again.
type readiness struct {
	changes topic.Topic[logicalcluster.Name]

	lock sync.RWMutex
	// notReady are the times since when SyncTargets are not Ready. byInventory are the same, by inventory.
	notReady    map[types.UID]time.Time
	byInventory map[logicalcluster.Name]map[types.UID]time.Time
}

// NotReadySince returns since when a SyncTarget is not Ready. notReady is false if it is Ready, or not known.
func (f *Fleet) NotReadySince(syncTarget types.UID) (since time.Time, notReady bool) {
	f.readiness.lock.RLock()
	defer f.readiness.lock.RUnlock()
	since, notReady = f.readiness.notReady[syncTarget]
	return since, notReady
}

// ReadinessChanges carries the inventories in which a SyncTarget became Ready, or ceased to be.
func (f *Fleet) ReadinessChanges() *topic.Topic[logicalcluster.Name] { return &f.readiness.changes }

// set replaces the SyncTargets of an inventory that are not Ready, and publishes the change if there is one. A SyncTarget that was
// not Ready before keeps its time: its condition may change between False and Unknown.
func (r *readiness) set(inventory logicalcluster.Name, notReady map[types.UID]time.Time) {
	r.lock.Lock()
	before := r.byInventory[inventory]
	for syncTarget := range notReady {
		if since, ok := before[syncTarget]; ok {
			notReady[syncTarget] = since
		}
	}
	changed := !maps.Equal(before, notReady)
	if changed {
		if r.notReady == nil {
			r.notReady, r.byInventory = map[types.UID]time.Time{}, map[logicalcluster.Name]map[types.UID]time.Time{}
		}
		for syncTarget := range before {
			delete(r.notReady, syncTarget)
		}
		maps.Copy(r.notReady, notReady)
		r.byInventory[inventory] = notReady
		if len(notReady) == 0 {
			delete(r.byInventory, inventory)
		}
	}
	r.lock.Unlock()
	if changed {
		r.changes.Publish(inventory)
	}
}

// notReady returns the SyncTargets that are not Ready. A new one counts from its creation.
func notReady(syncTargets []edgev2alpha1.SyncTarget) map[types.UID]time.Time {
	found := map[types.UID]time.Time{}
	for i := range syncTargets {
		one := &syncTargets[i]
		ready := meta.FindStatusCondition(one.Status.Conditions, edgev2alpha1.ConditionReady)
		switch {
		case ready == nil:
			found[one.UID] = one.CreationTimestamp.Time
		case ready.Status != "True":
			found[one.UID] = ready.LastTransitionTime.Time
		}
	}
	return found
}
