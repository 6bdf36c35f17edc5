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
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"k8s.io/client-go/util/workqueue"
	testclock "k8s.io/utils/clock/testing"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"
)

func syncTargetRequest(number int) mcreconcile.Request {
	request := mcreconcile.Request{ClusterName: "abc"}
	request.Name = fmt.Sprintf("target-%d", number)
	return request
}

func newCreationLimiterWithQueue(t *testing.T) (*creationLimiter, workqueue.TypedInterface[mcreconcile.Request]) {
	queue := workqueue.NewTyped[mcreconcile.Request]()
	t.Cleanup(queue.ShutDown)
	turns := newCreationLimiter(testclock.NewFakeClock(time.Unix(1000, 0)))
	turns.setQueue(queue)
	return turns, queue
}

// queuedRequests removes and returns all requests in the queue.
func queuedRequests(queue workqueue.TypedInterface[mcreconcile.Request]) (requests []mcreconcile.Request) {
	for queue.Len() > 0 {
		request, _ := queue.Get()
		queue.Done(request)
		requests = append(requests, request)
	}
	return requests
}

func TestCreationLimiter(t *testing.T) {
	turns, queue := newCreationLimiterWithQueue(t)
	for i := range maxConcurrentCreations {
		if !turns.acquire(syncTargetRequest(i)) {
			t.Fatalf("the creation %d is refused", i)
		}
	}
	late := syncTargetRequest(maxConcurrentCreations)
	if turns.acquire(late) {
		t.Error("a creation above the limit is granted")
	}
	if !turns.acquire(syncTargetRequest(0)) {
		t.Error("a granted creation is refused")
	}
	if got := queuedRequests(queue); len(got) > 0 {
		t.Errorf("%v were enqueued at the limit", got)
	}
	turns.done(syncTargetRequest(3))
	if got := queuedRequests(queue); len(got) != 1 || got[0] != late {
		t.Errorf("%v were called", got)
	}
	if !turns.acquire(late) {
		t.Error("an enqueued creation is refused")
	}
	// A mailbox that kcp already initializes at the start of this hub counts, even above the limit.
	turns.markCreating(syncTargetRequest(100))
	turns.acquire(syncTargetRequest(101))
	turns.done(late)
	if got := queuedRequests(queue); len(got) > 0 {
		t.Errorf("%v were enqueued above the limit", got)
	}
	turns.done(syncTargetRequest(100))
	if got := queuedRequests(queue); len(got) != 1 || got[0] != syncTargetRequest(101) {
		t.Errorf("%v were called", got)
	}
}

// The initialization time is measured by the hub's own clock, from the first observation.
func TestCreationLimiterRemembersTheStart(t *testing.T) {
	turns, _ := newCreationLimiterWithQueue(t)
	clock, began := turns.clock.(*testclock.FakeClock), turns.clock.Now()
	turns.acquire(syncTargetRequest(0))
	clock.Step(time.Second)
	turns.acquire(syncTargetRequest(0))
	for number, want := range []time.Time{began, began.Add(time.Second)} {
		if since := turns.markCreating(syncTargetRequest(number)); !since.Equal(want) {
			t.Errorf("%d: since %v, want %v", number, since, want)
		}
	}
	clock.Step(time.Second)
	turns.done(syncTargetRequest(0))
	if since := turns.markCreating(syncTargetRequest(0)); !since.Equal(clock.Now()) {
		t.Errorf("it counts from before it had passed: %v", since)
	}
}

// In any order of events, every SyncTarget is enqueued in the end, and never more than the limit are creating.
func TestEveryWaitingSyncTargetIsQueued(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // repeatable
	for range 200 {
		turns, queue := newCreationLimiterWithQueue(t)
		var prepared []mcreconcile.Request
		preparing, served := map[mcreconcile.Request]bool{}, map[mcreconcile.Request]bool{}
		reconcile := func(request mcreconcile.Request) {
			switch {
			case served[request]:
				turns.done(request)
			case random.IntN(5) == 0:
				// The SyncTarget is gone and needs no mailbox.
				served[request] = true
				delete(preparing, request)
				turns.done(request)
			case turns.acquire(request):
				if !preparing[request] {
					preparing[request] = true
					prepared = append(prepared, request)
				}
			}
			if len(preparing) > maxConcurrentCreations {
				t.Fatalf("%d creations are granted", len(preparing))
			}
		}
		const all = 5 * maxConcurrentCreations
		for i := range all {
			reconcile(syncTargetRequest(i))
		}
		for len(prepared) > 0 {
			at := random.IntN(len(prepared))
			done := prepared[at]
			prepared = append(prepared[:at], prepared[at+1:]...)
			served[done] = true
			delete(preparing, done)
			turns.done(done)
			for next := queuedRequests(queue); len(next) > 0; next = queuedRequests(queue) {
				for _, request := range next {
					reconcile(request)
				}
			}
		}
		if len(served) != all {
			t.Fatalf("%d of %d were created", len(served), all)
		}
	}
}

func TestCreationTimes(t *testing.T) {
	clock := testclock.NewFakeClock(time.Unix(1000, 0))
	limiter := newCreationLimiter(clock)
	for i := range maxConcurrentCreations + 3 {
		limiter.acquire(syncTargetRequest(i))
	}
	if waiting, creating := limiter.counts(); waiting != 3 || creating != maxConcurrentCreations {
		t.Errorf("%d wait and %d are being created", waiting, creating)
	}
	clock.Step(time.Minute)
	late := syncTargetRequest(maxConcurrentCreations)
	limiter.done(syncTargetRequest(0))
	limiter.acquire(late)
	clock.Step(time.Second)
	if waited, ok := limiter.done(late); !ok || waited != time.Minute+time.Second {
		t.Errorf("the time in the queue counts too: %s, %t", waited, ok)
	}
	if waited, ok := limiter.done(late); ok {
		t.Errorf("it was counted twice: %s", waited)
	}
}
