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

package mailboxes

import (
	"sync"

	"github.com/kcp-dev/logicalcluster/v3"
)

// A usage is created with the first counted object of a mailbox, or with its eviction. It is dropped when no object counts and
// no endpoint shows the mailbox, so that tenants who create and delete mailboxes leave nothing behind. A counted object keeps
// its usage, so it is subtracted from the one to which it was added.

// usage returns the usage of a mailbox.
func (m *Mailboxes) usage(mailbox logicalcluster.Name) *usage {
	return m.usageOf(mailbox, false)
}

// usageOf returns the usage of a mailbox's configs, or of its other objects, for reading. If there is none, it returns an
// empty one, and changes to that are lost.
func (m *Mailboxes) usageOf(mailbox logicalcluster.Name, configs bool) *usage {
	if found, ok := m.usagesOf(configs).Load(mailbox); ok {
		return found.(*usage)
	}
	return &usage{}
}

func (m *Mailboxes) usagesOf(configs bool) *sync.Map {
	if configs {
		return &m.configUsages
	}
	return &m.usages
}

// lockUsage returns the usage of a mailbox's configs, or of its other objects, locked, and creates it if there is none. It is
// not dropped before the caller releases the lock.
func (m *Mailboxes) lockUsage(mailbox logicalcluster.Name, configs bool) *usage {
	usages := m.usagesOf(configs)
	for {
		found, ok := usages.Load(mailbox)
		if !ok {
			found, _ = usages.LoadOrStore(mailbox, &usage{})
		}
		locked := found.(*usage)
		locked.lock.Lock()
		if !locked.deleted {
			return locked
		}
		locked.lock.Unlock()
	}
}

// deleteUnusedUsage drops the usages of a mailbox that no endpoint shows, or that is foreign, if nothing counts there. It is
// called after the last object was deleted, and after the binding was deleted: the later of the two calls drops the usages.
func (m *Mailboxes) deleteUnusedUsage(mailbox logicalcluster.Name) {
	if !m.isKnownGone(mailbox) && !m.needs.isForeign(mailbox) {
		return
	}
	for _, configs := range []bool{true, false} {
		usages := m.usagesOf(configs)
		found, ok := usages.Load(mailbox)
		if !ok {
			continue
		}
		unused := found.(*usage)
		unused.lock.Lock()
		if unused.objects == 0 && !unused.evicted.Load() {
			unused.deleted = true
			usages.CompareAndDelete(mailbox, found)
		}
		unused.lock.Unlock()
	}
}

// isKnownGone reports whether the mailboxes of all endpoints are known and none of them is this one.
func (m *Mailboxes) isKnownGone(mailbox logicalcluster.Name) bool {
	m.lock.RLock()
	defer m.lock.RUnlock()
	for _, endpoint := range m.endpoints {
		if !endpoint.hasSyncedBindings() || endpoint.binding(mailbox) != nil {
			return false
		}
	}
	return true
}

// forEachUsage calls a function for the configs, and for the other objects, of each mailbox.
func (m *Mailboxes) forEachUsage(call func(mailbox logicalcluster.Name, usage *usage, configs bool)) {
	for _, configs := range []bool{false, true} {
		m.usagesOf(configs).Range(func(mailbox, found any) bool {
			call(mailbox.(logicalcluster.Name), found.(*usage), configs)
			return true
		})
	}
}
