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

	kcpcoreclient "github.com/kcp-dev/client-go/kubernetes/typed/core/v1"
	"github.com/kcp-dev/logicalcluster/v3"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	mcmanager "sigs.k8s.io/multicluster-runtime/pkg/manager"

	"github.com/synchub-dev/synchub/controllers/internal/leadership"
	"github.com/synchub-dev/synchub/controllers/placement"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/syncmanager"
	"github.com/synchub-dev/synchub/provider/bootstrap"
	"github.com/synchub-dev/synchub/provider/inventories"
	"github.com/synchub-dev/synchub/provider/ledger"
	"github.com/synchub-dev/synchub/provider/mailboxes"
	"github.com/synchub-dev/synchub/provider/metrics/requestmetrics"
	"github.com/synchub-dev/synchub/provider/storehistory"
	"github.com/synchub-dev/synchub/provider/targets"
)

// clusters are the connections of the hub, except the connection to the hosting cluster.
type clusters struct {
	// provider is the provider workspace. ledger contains the hub's own records there, which are in configMaps.
	provider   cluster.Cluster
	configMaps corev1client.ConfigMapInterface
	ledger     *ledger.Store
	// history detects that kcp went back to an earlier state.
	history *storehistory.Guard
	// inventories runs the leader's controllers that reconcile over all inventory workspaces, which inventoryFinder finds.
	inventories     mcmanager.Manager
	inventoryFinder *inventoryFinder
	// mailboxes are cached by cachePolicy.
	mailboxes   *mailboxes.Mailboxes
	cachePolicy *syncmanager.CachePolicy
	// workloads are the workload workspaces, cached by workloadPolicy.
	workloads      *mailboxes.Mailboxes
	workloadPolicy *placement.CachePolicy
	targets        *targets.Registry
	// needed are the mailboxes that this replica needs; nil if it needs all.
	needed *neededMailboxes
}

func newClusters(ctx context.Context, hosting manager.Manager, identity bootstrap.Identity, changed *changes, role leadership.Role, options Options) (*clusters, error) {
	provider, err := cluster.New(options.Access.WorkspaceConfig(options.Workspace), func(o *cluster.Options) { o.Scheme = hosting.GetScheme() })
	if err != nil {
		return nil, fmt.Errorf("cannot reach the provider workspace %s: %w", options.Workspace, err)
	}
	inventoryProvider, err := inventories.New(inventories.Options{
		KCP: options.Access, Workspace: options.Workspace, Export: bootstrap.InventoryExport, Scheme: hosting.GetScheme(), Log: options.Log.WithName("inventory"),
	})
	if err != nil {
		return nil, fmt.Errorf("cannot watch the inventory workspaces: %w", err)
	}
	multi, err := mcmanager.WithMultiCluster(hosting, inventoryProvider)
	if err != nil {
		return nil, err
	}
	workspaces, err := kcpcoreclient.NewForConfigAndClient(options.Access.ConfigFor(options.Access.Host(), requestmetrics.Control), provider.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("cannot make a client for the ledger: %w", err)
	}
	configMaps := workspaces.Cluster(logicalcluster.NewPath(options.Workspace)).ConfigMaps(ledger.Namespace)
	var needed *neededMailboxes
	var needs, needsWorkload func(logicalcluster.Name) bool
	if options.Sharded {
		needed = newNeededMailboxes(role)
		needs, needsWorkload = needed.needs, needed.needsWorkload
	}
	history := options.History
	history.Client, history.Reader, history.Namespace = provider.GetClient(), provider.GetAPIReader(), ledger.Namespace
	identityOf := hubIdentityReader(hosting, options.Lease, history)
	// The versions in the Lease count if they are read before the first lists of kcp. A hub that starts for the first time has no Lease.
	if _, err := identityOf(ctx); client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("cannot read the Lease of the hub: %w", err)
	}
	cachePolicy := syncmanager.NewCachePolicy(options.MailboxLimits, options.Log.WithName("sync"))
	workloadPolicy := placement.NewCachePolicy(options.MailboxLimits)
	made := &clusters{
		provider: provider, configMaps: configMaps,
		history: history,
		ledger: ledger.New(ledger.Options{
			ConfigMaps: configMaps, Elected: role.Elected, LeaderOnly: options.ColdStandby, Identity: identityOf, History: history,
			Clock: clock.RealClock{}, Log: options.Log.WithName("ledger"),
		}),
		inventories: leaderOnly{multi}, inventoryFinder: &inventoryFinder{provider: inventoryProvider, manager: multi, leaderOnly: options.ColdStandby},
		mailboxes: mailboxes.New(mailboxes.Options{
			Access: options.Access, Workspace: options.Workspace, Export: bootstrap.MailboxExport, Resources: syncmanager.ConfigResources, Needs: needs,
			LeaderOnly: options.ColdStandby, Policy: cachePolicy, MaxBytes: options.MailboxesBytes, AbsenceDelays: options.AbsenceDelays, History: history,
			Clock: clock.RealClock{}, Log: options.Log.WithName("mailboxes"),
		}),
		cachePolicy: cachePolicy,
		workloads: mailboxes.New(mailboxes.Options{
			Access: options.Access, Workspace: options.Workspace, Export: bootstrap.WorkloadExport, Resources: placement.Resources, BindLater: true, Needs: needsWorkload,
			LeaderOnly: options.ColdStandby, Policy: workloadPolicy, MaxBytes: options.MailboxesBytes / 2, AbsenceDelays: options.AbsenceDelays, History: history,
			Clock: clock.RealClock{}, Log: options.Log.WithName("workloads"),
		}),
		workloadPolicy: workloadPolicy,
		targets: targets.NewRegistry(targets.Options{
			FieldManager:   ownership.FieldManager(identity.HubUID),
			Limits:         options.TargetLimits,
			Clock:          clock.RealClock{},
			Log:            options.Log.WithName("targets"),
			OnChange:       changed.connectionChanged.Publish,
			OnUnauthorized: changed.unauthorized.Publish,
			DeniedNetworks: options.DeniedNetworks,
			CacheLimits:    options.TargetCacheLimits,
			TotalBytes:     options.TargetsBytes,
			LeaderOnly:     options.ColdStandby,

			AggregateMetrics: options.AggregateMetrics,
			Tunnels:          tunnelOptions(options),
			Fence:            role.Fence,
		}),
		needed: needed,
	}
	if needed != nil {
		needed.ledger, needed.recheck, needed.recheckWorkloads = made.ledger, made.mailboxes.RecheckNeeds, made.workloads.RecheckNeeds
	}
	return made, nil
}

// addTo makes the manager of the hosting cluster run the ledger, the caches and the connections.
func (c *clusters) addTo(hosting manager.Manager) error {
	var shardedErr error
	if c.needed != nil {
		shardedErr = hosting.Add(c.needed)
	}
	return errors.Join(hosting.Add(c.provider), hosting.Add(c.history), hosting.Add(c.ledger), shardedErr,
		hosting.Add(c.inventoryFinder), hosting.Add(c.mailboxes), hosting.Add(c.workloads), hosting.Add(c.targets))
}

// inventoryFinder engages the manager's controllers with the inventory workspaces that the provider finds.
type inventoryFinder struct {
	provider *inventories.Provider
	manager  mcmanager.Manager
	// leaderOnly is true if a standby does not need the workspaces.
	leaderOnly bool
}

// Start implements [manager.Runnable].
func (f *inventoryFinder) Start(ctx context.Context) error { return f.provider.Start(ctx, f.manager) }

// NeedLeaderElection implements [manager.LeaderElectionRunnable].
func (f *inventoryFinder) NeedLeaderElection() bool { return f.leaderOnly }

// controllersOfStandby returns the manager of the controllers that run over all inventory workspaces on a warm standby, too.
func (c *clusters) controllersOfStandby() mcmanager.Manager {
	if c.inventoryFinder.leaderOnly {
		return c.inventories
	}
	return everyReplica{c.inventoryFinder.manager}
}

// hubIdentityReader returns a function that returns the UIDs of the hub's Lease and of its namespace; both are
// empty if no Lease is configured. The function also records the versions of kcp in the Lease.
func hubIdentityReader(hosting manager.Manager, name types.NamespacedName, history *storehistory.Guard) func(ctx context.Context) (ledger.HubIdentity, error) {
	read := func(ctx context.Context, kind schema.GroupVersionKind, key types.NamespacedName) (*metav1.PartialObjectMetadata, error) {
		object := &metav1.PartialObjectMetadata{}
		object.SetGroupVersionKind(kind)
		return object, hosting.GetAPIReader().Get(ctx, key, object)
	}
	return func(ctx context.Context) (self ledger.HubIdentity, err error) {
		if name.Name == "" {
			return ledger.HubIdentity{}, nil
		}
		lease, err := read(ctx, coordinationv1.SchemeGroupVersion.WithKind("Lease"), name)
		if err != nil {
			return self, err
		}
		history.SetPrevious(lease.Annotations[storehistory.Annotation])
		namespace, err := read(ctx, corev1.SchemeGroupVersion.WithKind("Namespace"), types.NamespacedName{Name: name.Namespace})
		self.Lease, self.Namespace = string(lease.UID), string(namespace.UID)
		if apierrors.IsForbidden(err) {
			// An operator has cut the rights. The Lease alone identifies the hub then.
			err = nil
		}
		return self, err
	}
}
