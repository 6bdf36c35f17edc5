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
// workspaces, so the hub drops the objects of the unowned mailboxes, in general before they are decoded. An unowned mailbox is like an
// evicted one: its objects are Unknown, and no absence is verified. Bindings and configs are cached of all mailboxes.

const (
	// relistInterval is how often an acquired mailbox that waits for its list is handled again.
	relistInterval = time.Second
	// minSweep is the minimum number of known mailboxes at which deleted mailboxes are forgotten.
	minSweep = 64
)

// ownership describes whether the replica needs the objects of a mailbox.
type ownership int

const (
	// owned: the objects are cached. The objects of an acquired mailbox are Unknown until they are listed.
	owned ownership = iota
	// unowned: the objects are dropped.
	unowned
	// acquiring: the objects are not dropped any more. They are Unknown, since no informer waits for their lists yet.
	acquiring
)

// ownedMailboxes records which mailboxes the replica needs.
type ownedMailboxes struct {
	// decide is [Options.Owns]; nil if all mailboxes are needed.
	decide func(logicalcluster.Name) bool
	// decideLock serializes decisions, so that no decision overwrites a later one.
	decideLock sync.Mutex
	// changed has a value after mailboxes were released or acquired.
	changed signal

	lock sync.RWMutex
	// states changes only while both locks are held, so either is enough to read it.
	states map[logicalcluster.Name]ownership
	// released and acquired are the mailboxes whose subscribers are to be reset.
	released, acquired []logicalcluster.Name
	// sweepAt is the number of states at which the states of deleted mailboxes are forgotten next.
	sweepAt int
}

func newOwnedMailboxes(decide func(logicalcluster.Name) bool) *ownedMailboxes {
	return &ownedMailboxes{decide: decide, changed: newSignal(), states: map[logicalcluster.Name]ownership{}, sweepAt: minSweep}
}

// state returns the state of a mailbox. It decides the state when the mailbox is observed first.
func (n *ownedMailboxes) state(mailbox logicalcluster.Name) ownership {
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
			state = unowned
		}
		n.set(state, mailbox)
	}
	return state
}

// isUnownedText is isUnowned for the text of an annotation, which it does not copy if the mailbox is known.
func (n *ownedMailboxes) isUnownedText(mailbox []byte) bool {
	n.lock.RLock()
	state, ok := n.states[logicalcluster.Name(mailbox)]
	n.lock.RUnlock()
	if ok {
		return state == unowned
	}
	return n.isUnowned(logicalcluster.Name(mailbox))
}

// isUnowned reports whether the objects of a mailbox are dropped.
func (n *ownedMailboxes) isUnowned(mailbox logicalcluster.Name) bool {
	return n.decide != nil && n.state(mailbox) == unowned
}

// isUnknown reports whether the objects of a mailbox are Unknown.
func (n *ownedMailboxes) isUnknown(mailbox logicalcluster.Name) bool {
	return n.decide != nil && n.state(mailbox) != owned
}

// set sets the state of mailboxes. It requires decideLock.
func (n *ownedMailboxes) set(state ownership, mailboxes ...logicalcluster.Name) {
	n.lock.Lock()
	defer n.lock.Unlock()
	for _, mailbox := range mailboxes {
		n.states[mailbox] = state
	}
}

// callIfUnowned calls the function if the mailbox is unowned, and keeps the state from changing during the call. It returns whether the
// mailbox is unowned.
func (n *ownedMailboxes) callIfUnowned(mailbox logicalcluster.Name, call func()) bool {
	n.lock.RLock()
	defer n.lock.RUnlock()
	if n.states[mailbox] != unowned {
		return false
	}
	call()
	return true
}

// takeChanged returns the mailboxes that were released or acquired since the last call.
func (n *ownedMailboxes) takeChanged() (released, acquired []logicalcluster.Name) {
	n.lock.Lock()
	defer n.lock.Unlock()
	released, acquired = n.released, n.acquired
	n.released, n.acquired = nil, nil
	return released, acquired
}

// changedOwners decides again about mailboxes, or about all known ones if none are given, and returns the mailboxes whose
// state changes. It requires decideLock.
func (n *ownedMailboxes) changedOwners(mailboxes []logicalcluster.Name) (released, acquired []logicalcluster.Name) {
	for mailbox, state := range n.states {
		if len(mailboxes) > 0 && !slices.Contains(mailboxes, mailbox) {
			continue
		}
		switch isNeeded := n.decide(mailbox); {
		case isNeeded && state == unowned:
			acquired = append(acquired, mailbox)
		case !isNeeded && state != unowned:
			released = append(released, mailbox)
		}
	}
	return released, acquired
}

// forgetGone forgets the answers for deleted mailboxes, once there are many. An event of such a mailbox may still be in a queue,
// so it would not suffice to forget each mailbox at once.
func (n *ownedMailboxes) forgetGone(isGone func(logicalcluster.Name) bool) {
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

// noteChanged records mailboxes that were released or acquired. takeChanged returns them.
func (n *ownedMailboxes) noteChanged(released, acquired []logicalcluster.Name) {
	n.lock.Lock()
	defer n.lock.Unlock()
	n.released, n.acquired = append(n.released, released...), append(n.acquired, acquired...)
}

// Ownership drops the objects of mailboxes that the replica does not need any more, and lists the objects of mailboxes that it needs now.
type Ownership struct{ parts *parts }

// RecheckOwned calls [Options.Owns] again for some mailboxes, or for all if none are named. The objects of a mailbox that is
// not owned any more become Unknown and leave the caches, and no deletion is reported. The objects of a mailbox that is
// owned now are Unknown until they are listed: for few mailboxes one by one, for many by one list of each resource. In
// either case the subscribers are reset, and again after the list. RecheckOwned sends no request itself.
func (n *Ownership) RecheckOwned(mailboxes ...logicalcluster.Name) {
	if n.parts.owned.decide == nil {
		return
	}
	n.parts.owned.decideLock.Lock()
	released, acquired := n.parts.owned.changedOwners(mailboxes)
	n.release(released)
	n.acquire(acquired)
	n.parts.owned.noteChanged(released, acquired)
	n.parts.owned.decideLock.Unlock()
	if len(released)+len(acquired) == 0 {
		return
	}
	n.parts.options.Log.Info("needs the objects of other mailboxes", "acquired", len(acquired), "released", len(released))
	n.parts.owned.changed.notify()
}

// release makes the objects of mailboxes Unknown. The caches drop them later. It requires decideLock.
func (n *Ownership) release(released []logicalcluster.Name) {
	n.parts.owned.set(unowned, released...)
	informers := n.parts.endpoints.droppingInformers()
	for _, mailbox := range released {
		n.parts.absences.verifier.ForgetMailbox(mailbox)
		n.parts.usages.endEviction(mailbox, false)
		for _, informer := range informers {
			informer.waiters.done(mailbox, 0)
		}
	}
}

// acquire makes the objects of mailboxes wait for a list. It requires decideLock.
func (n *Ownership) acquire(acquired []logicalcluster.Name) {
	if len(acquired) == 0 {
		return
	}
	relistNumber := n.parts.relists.last.Add(1)
	// An informer that starts from now on drops none of their objects.
	n.parts.owned.set(acquiring, acquired...)
	informers := n.parts.endpoints.droppingInformers()
	for _, mailbox := range acquired {
		located := n.parts.endpoints.locate(mailbox)
		for _, informer := range informers {
			if located == nil || informer.endpoint == located {
				informer.waiters.await(mailbox, relistNumber)
			}
		}
	}
	n.parts.owned.set(owned, acquired...)
	for _, mailbox := range acquired {
		// An object that the caches lack must not count as deleted.
		n.parts.absences.verifier.ForgetMailbox(mailbox)
	}
}

// run drops the objects of released mailboxes and lists the objects of acquired ones until ctx ends.
func (n *Ownership) run(ctx context.Context) {
	for n.parts.owned.changed.wait(ctx) {
		released, acquired := n.parts.owned.takeChanged()
		for _, mailbox := range released {
			n.dropUnowned(mailbox)
			n.parts.subscriptions.resetMailbox(mailbox)
		}
		for _, mailbox := range acquired {
			n.parts.subscriptions.resetMailbox(mailbox)
		}
		if !requestRelists(n.parts.endpoints.droppingInformers()) {
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-n.parts.options.Clock.After(relistInterval):
			n.parts.owned.changed.notify()
		case <-n.parts.owned.changed:
			n.parts.owned.changed.notify()
		}
	}
}

// dropUnowned removes the entries of an unowned mailbox from the caches. Entries that are still in the queues of the informers are removed
// by their handlers.
func (n *Ownership) dropUnowned(mailbox logicalcluster.Name) {
	for _, informer := range n.parts.endpoints.droppingInformers() {
		for _, entry := range entriesOf(informer.shared, mailbox) {
			informer.dropIfUnowned(entry)
		}
	}
	n.parts.usages.deleteUnused(mailbox)
}

// dropIfUnowned removes an entry from the cache if its mailbox is unowned, and reports whether it is.
func (w *wildcardInformer) dropIfUnowned(entry any) bool {
	if !w.dropsUnowned {
		return false
	}
	object := toObject(entry)
	if !w.parts.owned.callIfUnowned(mailboxOf(object), func() { _ = w.shared.GetIndexer().Delete(entry) }) {
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
