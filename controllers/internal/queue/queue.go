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
	"context"
	"fmt"
	gosync "sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Options are the settings of a [Queue].
type Options[K comparable] struct {
	// Name is the name of the controller in logs and metrics. Controllers of one kind share it.
	Name       string
	Reconciler reconcile.TypedReconciler[K]
	// MaxConcurrentReconciles is the number of workers.
	MaxConcurrentReconciles int
	// ReconciliationTimeout bounds one reconcile; zero is no limit.
	ReconciliationTimeout time.Duration
	// A reconcile that failed is retried after MinRetryDelay. The delay doubles each time, up to MaxRetryDelay.
	MinRetryDelay, MaxRetryDelay time.Duration
	// IdleTimeout is how long the queue must have been empty before the workers stop. A key that is added with a longer delay does
	// not keep them running.
	IdleTimeout time.Duration
	// Log returns the logger for a key.
	Log func(key K) logr.Logger
	// Clock decides when the queue is idle. Delays and backoffs follow the real clock, as in controller-runtime's queue.
	Clock clock.Clock
}

// Queue is a rate-limited priority queue with workers. While it has keys, or had some a moment ago, it is
// active and its workers run. An idle queue needs only the goroutine of [Queue.Run]. The zero key is reserved.
// Create a queue with [New].
type Queue[K comparable] struct {
	options Options[K]
	limiter workqueue.TypedRateLimiter[K]
	// added signals that an idle queue got a key.
	added chan struct{}

	lock gosync.Mutex
	// active is nil while the queue is idle; buffered holds the keys that were added since.
	active   *activeQueue[K]
	buffered []bufferedAdd[K]
	// activeUntil is the time until which the last added keys keep the queue active.
	activeUntil time.Time
	// delayed holds the keys whose delay is longer than the idle timeout.
	delayed map[K]delayedAdd
}

// bufferedAdd is an addition to an idle queue.
type bufferedAdd[K comparable] struct {
	priorityqueue.AddOpts
	keys []K
}

// delayedAdd is an addition that the timer makes at the given time.
type delayedAdd struct {
	at    time.Time
	timer *time.Timer
}

// New returns an empty queue, whose workers [Queue.Run] starts.
func New[K comparable](options Options[K]) *Queue[K] {
	return &Queue[K]{
		options: options, added: make(chan struct{}, 1), delayed: map[K]delayedAdd{},
		limiter: workqueue.NewTypedItemExponentialFailureRateLimiter[K](options.MinRetryDelay, options.MaxRetryDelay),
	}
}

// Run runs the workers whenever the queue has keys. It returns after ctx has ended and the last reconcile with it.
func (q *Queue[K]) Run(ctx context.Context) error {
	defer q.stopTimers()
	for q.waitForWork(ctx) {
		if err := q.runUntilIdle(ctx); err != nil {
			return fmt.Errorf("cannot run the workers of the %s controller: %w", q.options.Name, err)
		}
	}
	return nil
}

// runUntilIdle returns when the queue has been empty for a while, or ctx ends.
func (q *Queue[K]) runUntilIdle(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	workers, err := q.newWorkers(q.activate())
	if err != nil {
		return err
	}
	var waiting gosync.WaitGroup
	defer waiting.Wait()
	waiting.Go(func() {
		defer cancel()
		q.waitUntilIdle(ctx)
	})
	return workers.Start(ctx)
}

func (q *Queue[K]) newWorkers(active *activeQueue[K]) (controller.TypedController[K], error) {
	return controller.NewTypedUnmanaged(q.options.Name, controller.TypedOptions[K]{
		// controller-runtime never frees names, and hundreds of controllers start and stop.
		SkipNameValidation:      new(true),
		MaxConcurrentReconciles: q.options.MaxConcurrentReconciles,
		ReconciliationTimeout:   q.options.ReconciliationTimeout,
		Reconciler:              withoutReported(q.options.Reconciler),
		NewQueue: func(string, workqueue.TypedRateLimiter[K]) workqueue.TypedRateLimitingInterface[K] {
			return active
		},
		LogConstructor: func(key *K) logr.Logger {
			if key == nil {
				return logr.Discard()
			}
			return q.options.Log(*key)
		},
	})
}

// Add adds keys to the queue.
func (q *Queue[K]) Add(keys ...K) { q.AddWithOpts(priorityqueue.AddOpts{}, keys...) }

// AddAfter adds keys to the queue after a delay.
func (q *Queue[K]) AddAfter(delay time.Duration, keys ...K) {
	q.AddWithOpts(priorityqueue.AddOpts{After: delay}, keys...)
}

// Forget ends the backoff of a key: its next failure counts as the first.
func (q *Queue[K]) Forget(key K) { q.limiter.Forget(key) }

// AddWithOpts adds keys to the queue.
func (q *Queue[K]) AddWithOpts(options priorityqueue.AddOpts, keys ...K) {
	q.lock.Lock()
	defer q.lock.Unlock()
	if !options.RateLimited {
		q.addLocked(options, keys...)
		return
	}
	for _, key := range keys {
		q.addLocked(priorityqueue.AddOpts{After: q.limiter.When(key), Priority: options.Priority}, key)
	}
}

// addLocked requires the lock.
func (q *Queue[K]) addLocked(options priorityqueue.AddOpts, keys ...K) {
	if options.After > q.options.IdleTimeout {
		q.addLaterLocked(options, keys)
		return
	}
	if until := q.options.Clock.Now().Add(options.After + q.options.IdleTimeout); until.After(q.activeUntil) {
		q.activeUntil = until
	}
	if q.active != nil {
		q.active.PriorityQueue.AddWithOpts(options, keys...)
		return
	}
	q.buffered = append(q.buffered, bufferedAdd[K]{options, keys})
	select {
	case q.added <- struct{}{}:
	default:
	}
}

// addLaterLocked adds keys after a long delay, during which the queue may become idle. It requires the lock.
func (q *Queue[K]) addLaterLocked(options priorityqueue.AddOpts, keys []K) {
	at := time.Now().Add(options.After)
	for _, key := range keys {
		if earlier, ok := q.delayed[key]; ok && earlier.at.Before(at) {
			continue
		}
		q.stopTimerLocked(key)
		q.delayed[key] = delayedAdd{at, time.AfterFunc(options.After, func() {
			q.AddWithOpts(priorityqueue.AddOpts{Priority: options.Priority}, key)
		})}
	}
}

// stopTimerLocked drops the delayed addition of a key. It requires the lock.
func (q *Queue[K]) stopTimerLocked(key K) {
	if found, ok := q.delayed[key]; ok {
		found.timer.Stop()
		delete(q.delayed, key)
	}
}

func (q *Queue[K]) stopTimers() {
	q.lock.Lock()
	defer q.lock.Unlock()
	for key := range q.delayed {
		q.stopTimerLocked(key)
	}
}

// Len returns the number of keys that wait for a worker.
func (q *Queue[K]) Len() int {
	q.lock.Lock()
	defer q.lock.Unlock()
	if q.active == nil {
		return len(q.buffered)
	}
	return q.active.Len()
}

// IsIdle reports whether no workers run, and none are about to start.
func (q *Queue[K]) IsIdle() bool {
	q.lock.Lock()
	defer q.lock.Unlock()
	return q.active == nil && len(q.buffered) == 0
}

// waitForWork waits until the queue has a key, and returns false if ctx ends first.
func (q *Queue[K]) waitForWork(ctx context.Context) bool {
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
func (q *Queue[K]) activate() *activeQueue[K] {
	q.lock.Lock()
	defer q.lock.Unlock()
	q.active = &activeQueue[K]{queue: q, PriorityQueue: priorityqueue.New("", func(o *priorityqueue.Opts[K]) {
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
func (q *Queue[K]) waitUntilIdle(ctx context.Context) {
	for !q.deactivateIfIdle() {
		select {
		case <-ctx.Done():
			return
		case <-q.options.Clock.After(q.options.IdleTimeout):
		}
	}
}

// deactivateIfIdle makes the queue inactive if it has been empty for a while.
func (q *Queue[K]) deactivateIfIdle() bool {
	q.lock.Lock()
	defer q.lock.Unlock()
	if q.active == nil {
		return true
	}
	if q.active.processing > 0 || q.active.Len() > 0 || q.options.Clock.Now().Before(q.activeUntil) {
		return false
	}
	q.active = nil
	return true
}
