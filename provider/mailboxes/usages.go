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

// An account is made when the first object of a mailbox counts, or when the mailbox is evicted. It is dropped when no object counts
// any more and no endpoint shows the mailbox, so that those who make and delete mailboxes leave nothing behind. What counts has an
// account that is not dropped; so it is taken off the account to which it was added.

// usage returns the account of a mailbox.
func (m *Mailboxes) usage(mailbox logicalcluster.Name) *usage {
	return m.usageOf(mailbox, false)
}

// usageOf returns the account of a mailbox's configs, or of its other objects, to be read. If there is none, the account that
// is returned is empty, and what is noted there is forgotten.
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

// lockUsage returns the account of a mailbox's configs, or of its other objects, which is made if there is none. The caller must
// release the account's lock; it is not dropped before.
func (m *Mailboxes) lockUsage(mailbox logicalcluster.Name, configs bool) *usage {
	usages := m.usagesOf(configs)
	for {
		found, ok := usages.Load(mailbox)
		if !ok {
			found, _ = usages.LoadOrStore(mailbox, &usage{})
		}
		opened := found.(*usage)
		opened.lock.Lock()
		if !opened.deleted {
			return opened
		}
		opened.lock.Unlock()
	}
}

// deleteUnusedUsage drops the accounts of a mailbox that no endpoint shows, as far as nothing counts there. It is called after the last
// object has gone and after the binding has: whichever is later finds both gone.
func (m *Mailboxes) deleteUnusedUsage(mailbox logicalcluster.Name) {
	if !m.isKnownGone(mailbox) {
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

// isKnownGone tells whether it is known which mailboxes the endpoints show, and this is none of them.
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

// forEachUsage calls a function for the configs and for the other objects of each mailbox.
func (m *Mailboxes) forEachUsage(call func(mailbox logicalcluster.Name, usage *usage, configs bool)) {
	for _, configs := range []bool{false, true} {
		m.usagesOf(configs).Range(func(mailbox, found any) bool {
			call(mailbox.(logicalcluster.Name), found.(*usage), configs)
			return true
		})
	}
}
