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

// An account is made when the first object of a mailbox counts, or when the mailbox is closed. It is dropped when no object counts
// any more and no endpoint shows the mailbox, so that those who make and delete mailboxes leave nothing behind. What counts has an
// account that is not dropped; so it is taken off the account to which it was added.

// account returns the account of a mailbox.
func (m *Mailboxes) account(mailbox logicalcluster.Name) *account {
	return m.accountOf(mailbox, false)
}

// accountOf returns the account of a mailbox's configs, or of its other objects, to be read. If there is none, the account that
// is returned is empty, and what is noted there is forgotten.
func (m *Mailboxes) accountOf(mailbox logicalcluster.Name, configs bool) *account {
	if found, ok := m.accountsOf(configs).Load(mailbox); ok {
		return found.(*account)
	}
	return &account{}
}

func (m *Mailboxes) accountsOf(configs bool) *sync.Map {
	if configs {
		return &m.configAccounts
	}
	return &m.accounts
}

// openAccount returns the account of a mailbox's configs, or of its other objects, which is made if there is none. The caller must
// release the account's lock; it is not dropped before.
func (m *Mailboxes) openAccount(mailbox logicalcluster.Name, configs bool) *account {
	accounts := m.accountsOf(configs)
	for {
		found, ok := accounts.Load(mailbox)
		if !ok {
			found, _ = accounts.LoadOrStore(mailbox, &account{})
		}
		opened := found.(*account)
		opened.lock.Lock()
		if !opened.dropped {
			return opened
		}
		opened.lock.Unlock()
	}
}

// dropUnused drops the accounts of a mailbox that no endpoint shows, as far as nothing counts there. It is called after the last
// object has gone and after the binding has: whichever is later finds both gone.
func (m *Mailboxes) dropUnused(mailbox logicalcluster.Name) {
	if !m.isGone(mailbox) {
		return
	}
	for _, configs := range []bool{true, false} {
		accounts := m.accountsOf(configs)
		found, ok := accounts.Load(mailbox)
		if !ok {
			continue
		}
		unused := found.(*account)
		unused.lock.Lock()
		if unused.objects == 0 && !unused.closed.Load() {
			unused.dropped = true
			accounts.CompareAndDelete(mailbox, found)
		}
		unused.lock.Unlock()
	}
}

// isGone tells whether it is known which mailboxes the endpoints show, and this is none of them.
func (m *Mailboxes) isGone(mailbox logicalcluster.Name) bool {
	m.lock.RLock()
	defer m.lock.RUnlock()
	for _, endpoint := range m.endpoints {
		if !endpoint.showsMailboxes() || endpoint.binding(mailbox) != nil {
			return false
		}
	}
	return true
}

// eachAccount calls a function for the configs and for the other objects of each mailbox.
func (m *Mailboxes) eachAccount(call func(mailbox logicalcluster.Name, account *account, configs bool)) {
	for _, configs := range []bool{false, true} {
		m.accountsOf(configs).Range(func(mailbox, found any) bool {
			call(mailbox.(logicalcluster.Name), found.(*account), configs)
			return true
		})
	}
}
