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

package idlequeue

import (
	"math"
	gosync "sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
)

// stopPriority is the priority of the zero key, which stops a worker.
const stopPriority = math.MaxInt

// activeQueue is a priority queue that can shut down while workers wait for it. controller-runtime's own blocks for ever if
// its workers leave at the moment when it hands one an item, and with it everybody who waits for the controller
// (kubernetes-sigs/controller-runtime issue 3538, fixed in v0.25, which needs newer Kubernetes libraries than kcp's). So it
// stops the workers first.
type activeQueue[K comparable] struct {
	priorityqueue.PriorityQueue[K]
	queue *Queue[K]
	// processing counts the workers that have an item. The queue's lock guards it.
	processing int
	// waitingWorkers counts the workers that wait for an item, or have just got one.
	waitingWorkers gosync.WaitGroup
}

// AddWithOpts adds keys to the queue.
func (s *activeQueue[K]) AddWithOpts(options priorityqueue.AddOpts, keys ...K) {
	s.queue.AddWithOpts(options, keys...)
}

// Add adds a key to the queue.
func (s *activeQueue[K]) Add(key K) {
	s.queue.AddWithOpts(priorityqueue.AddOpts{}, key)
}

// AddAfter adds a key to the queue after a delay.
func (s *activeQueue[K]) AddAfter(key K, after time.Duration) {
	s.queue.AddWithOpts(priorityqueue.AddOpts{After: after}, key)
}

// AddRateLimited adds a key to the queue after its backoff.
func (s *activeQueue[K]) AddRateLimited(key K) {
	s.queue.AddWithOpts(priorityqueue.AddOpts{RateLimited: true}, key)
}

// GetWithPriority waits for the next item; shutdown is true if there will be none.
func (s *activeQueue[K]) GetWithPriority() (key K, priority int, shutdown bool) {
	if !s.beginGet() {
		return key, 0, true
	}
	defer s.waitingWorkers.Done()
	key, priority, shutdown = s.PriorityQueue.GetWithPriority()
	return key, priority, shutdown || !s.acceptItem(key, priority)
}

// acceptItem reports whether the worker processes the item. If the queue is inactive by now, the item is kept for later.
func (s *activeQueue[K]) acceptItem(key K, priority int) bool {
	if priority == stopPriority {
		// The next worker stops, too.
		s.PriorityQueue.Done(key)
		s.stopWorker()
		return false
	}
	s.queue.lock.Lock()
	defer s.queue.lock.Unlock()
	if s.isInactive() {
		s.queue.addLocked(priorityqueue.AddOpts{Priority: &priority}, key)
		return false
	}
	s.queue.stopTimerLocked(key)
	s.processing++
	return true
}

// Get waits for the next item; shutdown is true if there will be none.
func (s *activeQueue[K]) Get() (key K, shutdown bool) {
	key, _, shutdown = s.GetWithPriority()
	return key, shutdown
}

// Done is called when an item has been processed.
func (s *activeQueue[K]) Done(key K) {
	s.PriorityQueue.Done(key)
	s.queue.lock.Lock()
	defer s.queue.lock.Unlock()
	s.processing--
}

// ShutDown stops the waiting workers, and returns when they have stopped. Workers that process an item find the queue shut down
// afterwards.
func (s *activeQueue[K]) ShutDown() {
	s.queue.lock.Lock()
	if !s.isInactive() {
		s.queue.active = nil
	}
	s.queue.lock.Unlock()
	s.stopWorker()
	s.waitingWorkers.Wait()
	s.PriorityQueue.ShutDown()
}

// stopWorker adds the zero key before all others.
func (s *activeQueue[K]) stopWorker() {
	var zero K
	s.PriorityQueue.AddWithOpts(priorityqueue.AddOpts{Priority: new(stopPriority)}, zero)
}

func (s *activeQueue[K]) beginGet() bool {
	s.queue.lock.Lock()
	defer s.queue.lock.Unlock()
	if s.isInactive() {
		return false
	}
	s.waitingWorkers.Add(1)
	return true
}

// isInactive requires the queue's lock.
func (s *activeQueue[K]) isInactive() bool { return s.queue.active != s }
