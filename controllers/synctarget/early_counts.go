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
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/objectsync"
	"github.com/synchub-dev/synchub/provider/topic"
)

const (
	// earlyCountDelay is how long a change of objects waits for further ones, before the hub looks whether they must be counted.
	earlyCountDelay = time.Second
	// earlyCountBurst is how many counts of a SyncTarget need not wait: for the first object in sync, for the last pending change, for the
	// first failure and for its end. Each is a write of the status.
	earlyCountBurst = 4
	// earlyCountInterval is the mean time between further counts that do not wait for a heartbeat, so that an object that fails time and
	// again costs no more writes than that.
	earlyCountInterval = 10 * time.Second
)

// reserveEarlyCount reserves a count that does not wait for a heartbeat. The caller cancels the reservation if it does not count.
func (s *syncTargetState) reserveEarlyCount(now time.Time) *rate.Reservation {
	if s.earlyCounts == nil {
		s.earlyCounts = rate.NewLimiter(rate.Every(earlyCountInterval), earlyCountBurst)
	}
	return s.earlyCounts.ReserveN(now, 1)
}

// mustCount reports whether objects must be counted before the next heartbeat: people wait for the first object, and for failures.
func mustCount(counted, now objectsync.Progress) bool {
	return !counted.HasSynced && now.HasSynced || counted.HasFailed != now.HasFailed || !counted.IsSettled && now.IsSettled
}

// countedBefore returns the progress that the stored counts show. After a restart it must cause no write.
func countedBefore(counts *edgev2alpha1.TargetCounts) objectsync.Progress {
	if counts == nil {
		return objectsync.Progress{IsSettled: true}
	}
	return objectsync.Progress{HasSynced: counts.Synced > 0, HasFailed: counts.Failed > 0, IsSettled: true}
}

// watchCounts adds a controller that enqueues the SyncTargets whose objects must be counted before the next heartbeat.
func (c *Controller) watchCounts(hosting manager.Manager) error {
	added, err := controller.NewTyped("synctargetcounts", hosting, controller.TypedOptions[types.UID]{
		NeedLeaderElection: new(false),
		Reconciler: reconcile.TypedFunc[types.UID](func(_ context.Context, syncTarget types.UID) (reconcile.Result, error) {
			// Before the first reconcile of the SyncTarget nothing is known about its last count.
			if counted := c.store.get(syncTarget).counted; counted != nil && mustCount(*counted, c.Sync.Progress(syncTarget)) {
				c.store.enqueue(syncTarget)
			}
			return reconcile.Result{}, nil
		}),
		LogConstructor: func(*types.UID) logr.Logger { return c.Log.V(2) },
	})
	if err != nil {
		return err
	}
	return added.Watch(topic.Source(&c.Sync.ObjectsChanged, func(queue workqueue.TypedRateLimitingInterface[types.UID], syncTarget types.UID) {
		queue.AddAfter(syncTarget, earlyCountDelay)
	}))
}
