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
	"math"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/objectsync"
	"github.com/synchub-dev/synchub/provider/targets"
)

// updateHeartbeat sets the heartbeat of a target that is up, with the counts, if it is due. It returns when the next one is due.
func (v statusView) updateHeartbeat(syncTarget *edgev2alpha1.SyncTarget, syncer metav1.Condition, state *syncTargetState) (requeueAfter time.Duration) {
	status := &syncTarget.Status
	last := status.LastSyncerHeartbeatTime
	requeueAfter = advanceHeartbeat(status, v.health, firstHeartbeat(syncTarget.UID, state.since, last), v.now)
	isSynced := (syncer.Status == metav1.ConditionTrue || slices.Contains(pendingReasons, syncer.Reason)) && len(v.unreadable) == 0
	switch isDue := status.LastSyncerHeartbeatTime != last; {
	case isSynced && !isDue:
		return shortestDelay(requeueAfter, v.countEarly(status, state))
	case isSynced && v.updateCounts(status):
		v.recordCounted()
		return requeueAfter
	case isSynced && latestHeartbeat(last).After(v.now):
		status.LastSyncerHeartbeatTime = last
		return min(latestHeartbeat(last).Sub(v.now), countRetryInterval)
	}
	// The hub does not observe any object of the target, or not all of them yet.
	status.Counts, status.Failures, status.PendingSince = nil, nil, nil
	if v.setCounted != nil {
		v.setCounted(countedBefore(nil))
	}
	return requeueAfter
}

// advanceHeartbeat sets the heartbeat if the stored one is old enough and now is not before first. It returns when the next one is
// due.
func advanceHeartbeat(status *edgev2alpha1.SyncTargetStatus, health targets.Health, first, now time.Time) time.Duration {
	if last := status.LastSyncerHeartbeatTime; last != nil {
		if wait := first.Sub(now); wait > 0 {
			return max(wait, time.Second)
		}
		// Another replica whose clock was ahead wrote a heartbeat from the future.
		if age := health.LastSeen.Sub(last.Time); age >= 0 && age < heartbeatInterval {
			return max(heartbeatInterval-age, time.Second)
		}
	}
	status.LastSyncerHeartbeatTime = &metav1.Time{Time: health.LastSeen}
	return heartbeatInterval
}

// updateCounts sets the counts of objects, and reports whether they are known. They are written with a heartbeat, so that they
// cost no request of their own.
func (v statusView) updateCounts(status *edgev2alpha1.SyncTargetStatus) (known bool) {
	if v.countObjects == nil {
		return true
	}
	sum, known := v.countObjects()
	if !known {
		return false
	}
	bounded := func(count int) int32 { return int32(min(count, math.MaxInt32)) } //nolint:gosec // no target holds more
	status.Counts = &edgev2alpha1.TargetCounts{Synced: bounded(sum.Synced), Failed: bounded(sum.Failed), Former: bounded(sum.Former)}
	status.Failures = objectsync.WithoutValues(objectsync.FirstFailures(sum.Failures, edgev2alpha1.MaxTargetFailures))
	if v.rewind != nil {
		status.StoreWentBack = storeWentBackStatus(v.rewind)
		status.StoreWentBack.Removals, status.StoreWentBack.Overwrites = bounded(sum.HeldRemovals), bounded(sum.HeldOverwrites)
	}
	status.PendingSince = nil
	if !sum.PendingSince.IsZero() {
		status.PendingSince = &metav1.Time{Time: sum.PendingSince}
	}
	return true
}

// countEarly writes the next heartbeat, with its counts, before it is due, if some object is the first one that is in sync, or that fails,
// or the last one that failed. It returns when it may do so, or when the heartbeat after it is due; zero if it need not.
func (v statusView) countEarly(status *edgev2alpha1.SyncTargetStatus, state *syncTargetState) (again time.Duration) {
	if v.setCounted == nil || !mustCount(v.counted, v.progress) {
		return 0
	}
	reserved := state.reserveEarlyCount(v.now)
	if again = reserved.DelayFrom(v.now); again > 0 || !v.updateCounts(status) {
		reserved.CancelAt(v.now)
		return again
	}
	status.LastSyncerHeartbeatTime = &metav1.Time{Time: v.health.LastSeen}
	v.setCounted(v.progress)
	return 0
}

// recordCounted records the progress at a count with a heartbeat that was due. Unlike after an early count, no other count follows when the
// pending changes have arrived.
func (v statusView) recordCounted() {
	if counted := v.progress; v.setCounted != nil {
		counted.IsSettled = true
		v.setCounted(counted)
	}
}
