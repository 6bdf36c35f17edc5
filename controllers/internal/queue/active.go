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

package queue

import (
	"math"
	gosync "sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
)

// stopPriority is the priority of the zero key, which stops a worker.
const stopPriority = math.MaxInt

// activeQueue is a priority queue that can shut down while workers wait for it. controller-runtime's queue can deadlock in
// ShutDown while it hands an item to a worker that stops (kubernetes-sigs/controller-runtime issue 3538). v0.25 fixes that, but
// kcp's libraries are older. Therefore activeQueue stops the workers before it shuts down.
type activeQueue[K comparable] struct {
	priorityqueue.PriorityQueue[K]
	queue *Queue[K]
	// processing counts the workers that have an item. The queue's lock guards it.
	processing int
	// waitingWorkers counts the workers that wait for an item, or have just got one.
	waitingWorkers gosync.WaitGroup
}

// AddWithOpts adds keys to the queue.
func (a *activeQueue[K]) AddWithOpts(options priorityqueue.AddOpts, keys ...K) {
	a.queue.AddWithOpts(options, keys...)
}

// Add adds a key to the queue.
func (a *activeQueue[K]) Add(key K) {
	a.queue.AddWithOpts(priorityqueue.AddOpts{}, key)
}

// AddAfter adds a key to the queue after a delay.
func (a *activeQueue[K]) AddAfter(key K, after time.Duration) {
	a.queue.AddWithOpts(priorityqueue.AddOpts{After: after}, key)
}

// AddRateLimited adds a key to the queue after its backoff.
func (a *activeQueue[K]) AddRateLimited(key K) {
	a.queue.AddWithOpts(priorityqueue.AddOpts{RateLimited: true}, key)
}

// GetWithPriority waits for the next item; shutdown is true if there will be none.
func (a *activeQueue[K]) GetWithPriority() (key K, priority int, shutdown bool) {
	if !a.beginGet() {
		return key, 0, true
	}
	defer a.waitingWorkers.Done()
	key, priority, shutdown = a.PriorityQueue.GetWithPriority()
	return key, priority, shutdown || !a.acceptItem(key, priority)
}

// acceptItem reports whether the worker processes the item. If the queue is inactive now, it keeps the item for
// later.
func (a *activeQueue[K]) acceptItem(key K, priority int) bool {
	if priority == stopPriority {
		// The next worker stops, too.
		a.PriorityQueue.Done(key)
		a.stopWorker()
		return false
	}
	a.queue.lock.Lock()
	defer a.queue.lock.Unlock()
	if a.isInactive() {
		a.queue.addLocked(priorityqueue.AddOpts{Priority: &priority}, key)
		return false
	}
	a.queue.stopTimerLocked(key)
	a.processing++
	return true
}

// Get waits for the next item; shutdown is true if there will be none.
func (a *activeQueue[K]) Get() (key K, shutdown bool) {
	key, _, shutdown = a.GetWithPriority()
	return key, shutdown
}

// Done is called when an item has been processed.
func (a *activeQueue[K]) Done(key K) {
	a.PriorityQueue.Done(key)
	a.queue.lock.Lock()
	defer a.queue.lock.Unlock()
	a.processing--
}

// ShutDown stops the waiting workers, and returns when they have stopped. Workers that process an item find the queue shut down
// afterwards.
func (a *activeQueue[K]) ShutDown() {
	a.queue.lock.Lock()
	if !a.isInactive() {
		a.queue.active = nil
	}
	a.queue.lock.Unlock()
	a.stopWorker()
	a.waitingWorkers.Wait()
	a.PriorityQueue.ShutDown()
}

// stopWorker adds the zero key before all other keys.
func (a *activeQueue[K]) stopWorker() {
	var zero K
	a.PriorityQueue.AddWithOpts(priorityqueue.AddOpts{Priority: new(stopPriority)}, zero)
}

func (a *activeQueue[K]) beginGet() bool {
	a.queue.lock.Lock()
	defer a.queue.lock.Unlock()
	if a.isInactive() {
		return false
	}
	a.waitingWorkers.Add(1)
	return true
}

// isInactive requires the queue's lock.
func (a *activeQueue[K]) isInactive() bool { return a.queue.active != a }
