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
	"sync/atomic"

	"github.com/kcp-dev/logicalcluster/v3"
)

// A usage is created with the first counted object of a mailbox, or with its eviction. It is dropped when no object counts and
// no endpoint shows the mailbox, so that tenants who create and delete mailboxes leave nothing behind. A counted object keeps
// its usage, so it is subtracted from the one to which it was added.

// usages are the usages of all mailboxes, for their configs and for their other objects.
type usages struct {
	endpoints *Endpoints
	owned     *ownedMailboxes
	// objects and configs contain a *usage by mailbox.
	objects, configs sync.Map
	// evicted is the number of evicted usages.
	evicted atomic.Int64
}

// of returns the usage of a mailbox's configs, or of its other objects, for reading. If there is none, it returns an
// empty one, and changes to that are lost.
func (u *usages) of(mailbox logicalcluster.Name, configs bool) *usage {
	if found, ok := u.byMailbox(configs).Load(mailbox); ok {
		return found.(*usage)
	}
	return &usage{}
}

// byMailbox returns the usages of the configs, or of the other objects.
func (u *usages) byMailbox(configs bool) *sync.Map {
	if configs {
		return &u.configs
	}
	return &u.objects
}

// lock returns the usage of a mailbox's configs, or of its other objects, locked, and creates it if there is none. It is
// not dropped before the caller releases the lock.
func (u *usages) lock(mailbox logicalcluster.Name, configs bool) *usage {
	usages := u.byMailbox(configs)
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

// deleteUnused drops the usages of a mailbox that no endpoint shows, or that is unowned, if nothing counts there. It is
// called after the last object was deleted, and after the binding was deleted: the later of the two calls drops the usages.
func (u *usages) deleteUnused(mailbox logicalcluster.Name) {
	if !u.endpoints.isKnownGone(mailbox) && !u.owned.isUnowned(mailbox) {
		return
	}
	for _, configs := range []bool{true, false} {
		usages := u.byMailbox(configs)
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

// each calls a function for the configs, and for the other objects, of each mailbox.
func (u *usages) each(call func(mailbox logicalcluster.Name, usage *usage, configs bool)) {
	for _, configs := range []bool{false, true} {
		u.byMailbox(configs).Range(func(mailbox, found any) bool {
			call(mailbox.(logicalcluster.Name), found.(*usage), configs)
			return true
		})
	}
}

// isEvicted reports whether the configs of a mailbox, or its other objects, are evicted.
func (u *usages) isEvicted(mailbox logicalcluster.Name, configs bool) bool {
	return u.evicted.Load() > 0 && u.of(mailbox, configs).evicted.Load()
}

// endEviction reports whether the configs of a mailbox, or its other objects, were evicted until now.
func (u *usages) endEviction(mailbox logicalcluster.Name, configs bool) bool {
	if !u.of(mailbox, configs).evicted.Swap(false) {
		return false
	}
	u.evicted.Add(-1)
	return true
}
