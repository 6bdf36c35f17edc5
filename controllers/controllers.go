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
	"errors"
	"sync/atomic"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	configv1alpha1 "github.com/synchub-dev/synchub/apis/config/v1alpha1"
	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	apiexportcontroller "github.com/synchub-dev/synchub/controllers/apiexport"
	"github.com/synchub-dev/synchub/controllers/apiresourceschema"
	"github.com/synchub-dev/synchub/controllers/internal/findings"
	"github.com/synchub-dev/synchub/controllers/internal/status"
	"github.com/synchub-dev/synchub/controllers/location"
	"github.com/synchub-dev/synchub/controllers/mailbox"
	"github.com/synchub-dev/synchub/controllers/placement"
	"github.com/synchub-dev/synchub/controllers/placement/fleetcache"
	"github.com/synchub-dev/synchub/controllers/placement/syncstatus"
	"github.com/synchub-dev/synchub/controllers/syncerconfig"
	"github.com/synchub-dev/synchub/controllers/syncmanager"
	"github.com/synchub-dev/synchub/controllers/syncmanager/crd"
	"github.com/synchub-dev/synchub/controllers/syncmanager/namelock"
	"github.com/synchub-dev/synchub/controllers/syncmanager/schemacheck"
	"github.com/synchub-dev/synchub/controllers/syncrules"
	"github.com/synchub-dev/synchub/controllers/synctarget"
	"github.com/synchub-dev/synchub/provider/fence"
	"github.com/synchub-dev/synchub/provider/kcp"
	"github.com/synchub-dev/synchub/provider/leases"
	"github.com/synchub-dev/synchub/provider/storehistory"
	"github.com/synchub-dev/synchub/provider/tracing"
)

// Dependencies are made by the process of the hub, before the manager of the hosting cluster.
type Dependencies struct {
	Access *kcp.ConfigProvider
	// Provider is the provider workspace.
	Provider cluster.Cluster
	// History detects that kcp went back to an earlier state.
	History *storehistory.Guard
	// Fence refuses the hub's writes to kcp and to targets while this replica does not hold the Lease; nil refuses none.
	Fence *fence.Fence
	// Leases watches the Lease of the leader and, if SyncTargets are sharded, the Leases of shards. It is nil without a Lease.
	Leases *leases.Watcher
	// Replica is the name of this replica. LiveReplicas returns the names of all replicas, including this one; it is nil without a Lease.
	Replica string
	// Version is the version of the hub.
	Version      string
	LiveReplicas func() []string
	// Ready is set once this replica can own SyncTargets, if they are sharded.
	Ready *atomic.Bool
	// Tracer records traces of changed objects; nil records none.
	Tracer *tracing.Tracer
	Log    logr.Logger
}

// Setup adds all controllers to the manager of the hosting cluster.
func Setup(ctx context.Context, hosting manager.Manager, dependencies Dependencies, settings *configv1alpha1.HubConfiguration) error {
	r, err := newReplica(ctx, hosting, dependencies, settings)
	if err != nil {
		return err
	}
	h, err := newHub(ctx, r)
	if err != nil {
		return err
	}
	controllers, err := newControllers(h)
	if err != nil {
		return err
	}
	var errs []error
	for _, one := range controllers {
		errs = append(errs, one.Register(hosting))
	}
	return errors.Join(errs...)
}

// controller is a controller that adds itself to the manager of the hosting cluster.
type controller interface {
	Register(hosting manager.Manager) error
}

// newControllers returns all controllers. Controllers of inventory workspaces add themselves to the manager of these workspaces, too.
func newControllers(h *hub) ([]controller, error) {
	locator := newLocator(h)
	lines := status.NewJournal(h.Log.WithName("journal"), h.clock)
	readySyncTargets := &findings.Readiness{}
	crds := &crd.Store{}
	syncManager := newSyncManager(h, crds, lines)
	syncTargets := newSyncTargets(h, syncManager, locator, readySyncTargets, lines)
	copies := syncstatus.NewStore(syncstatus.StoreOptions{Mailboxes: h.mailboxes, Published: syncManager.Published, SyncStatusChanged: &syncManager.SyncStatusChanged})
	fleet := fleetcache.New(fleetcache.Options{
		Manager: h.inventories.ofLeader, Mailboxes: locator, InventoryConfigFor: h.Access.InventoryConfigFor, Scheme: h.hosting.GetScheme(),
	})
	pendingWithdrawals := &findings.Withdrawals{}
	placements := newPlacement(h, syncManager, copies, fleet, readySyncTargets, pendingWithdrawals, lines)
	all := []controller{
		h,
		lines,
		mailbox.New(mailbox.Options{
			Inventories: h.inventories.ofLeader, Locator: locator, Export: synchubv1alpha1.MailboxExport, Ledger: h.ledger, Workspaces: h.workspaces,
			StopSync: syncTargets.Stop, IsCleanedUp: syncTargets.IsCleanedUp, RemoveFinalizers: syncManager.RemoveFinalizers, Clock: h.clock,
		}),
		syncTargets,
		location.New(location.Options{Inventories: h.inventories.ofLeader, Withdrawals: pendingWithdrawals, Clock: h.clock}),
		fleet,
		placements,
		newSchemas(h, syncTargets, crds),
		newExports(h, syncManager, placements),
		newSyncRules(h),
		syncManager,
		syncerconfig.New(syncerconfig.Options{Mailboxes: h.mailboxes, Sync: syncManager, LeaderOnly: !h.isSharded, Clock: h.clock, Log: h.Log.WithName("syncerconfig")}),
		h.tunnels,
		cachesReadyCheck{syncManager, h.mailboxes, h.role, h.isColdStandby},
	}
	if !h.isSharded {
		return append(all, runnables{publishElection(h.role)}), nil
	}
	elector, err := newElector(h, syncTargets)
	if err != nil {
		return nil, err
	}
	copiesOfOthers, err := newCopiesWatcher(h, copies)
	if err != nil {
		return nil, err
	}
	updater := ownedUpdater{h.owned, h.ledger, h.mailboxes.Ownership.RecheckOwned, h.workloads.Ownership.RecheckOwned}
	return append(all,
		runnables{elector, onEachReplica(updater.run), setReady(h, syncManager), copiesOfOthers},
		syncmanager.NewSyncSummaryWriter(syncManager, h.ledger, readySyncTargets, h.Log.WithName("syncsummary")),
		newCopiesWriter(h, syncManager),
	), nil
}

// newLocator returns the locator of the mailboxes that the hub created.
func newLocator(h *hub) mailbox.Locator {
	return mailbox.Locator{
		Provider: h.Provider, Workspace: h.settings.KCP.ProviderWorkspace,
		Quota:        mailbox.NewQuota(h.Provider, h.Log.WithName("mailbox"), h.settings.Mailboxes),
		OwnerChecker: &mailbox.OwnerChecker{Ledger: h.ledger, WhoAmI: h.whoAmI},
	}
}

// newSyncManager returns the manager that runs the sync controllers of each SyncTarget.
func newSyncManager(h *hub, crds *crd.Store, lines *status.Journal) *syncmanager.Manager {
	return syncmanager.New(syncmanager.Dependencies{
		Mailboxes: h.mailboxes, CachePolicy: h.mailboxPolicy, StoreWrittenResources: syncmanager.StoreWrittenResourcesIn(h.ledger), StoreTenantResources: syncmanager.StoreTenantResourcesIn(h.ledger), CRDs: crds,
		Hub: h.owner.UID, Hasher: h.hasher, Sealer: h.sealer, Role: h.role, History: h.History, Journal: lines, Tracer: h.Tracer,
		Checker: schemacheck.NewChecker(h.clock), NameReleaser: &namelock.Releaser{ConfigFor: h.Access.WorkspaceConfig},
		Clock: h.clock, Log: h.Log.WithName("sync"),
	}, h.settings)
}

// newSyncTargets returns the controller that connects to targets, and starts and stops their sync.
func newSyncTargets(h *hub, syncManager *syncmanager.Manager, locator mailbox.Locator, ready *findings.Readiness, lines *status.Journal) *synctarget.Controller {
	return synctarget.New(synctarget.Options{
		Manager: h.inventories.ofStandby, Ledger: h.ledger, Mailboxes: locator, Sync: syncManager, Readiness: ready, History: h.History,
		Registry: h.connections, Role: h.role, OtherOwners: h.isSharded, Replica: h.Replica, Version: h.Version, Tunnel: h.tunnels.status(), Journal: lines,
		Clock: h.clock, Log: h.Log.WithName("synctarget"),
	})
}

// newPlacement returns the controller that copies objects of workload workspaces into mailboxes.
func newPlacement(h *hub, syncManager *syncmanager.Manager, copies *syncstatus.Store, fleet *fleetcache.Fleet, ready *findings.Readiness, pending *findings.Withdrawals, lines *status.Journal) *placement.Controller {
	return placement.New(placement.Options{
		Workloads: h.workloads, CachePolicy: h.workloadPolicy, Mailboxes: h.mailboxes, Fleet: fleet, Paths: h.Access, Readiness: ready, History: h.History,
		Sync: syncstatus.Reader{Sync: syncManager, Store: copies, Owner: h.role}, SyncStatusChanged: &syncManager.SyncStatusChanged, KnownSyncTargets: h.ledger.SyncTargets,
		Hub: h.owner.UID, Hasher: h.hasher, Sealer: h.sealer, MaxPairs: h.settings.Placement.MaxObjects, MaxReflections: h.settings.Placement.MaxUpsyncedObjects,
		WithdrawalGrace: h.settings.Placement.WithdrawalGrace.Duration, Withdrawals: pending, Journal: lines,
		Clock: h.clock, Log: h.Log.WithName("placement"),
	})
}

// newSchemas returns the controller of the schemas that mailboxes get. It also finds the CRDs that targets must have.
func newSchemas(h *hub, syncTargets *synctarget.Controller, crds *crd.Store) *apiresourceschema.Controller {
	return apiresourceschema.New(apiresourceschema.Options{
		Hub: h.owner, Hosting: h.hosting.GetClient(), HostingDiscovery: h.hostingDiscovery, Namespace: h.settings.Namespace, Provider: h.Provider,
		Targets: &apiresourceschema.SyncTargets{
			Inventories: h.inventories.ofLeader, ResolvePath: h.Access.LogicalClusterOf, Registry: h.connections, Connect: syncTargets.ConnectForSchemas,
		},
		ConnectionChanged: &h.connections.Changed, CRDs: crds, Elected: h.role.Elected, LeaderOnly: !h.isSharded,
		Recorder: h.hosting.GetEventRecorder(recorderName), Clock: h.clock,
	})
}

// newExports returns the controller of the APIExports that mailboxes and workload workspaces bind.
func newExports(h *hub, syncManager *syncmanager.Manager, placements *placement.Controller) *apiexportcontroller.Controller {
	return apiexportcontroller.New(apiexportcontroller.Options{
		Hub: h.owner, Hosting: h.hosting.GetClient(), Provider: h.Provider, Export: synchubv1alpha1.MailboxExport, WorkloadExport: synchubv1alpha1.WorkloadExport,
		Mailboxes: h.mailboxes, CacheLimits: h.mailboxes.Limits, Sync: syncManager, Counter: syncmanager.NewFleetCounter(syncManager, h.ledger), Workloads: h.workloads, Placement: placements,
		Elected: h.role.Elected, LeaderOnly: h.isColdStandby, Recorder: h.hosting.GetEventRecorder(recorderName), Clock: h.clock,
	})
}

// newSyncRules returns the controller that publishes the rules to mailboxes and workload workspaces.
func newSyncRules(h *hub) *syncrules.Controller {
	return syncrules.New(syncrules.Options{
		Hosting: h.hosting.GetClient(), Hub: h.owner, ProtectedNamespaces: h.settings.Targets.ProtectedNamespaces,
		Workspaces: []syncrules.Workspaces{h.mailboxes, h.workloads}, Clock: h.clock,
	})
}
