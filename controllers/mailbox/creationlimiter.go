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

// maxConcurrentCreations is how many mailboxes kcp is asked to prepare at a time. Each costs it half a second of a processor's time, and it
// works on all at once: of hundreds that are asked for together, even the first would take minutes.
const maxConcurrentCreations = 16

// creationLimiter lets some SyncTargets have their mailboxes prepared at a time, and the others wait.
type creationLimiter struct {
	clock clock.PassiveClock

	lock  sync.Mutex
	queue workqueue.TypedInterface[mcreconcile.Request]
	// creating are the SyncTargets whose mailboxes kcp prepares, with since when, and waiting those that are to come, by
	// inventory workspace.
	creating map[mcreconcile.Request]time.Time
	waiting  map[multicluster.ClusterName]map[mcreconcile.Request]bool
}

func newCreationLimiter(clock clock.PassiveClock) *creationLimiter {
	return &creationLimiter{clock: clock, creating: map[mcreconcile.Request]time.Time{}, waiting: map[multicluster.ClusterName]map[mcreconcile.Request]bool{}}
}

// setQueue takes over the queue by which those who wait are called.
func (t *creationLimiter) setQueue(queue workqueue.TypedInterface[mcreconcile.Request]) {
	t.lock.Lock()
	defer t.lock.Unlock()
	t.queue = queue
}

// acquire tells whether a mailbox may be made now. If not, the SyncTarget is called when it may be.
func (t *creationLimiter) acquire(syncTarget mcreconcile.Request) bool {
	t.lock.Lock()
	defer t.lock.Unlock()
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

// markCreating notes that kcp prepares a mailbox, whoever asked for it, and returns since when that is known.
func (t *creationLimiter) markCreating(syncTarget mcreconcile.Request) (since time.Time) {
	t.lock.Lock()
	defer t.lock.Unlock()
	return t.start(syncTarget)
}

// start gives a SyncTarget its turn, unless it has it. The caller holds the lock.
func (t *creationLimiter) start(syncTarget mcreconcile.Request) (since time.Time) {
	t.removeWaiting(syncTarget)
	if _, has := t.creating[syncTarget]; !has {
		t.creating[syncTarget] = t.clock.Now()
	}
	return t.creating[syncTarget]
}

// isCreating tells whether this hub has seen kcp prepare a mailbox, and has not gone on since.
func (t *creationLimiter) isCreating(syncTarget mcreconcile.Request) bool {
	t.lock.Lock()
	defer t.lock.Unlock()
	_, prepares := t.creating[syncTarget]
	return prepares
}

// release gives up a SyncTarget's turn, or its wait, and calls those that may be next. Whoever is called and has no use for it
// passes too.
func (t *creationLimiter) release(syncTarget mcreconcile.Request) {
	t.lock.Lock()
	defer t.lock.Unlock()
	delete(t.creating, syncTarget)
	t.removeWaiting(syncTarget)
	free := maxConcurrentCreations - len(t.creating)
	if free <= 0 || t.queue == nil || len(t.waiting) == 0 {
		return
	}
	// An inventory workspace with many SyncTargets does not keep those of others from their turn.
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
}

// nextWaiting returns one that waits, of the inventory workspace that has the fewest turns. The caller holds the lock.
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

// removeWaiting notes that a SyncTarget does not wait any more. The caller holds the lock.
func (t *creationLimiter) removeWaiting(syncTarget mcreconcile.Request) {
	waiting := t.waiting[syncTarget.ClusterName]
	delete(waiting, syncTarget)
	if len(waiting) == 0 {
		delete(t.waiting, syncTarget.ClusterName)
	}
}
