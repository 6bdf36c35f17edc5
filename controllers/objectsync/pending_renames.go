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
)

// pendingRenames tracks upsynced objects that are deleted under their old names as soon as they exist under the new ones.
type pendingRenames struct {
	lock gosync.Mutex
	// oldNames maps the new name to the old one.
	oldNames map[types.NamespacedName]types.NamespacedName
}

func newPendingRenames() *pendingRenames {
	return &pendingRenames{oldNames: map[types.NamespacedName]types.NamespacedName{}}
}

// add notes a rename.
func (m *pendingRenames) add(from, to types.NamespacedName) {
	m.lock.Lock()
	defer m.lock.Unlock()
	m.oldNames[to] = from
}

// complete returns the old name of the object that exists now under the new one, and forgets the rename.
func (m *pendingRenames) complete(to types.NamespacedName) (from types.NamespacedName, waits bool) {
	m.lock.Lock()
	defer m.lock.Unlock()
	from, waits = m.oldNames[to]
	delete(m.oldNames, to)
	return from, waits
}
