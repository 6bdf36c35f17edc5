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

// idleTimeout is how long nothing may have been to do before a controller's workers are sent home.
const idleTimeout = time.Minute

// stopPriority is the priority of what sends a worker home.
const stopPriority = math.MaxInt

// queue is what a controller has to do. While there is something, or was a moment ago, it is the priority queue of a
// [activeQueue]; else it is at rest, and costs no goroutine. A shift has nine, of which a fleet that is quiet would have thousands.
type queue struct {
	clock   clock.Clock
	limiter workqueue.TypedRateLimiter[types.NamespacedName]
	// added tells that something has come in at rest.
	added chan struct{}

	lock gosync.Mutex
	// active is nil at rest, and resting what has come in since.
	active   *activeQueue
	buffered []bufferedAdd
	// activeUntil is when nothing that has come in can be left to do, or be quite recent.
	activeUntil time.Time
}

// bufferedAdd is something that came in.
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

// AddWithOpts has the keys worked on.
func (q *queue) AddWithOpts(options priorityqueue.AddOpts, keys ...types.NamespacedName) {
	q.lock.Lock()
	defer q.lock.Unlock()
	q.addLocked(bufferedAdd{options, keys})
}

// addLocked is called with the lock held.
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

// Len returns how much could be worked on now and is not.
func (q *queue) Len() int {
	q.lock.Lock()
	defer q.lock.Unlock()
	if q.active == nil {
		return len(q.buffered)
	}
	return q.active.Len()
}

// waitForWork returns true when there is something to do, false when ctx ends first.
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

// activate begins a shift, which is given all that has come in.
func (q *queue) activate() *activeQueue {
	q.lock.Lock()
	defer q.lock.Unlock()
	q.active = &activeQueue{queue: q, PriorityQueue: priorityqueue.New("", func(o *priorityqueue.Opts[types.NamespacedName]) {
		// A queue with a name has metrics, and those cost a ticker each.
		o.RateLimiter = q.limiter
	})}
	for _, added := range q.buffered {
		q.active.PriorityQueue.AddWithOpts(added.AddOpts, added.keys...)
	}
	q.buffered = nil
	return q.active
}

// waitUntilIdle returns when nothing was to do for a while, or ctx ends. The shift is over then.
func (q *queue) waitUntilIdle(ctx context.Context) {
	for !q.deactivateIfIdle() {
		select {
		case <-ctx.Done():
			return
		case <-q.clock.After(idleTimeout):
		}
	}
}

// deactivateIfIdle ends the shift if nothing is left to do, nor was a moment ago. What comes in from now on is for the next one.
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

// activeQueue is a priority queue that can be shut down while workers wait for it and others work. The one of controller-runtime
// stops for ever if its workers leave at the moment when it has something for them, and with it whoever waits for the
// controller (kubernetes-sigs/controller-runtime issue 3538, mended in v0.25, which needs newer Kubernetes libraries than
// kcp's). So the workers are sent home first.
type activeQueue struct {
	priorityqueue.PriorityQueue[types.NamespacedName]
	queue *queue
	// processing counts the workers that have been given something; the queue's lock guards it.
	processing int
	// waitingWorkers counts the workers that wait, or have just been given something.
	waitingWorkers gosync.WaitGroup
}

// AddWithOpts has the keys worked on.
func (s *activeQueue) AddWithOpts(options priorityqueue.AddOpts, keys ...types.NamespacedName) {
	s.queue.AddWithOpts(options, keys...)
}

// Add has the key worked on.
func (s *activeQueue) Add(key types.NamespacedName) {
	s.queue.AddWithOpts(priorityqueue.AddOpts{}, key)
}

// AddAfter has the key worked on then.
func (s *activeQueue) AddAfter(key types.NamespacedName, after time.Duration) {
	s.queue.AddWithOpts(priorityqueue.AddOpts{After: after}, key)
}

// AddRateLimited has the key worked on in a while.
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

// acceptItem tells whether a worker is to work on what it was given. If the shift is over it is for the next one.
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

// Done is called when an item has been worked on.
func (s *activeQueue) Done(key types.NamespacedName) {
	s.PriorityQueue.Done(key)
	s.queue.lock.Lock()
	defer s.queue.lock.Unlock()
	s.processing--
}

// ShutDown gives each worker that waits something to go home with, and returns when they have gone. Those that work find
// the queue closed when they come back.
func (s *activeQueue) ShutDown() {
	s.queue.lock.Lock()
	if !s.isInactive() {
		s.queue.active = nil
	}
	s.queue.lock.Unlock()
	first := stopPriority
	for worker := range maxConcurrentReconciles {
		// No object has such a name.
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

// isInactive is called with the queue's lock held.
func (s *activeQueue) isInactive() bool { return s.queue.active != s }
