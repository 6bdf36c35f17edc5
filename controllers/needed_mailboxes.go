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

// neededMailboxes decides which mailboxes' objects this replica caches if SyncTargets are sharded: the
// mailboxes of its own SyncTargets. The leader needs all mailboxes, since it places copies there and counts
// objects.
type neededMailboxes struct {
	role   leadership.Role
	ledger *ledger.Store
	// recheck is called with the mailboxes whose result may have changed; without arguments it means all
	// mailboxes. recheckWorkloads is the same for workload workspaces.
	recheck, recheckWorkloads func(...logicalcluster.Name)

	lock sync.RWMutex
	// syncTargets contains the SyncTarget of each mailbox in the ledger, and mailboxes is the inverse.
	syncTargets map[logicalcluster.Name]types.UID
	mailboxes   map[types.UID]logicalcluster.Name
}

func newNeededMailboxes(role leadership.Role) *neededMailboxes {
	return &neededMailboxes{role: role, syncTargets: map[logicalcluster.Name]types.UID{}, mailboxes: map[types.UID]logicalcluster.Name{}}
}

// needs reports whether this replica needs the objects of a mailbox. Only the leader needs a mailbox that is
// not in the ledger yet.
func (n *neededMailboxes) needs(mailbox logicalcluster.Name) bool {
	if n.role.Leads() {
		return true
	}
	n.lock.RLock()
	syncTarget, known := n.syncTargets[mailbox]
	n.lock.RUnlock()
	return known && n.role.Owns(syncTarget)
}

// needsWorkload reports whether this replica needs the objects of a workload workspace: only the leader places them.
func (n *neededMailboxes) needsWorkload(logicalcluster.Name) bool { return n.role.Leads() }

// NeedLeaderElection returns false: each replica needs other mailboxes.
func (n *neededMailboxes) NeedLeaderElection() bool { return false }

// Start observes the ledger, the shards and the leadership until ctx ends.
func (n *neededMailboxes) Start(ctx context.Context) error {
	n.ledger.Subscribe(ctx, n.entryChanged)
	n.role.Changed.Subscribe(ctx, n.shardsChanged)
	n.ledger.Each(func(syncTarget types.UID, entry *ledger.Entry) { n.set(syncTarget, logicalcluster.Name(entry.Mailbox)) })
	n.recheck()
	select {
	case <-n.role.Elected:
		n.recheck()
		n.recheckWorkloads()
	case <-ctx.Done():
		return nil
	}
	<-ctx.Done()
	return nil
}

func (n *neededMailboxes) entryChanged(syncTarget types.UID) {
	mailbox := logicalcluster.Name(n.ledger.Get(syncTarget).Mailbox)
	if n.set(syncTarget, mailbox) && mailbox != "" {
		n.recheck(mailbox)
	}
}

// set records the mailbox of a SyncTarget, and reports whether it has changed.
func (n *neededMailboxes) set(syncTarget types.UID, mailbox logicalcluster.Name) (changed bool) {
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

func (n *neededMailboxes) shardsChanged(changed shards.Set) {
	n.lock.RLock()
	var concerned []logicalcluster.Name
	for syncTarget, mailbox := range n.mailboxes {
		if changed.Has(syncTarget) {
			concerned = append(concerned, mailbox)
		}
	}
	n.lock.RUnlock()
	if len(concerned) > 0 {
		n.recheck(concerned...)
	}
}
