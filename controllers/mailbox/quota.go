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

package mailbox

import (
	"context"
	"fmt"
	"sync"

	"github.com/go-logr/logr"
	"github.com/kcp-dev/logicalcluster/v3"
	tenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	configv1alpha1 "github.com/synchub-dev/synchub/apis/config/v1alpha1"
)

// QuotaState is whether a SyncTarget gets a mailbox.
type QuotaState int

const (
	// QuotaUndecided: this hub has not tried to create the mailbox yet.
	QuotaUndecided QuotaState = iota
	// QuotaGranted: the mailbox exists or is reserved.
	QuotaGranted
	// QuotaExceeded: the inventory workspace has reached its limit.
	QuotaExceeded
)

// Quota limits how many mailboxes the SyncTargets of one inventory workspace get, since each is a workspace in kcp. It
// counts the workspaces in the provider workspace, never the status of SyncTargets. A SyncTarget never loses an existing
// mailbox. Quota is safe for concurrent use.
type Quota struct {
	provider cluster.Cluster
	limit    int
	log      logr.Logger
	// synced is closed after the existing workspaces have been counted.
	synced chan struct{}

	lock        sync.Mutex
	queue       workqueue.TypedInterface[mcreconcile.Request]
	byInventory map[multicluster.ClusterName]*inventoryQuota
}

// inventoryQuota is the usage of one inventory workspace.
type inventoryQuota struct {
	// existing are the names of the existing mailbox workspaces.
	existing map[string]bool
	// reserved maps SyncTargets to the names of mailboxes that are about to be created. refused are the
	// SyncTargets without a mailbox.
	reserved map[mcreconcile.Request]string
	refused  map[mcreconcile.Request]bool
}

func (q *inventoryQuota) count() int { return len(q.existing) + len(q.reserved) }

// NewQuota returns a quota with the limit of the settings for each inventory workspace.
func NewQuota(provider cluster.Cluster, log logr.Logger, settings configv1alpha1.MailboxesConfiguration) *Quota {
	return &Quota{provider: provider, limit: settings.MaxPerInventory, log: log, synced: make(chan struct{}), byInventory: map[multicluster.ClusterName]*inventoryQuota{}}
}

// Start counts the mailboxes in the provider workspace until ctx ends.
func (q *Quota) Start(ctx context.Context) error {
	informer, err := q.provider.GetCache().GetInformer(ctx, &tenancyv1alpha1.Workspace{})
	if err != nil {
		return fmt.Errorf("cannot watch the mailbox workspaces: %w", err)
	}
	handled, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(added any) { q.onWorkspaceAdded(added.(*tenancyv1alpha1.Workspace)) },
		DeleteFunc: func(deleted any) {
			if unseen, is := deleted.(toolscache.DeletedFinalStateUnknown); is {
				deleted = unseen.Obj
			}
			q.onWorkspaceDeleted(deleted.(*tenancyv1alpha1.Workspace).Name)
		},
	})
	if err != nil {
		return fmt.Errorf("cannot count the mailbox workspaces: %w", err)
	}
	select {
	case <-ctx.Done():
		return nil
	case <-handled.HasSyncedChecker().Done():
	}
	defer activeQuotas.Add(q)()
	close(q.synced)
	<-ctx.Done()
	return nil
}

// Wait returns nil after the existing workspaces have been counted, or ctx's error.
func (q *Quota) Wait(ctx context.Context) error {
	select {
	case <-q.synced:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// State returns whether a SyncTarget gets a mailbox. A nil quota has no limit.
func (q *Quota) State(syncTarget mcreconcile.Request, uid types.UID) QuotaState {
	if q == nil {
		return QuotaGranted
	}
	q.lock.Lock()
	defer q.lock.Unlock()
	name := Name(logicalcluster.Name(syncTarget.ClusterName), uid)
	switch all := q.byInventory[syncTarget.ClusterName]; {
	case all == nil:
		return QuotaUndecided
	case all.existing[name] || all.reserved[syncTarget] == name:
		return QuotaGranted
	case all.refused[syncTarget]:
		return QuotaExceeded
	default:
		return QuotaUndecided
	}
}

// ExceededMessage returns the message of the condition for a refused SyncTarget.
func (q *Quota) ExceededMessage() string {
	return fmt.Sprintf("The SyncTargets of this inventory workspace have %d mailboxes, and the hub makes no more for one workspace: delete unused SyncTargets, or ask "+
		"the hub's operator to raise --inventory-max-mailboxes. Until then the hub does nothing for this SyncTarget.", q.limit)
}

// setQueue sets the queue that refused SyncTargets are added to when the quota allows them.
func (q *Quota) setQueue(queue workqueue.TypedInterface[mcreconcile.Request]) {
	q.lock.Lock()
	defer q.lock.Unlock()
	q.queue = queue
}

// reserve reports whether the hub may create the mailbox with a name. If not, the SyncTarget is refused, and
// enqueued when the quota allows it. With hadMailbox, a SyncTarget that lost its mailbox gets another one above
// the quota.
func (q *Quota) reserve(syncTarget mcreconcile.Request, name string, hadMailbox bool) bool {
	q.lock.Lock()
	defer q.lock.Unlock()
	all := q.quotaOf(syncTarget.ClusterName)
	if all.existing[name] || all.reserved[syncTarget] == name {
		return true
	}
	delete(all.reserved, syncTarget)
	if all.count() >= q.limit && !hadMailbox {
		if len(all.refused) == 0 {
			q.log.Info("an inventory workspace has reached its quota of mailboxes, so its further SyncTargets get none", "inventory", syncTarget.ClusterName, "limit", q.limit)
		}
		all.refused[syncTarget] = true
		return false
	}
	delete(all.refused, syncTarget)
	all.reserved[syncTarget] = name
	return true
}

// cancelReservation removes the reservation of a SyncTarget that needs no mailbox any more. An existing workspace counts until it is
// deleted.
func (q *Quota) cancelReservation(syncTarget mcreconcile.Request) {
	q.lock.Lock()
	defer q.lock.Unlock()
	all := q.byInventory[syncTarget.ClusterName]
	if all == nil {
		return
	}
	delete(all.reserved, syncTarget)
	delete(all.refused, syncTarget)
	q.enqueueRefused(syncTarget.ClusterName, all)
}

// onWorkspaceAdded counts a workspace and removes its reservation.
func (q *Quota) onWorkspaceAdded(workspace *tenancyv1alpha1.Workspace) {
	inventory, _, ok := ParseName(workspace.Name)
	if !ok {
		return
	}
	q.lock.Lock()
	defer q.lock.Unlock()
	all := q.quotaOf(multicluster.ClusterName(inventory))
	all.existing[workspace.Name] = true
	for _, request := range RequestsForWorkspace(context.Background(), workspace) {
		delete(all.refused, request)
		if all.reserved[request] == workspace.Name {
			delete(all.reserved, request)
		}
	}
}

// onWorkspaceDeleted stops counting a workspace.
func (q *Quota) onWorkspaceDeleted(name string) {
	inventory, _, ok := ParseName(name)
	if !ok {
		return
	}
	q.lock.Lock()
	defer q.lock.Unlock()
	all := q.quotaOf(multicluster.ClusterName(inventory))
	delete(all.existing, name)
	q.enqueueRefused(multicluster.ClusterName(inventory), all)
}

// enqueueRefused enqueues refused SyncTargets up to the quota. A SyncTarget that needs no mailbox any more
// calls cancelReservation, which enqueues the next.
func (q *Quota) enqueueRefused(inventory multicluster.ClusterName, all *inventoryQuota) {
	available := q.limit - all.count()
	for next := range all.refused {
		if available <= 0 || q.queue == nil {
			return
		}
		available--
		delete(all.refused, next)
		q.queue.Add(next)
	}
	if all.count() == 0 {
		delete(q.byInventory, inventory)
	}
}

// quotaOf returns the usage of an inventory workspace, and adds it if missing. The caller holds the lock.
func (q *Quota) quotaOf(inventory multicluster.ClusterName) *inventoryQuota {
	if q.byInventory[inventory] == nil {
		q.byInventory[inventory] = &inventoryQuota{existing: map[string]bool{}, reserved: map[mcreconcile.Request]string{}, refused: map[mcreconcile.Request]bool{}}
	}
	return q.byInventory[inventory]
}

// countRefused returns how many SyncTargets get no mailbox.
func (q *Quota) countRefused() (count int) {
	q.lock.Lock()
	defer q.lock.Unlock()
	for _, all := range q.byInventory {
		count += len(all.refused)
	}
	return count
}
