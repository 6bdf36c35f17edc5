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
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
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
	// preparing are the SyncTargets whose mailboxes kcp prepares, with since when, and waiting those that are to come.
	preparing map[mcreconcile.Request]time.Time
	waiting   map[mcreconcile.Request]bool
}

func newTurns(clock clock.PassiveClock) *turns {
	return &turns{clock: clock, preparing: map[mcreconcile.Request]time.Time{}, waiting: map[mcreconcile.Request]bool{}}
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
		t.waiting[syncTarget] = true
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
	delete(t.waiting, syncTarget)
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
	delete(t.waiting, syncTarget)
	free := atOnce - len(t.preparing)
	for next := range t.waiting {
		if free <= 0 || t.queue == nil {
			return
		}
		free--
		delete(t.waiting, next)
		t.queue.Add(next)
	}
}
