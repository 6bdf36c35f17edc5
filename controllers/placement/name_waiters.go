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
	gosync "sync"

	"github.com/kcp-dev/logicalcluster/v3"
)

// nameWaiters contains the workspaces whose objects wait for a name in a mailbox that another object has. The
// pair's key stands for the name.
type nameWaiters struct {
	lock    gosync.RWMutex
	waiting map[pairKey]map[logicalcluster.Name]struct{}
}

// set records whether a workspace waits for a name.
func (n *nameWaiters) set(name pairKey, workspace logicalcluster.Name, waits bool) {
	n.lock.Lock()
	defer n.lock.Unlock()
	found := n.waiting[name]
	if waits && found == nil {
		found = map[logicalcluster.Name]struct{}{}
		n.waiting[name] = found
	}
	if waits {
		found[workspace] = struct{}{}
	} else if delete(found, workspace); len(found) == 0 {
		delete(n.waiting, name)
	}
}

// wake enqueues the pairs that wait for a name.
func (n *nameWaiters) wake(name pairKey, workspace func(logicalcluster.Name) *workspace) {
	n.lock.RLock()
	var all []logicalcluster.Name
	for waiting := range n.waiting[name] {
		all = append(all, waiting)
	}
	n.lock.RUnlock()
	for _, waiting := range all {
		if w := workspace(waiting); w != nil {
			w.tasks.add(name.task())
		}
	}
}
