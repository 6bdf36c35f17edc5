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

package controllers

import (
	"context"
	"sync"

	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/internal/leadership"
	"github.com/synchub-dev/synchub/provider/ledger"
	"github.com/synchub-dev/synchub/provider/shards"
)

// ownedMailboxes decides which mailboxes' objects this replica caches if SyncTargets are sharded: the
// mailboxes of its own SyncTargets. The leader needs all mailboxes, since it places copies there and counts
// objects.
type ownedMailboxes struct {
	role leadership.Role

	lock sync.RWMutex
	// syncTargets contains the SyncTarget of each mailbox in the ledger, and mailboxes is the inverse.
	syncTargets map[logicalcluster.Name]types.UID
	mailboxes   map[types.UID]logicalcluster.Name
}

func newOwnedMailboxes(role leadership.Role) *ownedMailboxes {
	return &ownedMailboxes{role: role, syncTargets: map[logicalcluster.Name]types.UID{}, mailboxes: map[types.UID]logicalcluster.Name{}}
}

// owns reports whether this replica needs the objects of a mailbox. Only the leader needs a mailbox that is
// not in the ledger yet.
func (n *ownedMailboxes) owns(mailbox logicalcluster.Name) bool {
	if n.role.Leads() {
		return true
	}
	n.lock.RLock()
	syncTarget, known := n.syncTargets[mailbox]
	n.lock.RUnlock()
	return known && n.role.Owns(syncTarget)
}

// ownsWorkload reports whether this replica needs the objects of a workload workspace: only the leader places them.
func (n *ownedMailboxes) ownsWorkload(logicalcluster.Name) bool { return n.role.Leads() }

// set records the mailbox of a SyncTarget, and reports whether it has changed.
func (n *ownedMailboxes) set(syncTarget types.UID, mailbox logicalcluster.Name) (changed bool) {
	n.lock.Lock()
	defer n.lock.Unlock()
	before := n.mailboxes[syncTarget]
	if before == mailbox {
		return false
	}
	if n.syncTargets[before] == syncTarget {
		delete(n.syncTargets, before)
	}
	delete(n.mailboxes, syncTarget)
	if mailbox != "" {
		n.syncTargets[mailbox], n.mailboxes[syncTarget] = syncTarget, mailbox
	}
	return true
}

// ofShards returns the mailboxes of the SyncTargets of shards.
func (n *ownedMailboxes) ofShards(changed shards.Set) (mailboxes []logicalcluster.Name) {
	n.lock.RLock()
	defer n.lock.RUnlock()
	for syncTarget, mailbox := range n.mailboxes {
		if changed.Has(syncTarget) {
			mailboxes = append(mailboxes, mailbox)
		}
	}
	return mailboxes
}

// ownedUpdater makes the caches follow which mailboxes this replica needs.
type ownedUpdater struct {
	owned  *ownedMailboxes
	ledger *ledger.Store
	// recheck is called with the mailboxes whose result may have changed; without arguments it means all
	// mailboxes. recheckWorkloads is the same for workload workspaces.
	recheck, recheckWorkloads func(...logicalcluster.Name)
}

// run observes the ledger, the shards and the leadership until ctx ends.
func (u ownedUpdater) run(ctx context.Context) error {
	u.ledger.Changes().Subscribe(ctx, u.entryChanged)
	u.owned.role.Changed.Subscribe(ctx, u.shardsChanged)
	u.ledger.Each(func(syncTarget types.UID, entry *ledger.Entry) {
		u.owned.set(syncTarget, logicalcluster.Name(entry.Mailbox))
	})
	u.recheck()
	select {
	case <-u.owned.role.Elected:
		u.recheck()
		u.recheckWorkloads()
	case <-ctx.Done():
		return nil
	}
	<-ctx.Done()
	return nil
}

func (u ownedUpdater) entryChanged(syncTarget types.UID) {
	mailbox := logicalcluster.Name(u.ledger.Get(syncTarget).Mailbox)
	if u.owned.set(syncTarget, mailbox) && mailbox != "" {
		u.recheck(mailbox)
	}
}

func (u ownedUpdater) shardsChanged(changed shards.Set) {
	if concerned := u.owned.ofShards(changed); len(concerned) > 0 {
		u.recheck(concerned...)
	}
}
