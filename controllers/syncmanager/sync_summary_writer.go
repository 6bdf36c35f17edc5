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

package syncmanager

import (
	"context"
	"errors"
	"hash/fnv"
	"maps"
	"slices"
	gosync "sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/synchub-dev/synchub/controllers/internal/findings"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/provider/ledger"
	"github.com/synchub-dev/synchub/provider/metrics/targetlabels"
	"github.com/synchub-dev/synchub/provider/shards"
	"github.com/synchub-dev/synchub/provider/topic"
)

const (
	// summaryInterval is how often the numbers of objects of a SyncTarget are written, if they change. All else is written at once.
	summaryInterval = time.Minute
	// summaryDelay is how long an event waits for further events of the same SyncTarget.
	summaryDelay = 500 * time.Millisecond
	// unpublishInterval is how often an owner finds out whether objects have the finalizer of an API that is being withdrawn.
	unpublishInterval = 2 * time.Second
	// summaryWorkers is how many entries are written at once.
	summaryWorkers = 8
)

// SyncSummaryWriter writes the facts that the leader needs about the SyncTargets of this replica into the
// ledger: whether they are Ready, and the summaries that a [FleetCounter] adds up. It runs on every replica.
type SyncSummaryWriter struct {
	sync      *Manager
	ledger    *ledger.Store
	readiness *findings.Readiness
	log       logr.Logger

	lock gosync.Mutex
	held map[types.UID]*heldState
}

// heldState is the SyncSummaryWriter's state of a SyncTarget that this replica owns. Only the reconcile of the SyncTarget uses it.
type heldState struct {
	// since is when the writer found out that this replica holds the SyncTarget. nextCounts is when numbers of objects may be written.
	since, nextCounts time.Time
}

// NewSyncSummaryWriter returns a writer for the SyncTargets that the Role of the sync manager owns.
func NewSyncSummaryWriter(sync *Manager, entries *ledger.Store, ready *findings.Readiness, log logr.Logger) *SyncSummaryWriter {
	return &SyncSummaryWriter{sync: sync, ledger: entries, readiness: ready, log: log, held: map[types.UID]*heldState{}}
}

// Register adds the writer to the manager of the hosting cluster. Each replica writes the summaries of its own
// SyncTargets.
func (w *SyncSummaryWriter) Register(hosting manager.Manager) error {
	added, err := controller.NewTyped("syncsummary", hosting, controller.TypedOptions[types.UID]{
		MaxConcurrentReconciles: summaryWorkers,
		Reconciler:              w,
		NeedLeaderElection:      new(false),
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[types.UID](minRetryDelay, maxRetryDelay),
		LogConstructor:          targetlabels.LogConstructor(w.log),
	})
	if err != nil {
		return err
	}
	later := func(queue syncTargetQueue, syncTarget types.UID) { queue.AddAfter(syncTarget, summaryDelay) }
	return errors.Join(
		added.Watch(topic.Source(&w.sync.StateChanged, later)),
		added.Watch(topic.Source(w.readiness.Changes(), later)),
		added.Watch(topic.Source(w.sync.Role.Changed, func(queue syncTargetQueue, changed shards.Set) {
			w.forgetShards(changed)
			w.enqueueAll(queue, 0)
		})),
		added.Watch(source.TypedFunc[types.UID](func(ctx context.Context, queue syncTargetQueue) error {
			go w.enqueueRegularly(ctx, queue)
			return nil
		})),
	)
}

// enqueueRegularly enqueues all SyncTargets that this replica holds, once the ledger is loaded and then once in an interval.
func (w *SyncSummaryWriter) enqueueRegularly(ctx context.Context, queue syncTargetQueue) {
	if w.ledger.WaitForLoad(ctx) != nil {
		return
	}
	w.enqueueAll(queue, 0)
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.sync.Clock.After(summaryInterval):
			w.enqueueAll(queue, summaryInterval)
		}
	}
}

// enqueueAll enqueues the SyncTargets that this replica owns, spread over a time.
func (w *SyncSummaryWriter) enqueueAll(queue syncTargetQueue, spread time.Duration) {
	all, _ := w.ledger.SyncTargets()
	for _, syncTarget := range all {
		if w.sync.Role.Owns(syncTarget) {
			queue.AddAfter(syncTarget, spreadOver(syncTarget, spread))
		}
	}
}

// spreadOver returns a part of the duration that is always the same for a SyncTarget.
func spreadOver(syncTarget types.UID, duration time.Duration) time.Duration {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(syncTarget))
	return time.Duration(float64(duration) * float64(hash.Sum32()) / (1 << 32))
}

// Reconcile writes the summary of one SyncTarget if it has changed.
func (w *SyncSummaryWriter) Reconcile(ctx context.Context, syncTarget types.UID) (reconcile.Result, error) {
	if !w.sync.Role.Owns(syncTarget) || !w.ledger.IsLoaded() || !w.ledger.Has(syncTarget) {
		w.forget(syncTarget)
		return reconcile.Result{}, nil
	}
	now := w.sync.Clock.Now()
	held := w.stateOf(syncTarget, now)
	local, heldFor := w.sync.localSummaryOf(syncTarget), now.Sub(held.since)
	change := func(entry *ledger.Entry) {
		if ready, _, known := w.readiness.Of(syncTarget); known {
			entry.Ready = &ready
		}
		entry.SyncSummary = nextSummary(entry.SyncSummary, local, heldFor)
	}
	stored := w.ledger.Get(syncTarget)
	next := stored
	change(&next)
	mustWrite, writesCounts := compareSummaries(&stored, &next)
	if !mustWrite && writesCounts && now.Before(held.nextCounts) {
		return reconcile.Result{RequeueAfter: held.nextCounts.Sub(now)}, nil
	}
	if mustWrite || writesCounts {
		err := w.ledger.UpdateExisting(w.sync.Role.Context(ctx, syncTarget), syncTarget, change)
		if err != nil && w.sync.Role.Owns(syncTarget) {
			return reconcile.Result{}, err
		}
	}
	if writesCounts {
		held.nextCounts = now.Add(summaryInterval)
	}
	if slices.ContainsFunc(w.sync.Published(), func(resource plan.Resource) bool { return resource.Unpublishing }) {
		return reconcile.Result{RequeueAfter: unpublishInterval}, nil
	}
	return reconcile.Result{}, nil
}

// compareSummaries reports whether something has changed that the leader must know at once, and whether numbers of objects have.
func compareSummaries(stored, next *ledger.Entry) (mustWrite, writesCounts bool) {
	isReadyChanged := next.Ready != nil && (stored.Ready == nil || *stored.Ready != *next.Ready)
	return isReadyChanged || !stored.SyncSummary.EqualExceptObjects(next.SyncSummary), !stored.SyncSummary.Equal(next.SyncSummary)
}

// stateOf returns the state of a SyncTarget that this replica holds. The first numbers of objects of all SyncTargets are spread over the
// interval, unless there are none yet.
func (w *SyncSummaryWriter) stateOf(syncTarget types.UID, now time.Time) *heldState {
	w.lock.Lock()
	defer w.lock.Unlock()
	if w.held[syncTarget] == nil {
		w.held[syncTarget] = &heldState{since: now, nextCounts: now.Add(spreadOver(syncTarget, summaryInterval))}
	}
	return w.held[syncTarget]
}

// forgetShards drops since when this replica has owned the SyncTargets of shards that it acquired or released.
func (w *SyncSummaryWriter) forgetShards(changed shards.Set) {
	w.lock.Lock()
	defer w.lock.Unlock()
	maps.DeleteFunc(w.held, func(syncTarget types.UID, _ *heldState) bool { return changed.Has(syncTarget) })
}

func (w *SyncSummaryWriter) forget(syncTarget types.UID) {
	w.lock.Lock()
	defer w.lock.Unlock()
	delete(w.held, syncTarget)
}
