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

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

const (
	// DefaultPatience is long enough for the requests of an ordinary reconcile on a busy machine.
	DefaultPatience   = time.Second
	minSlowRetryDelay = time.Second
	maxSlowRetryDelay = 5 * time.Minute
)

// LaneOptions are the settings of [Lanes].
type LaneOptions[K, L comparable] struct {
	Reconciler reconcile.TypedReconciler[K]
	// LaneOf returns the lane of a key: the tenant whose servers its reconcile waits for.
	LaneOf func(K) L
	// Patience is how long a worker waits for a reconcile.
	Patience time.Duration
	// Timeout bounds a reconcile; zero is no limit. It replaces the controller's ReconciliationTimeout, which
	// must be zero: otherwise the controller would end a reconcile when its worker leaves it.
	Timeout time.Duration
	// MaxSlow bounds the slow reconciles of a lane. Beyond it, keys wait in the lane.
	MaxSlow int
	// OnChange is called without locks when a lane becomes slow, and when it is no longer slow. It may be nil.
	OnChange func(L)
	Clock    clock.PassiveClock
}

// Lanes is a reconciler that frees the workers of a controller from slow reconciles. It never runs two reconciles of a key at
// once. Create it with [NewLanes], and set the controller's queue with [Lanes.Source] or [Lanes.SetQueue].
type Lanes[K, L comparable] struct {
	options LaneOptions[K, L]
	// limiter delays keys after slow reconciles that failed. The controller has forgotten their failures.
	limiter workqueue.TypedRateLimiter[K]
	// stopping ends with the reconciler, and running are the reconciles.
	stopping context.Context //nolint:containedctx // slow reconciles outlive their workers
	stop     context.CancelFunc
	running  gosync.WaitGroup

	lock     gosync.Mutex
	enqueue  func(key K, after time.Duration)
	closed   bool
	runs     map[K]*run
	lanes    map[L]*lane[K]
	patience func() (expired <-chan time.Time, stop func() bool)
}

// run is a reconcile that has not ended.
type run struct {
	startedAt time.Time
	// isSlow is true once no worker waits for the run.
	isSlow bool
	// isOutdated is true if the key was added to the queue again.
	isOutdated bool
	done       chan outcome
}

type outcome struct {
	result reconcile.Result
	err    error
}

// lane is the state of a tenant with slow reconciles. It exists until a reconcile is fast again, or no key is left.
type lane[K comparable] struct {
	since time.Time
	slow  map[K]*run
	// waiting are the keys that wait for a slot, in the order of their arrival; queued has the same keys.
	waiting []K
	queued  map[K]struct{}
}

// NewLanes returns a reconciler that has no slow lanes yet.
func NewLanes[K, L comparable](options LaneOptions[K, L]) *Lanes[K, L] {
	// A slow reconcile outlives the context of its worker. The reconciler owns this context and ends it when it ends itself.
	stopping, stop := context.WithCancel(context.Background()) //nolint:gosec // the reconciler calls stop when it ends
	return &Lanes[K, L]{
		stopping: stopping, stop: stop,
		options: options, runs: map[K]*run{}, lanes: map[L]*lane[K]{},
		limiter: workqueue.NewTypedItemExponentialFailureRateLimiter[K](minSlowRetryDelay, maxSlowRetryDelay),
		enqueue: func(K, time.Duration) {},
		patience: func() (<-chan time.Time, func() bool) {
			timer := time.NewTimer(options.Patience)
			return timer.C, timer.Stop
		},
	}
}

// LanePerKey returns a reconciler in which each key has its own lane.
func LanePerKey[K comparable](reconciler reconcile.TypedReconciler[K], timeout time.Duration, clock clock.PassiveClock) *Lanes[K, K] {
	return NewLanes(LaneOptions[K, K]{
		Reconciler: reconciler, LaneOf: func(key K) K { return key }, Patience: DefaultPatience, Timeout: timeout, MaxSlow: 1, Clock: clock,
	})
}

// Source returns a source without events. It passes the queue of the controller to the reconciler.
func (r *Lanes[K, L]) Source() source.TypedSource[K] {
	return source.TypedFunc[K](func(_ context.Context, queue workqueue.TypedRateLimitingInterface[K]) error {
		r.SetQueue(queue.AddAfter)
		return nil
	})
}

// SetQueue sets how keys are added to the queue again.
func (r *Lanes[K, L]) SetQueue(enqueue func(key K, after time.Duration)) {
	r.lock.Lock()
	defer r.lock.Unlock()
	r.enqueue = enqueue
}

// Start waits until ctx ends, and returns after the last reconcile. It makes the reconciler a runnable of a manager.
func (r *Lanes[K, L]) Start(ctx context.Context) error {
	<-ctx.Done()
	r.lock.Lock()
	r.closed = true
	r.lock.Unlock()
	r.stop()
	r.running.Wait()
	return nil
}

// NeedLeaderElection makes a manager stop the reconciler after the controllers of the leader.
func (r *Lanes[K, L]) NeedLeaderElection() bool { return false }

// Reconcile runs a reconcile, and returns its result if it ends within Patience. Otherwise the key returns to
// the queue when the reconcile has ended and requests it.
func (r *Lanes[K, L]) Reconcile(ctx context.Context, key K) (reconcile.Result, error) {
	current := r.begin(key)
	if current == nil {
		return reconcile.Result{}, nil
	}
	r.spawn(ctx, key, current)
	if current.isSlow {
		return reconcile.Result{}, nil
	}
	expired, stop := r.patience()
	defer stop()
	select {
	case ended := <-current.done:
		return ended.result, ended.err
	case <-expired:
	}
	if r.markSlow(key, current) {
		return reconcile.Result{}, nil
	}
	ended := <-current.done
	return ended.result, ended.err
}

// begin returns a new run; nil if the key must wait for another run, or for a slot of its lane.
func (r *Lanes[K, L]) begin(key K) *run {
	r.lock.Lock()
	defer r.lock.Unlock()
	if r.closed {
		return nil
	}
	if before := r.runs[key]; before != nil {
		before.isOutdated = true
		return nil
	}
	current := &run{startedAt: r.options.Clock.Now(), done: make(chan outcome, 1)}
	if found := r.lanes[r.options.LaneOf(key)]; found != nil {
		if len(found.slow) >= r.options.MaxSlow {
			found.wait(key)
			return nil
		}
		delete(found.queued, key)
		current.isSlow, found.slow[key] = true, current
	}
	r.runs[key] = current
	r.running.Add(1)
	return current
}

// spawn reconciles in a goroutine. ctx ends with the workers, and only cancels a reconcile that a worker waits for.
func (r *Lanes[K, L]) spawn(ctx context.Context, key K, current *run) {
	detached, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stopWithWorker := context.AfterFunc(ctx, func() {
		if !r.isSlow(current) {
			cancel()
		}
	})
	stopWithReconciler := context.AfterFunc(r.stopping, cancel)
	go func() {
		defer r.running.Done()
		defer cancel()
		result, err := r.reconcile(detached, key)
		stopWithWorker()
		stopWithReconciler()
		r.end(detached, key, current, outcome{result, err})
	}()
}

func (r *Lanes[K, L]) isSlow(current *run) bool {
	r.lock.Lock()
	defer r.lock.Unlock()
	return current.isSlow
}

// reconcile turns a panic into an error, as controller-runtime does in its own goroutines.
func (r *Lanes[K, L]) reconcile(ctx context.Context, key K) (_ reconcile.Result, err error) {
	defer func() {
		if caught := recover(); caught != nil {
			for _, handle := range utilruntime.PanicHandlers {
				handle(ctx, caught)
			}
			err = fmt.Errorf("panic: %v [recovered]", caught)
		}
	}()
	if r.options.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, r.options.Timeout)
		defer cancel()
	}
	return r.options.Reconciler.Reconcile(ctx, key)
}

// markSlow makes a run slow, so that its worker may leave it. It returns false if the run has ended.
func (r *Lanes[K, L]) markSlow(key K, current *run) bool {
	r.lock.Lock()
	if r.runs[key] != current {
		r.lock.Unlock()
		return false
	}
	of := r.options.LaneOf(key)
	found := r.lanes[of]
	isNew := found == nil
	if isNew {
		found = &lane[K]{since: current.startedAt, slow: map[K]*run{}, queued: map[K]struct{}{}}
		r.lanes[of] = found
	}
	current.isSlow, found.slow[key] = true, current
	r.lock.Unlock()
	if isNew {
		r.onChange(of)
	}
	return true
}

// end passes the outcome of a run to its worker, or adds the key to the queue if no worker waits for it.
func (r *Lanes[K, L]) end(ctx context.Context, key K, current *run, ended outcome) {
	r.lock.Lock()
	delete(r.runs, key)
	if ended.err == nil {
		r.limiter.Forget(key)
	}
	if !current.isSlow {
		r.lock.Unlock()
		current.done <- ended
		return
	}
	enqueue, of := r.enqueue, r.options.LaneOf(key)
	isFast := r.options.Clock.Since(current.startedAt) < r.options.Patience
	released, isOver := r.leaveLane(of, key, isFast)
	r.lock.Unlock()
	switch {
	case ended.err != nil:
		if ctx.Err() == nil && !isReported(ended.err) {
			log.FromContext(ctx).Error(ended.err, "Reconciler error")
		}
		enqueue(key, r.limiter.When(key))
	case current.isOutdated:
		enqueue(key, 0)
	case ended.result.RequeueAfter > 0:
		enqueue(key, ended.result.RequeueAfter)
	}
	for _, next := range released {
		enqueue(next, 0)
	}
	if isOver {
		r.onChange(of)
	}
}

// leaveLane removes an ended run from its lane. It returns the waiting keys that may be reconciled now, and whether the lane is no longer
// slow. It requires the lock.
func (r *Lanes[K, L]) leaveLane(of L, key K, isFast bool) (released []K, isOver bool) {
	found := r.lanes[of]
	delete(found.slow, key)
	if isOver = len(found.slow) == 0 && (isFast || len(found.queued) == 0); isOver {
		delete(r.lanes, of)
	}
	for len(found.waiting) > 0 && (isOver || len(released) == 0) {
		next := found.waiting[0]
		found.waiting = found.waiting[1:]
		if _, ok := found.queued[next]; ok {
			delete(found.queued, next)
			released = append(released, next)
		}
	}
	return released, isOver
}

// wait adds a key to the keys that wait for a slot.
func (l *lane[K]) wait(key K) {
	if _, ok := l.queued[key]; !ok {
		l.queued[key] = struct{}{}
		l.waiting = append(l.waiting, key)
	}
}

func (r *Lanes[K, L]) onChange(of L) {
	if r.options.OnChange != nil {
		r.options.OnChange(of)
	}
}

// Slow returns since when lanes have been slow.
func (r *Lanes[K, L]) Slow() map[L]time.Time {
	r.lock.Lock()
	defer r.lock.Unlock()
	all := make(map[L]time.Time, len(r.lanes))
	for of, found := range r.lanes {
		all[of] = found.since
	}
	return all
}

// SlowSince returns since when a lane has been slow; ok is false if it is not.
func (r *Lanes[K, L]) SlowSince(of L) (since time.Time, ok bool) {
	r.lock.Lock()
	defer r.lock.Unlock()
	found := r.lanes[of]
	if found == nil {
		return time.Time{}, false
	}
	return found.since, true
}
