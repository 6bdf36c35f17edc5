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

package sync

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

// restAfter is how long nothing may have been to do before a controller's workers are sent home.
const restAfter = time.Minute

// goHome is the priority of what sends a worker home.
const goHome = math.MaxInt

// queue is what a controller has to do. While there is something, or was a moment ago, it is the priority queue of a
// [shift]; else it is at rest, and costs no goroutine. A shift has nine, of which a fleet that is quiet would have thousands.
type queue struct {
	clock   clock.Clock
	limiter workqueue.TypedRateLimiter[types.NamespacedName]
	// woken tells that something has come in at rest.
	woken chan struct{}

	lock gosync.Mutex
	// shift is nil at rest, and resting what has come in since.
	shift   *shift
	resting []task
	// busyUntil is when nothing that has come in can be left to do, or be quite recent.
	busyUntil time.Time
}

// task is something that came in.
type task struct {
	priorityqueue.AddOpts
	keys []types.NamespacedName
}

func newQueue(clock clock.Clock) *queue {
	return &queue{
		clock: clock, woken: make(chan struct{}, 1),
		limiter: workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](firstRetry, lastRetry),
	}
}

// AddWithOpts has the keys worked on.
func (q *queue) AddWithOpts(options priorityqueue.AddOpts, keys ...types.NamespacedName) {
	q.lock.Lock()
	defer q.lock.Unlock()
	q.add(task{options, keys})
}

// add is called with the lock held.
func (q *queue) add(added task) {
	delay := added.After
	if added.RateLimited {
		delay = lastRetry
	}
	if until := q.clock.Now().Add(delay + restAfter); until.After(q.busyUntil) {
		q.busyUntil = until
	}
	if q.shift != nil {
		q.shift.PriorityQueue.AddWithOpts(added.AddOpts, added.keys...)
		return
	}
	q.resting = append(q.resting, added)
	select {
	case q.woken <- struct{}{}:
	default:
	}
}

// Len returns how much could be worked on now and is not.
func (q *queue) Len() int {
	q.lock.Lock()
	defer q.lock.Unlock()
	if q.shift == nil {
		return len(q.resting)
	}
	return q.shift.Len()
}

// awaitWork returns true when there is something to do, false when ctx ends first.
func (q *queue) awaitWork(ctx context.Context) bool {
	for q.Len() == 0 {
		select {
		case <-ctx.Done():
			return false
		case <-q.woken:
		}
	}
	return ctx.Err() == nil
}

// open begins a shift, which is given all that has come in.
func (q *queue) open() *shift {
	q.lock.Lock()
	defer q.lock.Unlock()
	q.shift = &shift{queue: q, PriorityQueue: priorityqueue.New("", func(o *priorityqueue.Opts[types.NamespacedName]) {
		// A queue with a name has metrics, and those cost a ticker each.
		o.RateLimiter = q.limiter
	})}
	for _, added := range q.resting {
		q.shift.PriorityQueue.AddWithOpts(added.AddOpts, added.keys...)
	}
	q.resting = nil
	return q.shift
}

// awaitRest returns when nothing was to do for a while, or ctx ends. The shift is over then.
func (q *queue) awaitRest(ctx context.Context) {
	for !q.rest() {
		select {
		case <-ctx.Done():
			return
		case <-q.clock.After(restAfter):
		}
	}
}

// rest ends the shift if nothing is left to do, nor was a moment ago. What comes in from now on is for the next one.
func (q *queue) rest() bool {
	q.lock.Lock()
	defer q.lock.Unlock()
	if q.shift == nil {
		return true
	}
	if q.shift.atWork > 0 || q.shift.Len() > 0 || q.clock.Now().Before(q.busyUntil) {
		return false
	}
	q.shift = nil
	return true
}

// shift is a priority queue that can be shut down while workers wait for it and others work. The one of controller-runtime
// stops for ever if its workers leave at the moment when it has something for them, and with it whoever waits for the
// controller (kubernetes-sigs/controller-runtime issue 3538, mended in v0.25, which needs newer Kubernetes libraries than
// kcp's). So the workers are sent home first.
type shift struct {
	priorityqueue.PriorityQueue[types.NamespacedName]
	queue *queue
	// atWork counts the workers that have been given something; the queue's lock guards it.
	atWork int
	// waiting counts the workers that wait, or have just been given something.
	waiting gosync.WaitGroup
}

// AddWithOpts has the keys worked on.
func (s *shift) AddWithOpts(options priorityqueue.AddOpts, keys ...types.NamespacedName) {
	s.queue.AddWithOpts(options, keys...)
}

// Add has the key worked on.
func (s *shift) Add(key types.NamespacedName) { s.queue.AddWithOpts(priorityqueue.AddOpts{}, key) }

// AddAfter has the key worked on then.
func (s *shift) AddAfter(key types.NamespacedName, after time.Duration) {
	s.queue.AddWithOpts(priorityqueue.AddOpts{After: after}, key)
}

// AddRateLimited has the key worked on in a while.
func (s *shift) AddRateLimited(key types.NamespacedName) {
	s.queue.AddWithOpts(priorityqueue.AddOpts{RateLimited: true}, key)
}

// GetWithPriority waits for the next item; shutdown is true if there will be none.
func (s *shift) GetWithPriority() (key types.NamespacedName, priority int, shutdown bool) {
	if !s.enter() {
		return types.NamespacedName{}, 0, true
	}
	defer s.waiting.Done()
	key, priority, shutdown = s.PriorityQueue.GetWithPriority()
	return key, priority, shutdown || !s.accept(key, priority)
}

// accept tells whether a worker is to work on what it was given. If the shift is over it is for the next one.
func (s *shift) accept(key types.NamespacedName, priority int) bool {
	s.queue.lock.Lock()
	defer s.queue.lock.Unlock()
	if !s.isOver() {
		s.atWork++
		return true
	}
	if priority < goHome {
		s.queue.add(task{priorityqueue.AddOpts{Priority: &priority}, []types.NamespacedName{key}})
	}
	return false
}

// Get waits for the next item; shutdown is true if there will be none.
func (s *shift) Get() (key types.NamespacedName, shutdown bool) {
	key, _, shutdown = s.GetWithPriority()
	return key, shutdown
}

// Done is called when an item has been worked on.
func (s *shift) Done(key types.NamespacedName) {
	s.PriorityQueue.Done(key)
	s.queue.lock.Lock()
	defer s.queue.lock.Unlock()
	s.atWork--
}

// ShutDown gives each worker that waits something to go home with, and returns when they have gone. Those that work find
// the queue closed when they come back.
func (s *shift) ShutDown() {
	s.queue.lock.Lock()
	if !s.isOver() {
		s.queue.shift = nil
	}
	s.queue.lock.Unlock()
	first := goHome
	for worker := range workers {
		// No object has such a name.
		s.PriorityQueue.AddWithOpts(priorityqueue.AddOpts{Priority: &first}, types.NamespacedName{Name: "/" + strconv.Itoa(worker)})
	}
	s.waiting.Wait()
	s.PriorityQueue.ShutDown()
}

func (s *shift) enter() bool {
	s.queue.lock.Lock()
	defer s.queue.lock.Unlock()
	if s.isOver() {
		return false
	}
	s.waiting.Add(1)
	return true
}

// isOver is called with the queue's lock held.
func (s *shift) isOver() bool { return s.queue.shift != s }
