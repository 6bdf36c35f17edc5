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
)

// upsyncIndex knows which objects of the target come up under which names of the mailbox.
type upsyncIndex struct {
	lock gosync.Mutex
	// refs are usually one for each name.
	refs map[types.NamespacedName][]targetRef
	// names are the same the other way round.
	names map[targetRef]map[types.NamespacedName]struct{}
	// deleted holds the objects whose end was seen, until what came up of them is gone.
	deleted map[targetRef]types.UID
}

func newUpsyncIndex() *upsyncIndex {
	return &upsyncIndex{
		refs:    map[types.NamespacedName][]targetRef{},
		names:   map[targetRef]map[types.NamespacedName]struct{}{},
		deleted: map[targetRef]types.UID{},
	}
}

// add notes that an object comes up.
func (r *upsyncIndex) add(key types.NamespacedName, ref targetRef) {
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
	// Whatever the order in which they are seen, the same one comes first.
	slices.SortFunc(r.refs[key], func(a, b targetRef) int {
		return cmp.Or(cmp.Compare(a.resource.String(), b.resource.String()), cmp.Compare(a.key.String(), b.key.String()))
	})
}

// remove notes that an object does not come up any more.
func (r *upsyncIndex) remove(key types.NamespacedName, ref targetRef) {
	r.lock.Lock()
	defer r.lock.Unlock()
	r.refs[key] = slices.DeleteFunc(r.refs[key], func(p targetRef) bool { return p == ref })
	if len(r.refs[key]) == 0 {
		delete(r.refs, key)
	}
	delete(r.names[ref], key)
	if len(r.names[ref]) == 0 {
		delete(r.names, ref)
	}
}

// move notes that an object comes up under a name, or does not come up at all any more, and returns all names whose answer
// that may change.
func (r *upsyncIndex) move(ref targetRef, key types.NamespacedName, comesUp bool) (concerned []types.NamespacedName) {
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

// setDeleted notes that the end of an object was seen, of which something is left in the mailbox.
func (r *upsyncIndex) setDeleted(ref targetRef, uid types.UID) {
	r.lock.Lock()
	defer r.lock.Unlock()
	r.deleted[ref] = uid
}

// refsOf returns where the objects are that come up under a name, in an order that stays.
func (r *upsyncIndex) refsOf(key types.NamespacedName) []targetRef {
	r.lock.Lock()
	defer r.lock.Unlock()
	return slices.Clone(r.refs[key])
}

// isDeleted tells whether the end of an object was seen.
func (r *upsyncIndex) isDeleted(ref targetRef, uid types.UID) bool {
	r.lock.Lock()
	defer r.lock.Unlock()
	ended, ok := r.deleted[ref]
	return ok && ended == uid
}

// forgetDeleted forgets the end of an object of which nothing is left.
func (r *upsyncIndex) forgetDeleted(ref targetRef) {
	r.lock.Lock()
	defer r.lock.Unlock()
	delete(r.deleted, ref)
}

// removeResource drops all of a resource, whose feed is being replaced.
func (r *upsyncIndex) removeResource(resource schema.GroupResource) {
	r.lock.Lock()
	defer r.lock.Unlock()
	for ref := range r.names {
		if ref.resource == resource {
			delete(r.names, ref)
		}
	}
	for key, places := range r.refs {
		kept := slices.DeleteFunc(places, func(p targetRef) bool { return p.resource == resource })
		if len(kept) == 0 {
			delete(r.refs, key)
		} else {
			r.refs[key] = kept
		}
	}
}

// keys returns all names under which something comes up.
func (r *upsyncIndex) keys() []types.NamespacedName {
	r.lock.Lock()
	defer r.lock.Unlock()
	keys := make([]types.NamespacedName, 0, len(r.refs))
	for key := range r.refs {
		keys = append(keys, key)
	}
	return keys
}
