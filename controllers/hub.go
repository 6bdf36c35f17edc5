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
	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	configv1alpha1 "github.com/synchub-dev/synchub/apis/config/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/internal/leadership"
	"github.com/synchub-dev/synchub/controllers/mailbox"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/publishedresource"
	"github.com/synchub-dev/synchub/provider/bootstrap"
	"github.com/synchub-dev/synchub/provider/discovery"
	"github.com/synchub-dev/synchub/provider/kcp"
	"github.com/synchub-dev/synchub/provider/ledger"
	"github.com/synchub-dev/synchub/provider/metrics/requestmetrics"
	"github.com/synchub-dev/synchub/provider/shards"
	"github.com/synchub-dev/synchub/provider/storehistory"
	"github.com/synchub-dev/synchub/provider/targets"
)

// recorderName is the name of the hub in events.
const recorderName = "synchub"

// replica is what each part of the hub uses in this process.
type replica struct {
	Dependencies
	settings *configv1alpha1.HubConfiguration
	hosting  manager.Manager
	clock    clock.RealClock
	// isSharded is true if replicas other than the leader own SyncTargets. isColdStandby is true if a replica that does not lead
	// waits with empty caches.
	isSharded, isColdStandby bool
	// role is the part of the work that this replica does. shards is nil unless SyncTargets are sharded.
	role   leadership.Role
	shards *shards.Shards
	// owner is the hub as the owner of PublishedResources. hasher and sealer have its key.
	owner  publishedresource.Hub
	hasher ownership.Hasher
	sealer *ownership.Sealer
}

func newReplica(ctx context.Context, hosting manager.Manager, dependencies Dependencies, settings *configv1alpha1.HubConfiguration) (*replica, error) {
	workspace := settings.KCP.ProviderWorkspace
	identity, err := bootstrap.ReadIdentity(ctx, dependencies.Access.WorkspaceConfig(workspace), workspace)
	if err != nil {
		return nil, err
	}
	isSharded := settings.Coordination == configv1alpha1.CoordinationSharded
	role, owned := newRole(hosting.Elected(), dependencies.Fence, isSharded)
	return &replica{
		Dependencies: dependencies, settings: settings, hosting: hosting,
		isSharded: isSharded, isColdStandby: settings.LeaderElection.Standby == configv1alpha1.StandbyCold,
		role: role, shards: owned,
		owner:  publishedresource.Hub{UID: identity.HubUID, Workspace: workspace},
		hasher: ownership.NewHasher(identity.HashKey), sealer: ownership.NewSealer(identity.HashKey),
	}, nil
}

// whoAmI returns the hub's user in kcp.
func (r *replica) whoAmI(ctx context.Context) (authenticationv1.UserInfo, error) {
	return kcp.WhoAmI(ctx, r.Access.WorkspaceConfig(r.owner.Workspace))
}

// hub is what the controllers share: clients, records, caches and connections.
type hub struct {
	*replica
	records
	inventories *inventoryWorkspaces
	caches
	connections *targets.Registry
	tunnels     *tunnelListener
	// hostingDiscovery discovers the APIs of the hosting cluster, and workspaces are clients with the hub's own rights in kcp.
	hostingDiscovery *discovery.Client
	workspaces       kcp.WorkspaceClients
}

func newHub(ctx context.Context, r *replica) (*hub, error) {
	records, err := newRecords(ctx, r)
	if err != nil {
		return nil, err
	}
	inventories, err := newInventoryWorkspaces(r)
	if err != nil {
		return nil, err
	}
	connections, err := newConnections(r)
	if err != nil {
		return nil, err
	}
	tunnels, err := newTunnelListener(ctx, r, connections.Tunnels())
	if err != nil {
		return nil, err
	}
	hostingDiscovery, err := discovery.NewClient(r.hosting.GetConfig(), r.hosting.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("cannot make a client for the hosting cluster: %w", err)
	}
	workspaces, err := r.Access.WorkspaceClients(mailbox.RequestTimeout)
	return &hub{r, records, inventories, newCaches(r), connections, tunnels, hostingDiscovery, workspaces}, err
}

// Register makes the manager of the hosting cluster run the ledger, the caches and the connections, and reload the kcp kubeconfig.
func (h *hub) Register(hosting manager.Manager) error {
	watchKubeconfig := onEachReplica(func(ctx context.Context) error { return h.Access.Watch(ctx, h.Log.WithName("kcp")) })
	return runnables{h.Provider, h.History, h.ledger, h.inventories, h.mailboxes, h.workloads, h.connections, watchKubeconfig}.Register(hosting)
}

// runnables run from the start of the manager to its end, on the replicas that they choose themselves.
type runnables []manager.Runnable

// Register adds them to the manager of the hosting cluster.
func (r runnables) Register(hosting manager.Manager) error {
	var errs []error
	for _, one := range r {
		errs = append(errs, hosting.Add(one))
	}
	return errors.Join(errs...)
}

// onEachReplica is a runnable of each replica, whether it leads or not.
type onEachReplica func(ctx context.Context) error

// Start implements [manager.Runnable].
func (f onEachReplica) Start(ctx context.Context) error { return f(ctx) }

// NeedLeaderElection implements [manager.LeaderElectionRunnable].
func (onEachReplica) NeedLeaderElection() bool { return false }

// records are the hub's own records in the provider workspace: the ledger, and the configMaps that contain it.
type records struct {
	configMaps corev1client.ConfigMapInterface
	ledger     *ledger.Store
}

func newRecords(ctx context.Context, r *replica) (records, error) {
	workspaces, err := kcpcoreclient.NewForConfigAndClient(r.Access.ConfigFor(r.Access.Host(), requestmetrics.Control), r.Provider.GetHTTPClient())
	if err != nil {
		return records{}, fmt.Errorf("cannot make a client for the ledger: %w", err)
	}
	// The versions in the Lease count if they are read before the first lists of kcp. A hub that starts for the first time has no Lease.
	if _, err := r.readHubIdentity(ctx); client.IgnoreNotFound(err) != nil {
		return records{}, fmt.Errorf("cannot read the Lease of the hub: %w", err)
	}
	configMaps := workspaces.Cluster(logicalcluster.NewPath(r.owner.Workspace)).ConfigMaps(ledger.Namespace)
	return records{configMaps, ledger.New(ledger.Options{
		ConfigMaps: configMaps, Elected: r.role.Elected, LeaderOnly: r.isColdStandby, Identity: r.readHubIdentity, History: r.History,
		Clock: r.clock, Log: r.Log.WithName("ledger"),
	})}, nil
}

// readHubIdentity returns the UIDs of the hub's Lease and of its namespace; both are empty if no Lease is configured. It also records the
// versions of kcp in the Lease.
func (r *replica) readHubIdentity(ctx context.Context) (self ledger.HubIdentity, err error) {
	if !r.settings.LeaderElection.LeaderElect {
		return ledger.HubIdentity{}, nil
	}
	read := func(kind schema.GroupVersionKind, key types.NamespacedName) (*metav1.PartialObjectMetadata, error) {
		object := &metav1.PartialObjectMetadata{}
		object.SetGroupVersionKind(kind)
		return object, r.hosting.GetAPIReader().Get(ctx, key, object)
	}
	inNamespace := r.settings.LeaderElection.Namespace
	lease, err := read(coordinationv1.SchemeGroupVersion.WithKind("Lease"), types.NamespacedName{Namespace: inNamespace, Name: LeaseName})
	if err != nil {
		return self, err
	}
	r.History.SetPrevious(lease.Annotations[storehistory.Annotation])
	namespace, err := read(corev1.SchemeGroupVersion.WithKind("Namespace"), types.NamespacedName{Name: inNamespace})
	self.Lease, self.Namespace = string(lease.UID), string(namespace.UID)
	if apierrors.IsForbidden(err) {
		// An operator has cut the rights. The Lease alone identifies the hub then.
		err = nil
	}
	return self, err
}
