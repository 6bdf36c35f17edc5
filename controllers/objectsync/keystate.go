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

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/synchub-dev/synchub/controllers/internal/writes"
	"github.com/synchub-dev/synchub/controllers/plan"
)

// keyStates contains facts about keys that the caches do not contain. A key that is in sync has no entry.
type keyStates struct {
	clock clock.PassiveClock

	lock gosync.Mutex
	keys map[types.NamespacedName]*keyState
	// failed is the number of keys that fail.
	failed int
}

// keyState is the state of one key.
type keyState struct {
	// failure is why the key fails; nil if it does not. failedPasses counts its consecutive failed passes.
	failure      *Failure
	failedPasses int
	// backoff spaces out the repairs of drift.
	backoff *writes.DriftBackoff
	// writtenFor is the resourceVersion of the source at the last write, for objects with a rule that reads the other side.
	writtenFor string
	// removed is the copy that somebody removed from the target or, if the object is upsynced, from the mailbox. It is nil once
	// the hub has created the copy again, or the source has changed.
	removed *plan.Removal
	// deletion has the propagation policy of the mailbox object's deletion, until its copies are gone.
	deletion *plan.Deletion
	findings
	// oldName is the key under which the object was upsynced before. The old object is deleted once the new one exists.
	oldName *types.NamespacedName
}

// findings are results of the last pass, beside the failure.
type findings struct {
	// deferred are fields that the hub no longer ignores, but leaves unchanged on the target until the source changes.
	deferred []string
	// drift is how the copy differs, if the hub only reports that; nil for none.
	drift *driftReport
	// excluded is true if the object is selected, but the configs' own rules keep it from being copied.
	excluded bool
	// finished is true if the object has run to completion and no longer has a copy.
	finished bool
	// former is true if copies stay on the target although their source is gone: see [plan.Decision.IsKept].
	former bool
}

func newKeyStates(clock clock.PassiveClock) *keyStates {
	return &keyStates{clock: clock, keys: map[types.NamespacedName]*keyState{}}
}

// state returns the state of a key to write to. It requires the lock, and so does put.
func (s *keyStates) state(key types.NamespacedName) *keyState {
	if state := s.keys[key]; state != nil {
		return state
	}
	return &keyState{}
}

// put stores the state of a key, or drops an empty state.
func (s *keyStates) put(key types.NamespacedName, state *keyState) {
	if state.isEmpty() {
		delete(s.keys, key)
		return
	}
	s.keys[key] = state
}

// isEmpty reports whether no field is set.
func (s *keyState) isEmpty() bool {
	return s.failure == nil && s.backoff == nil && s.writtenFor == "" && s.removed == nil && s.deletion == nil && s.oldName == nil && s.findings.isEmpty()
}

func (f *findings) isEmpty() bool {
	return len(f.deferred) == 0 && f.drift == nil && !f.excluded && !f.finished && !f.former
}

// set sets a field of a key's state, and reports whether that changed it. A key without a state gets none for a zero value.
func set[V comparable](s *keyStates, key types.NamespacedName, field func(*keyState) *V, value V) (changed bool) {
	s.lock.Lock()
	defer s.lock.Unlock()
	var zero V
	if value == zero && s.keys[key] == nil {
		return false
	}
	state := s.state(key)
	at := field(state)
	changed = *at != value
	*at = value
	s.put(key, state)
	return changed
}

// get returns a field of a key's state; the zero value if the key has none.
func get[V any](s *keyStates, key types.NamespacedName, field func(*keyState) V) (value V) {
	s.lock.Lock()
	defer s.lock.Unlock()
	if state := s.keys[key]; state != nil {
		value = field(state)
	}
	return value
}

// setFailure records why a key fails. It returns the former failure, whether the reason has changed, and how many passes have failed.
func (s *keyStates) setFailure(key types.NamespacedName, failure Failure) (before Failure, changed bool, failedPasses int) {
	s.lock.Lock()
	defer s.lock.Unlock()
	state := s.state(key)
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

// failedCount returns the number of keys that fail.
func (s *keyStates) failedCount() int {
	s.lock.Lock()
	defer s.lock.Unlock()
	return s.failed
}

// clearFailure records that a key does not fail. It returns the former failure, and whether there was one.
func (s *keyStates) clearFailure(key types.NamespacedName) (before Failure, failed bool) {
	s.lock.Lock()
	defer s.lock.Unlock()
	state := s.keys[key]
	if state == nil || state.failure == nil {
		return Failure{}, false
	}
	before, state.failure, state.failedPasses = *state.failure, nil, 0
	s.failed--
	s.put(key, state)
	return before, true
}

// failureOf returns why a key fails; nil if it does not.
func (s *keyStates) failureOf(key types.NamespacedName) *Failure {
	return get(s, key, func(k *keyState) *Failure { return k.failure })
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
		if state.failure != nil {
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
	set(s, key, func(k *keyState) *string { return &k.writtenFor }, resourceVersion)
}

// hasWritten reports whether the last write was for this version of the source.
func (s *keyStates) hasWritten(key types.NamespacedName, resourceVersion string) bool {
	return get(s, key, func(k *keyState) string { return k.writtenFor }) == resourceVersion
}

// nextRepairDelay returns how long the next repair of drift must wait. It returns zero if the repair may be made now, and counts it.
func (s *keyStates) nextRepairDelay(key types.NamespacedName) (wait time.Duration) {
	s.lock.Lock()
	defer s.lock.Unlock()
	state := s.state(key)
	if state.backoff == nil {
		state.backoff = &writes.DriftBackoff{}
	}
	s.put(key, state)
	return state.backoff.Next(s.clock.Now())
}

// forgetHistory drops the history of an object whose source is gone.
func (s *keyStates) forgetHistory(key types.NamespacedName) {
	s.lock.Lock()
	defer s.lock.Unlock()
	if state := s.keys[key]; state != nil {
		state.backoff, state.writtenFor, state.removed, state.finished = nil, "", nil, false
		s.put(key, state)
	}
}

// setDeletion records the propagation policy of a mailbox object's deletion; nil drops it.
func (s *keyStates) setDeletion(key types.NamespacedName, deletion *plan.Deletion) {
	set(s, key, func(k *keyState) **plan.Deletion { return &k.deletion }, deletion)
}

// deletionOf returns the propagation policy of a mailbox object's deletion; nil if the object exists, or the policy is unknown.
func (s *keyStates) deletionOf(key types.NamespacedName) *plan.Deletion {
	return get(s, key, func(k *keyState) *plan.Deletion { return k.deletion })
}

// setFindings records the results of a pass, and reports whether the status of a config may have changed.
func (s *keyStates) setFindings(key types.NamespacedName, found findings) (changed bool) {
	s.lock.Lock()
	defer s.lock.Unlock()
	if found.isEmpty() && s.keys[key] == nil {
		return false
	}
	state := s.state(key)
	changed = !slices.Equal(state.deferred, found.deferred) || state.excluded != found.excluded || state.finished != found.finished
	state.findings = found
	s.put(key, state)
	return changed
}

// driftOf returns how a copy differed at the last pass; nil if the hub did not report that.
func (s *keyStates) driftOf(key types.NamespacedName) *driftReport {
	return get(s, key, func(k *keyState) *driftReport { return k.drift })
}

// formerKeys returns the keys with copies that stay on the target although their source is gone.
func (s *keyStates) formerKeys() (keys []types.NamespacedName) {
	s.lock.Lock()
	defer s.lock.Unlock()
	for key, state := range s.keys {
		if state.former {
			keys = append(keys, key)
		}
	}
	return keys
}

// deferredFields returns the deferred fields of all objects.
func (s *keyStates) deferredFields() map[types.NamespacedName][]string {
	s.lock.Lock()
	defer s.lock.Unlock()
	all := map[types.NamespacedName][]string{}
	for key, state := range s.keys {
		if len(state.deferred) > 0 {
			all[key] = state.deferred
		}
	}
	return all
}

// rememberedKeys returns all keys with a state.
func (s *keyStates) rememberedKeys() []types.NamespacedName {
	s.lock.Lock()
	defer s.lock.Unlock()
	return slices.Collect(maps.Keys(s.keys))
}

// addRename records that an upsynced object must be deleted under its old name once it exists under the new one.
func (s *keyStates) addRename(from, to types.NamespacedName) {
	set(s, to, func(k *keyState) **types.NamespacedName { return &k.oldName }, &from)
}

// completeRename returns the old name of an object that now exists under the new name, and drops the rename.
func (s *keyStates) completeRename(to types.NamespacedName) (from types.NamespacedName, waits bool) {
	s.lock.Lock()
	defer s.lock.Unlock()
	state := s.keys[to]
	if state == nil || state.oldName == nil {
		return types.NamespacedName{}, false
	}
	from, state.oldName = *state.oldName, nil
	s.put(to, state)
	return from, true
}

// recordRemoval records that somebody else removed the copy of a mailbox object, or an upsynced object from the mailbox.
func (s *keyStates) recordRemoval(key types.NamespacedName, removed *plan.Removal) {
	set(s, key, func(k *keyState) **plan.Removal { return &k.removed }, removed)
}

// removal returns the copy that somebody else removed; nil for none.
func (s *keyStates) removal(key types.NamespacedName) *plan.Removal {
	return get(s, key, func(k *keyState) *plan.Removal { return k.removed })
}

// forgetRemoval drops the removed copy of an object, unless another copy was removed since.
func (s *keyStates) forgetRemoval(key types.NamespacedName, removed *plan.Removal) {
	s.lock.Lock()
	defer s.lock.Unlock()
	if state := s.keys[key]; removed != nil && state != nil && state.removed == removed {
		state.removed = nil
		s.put(key, state)
	}
}

// isFinished reports whether an object has run to completion and no longer has a copy.
func (s *keyStates) isFinished(key types.NamespacedName) bool {
	return get(s, key, func(k *keyState) bool { return k.finished })
}

// refundRemoval takes back the last repair of a key with a removal, because the object was not removed after all.
func (s *keyStates) refundRemoval(key types.NamespacedName) {
	if s.removal(key) != nil {
		s.refundRepair(key)
	}
}

// refundRepair takes back the last repair that [keyStates.nextRepairDelay] counted, because it failed.
func (s *keyStates) refundRepair(key types.NamespacedName) {
	s.lock.Lock()
	defer s.lock.Unlock()
	if state := s.keys[key]; state != nil && state.backoff != nil {
		state.backoff.Refund()
	}
}
