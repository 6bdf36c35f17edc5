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

package mailbox

import (
	"math"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"
)

// maxConcurrentCreations is how many mailboxes the hub lets kcp initialize at a time. Each needs half a second
// of CPU time, and kcp works on all of them at once: with hundreds, even the first would take minutes.
const maxConcurrentCreations = 16

// creationLimiter limits how many mailboxes kcp initializes at a time, fairly between inventory workspaces. It is safe for
// concurrent use.
type creationLimiter struct {
	clock clock.PassiveClock

	lock  sync.Mutex
	queue workqueue.TypedInterface[mcreconcile.Request]
	// creating holds the SyncTargets whose mailboxes kcp is initializing, with the start time. waiting holds the
	// SyncTargets that wait, by inventory workspace.
	creating map[mcreconcile.Request]time.Time
	waiting  map[multicluster.ClusterName]map[mcreconcile.Request]bool
	// neededSince is when each of these SyncTargets first needed a mailbox.
	neededSince map[mcreconcile.Request]time.Time
}

func newCreationLimiter(clock clock.PassiveClock) *creationLimiter {
	return &creationLimiter{clock: clock, creating: map[mcreconcile.Request]time.Time{}, waiting: map[multicluster.ClusterName]map[mcreconcile.Request]bool{}, neededSince: map[mcreconcile.Request]time.Time{}}
}

// setQueue sets the queue that done adds waiting SyncTargets to.
func (l *creationLimiter) setQueue(queue workqueue.TypedInterface[mcreconcile.Request]) {
	l.lock.Lock()
	defer l.lock.Unlock()
	l.queue = queue
}

// acquire reports whether the hub may create the mailbox now. If not, the SyncTarget waits, and a later call of done enqueues
// it.
func (l *creationLimiter) acquire(syncTarget mcreconcile.Request) bool {
	l.lock.Lock()
	defer l.lock.Unlock()
	l.recordNeed(syncTarget)
	if _, has := l.creating[syncTarget]; !has && len(l.creating) >= maxConcurrentCreations {
		if l.waiting[syncTarget.ClusterName] == nil {
			l.waiting[syncTarget.ClusterName] = map[mcreconcile.Request]bool{}
		}
		l.waiting[syncTarget.ClusterName][syncTarget] = true
		return false
	}
	l.start(syncTarget)
	return true
}

// markCreating records that kcp is initializing a mailbox, even above the limit, and returns since when the hub has known
// that.
func (l *creationLimiter) markCreating(syncTarget mcreconcile.Request) (since time.Time) {
	l.lock.Lock()
	defer l.lock.Unlock()
	return l.start(syncTarget)
}

// start records the start time unless there is one. The caller holds the lock.
func (l *creationLimiter) start(syncTarget mcreconcile.Request) (since time.Time) {
	l.recordNeed(syncTarget)
	l.removeWaiting(syncTarget)
	if _, has := l.creating[syncTarget]; !has {
		l.creating[syncTarget] = l.clock.Now()
	}
	return l.creating[syncTarget]
}

// isCreating reports whether this hub has recorded that kcp is initializing the mailbox and done was not called since.
func (l *creationLimiter) isCreating(syncTarget mcreconcile.Request) bool {
	l.lock.Lock()
	defer l.lock.Unlock()
	_, prepares := l.creating[syncTarget]
	return prepares
}

// recordNeed records since when a SyncTarget needs a mailbox. The caller holds the lock.
func (l *creationLimiter) recordNeed(syncTarget mcreconcile.Request) {
	if _, has := l.neededSince[syncTarget]; !has {
		l.neededSince[syncTarget] = l.clock.Now()
	}
}

// counts returns how many SyncTargets wait, and for how many kcp initializes a mailbox.
func (l *creationLimiter) counts() (waiting, creating int) {
	l.lock.Lock()
	defer l.lock.Unlock()
	for _, of := range l.waiting {
		waiting += len(of)
	}
	return waiting, len(l.creating)
}

// done removes a SyncTarget from creating and waiting, and enqueues waiting SyncTargets up to the limit. An
// enqueued SyncTarget that needs no mailbox any more calls done too. It returns for how long the SyncTarget
// needed a mailbox; ok is false if it did not.
func (l *creationLimiter) done(syncTarget mcreconcile.Request) (waited time.Duration, ok bool) {
	l.lock.Lock()
	defer l.lock.Unlock()
	since, ok := l.neededSince[syncTarget]
	if ok {
		waited = l.clock.Since(since)
		delete(l.neededSince, syncTarget)
	}
	delete(l.creating, syncTarget)
	l.removeWaiting(syncTarget)
	free := maxConcurrentCreations - len(l.creating)
	if free <= 0 || l.queue == nil || len(l.waiting) == 0 {
		return waited, ok
	}
	// An inventory workspace with many SyncTargets must not delay the SyncTargets of other inventories.
	creatingPerInventory := map[multicluster.ClusterName]int{}
	for preparing := range l.creating {
		creatingPerInventory[preparing.ClusterName]++
	}
	for ; free > 0 && len(l.waiting) > 0; free-- {
		next := l.nextWaiting(creatingPerInventory)
		creatingPerInventory[next.ClusterName]++
		l.removeWaiting(next)
		l.queue.Add(next)
	}
	return waited, ok
}

// nextWaiting returns a waiting SyncTarget of the inventory workspace with the fewest mailboxes in creation. The caller
// holds the lock.
func (l *creationLimiter) nextWaiting(creatingPerInventory map[multicluster.ClusterName]int) (next mcreconcile.Request) {
	fewest := math.MaxInt
	for inventory, waiting := range l.waiting {
		if creatingPerInventory[inventory] >= fewest {
			continue
		}
		fewest = creatingPerInventory[inventory]
		for next = range waiting {
			break
		}
	}
	return next
}

// removeWaiting removes a SyncTarget from waiting. The caller holds the lock.
func (l *creationLimiter) removeWaiting(syncTarget mcreconcile.Request) {
	waiting := l.waiting[syncTarget.ClusterName]
	delete(waiting, syncTarget)
	if len(waiting) == 0 {
		delete(l.waiting, syncTarget.ClusterName)
	}
}
