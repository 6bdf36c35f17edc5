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
	gosync "sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/plan"
)

// upsyncIndex maps keys to the target objects that are upsynced under them, and target objects to their keys.
type upsyncIndex struct {
	lock gosync.Mutex
	// keys are the objects that are upsynced under each key, in a stable order. There is more than one if several have the same
	// name in the mailbox.
	keys map[types.NamespacedName][]plan.Ref
	refs map[plan.Ref]upsyncedObject
}

// upsyncedObject is the state of an object of the target that is, or was, upsynced.
type upsyncedObject struct {
	keys map[types.NamespacedName]struct{}
	// deleted is the object's UID if its deletion was observed, until its mailbox object is gone.
	deleted types.UID
}

func newUpsyncIndex() *upsyncIndex {
	return &upsyncIndex{keys: map[types.NamespacedName][]plan.Ref{}, refs: map[plan.Ref]upsyncedObject{}}
}

// putRef stores the state of an object, or drops an empty state. It requires the lock, and so do insert and delete.
func (u *upsyncIndex) putRef(ref plan.Ref, object upsyncedObject) {
	if len(object.keys) == 0 && object.deleted == "" {
		delete(u.refs, ref)
		return
	}
	u.refs[ref] = object
}

// add indexes an upsynced object.
func (u *upsyncIndex) add(key types.NamespacedName, ref plan.Ref) {
	u.lock.Lock()
	defer u.lock.Unlock()
	u.insert(key, ref)
}

func (u *upsyncIndex) insert(key types.NamespacedName, ref plan.Ref) {
	there := u.refs[ref]
	there.deleted = ""
	if there.keys == nil {
		there.keys = map[types.NamespacedName]struct{}{}
	}
	there.keys[key] = struct{}{}
	u.refs[ref] = there
	if slices.Contains(u.keys[key], ref) {
		return
	}
	// The order must not depend on the order of events: the first object wins the name.
	refs := append(u.keys[key], ref)
	slices.SortFunc(refs, func(a, b plan.Ref) int {
		return cmp.Or(cmp.Compare(a.Resource.String(), b.Resource.String()), cmp.Compare(a.Key.String(), b.Key.String()))
	})
	u.keys[key] = refs
}

// delete ends the upsync of an object under a key.
func (u *upsyncIndex) delete(key types.NamespacedName, ref plan.Ref) {
	refs := slices.DeleteFunc(u.keys[key], func(other plan.Ref) bool { return other == ref })
	if u.keys[key] = refs; len(refs) == 0 {
		delete(u.keys, key)
	}
	there := u.refs[ref]
	delete(there.keys, key)
	u.putRef(ref, there)
}

// move indexes an object under one key only, or under none, and returns all keys that this may affect.
func (u *upsyncIndex) move(ref plan.Ref, key types.NamespacedName, comesUp bool) (concerned []types.NamespacedName) {
	u.lock.Lock()
	defer u.lock.Unlock()
	for _, name := range slices.Collect(maps.Keys(u.refs[ref].keys)) {
		if !comesUp || name != key {
			concerned = append(concerned, name)
			u.delete(name, ref)
		}
	}
	if comesUp {
		u.insert(key, ref)
		concerned = append(concerned, key)
	}
	return concerned
}

// setSourceDeleted records that the deletion of an object was observed while its mailbox object still exists.
func (u *upsyncIndex) setSourceDeleted(ref plan.Ref, uid types.UID) {
	u.lock.Lock()
	defer u.lock.Unlock()
	there := u.refs[ref]
	there.deleted = uid
	u.putRef(ref, there)
}

// isSourceDeleted reports whether the deletion of an object was observed.
func (u *upsyncIndex) isSourceDeleted(ref plan.Ref, uid types.UID) bool {
	u.lock.Lock()
	defer u.lock.Unlock()
	deleted := u.refs[ref].deleted
	return deleted != "" && deleted == uid
}

// forgetSourceDeleted drops the recorded deletion of an object whose mailbox object is gone.
func (u *upsyncIndex) forgetSourceDeleted(ref plan.Ref) { u.setSourceDeleted(ref, "") }

// refsOf returns the objects that are upsynced under a key, in a stable order.
func (u *upsyncIndex) refsOf(key types.NamespacedName) []plan.Ref {
	u.lock.Lock()
	defer u.lock.Unlock()
	return slices.Clone(u.keys[key])
}

// has reports whether an object is upsynced under a key.
func (u *upsyncIndex) has(key types.NamespacedName, ref plan.Ref) bool {
	u.lock.Lock()
	defer u.lock.Unlock()
	_, ok := u.refs[ref].keys[key]
	return ok
}

// allKeys returns all keys under which objects are upsynced.
func (u *upsyncIndex) allKeys() []types.NamespacedName {
	u.lock.Lock()
	defer u.lock.Unlock()
	return slices.Collect(maps.Keys(u.keys))
}

// removeResource drops all objects of a resource whose upsync cache is being replaced.
func (u *upsyncIndex) removeResource(resource schema.GroupResource) {
	u.lock.Lock()
	defer u.lock.Unlock()
	for _, ref := range slices.Collect(maps.Keys(u.refs)) {
		if ref.Resource != resource {
			continue
		}
		for _, key := range slices.Collect(maps.Keys(u.refs[ref].keys)) {
			u.delete(key, ref)
		}
	}
}
