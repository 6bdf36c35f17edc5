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
	"cmp"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/plan"
)

// The index of upsynced objects: which objects of the target are upsynced under a key, and under which keys an object is.

// addUpsynced indexes an upsynced object.
func (s *keyStates) addUpsynced(key types.NamespacedName, ref plan.Ref) {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.indexUpsynced(key, ref)
}

// indexUpsynced requires the lock.
func (s *keyStates) indexUpsynced(key types.NamespacedName, ref plan.Ref) {
	there := s.refs[ref]
	there.deleted = ""
	if there.keys == nil {
		there.keys = map[types.NamespacedName]struct{}{}
	}
	there.keys[key] = struct{}{}
	s.putRef(ref, there)
	state := s.keys[key]
	if slices.Contains(state.upsynced, ref) {
		return
	}
	// The order must not depend on the order of events: the first object wins the name.
	state.upsynced = append(state.upsynced, ref)
	slices.SortFunc(state.upsynced, func(a, b plan.Ref) int {
		return cmp.Or(cmp.Compare(a.Resource.String(), b.Resource.String()), cmp.Compare(a.Key.String(), b.Key.String()))
	})
	s.put(key, state)
}

// unindexUpsynced ends the upsync of an object under a key; it requires the lock.
func (s *keyStates) unindexUpsynced(key types.NamespacedName, ref plan.Ref) {
	state := s.keys[key]
	state.upsynced = slices.DeleteFunc(state.upsynced, func(other plan.Ref) bool { return other == ref })
	s.put(key, state)
	there := s.refs[ref]
	delete(there.keys, key)
	s.putRef(ref, there)
}

// moveUpsynced indexes an object under one key only, or under none, and returns all keys that this may concern.
func (s *keyStates) moveUpsynced(ref plan.Ref, key types.NamespacedName, comesUp bool) (concerned []types.NamespacedName) {
	s.lock.Lock()
	defer s.lock.Unlock()
	for _, name := range slices.Collect(maps.Keys(s.refs[ref].keys)) {
		if !comesUp || name != key {
			concerned = append(concerned, name)
			s.unindexUpsynced(name, ref)
		}
	}
	if comesUp {
		s.indexUpsynced(key, ref)
		concerned = append(concerned, key)
	}
	return concerned
}

// setSourceDeleted notes that the deletion of an object was observed whose mailbox object still exists.
func (s *keyStates) setSourceDeleted(ref plan.Ref, uid types.UID) {
	s.lock.Lock()
	defer s.lock.Unlock()
	there := s.refs[ref]
	there.deleted = uid
	s.putRef(ref, there)
}

// isSourceDeleted reports whether the deletion of an object was observed.
func (s *keyStates) isSourceDeleted(ref plan.Ref, uid types.UID) bool {
	s.lock.Lock()
	defer s.lock.Unlock()
	deleted := s.refs[ref].deleted
	return deleted != "" && deleted == uid
}

// forgetSourceDeleted forgets the deletion of an object whose mailbox object is gone.
func (s *keyStates) forgetSourceDeleted(ref plan.Ref) { s.setSourceDeleted(ref, "") }

// upsyncedRefs returns the objects that are upsynced under a key, in a stable order.
func (s *keyStates) upsyncedRefs(key types.NamespacedName) []plan.Ref {
	s.lock.Lock()
	defer s.lock.Unlock()
	return slices.Clone(s.keys[key].upsynced)
}

// upsyncedKeys returns all keys under which objects are upsynced.
func (s *keyStates) upsyncedKeys() []types.NamespacedName {
	s.lock.Lock()
	defer s.lock.Unlock()
	var keys []types.NamespacedName
	for key, state := range s.keys {
		if len(state.upsynced) > 0 {
			keys = append(keys, key)
		}
	}
	return keys
}

// removeUpsyncedResource drops all objects of a resource whose upsync cache is being replaced.
func (s *keyStates) removeUpsyncedResource(resource schema.GroupResource) {
	s.lock.Lock()
	defer s.lock.Unlock()
	for _, ref := range slices.Collect(maps.Keys(s.refs)) {
		if ref.Resource != resource {
			continue
		}
		for _, key := range slices.Collect(maps.Keys(s.refs[ref].keys)) {
			s.unindexUpsynced(key, ref)
		}
	}
}
