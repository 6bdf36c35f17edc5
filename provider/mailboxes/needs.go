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
	"slices"
	"sync"
	"time"

	kcpcache "github.com/kcp-dev/apimachinery/v2/pkg/cache"
	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/runtime/schema"
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

// needs records which mailboxes the replica needs.
type needs struct {
	// decide is [Options.Needs]; nil if all mailboxes are needed.
	decide func(logicalcluster.Name) bool
	// decideLock serializes decisions, so that no decision overwrites a later one.
	decideLock sync.Mutex
	// changed wakes runNeeds.
	changed signal

	lock   sync.RWMutex
	states map[logicalcluster.Name]needState
	// lost and gained are the mailboxes whose subscribers are to be reset.
	lost, gained []logicalcluster.Name
	// sweepAt is the number of states at which the states of deleted mailboxes are forgotten next.
	sweepAt int
}

func newNeeds(decide func(logicalcluster.Name) bool) needs {
	return needs{decide: decide, changed: newSignal(), states: map[logicalcluster.Name]needState{}, sweepAt: minSweep}
}

// state returns the state of a mailbox. It decides the state when the mailbox is observed first.
func (n *needs) state(mailbox logicalcluster.Name) needState {
	n.lock.RLock()
	state, ok := n.states[mailbox]
	n.lock.RUnlock()
	if ok {
		return state
	}
	n.decideLock.Lock()
	defer n.decideLock.Unlock()
	n.lock.RLock()
	state, ok = n.states[mailbox]
	n.lock.RUnlock()
	if !ok {
		if !n.decide(mailbox) {
			state = foreign
		}
		n.set(state, mailbox)
	}
	return state
}

// isForeignText is isForeign for the text of an annotation, which it does not copy if the mailbox is known.
func (n *needs) isForeignText(mailbox []byte) bool {
	n.lock.RLock()
	state, ok := n.states[logicalcluster.Name(mailbox)]
	n.lock.RUnlock()
	if ok {
		return state == foreign
	}
	return n.isForeign(logicalcluster.Name(mailbox))
}

// isForeign reports whether the objects of a mailbox are dropped.
func (n *needs) isForeign(mailbox logicalcluster.Name) bool {
	return n.decide != nil && n.state(mailbox) == foreign
}

// isUnknown reports whether the objects of a mailbox are Unknown.
func (n *needs) isUnknown(mailbox logicalcluster.Name) bool {
	return n.decide != nil && n.state(mailbox) != needed
}

// set sets the state of mailboxes. It requires decideLock.
func (n *needs) set(state needState, mailboxes ...logicalcluster.Name) {
	n.lock.Lock()
	defer n.lock.Unlock()
	for _, mailbox := range mailboxes {
		n.states[mailbox] = state
	}
}

// callIfForeign calls the function if the mailbox is foreign, and keeps the state from changing during the call. It returns whether the
// mailbox is foreign.
func (n *needs) callIfForeign(mailbox logicalcluster.Name, call func()) bool {
	n.lock.RLock()
	defer n.lock.RUnlock()
	if n.states[mailbox] != foreign {
		return false
	}
	call()
	return true
}

// takeChanged returns the mailboxes that were lost or gained since the last call.
func (n *needs) takeChanged() (lost, gained []logicalcluster.Name) {
	n.lock.Lock()
	defer n.lock.Unlock()
	lost, gained = n.lost, n.gained
	n.lost, n.gained = nil, nil
	return lost, gained
}

// changedAnswers decides again about mailboxes, or about all known ones if none are given, and returns the mailboxes whose
// state changes. It requires decideLock.
func (n *needs) changedAnswers(mailboxes []logicalcluster.Name) (lost, gained []logicalcluster.Name) {
	n.lock.RLock()
	states := make(map[logicalcluster.Name]needState, len(n.states))
	for mailbox, state := range n.states {
		if len(mailboxes) == 0 || slices.Contains(mailboxes, mailbox) {
			states[mailbox] = state
		}
	}
	n.lock.RUnlock()
	for mailbox, state := range states {
		switch isNeeded := n.decide(mailbox); {
		case isNeeded && state == foreign:
			gained = append(gained, mailbox)
		case !isNeeded && state != foreign:
			lost = append(lost, mailbox)
		}
	}
	return lost, gained
}

// RecheckNeeds calls [Options.Needs] again for some mailboxes, or for all if none are named. The objects of a mailbox that is
// not needed any more become Unknown and leave the caches, and no deletion is reported. The objects of a mailbox that is
// needed now are Unknown until they are listed: for few mailboxes one by one, for many by one list of each resource. In
// either case the subscribers are reset, and again after the list. RecheckNeeds sends no request itself.
func (m *Mailboxes) RecheckNeeds(mailboxes ...logicalcluster.Name) {
	if m.needs.decide == nil {
		return
	}
	m.needs.decideLock.Lock()
	lost, gained := m.needs.changedAnswers(mailboxes)
	m.lose(lost)
	m.gain(gained)
	m.needs.lock.Lock()
	m.needs.lost, m.needs.gained = append(m.needs.lost, lost...), append(m.needs.gained, gained...)
	m.needs.lock.Unlock()
	m.needs.decideLock.Unlock()
	if len(lost)+len(gained) == 0 {
		return
	}
	m.log.Info("needs the objects of other mailboxes", "gained", len(gained), "lost", len(lost))
	m.needs.changed.notify()
}

// lose makes the objects of mailboxes Unknown. The caches drop them later. It requires decideLock.
func (m *Mailboxes) lose(lost []logicalcluster.Name) {
	m.needs.set(foreign, lost...)
	informers := m.droppingInformers()
	for _, mailbox := range lost {
		m.absence.ForgetMailbox(mailbox)
		if m.usage(mailbox).evicted.Swap(false) {
			m.evictedCount.Add(-1)
		}
		for _, informer := range informers {
			informer.relistDone(mailbox, 0)
		}
	}
}

// gain makes the objects of mailboxes wait for a list. It requires decideLock.
func (m *Mailboxes) gain(gained []logicalcluster.Name) {
	if len(gained) == 0 {
		return
	}
	relistNumber := m.relistCount.Add(1)
	// An informer that starts from now on drops none of their objects.
	m.needs.set(gaining, gained...)
	informers := m.droppingInformers()
	for _, mailbox := range gained {
		located := m.endpointFor(mailbox)
		for _, informer := range informers {
			if located == nil || informer.endpoint == located {
				informer.awaitRelist(mailbox, relistNumber)
			}
		}
	}
	m.needs.set(needed, gained...)
	for _, mailbox := range gained {
		// An object that the caches lack must not count as deleted.
		m.absence.ForgetMailbox(mailbox)
	}
}

// forgetNeeds forgets the answers for deleted mailboxes, once there are many. An event of such a mailbox may still be in a queue,
// so it would not suffice to forget each mailbox at once.
func (m *Mailboxes) forgetNeeds() {
	if m.needs.decide == nil {
		return
	}
	m.needs.decideLock.Lock()
	defer m.needs.decideLock.Unlock()
	m.needs.lock.RLock()
	var gone []logicalcluster.Name
	if len(m.needs.states) >= m.needs.sweepAt {
		for mailbox := range m.needs.states {
			gone = append(gone, mailbox)
		}
	}
	m.needs.lock.RUnlock()
	if gone == nil {
		return
	}
	gone = slices.DeleteFunc(gone, func(mailbox logicalcluster.Name) bool { return !m.isKnownGone(mailbox) })
	m.needs.lock.Lock()
	defer m.needs.lock.Unlock()
	for _, mailbox := range gone {
		delete(m.needs.states, mailbox)
	}
	m.needs.sweepAt = max(minSweep, 2*len(m.needs.states))
}

// dropsForeign reports whether the caches of a resource drop the objects of foreign mailboxes.
func (m *Mailboxes) dropsForeign(resource schema.GroupVersionResource) bool {
	return m.needs.decide != nil && !slices.Contains(m.alwaysWatched, resource)
}

// droppingInformers returns the informers that drop the objects of foreign mailboxes.
func (m *Mailboxes) droppingInformers() []*wildcardInformer {
	return slices.DeleteFunc(m.allInformers(), func(w *wildcardInformer) bool { return !w.dropsForeign })
}

// runNeeds drops the objects of lost mailboxes and lists the objects of gained ones until ctx ends.
func (m *Mailboxes) runNeeds(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-m.needs.changed:
		}
		lost, gained := m.needs.takeChanged()
		for _, mailbox := range lost {
			m.dropForeign(mailbox)
			m.notifyMailboxReset(mailbox)
		}
		for _, mailbox := range gained {
			m.notifyMailboxReset(mailbox)
		}
		if !requestRelists(m.droppingInformers()) {
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-m.clock.After(relistInterval):
			m.needs.changed.notify()
		case <-m.needs.changed:
			m.needs.changed.notify()
		}
	}
}

// dropForeign removes the entries of a foreign mailbox from the caches. Entries that are still in the queues of the informers are removed
// by their handlers.
func (m *Mailboxes) dropForeign(mailbox logicalcluster.Name) {
	for _, informer := range m.droppingInformers() {
		entries, _ := informer.shared.GetIndexer().ByIndex(kcpcache.ClusterIndexName, kcpcache.ClusterIndexKey(mailbox))
		for _, entry := range entries {
			informer.dropIfForeign(entry)
		}
	}
	m.deleteUnusedUsage(mailbox)
}

// dropIfForeign removes an entry from the cache if its mailbox is foreign, and reports whether it is.
func (w *wildcardInformer) dropIfForeign(entry any) bool {
	if !w.dropsForeign {
		return false
	}
	object := toObject(entry)
	if !w.endpoint.owner.needs.callIfForeign(mailboxOf(object), func() { _ = w.shared.GetIndexer().Delete(entry) }) {
		return false
	}
	if !isPlaceholder(entry) {
		w.updateUsage(w.countedObject(object.GetUID()), nil)
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
