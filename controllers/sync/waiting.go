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
	gosync "sync"

	"k8s.io/apimachinery/pkg/types"
)

// waiting knows which objects wait for a name on the target to become free.
type waiting struct {
	lock   gosync.Mutex
	places map[types.NamespacedName]place
	keys   map[place]map[types.NamespacedName]struct{}
}

func newWaiting() *waiting {
	return &waiting{places: map[types.NamespacedName]place{}, keys: map[place]map[types.NamespacedName]struct{}{}}
}

// set notes where an object waits, and returns where it waited before if that is another place for which nobody waits now.
func (w *waiting) set(key types.NamespacedName, at *place) (left *place) {
	w.lock.Lock()
	defer w.lock.Unlock()
	before, waited := w.places[key]
	switch {
	case at != nil && waited && before == *at:
		return nil
	case waited:
		delete(w.places, key)
		delete(w.keys[before], key)
		if len(w.keys[before]) == 0 {
			delete(w.keys, before)
			left = &before
		}
	}
	if at != nil {
		w.places[key] = *at
		if w.keys[*at] == nil {
			w.keys[*at] = map[types.NamespacedName]struct{}{}
		}
		w.keys[*at][key] = struct{}{}
	}
	return left
}

// at returns which objects wait for a place.
func (w *waiting) at(place place) []types.NamespacedName {
	w.lock.Lock()
	defer w.lock.Unlock()
	keys := make([]types.NamespacedName, 0, len(w.keys[place]))
	for key := range w.keys[place] {
		keys = append(keys, key)
	}
	return keys
}
