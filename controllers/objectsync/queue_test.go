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
	"maps"
	"strconv"
	gosync "sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"

	"github.com/synchub-dev/synchub/test/framework/suite"
)

// Workers go home when the queue is shut down, whatever is in it and comes in, and whether they wait or work.
func TestQueueShutsDown(t *testing.T) {
	for round := range 200 {
		queue := newQueue(clock.RealClock{}).activate()
		var adding, working gosync.WaitGroup
		adding.Go(func() {
			for i := range 1000 {
				queue.AddWithOpts(priorityqueue.AddOpts{}, types.NamespacedName{Name: strconv.Itoa(i % 100)})
			}
		})
		seen := make(chan types.NamespacedName, 1)
		for range maxConcurrentReconciles {
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
		if key := <-seen; key.Name == "" || key.Name[0] == '/' {
			t.Fatalf("a worker was given %q", key)
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

// countActivations works on a queue as a controller does, until ctx ends, and counts the shifts.
func countActivations(ctx context.Context, queue *queue, work func(types.NamespacedName)) (shifts int) {
	for queue.waitForWork(ctx) {
		shifts++
		shift := queue.activate()
		var working gosync.WaitGroup
		for range maxConcurrentReconciles {
			working.Go(func() {
				for {
					key, shutdown := shift.Get()
					if shutdown {
						return
					}
					work(key)
					shift.Done(key)
				}
			})
		}
		queue.waitUntilIdle(ctx)
		shift.ShutDown()
		working.Wait()
	}
	return shifts
}

// Whatever comes in is worked on after it came, whether the queue is at work, at rest, or just about to be either.
func TestNothingIsLostBetweenActivations(t *testing.T) {
	now := testclock.NewFakeClock(time.Unix(1000, 0))
	queue := newQueue(now)
	ctx, cancel := context.WithCancel(t.Context())
	var lock gosync.Mutex
	// due is how often each key came in, and done how often it had come in when it was worked on last.
	due, done := map[types.NamespacedName]int{}, map[types.NamespacedName]int{}
	shifts := make(chan int)
	go func() {
		shifts <- countActivations(ctx, queue, func(key types.NamespacedName) {
			lock.Lock()
			defer lock.Unlock()
			done[key] = due[key]
		})
	}()
	for round := range 2000 {
		key := types.NamespacedName{Name: strconv.Itoa(round % 7)}
		lock.Lock()
		due[key]++
		lock.Unlock()
		options := priorityqueue.AddOpts{}
		if round%5 == 0 {
			options.Priority = new(changePriority)
		}
		queue.AddWithOpts(options, key)
		// The time comes when this might end the shift.
		now.Step(idleTimeout)
		if round%20 == 0 {
			suite.WaitUntil(t, "all has been worked on", func() bool {
				lock.Lock()
				defer lock.Unlock()
				return maps.Equal(due, done)
			})
		}
		if round%40 == 0 {
			suite.WaitUntil(t, "the shift ends", func() bool {
				now.Step(idleTimeout)
				queue.lock.Lock()
				defer queue.lock.Unlock()
				return queue.active == nil && len(queue.buffered) == 0
			})
		}
	}
	cancel()
	if had := <-shifts; had < 2000/40 {
		t.Errorf("there were only %d shifts", had)
	}
}

// While something is to be tried again, however late, and while somebody works, no shift ends.
func TestQueueIsActiveAsLongAsThereIsWork(t *testing.T) {
	key := types.NamespacedName{Name: "key"}
	for name, test := range map[string]struct {
		options priorityqueue.AddOpts
		lasts   time.Duration
	}{
		"what is to be done now":       {priorityqueue.AddOpts{}, idleTimeout},
		"what is to be done later":     {priorityqueue.AddOpts{After: time.Hour}, time.Hour + idleTimeout},
		"what is tried again at times": {priorityqueue.AddOpts{RateLimited: true}, retryMaxDelay + idleTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			now := testclock.NewFakeClock(time.Unix(1000, 0))
			queue := newQueue(now)
			queue.AddWithOpts(priorityqueue.AddOpts{}, key)
			shift := queue.activate()
			defer shift.ShutDown()
			if got, shutdown := shift.Get(); got != key || shutdown {
				t.Fatalf("got %s, %t", got, shutdown)
			}
			now.Step(time.Hour)
			if queue.deactivateIfIdle() {
				t.Error("the shift ends while somebody works")
			}
			shift.Done(key)
			shift.AddWithOpts(test.options, types.NamespacedName{Name: "other"})
			now.Step(test.lasts - time.Second)
			if queue.deactivateIfIdle() {
				t.Error("the shift ends too early")
			}
			if test.options == (priorityqueue.AddOpts{}) {
				now.Step(time.Hour)
				if queue.deactivateIfIdle() {
					t.Error("the shift ends while something is to be done")
				}
				if _, shutdown := shift.Get(); shutdown {
					t.Fatal("the other one is not given out")
				}
				shift.Done(types.NamespacedName{Name: "other"})
			}
			now.Step(time.Second)
			if !queue.deactivateIfIdle() {
				t.Error("the shift does not end")
			}
		})
	}
}

// The shift ends at the moment when a worker is given something: that is for the next one.
func TestWhatIsGivenOutTooLateIsNotLost(t *testing.T) {
	now := testclock.NewFakeClock(time.Unix(1000, 0))
	queue, key := newQueue(now), types.NamespacedName{Name: "key"}
	shift := queue.activate()
	if !queue.deactivateIfIdle() {
		t.Fatal("the shift does not end")
	}
	if shift.acceptItem(key, changePriority) || shift.acceptItem(types.NamespacedName{Name: "/0"}, stopPriority) {
		t.Error("a worker works on although the shift is over")
	}
	shift.ShutDown()
	next := queue.activate()
	defer next.ShutDown()
	if left := next.Len(); left != 1 {
		t.Fatalf("%d are to be worked on", left)
	}
	if got, priority, shutdown := next.GetWithPriority(); got != key || priority != changePriority || shutdown {
		t.Errorf("got %s, %d, %t", got, priority, shutdown)
	}
}

// A controller's workers come back whenever there is something to do, and go home in between.
func TestWorkersComeBack(t *testing.T) {
	controller := newEnqueueHarness(t, upsyncMatcher(nil)).Controller
	now, key := controller.Clock.(*testclock.FakeClock), types.NamespacedName{Name: "key"}
	queue := newQueue(now)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- controller.runWorkers(ctx, queue) }()
	for range 3 {
		tried := newFirstPass()
		tried.start([]types.NamespacedName{key})
		controller.firstPass = tried
		queue.AddWithOpts(priorityqueue.AddOpts{}, key)
		suite.WaitUntil(t, "it is worked on", func() bool {
			select {
			case <-tried.done:
				return true
			default:
				return false
			}
		})
		suite.WaitUntil(t, "the workers go home", func() bool {
			now.Step(idleTimeout)
			queue.lock.Lock()
			defer queue.lock.Unlock()
			return queue.active == nil
		})
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	controller.runningTasks.Wait()
}
