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
	"slices"
	gosync "sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/objectsync/plan"
)

// upsyncIndex maps mailbox keys to the target objects that are upsynced under them, and back.
type upsyncIndex struct {
	lock gosync.Mutex
	// refs has one object for each key, unless several have the same name in the mailbox.
	refs map[types.NamespacedName][]plan.Ref
	// names is the reverse index.
	names map[plan.Ref]map[types.NamespacedName]struct{}
	// deleted holds target objects whose deletion was observed, until their mailbox objects are gone.
	deleted map[plan.Ref]types.UID
}

func newUpsyncIndex() *upsyncIndex {
	return &upsyncIndex{
		refs:    map[types.NamespacedName][]plan.Ref{},
		names:   map[plan.Ref]map[types.NamespacedName]struct{}{},
		deleted: map[plan.Ref]types.UID{},
	}
}

// add indexes an upsynced object.
func (r *upsyncIndex) add(key types.NamespacedName, ref plan.Ref) {
	r.lock.Lock()
	defer r.lock.Unlock()
	delete(r.deleted, ref)
	if slices.Contains(r.refs[key], ref) {
		return
	}
	r.refs[key] = append(r.refs[key], ref)
	if r.names[ref] == nil {
		r.names[ref] = map[types.NamespacedName]struct{}{}
	}
	r.names[ref][key] = struct{}{}
	// The order must not depend on the order of events: the first object wins the name.
	slices.SortFunc(r.refs[key], func(a, b plan.Ref) int {
		return cmp.Or(cmp.Compare(a.Resource.String(), b.Resource.String()), cmp.Compare(a.Key.String(), b.Key.String()))
	})
}

// remove ends the upsync of an object under a key.
func (r *upsyncIndex) remove(key types.NamespacedName, ref plan.Ref) {
	r.lock.Lock()
	defer r.lock.Unlock()
	r.refs[key] = slices.DeleteFunc(r.refs[key], func(p plan.Ref) bool { return p == ref })
	if len(r.refs[key]) == 0 {
		delete(r.refs, key)
	}
	delete(r.names[ref], key)
	if len(r.names[ref]) == 0 {
		delete(r.names, ref)
	}
}

// move indexes an object under one key only, or under none, and returns all keys that this may concern.
func (r *upsyncIndex) move(ref plan.Ref, key types.NamespacedName, comesUp bool) (concerned []types.NamespacedName) {
	r.lock.Lock()
	for name := range r.names[ref] {
		if !comesUp || name != key {
			concerned = append(concerned, name)
		}
	}
	r.lock.Unlock()
	for _, name := range concerned {
		r.remove(name, ref)
	}
	if comesUp {
		r.add(key, ref)
		concerned = append(concerned, key)
	}
	return concerned
}

// setDeleted notes that the deletion of an object was observed whose mailbox object still exists.
func (r *upsyncIndex) setDeleted(ref plan.Ref, uid types.UID) {
	r.lock.Lock()
	defer r.lock.Unlock()
	r.deleted[ref] = uid
}

// refsOf returns the objects that are upsynced under a key, in a stable order.
func (r *upsyncIndex) refsOf(key types.NamespacedName) []plan.Ref {
	r.lock.Lock()
	defer r.lock.Unlock()
	return slices.Clone(r.refs[key])
}

// isDeleted reports whether the deletion of an object was observed.
func (r *upsyncIndex) isDeleted(ref plan.Ref, uid types.UID) bool {
	r.lock.Lock()
	defer r.lock.Unlock()
	ended, ok := r.deleted[ref]
	return ok && ended == uid
}

// forgetDeleted forgets the deletion of an object whose mailbox object is gone.
func (r *upsyncIndex) forgetDeleted(ref plan.Ref) {
	r.lock.Lock()
	defer r.lock.Unlock()
	delete(r.deleted, ref)
}

// removeResource drops all objects of a resource whose upsync cache is being replaced.
func (r *upsyncIndex) removeResource(resource schema.GroupResource) {
	r.lock.Lock()
	defer r.lock.Unlock()
	for ref := range r.names {
		if ref.Resource == resource {
			delete(r.names, ref)
		}
	}
	for key, places := range r.refs {
		kept := slices.DeleteFunc(places, func(p plan.Ref) bool { return p.Resource == resource })
		if len(kept) == 0 {
			delete(r.refs, key)
		} else {
			r.refs[key] = kept
		}
	}
}

// keys returns all keys under which objects are upsynced.
func (r *upsyncIndex) keys() []types.NamespacedName {
	r.lock.Lock()
	defer r.lock.Unlock()
	keys := make([]types.NamespacedName, 0, len(r.refs))
	for key := range r.refs {
		keys = append(keys, key)
	}
	return keys
}
