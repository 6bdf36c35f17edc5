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

package objectsync

import (
	"context"
	"math"
	"strconv"
	gosync "sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
)

// idleTimeout is how long the queue must have been empty before the workers stop.
const idleTimeout = time.Minute

// stopPriority is the priority of the item that stops a worker.
const stopPriority = math.MaxInt

// queue is the work queue of a controller. While it has keys, or had some a moment ago, it is an [activeQueue], which needs
// nine goroutines. An idle queue needs none: a quiet fleet has thousands of queues.
type queue struct {
	clock   clock.Clock
	limiter workqueue.TypedRateLimiter[types.NamespacedName]
	// added signals that an idle queue got a key.
	added chan struct{}

	lock gosync.Mutex
	// active is nil while the queue is idle; buffered has what was added since.
	active   *activeQueue
	buffered []bufferedAdd
	// activeUntil is the time until which the last added keys keep the queue active.
	activeUntil time.Time
}

// bufferedAdd is an addition to an idle queue.
type bufferedAdd struct {
	priorityqueue.AddOpts
	keys []types.NamespacedName
}

func newQueue(clock clock.Clock) *queue {
	return &queue{
		clock: clock, added: make(chan struct{}, 1),
		limiter: workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](retryBaseDelay, retryMaxDelay),
	}
}

// AddWithOpts adds keys to the queue.
func (q *queue) AddWithOpts(options priorityqueue.AddOpts, keys ...types.NamespacedName) {
	q.lock.Lock()
	defer q.lock.Unlock()
	q.addLocked(bufferedAdd{options, keys})
}

// addLocked requires the lock.
func (q *queue) addLocked(added bufferedAdd) {
	delay := added.After
	if added.RateLimited {
		delay = retryMaxDelay
	}
	if until := q.clock.Now().Add(delay + idleTimeout); until.After(q.activeUntil) {
		q.activeUntil = until
	}
	if q.active != nil {
		q.active.PriorityQueue.AddWithOpts(added.AddOpts, added.keys...)
		return
	}
	q.buffered = append(q.buffered, added)
	select {
	case q.added <- struct{}{}:
	default:
	}
}

// Len returns the number of keys that wait for a worker.
func (q *queue) Len() int {
	q.lock.Lock()
	defer q.lock.Unlock()
	if q.active == nil {
		return len(q.buffered)
	}
	return q.active.Len()
}

// waitForWork waits until the queue has a key, and returns false if ctx ends first.
func (q *queue) waitForWork(ctx context.Context) bool {
	for q.Len() == 0 {
		select {
		case <-ctx.Done():
			return false
		case <-q.added:
		}
	}
	return ctx.Err() == nil
}

// activate makes the queue active, with everything that was added while it was idle.
func (q *queue) activate() *activeQueue {
	q.lock.Lock()
	defer q.lock.Unlock()
	q.active = &activeQueue{queue: q, PriorityQueue: priorityqueue.New("", func(o *priorityqueue.Opts[types.NamespacedName]) {
		// Metrics of named queues cost a ticker each.
		o.RateLimiter = q.limiter
	})}
	for _, added := range q.buffered {
		q.active.PriorityQueue.AddWithOpts(added.AddOpts, added.keys...)
	}
	q.buffered = nil
	return q.active
}

// waitUntilIdle returns when the queue has been idle for a while, or ctx ends. The queue is inactive then.
func (q *queue) waitUntilIdle(ctx context.Context) {
	for !q.deactivateIfIdle() {
		select {
		case <-ctx.Done():
			return
		case <-q.clock.After(idleTimeout):
		}
	}
}

// deactivateIfIdle makes the queue inactive if it has been empty for a while.
func (q *queue) deactivateIfIdle() bool {
	q.lock.Lock()
	defer q.lock.Unlock()
	if q.active == nil {
		return true
	}
	if q.active.processing > 0 || q.active.Len() > 0 || q.clock.Now().Before(q.activeUntil) {
		return false
	}
	q.active = nil
	return true
}

// activeQueue is a priority queue that can shut down while workers wait for it. controller-runtime's own blocks for ever if
// its workers leave at the moment when it hands one an item, and with it everybody who waits for the controller
// (kubernetes-sigs/controller-runtime issue 3538, fixed in v0.25, which needs newer Kubernetes libraries than kcp's). So it
// stops the workers first.
type activeQueue struct {
	priorityqueue.PriorityQueue[types.NamespacedName]
	queue *queue
	// processing counts the workers that have an item. The queue's lock guards it.
	processing int
	// waitingWorkers counts the workers that wait for an item, or have just got one.
	waitingWorkers gosync.WaitGroup
}

// AddWithOpts adds keys to the queue.
func (s *activeQueue) AddWithOpts(options priorityqueue.AddOpts, keys ...types.NamespacedName) {
	s.queue.AddWithOpts(options, keys...)
}

// Add adds a key to the queue.
func (s *activeQueue) Add(key types.NamespacedName) {
	s.queue.AddWithOpts(priorityqueue.AddOpts{}, key)
}

// AddAfter adds a key to the queue after a delay.
func (s *activeQueue) AddAfter(key types.NamespacedName, after time.Duration) {
	s.queue.AddWithOpts(priorityqueue.AddOpts{After: after}, key)
}

// AddRateLimited adds a key to the queue after its backoff.
func (s *activeQueue) AddRateLimited(key types.NamespacedName) {
	s.queue.AddWithOpts(priorityqueue.AddOpts{RateLimited: true}, key)
}

// GetWithPriority waits for the next item; shutdown is true if there will be none.
func (s *activeQueue) GetWithPriority() (key types.NamespacedName, priority int, shutdown bool) {
	if !s.beginGet() {
		return types.NamespacedName{}, 0, true
	}
	defer s.waitingWorkers.Done()
	key, priority, shutdown = s.PriorityQueue.GetWithPriority()
	return key, priority, shutdown || !s.acceptItem(key, priority)
}

// acceptItem reports whether the worker processes the item. If the queue is inactive by now, the item is kept for later.
func (s *activeQueue) acceptItem(key types.NamespacedName, priority int) bool {
	s.queue.lock.Lock()
	defer s.queue.lock.Unlock()
	if !s.isInactive() {
		s.processing++
		return true
	}
	if priority < stopPriority {
		s.queue.addLocked(bufferedAdd{priorityqueue.AddOpts{Priority: &priority}, []types.NamespacedName{key}})
	}
	return false
}

// Get waits for the next item; shutdown is true if there will be none.
func (s *activeQueue) Get() (key types.NamespacedName, shutdown bool) {
	key, _, shutdown = s.GetWithPriority()
	return key, shutdown
}

// Done is called when an item has been processed.
func (s *activeQueue) Done(key types.NamespacedName) {
	s.PriorityQueue.Done(key)
	s.queue.lock.Lock()
	defer s.queue.lock.Unlock()
	s.processing--
}

// ShutDown gives each waiting worker an item that stops it, and returns when they have stopped. Workers that process an item
// find the queue shut down afterwards.
func (s *activeQueue) ShutDown() {
	s.queue.lock.Lock()
	if !s.isInactive() {
		s.queue.active = nil
	}
	s.queue.lock.Unlock()
	first := stopPriority
	for worker := range maxConcurrentReconciles {
		// No object has an empty name.
		s.PriorityQueue.AddWithOpts(priorityqueue.AddOpts{Priority: &first}, types.NamespacedName{Name: "/" + strconv.Itoa(worker)})
	}
	s.waitingWorkers.Wait()
	s.PriorityQueue.ShutDown()
}

func (s *activeQueue) beginGet() bool {
	s.queue.lock.Lock()
	defer s.queue.lock.Unlock()
	if s.isInactive() {
		return false
	}
	s.waitingWorkers.Add(1)
	return true
}

// isInactive requires the queue's lock.
func (s *activeQueue) isInactive() bool { return s.queue.active != s }
