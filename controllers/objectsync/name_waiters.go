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
	gosync "sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/objectsync/plan"
)

// nameWaiters tracks which objects wait until a name on the target becomes free.
type nameWaiters struct {
	lock gosync.Mutex
	refs map[types.NamespacedName]plan.Ref
	keys map[plan.Ref]map[types.NamespacedName]struct{}
}

func newNameWaiters() *nameWaiters {
	return &nameWaiters{refs: map[types.NamespacedName]plan.Ref{}, keys: map[plan.Ref]map[types.NamespacedName]struct{}{}}
}

// set notes the name that an object waits for, nil for none. It returns the name that it waited for before, if nobody waits
// for that one any more.
func (w *nameWaiters) set(key types.NamespacedName, ref *plan.Ref) (left *plan.Ref) {
	w.lock.Lock()
	defer w.lock.Unlock()
	before, waited := w.refs[key]
	switch {
	case ref != nil && waited && before == *ref:
		return nil
	case waited:
		delete(w.refs, key)
		delete(w.keys[before], key)
		if len(w.keys[before]) == 0 {
			delete(w.keys, before)
			left = &before
		}
	}
	if ref != nil {
		w.refs[key] = *ref
		if w.keys[*ref] == nil {
			w.keys[*ref] = map[types.NamespacedName]struct{}{}
		}
		w.keys[*ref][key] = struct{}{}
	}
	return left
}

// waitingFor returns the keys of the objects that wait for a name.
func (w *nameWaiters) waitingFor(place plan.Ref) []types.NamespacedName {
	w.lock.Lock()
	defer w.lock.Unlock()
	keys := make([]types.NamespacedName, 0, len(w.keys[place]))
	for key := range w.keys[place] {
		keys = append(keys, key)
	}
	return keys
}
