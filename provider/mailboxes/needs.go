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
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
)

// A replica that syncs only some SyncTargets needs the objects of their mailboxes only. kcp cannot restrict a wildcard watch to some
// workspaces, so the hub drops the objects of the foreign mailboxes, in general before they are decoded. A foreign mailbox is like an
// evicted one: its objects are Unknown, and no absence is verified. Bindings and configs are cached of all mailboxes.

const (
	// relistInterval is how often a gained mailbox that waits for its list is handled again.
	relistInterval = time.Second
	// minSweep is the minimum number of known mailboxes at which deleted mailboxes are forgotten.
	minSweep = 64
)

// needState describes whether the replica needs the objects of a mailbox.
type needState int

const (
	// needed: the objects are cached. The objects of a gained mailbox are Unknown until they are listed.
	needed needState = iota
	// foreign: the objects are dropped.
	foreign
	// gaining: the objects are not dropped any more. They are Unknown, since no informer waits for their lists yet.
	gaining
)

// needStates records which mailboxes the replica needs.
type needStates struct {
	// decide is [Options.Needs]; nil if all mailboxes are needed.
	decide func(logicalcluster.Name) bool
	// decideLock serializes decisions, so that no decision overwrites a later one.
	decideLock sync.Mutex
	// changed has a value after mailboxes were lost or gained.
	changed signal

	lock sync.RWMutex
	// states changes only while both locks are held, so either is enough to read it.
	states map[logicalcluster.Name]needState
	// lost and gained are the mailboxes whose subscribers are to be reset.
	lost, gained []logicalcluster.Name
	// sweepAt is the number of states at which the states of deleted mailboxes are forgotten next.
	sweepAt int
}

func newNeedStates(decide func(logicalcluster.Name) bool) *needStates {
	return &needStates{decide: decide, changed: newSignal(), states: map[logicalcluster.Name]needState{}, sweepAt: minSweep}
}

// state returns the state of a mailbox. It decides the state when the mailbox is observed first.
func (n *needStates) state(mailbox logicalcluster.Name) needState {
	n.lock.RLock()
	state, ok := n.states[mailbox]
	n.lock.RUnlock()
	if ok {
		return state
	}
	n.decideLock.Lock()
	defer n.decideLock.Unlock()
	if state, ok = n.states[mailbox]; !ok {
		if !n.decide(mailbox) {
			state = foreign
		}
		n.set(state, mailbox)
	}
	return state
}

// isForeignText is isForeign for the text of an annotation, which it does not copy if the mailbox is known.
func (n *needStates) isForeignText(mailbox []byte) bool {
	n.lock.RLock()
	state, ok := n.states[logicalcluster.Name(mailbox)]
	n.lock.RUnlock()
	if ok {
		return state == foreign
	}
	return n.isForeign(logicalcluster.Name(mailbox))
}

// isForeign reports whether the objects of a mailbox are dropped.
func (n *needStates) isForeign(mailbox logicalcluster.Name) bool {
	return n.decide != nil && n.state(mailbox) == foreign
}

// isUnknown reports whether the objects of a mailbox are Unknown.
func (n *needStates) isUnknown(mailbox logicalcluster.Name) bool {
	return n.decide != nil && n.state(mailbox) != needed
}

// set sets the state of mailboxes. It requires decideLock.
func (n *needStates) set(state needState, mailboxes ...logicalcluster.Name) {
	n.lock.Lock()
	defer n.lock.Unlock()
	for _, mailbox := range mailboxes {
		n.states[mailbox] = state
	}
}

// callIfForeign calls the function if the mailbox is foreign, and keeps the state from changing during the call. It returns whether the
// mailbox is foreign.
func (n *needStates) callIfForeign(mailbox logicalcluster.Name, call func()) bool {
	n.lock.RLock()
	defer n.lock.RUnlock()
	if n.states[mailbox] != foreign {
		return false
	}
	call()
	return true
}

// takeChanged returns the mailboxes that were lost or gained since the last call.
func (n *needStates) takeChanged() (lost, gained []logicalcluster.Name) {
	n.lock.Lock()
	defer n.lock.Unlock()
	lost, gained = n.lost, n.gained
	n.lost, n.gained = nil, nil
	return lost, gained
}

// changedAnswers decides again about mailboxes, or about all known ones if none are given, and returns the mailboxes whose
// state changes. It requires decideLock.
func (n *needStates) changedAnswers(mailboxes []logicalcluster.Name) (lost, gained []logicalcluster.Name) {
	for mailbox, state := range n.states {
		if len(mailboxes) > 0 && !slices.Contains(mailboxes, mailbox) {
			continue
		}
		switch isNeeded := n.decide(mailbox); {
		case isNeeded && state == foreign:
			gained = append(gained, mailbox)
		case !isNeeded && state != foreign:
			lost = append(lost, mailbox)
		}
	}
	return lost, gained
}

// forgetGone forgets the answers for deleted mailboxes, once there are many. An event of such a mailbox may still be in a queue,
// so it would not suffice to forget each mailbox at once.
func (n *needStates) forgetGone(isGone func(logicalcluster.Name) bool) {
	if n.decide == nil {
		return
	}
	n.decideLock.Lock()
	defer n.decideLock.Unlock()
	if len(n.states) < n.sweepAt {
		return
	}
	gone := slices.DeleteFunc(slices.Collect(maps.Keys(n.states)), func(mailbox logicalcluster.Name) bool { return !isGone(mailbox) })
	n.lock.Lock()
	defer n.lock.Unlock()
	for _, mailbox := range gone {
		delete(n.states, mailbox)
	}
	n.sweepAt = max(minSweep, 2*len(n.states))
}

// noteChanged records mailboxes that were lost or gained. takeChanged returns them.
func (n *needStates) noteChanged(lost, gained []logicalcluster.Name) {
	n.lock.Lock()
	defer n.lock.Unlock()
	n.lost, n.gained = append(n.lost, lost...), append(n.gained, gained...)
}

// Needs drops the objects of mailboxes that the replica does not need any more, and lists the objects of mailboxes that it needs now.
type Needs struct{ parts *parts }

// RecheckNeeds calls [Options.Needs] again for some mailboxes, or for all if none are named. The objects of a mailbox that is
// not needed any more become Unknown and leave the caches, and no deletion is reported. The objects of a mailbox that is
// needed now are Unknown until they are listed: for few mailboxes one by one, for many by one list of each resource. In
// either case the subscribers are reset, and again after the list. RecheckNeeds sends no request itself.
func (n *Needs) RecheckNeeds(mailboxes ...logicalcluster.Name) {
	if n.parts.needs.decide == nil {
		return
	}
	n.parts.needs.decideLock.Lock()
	lost, gained := n.parts.needs.changedAnswers(mailboxes)
	n.lose(lost)
	n.gain(gained)
	n.parts.needs.noteChanged(lost, gained)
	n.parts.needs.decideLock.Unlock()
	if len(lost)+len(gained) == 0 {
		return
	}
	n.parts.options.Log.Info("needs the objects of other mailboxes", "gained", len(gained), "lost", len(lost))
	n.parts.needs.changed.notify()
}

// lose makes the objects of mailboxes Unknown. The caches drop them later. It requires decideLock.
func (n *Needs) lose(lost []logicalcluster.Name) {
	n.parts.needs.set(foreign, lost...)
	informers := n.parts.endpoints.droppingInformers()
	for _, mailbox := range lost {
		n.parts.absences.verifier.ForgetMailbox(mailbox)
		n.parts.usages.endEviction(mailbox, false)
		for _, informer := range informers {
			informer.waiters.done(mailbox, 0)
		}
	}
}

// gain makes the objects of mailboxes wait for a list. It requires decideLock.
func (n *Needs) gain(gained []logicalcluster.Name) {
	if len(gained) == 0 {
		return
	}
	relistNumber := n.parts.relists.last.Add(1)
	// An informer that starts from now on drops none of their objects.
	n.parts.needs.set(gaining, gained...)
	informers := n.parts.endpoints.droppingInformers()
	for _, mailbox := range gained {
		located := n.parts.endpoints.locate(mailbox)
		for _, informer := range informers {
			if located == nil || informer.endpoint == located {
				informer.waiters.await(mailbox, relistNumber)
			}
		}
	}
	n.parts.needs.set(needed, gained...)
	for _, mailbox := range gained {
		// An object that the caches lack must not count as deleted.
		n.parts.absences.verifier.ForgetMailbox(mailbox)
	}
}

// run drops the objects of lost mailboxes and lists the objects of gained ones until ctx ends.
func (n *Needs) run(ctx context.Context) {
	for n.parts.needs.changed.wait(ctx) {
		lost, gained := n.parts.needs.takeChanged()
		for _, mailbox := range lost {
			n.dropForeign(mailbox)
			n.parts.subscriptions.resetMailbox(mailbox)
		}
		for _, mailbox := range gained {
			n.parts.subscriptions.resetMailbox(mailbox)
		}
		if !requestRelists(n.parts.endpoints.droppingInformers()) {
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-n.parts.options.Clock.After(relistInterval):
			n.parts.needs.changed.notify()
		case <-n.parts.needs.changed:
			n.parts.needs.changed.notify()
		}
	}
}

// dropForeign removes the entries of a foreign mailbox from the caches. Entries that are still in the queues of the informers are removed
// by their handlers.
func (n *Needs) dropForeign(mailbox logicalcluster.Name) {
	for _, informer := range n.parts.endpoints.droppingInformers() {
		for _, entry := range entriesOf(informer.shared, mailbox) {
			informer.dropIfForeign(entry)
		}
	}
	n.parts.usages.deleteUnused(mailbox)
}

// dropIfForeign removes an entry from the cache if its mailbox is foreign, and reports whether it is.
func (w *wildcardInformer) dropIfForeign(entry any) bool {
	if !w.dropsForeign {
		return false
	}
	object := toObject(entry)
	if !w.parts.needs.callIfForeign(mailboxOf(object), func() { _ = w.shared.GetIndexer().Delete(entry) }) {
		return false
	}
	if !isPlaceholder(entry) {
		w.counted.update(w.counted.get(object.GetUID()), nil)
	}
	return true
}

const (
	// Up to fewMailboxes, or one in individualDivisor of all, are listed one by one. For more, one list of all mailboxes needs fewer requests.
	fewMailboxes      = 4
	individualDivisor = 8
)

// listsOneByOne reports whether so many mailboxes of all are listed one by one.
func listsOneByOne(waiting, all int) bool { return waiting <= max(fewMailboxes, all/individualDivisor) }
