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

func missingObject(resource schema.GroupVersionResource, name string) AbsenceCandidate {
	return AbsenceCandidate{Resource: resource, Key: key(name), Missing: true}
}

// setVerified delivers the result that the candidates are absent.
func setVerified(p *absenceVerifier, proven ...AbsenceCandidate) {
	p.applyResult(here, passResult{verified: proven})
}

func TestVerifiedAbsences(t *testing.T) {
	g := NewWithT(t)
	mailboxes, _ := newMailboxes(configMaps)
	subscriber := &recorder{}
	mailboxes.Subscribe(configMaps, here, subscriber)
	p := mailboxes.absence
	state := p.stateLocked(here)
	a, b, c := missingObject(configMaps, "a"), missingObject(configMaps, "b"), missingObject(configMaps, "c")
	for _, candidate := range []AbsenceCandidate{a, b, c} {
		state.pending[candidate] = struct{}{}
	}
	g.Expect(mailboxes.TakeVerifiedAbsence(here, a)).To(BeFalse(), "nothing is proven yet")

	// b was seen again while the round was under way; a and c have been decided.
	p.clear(here, b)
	p.applyResult(here, passResult{verified: []AbsenceCandidate{a, b}, cleared: []AbsenceCandidate{c}})
	_, proven, _ := subscriber.received()
	g.Expect(proven).To(ConsistOf(key("a"), key("c")))
	g.Expect(state.pending).To(BeEmpty())
	g.Expect(mailboxes.TakeVerifiedAbsence(here, b)).To(BeFalse())
	g.Expect(mailboxes.TakeVerifiedAbsence(here, c)).To(BeFalse())
	g.Expect(mailboxes.TakeVerifiedAbsence(here, AbsenceCandidate{Resource: a.Resource, Key: a.Key})).To(BeFalse(), "that is another suspicion")
	g.Expect(mailboxes.TakeVerifiedAbsence(there, a)).To(BeFalse())
	g.Expect(mailboxes.TakeVerifiedAbsence(here, a)).To(BeTrue())
	g.Expect(mailboxes.TakeVerifiedAbsence(here, a)).To(BeFalse(), "a proof serves once")

	// A proof that nobody has used yet is void when the object comes back.
	state.pending[a] = struct{}{}
	setVerified(p, a)
	p.clear(here, a)
	g.Expect(mailboxes.TakeVerifiedAbsence(here, a)).To(BeFalse())
	p.clear("nowhere", a)
	g.Expect(p.states).NotTo(HaveKey("nowhere"))

	// What is not decided stays pending, and nobody is told.
	_, _, _ = subscriber.received()
	state.pending[a] = struct{}{}
	setVerified(p, b)
	_, proven, _ = subscriber.received()
	g.Expect(proven).To(BeEmpty())
	g.Expect(state.pending).To(And(HaveLen(1), HaveKey(a)))
}

func TestObserveBinding(t *testing.T) {
	g := NewWithT(t)
	mailboxes, now := newMailboxes()
	p := mailboxes.absence
	begun := now.Now()
	p.observeBinding(here, "1")
	g.Expect(p.bindingUnchangedSince(here)).To(Equal(begun))
	g.Expect(p.states[here].wake).To(Receive(), "a round that waits goes on at once")

	now.Step(DefaultAbsenceDelays.BindingSettle)
	p.observeBinding(here, "1")
	g.Expect(p.bindingUnchangedSince(here)).To(Equal(begun), "the same binding is as settled as before")
	g.Expect(p.states[here].wake).NotTo(Receive())
	p.observeBinding(here, "2")
	g.Expect(p.bindingUnchangedSince(here)).To(Equal(now.Now()))
	g.Expect(p.states[here].wake).To(Receive())
}

func TestVerifiedCachesHoldForOneBinding(t *testing.T) {
	g := NewWithT(t)
	mailboxes, _ := newMailboxes()
	p := mailboxes.absence
	g.Expect(p.isCacheVerified(here, configMaps, "1")).To(BeFalse())
	p.stateLocked(here).verifiedCaches[configMaps] = "1"
	p.stateLocked(here).verifiedCaches[secrets] = "1"
	g.Expect(p.isCacheVerified(here, configMaps, "1")).To(BeTrue())
	g.Expect(p.isCacheVerified(here, configMaps, "2")).To(BeFalse())
	g.Expect(p.isCacheVerified(there, configMaps, "1")).To(BeFalse())

	p.requireRelist(here, configMaps)
	g.Expect(p.isCacheVerified(here, configMaps, "1")).To(BeFalse())
	g.Expect(p.isCacheVerified(here, secrets, "1")).To(BeTrue())
}

func TestForgetMailbox(t *testing.T) {
	g := NewWithT(t)
	mailboxes, _ := newMailboxes()
	p := mailboxes.absence
	p.forgetMailbox(here)
	g.Expect(p.states).To(BeEmpty())
	state := p.stateLocked(here)
	state.verified[missingObject(configMaps, "a")] = struct{}{}
	p.stateLocked(there).verified[missingObject(configMaps, "a")] = struct{}{}
	p.forgetMailbox(here)
	g.Expect(p.takeVerified(here, missingObject(configMaps, "a"))).To(BeFalse())
	g.Expect(p.takeVerified(there, missingObject(configMaps, "a"))).To(BeTrue())
}

// Many suspects wait until they have been proven twice, with holdFor in between and nothing else changed.
// That a mailbox was bound again is news once, and is forgotten with the binding.
func TestMarkRebound(t *testing.T) {
	g := NewWithT(t)
	mailboxes, _ := newMailboxes(configMaps)
	for _, running := range []bool{false, true} {
		g.Expect(mailboxes.WasRebound(here)).To(BeFalse())
		g.Expect(mailboxes.absence.markRebound(here)).To(BeTrue())
		g.Expect(mailboxes.absence.markRebound(here)).To(BeFalse())
		g.Expect(mailboxes.WasRebound(here)).To(BeTrue())
		mailboxes.absence.stateLocked(here).running = running
		mailboxes.absence.forgetMailbox(here)
	}
	g.Expect(mailboxes.WasRebound(here)).To(BeFalse())
}

func TestMassDeletionIsVerifiedTwice(t *testing.T) {
	massDeletionDelay := DefaultAbsenceDelays.MassDeletion
	longest := 2*massDeletionDelay + passTimeout
	type step struct {
		after   time.Duration
		binding string
		over    bool
	}
	for name, steps := range map[string][]step{
		"it is over after a while":              {{0, "1", false}, {massDeletionDelay - 1, "1", false}, {1, "1", true}},
		"the next many begin again":             {{0, "1", false}, {massDeletionDelay, "1", true}, {massDeletionDelay, "1", false}, {massDeletionDelay, "1", true}},
		"another binding begins again":          {{0, "1", false}, {massDeletionDelay - 1, "2", false}, {1, "2", false}, {massDeletionDelay - 1, "2", true}},
		"one that came back begins again":       {{0, "1", false}, {1, "2", false}, {massDeletionDelay, "1", false}, {massDeletionDelay, "1", true}},
		"a late one is in time":                 {{0, "1", false}, {longest, "1", true}},
		"one that nobody came back to is stale": {{0, "1", false}, {longest + 1, "1", false}, {massDeletionDelay, "1", true}},
	} {
		t.Run(name, func(t *testing.T) {
			mailboxes, now := newMailboxes()
			for number, step := range steps {
				now.Step(step.after)
				if got := mailboxes.absence.isMassConfirmed(here, step.binding); got != step.over {
					t.Fatalf("step %d: want %t, got %t", number, step.over, got)
				}
				// Each mailbox has its own.
				if number == 0 && mailboxes.absence.isMassConfirmed(there, step.binding) {
					t.Fatal("another mailbox is not held")
				}
			}
		})
	}
}

func TestPassesEndWithTheirContext(t *testing.T) {
	g := NewWithT(t)
	mailboxes, now := newMailboxes(configMaps)
	ctx, cancel := context.WithCancel(t.Context())
	mailboxes.ctx = ctx
	candidate := missingObject(configMaps, "a")
	running := func() bool {
		mailboxes.absence.lock.Lock()
		defer mailboxes.absence.lock.Unlock()
		state, ok := mailboxes.absence.states[here]
		return ok && state.running
	}

	// No endpoint shows the mailbox: round after round nothing can be proven.
	mailboxes.VerifyAbsence(here, candidate)
	mailboxes.VerifyAbsence(here, candidate)
	g.Expect(running()).To(BeTrue())
	for range 10 {
		g.Eventually(now.HasWaiters).Should(BeTrue())
		now.Step(retryInterval)
		g.Expect(mailboxes.TakeVerifiedAbsence(here, candidate)).To(BeFalse())
	}
	g.Expect(running()).To(BeTrue())
	cancel()
	mailboxes.absence.wait()
	g.Expect(running()).To(BeFalse())
	mailboxes.VerifyAbsence(here, candidate)
	g.Expect(running()).To(BeFalse(), "the hub ends")
}

// Before the hub has started a suspicion waits; the first one afterwards has all of them decided.
func TestVerifyAbsenceBeforeStart(t *testing.T) {
	g := NewWithT(t)
	mailboxes, _ := newMailboxes(configMaps)
	early, late := missingObject(configMaps, "early"), missingObject(configMaps, "late")
	mailboxes.VerifyAbsence(here, early)
	g.Expect(mailboxes.TakeVerifiedAbsence(here, early)).To(BeFalse())
	g.Expect(mailboxes.absence.states[here].running).To(BeFalse())

	ctx, cancel := context.WithCancel(t.Context())
	mailboxes.ctx = ctx
	mailboxes.VerifyAbsence(here, late)
	g.Expect(mailboxes.absence.pendingCandidates(ctx, here)).To(ConsistOf(early, late))
	cancel()
	mailboxes.absence.wait()
}

// A mailbox that is unbound has no suspects any more, whatever a round is doing.
func TestForgetEndsThePasses(t *testing.T) {
	g := NewWithT(t)
	mailboxes, now := newMailboxes(configMaps)
	mailboxes.ctx = t.Context()
	subscriber := &recorder{}
	mailboxes.Subscribe(configMaps, here, subscriber)
	candidate := missingObject(configMaps, "a")
	mailboxes.absence.observeBinding(here, "1")
	mailboxes.VerifyAbsence(here, candidate)
	mailboxes.absence.forgetMailbox(here)
	ended := make(chan struct{})
	go func() {
		mailboxes.absence.wait()
		close(ended)
	}()
	g.Eventually(func() <-chan struct{} {
		now.Step(retryInterval)
		return ended
	}).WithTimeout(time.Minute).Should(BeClosed())
	setVerified(mailboxes.absence, candidate)
	g.Expect(mailboxes.TakeVerifiedAbsence(here, candidate)).To(BeFalse())
	_, proven, _ := subscriber.received()
	g.Expect(proven).To(BeEmpty())
}

// A round that is under way when the mailbox is unbound leaves nothing behind for a binding that comes later.
func TestForgetDuringAPassForgetsItsResult(t *testing.T) {
	mailboxes := New(Options{Workspace: "root:synchub", Export: "export", Clock: clocktesting.NewFakeClock(time.Unix(1_000_000, 0)), Log: logr.Discard()})
	candidate := AbsenceCandidate{Resource: bindingsResource, Key: types.NamespacedName{Namespace: "ns", Name: "a"}, Missing: true}
	verifier := mailboxes.absence
	verifier.lock.Lock()
	state := verifier.stateLocked("mailbox")
	state.running = true
	state.verified[candidate] = struct{}{}
	state.verifiedCaches[candidate.Resource] = "1"
	verifier.lock.Unlock()
	verifier.forgetMailbox("mailbox")
	if verifier.takeVerified("mailbox", candidate) || verifier.isCacheVerified("mailbox", candidate.Resource, "1") {
		t.Error("a proof outlives the binding it was made under")
	}
}

// What is hidden is told as long as it is: until kcp shows it again and nothing is suspected any more, or the mailbox goes.
func TestHidden(t *testing.T) {
	g := NewWithT(t)
	mailboxes, _ := newMailboxes(configMaps)
	verifier := mailboxes.absence
	g.Expect(mailboxes.HiddenObjects(here)).To(BeZero())
	hidden := []AbsenceCandidate{missingObject(secrets, "a"), missingObject(configMaps, "c"), missingObject(configMaps, "b")}
	verifier.setHidden(here, hidden)
	g.Expect(mailboxes.HiddenObjects(here)).To(Equal(HiddenObjects{Count: 3, Example: missingObject(configMaps, "b")}))
	g.Expect(mailboxes.HiddenObjects("another")).To(BeZero())
	verifier.setHidden(here, nil)
	g.Expect(mailboxes.HiddenObjects(here)).To(BeZero())

	verifier.stateLocked(here).bindingVersion = "1"
	verifier.setHidden(here, hidden)
	g.Expect(verifier.pendingCandidates(t.Context(), here)).To(BeEmpty())
	g.Expect(mailboxes.HiddenObjects(here)).To(BeZero())
	for _, running := range []bool{true, false} {
		verifier.stateLocked(here).running = running
		verifier.setHidden(here, hidden)
		verifier.forgetMailbox(here)
		g.Expect(mailboxes.HiddenObjects(here)).To(BeZero())
	}
}
