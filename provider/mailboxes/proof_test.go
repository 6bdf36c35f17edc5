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

package mailboxes

import (
	"context"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
)

func vanished(resource schema.GroupVersionResource, name string) Suspect {
	return Suspect{Resource: resource, Key: key(name), Vanished: true}
}

// decide delivers the verdict that the suspects are gone.
func decide(p *prover, proven ...Suspect) { p.deliver(here, verdict{proven: proven}) }

func TestProofs(t *testing.T) {
	g := NewWithT(t)
	mailboxes, _ := newMailboxes(configMaps)
	subscriber := &recorder{}
	mailboxes.Subscribe(configMaps, here, subscriber)
	p := mailboxes.prover
	docket := p.docketLocked(here)
	a, b, c := vanished(configMaps, "a"), vanished(configMaps, "b"), vanished(configMaps, "c")
	for _, suspect := range []Suspect{a, b, c} {
		docket.pending[suspect] = struct{}{}
	}
	g.Expect(mailboxes.Proven(here, a)).To(BeFalse(), "nothing is proven yet")

	// b was seen again while the round was under way; a and c have been decided.
	p.absolve(here, b)
	p.deliver(here, verdict{proven: []Suspect{a, b}, cleared: []Suspect{c}})
	_, proven, _ := subscriber.told()
	g.Expect(proven).To(ConsistOf(key("a"), key("c")))
	g.Expect(docket.pending).To(BeEmpty())
	g.Expect(mailboxes.Proven(here, b)).To(BeFalse())
	g.Expect(mailboxes.Proven(here, c)).To(BeFalse())
	g.Expect(mailboxes.Proven(here, Suspect{Resource: a.Resource, Key: a.Key})).To(BeFalse(), "that is another suspicion")
	g.Expect(mailboxes.Proven(there, a)).To(BeFalse())
	g.Expect(mailboxes.Proven(here, a)).To(BeTrue())
	g.Expect(mailboxes.Proven(here, a)).To(BeFalse(), "a proof serves once")

	// A proof that nobody has used yet is void when the object comes back.
	docket.pending[a] = struct{}{}
	decide(p, a)
	p.absolve(here, a)
	g.Expect(mailboxes.Proven(here, a)).To(BeFalse())
	p.absolve("nowhere", a)
	g.Expect(p.docs).NotTo(HaveKey("nowhere"))

	// What is not decided stays pending, and nobody is told.
	_, _, _ = subscriber.told()
	docket.pending[a] = struct{}{}
	decide(p, b)
	_, proven, _ = subscriber.told()
	g.Expect(proven).To(BeEmpty())
	g.Expect(docket.pending).To(And(HaveLen(1), HaveKey(a)))
}

func TestBindingSeen(t *testing.T) {
	g := NewWithT(t)
	mailboxes, now := newMailboxes()
	p := mailboxes.prover
	begun := now.Now()
	p.bindingSeen(here, "1")
	g.Expect(p.settledSince(here)).To(Equal(begun))
	g.Expect(p.docs[here].wake).To(Receive(), "a round that waits goes on at once")

	now.Step(settleFor)
	p.bindingSeen(here, "1")
	g.Expect(p.settledSince(here)).To(Equal(begun), "the same binding is as settled as before")
	g.Expect(p.docs[here].wake).NotTo(Receive())
	p.bindingSeen(here, "2")
	g.Expect(p.settledSince(here)).To(Equal(now.Now()))
	g.Expect(p.docs[here].wake).To(Receive())
}

func TestInStepHoldsForOneBinding(t *testing.T) {
	g := NewWithT(t)
	mailboxes, _ := newMailboxes()
	p := mailboxes.prover
	g.Expect(p.isInStep(here, configMaps, "1")).To(BeFalse())
	p.docketLocked(here).inStep[configMaps] = "1"
	p.docketLocked(here).inStep[secrets] = "1"
	g.Expect(p.isInStep(here, configMaps, "1")).To(BeTrue())
	g.Expect(p.isInStep(here, configMaps, "2")).To(BeFalse())
	g.Expect(p.isInStep(there, configMaps, "1")).To(BeFalse())

	p.distrust(here, configMaps)
	g.Expect(p.isInStep(here, configMaps, "1")).To(BeFalse())
	g.Expect(p.isInStep(here, secrets, "1")).To(BeTrue())
}

func TestForget(t *testing.T) {
	g := NewWithT(t)
	mailboxes, _ := newMailboxes()
	p := mailboxes.prover
	p.forget(here)
	g.Expect(p.docs).To(BeEmpty())
	docket := p.docketLocked(here)
	docket.proven[vanished(configMaps, "a")] = struct{}{}
	p.docketLocked(there).proven[vanished(configMaps, "a")] = struct{}{}
	p.forget(here)
	g.Expect(p.take(here, vanished(configMaps, "a"))).To(BeFalse())
	g.Expect(p.take(there, vanished(configMaps, "a"))).To(BeTrue())
}

// Many suspects wait until they have been proven twice, with holdFor in between and nothing else changed.
// That a mailbox was bound again is news once, and is forgotten with the binding.
func TestNoteRebound(t *testing.T) {
	g := NewWithT(t)
	mailboxes, _ := newMailboxes(configMaps)
	for _, running := range []bool{false, true} {
		g.Expect(mailboxes.Rebound(here)).To(BeFalse())
		g.Expect(mailboxes.prover.noteRebound(here)).To(BeTrue())
		g.Expect(mailboxes.prover.noteRebound(here)).To(BeFalse())
		g.Expect(mailboxes.Rebound(here)).To(BeTrue())
		mailboxes.prover.docketLocked(here).running = running
		mailboxes.prover.forget(here)
	}
	g.Expect(mailboxes.Rebound(here)).To(BeFalse())
}

func TestHoldOver(t *testing.T) {
	const longest = 2*holdFor + proofTimeout
	type step struct {
		after   time.Duration
		binding string
		over    bool
	}
	for name, steps := range map[string][]step{
		"it is over after a while":              {{0, "1", false}, {holdFor - 1, "1", false}, {1, "1", true}},
		"the next many begin again":             {{0, "1", false}, {holdFor, "1", true}, {holdFor, "1", false}, {holdFor, "1", true}},
		"another binding begins again":          {{0, "1", false}, {holdFor - 1, "2", false}, {1, "2", false}, {holdFor - 1, "2", true}},
		"one that came back begins again":       {{0, "1", false}, {1, "2", false}, {holdFor, "1", false}, {holdFor, "1", true}},
		"a late one is in time":                 {{0, "1", false}, {longest, "1", true}},
		"one that nobody came back to is stale": {{0, "1", false}, {longest + 1, "1", false}, {holdFor, "1", true}},
	} {
		t.Run(name, func(t *testing.T) {
			mailboxes, now := newMailboxes()
			for number, step := range steps {
				now.Step(step.after)
				if got := mailboxes.prover.holdOver(here, step.binding); got != step.over {
					t.Fatalf("step %d: want %t, got %t", number, step.over, got)
				}
				// Each mailbox has its own.
				if number == 0 && mailboxes.prover.holdOver(there, step.binding) {
					t.Fatal("another mailbox is not held")
				}
			}
		})
	}
}

func TestRoundsEndWithTheirContext(t *testing.T) {
	g := NewWithT(t)
	mailboxes, now := newMailboxes(configMaps)
	ctx, cancel := context.WithCancel(t.Context())
	mailboxes.ctx = ctx
	suspect := vanished(configMaps, "a")
	running := func() bool {
		mailboxes.prover.lock.Lock()
		defer mailboxes.prover.lock.Unlock()
		docket, ok := mailboxes.prover.docs[here]
		return ok && docket.running
	}

	// No endpoint shows the mailbox: round after round nothing can be proven.
	mailboxes.Prove(here, suspect)
	mailboxes.Prove(here, suspect)
	g.Expect(running()).To(BeTrue())
	for range 10 {
		g.Eventually(now.HasWaiters).Should(BeTrue())
		now.Step(retryAfter)
		g.Expect(mailboxes.Proven(here, suspect)).To(BeFalse())
	}
	g.Expect(running()).To(BeTrue())
	cancel()
	mailboxes.prover.wait()
	g.Expect(running()).To(BeFalse())
	mailboxes.Prove(here, suspect)
	g.Expect(running()).To(BeFalse(), "the hub ends")
}

// Before the hub has started a suspicion waits; the first one afterwards has all of them decided.
func TestProveBeforeStart(t *testing.T) {
	g := NewWithT(t)
	mailboxes, _ := newMailboxes(configMaps)
	early, late := vanished(configMaps, "early"), vanished(configMaps, "late")
	mailboxes.Prove(here, early)
	g.Expect(mailboxes.Proven(here, early)).To(BeFalse())
	g.Expect(mailboxes.prover.docs[here].running).To(BeFalse())

	ctx, cancel := context.WithCancel(t.Context())
	mailboxes.ctx = ctx
	mailboxes.Prove(here, late)
	g.Expect(mailboxes.prover.pending(ctx, here)).To(ConsistOf(early, late))
	cancel()
	mailboxes.prover.wait()
}

// A mailbox that is unbound has no suspects any more, whatever a round is doing.
func TestForgetEndsTheRounds(t *testing.T) {
	g := NewWithT(t)
	mailboxes, now := newMailboxes(configMaps)
	mailboxes.ctx = t.Context()
	subscriber := &recorder{}
	mailboxes.Subscribe(configMaps, here, subscriber)
	suspect := vanished(configMaps, "a")
	mailboxes.prover.bindingSeen(here, "1")
	mailboxes.Prove(here, suspect)
	mailboxes.prover.forget(here)
	ended := make(chan struct{})
	go func() {
		mailboxes.prover.wait()
		close(ended)
	}()
	g.Eventually(func() <-chan struct{} {
		now.Step(retryAfter)
		return ended
	}).WithTimeout(time.Minute).Should(BeClosed())
	decide(mailboxes.prover, suspect)
	g.Expect(mailboxes.Proven(here, suspect)).To(BeFalse())
	_, proven, _ := subscriber.told()
	g.Expect(proven).To(BeEmpty())
}

// A round that is under way when the mailbox is unbound leaves nothing behind for a binding that comes later.
func TestForgetDuringARoundForgetsProofs(t *testing.T) {
	mailboxes := New(nil, "root:synchub", "export", nil, clocktesting.NewFakeClock(time.Unix(1_000_000, 0)), logr.Discard())
	suspect := Suspect{Resource: bindingsResource, Key: types.NamespacedName{Namespace: "ns", Name: "a"}, Vanished: true}
	prover := mailboxes.prover
	prover.lock.Lock()
	docket := prover.docketLocked("mailbox")
	docket.running = true
	docket.proven[suspect] = struct{}{}
	docket.inStep[suspect.Resource] = "1"
	prover.lock.Unlock()
	prover.forget("mailbox")
	if prover.take("mailbox", suspect) || prover.isInStep("mailbox", suspect.Resource, "1") {
		t.Error("a proof outlives the binding it was made under")
	}
}

// What is hidden is told as long as it is: until kcp shows it again and nothing is suspected any more, or the mailbox goes.
func TestHidden(t *testing.T) {
	g := NewWithT(t)
	mailboxes, _ := newMailboxes(configMaps)
	prover := mailboxes.prover
	g.Expect(mailboxes.Hidden(here)).To(BeZero())
	hidden := []Suspect{vanished(secrets, "a"), vanished(configMaps, "c"), vanished(configMaps, "b")}
	prover.noteHidden(here, hidden)
	g.Expect(mailboxes.Hidden(here)).To(Equal(Hidden{Count: 3, Example: vanished(configMaps, "b")}))
	g.Expect(mailboxes.Hidden("another")).To(BeZero())
	prover.noteHidden(here, nil)
	g.Expect(mailboxes.Hidden(here)).To(BeZero())

	prover.docketLocked(here).binding = "1"
	prover.noteHidden(here, hidden)
	g.Expect(prover.pending(t.Context(), here)).To(BeEmpty())
	g.Expect(mailboxes.Hidden(here)).To(BeZero())
	for _, running := range []bool{true, false} {
		prover.docketLocked(here).running = running
		prover.noteHidden(here, hidden)
		prover.forget(here)
		g.Expect(mailboxes.Hidden(here)).To(BeZero())
	}
}
