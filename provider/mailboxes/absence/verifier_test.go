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

package absence

import (
	"context"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/kcp-dev/logicalcluster/v3"
	. "github.com/onsi/gomega"
	clocktesting "k8s.io/utils/clock/testing"
)

// setVerified delivers the result that the candidates are absent.
func setVerified(v *Verifier, verified ...Candidate) {
	v.applyResult(here, v.stateLocked(here).pending, passResult{verified: verified})
}

func TestVerifiedAbsences(t *testing.T) {
	g := NewWithT(t)
	cache := &fakeCache{}
	v, _ := newVerifier(cache)
	state := v.stateLocked(here)
	a, b, c := missingObject(configMaps, "a"), missingObject(configMaps, "b"), missingObject(configMaps, "c")
	for _, candidate := range []Candidate{a, b, c} {
		state.addPending(candidate, v.clock.Now())
	}
	g.Expect(v.TakeVerified(here, a)).To(BeFalse(), "nothing is verified yet")

	// b became visible again during the pass; a and c have been decided.
	requested := v.pendingCandidates(t.Context(), here)
	v.Clear(here, b)
	v.applyResult(here, requested, passResult{verified: []Candidate{a, b}, cleared: []Candidate{c}})
	g.Expect(cache.takeDecided()).To(ConsistOf(a, c))
	g.Expect(state.pending).To(BeEmpty())
	g.Expect(v.TakeVerified(here, b)).To(BeFalse())
	g.Expect(v.TakeVerified(here, c)).To(BeFalse())
	g.Expect(v.TakeVerified(here, Candidate{Resource: a.Resource, Key: a.Key})).To(BeFalse(), "that is another candidate")
	g.Expect(v.TakeVerified(there, a)).To(BeFalse())
	g.Expect(v.HasVerified(here, a)).To(BeTrue())
	g.Expect(v.TakeVerified(here, a)).To(BeTrue())
	g.Expect(v.HasVerified(here, a)).To(BeFalse())
	g.Expect(v.TakeVerified(here, a)).To(BeFalse(), "a verification counts once")

	// A verification that was not taken becomes invalid when the object comes back.
	state.addPending(a, v.clock.Now())
	setVerified(v, a)
	v.Clear(here, a)
	g.Expect(v.TakeVerified(here, a)).To(BeFalse())
	v.Clear("nowhere", a)
	v.RequireRelist("nowhere", configMaps)
	v.ForgetMailbox("nowhere")
	g.Expect(v.states).NotTo(HaveKey("nowhere"))

	// An undecided candidate stays pending, and the cache is not notified.
	cache.takeDecided()
	state.addPending(a, v.clock.Now())
	setVerified(v, b)
	g.Expect(cache.takeDecided()).To(BeEmpty())
	g.Expect(state.pending).To(And(HaveLen(1), HaveKey(a)))
}

// A pass proves nothing about an object that came back and vanished again after the pass began: it may be hidden the second time.
func TestAPassDoesNotVerifyLaterRequests(t *testing.T) {
	g := NewWithT(t)
	v, _ := newVerifier(&fakeCache{})
	a := missingObject(configMaps, "a")
	v.stateLocked(here).addPending(a, v.clock.Now())
	requested := v.pendingCandidates(t.Context(), here)
	v.Clear(here, a)
	v.stateLocked(here).addPending(a, v.clock.Now())
	v.applyResult(here, requested, passResult{verified: []Candidate{a}})
	g.Expect(v.TakeVerified(here, a)).To(BeFalse())

	// The next pass verifies it.
	v.applyResult(here, v.pendingCandidates(t.Context(), here), passResult{verified: []Candidate{a}})
	g.Expect(v.TakeVerified(here, a)).To(BeTrue())
}

// Pending returns the time of the oldest request of all mailboxes, until its candidate is decided.
func TestPending(t *testing.T) {
	g := NewWithT(t)
	v, clock := newVerifier(&fakeCache{})
	count, since := v.Pending()
	g.Expect(count).To(BeZero())
	g.Expect(since).To(BeZero())
	began := clock.Now()
	a, b := missingObject(configMaps, "a"), missingObject(configMaps, "b")
	v.stateLocked(here).addPending(a, clock.Now())
	clock.Step(time.Minute)
	v.stateLocked(there).addPending(b, clock.Now())
	v.stateLocked(here).addPending(a, clock.Now())
	count, since = v.Pending()
	g.Expect(count).To(Equal(2))
	g.Expect(since).To(Equal(began), "a repeated candidate waits since the first time")
	setVerified(v, a)
	count, since = v.Pending()
	g.Expect(count).To(Equal(1))
	g.Expect(since).To(Equal(began.Add(time.Minute)))
}

func TestObserveBinding(t *testing.T) {
	g := NewWithT(t)
	v, now := newVerifier(&fakeCache{})
	begun := now.Now()
	v.ObserveBinding(here, "1")
	g.Expect(v.bindingUnchangedSince(here)).To(Equal(begun))
	g.Expect(v.states[here].wake).To(Receive(), "a waiting run makes its next pass at once")

	now.Step(DefaultDelays.BindingSettle)
	v.ObserveBinding(here, "1")
	g.Expect(v.bindingUnchangedSince(here)).To(Equal(begun), "the same binding is as settled as before")
	g.Expect(v.states[here].wake).NotTo(Receive())
	v.ObserveBinding(here, "2")
	g.Expect(v.bindingUnchangedSince(here)).To(Equal(now.Now()))
	g.Expect(v.states[here].wake).To(Receive())
}

func TestVerifiedCachesHoldForOneBinding(t *testing.T) {
	g := NewWithT(t)
	v, _ := newVerifier(&fakeCache{})
	g.Expect(v.isCacheVerified(here, configMaps, "1")).To(BeFalse())
	v.stateLocked(here).verifiedCaches[configMaps] = "1"
	v.stateLocked(here).verifiedCaches[secrets] = "1"
	g.Expect(v.isCacheVerified(here, configMaps, "1")).To(BeTrue())
	g.Expect(v.isCacheVerified(here, configMaps, "2")).To(BeFalse())
	g.Expect(v.isCacheVerified(there, configMaps, "1")).To(BeFalse())

	v.RequireRelist(here, configMaps)
	g.Expect(v.isCacheVerified(here, configMaps, "1")).To(BeFalse())
	g.Expect(v.isCacheVerified(here, secrets, "1")).To(BeTrue())
}

// No state is left of a mailbox that is unbound, even if a pass is running.
func TestForgetMailbox(t *testing.T) {
	g := NewWithT(t)
	for _, running := range []bool{false, true} {
		v, _ := newVerifier(&fakeCache{})
		for _, mailbox := range []logicalcluster.Name{here, there} {
			state := v.stateLocked(mailbox)
			state.running = running
			state.verified[missingObject(configMaps, "a")], state.verifiedCaches[configMaps] = struct{}{}, "1"
		}
		v.ForgetMailbox(here)
		g.Expect(v.TakeVerified(here, missingObject(configMaps, "a"))).To(BeFalse())
		g.Expect(v.isCacheVerified(here, configMaps, "1")).To(BeFalse())
		g.Expect(v.TakeVerified(there, missingObject(configMaps, "a"))).To(BeTrue())
		g.Expect(v.isCacheVerified(there, configMaps, "1")).To(BeTrue())
	}
}

// A rebound mailbox is reported once, and forgotten with the binding.
func TestMarkRebound(t *testing.T) {
	g := NewWithT(t)
	v, _ := newVerifier(&fakeCache{})
	for _, running := range []bool{false, true} {
		g.Expect(v.WasRebound(here)).To(BeFalse())
		g.Expect(v.markRebound(here)).To(BeTrue())
		g.Expect(v.markRebound(here)).To(BeFalse())
		g.Expect(v.WasRebound(here)).To(BeTrue())
		v.stateLocked(here).running = running
		v.ForgetMailbox(here)
	}
	g.Expect(v.WasRebound(here)).To(BeFalse())
}

// Many candidates wait until they are verified twice, with the delay in between and nothing else changed.
func TestMassDeletionIsVerifiedTwice(t *testing.T) {
	massDeletionDelay := DefaultDelays.MassDeletion
	longest := 2*massDeletionDelay + passTimeout
	type step struct {
		after   time.Duration
		binding string
		over    bool
	}
	for name, steps := range map[string][]step{
		"confirmed after the delay":       {{0, "1", false}, {massDeletionDelay - 1, "1", false}, {1, "1", true}},
		"the next many begin again":       {{0, "1", false}, {massDeletionDelay, "1", true}, {massDeletionDelay, "1", false}, {massDeletionDelay, "1", true}},
		"another binding begins again":    {{0, "1", false}, {massDeletionDelay - 1, "2", false}, {1, "2", false}, {massDeletionDelay - 1, "2", true}},
		"one that came back begins again": {{0, "1", false}, {1, "2", false}, {massDeletionDelay, "1", false}, {massDeletionDelay, "1", true}},
		"a late one is in time":           {{0, "1", false}, {longest, "1", true}},
		"an old observation is stale":     {{0, "1", false}, {longest + 1, "1", false}, {massDeletionDelay, "1", true}},
	} {
		t.Run(name, func(t *testing.T) {
			v, now := newVerifier(&fakeCache{})
			for number, step := range steps {
				now.Step(step.after)
				if got := v.isMassConfirmed(here, step.binding); got != step.over {
					t.Fatalf("step %d: want %t, got %t", number, step.over, got)
				}
				// Each mailbox has its own confirmation.
				if number == 0 && v.isMassConfirmed(there, step.binding) {
					t.Fatal("another mailbox is confirmed")
				}
			}
		})
	}
}

func TestPassesEndWithTheirContext(t *testing.T) {
	g := NewWithT(t)
	v, now := newVerifier(&fakeCache{})
	ctx, cancel := context.WithCancel(t.Context())
	candidate := missingObject(configMaps, "a")
	running := func() bool {
		v.lock.Lock()
		defer v.lock.Unlock()
		state, ok := v.states[here]
		return ok && state.running
	}

	// No endpoint shows the mailbox: pass after pass verifies nothing.
	v.Verify(ctx, here, candidate)
	v.Verify(ctx, here, candidate)
	g.Expect(running()).To(BeTrue())
	for range 10 {
		g.Eventually(now.HasWaiters).WithTimeout(time.Minute).Should(BeTrue())
		now.Step(retryInterval)
		g.Expect(v.TakeVerified(here, candidate)).To(BeFalse())
	}
	g.Expect(running()).To(BeTrue())
	cancel()
	v.Wait()
	g.Expect(running()).To(BeFalse())
	v.Verify(ctx, here, candidate)
	g.Expect(running()).To(BeFalse(), "the hub ends")
}

// Before the hub has started, a candidate is only recorded. The first candidate afterwards starts the pass for both.
func TestVerifyBeforeStart(t *testing.T) {
	g := NewWithT(t)
	v, _ := newVerifier(&fakeCache{})
	early, late := missingObject(configMaps, "early"), missingObject(configMaps, "late")
	var notStarted context.Context
	v.Verify(notStarted, here, early)
	g.Expect(v.TakeVerified(here, early)).To(BeFalse())
	g.Expect(v.states[here].running).To(BeFalse())

	ctx, cancel := context.WithCancel(t.Context())
	v.Verify(ctx, here, late)
	g.Expect(v.pendingCandidates(ctx, here)).To(And(HaveLen(2), HaveKey(early), HaveKey(late)))
	cancel()
	v.Wait()
}

// A mailbox that is unbound has no candidates any more, even if a pass is running.
func TestForgetEndsThePasses(t *testing.T) {
	g := NewWithT(t)
	cache := &fakeCache{}
	v, now := newVerifier(cache)
	candidate := missingObject(configMaps, "a")
	v.ObserveBinding(here, "1")
	v.Verify(t.Context(), here, candidate)
	v.ForgetMailbox(here)
	ended := make(chan struct{})
	go func() {
		v.Wait()
		close(ended)
	}()
	g.Eventually(func() <-chan struct{} {
		now.Step(retryInterval)
		return ended
	}).WithTimeout(time.Minute).Should(BeClosed())
	setVerified(v, candidate)
	g.Expect(v.TakeVerified(here, candidate)).To(BeFalse())
	g.Expect(cache.takeDecided()).To(BeEmpty())
}

// No candidate of a resource that is not watched any more is pending or verified, and its cache is not trusted. A running
// pass decides none of its candidates.
func TestForgetResource(t *testing.T) {
	g := NewWithT(t)
	v, _ := newVerifier(&fakeCache{})
	state := v.stateLocked(here)
	forgotten, kept := missingObject(secrets, "a"), missingObject(configMaps, "a")
	for _, candidate := range []Candidate{forgotten, kept} {
		state.addPending(candidate, v.clock.Now())
		state.verified[candidate], state.verifiedCaches[candidate.Resource] = struct{}{}, "1"
	}
	v.ForgetResource(secrets)
	g.Expect(state.pending).To(And(HaveLen(1), HaveKey(kept)))
	g.Expect(state.verifiedCaches).To(And(HaveLen(1), HaveKey(configMaps)))
	g.Expect(v.TakeVerified(here, forgotten)).To(BeFalse())
	g.Expect(v.TakeVerified(here, kept)).To(BeTrue())
	setVerified(v, forgotten)
	g.Expect(v.TakeVerified(here, forgotten)).To(BeFalse())
}

// A run whose only candidates are of a forgotten resource ends at once.
func TestForgetResourceEndsPasses(t *testing.T) {
	g := NewWithT(t)
	passed := make(chan string, 100)
	now := clocktesting.NewFakeClock(time.Unix(1_000_000, 0))
	v := New(&fakeCache{}, Delays{}, now, funcr.New(func(_, line string) { passed <- line }, funcr.Options{}))
	v.Verify(t.Context(), here, missingObject(secrets, "a"))
	waitsForPass := func() {
		t.Helper()
		g.Eventually(now.HasWaiters).WithTimeout(time.Minute).Should(BeTrue())
	}
	g.Eventually(func() <-chan string {
		waitsForPass()
		now.Step(batchPeriod)
		return passed
	}).WithTimeout(time.Minute).Should(Receive(ContainSubstring("cannot verify absences now")))
	waitsForPass()

	v.ForgetResource(secrets)
	ended := make(chan struct{})
	go func() {
		v.Wait()
		close(ended)
	}()
	// The fake clock does not advance during the wait.
	g.Eventually(func() <-chan struct{} {
		now.Step(time.Millisecond)
		return ended
	}).WithTimeout(time.Minute).Should(BeClosed())
}

// Hidden objects are reported until kcp shows them again and no candidate is left, or until the mailbox is unbound.
func TestHidden(t *testing.T) {
	g := NewWithT(t)
	v, _ := newVerifier(&fakeCache{})
	g.Expect(v.HiddenObjects(here)).To(BeZero())
	hidden := []Candidate{missingObject(secrets, "a"), missingObject(configMaps, "c"), missingObject(configMaps, "b")}
	v.setHidden(here, hidden)
	g.Expect(v.HiddenObjects(here)).To(Equal(HiddenObjects{Count: 3, Example: missingObject(configMaps, "b")}))
	g.Expect(v.HiddenObjects("another")).To(BeZero())
	v.setHidden(here, nil)
	g.Expect(v.HiddenObjects(here)).To(BeZero())

	v.stateLocked(here).bindingVersion = "1"
	v.setHidden(here, hidden)
	g.Expect(v.pendingCandidates(t.Context(), here)).To(BeEmpty())
	g.Expect(v.HiddenObjects(here)).To(BeZero())
	for _, running := range []bool{true, false} {
		v.stateLocked(here).running = running
		v.setHidden(here, hidden)
		v.ForgetMailbox(here)
		g.Expect(v.HiddenObjects(here)).To(BeZero())
	}
}
