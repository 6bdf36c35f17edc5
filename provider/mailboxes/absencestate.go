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
	"maps"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// absenceState is what is pending, decided and known about one mailbox.
type absenceState struct {
	running bool
	// wake ends a wait between rounds.
	wake     chan struct{}
	pending  map[AbsenceCandidate]struct{}
	verified map[AbsenceCandidate]struct{}
	// bindingVersion is the resourceVersion of the mailbox's binding, and since when it has been that.
	bindingVersion string
	bindingSince   time.Time
	// verifiedCaches holds, by resource, the binding's resourceVersion when the cache was last found to hold all that a list
	// through this binding showed.
	verifiedCaches map[schema.GroupVersionResource]string
	// massFirstVerified is when many suspects were first proven, under the binding's resourceVersion heldBinding.
	massFirstVerified  time.Time
	massBindingVersion string
	// rebound is true once it is known that the binding is not the one that the mailbox was made with.
	rebound bool
	// hiddenObjects are suspects that are in the mailbox, as the last round has found.
	hiddenObjects HiddenObjects
}

// stateLocked requires that the lock is held.
func (p *absenceVerifier) stateLocked(mailbox logicalcluster.Name) *absenceState {
	found, ok := p.states[mailbox]
	if !ok {
		found = &absenceState{
			wake:           make(chan struct{}, 1),
			pending:        map[AbsenceCandidate]struct{}{},
			verified:       map[AbsenceCandidate]struct{}{},
			verifiedCaches: map[schema.GroupVersionResource]string{},
		}
		p.states[mailbox] = found
	}
	return found
}

// clear forgets what was suspected or proven of an object that is seen again.
func (p *absenceVerifier) clear(mailbox logicalcluster.Name, candidate AbsenceCandidate) {
	p.lock.Lock()
	defer p.lock.Unlock()
	if state, ok := p.states[mailbox]; ok {
		delete(state.pending, candidate)
		delete(state.verified, candidate)
	}
}

// requireRelist makes the next proof for the resource list it.
func (p *absenceVerifier) requireRelist(mailbox logicalcluster.Name, resource schema.GroupVersionResource) {
	p.lock.Lock()
	defer p.lock.Unlock()
	if state, ok := p.states[mailbox]; ok {
		delete(state.verifiedCaches, resource)
	}
}

// forgetResource forgets all that is suspected, proven and known of a resource, in all mailboxes.
func (p *absenceVerifier) forgetResource(resource schema.GroupVersionResource) {
	p.lock.Lock()
	defer p.lock.Unlock()
	isOfIt := func(suspect AbsenceCandidate, _ struct{}) bool { return suspect.Resource == resource }
	for _, state := range p.states {
		maps.DeleteFunc(state.pending, isOfIt)
		maps.DeleteFunc(state.verified, isOfIt)
		delete(state.verifiedCaches, resource)
		if len(state.pending) == 0 {
			state.notify()
		}
	}
}

func (p *absenceVerifier) observeBinding(mailbox logicalcluster.Name, resourceVersion string) {
	p.lock.Lock()
	defer p.lock.Unlock()
	state := p.stateLocked(mailbox)
	if state.bindingVersion != resourceVersion {
		state.bindingVersion, state.bindingSince = resourceVersion, p.clock.Now()
		state.notify()
	}
}

func (d *absenceState) notify() {
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// forgetMailbox drops all that is known and suspected about a mailbox that is not bound any more.
func (p *absenceVerifier) forgetMailbox(mailbox logicalcluster.Name) {
	p.lock.Lock()
	defer p.lock.Unlock()
	state, ok := p.states[mailbox]
	switch {
	case !ok:
	case state.running:
		// The run ends when nothing is pending, and drops a state without a binding.
		state.bindingVersion, state.massBindingVersion, state.rebound, state.hiddenObjects = "", "", false, HiddenObjects{}
		clear(state.pending)
		clear(state.verified)
		clear(state.verifiedCaches)
		state.notify()
	default:
		delete(p.states, mailbox)
	}
}

// markRebound notes that a mailbox was bound again, and tells whether that is news.
func (p *absenceVerifier) markRebound(mailbox logicalcluster.Name) bool {
	p.lock.Lock()
	defer p.lock.Unlock()
	state := p.stateLocked(mailbox)
	news := !state.rebound
	state.rebound = true
	return news
}

func (p *absenceVerifier) bindingUnchangedSince(mailbox logicalcluster.Name) time.Time {
	p.lock.Lock()
	defer p.lock.Unlock()
	return p.stateLocked(mailbox).bindingSince
}

func (p *absenceVerifier) isCacheVerified(mailbox logicalcluster.Name, resource schema.GroupVersionResource, bindingVersion string) bool {
	p.lock.Lock()
	defer p.lock.Unlock()
	return p.stateLocked(mailbox).verifiedCaches[resource] == bindingVersion
}

// isMassConfirmed tells whether many suspects were proven under the same binding long enough ago; the first time, it notes that
// they are now.
func (p *absenceVerifier) isMassConfirmed(mailbox logicalcluster.Name, bindingVersion string) bool {
	p.lock.Lock()
	defer p.lock.Unlock()
	state := p.stateLocked(mailbox)
	// A hold that nobody came back to is from another time.
	if state.massBindingVersion != bindingVersion || p.clock.Since(state.massFirstVerified) > 2*massDeletionDelay+passTimeout {
		state.massBindingVersion, state.massFirstVerified = bindingVersion, p.clock.Now()
		return false
	}
	if p.clock.Since(state.massFirstVerified) < massDeletionDelay {
		return false
	}
	state.massBindingVersion = ""
	return true
}
