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

package placement

import (
	"maps"
	"slices"
	gosync "sync"

	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// copyKey is a name in a mailbox. The resource is the one of workspaces, which may have twins in mailboxes.
type copyKey struct {
	resource schema.GroupVersionResource
	mailbox  logicalcluster.Name
	name     types.NamespacedName
}

// copyKey returns the name of the copy.
func (k pairKey) copyKey() copyKey { return copyKey{k.resource, k.mailbox, k.copyName()} }

// waiter is a pair of a workspace whose copy waits for its name.
type waiter struct {
	workspace logicalcluster.Name
	pair      pairKey
}

// nameWaiters contains the pairs that wait for a name in a mailbox that another object has.
type nameWaiters struct {
	lock    gosync.RWMutex
	waiting map[copyKey]map[waiter]struct{}
}

// set records whether a pair of a workspace waits for its name.
func (n *nameWaiters) set(pair pairKey, workspace logicalcluster.Name, waits bool) {
	n.lock.Lock()
	defer n.lock.Unlock()
	name, one := pair.copyKey(), waiter{workspace, pair}
	found := n.waiting[name]
	if waits && found == nil {
		found = map[waiter]struct{}{}
		n.waiting[name] = found
	}
	if waits {
		found[one] = struct{}{}
	} else if delete(found, one); len(found) == 0 {
		delete(n.waiting, name)
	}
}

// wake enqueues the pairs that wait for a name.
func (n *nameWaiters) wake(name copyKey, workspace func(logicalcluster.Name) *workspace) {
	n.lock.RLock()
	all := slices.Collect(maps.Keys(n.waiting[name]))
	n.lock.RUnlock()
	for _, one := range all {
		if w := workspace(one.workspace); w != nil {
			w.tasks.add(one.pair.task())
		}
	}
}
