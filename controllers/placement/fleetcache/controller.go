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

package fleetcache

import (
	"context"
	"errors"
	"maps"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	tenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
	mcbuilder "sigs.k8s.io/multicluster-runtime/pkg/builder"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/internal/watch"
	"github.com/synchub-dev/synchub/controllers/mailbox"
	"github.com/synchub-dev/synchub/controllers/placement/fleet"
	"github.com/synchub-dev/synchub/provider/inventories"
)

const (
	// reconcileTimeout is the timeout of one reconcile, which normally sends no request.
	reconcileTimeout = time.Minute
	// workers is the number of inventories that are reconciled at once.
	workers = 8
)

// Register makes the manager fill the fleet. The fleet writes nothing to kcp.
func (f *Fleet) Register(manager.Manager) error {
	controller, err := mcbuilder.ControllerManagedBy(f.Manager).
		Named("fleet").
		Watches(&edgev2alpha1.Location{}, watch.EnqueueInventory, mcbuilder.WithPredicates(watch.IgnoreLocationStatus())).
		Watches(&edgev2alpha1.SyncTarget{}, watch.EnqueueInventory, mcbuilder.WithPredicates(watch.PlacementChanges())).
		WatchesRawSource(source.TypedKind(f.Mailboxes.Provider.GetCache(), &tenancyv1alpha1.Workspace{},
			handler.TypedEnqueueRequestsFromMapFunc(f.requestsForWorkspace))).
		WithOptions(controller.TypedOptions[mcreconcile.Request]{
			MaxConcurrentReconciles: workers,
			ReconciliationTimeout:   reconcileTimeout,
			// The options of the manager have no effect on multicluster controllers.
			UsePriorityQueue:   new(false),
			SkipNameValidation: f.Manager.GetControllerOptions().SkipNameValidation,
		}).
		Build(f)
	if err != nil {
		return err
	}
	return controller.MultiClusterWatch(watch.Engagement())
}

// requestsForWorkspace returns a request for the inventory of a mailbox workspace, and marks the mailbox to be
// located again; it returns none for other workspaces.
func (f *Fleet) requestsForWorkspace(_ context.Context, workspace *tenancyv1alpha1.Workspace) []mcreconcile.Request {
	inventory, syncTarget, ok := mailbox.ParseName(workspace.Name)
	if !ok {
		return nil
	}
	f.lock.Lock()
	defer f.lock.Unlock()
	if f.changedMailboxes[inventory] == nil {
		f.changedMailboxes[inventory] = map[types.UID]bool{}
	}
	f.changedMailboxes[inventory][syncTarget] = true
	return []mcreconcile.Request{watch.InventoryRequest(multicluster.ClusterName(inventory))}
}

// Reconcile updates the view of an inventory from the caches. It does nothing until they are filled;
// [watch.Engagement] then causes another reconcile.
func (f *Fleet) Reconcile(ctx context.Context, request mcreconcile.Request) (reconcile.Result, error) {
	if err := f.Mailboxes.OwnerChecker.Ledger.WaitForLoad(ctx); err != nil {
		return reconcile.Result{}, err
	}
	name := logicalcluster.Name(request.ClusterName)
	inventory, err := f.Manager.GetCluster(ctx, request.ClusterName)
	if errors.Is(err, multicluster.ErrClusterNotFound) {
		f.remove(name)
		return reconcile.Result{}, nil
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	view, err := f.observe(ctx, name, inventory)
	if view != nil {
		f.set(view)
	}
	return reconcile.Result{}, err
}

// observe returns the view of an inventory in the caches, or nil if they are not filled. If a mailbox cannot be located, the
// view lacks that mailbox only, and observe also returns an error.
func (f *Fleet) observe(ctx context.Context, name logicalcluster.Name, inventory cluster.Cluster) (*fleet.Inventory, error) {
	var locations edgev2alpha1.LocationList
	var syncTargets edgev2alpha1.SyncTargetList
	err := errors.Join(
		inventory.GetClient().List(ctx, &locations, client.UnsafeDisableDeepCopy),
		inventory.GetClient().List(ctx, &syncTargets, client.UnsafeDisableDeepCopy),
	)
	if errors.Is(err, inventories.ErrNotSynced) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	view := &fleet.Inventory{Name: name}
	for i := range locations.Items {
		view.Locations = append(view.Locations, newLocation(name, &locations.Items[i]))
	}
	mailboxes, err := f.locate(ctx, name, syncTargets.Items)
	for i := range syncTargets.Items {
		syncTarget := newSyncTarget(name, &syncTargets.Items[i])
		syncTarget.Mailbox = mailboxes[syncTarget.UID]
		view.SyncTargets = append(view.SyncTargets, syncTarget)
	}
	return view.Sorted(), err
}

// locate returns the mailboxes of an inventory's SyncTargets. It locates mailboxes that are new, were not found
// before, or whose workspace changed. Only one reconcile of an inventory runs at a time.
func (f *Fleet) locate(ctx context.Context, inventory logicalcluster.Name, syncTargets []edgev2alpha1.SyncTarget) (map[types.UID]logicalcluster.Name, error) {
	f.lock.Lock()
	known := maps.Clone(f.located[inventory])
	for syncTarget := range f.changedMailboxes[inventory] {
		delete(known, syncTarget)
	}
	delete(f.changedMailboxes, inventory)
	f.lock.Unlock()

	mailboxes := make(map[types.UID]logicalcluster.Name, len(syncTargets))
	var errs []error
	for i := range syncTargets {
		uid := syncTargets[i].UID
		if mailboxes[uid] = known[uid]; mailboxes[uid] == "" {
			var err error
			mailboxes[uid], err = f.Mailboxes.Locate(ctx, inventory, &syncTargets[i])
			errs = append(errs, err)
		}
	}
	f.lock.Lock()
	defer f.lock.Unlock()
	f.located[inventory] = mailboxes
	return mailboxes, errors.Join(errs...)
}
