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

package sync

import (
	"cmp"
	"slices"
	gosync "sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// raised knows which objects of the target come up under which names of the mailbox.
type raised struct {
	lock gosync.Mutex
	// places are usually one for each name.
	places map[types.NamespacedName][]place
	// names are the same the other way round.
	names map[place]map[types.NamespacedName]struct{}
	// ended holds the objects whose end was seen, until what came up of them is gone.
	ended map[place]types.UID
}

func newRaised() *raised {
	return &raised{
		places: map[types.NamespacedName][]place{},
		names:  map[place]map[types.NamespacedName]struct{}{},
		ended:  map[place]types.UID{},
	}
}

// add notes that an object comes up.
func (r *raised) add(key types.NamespacedName, at place) {
	r.lock.Lock()
	defer r.lock.Unlock()
	delete(r.ended, at)
	if slices.Contains(r.places[key], at) {
		return
	}
	r.places[key] = append(r.places[key], at)
	if r.names[at] == nil {
		r.names[at] = map[types.NamespacedName]struct{}{}
	}
	r.names[at][key] = struct{}{}
	// Whatever the order in which they are seen, the same one comes first.
	slices.SortFunc(r.places[key], func(a, b place) int {
		return cmp.Or(cmp.Compare(a.resource.String(), b.resource.String()), cmp.Compare(a.key.String(), b.key.String()))
	})
}

// remove notes that an object does not come up any more.
func (r *raised) remove(key types.NamespacedName, at place) {
	r.lock.Lock()
	defer r.lock.Unlock()
	r.places[key] = slices.DeleteFunc(r.places[key], func(p place) bool { return p == at })
	if len(r.places[key]) == 0 {
		delete(r.places, key)
	}
	delete(r.names[at], key)
	if len(r.names[at]) == 0 {
		delete(r.names, at)
	}
}

// move notes that an object comes up under a name, or does not come up at all any more, and returns all names whose answer
// that may change.
func (r *raised) move(at place, key types.NamespacedName, comesUp bool) (concerned []types.NamespacedName) {
	r.lock.Lock()
	for name := range r.names[at] {
		if !comesUp || name != key {
			concerned = append(concerned, name)
		}
	}
	r.lock.Unlock()
	for _, name := range concerned {
		r.remove(name, at)
	}
	if comesUp {
		r.add(key, at)
		concerned = append(concerned, key)
	}
	return concerned
}

// setEnded notes that the end of an object was seen, of which something is left in the mailbox.
func (r *raised) setEnded(at place, uid types.UID) {
	r.lock.Lock()
	defer r.lock.Unlock()
	r.ended[at] = uid
}

// at returns where the objects are that come up under a name, in an order that stays.
func (r *raised) at(key types.NamespacedName) []place {
	r.lock.Lock()
	defer r.lock.Unlock()
	return slices.Clone(r.places[key])
}

// hasEnded tells whether the end of an object was seen.
func (r *raised) hasEnded(at place, uid types.UID) bool {
	r.lock.Lock()
	defer r.lock.Unlock()
	ended, ok := r.ended[at]
	return ok && ended == uid
}

// settled forgets the end of an object of which nothing is left.
func (r *raised) settled(at place) {
	r.lock.Lock()
	defer r.lock.Unlock()
	delete(r.ended, at)
}

// forget drops all of a resource, whose feed is being replaced.
func (r *raised) forget(resource schema.GroupResource) {
	r.lock.Lock()
	defer r.lock.Unlock()
	for at := range r.names {
		if at.resource == resource {
			delete(r.names, at)
		}
	}
	for key, places := range r.places {
		kept := slices.DeleteFunc(places, func(p place) bool { return p.resource == resource })
		if len(kept) == 0 {
			delete(r.places, key)
		} else {
			r.places[key] = kept
		}
	}
}

// keys returns all names under which something comes up.
func (r *raised) keys() []types.NamespacedName {
	r.lock.Lock()
	defer r.lock.Unlock()
	keys := make([]types.NamespacedName, 0, len(r.places))
	for key := range r.places {
		keys = append(keys, key)
	}
	return keys
}
