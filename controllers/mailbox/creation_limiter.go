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

// maxConcurrentCreations is how many mailboxes the hub lets kcp initialize at a time. Each costs kcp half a second of CPU
// time, and kcp works on all of them at once: with hundreds, even the first would take minutes.
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
	// asked is since when those need a mailbox.
	asked map[mcreconcile.Request]time.Time
}

func newCreationLimiter(clock clock.PassiveClock) *creationLimiter {
	return &creationLimiter{clock: clock, creating: map[mcreconcile.Request]time.Time{}, waiting: map[multicluster.ClusterName]map[mcreconcile.Request]bool{}, asked: map[mcreconcile.Request]time.Time{}}
}

// setQueue sets the queue to which release adds waiting SyncTargets.
func (t *creationLimiter) setQueue(queue workqueue.TypedInterface[mcreconcile.Request]) {
	t.lock.Lock()
	defer t.lock.Unlock()
	t.queue = queue
}

// acquire reports whether the hub may create the mailbox now. If not, the SyncTarget waits, and a later release enqueues
// it.
func (t *creationLimiter) acquire(syncTarget mcreconcile.Request) bool {
	t.lock.Lock()
	defer t.lock.Unlock()
	t.noteAsked(syncTarget)
	if _, has := t.creating[syncTarget]; !has && len(t.creating) >= maxConcurrentCreations {
		if t.waiting[syncTarget.ClusterName] == nil {
			t.waiting[syncTarget.ClusterName] = map[mcreconcile.Request]bool{}
		}
		t.waiting[syncTarget.ClusterName][syncTarget] = true
		return false
	}
	t.start(syncTarget)
	return true
}

// markCreating records that kcp is initializing a mailbox, even above the limit, and returns since when the hub has known
// that.
func (t *creationLimiter) markCreating(syncTarget mcreconcile.Request) (since time.Time) {
	t.lock.Lock()
	defer t.lock.Unlock()
	return t.start(syncTarget)
}

// start records the start time unless there is one. The caller holds the lock.
func (t *creationLimiter) start(syncTarget mcreconcile.Request) (since time.Time) {
	t.noteAsked(syncTarget)
	t.removeWaiting(syncTarget)
	if _, has := t.creating[syncTarget]; !has {
		t.creating[syncTarget] = t.clock.Now()
	}
	return t.creating[syncTarget]
}

// isCreating reports whether this hub has recorded that kcp is initializing the mailbox and release was not called since.
func (t *creationLimiter) isCreating(syncTarget mcreconcile.Request) bool {
	t.lock.Lock()
	defer t.lock.Unlock()
	_, prepares := t.creating[syncTarget]
	return prepares
}

// noteAsked records since when a SyncTarget needs a mailbox. The caller holds the lock.
func (t *creationLimiter) noteAsked(syncTarget mcreconcile.Request) {
	if _, has := t.asked[syncTarget]; !has {
		t.asked[syncTarget] = t.clock.Now()
	}
}

// counts returns how many SyncTargets wait, and for how many kcp initializes a mailbox.
func (t *creationLimiter) counts() (waiting, creating int) {
	t.lock.Lock()
	defer t.lock.Unlock()
	for _, of := range t.waiting {
		waiting += len(of)
	}
	return waiting, len(t.creating)
}

// release removes a SyncTarget from creating and waiting, and enqueues as many waiting SyncTargets as there is room for. A
// SyncTarget that is enqueued and needs no mailbox any more calls release in turn. It returns for how long the SyncTarget needed a
// mailbox; ok is false if it did not.
func (t *creationLimiter) release(syncTarget mcreconcile.Request) (waited time.Duration, ok bool) {
	t.lock.Lock()
	defer t.lock.Unlock()
	asked, ok := t.asked[syncTarget]
	if ok {
		waited = t.clock.Since(asked)
		delete(t.asked, syncTarget)
	}
	delete(t.creating, syncTarget)
	t.removeWaiting(syncTarget)
	free := maxConcurrentCreations - len(t.creating)
	if free <= 0 || t.queue == nil || len(t.waiting) == 0 {
		return waited, ok
	}
	// An inventory workspace with many SyncTargets must not delay those of other inventories.
	creatingPerInventory := map[multicluster.ClusterName]int{}
	for preparing := range t.creating {
		creatingPerInventory[preparing.ClusterName]++
	}
	for ; free > 0 && len(t.waiting) > 0; free-- {
		next := t.nextWaiting(creatingPerInventory)
		creatingPerInventory[next.ClusterName]++
		t.removeWaiting(next)
		t.queue.Add(next)
	}
	return waited, ok
}

// nextWaiting returns a waiting SyncTarget of the inventory workspace with the fewest mailboxes in creation. The caller
// holds the lock.
func (t *creationLimiter) nextWaiting(creatingPerInventory map[multicluster.ClusterName]int) (next mcreconcile.Request) {
	fewest := math.MaxInt
	for inventory, waiting := range t.waiting {
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
func (t *creationLimiter) removeWaiting(syncTarget mcreconcile.Request) {
	waiting := t.waiting[syncTarget.ClusterName]
	delete(waiting, syncTarget)
	if len(waiting) == 0 {
		delete(t.waiting, syncTarget.ClusterName)
	}
}
