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

package findings

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"

	"github.com/synchub-dev/synchub/provider/topic"
)

// PendingWithdrawal are copies of one workload workspace that are about to leave a SyncTarget.
type PendingWithdrawal struct {
	Inventory            logicalcluster.Name
	Location, SyncTarget string
	// Workspace is the path of the workload workspace.
	Workspace string
	Copies    int
	// At is when the hub withdraws the copies.
	At time.Time
}

func compareWithdrawals(a, b PendingWithdrawal) int {
	return cmp.Or(cmp.Compare(a.Inventory, b.Inventory), cmp.Compare(a.Location, b.Location), cmp.Compare(a.SyncTarget, b.SyncTarget),
		cmp.Compare(a.Workspace, b.Workspace), a.At.Compare(b.At), cmp.Compare(a.Copies, b.Copies))
}

// Withdrawals holds the pending withdrawals of all workload workspaces. The zero value has none, and nil always has none.
type Withdrawals struct {
	changes topic.Topic[logicalcluster.Name]

	lock sync.Mutex
	all  map[logicalcluster.Name][]PendingWithdrawal
}

// Set sets the pending withdrawals of a workload workspace, and publishes the inventories where they changed.
func (r *Withdrawals) Set(workspace logicalcluster.Name, pending []PendingWithdrawal) {
	if r == nil {
		return
	}
	pending = slices.SortedFunc(slices.Values(pending), compareWithdrawals)
	r.lock.Lock()
	before := r.all[workspace]
	switch {
	case len(pending) == 0:
		delete(r.all, workspace)
	case r.all == nil:
		r.all = map[logicalcluster.Name][]PendingWithdrawal{workspace: pending}
	default:
		r.all[workspace] = pending
	}
	r.lock.Unlock()
	changed := map[logicalcluster.Name]bool{}
	for _, lists := range [][2][]PendingWithdrawal{{before, pending}, {pending, before}} {
		for _, one := range lists[0] {
			if !slices.Contains(lists[1], one) {
				changed[one.Inventory] = true
			}
		}
	}
	for inventory := range changed {
		r.changes.Publish(inventory)
	}
}

// Of returns the pending withdrawals from the SyncTargets of an inventory, sorted, by the Location that had them.
func (r *Withdrawals) Of(inventory logicalcluster.Name) map[string][]PendingWithdrawal {
	found := map[string][]PendingWithdrawal{}
	if r == nil {
		return found
	}
	r.lock.Lock()
	defer r.lock.Unlock()
	for _, pending := range r.all {
		for _, one := range pending {
			if one.Inventory == inventory {
				found[one.Location] = append(found[one.Location], one)
			}
		}
	}
	for _, pending := range found {
		slices.SortFunc(pending, compareWithdrawals)
	}
	return found
}

// Changes carries the inventories whose pending withdrawals have changed. It is nil for a nil registry.
func (r *Withdrawals) Changes() *topic.Topic[logicalcluster.Name] {
	if r == nil {
		return nil
	}
	return &r.changes
}
