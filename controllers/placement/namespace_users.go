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
)

// namespaceUsers counts the copies that workspaces have in the namespaces of mailboxes. On a cluster whose namespaces all workspaces share,
// the objects that come up from a namespace belong to a workspace only if no other workspace has copies there.
type namespaceUsers struct {
	lock   gosync.RWMutex
	counts map[site]map[logicalcluster.Name]int
	// complete are the mailboxes whose copies of the previous leader are counted.
	complete map[logicalcluster.Name]struct{}
}

func newNamespaceUsers() *namespaceUsers {
	return &namespaceUsers{counts: map[site]map[logicalcluster.Name]int{}, complete: map[logicalcluster.Name]struct{}{}}
}

// change counts one copy more or less of a workspace in a namespace of a mailbox. It returns the workspaces with copies there, before and
// after, if the copy is the workspace's first or last one.
func (u *namespaceUsers) change(at site, workspace logicalcluster.Name, by int) (affected []logicalcluster.Name) {
	u.lock.Lock()
	defer u.lock.Unlock()
	of := u.counts[at]
	if of == nil {
		of = map[logicalcluster.Name]int{}
		u.counts[at] = of
	}
	before := of[workspace]
	of[workspace] = before + by
	if before == 0 || before+by == 0 {
		affected = slices.Collect(maps.Keys(of))
	}
	if before+by == 0 {
		delete(of, workspace)
	}
	if len(of) == 0 {
		delete(u.counts, at)
	}
	return affected
}

// only returns the workspace that alone has copies in a namespace of a mailbox; empty if none has, or several have. known is false until
// all copies of the mailbox are counted.
func (u *namespaceUsers) only(at site) (workspace logicalcluster.Name, count int, known bool) {
	u.lock.RLock()
	defer u.lock.RUnlock()
	_, known = u.complete[at.mailbox]
	for one := range u.counts[at] {
		workspace = one
	}
	if len(u.counts[at]) != 1 {
		workspace = ""
	}
	return workspace, len(u.counts[at]), known
}

// setComplete records that all copies of a mailbox are counted.
func (u *namespaceUsers) setComplete(mailbox logicalcluster.Name) {
	u.lock.Lock()
	defer u.lock.Unlock()
	u.complete[mailbox] = struct{}{}
}

// isComplete reports whether all copies of a mailbox are counted.
func (u *namespaceUsers) isComplete(mailbox logicalcluster.Name) bool {
	u.lock.RLock()
	defer u.lock.RUnlock()
	_, ok := u.complete[mailbox]
	return ok
}
