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
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/plan"
)

// deletionStarted is called before the hub deletes a copy, and with an empty UID if that failed.
func (s *keyStates) deletionStarted(ref plan.Ref, uid types.UID) {
	s.lock.Lock()
	defer s.lock.Unlock()
	state := s.refs[ref]
	state.deletedByHub = uid
	s.putRef(ref, state)
}

// deletionObserved reports whether the hub deleted a copy that is gone now.
func (s *keyStates) deletionObserved(ref plan.Ref, uid types.UID) (byHub bool) {
	s.lock.Lock()
	defer s.lock.Unlock()
	state, ok := s.refs[ref]
	if !ok || state.deletedByHub == "" {
		return false
	}
	byHub = state.deletedByHub == uid
	state.deletedByHub = ""
	s.putRef(ref, state)
	return byHub
}

// recordRemoval records that somebody else removed the copy of a mailbox object, or an upsynced object from the mailbox.
func (s *keyStates) recordRemoval(key types.NamespacedName, removed *plan.Removal) {
	setDetail(s, key, func(d *details) **plan.Removal { return &d.removed }, removed)
}

// removal returns the copy that somebody else removed; nil for none.
func (s *keyStates) removal(key types.NamespacedName) *plan.Removal {
	return detailOf(s, key, func(d *details) *plan.Removal { return d.removed })
}

// forgetRemoval drops the removed copy of an object, unless another one was removed since.
func (s *keyStates) forgetRemoval(key types.NamespacedName, removed *plan.Removal) {
	s.lock.Lock()
	defer s.lock.Unlock()
	if state := s.keys[key]; removed != nil && state.details != nil && state.removed == removed {
		state.removed = nil
		s.put(key, state)
	}
}

// setFinished records whether an object has run to completion and has no copy any more, and reports whether that changed.
func (s *keyStates) setFinished(key types.NamespacedName, finished bool) (changed bool) {
	return setDetail(s, key, func(d *details) *bool { return &d.finished }, finished)
}

// isFinished reports whether an object has run to completion and has no copy any more.
func (s *keyStates) isFinished(key types.NamespacedName) bool {
	return detailOf(s, key, func(d *details) bool { return d.finished })
}

// refundRemoval takes back the repair of a removed object that was not removed after all.
func (s *keyStates) refundRemoval(key types.NamespacedName) {
	if s.removal(key) != nil {
		s.refundRepair(key)
	}
}

// refundRepair takes back the last repair that [keyStates.nextRepairDelay] counted, because it failed.
func (s *keyStates) refundRepair(key types.NamespacedName) {
	s.lock.Lock()
	defer s.lock.Unlock()
	if details := s.keys[key].details; details != nil && details.backoff != nil {
		details.backoff.Refund()
	}
}
