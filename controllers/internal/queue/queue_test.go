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
	"errors"
	"maps"
	"strconv"
	gosync "sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const (
	workers       = 4
	minRetryDelay = 100 * time.Millisecond
	maxRetryDelay = 5 * time.Minute
	idleTimeout   = time.Minute
	highPriority  = 100
)

func newTestQueue(clock clock.Clock, reconciler func(context.Context, string) (reconcile.Result, error)) *Queue[string] {
	return New(Options[string]{
		Name: "test", Reconciler: reconcile.TypedFunc[string](reconciler), MaxConcurrentReconciles: workers,
		MinRetryDelay: minRetryDelay, MaxRetryDelay: maxRetryDelay, IdleTimeout: idleTimeout, Log: func(string) logr.Logger { return logr.Discard() }, Clock: clock,
	})
}

func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, 3*time.Minute, true, func(context.Context) (bool, error) { return condition(), nil })
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// Workers stop when the queue is shut down, for any keys in the queue, and whether they wait or work.
func TestQueueShutsDown(t *testing.T) {
	for round := range 200 {
		queue := newTestQueue(clock.RealClock{}, nil).activate()
		var adding, working gosync.WaitGroup
		adding.Go(func() {
			for i := range 1000 {
				queue.AddWithOpts(priorityqueue.AddOpts{}, "key-"+strconv.Itoa(i%100))
			}
		})
		seen := make(chan string, 1)
		for range workers {
			working.Go(func() {
				for {
					key, shutdown := queue.Get()
					if shutdown {
						return
					}
					select {
					case seen <- key:
					default:
					}
					queue.AddRateLimited(key)
					queue.Done(key)
				}
			})
		}
		if key := <-seen; key == "" {
			t.Fatal("a worker was given the zero key")
		}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			queue.ShutDown()
			working.Wait()
		}()
		select {
		case <-ended:
		case <-time.After(time.Minute):
			t.Fatalf("round %d: the queue, or a worker, did not end", round)
		}
		adding.Wait()
	}
}

// countActivations works on a queue as a controller does, until ctx ends, and counts the activations.
func countActivations(ctx context.Context, queue *Queue[string], work func(string)) (activations int) {
	for queue.waitForWork(ctx) {
		activations++
		active := queue.activate()
		var working gosync.WaitGroup
		for range workers {
			working.Go(func() {
				for {
					key, shutdown := active.Get()
					if shutdown {
						return
					}
					work(key)
					active.Done(key)
				}
			})
		}
		queue.waitUntilIdle(ctx)
		active.ShutDown()
		working.Wait()
	}
	return activations
}

// A key is processed after it was added, whether the queue is active, idle, or changing between the two.
func TestNoKeyIsLostBetweenActivations(t *testing.T) {
	now := testclock.NewFakeClock(time.Unix(1000, 0))
	queue := newTestQueue(now, nil)
	ctx, cancel := context.WithCancel(t.Context())
	var lock gosync.Mutex
	// due is how often each key was added, and done how often it had been added when it was processed last.
	due, done := map[string]int{}, map[string]int{}
	activations := make(chan int)
	go func() {
		activations <- countActivations(ctx, queue, func(key string) {
			lock.Lock()
			defer lock.Unlock()
			done[key] = due[key]
		})
	}()
	for round := range 2000 {
		key := "key-" + strconv.Itoa(round%7)
		lock.Lock()
		due[key]++
		lock.Unlock()
		options := priorityqueue.AddOpts{}
		if round%5 == 0 {
			options.Priority = new(highPriority)
		}
		queue.AddWithOpts(options, key)
		// The queue may become idle now.
		now.Step(idleTimeout)
		if round%20 == 0 {
			eventually(t, "all keys are processed", func() bool {
				lock.Lock()
				defer lock.Unlock()
				return maps.Equal(due, done)
			})
		}
		if round%40 == 0 {
			eventually(t, "the queue becomes idle", func() bool {
				now.Step(idleTimeout)
				return queue.IsIdle()
			})
		}
	}
	cancel()
	if had := <-activations; had < 2000/40 {
		t.Errorf("there were only %d activations", had)
	}
}

// The queue stays active while a key waits, even for a short delay, and while a worker processes one.
func TestQueueIsActiveWhileItHasWork(t *testing.T) {
	for name, test := range map[string]struct {
		options priorityqueue.AddOpts
		lasts   time.Duration
	}{
		"a key without a delay":  {priorityqueue.AddOpts{}, idleTimeout},
		"a key with a delay":     {priorityqueue.AddOpts{After: time.Second}, time.Second + idleTimeout},
		"a key with a backoff":   {priorityqueue.AddOpts{RateLimited: true}, minRetryDelay + idleTimeout},
		"a key with a long wait": {priorityqueue.AddOpts{After: time.Hour}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			now := testclock.NewFakeClock(time.Unix(1000, 0))
			queue := newTestQueue(now, nil)
			defer queue.stopTimers()
			queue.Add("key")
			active := queue.activate()
			defer active.ShutDown()
			if got, shutdown := active.Get(); got != "key" || shutdown {
				t.Fatalf("got %s, %t", got, shutdown)
			}
			now.Step(time.Hour)
			if queue.deactivateIfIdle() {
				t.Error("the queue becomes idle while a worker processes a key")
			}
			active.Done("key")
			active.AddWithOpts(test.options, "other")
			if test.lasts > 0 {
				now.Step(test.lasts - time.Millisecond)
				if queue.deactivateIfIdle() {
					t.Error("the queue becomes idle too early")
				}
				now.Step(time.Millisecond)
			}
			if test.options == (priorityqueue.AddOpts{}) {
				now.Step(time.Hour)
				if queue.deactivateIfIdle() {
					t.Error("the queue becomes idle while a key waits")
				}
				if _, shutdown := active.Get(); shutdown {
					t.Fatal("the other key is not handed out")
				}
				active.Done("other")
			}
			if !queue.deactivateIfIdle() {
				t.Error("the queue does not become idle")
			}
		})
	}
}

// A key that is handed out at the moment when the queue becomes idle is processed by the next workers.
func TestKeysHandedOutTooLateAreKept(t *testing.T) {
	queue := newTestQueue(testclock.NewFakeClock(time.Unix(1000, 0)), nil)
	active := queue.activate()
	if !queue.deactivateIfIdle() {
		t.Fatal("the queue does not become idle")
	}
	if active.acceptItem("key", highPriority) || active.acceptItem("", stopPriority) {
		t.Error("a worker continues although the queue is idle")
	}
	active.ShutDown()
	next := queue.activate()
	defer next.ShutDown()
	if left := next.Len(); left != 1 {
		t.Fatalf("%d keys wait", left)
	}
	if got, priority, shutdown := next.GetWithPriority(); got != "key" || priority != highPriority || shutdown {
		t.Errorf("got %s, %d, %t", got, priority, shutdown)
	}
}

// The workers run whenever there is work, and stop in between.
func TestWorkersRestart(t *testing.T) {
	now := testclock.NewFakeClock(time.Unix(1000, 0))
	processed := make(chan string, 1)
	queue := newTestQueue(now, func(_ context.Context, key string) (reconcile.Result, error) {
		processed <- key
		return reconcile.Result{}, nil
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- queue.Run(ctx) }()
	for range 3 {
		queue.Add("key")
		<-processed
		eventually(t, "the workers stop", func() bool {
			now.Step(idleTimeout)
			return queue.IsIdle()
		})
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// A key is reconciled when the reconciler requests it, or earlier if the key is added. A queue with only long
// delays has no workers.
func TestLongDelaysNeedNoWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var times []time.Duration
		queue := newTestQueue(clock.RealClock{}, func(context.Context, string) (reconcile.Result, error) {
			times = append(times, time.Since(start))
			return reconcile.Result{RequeueAfter: time.Hour}, nil
		})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- queue.Run(ctx) }()
		queue.AddAfter(2*time.Hour, "key")
		queue.AddAfter(time.Hour, "key")
		queue.AddAfter(3*time.Hour, "key")
		time.Sleep(90 * time.Minute)
		queue.Add("key")
		time.Sleep(3 * time.Minute)
		if !queue.IsIdle() {
			t.Error("the workers run although the next key is due in an hour")
		}
		time.Sleep(time.Hour)
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if len(queue.delayed) > 0 {
			t.Error("a timer runs although the queue has ended")
		}
		want := []time.Duration{time.Hour, 90 * time.Minute, 150 * time.Minute}
		if len(times) != len(want) {
			t.Fatalf("want %v, got %v", want, times)
		}
		for i := range want {
			if times[i].Round(time.Second) != want[i] {
				t.Errorf("want %v, got %v", want, times)
			}
		}
	})
}

// The backoff of a failing key has bounds, and ends with a success or when it is forgotten.
func TestBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var times []time.Time
		queue := newTestQueue(clock.RealClock{}, func(context.Context, string) (reconcile.Result, error) {
			times = append(times, time.Now())
			return reconcile.Result{}, errors.New("no")
		})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- queue.Run(ctx) }()
		queue.Add("key")
		time.Sleep(time.Hour)
		synctest.Wait()
		attempts := len(times)
		if first, last := times[1].Sub(times[0]), times[attempts-1].Sub(times[attempts-2]); first.Round(minRetryDelay) != minRetryDelay || last.Round(minRetryDelay) != maxRetryDelay {
			t.Errorf("the first retry came after %v, the last after %v", first, last)
		}
		queue.Forget("key")
		queue.Add("key")
		time.Sleep(time.Second)
		synctest.Wait()
		if again := len(times) - attempts; again < 3 {
			t.Errorf("a key whose backoff was reset was tried %d times in a second", again)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
