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
	"fmt"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	apisv1alpha1 "github.com/kcp-dev/sdk/apis/apis/v1alpha1"
	apisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	corev1alpha1 "github.com/kcp-dev/sdk/apis/core/v1alpha1"
	tenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	configv1alpha1 "github.com/synchub-dev/synchub/apis/config/v1alpha1"
	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	apiexportcontroller "github.com/synchub-dev/synchub/controllers/apiexport"
	"github.com/synchub-dev/synchub/controllers/apiresourceschema"
	"github.com/synchub-dev/synchub/controllers/internal/leadership"
	"github.com/synchub-dev/synchub/controllers/internal/readiness"
	"github.com/synchub-dev/synchub/controllers/internal/topic"
	"github.com/synchub-dev/synchub/controllers/location"
	"github.com/synchub-dev/synchub/controllers/mailbox"
	"github.com/synchub-dev/synchub/controllers/objectsync"
	"github.com/synchub-dev/synchub/controllers/placement"
	"github.com/synchub-dev/synchub/controllers/placement/copystates"
	"github.com/synchub-dev/synchub/controllers/placement/fleetcache"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/plan/policy"
	"github.com/synchub-dev/synchub/controllers/publishedresource"
	"github.com/synchub-dev/synchub/controllers/syncerconfig"
	"github.com/synchub-dev/synchub/controllers/syncmanager"
	"github.com/synchub-dev/synchub/controllers/syncmanager/crd"
	"github.com/synchub-dev/synchub/controllers/syncmanager/namelock"
	"github.com/synchub-dev/synchub/controllers/syncmanager/schemacheck"
	"github.com/synchub-dev/synchub/controllers/syncrules"
	"github.com/synchub-dev/synchub/controllers/synctarget"
	"github.com/synchub-dev/synchub/provider/bootstrap"
	"github.com/synchub-dev/synchub/provider/discovery"
	"github.com/synchub-dev/synchub/provider/fence"
	"github.com/synchub-dev/synchub/provider/kcp"
	"github.com/synchub-dev/synchub/provider/leases"
	"github.com/synchub-dev/synchub/provider/mailboxes"
	"github.com/synchub-dev/synchub/provider/mailboxes/absence"
	"github.com/synchub-dev/synchub/provider/shards"
	"github.com/synchub-dev/synchub/provider/storehistory"
	"github.com/synchub-dev/synchub/provider/targets"
	"github.com/synchub-dev/synchub/provider/targets/kubeconfig"
	"github.com/synchub-dev/synchub/provider/tracing"
)

// Options configure the hub, apart from the hosting cluster's manager.
type Options struct {
	Access *kcp.ConfigProvider
	// Workspace is the path of the provider workspace.
	Workspace string
	// Fence refuses the hub's writes to kcp and to targets while this replica does not hold the Lease; nil refuses none.
	Fence *fence.Fence
	// Sharded divides the SyncTargets among all replicas. LiveReplicas returns the names of the replicas,
	// including this one. It needs a Lease, whose durations also apply to the Leases of shards.
	Sharded                                   bool
	LiveReplicas                              func() []string
	LeaseDuration, RenewDeadline, RenewPeriod time.Duration
	// Leases watches the Lease of the leader and, with Sharded, the Leases of shards. It is nil without a
	// Lease.
	Leases *leases.Watcher
	// History receives the versions of kcp in the Lease, and returns the next ones. Setup completes it.
	History *storehistory.Guard
	// Ready is set once this replica can hold SyncTargets, if they are sharded.
	Ready *atomic.Bool
	// ColdStandby makes replicas that are not the leader wait with empty caches. By default they fill their
	// caches.
	ColdStandby bool
	// Tunnel configures the port for tunnels of clusters.
	Tunnel configv1alpha1.TunnelConfiguration
	// Replica is the name of this replica.
	Replica string
	// Lease names the Lease in the hosting cluster for leader election. With an empty name the hub leads without a Lease.
	Lease types.NamespacedName
	// Namespace in the hosting cluster holds the ConfigMaps with schemas.
	Namespace    string
	TargetLimits kcp.Limits
	// MailboxLimits bound the cache of one mailbox, and MailboxesBytes bounds the caches of all mailboxes together.
	MailboxLimits  mailboxes.Limits
	MailboxesBytes int64
	// AbsenceDelays are how long the hub waits before it concludes that an object is gone from a mailbox.
	AbsenceDelays absence.Delays
	// TargetCacheLimits bound the cache of one target, and TargetsBytes bounds the caches of all targets together.
	TargetCacheLimits targets.CacheLimits
	TargetsBytes      int64
	// MaxMailboxes is how many mailboxes the hub creates for the SyncTargets of one inventory workspace.
	MaxMailboxes int
	// MaxPlacedObjects is how many pairs of an object and a destination the placements of one workload workspace may have.
	MaxPlacedObjects int
	// DeniedNetworks are networks that the hub never connects to as a target.
	DeniedNetworks kubeconfig.DeniedNetworks
	// ProtectedNamespaces are the namespaces that the hub syncs nothing to or from, unless a rule allows the namespace.
	ProtectedNamespaces policy.NamespacePatterns
	// AggregateMetrics makes the hub sum the metrics of a SyncTarget over its resources.
	AggregateMetrics bool
	// Tracer records traces of changed objects; nil records none.
	Tracer *tracing.Tracer
	Log    logr.Logger
}

// Scheme returns a scheme with every kind that the hub reads or writes as a Go type.
func Scheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme,
		apisv1alpha1.AddToScheme, apisv1alpha2.AddToScheme, corev1alpha1.AddToScheme, tenancyv1alpha1.AddToScheme,
		edgev2alpha1.AddToScheme, synchubv1alpha1.AddToScheme,
	} {
		// Registering fails only if two Go types claim one kind.
		_ = add(scheme)
	}
	return scheme
}

// changes notify controllers about changes of SyncTargets.
type changes struct {
	// connection: the target got a connection, came up or went down. unauthorized: it refused the credentials in a probe.
	connectionChanged, unauthorized topic.Topic[types.UID]
	// state: the sync manager's state of the SyncTarget. objects: its configs, or the objects that they select.
	stateChanged, objectsChanged topic.Topic[types.UID]
	// shards: this replica acquired or released them.
	shardsChanged topic.Topic[shards.Set]
	// copies: the sync status of copies of placements in mailboxes.
	objectStateChanged topic.Topic[objectsync.ObjectRef]
	// readiness: whether the SyncTarget is Ready. The registry also contains the states.
	readiness readiness.Registry
}

// Setup adds all controllers to the manager of the hosting cluster.
func Setup(ctx context.Context, hosting manager.Manager, options Options) error {
	identity, err := bootstrap.ReadIdentity(ctx, options.Access.WorkspaceConfig(options.Workspace), options.Workspace)
	if err != nil {
		return err
	}
	changed := &changes{}
	var syncTargets *synctarget.Controller
	role, sharded, err := newRole(hosting, changed, func(shard int) { syncTargets.StopShard(shard) }, options)
	if err != nil {
		return err
	}
	clusters, err := newClusters(ctx, hosting, identity, changed, role, options)
	if err != nil {
		return err
	}
	quota := mailbox.NewQuota(clusters.provider, options.MaxMailboxes, options.Log.WithName("mailbox"))
	locator := newLocator(clusters, quota, options)
	syncManager := newSyncManager(clusters, identity, changed, role, options)
	copies := copystates.NewStore(copystates.StoreOptions{Mailboxes: clusters.mailboxes, Published: syncManager.Published, ObjectStateChanged: &changed.objectStateChanged})
	tunnels, err := newTunnelListener(ctx, hosting, clusters.targets.Tunnels(), options)
	if err != nil {
		return err
	}
	syncTargets = synctarget.NewController(synctarget.Options{
		Tunnel:  tunnels.status(),
		Replica: options.Replica, Role: role, OtherOwners: options.Sharded, Manager: clusters.controllersOfStandby(), Registry: clusters.targets, Sync: syncManager, Ledger: clusters.ledger, Mailboxes: locator,
		ConnectionChanged: &changed.connectionChanged, StateChanged: &changed.stateChanged, Unauthorized: &changed.unauthorized, Readiness: &changed.readiness,
		History: clusters.history,
		Clock:   clock.RealClock{}, Log: options.Log.WithName("synctarget"),
	})
	fleet := newFleet(clusters, locator, options)
	placement := newPlacement(clusters, fleet, copystates.Reader{Sync: syncManager, Store: copies, Owner: role}, changed, identity, options)
	clusters.history.OnChange = func() {
		syncTargets.EnqueueAll()
		placement.ReportAll()
	}
	schemas, err := newSchemas(hosting, clusters, identity, syncManager, syncTargets, changed, role, options)
	if err != nil {
		return err
	}
	workspaces, err := options.Access.WorkspaceClients(mailbox.RequestTimeout)
	if err != nil {
		return err
	}
	return errors.Join(
		clusters.addTo(hosting),
		hosting.Add(quota),
		mailbox.NewController(clusters.inventories, locator, clusters.ledger, clock.RealClock{}, mailbox.Dependencies{
			StopSync: syncTargets.Stop, IsCleanedUp: syncTargets.IsCleanedUp, RemoveFinalizers: syncManager.RemoveFinalizers, Workspaces: workspaces,
		}).Register(),
		syncTargets.Register(),
		location.NewController(clusters.inventories, clock.RealClock{}).Register(),
		fleet.Register(),
		placement.Register(hosting),
		schemas.Register(hosting),
		newExports(hosting, clusters, identity, syncManager, placement, role.Elected, options).Register(hosting),
		newSyncRules(hosting, clusters, identity, options).Register(hosting),
		syncManager.Register(hosting),
		syncerconfig.NewController(clusters.mailboxes, syncManager, !options.Sharded, clock.RealClock{}, options.Log.WithName("syncerconfig")).Register(hosting),
		division{hosting, sharded, clusters, syncManager, changed, role, options.Ready, options.Log}.add(copies, ownership.NewSealer(identity.HashKey)),
		tunnels.addTo(hosting),
		hosting.Add(kubeconfigWatcher{options.Access, options.Log.WithName("kcp")}),
		hosting.AddReadyzCheck("kcp-caches", cachesReadyCheck(role.Leads, syncManager, clusters.mailboxes, options.ColdStandby)),
	)
}

// newLocator returns the locator of the mailboxes that the hub created.
func newLocator(clusters *clusters, quota *mailbox.Quota, options Options) mailbox.Locator {
	return mailbox.Locator{Provider: clusters.provider, Workspace: options.Workspace, Quota: quota, OwnerChecker: &mailbox.OwnerChecker{
		Ledger: clusters.ledger,
		WhoAmI: func(ctx context.Context) (authenticationv1.UserInfo, error) {
			return kcp.WhoAmI(ctx, options.Access.WorkspaceConfig(options.Workspace))
		},
	}}
}

// newFleet returns placement's view of the inventories.
func newFleet(clusters *clusters, locator mailbox.Locator, options Options) *fleetcache.Fleet {
	return fleetcache.New(fleetcache.Options{
		Manager: clusters.inventories, Mailboxes: locator, InventoryConfigFor: options.Access.InventoryConfigFor, Scheme: clusters.inventories.GetLocalManager().GetScheme(),
	})
}

// newPlacement returns the controller that copies objects of workload workspaces into mailboxes.
func newPlacement(clusters *clusters, view *fleetcache.Fleet, states placement.SyncStates, changed *changes, identity bootstrap.Identity, options Options) *placement.Controller {
	return placement.New(placement.Options{
		Workloads: clusters.workloads, Mailboxes: clusters.mailboxes, CachePolicy: clusters.workloadPolicy, Fleet: view, Paths: options.Access, Readiness: &changed.readiness, History: clusters.history,
		Hub: identity.HubUID, Hasher: ownership.NewHasher(identity.HashKey), Sealer: ownership.NewSealer(identity.HashKey),
		KnownSyncTargets: clusters.ledger.SyncTargets, Sync: states, ObjectStates: &changed.objectStateChanged,
		MaxPairs: options.MaxPlacedObjects, Clock: clock.RealClock{}, Log: options.Log.WithName("placement"),
	})
}

// newSyncManager returns the manager that runs the sync controllers of each SyncTarget.
func newSyncManager(clusters *clusters, identity bootstrap.Identity, changed *changes, role leadership.Role, options Options) *syncmanager.Manager {
	return syncmanager.New(syncmanager.Options{
		Mailboxes:            clusters.mailboxes,
		CachePolicy:          clusters.cachePolicy,
		WrittenResourceStore: syncmanager.LedgerWrittenResourceStore{Store: clusters.ledger},
		Hub:                  identity.HubUID,
		Hasher:               ownership.NewHasher(identity.HashKey),
		Sealer:               ownership.NewSealer(identity.HashKey),
		ProtectedNamespaces:  options.ProtectedNamespaces,
		StateChanged:         &changed.stateChanged,
		ObjectsChanged:       &changed.objectsChanged,
		ObjectStateChanged:   &changed.objectStateChanged,
		Role:                 role,
		LeaderOnly:           options.ColdStandby,
		Checker:              schemacheck.NewChecker(clock.RealClock{}),
		History:              clusters.history,
		NameClearer:          &namelock.Clearer{ConfigFor: options.Access.WorkspaceConfig},
		AggregateMetrics:     options.AggregateMetrics,
		Tracer:               options.Tracer,
		Clock:                clock.RealClock{},
		Log:                  options.Log.WithName("sync"),
	})
}

// newSchemas returns the controller of the schemas that mailboxes get. It gives the sync manager the CRDs to install.
func newSchemas(hosting manager.Manager, clusters *clusters, identity bootstrap.Identity, sync *syncmanager.Manager, syncTargets *synctarget.Controller, changed *changes, role leadership.Role, options Options) (*apiresourceschema.Controller, error) {
	hostingDiscovery, err := discovery.NewClient(hosting.GetConfig(), hosting.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("cannot make a client for the hosting cluster: %w", err)
	}
	sources := &apiresourceschema.SyncTargets{
		Inventories: clusters.inventories, ResolvePath: options.Access.LogicalClusterOf, Registry: clusters.targets, Connect: syncTargets.ConnectForSchemas,
	}
	return apiresourceschema.NewController(apiresourceschema.Options{
		Hub:               publishedresource.Hub{UID: identity.HubUID, Workspace: options.Workspace},
		Hosting:           hosting.GetClient(),
		HostingDiscovery:  hostingDiscovery,
		Namespace:         options.Namespace,
		Provider:          clusters.provider,
		Targets:           sources,
		ConnectionChanged: &changed.connectionChanged,
		CRDs: publishedresource.NewCRDStore(func(all []publishedresource.CRDInstallation) {
			sync.SetCRDs(desiredCRDs(all))
		}),
		Elected:    role.Elected,
		LeaderOnly: !options.Sharded,
		Recorder:   hosting.GetEventRecorder("synchub"),
		Clock:      clock.RealClock{},
	}), nil
}

// newExports returns the controller of the APIExports that mailboxes and workload workspaces bind.
func newExports(hosting manager.Manager, clusters *clusters, identity bootstrap.Identity, sync *syncmanager.Manager, placement *placement.Controller, elected leadership.Elected, options Options) *apiexportcontroller.Controller {
	return apiexportcontroller.NewController(apiexportcontroller.Options{
		Hub:            publishedresource.Hub{UID: identity.HubUID, Workspace: options.Workspace},
		Hosting:        hosting.GetClient(),
		Provider:       clusters.provider,
		Export:         bootstrap.MailboxExport,
		WorkloadExport: bootstrap.WorkloadExport,
		Mailboxes:      clusters.mailboxes,
		Sync:           sync,
		Counter:        syncmanager.NewFleetCounter(sync, clusters.ledger),
		Workloads:      clusters.workloads,
		Placement:      placement,
		Elected:        elected,
		LeaderOnly:     options.ColdStandby,
		Clock:          clock.RealClock{},
		Recorder:       hosting.GetEventRecorder("synchub"),
	})
}

// newSyncRules returns the controller that publishes the rules to mailboxes and workload workspaces.
func newSyncRules(hosting manager.Manager, clusters *clusters, identity bootstrap.Identity, options Options) *syncrules.Controller {
	return syncrules.NewController(syncrules.Options{
		Hosting: hosting.GetClient(), Hub: publishedresource.Hub{UID: identity.HubUID, Workspace: options.Workspace}, ProtectedNamespaces: options.ProtectedNamespaces,
		Workspaces: []syncrules.Workspaces{clusters.mailboxes, clusters.workloads}, Clock: clock.RealClock{},
	})
}

// desiredCRDs converts the CRDs that targets must have to the type of the sync manager.
func desiredCRDs(all []publishedresource.CRDInstallation) []crd.Installation {
	installations := make([]crd.Installation, 0, len(all))
	for _, installation := range all {
		installations = append(installations, crd.Installation{PublishedResource: installation.PublishedResource, UID: installation.UID, CRD: installation.CRD, Version: installation.Version})
	}
	return installations
}

// kubeconfigWatcher reloads the kcp kubeconfig on all replicas.
type kubeconfigWatcher struct {
	access *kcp.ConfigProvider
	log    logr.Logger
}

func (w kubeconfigWatcher) Start(ctx context.Context) error { return w.access.Watch(ctx, w.log) }

func (w kubeconfigWatcher) NeedLeaderElection() bool { return false }
