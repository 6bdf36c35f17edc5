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
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/objectsync"
	"github.com/synchub-dev/synchub/provider/targets"
)

// The first object in sync and the first failures are counted at once, and further ones with the next heartbeat. A restart writes nothing.
func TestEarlyCounts(t *testing.T) {
	t.Parallel()
	start := time.Unix(1000, 0)
	var counted objectsync.Progress
	sum, known := objectsync.Summary{}, true
	syncTarget, state := &edgev2alpha1.SyncTarget{}, &syncTargetState{since: start.Add(-time.Hour)}
	syncTarget.Status.LastSyncerHeartbeatTime = &metav1.Time{Time: start}
	counted = countedBefore(nil)
	heartbeat := func(at time.Duration, progress objectsync.Progress) (written bool, requeueAfter time.Duration) {
		now := start.Add(at)
		view := statusView{
			health: targets.Health{Up: true, LastSeen: now}, now: now, progress: progress, counted: counted,
			setCounted:   func(next objectsync.Progress) { counted = next },
			countObjects: func() (objectsync.Summary, bool) { return sum, known },
		}
		before := syncTarget.Status.LastSyncerHeartbeatTime
		requeueAfter = view.updateHeartbeat(syncTarget, metav1.Condition{Status: metav1.ConditionTrue}, state)
		return syncTarget.Status.LastSyncerHeartbeatTime != before, requeueAfter
	}
	synced, settled := objectsync.Progress{HasSynced: true}, objectsync.Progress{HasSynced: true, IsSettled: true}
	failing := objectsync.Progress{HasSynced: true, HasFailed: true, IsSettled: true}
	for i, step := range []struct {
		at       time.Duration
		progress objectsync.Progress
		sum      objectsync.Summary
		unknown  bool
		want     bool
		// wait is when the counts may be written; zero for the next heartbeat.
		wait time.Duration
	}{
		{at: time.Second, progress: objectsync.Progress{IsSettled: true}},
		{at: 2 * time.Second, progress: synced, unknown: true},
		{at: 3 * time.Second, progress: synced, sum: objectsync.Summary{Synced: 1}, want: true},
		{at: 4 * time.Second, progress: settled, sum: objectsync.Summary{Synced: 9}, want: true},
		{at: 5 * time.Second, progress: failing, sum: objectsync.Summary{Synced: 9, Failed: 1}, want: true},
		{at: 6 * time.Second, progress: settled, sum: objectsync.Summary{Synced: 9}, want: true},
		// An object that fails time and again waits.
		{at: 7 * time.Second, progress: failing, sum: objectsync.Summary{Synced: 9, Failed: 1}, wait: 6 * time.Second},
		{at: 13 * time.Second, progress: failing, sum: objectsync.Summary{Synced: 9, Failed: 1}, want: true},
		{at: 14 * time.Second, progress: settled, sum: objectsync.Summary{Synced: 9}, wait: 9 * time.Second},
		{at: 24 * time.Second, progress: settled, sum: objectsync.Summary{Synced: 9}, want: true},
		{at: 30 * time.Second, progress: synced, sum: objectsync.Summary{Synced: 10}},
		{at: 31 * time.Second, progress: settled, sum: objectsync.Summary{Synced: 10}},
		{at: 34 * time.Second, progress: failing, sum: objectsync.Summary{Synced: 9, Failed: 1}, want: true},
		{at: 35 * time.Second, progress: failing, sum: objectsync.Summary{Synced: 8, Failed: 2}},
		{at: 95 * time.Second, progress: failing, sum: objectsync.Summary{Synced: 8, Failed: 2}, want: true},
		{at: 96 * time.Second, progress: settled, sum: objectsync.Summary{Synced: 10}, want: true},
	} {
		sum, known = step.sum, !step.unknown
		got, requeueAfter := heartbeat(step.at, step.progress)
		if got != step.want {
			t.Errorf("step %d: written is %v", i, got)
		}
		if step.wait > 0 && requeueAfter.Round(time.Millisecond) != step.wait {
			t.Errorf("step %d: the SyncTarget is reconciled again after %v", i, requeueAfter)
		}
		if counts := syncTarget.Status.Counts; step.want && (int(counts.Synced) != sum.Synced || int(counts.Failed) != sum.Failed) {
			t.Errorf("step %d: %+v", i, counts)
		}
	}
	// A restarted hub derives from the status what was counted.
	counted, state = countedBefore(syncTarget.Status.Counts), &syncTargetState{since: start.Add(97 * time.Second)}
	if written, _ := heartbeat(98*time.Second, settled); written {
		t.Error("a restart writes the status")
	}
}
