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

// atOnce is how many mailboxes kcp is asked to prepare at a time. Each costs it half a second of a processor's time, and it
// works on all at once: of hundreds that are asked for together, even the first would take minutes.
const atOnce = 16

// turns lets some SyncTargets have their mailboxes prepared at a time, and the others wait.
type turns struct {
	clock clock.PassiveClock

	lock  sync.Mutex
	queue workqueue.TypedInterface[mcreconcile.Request]
	// preparing are the SyncTargets whose mailboxes kcp prepares, with since when, and waiting those that are to come, by
	// inventory workspace.
	preparing map[mcreconcile.Request]time.Time
	waiting   map[multicluster.ClusterName]map[mcreconcile.Request]bool
}

func newTurns(clock clock.PassiveClock) *turns {
	return &turns{clock: clock, preparing: map[mcreconcile.Request]time.Time{}, waiting: map[multicluster.ClusterName]map[mcreconcile.Request]bool{}}
}

// listen takes over the queue by which those who wait are called.
func (t *turns) listen(queue workqueue.TypedInterface[mcreconcile.Request]) {
	t.lock.Lock()
	defer t.lock.Unlock()
	t.queue = queue
}

// take tells whether a mailbox may be made now. If not, the SyncTarget is called when it may be.
func (t *turns) take(syncTarget mcreconcile.Request) bool {
	t.lock.Lock()
	defer t.lock.Unlock()
	if _, has := t.preparing[syncTarget]; !has && len(t.preparing) >= atOnce {
		if t.waiting[syncTarget.ClusterName] == nil {
			t.waiting[syncTarget.ClusterName] = map[mcreconcile.Request]bool{}
		}
		t.waiting[syncTarget.ClusterName][syncTarget] = true
		return false
	}
	t.begin(syncTarget)
	return true
}

// note notes that kcp prepares a mailbox, whoever asked for it, and returns since when that is known.
func (t *turns) note(syncTarget mcreconcile.Request) (since time.Time) {
	t.lock.Lock()
	defer t.lock.Unlock()
	return t.begin(syncTarget)
}

// begin gives a SyncTarget its turn, unless it has it. The caller holds the lock.
func (t *turns) begin(syncTarget mcreconcile.Request) (since time.Time) {
	t.endWait(syncTarget)
	if _, has := t.preparing[syncTarget]; !has {
		t.preparing[syncTarget] = t.clock.Now()
	}
	return t.preparing[syncTarget]
}

// prepares tells whether this hub has seen kcp prepare a mailbox, and has not gone on since.
func (t *turns) prepares(syncTarget mcreconcile.Request) bool {
	t.lock.Lock()
	defer t.lock.Unlock()
	_, prepares := t.preparing[syncTarget]
	return prepares
}

// pass gives up a SyncTarget's turn, or its wait, and calls those that may be next. Whoever is called and has no use for it
// passes too.
func (t *turns) pass(syncTarget mcreconcile.Request) {
	t.lock.Lock()
	defer t.lock.Unlock()
	delete(t.preparing, syncTarget)
	t.endWait(syncTarget)
	free := atOnce - len(t.preparing)
	if free <= 0 || t.queue == nil || len(t.waiting) == 0 {
		return
	}
	// An inventory workspace with many SyncTargets does not keep those of others from their turn.
	turns := map[multicluster.ClusterName]int{}
	for preparing := range t.preparing {
		turns[preparing.ClusterName]++
	}
	for ; free > 0 && len(t.waiting) > 0; free-- {
		next := t.next(turns)
		turns[next.ClusterName]++
		t.endWait(next)
		t.queue.Add(next)
	}
}

// next returns one that waits, of the inventory workspace that has the fewest turns. The caller holds the lock.
func (t *turns) next(turns map[multicluster.ClusterName]int) (next mcreconcile.Request) {
	fewest := math.MaxInt
	for inventory, waiting := range t.waiting {
		if turns[inventory] >= fewest {
			continue
		}
		fewest = turns[inventory]
		for next = range waiting {
			break
		}
	}
	return next
}

// endWait notes that a SyncTarget does not wait any more. The caller holds the lock.
func (t *turns) endWait(syncTarget mcreconcile.Request) {
	waiting := t.waiting[syncTarget.ClusterName]
	delete(waiting, syncTarget)
	if len(waiting) == 0 {
		delete(t.waiting, syncTarget.ClusterName)
	}
}
