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
	"net/http"

	"github.com/go-logr/logr"
	apisv1alpha1 "github.com/kcp-dev/sdk/apis/apis/v1alpha1"
	apisv1alpha2 "github.com/kcp-dev/sdk/apis/apis/v1alpha2"
	corev1alpha1 "github.com/kcp-dev/sdk/apis/core/v1alpha1"
	tenancyv1alpha1 "github.com/kcp-dev/sdk/apis/tenancy/v1alpha1"
	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	mcmanager "sigs.k8s.io/multicluster-runtime/pkg/manager"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	apiexportcontroller "github.com/synchub-dev/synchub/controllers/apiexport"
	"github.com/synchub-dev/synchub/controllers/apiresourceschema"
	"github.com/synchub-dev/synchub/controllers/crd"
	"github.com/synchub-dev/synchub/controllers/mailbox"
	"github.com/synchub-dev/synchub/controllers/namelock"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/policy"
	"github.com/synchub-dev/synchub/controllers/publishedresource"
	"github.com/synchub-dev/synchub/controllers/schemacheck"
	"github.com/synchub-dev/synchub/controllers/syncerconfig"
	"github.com/synchub-dev/synchub/controllers/syncmanager"
	"github.com/synchub-dev/synchub/controllers/synctarget"
	"github.com/synchub-dev/synchub/provider/bootstrap"
	"github.com/synchub-dev/synchub/provider/inventories"
	"github.com/synchub-dev/synchub/provider/kcp"
	"github.com/synchub-dev/synchub/provider/ledger"
	"github.com/synchub-dev/synchub/provider/mailboxes"
	"github.com/synchub-dev/synchub/provider/targets"
)

// Options configure the hub beside the hosting cluster's manager.
type Options struct {
	Access *kcp.ConfigProvider
	// Workspace is the path of the provider workspace.
	Workspace string
	// Lease names the Lease in the hosting cluster for leader election. With an empty name the hub leads without a Lease.
	Lease types.NamespacedName
	// Namespace in the hosting cluster holds the ConfigMaps with schemas.
	Namespace    string
	TargetLimits kcp.Limits
	// MailboxLimits bound the cache of one mailbox, and MailboxesBytes bounds the caches of all mailboxes together.
	MailboxLimits  mailboxes.Limits
	MailboxesBytes int64
	// TargetCacheLimits bound the cache of one target, and TargetsBytes bounds the caches of all targets together.
	TargetCacheLimits targets.CacheLimits
	TargetsBytes      int64
	// MaxMailboxes is how many mailboxes the hub creates for the SyncTargets of one inventory workspace.
	MaxMailboxes int
	// DeniedNetworks are networks that the hub never connects to as a target.
	DeniedNetworks targets.DeniedNetworks
	// ProtectedNamespaces are the namespaces that the hub syncs nothing to or from, unless a rule allows the namespace.
	ProtectedNamespaces policy.NamespacePatterns
	Log                 logr.Logger
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

// Setup adds all controllers to the manager of the hosting cluster and returns the manager to start.
func Setup(ctx context.Context, hosting manager.Manager, options Options) (mcmanager.Manager, error) {
	realClock := clock.RealClock{}
	identity, err := bootstrap.ReadIdentity(ctx, options.Access.WorkspaceConfig(options.Workspace), options.Workspace)
	if err != nil {
		return nil, err
	}

	// Clusters: provider workspace, inventories, mailboxes, targets.
	provider, err := cluster.New(options.Access.WorkspaceConfig(options.Workspace), func(o *cluster.Options) { o.Scheme = hosting.GetScheme() })
	if err != nil {
		return nil, fmt.Errorf("cannot reach the provider workspace %s: %w", options.Workspace, err)
	}
	found, err := inventories.New(inventories.Options{
		KCP: options.Access, Workspace: options.Workspace, Export: bootstrap.InventoryExport, Scheme: hosting.GetScheme(), Log: options.Log.WithName("inventory"),
	})
	if err != nil {
		return nil, fmt.Errorf("cannot watch the inventory workspaces: %w", err)
	}
	multi, err := mcmanager.WithMultiCluster(hosting, found)
	if err != nil {
		return nil, err
	}
	boxes := mailboxes.New(options.Access, options.Workspace, bootstrap.MailboxExport, syncmanager.ConfigResources, realClock, options.Log.WithName("mailboxes"))
	ledgerStore := ledger.New(ledger.Options{
		Client: provider.GetClient(), Reader: provider.GetAPIReader(), LeaseUID: leaseUIDReader(hosting, options.Lease), Clock: realClock, Log: options.Log.WithName("ledger"),
	})
	places := mailbox.NewQuota(provider, options.MaxMailboxes, options.Log.WithName("mailbox"))
	locator := mailbox.Locator{Provider: provider, Workspace: options.Workspace, Quota: places, OwnerChecker: &mailbox.OwnerChecker{
		Ledger: ledgerStore,
		WhoAmI: func(ctx context.Context) (authenticationv1.UserInfo, error) {
			return kcp.WhoAmI(ctx, options.Access.WorkspaceConfig(options.Workspace))
		},
	}}
	var syncTargets *synctarget.Controller
	var schemas *apiresourceschema.Controller
	registry := targets.NewRegistry(targets.Options{
		FieldManager: ownership.FieldManager(identity.HubUID),
		Limits:       options.TargetLimits,
		Clock:        realClock,
		Log:          options.Log.WithName("targets"),
		OnChange: func(syncTarget types.UID) {
			syncTargets.TargetChanged(syncTarget)
			schemas.TargetChanged(syncTarget)
		},
		OnUnauthorized: func(syncTarget types.UID) { syncTargets.Unauthorized(syncTarget) },
		DeniedNetworks: options.DeniedNetworks,
		CacheLimits:    options.TargetCacheLimits,
		TotalBytes:     options.TargetsBytes,
	})

	// Controllers on these clusters.
	sync := syncmanager.New(syncmanager.Options{
		Mailboxes:           boxes,
		InventoryStore:      syncmanager.LedgerInventoryStore{Store: ledgerStore},
		KnownSyncTargets:    ledgerStore.SyncTargets,
		Hub:                 identity.HubUID,
		Hasher:              ownership.NewHasher(identity.HashKey),
		Sealer:              ownership.NewSealer(identity.HashKey),
		ProtectedNamespaces: options.ProtectedNamespaces,
		OnConfigsKnown:      func(syncTarget types.UID) { syncTargets.TargetChanged(syncTarget) },
		Checker:             schemacheck.NewChecker(realClock),
		NameClearer:         &namelock.Clearer{ConfigFor: options.Access.WorkspaceConfig},
		OnStatesChanged:     func(syncTarget types.UID) { syncTargets.TargetChanged(syncTarget) },
		MailboxLimits:       options.MailboxLimits,
		Clock:               realClock,
		Log:                 options.Log.WithName("sync"),
	})
	boxes.SetCachePolicy(sync.Policy(), options.MailboxesBytes)
	syncerConfigs := syncerconfig.NewController(boxes, sync, realClock, options.Log.WithName("syncerconfig"))
	sync.SetObserver(syncerConfigs)
	syncTargets = synctarget.NewController(synctarget.Options{
		Manager: multi, Registry: registry, Sync: sync, Ledger: ledgerStore, Mailboxes: locator, Clock: realClock, Log: options.Log.WithName("synctarget"),
	})
	events := hosting.GetEventRecorder("synchub")
	hub := publishedresource.Hub{UID: identity.HubUID, Workspace: options.Workspace}
	hostingREST, err := discovery.NewDiscoveryClientForConfigAndClient(hosting.GetConfig(), hosting.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("cannot make a client for the hosting cluster: %w", err)
	}
	schemas = apiresourceschema.NewController(apiresourceschema.Options{
		Hub:         hub,
		Hosting:     hosting.GetClient(),
		HostingREST: hostingREST.RESTClient(),
		Namespace:   options.Namespace,
		Provider:    provider,
		Targets:     &apiresourceschema.SyncTargets{Inventories: multi, Bindings: found.Lister(), Registry: registry},
		CRDs:        publishedresource.NewCRDStore(func(all []publishedresource.CRDInstallation) { sync.SetCRDs(desiredCRDs(all)) }),
		Recorder:    events,
		Clock:       realClock,
	})
	exports := apiexportcontroller.NewController(apiexportcontroller.Options{
		Hub:       hub,
		Hosting:   hosting.GetClient(),
		Provider:  provider,
		Export:    bootstrap.MailboxExport,
		Mailboxes: boxes,
		Sync:      sync,
		Clock:     realClock,
		Recorder:  events,
	})

	return multi, errors.Join(
		hosting.Add(provider),
		hosting.Add(ledgerStore),
		hosting.Add(places),
		hosting.Add(boxes),
		hosting.Add(registry),
		schemas.Register(hosting),
		exports.Register(hosting),
		mailbox.NewController(multi, locator, ledgerStore, realClock, mailbox.Dependencies{
			StopSync: syncTargets.Stop, IsCleanedUp: syncTargets.IsCleanedUp, RemoveFinalizers: sync.RemoveFinalizers, WorkspaceConfig: options.Access.WorkspaceConfig,
		}).Register(),
		syncTargets.Register(),
		hosting.Add(sync),
		hosting.Add(syncerConfigs),
		hosting.Add(kubeconfigWatcher{options.Access, options.Log.WithName("kcp")}),
		hosting.AddReadyzCheck("kcp-caches", cachesReadyCheck(hosting, boxes)),
	)
}

// desiredCRDs converts the CRDs that targets must have to the type of the sync manager.
func desiredCRDs(all []publishedresource.CRDInstallation) []crd.Installation {
	wanted := make([]crd.Installation, 0, len(all))
	for _, one := range all {
		wanted = append(wanted, crd.Installation{PublishedResource: one.PublishedResource, UID: one.UID, CRD: one.CRD, Version: one.Version})
	}
	return wanted
}

// leaseUIDReader returns a function that reads the UID of a Lease in the hosting cluster; the UID is empty if the Lease has
// no name.
func leaseUIDReader(hosting manager.Manager, name types.NamespacedName) func(ctx context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		if name.Name == "" {
			return "", nil
		}
		lease := &metav1.PartialObjectMetadata{}
		lease.SetGroupVersionKind(coordinationv1.SchemeGroupVersion.WithKind("Lease"))
		err := hosting.GetAPIReader().Get(ctx, name, lease)
		return string(lease.UID), err
	}
}

// kubeconfigWatcher reloads the kcp kubeconfig, on replicas that do not lead too.
type kubeconfigWatcher struct {
	access *kcp.ConfigProvider
	log    logr.Logger
}

func (w kubeconfigWatcher) Start(ctx context.Context) error { return w.access.Watch(ctx, w.log) }

func (w kubeconfigWatcher) NeedLeaderElection() bool { return false }

// cachesReadyCheck returns a readiness check that fails while the caches of the mailboxes are not synced. The check passes
// while another replica leads. Targets never count: one broken cluster does not make the hub unready.
func cachesReadyCheck(hosting manager.Manager, boxes *mailboxes.Mailboxes) func(*http.Request) error {
	return func(*http.Request) error {
		select {
		case <-hosting.Elected():
		default:
			return nil
		}
		if !boxes.HasSynced() {
			return errors.New("the caches of the mailboxes are being filled")
		}
		return nil
	}
}
