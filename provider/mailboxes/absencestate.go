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

// absenceState is the state of one mailbox: pending candidates, verifications, and facts about the binding.
type absenceState struct {
	running bool
	// wake ends a wait between passes.
	wake     chan struct{}
	pending  map[AbsenceCandidate]struct{}
	verified map[AbsenceCandidate]struct{}
	// bindingVersion is the resourceVersion of the mailbox's binding, unchanged since bindingSince.
	bindingVersion string
	bindingSince   time.Time
	// verifiedCaches holds, for each resource, the binding's resourceVersion at which the cache held all objects of a list.
	verifiedCaches map[schema.GroupVersionResource]string
	// massFirstVerified is when many candidates were first verified, under the binding's resourceVersion massBindingVersion.
	massFirstVerified  time.Time
	massBindingVersion string
	// rebound is true once the binding is known not to be the one that the mailbox was created with.
	rebound bool
	// hiddenObjects are candidates that exist in the mailbox, by the last pass.
	hiddenObjects HiddenObjects
}

// stateLocked requires the lock.
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

// clear drops the candidate, or the verification, of an object that is visible again.
func (p *absenceVerifier) clear(mailbox logicalcluster.Name, candidate AbsenceCandidate) {
	p.lock.Lock()
	defer p.lock.Unlock()
	if state, ok := p.states[mailbox]; ok {
		delete(state.pending, candidate)
		delete(state.verified, candidate)
	}
}

// requireRelist makes the next verification of the resource list it.
func (p *absenceVerifier) requireRelist(mailbox logicalcluster.Name, resource schema.GroupVersionResource) {
	p.lock.Lock()
	defer p.lock.Unlock()
	if state, ok := p.states[mailbox]; ok {
		delete(state.verifiedCaches, resource)
	}
}

// forgetResource drops all state of a resource, in all mailboxes.
func (p *absenceVerifier) forgetResource(resource schema.GroupVersionResource) {
	p.lock.Lock()
	defer p.lock.Unlock()
	isOfIt := func(candidate AbsenceCandidate, _ struct{}) bool { return candidate.Resource == resource }
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

// forgetMailbox drops all state of a mailbox that is not bound any more.
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

// markRebound notes that a mailbox was bound again, and reports whether that is new.
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

// isMassConfirmed reports whether many candidates were verified under the same binding long enough ago. The first time, it
// notes that they are now.
func (p *absenceVerifier) isMassConfirmed(mailbox logicalcluster.Name, bindingVersion string) bool {
	p.lock.Lock()
	defer p.lock.Unlock()
	state := p.stateLocked(mailbox)
	// An older wait that nobody came back to does not count.
	if state.massBindingVersion != bindingVersion || p.clock.Since(state.massFirstVerified) > 2*p.delays.MassDeletion+passTimeout {
		state.massBindingVersion, state.massFirstVerified = bindingVersion, p.clock.Now()
		return false
	}
	if p.clock.Since(state.massFirstVerified) < p.delays.MassDeletion {
		return false
	}
	state.massBindingVersion = ""
	return true
}
