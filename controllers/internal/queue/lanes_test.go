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
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// fixture is a reconciler whose reconciles last until the test ends them. The first letter of a key is its lane.
type fixture struct {
	*Lanes[string, byte]
	started chan string
	outcome map[string]chan outcome
	// expire makes the worker of the only fast reconcile stop waiting.
	expire   chan time.Time
	enqueued chan added
	changed  chan byte
	clock    *clocktesting.FakePassiveClock
	// logger is the worker's.
	logger logr.Logger
}

type added struct {
	key   string
	after time.Duration
}

func newFixture(_ *testing.T, keys ...string) *fixture {
	f := &fixture{
		started: make(chan string, 100), outcome: map[string]chan outcome{}, expire: make(chan time.Time),
		enqueued: make(chan added, 100), changed: make(chan byte, 100),
		clock: clocktesting.NewFakePassiveClock(time.Unix(1000, 0)), logger: logr.Discard(),
	}
	for _, key := range keys {
		f.outcome[key] = make(chan outcome, 10)
	}
	f.Lanes = NewLanes(LaneOptions[string, byte]{
		Reconciler: reconcile.TypedFunc[string](func(ctx context.Context, key string) (reconcile.Result, error) {
			f.started <- key
			select {
			case ended := <-f.outcome[key]:
				return ended.result, ended.err
			case <-ctx.Done():
				return reconcile.Result{}, ctx.Err()
			}
		}),
		LaneOf: func(key string) byte { return key[0] }, Patience: time.Second, MaxSlow: 2, OnChange: func(lane byte) { f.changed <- lane },
		Clock: f.clock,
	})
	f.patience = func() (<-chan time.Time, func() bool) { return f.expire, func() bool { return true } }
	f.SetQueue(func(key string, after time.Duration) { f.enqueued <- added{key, after} })
	return f
}

// beginSlow starts a reconcile that its worker leaves.
func (f *fixture) beginSlow(g Gomega, key string) {
	left := make(chan error, 1)
	go func() {
		_, err := f.Reconcile(log.IntoContext(context.Background(), f.logger), key)
		left <- err
	}()
	g.Eventually(f.started).Should(Receive(Equal(key)))
	select {
	case f.expire <- time.Time{}:
	case err := <-left:
		left <- err
	}
	g.Eventually(left).Should(Receive(BeNil()))
}

func TestAFastReconcileKeepsItsWorker(t *testing.T) {
	g := NewWithT(t)
	f := newFixture(t, "a1")
	f.outcome["a1"] <- outcome{reconcile.Result{RequeueAfter: time.Minute}, errors.New("refused")}
	result, err := f.Reconcile(t.Context(), "a1")
	g.Expect(result).To(Equal(reconcile.Result{RequeueAfter: time.Minute}))
	g.Expect(err).To(MatchError("refused"))
	g.Expect(f.enqueued).To(BeEmpty())
	_, slow := f.SlowSince('a')
	g.Expect(slow).To(BeFalse())
}

func TestASlowReconcileReturnsToTheQueue(t *testing.T) {
	g := NewWithT(t)
	f := newFixture(t, "a1")
	f.beginSlow(g, "a1")
	g.Expect(f.changed).To(Receive(Equal(byte('a'))))
	since, slow := f.SlowSince('a')
	g.Expect(slow).To(BeTrue())
	g.Expect(since).To(Equal(time.Unix(1000, 0)))

	// A key is never reconciled twice at once: an event in between reconciles it afterwards.
	g.Expect(f.Reconcile(t.Context(), "a1")).To(Equal(reconcile.Result{}))
	g.Consistently(f.started, "50ms").ShouldNot(Receive())
	f.outcome["a1"] <- outcome{}
	g.Eventually(f.enqueued).Should(Receive(Equal(added{key: "a1"})))
	g.Eventually(f.changed).Should(Receive(Equal(byte('a'))))

	// Failures back off, although the controller forgot them.
	for _, delay := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second} {
		f.beginSlow(g, "a1")
		f.outcome["a1"] <- outcome{err: errors.New("refused")}
		g.Eventually(f.enqueued).Should(Receive(Equal(added{"a1", delay})))
	}
	f.beginSlow(g, "a1")
	f.outcome["a1"] <- outcome{result: reconcile.Result{RequeueAfter: time.Minute}}
	g.Eventually(f.enqueued).Should(Receive(Equal(added{"a1", time.Minute})))
	f.beginSlow(g, "a1")
	f.outcome["a1"] <- outcome{err: errors.New("refused")}
	g.Eventually(f.enqueued).Should(Receive(Equal(added{"a1", time.Second})))
}

func TestASlowLaneHasFewSlots(t *testing.T) {
	g := NewWithT(t)
	f := newFixture(t, "a1", "a2", "a3", "a4", "b1")
	f.beginSlow(g, "a1")
	f.beginSlow(g, "a2")
	for _, key := range []string{"a3", "a4", "a3"} {
		g.Expect(f.Reconcile(t.Context(), key)).To(Equal(reconcile.Result{}))
	}
	g.Expect(f.started).To(BeEmpty(), "the lane has no free slot")

	f.outcome["b1"] <- outcome{}
	g.Expect(f.Reconcile(t.Context(), "b1")).To(Equal(reconcile.Result{}))
	g.Expect(f.started).To(Receive(Equal("b1")), "another lane continues")

	f.outcome["a1"] <- outcome{}
	g.Eventually(f.enqueued).Should(Receive(Equal(added{key: "a3"})))
	f.beginSlow(g, "a3")
	g.Consistently(f.enqueued, "50ms").ShouldNot(Receive(), "one slot for one key")
	f.outcome["a2"] <- outcome{}
	g.Eventually(f.enqueued).Should(Receive(Equal(added{key: "a4"})))
	f.outcome["a3"] <- outcome{}
	g.Eventually(f.SlowSinceOK('a')).Should(BeFalse())
	g.Expect(f.enqueued).To(BeEmpty())
}

// SlowSinceOK returns whether a lane is slow, for Eventually.
func (f *fixture) SlowSinceOK(lane byte) func() bool {
	return func() bool {
		_, slow := f.SlowSince(lane)
		return slow
	}
}

func TestTheEndOfASlowLaneReleasesAllKeys(t *testing.T) {
	g := NewWithT(t)
	f := newFixture(t, "a1", "a2", "a3", "a4", "a5")
	f.options.MaxSlow = 1
	f.beginSlow(g, "a1")
	for _, key := range []string{"a2", "a3", "a4", "a5"} {
		g.Expect(f.Reconcile(t.Context(), key)).To(Equal(reconcile.Result{}))
	}
	f.outcome["a1"] <- outcome{}
	for _, key := range []string{"a2", "a3", "a4", "a5"} {
		g.Eventually(f.enqueued).Should(Receive(Equal(added{key: key})))
	}
}

// While reconciles are slow, the end of one starts one other, even if it was the last one: the workers must not wait for all keys
// again.
func TestASlowLaneStaysSlowUntilAReconcileIsFast(t *testing.T) {
	g := NewWithT(t)
	f := newFixture(t, "a1", "a2", "a3", "a4")
	f.options.MaxSlow = 1
	f.beginSlow(g, "a1")
	for _, key := range []string{"a2", "a3", "a4"} {
		g.Expect(f.Reconcile(t.Context(), key)).To(Equal(reconcile.Result{}))
	}
	f.clock.SetTime(f.clock.Now().Add(time.Minute))
	f.outcome["a1"] <- outcome{}
	g.Eventually(f.enqueued).Should(Receive(Equal(added{key: "a2"})))
	g.Consistently(f.enqueued, "50ms").ShouldNot(Receive())
	g.Expect(f.Reconcile(t.Context(), "a2")).To(Equal(reconcile.Result{}), "without waiting")
	since, slow := f.SlowSince('a')
	g.Expect(slow).To(BeTrue())
	g.Expect(since).To(Equal(time.Unix(1000, 0)))
	f.outcome["a2"] <- outcome{}
	for _, key := range []string{"a3", "a4"} {
		g.Eventually(f.enqueued).Should(Receive(Equal(added{key: key})))
	}
	g.Eventually(f.SlowSinceOK('a')).Should(BeFalse())
}

func TestAPanicIsAnError(t *testing.T) {
	g := NewWithT(t)
	r := LanePerKey(reconcile.TypedFunc[string](func(context.Context, string) (reconcile.Result, error) { panic("oops") }), 0, clocktesting.NewFakePassiveClock(time.Now()))
	_, err := r.Reconcile(t.Context(), "a")
	g.Expect(err).To(MatchError(ContainSubstring("oops")))
}

func TestSlowReconcilesEndWithTheReconciler(t *testing.T) {
	g := NewWithT(t)
	f := newFixture(t, "a1", "a2")
	f.beginSlow(g, "a1")
	ctx, cancel := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() { stopped <- f.Start(ctx) }()
	g.Consistently(stopped, "50ms").ShouldNot(Receive())
	cancel()
	g.Eventually(stopped).Should(Receive(BeNil()))
	g.Expect(f.Reconcile(t.Context(), "a2")).To(Equal(reconcile.Result{}))
	g.Expect(f.started).To(BeEmpty())
}

func TestTheEndOfTheWorkersCancelsOnlyFastReconciles(t *testing.T) {
	g := NewWithT(t)
	f := newFixture(t, "a1", "a2")
	ctx, cancel := context.WithCancel(t.Context())
	f.outcome["a1"] = make(chan outcome)
	go func() { _, _ = f.Reconcile(ctx, "a1") }()
	g.Eventually(f.started).Should(Receive(Equal("a1")))
	f.expire <- time.Time{}
	g.Eventually(f.SlowSinceOK('a')).Should(BeTrue())
	f.options.LaneOf = func(key string) byte { return key[1] }
	cancel()
	g.Consistently(f.enqueued, "50ms").ShouldNot(Receive(), "the slow reconcile continues")
	_, err := f.Reconcile(ctx, "a2")
	g.Expect(err).To(MatchError(context.Canceled))
}
