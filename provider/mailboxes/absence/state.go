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
	"maps"
	"slices"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// state is the state of one mailbox: pending candidates, verifications, and facts about the binding.
type state struct {
	running bool
	// wake ends a wait between passes.
	wake chan struct{}
	// pending holds the request for each candidate.
	pending  map[Candidate]request
	verified map[Candidate]struct{}
	// requests counts the requests.
	requests int
	// bindingVersion is the resourceVersion of the mailbox's binding, unchanged since bindingSince.
	bindingVersion string
	bindingSince   time.Time
	// verifiedCaches holds, for each resource, the binding's resourceVersion at which the cache held all objects of a list.
	verifiedCaches map[schema.GroupVersionResource]string
	// witnesses holds, for each resource, the latest known version of an object that may be deleted, until a list has shown that
	// the store contains that version.
	witnesses map[schema.GroupVersionResource]Witness
	// massFirstVerified is the time of the first verification of a mass deletion, and massBindingVersion the binding's
	// resourceVersion then.
	massFirstVerified  time.Time
	massBindingVersion string
	// rebound is true once the binding is known not to be the one that the mailbox was created with.
	rebound bool
	// hiddenObjects are the candidates that the last pass found to exist in the mailbox.
	hiddenObjects HiddenObjects
}

// request is the request for a candidate. A candidate that was cleared and requested again has another number, so that a pass which began
// before does not verify it.
type request struct {
	number int
	since  time.Time
}

// addPending makes a candidate pending. One that is pending already keeps its time.
func (s *state) addPending(candidate Candidate, now time.Time) {
	s.requests++
	if before, ok := s.pending[candidate]; ok {
		now = before.since
	}
	s.pending[candidate] = request{s.requests, now}
}

// Pending returns the number of pending candidates of all mailboxes, and when the oldest was requested; zero if there are none.
func (v *Verifier) Pending() (count int, since time.Time) {
	v.lock.Lock()
	defer v.lock.Unlock()
	for _, state := range v.states {
		count += len(state.pending)
		for _, request := range state.pending {
			if since.IsZero() || request.since.Before(since) {
				since = request.since
			}
		}
	}
	return count, since
}

// notify ends a wait between passes.
func (s *state) notify() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// stateLocked returns the state of a mailbox, and creates it if there is none. It requires the lock.
func (v *Verifier) stateLocked(mailbox logicalcluster.Name) *state {
	found, ok := v.states[mailbox]
	if !ok {
		found = &state{
			wake:           make(chan struct{}, 1),
			pending:        map[Candidate]request{},
			verified:       map[Candidate]struct{}{},
			verifiedCaches: map[schema.GroupVersionResource]string{},
			witnesses:      map[schema.GroupVersionResource]Witness{},
		}
		v.states[mailbox] = found
	}
	return found
}

// pendingCandidates returns the pending candidates with their requests, and ends the run if there are none.
func (v *Verifier) pendingCandidates(ctx context.Context, mailbox logicalcluster.Name) map[Candidate]request {
	v.lock.Lock()
	defer v.lock.Unlock()
	state := v.stateLocked(mailbox)
	if ctx.Err() == nil && len(state.pending) > 0 {
		return maps.Clone(state.pending)
	}
	state.running, state.hiddenObjects = false, HiddenObjects{}
	if state.bindingVersion == "" {
		delete(v.states, mailbox)
	}
	return nil
}

// applyResult keeps verifications for [Verifier.TakeVerified], unless [Verifier.Clear] dropped the candidate since the pass
// began with these requests, even if it is pending again.
func (v *Verifier) applyResult(mailbox logicalcluster.Name, requested map[Candidate]request, result passResult) {
	v.lock.Lock()
	state := v.stateLocked(mailbox)
	var decided []Candidate
	for _, candidate := range result.verified {
		if request, ok := state.pending[candidate]; ok && request.number == requested[candidate].number {
			delete(state.pending, candidate)
			state.verified[candidate] = struct{}{}
			decided = append(decided, candidate)
		}
	}
	for _, candidate := range result.cleared {
		delete(state.pending, candidate)
	}
	v.lock.Unlock()
	for _, candidate := range append(decided, result.cleared...) {
		v.cache.OnAbsenceDecided(mailbox, candidate)
	}
}

// Clear drops the candidate, or the verification, of an object that is visible again.
func (v *Verifier) Clear(mailbox logicalcluster.Name, candidate Candidate) {
	v.lock.Lock()
	defer v.lock.Unlock()
	if state, ok := v.states[mailbox]; ok {
		delete(state.pending, candidate)
		delete(state.verified, candidate)
	}
}

// RequireRelist makes the next pass list the resource instead of trusting the cache.
func (v *Verifier) RequireRelist(mailbox logicalcluster.Name, resource schema.GroupVersionResource) {
	v.lock.Lock()
	defer v.lock.Unlock()
	if state, ok := v.states[mailbox]; ok {
		delete(state.verifiedCaches, resource)
	}
}

// NoteWitness records a version of an object that may be deleted. The next list of the resource checks that the store contained
// the object at that version. While the cache follows a resource without a gap since such a list, it needs no witness.
func (v *Verifier) NoteWitness(mailbox logicalcluster.Name, resource schema.GroupVersionResource, witness Witness) {
	v.lock.Lock()
	defer v.lock.Unlock()
	state, ok := v.states[mailbox]
	if !ok || state.witnesses[resource].Version >= witness.Version {
		return
	}
	if verified, ok := state.verifiedCaches[resource]; !ok || verified != state.bindingVersion {
		state.witnesses[resource] = witness
	}
}

// witnessOf returns the witness of a resource; its version is zero if there is none.
func (v *Verifier) witnessOf(mailbox logicalcluster.Name, resource schema.GroupVersionResource) Witness {
	v.lock.Lock()
	defer v.lock.Unlock()
	return v.stateLocked(mailbox).witnesses[resource]
}

// dropWitness drops a witness that the store contains, unless there is a later one.
func (v *Verifier) dropWitness(mailbox logicalcluster.Name, resource schema.GroupVersionResource, known Witness) {
	v.lock.Lock()
	defer v.lock.Unlock()
	if state := v.stateLocked(mailbox); state.witnesses[resource] == known {
		delete(state.witnesses, resource)
	}
}

// ForgetResource drops all state of a resource, in all mailboxes.
func (v *Verifier) ForgetResource(resource schema.GroupVersionResource) {
	v.lock.Lock()
	defer v.lock.Unlock()
	isOfResource := func(candidate Candidate) bool { return candidate.Resource == resource }
	for _, state := range v.states {
		maps.DeleteFunc(state.pending, func(candidate Candidate, _ request) bool { return isOfResource(candidate) })
		maps.DeleteFunc(state.verified, func(candidate Candidate, _ struct{}) bool { return isOfResource(candidate) })
		delete(state.verifiedCaches, resource)
		delete(state.witnesses, resource)
		if len(state.pending) == 0 {
			state.notify()
		}
	}
}

// ForgetMailbox drops all state of a mailbox that is not bound any more.
func (v *Verifier) ForgetMailbox(mailbox logicalcluster.Name) {
	v.lock.Lock()
	defer v.lock.Unlock()
	state, ok := v.states[mailbox]
	switch {
	case !ok:
	case state.running:
		// The run ends when nothing is pending, and deletes a state without a binding.
		state.bindingVersion, state.massBindingVersion, state.rebound, state.hiddenObjects = "", "", false, HiddenObjects{}
		clear(state.pending)
		clear(state.verified)
		clear(state.verifiedCaches)
		clear(state.witnesses)
		state.notify()
	default:
		delete(v.states, mailbox)
	}
}

// ObserveBinding records the resourceVersion of a mailbox's binding. A new one starts the next pass at once.
func (v *Verifier) ObserveBinding(mailbox logicalcluster.Name, resourceVersion string) {
	v.lock.Lock()
	defer v.lock.Unlock()
	state := v.stateLocked(mailbox)
	if state.bindingVersion != resourceVersion {
		state.bindingVersion, state.bindingSince = resourceVersion, v.clock.Now()
		state.notify()
	}
}

// bindingUnchangedSince returns when the binding was first observed at its current resourceVersion.
func (v *Verifier) bindingUnchangedSince(mailbox logicalcluster.Name) time.Time {
	v.lock.Lock()
	defer v.lock.Unlock()
	return v.stateLocked(mailbox).bindingSince
}

// markRebound records that a mailbox was bound again, and reports whether that is new.
func (v *Verifier) markRebound(mailbox logicalcluster.Name) bool {
	v.lock.Lock()
	defer v.lock.Unlock()
	state := v.stateLocked(mailbox)
	isNew := !state.rebound
	state.rebound = true
	return isNew
}

// setHidden records the hidden objects that a pass has found.
func (v *Verifier) setHidden(mailbox logicalcluster.Name, hidden []Candidate) {
	v.lock.Lock()
	defer v.lock.Unlock()
	found := HiddenObjects{Count: len(hidden)}
	if len(hidden) > 0 {
		found.Example = slices.MinFunc(hidden, Candidate.compare)
	}
	v.stateLocked(mailbox).hiddenObjects = found
}

// setCacheVerified records that the cache held all objects of a list under a resourceVersion of the binding.
func (v *Verifier) setCacheVerified(mailbox logicalcluster.Name, resource schema.GroupVersionResource, bindingVersion string) {
	v.lock.Lock()
	defer v.lock.Unlock()
	v.stateLocked(mailbox).verifiedCaches[resource] = bindingVersion
}

// isCacheVerified reports whether the cache held all objects of a list under this resourceVersion of the binding.
func (v *Verifier) isCacheVerified(mailbox logicalcluster.Name, resource schema.GroupVersionResource, bindingVersion string) bool {
	v.lock.Lock()
	defer v.lock.Unlock()
	return v.stateLocked(mailbox).verifiedCaches[resource] == bindingVersion
}

// isMassConfirmed reports whether a mass deletion was verified under the same binding long enough ago. The first call records
// the verification.
func (v *Verifier) isMassConfirmed(mailbox logicalcluster.Name, bindingVersion string) bool {
	v.lock.Lock()
	defer v.lock.Unlock()
	state := v.stateLocked(mailbox)
	// A first verification expires when no second one follows in time.
	if state.massBindingVersion != bindingVersion || v.clock.Since(state.massFirstVerified) > 2*v.delays.MassDeletion+passTimeout {
		state.massBindingVersion, state.massFirstVerified = bindingVersion, v.clock.Now()
		return false
	}
	if v.clock.Since(state.massFirstVerified) < v.delays.MassDeletion {
		return false
	}
	state.massBindingVersion = ""
	return true
}
