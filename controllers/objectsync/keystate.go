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

package objectsync

import (
	"maps"
	"slices"
	gosync "sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/synchub-dev/synchub/controllers/internal/driftbackoff"
	"github.com/synchub-dev/synchub/controllers/internal/expectations"
	"github.com/synchub-dev/synchub/controllers/plan"
)

// keyStates holds all state of the controller's keys beside the caches, under one lock. A key that is in sync,
// and was not upsynced, has no entry.
type keyStates struct {
	clock clock.PassiveClock

	lock gosync.Mutex
	keys map[types.NamespacedName]keyState
	// failed is the number of keys that fail.
	failed int
	// epoch is the time of the first change; other times of changes are relative to it.
	epoch time.Time
	// refs are the facts about objects of the target, by their names there.
	refs map[plan.Ref]refState
	// placementCopies are the states of the copies that placements made, by their keys.
	placementCopies map[types.NamespacedName]placementCopyState
	// mailboxExpectations and targetExpectations are the writes that the caches do not show yet.
	mailboxExpectations expectations.Writes[types.NamespacedName, *unstructured.Unstructured]
	targetExpectations  expectations.Writes[plan.Ref, *cachedCopy]
}

// keyState is the state of one key. A burst creates many of them, so fields that few keys need are in details.
type keyState struct {
	// changes are when the pending changes were observed.
	changes changeTimes
	// upsynced are the objects of the target that are upsynced under the key, in a stable order; more than one if several have the
	// same name in the mailbox.
	upsynced []plan.Ref
	*details
}

// details are the fields of a key state that few keys need.
type details struct {
	// failure is why the key fails; nil if it does not. failedPasses counts its passes that failed one after the other.
	failure      *Failure
	failedPasses int
	// backoff spaces out the repairs of drift.
	backoff *driftbackoff.Backoff
	// writtenFor is the resourceVersion of the source at the last write, for objects with a rule that reads the other side.
	writtenFor string
	// deferred are fields that the hub does not ignore any more, and leaves to the target until the source changes.
	deferred []string
	// heldBack is true if the object is selected, and by the configs' own rules is not copied now.
	heldBack bool
	// removed is the copy that vanished from the target or, of an upsynced object, from the mailbox, until the hub has made it again or its
	// source has changed; nil for none.
	removed *plan.Removal
	// finished is true if the object has run to completion and has no copy any more.
	finished bool
	// former is true if copies stay on the target although their source is gone: see [plan.Decision.IsKept].
	former bool
	// awaited is the name on the target that the key waits for.
	awaited *plan.Ref
	// deletion is how the mailbox object was deleted, until its copies are gone.
	deletion *plan.Deletion
	// oldName is the key under which the object was upsynced before; it is deleted there once the new one exists.
	oldName *types.NamespacedName
}

// refState is the state of one name on the target.
type refState struct {
	// keys are the mailbox keys under which the object is upsynced; waiting are the keys that wait for the name.
	keys, waiting map[types.NamespacedName]struct{}
	// deleted is the UID of an upsynced object whose deletion was observed, until its mailbox object is gone.
	deleted types.UID
	// deletedByHub is the UID of a copy that the hub deletes, until its deletion was observed.
	deletedByHub types.UID
}

func newKeyStates(clock clock.PassiveClock) *keyStates {
	s := &keyStates{clock: clock, keys: map[types.NamespacedName]keyState{}, refs: map[plan.Ref]refState{}, placementCopies: map[types.NamespacedName]placementCopyState{}}
	s.mailboxExpectations = expectations.New[types.NamespacedName, *unstructured.Unstructured](&s.lock, clock)
	s.targetExpectations = expectations.New[plan.Ref, *cachedCopy](&s.lock, clock)
	return s
}

// put stores the state of a key, or drops an empty state. It requires the lock, as do detailed and putRef.
func (s *keyStates) put(key types.NamespacedName, state keyState) {
	if state.details != nil && state.isEmpty() {
		state.details = nil
	}
	if state.details == nil && len(state.upsynced) == 0 && state.changes == (changeTimes{}) {
		delete(s.keys, key)
		return
	}
	s.keys[key] = state
}

// isEmpty reports whether no field is set.
func (d *details) isEmpty() bool {
	return d.failure == nil && d.backoff == nil && d.writtenFor == "" && len(d.deferred) == 0 && !d.heldBack && d.removed == nil && !d.finished && !d.former && d.awaited == nil && d.deletion == nil && d.oldName == nil
}

// detailed returns the state of a key with details to write to.
func (s *keyStates) detailed(key types.NamespacedName) keyState {
	state := s.keys[key]
	if state.details == nil {
		state.details = &details{}
	}
	return state
}

// setDetail sets a detail of a key, and reports whether that changed it. A key without details gets none for a zero value.
func setDetail[V comparable](s *keyStates, key types.NamespacedName, detail func(*details) *V, value V) (changed bool) {
	s.lock.Lock()
	defer s.lock.Unlock()
	var zero V
	if value == zero && s.keys[key].details == nil {
		return false
	}
	state := s.detailed(key)
	at := detail(state.details)
	changed = *at != value
	*at = value
	s.put(key, state)
	return changed
}

// detailOf returns a detail of a key; the zero value if the key has no details.
func detailOf[V any](s *keyStates, key types.NamespacedName, detail func(*details) V) (value V) {
	s.lock.Lock()
	defer s.lock.Unlock()
	if of := s.keys[key].details; of != nil {
		value = detail(of)
	}
	return value
}

// putRef stores the state of a name on the target, or drops an empty state.
func (s *keyStates) putRef(ref plan.Ref, state refState) {
	if len(state.keys) == 0 && len(state.waiting) == 0 && state.deleted == "" && state.deletedByHub == "" {
		delete(s.refs, ref)
		return
	}
	s.refs[ref] = state
}

// setFailure records why a key fails. It returns the former failure, whether the reason has changed, and how many passes have failed.
func (s *keyStates) setFailure(key types.NamespacedName, failure Failure) (before Failure, changed bool, failedPasses int) {
	s.lock.Lock()
	defer s.lock.Unlock()
	state := s.detailed(key)
	changed = true
	if state.failure != nil {
		before = *state.failure
		changed = before.Reason != failure.Reason
	} else {
		s.failed++
	}
	state.failure = &failure
	state.failedPasses++
	s.put(key, state)
	return before, changed, state.failedPasses
}

// clearFailure records that a key does not fail. It returns the former failure, and whether there was one.
func (s *keyStates) clearFailure(key types.NamespacedName) (before Failure, failed bool) {
	s.lock.Lock()
	defer s.lock.Unlock()
	state := s.keys[key]
	if state.details == nil || state.failure == nil {
		return Failure{}, false
	}
	before, state.failure, state.failedPasses = *state.failure, nil, 0
	s.failed--
	s.put(key, state)
	return before, true
}

// failures returns why keys fail.
func (s *keyStates) failures() map[types.NamespacedName]Failure {
	s.lock.Lock()
	defer s.lock.Unlock()
	if s.failed == 0 {
		return nil
	}
	all := make(map[types.NamespacedName]Failure, s.failed)
	for key, state := range s.keys {
		if state.details != nil && state.failure != nil {
			all[key] = *state.failure
		}
	}
	return all
}

// failedKeys returns the failed keys that satisfy a predicate.
func (s *keyStates) failedKeys(is func(types.NamespacedName, Failure) bool) []types.NamespacedName {
	failures := s.failures()
	maps.DeleteFunc(failures, func(key types.NamespacedName, failure Failure) bool { return !is(key, failure) })
	return slices.Collect(maps.Keys(failures))
}

// recordWrite records the resourceVersion of the source at a write.
func (s *keyStates) recordWrite(key types.NamespacedName, resourceVersion string) {
	setDetail(s, key, func(d *details) *string { return &d.writtenFor }, resourceVersion)
}

// hasWritten reports whether the last write was for this version of the source.
func (s *keyStates) hasWritten(key types.NamespacedName, resourceVersion string) bool {
	return detailOf(s, key, func(d *details) string { return d.writtenFor }) == resourceVersion
}

// nextRepairDelay returns how long the next repair of drift must wait. It returns zero if the repair may be made now, and counts it.
func (s *keyStates) nextRepairDelay(key types.NamespacedName) (wait time.Duration) {
	s.lock.Lock()
	defer s.lock.Unlock()
	state := s.detailed(key)
	if state.backoff == nil {
		state.backoff = &driftbackoff.Backoff{}
	}
	s.put(key, state)
	return state.backoff.Next(s.clock.Now())
}

// forgetHistory drops the history of an object whose source is gone.
func (s *keyStates) forgetHistory(key types.NamespacedName) {
	s.lock.Lock()
	defer s.lock.Unlock()
	if state := s.keys[key]; state.details != nil {
		state.backoff, state.writtenFor, state.removed, state.finished = nil, "", nil, false
		s.put(key, state)
	}
}

// setDeletion records how a mailbox object was deleted; nil forgets it.
func (s *keyStates) setDeletion(key types.NamespacedName, deletion *plan.Deletion) {
	setDetail(s, key, func(d *details) **plan.Deletion { return &d.deletion }, deletion)
}

// deletionOf returns how a mailbox object was deleted; nil if it exists, or if that is not known.
func (s *keyStates) deletionOf(key types.NamespacedName) *plan.Deletion {
	return detailOf(s, key, func(d *details) *plan.Deletion { return d.deletion })
}

// setFormer records whether copies stay on the target although their source is gone.
func (s *keyStates) setFormer(key types.NamespacedName, former bool) {
	setDetail(s, key, func(d *details) *bool { return &d.former }, former)
}

// formerKeys returns the keys with copies that stay on the target although their source is gone.
func (s *keyStates) formerKeys() (keys []types.NamespacedName) {
	s.lock.Lock()
	defer s.lock.Unlock()
	for key, state := range s.keys {
		if state.details != nil && state.former {
			keys = append(keys, key)
		}
	}
	return keys
}

// setDeferred records the deferred fields of an object, and reports whether they changed.
func (s *keyStates) setDeferred(key types.NamespacedName, fields []string) (changed bool) {
	s.lock.Lock()
	defer s.lock.Unlock()
	if state := s.keys[key]; len(fields) == 0 && state.details == nil {
		return false
	}
	state := s.detailed(key)
	changed = !slices.Equal(state.deferred, fields)
	state.deferred = fields
	s.put(key, state)
	return changed
}

// setHeldBack records whether an object is held back, and reports whether that changed.
func (s *keyStates) setHeldBack(key types.NamespacedName, heldBack bool) (changed bool) {
	return setDetail(s, key, func(d *details) *bool { return &d.heldBack }, heldBack)
}

// deferredFields returns the deferred fields of all objects.
func (s *keyStates) deferredFields() map[types.NamespacedName][]string {
	s.lock.Lock()
	defer s.lock.Unlock()
	all := map[types.NamespacedName][]string{}
	for key, state := range s.keys {
		if state.details != nil && len(state.deferred) > 0 {
			all[key] = state.deferred
		}
	}
	return all
}

// rememberedKeys returns the keys that fail, are held back, or have another fact remembered.
func (s *keyStates) rememberedKeys() (keys []types.NamespacedName) {
	s.lock.Lock()
	defer s.lock.Unlock()
	for key, state := range s.keys {
		if state.details != nil {
			keys = append(keys, key)
		}
	}
	return keys
}

// addRename records that an upsynced object must be deleted under its old name once it exists under the new one.
func (s *keyStates) addRename(from, to types.NamespacedName) {
	s.lock.Lock()
	defer s.lock.Unlock()
	state := s.detailed(to)
	state.oldName = &from
	s.put(to, state)
}

// completeRename returns the old name of an object that exists under the new name now, and drops the rename.
func (s *keyStates) completeRename(to types.NamespacedName) (from types.NamespacedName, waits bool) {
	s.lock.Lock()
	defer s.lock.Unlock()
	state := s.keys[to]
	if state.details == nil || state.oldName == nil {
		return types.NamespacedName{}, false
	}
	from, state.oldName = *state.oldName, nil
	s.put(to, state)
	return from, true
}

// awaitName records the name on the target that a key waits for, nil for none. It returns the former name if no key waits for
// that one any more.
func (s *keyStates) awaitName(key types.NamespacedName, ref *plan.Ref) (left *plan.Ref) {
	s.lock.Lock()
	defer s.lock.Unlock()
	state := s.keys[key]
	if ref == nil && (state.details == nil || state.awaited == nil) {
		return nil
	}
	state = s.detailed(key)
	before := state.awaited
	if before != nil && ref != nil && *before == *ref {
		return nil
	}
	if before != nil {
		there := s.refs[*before]
		delete(there.waiting, key)
		s.putRef(*before, there)
		if len(there.waiting) == 0 {
			left = before
		}
	}
	if ref != nil {
		there := s.refs[*ref]
		if there.waiting == nil {
			there.waiting = map[types.NamespacedName]struct{}{}
		}
		there.waiting[key] = struct{}{}
		s.putRef(*ref, there)
	}
	state.awaited = ref
	s.put(key, state)
	return left
}

// keysAwaiting returns the keys that wait for a name on the target.
func (s *keyStates) keysAwaiting(ref plan.Ref) []types.NamespacedName {
	s.lock.Lock()
	defer s.lock.Unlock()
	return slices.Collect(maps.Keys(s.refs[ref].waiting))
}
