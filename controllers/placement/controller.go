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

package placement

import (
	"context"
	"errors"
	"maps"
	"slices"
	gosync "sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/internal/lanes"
	"github.com/synchub-dev/synchub/controllers/internal/mailboxwrite"
	"github.com/synchub-dev/synchub/controllers/internal/readiness"
	"github.com/synchub-dev/synchub/controllers/objectsync"
	"github.com/synchub-dev/synchub/controllers/placement/fleetcache"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/provider/mailboxes"
	"github.com/synchub-dev/synchub/provider/storehistory"
	"github.com/synchub-dev/synchub/provider/topic"
)

const (
	// concurrentReconciles is how many workspaces are resolved, and how many configs are written, at the same time.
	concurrentReconciles = 4
	minRetryDelay        = 200 * time.Millisecond
	maxRetryDelay        = time.Minute
	reconcileTimeout     = time.Minute
	// DefaultMaxPairs is the default of [Options.MaxPairs].
	DefaultMaxPairs = 100_000
)

var (
	edgePlacements     = edgev2alpha1.SchemeGroupVersion.WithResource("edgeplacements")
	slicesResource     = edgev2alpha1.SchemeGroupVersion.WithResource("singleplacementslices")
	placementRevisions = edgev2alpha1.SchemeGroupVersion.WithResource("placementrevisions")
	customizers        = edgev2alpha1.SchemeGroupVersion.WithResource("customizers")
	syncerConfigs      = edgev2alpha1.SchemeGroupVersion.WithResource("syncerconfigs")
	namespaces         = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
)

// Resources are the resources of a workload workspace that are always watched.
var Resources = []schema.GroupVersionResource{edgePlacements, slicesResource, customizers}

// PathResolver finds workspaces by their paths, as [kcp.ConfigProvider] does.
type PathResolver interface {
	LogicalClusterOf(ctx context.Context, path logicalcluster.Path) (logicalcluster.Name, error)
}

// Options are the dependencies and settings of a [Controller].
type Options struct {
	// Workloads are the workload workspaces, and Mailboxes the mailboxes.
	Workloads, Mailboxes *mailboxes.Mailboxes
	// CachePolicy is the cache policy of Workloads.
	CachePolicy *CachePolicy
	Fleet       *fleetcache.Fleet
	Paths       PathResolver
	// History reports which SyncTargets are held because kcp went back to an earlier state. With nil, none is.
	History *storehistory.Guard
	// Readiness reports which SyncTargets may be chosen.
	Readiness *readiness.Registry
	// Sync returns the sync status of copies, and ObjectStates publishes the copies whose status changed. If
	// Sync is nil, no copy counts as in sync.
	Sync         SyncStates
	ObjectStates *topic.Topic[objectsync.ObjectRef]
	// Hub is the UID of the provider workspace's LogicalCluster; Hasher and Sealer have the hub's key.
	Hub    types.UID
	Hasher ownership.Hasher
	Sealer *ownership.Sealer
	// KnownSyncTargets returns the SyncTargets of the previous leader; known is false until they are loaded.
	KnownSyncTargets func() (syncTargets []types.UID, known bool)
	// MaxPairs is the largest number of pairs of an object and a destination in one workspace.
	MaxPairs int
	Clock    clock.Clock
	Log      logr.Logger
}

// Controller places objects. Create it with [New].
type Controller struct {
	Options
	// resolveRequests carries the workspaces to resolve, rolloutRequests the workspaces whose rollouts may
	// continue, reportRequests the workspaces whose status may have changed, and configRequests the
	// SyncerConfigs that may have to change.
	resolveRequests, rolloutRequests, reportRequests topic.Topic[logicalcluster.Name]
	configRequests                                   topic.Topic[configKey]
	paths                                            *pathVerifier
	fieldManager                                     string
	configs                                          *configs
	configWriter                                     mailboxwrite.Writer[configKey]
	names                                            nameWaiters

	// fleetSynced is true once the view of the inventories is complete, see isFleetSynced.
	fleetSynced atomic.Bool
	// started is true once Start was called. A replica that is not the leader only keeps the state up to date.
	started atomic.Bool
	// copiesSynced is true once the copies of the previous leader are known, see hasSyncedCopies.
	copiesSynced atomic.Bool

	lock gosync.Mutex
	// startedAt is when Start was called.
	startedAt time.Time
	// ctx is set by Start; the queues of all workspaces run in it.
	ctx        context.Context //nolint:containedctx // queues outlive the call that needs the first of a workspace
	workspaces map[logicalcluster.Name]*workspace
	running    gosync.WaitGroup
}

// New returns a controller, which observes the caches of the workloads and the mailboxes from then on.
func New(options Options) *Controller {
	c := &Controller{Options: options, workspaces: map[logicalcluster.Name]*workspace{}, fieldManager: ownership.FieldManager(options.Hub)}
	c.paths, c.configs = newPathVerifier(options), newConfigs(options.Clock)
	c.configWriter = mailboxwrite.Writer[configKey]{
		Workspaces: options.Mailboxes, FieldManager: c.fieldManager, Expectations: &c.configs.writes,
		Locate: func(key configKey) mailboxwrite.Object {
			return mailboxwrite.Object{Workspace: key.mailbox, Resource: syncerConfigs, Name: types.NamespacedName{Name: key.name()}}
		},
	}
	options.Workloads.Observe(workloadObserver{c})
	options.Mailboxes.Observe(mailboxObserver{c})
	return c
}

// Register adds the controllers of placement to the manager of the hosting cluster.
func (c *Controller) Register(hosting manager.Manager) error {
	forWorkspace := func(workspace logicalcluster.Name) logr.Logger { return c.Log.WithValues("workspace", workspace) }
	return errors.Join(
		hosting.Add(c),
		addController(hosting, "placement", c.resolve, &c.resolveRequests, forWorkspace, c.enqueueResolves),
		addController(hosting, "placementrollout", c.decideRollouts, &c.rolloutRequests, forWorkspace, c.enqueueRollouts),
		addController(hosting, "placementstatus", c.report, &c.reportRequests, forWorkspace, func() {}),
		addController(hosting, "placementconfig", c.ensureConfig, &c.configRequests, func(key configKey) logr.Logger {
			return c.Log.WithValues("mailbox", key.mailbox, "config", key.name())
		}, c.enqueueConfigs),
		c.watchFleet(hosting),
	)
}

// addController adds a controller that reconciles the keys of requests. It calls started when the controller
// starts, because earlier requests were lost.
func addController[K comparable](hosting manager.Manager, name string, reconciler reconcile.TypedFunc[K], requests *topic.Topic[K], logFor func(K) logr.Logger, started func()) error {
	slow := lanes.PerKey[K](reconciler, reconcileTimeout, clock.RealClock{})
	added, err := controller.NewTyped(name, hosting, controller.TypedOptions[K]{
		MaxConcurrentReconciles: concurrentReconciles,
		Reconciler:              slow,
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[K](minRetryDelay, maxRetryDelay),
		LogConstructor: func(key *K) logr.Logger {
			if key == nil {
				return logr.Discard()
			}
			return logFor(*key)
		},
	})
	if err != nil {
		return err
	}
	from := topic.Source(requests, func(queue workqueue.TypedRateLimitingInterface[K], key K) { queue.Add(key) })
	return errors.Join(hosting.Add(slow), added.Watch(slow.Source()), added.Watch(source.TypedFunc[K](func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[K]) error {
		defer started()
		return from.Start(ctx, queue)
	})))
}

// watchFleet adds a controller for changes of inventories and of the readiness of SyncTargets.
func (c *Controller) watchFleet(hosting manager.Manager) error {
	added, err := controller.NewTyped("placementfleet", hosting, controller.TypedOptions[fleetEvent]{
		Reconciler: reconcile.TypedFunc[fleetEvent](func(_ context.Context, event fleetEvent) (reconcile.Result, error) {
			if event == readinessChanged {
				c.readinessChanged()
			} else {
				c.fleetChanged()
			}
			return reconcile.Result{}, nil
		}),
		LogConstructor: func(*fleetEvent) logr.Logger { return c.Log.V(2) },
	})
	if err != nil {
		return err
	}
	return errors.Join(
		added.Watch(topic.Source(c.Fleet.Changes(), func(queue workqueue.TypedRateLimitingInterface[fleetEvent], _ logicalcluster.Name) {
			// Coalesce the changes within fleetDelay.
			queue.AddAfter(inventoriesChanged, fleetDelay)
		})),
		added.Watch(topic.Source(c.Readiness.Changes(), func(queue workqueue.TypedRateLimitingInterface[fleetEvent], _ types.UID) {
			queue.AddAfter(readinessChanged, fleetDelay)
		})),
	)
}

// fleetEvent is a key of the controller that watchFleet adds.
type fleetEvent string

const (
	inventoriesChanged fleetEvent = "inventories"
	readinessChanged   fleetEvent = "readiness"
)

// readinessChanged enqueues the workspaces with a placement that chooses SyncTargets.
func (c *Controller) readinessChanged() {
	for _, w := range c.allWorkspaces() {
		if w.chooses() {
			c.resolveRequests.Publish(w.cluster)
		}
	}
}

// fleetDelay is how long changes of inventories are gathered before the workspaces are resolved again.
const fleetDelay = 100 * time.Millisecond

// fleetChanged enqueues all workspaces, and the configs of all mailboxes: a mailbox may have become known.
func (c *Controller) fleetChanged() {
	c.enqueueResolves()
	c.enqueueConfigs()
}

// enqueueConfigs enqueues the configs for downsync of all mailboxes.
func (c *Controller) enqueueConfigs() {
	for mailbox := range c.Fleet.Snapshot().Mailboxes() {
		c.configRequests.Publish(configKey{mailbox: mailbox})
	}
}

// NeedLeaderElection makes the controller run on the leader only.
func (c *Controller) NeedLeaderElection() bool { return true }

// Start runs the queues of all workspaces until ctx ends.
func (c *Controller) Start(ctx context.Context) error {
	// The first pass for each pair reads the state.
	c.ObjectStates.Subscribe(ctx, c.onObjectState)
	c.History.Changes().Subscribe(ctx, func(struct{}) { c.ReportAll() })
	c.lock.Lock()
	c.ctx, c.startedAt = ctx, c.Clock.Now()
	c.started.Store(true)
	workspaces := slices.Collect(maps.Values(c.workspaces))
	for _, workspace := range workspaces {
		c.run(workspace)
	}
	c.lock.Unlock()
	for _, workspace := range workspaces {
		// Earlier events were not queued. These passes and the next resolve find their changes.
		workspace.enqueueAllPairs()
		workspace.requireReselect()
		c.resolveRequests.Publish(workspace.cluster)
	}
	defer runningControllers.Add(c)()
	<-ctx.Done()
	c.running.Wait()
	return nil
}

// run runs the queue of a workspace. It requires the lock.
func (c *Controller) run(w *workspace) {
	if c.ctx == nil || c.ctx.Err() != nil {
		return
	}
	ctx, cancel := context.WithCancel(c.ctx)
	w.cancel = cancel
	c.running.Go(func() {
		if err := w.queue.Run(ctx); err != nil {
			c.Log.Error(err, "the queue of a workload workspace ended", "workspace", w.cluster)
		}
		_ = w.lanes.Start(ctx)
	})
}

// SetResources sets the resources that workspaces and mailboxes have, and enqueues the resolve of all workspaces.
func (c *Controller) SetResources(resources []plan.Resource) {
	c.CachePolicy.publish(resources)
	c.Workloads.EnqueueAllCacheReviews()
	for _, workspace := range c.allWorkspaces() {
		workspace.requireReselect()
	}
	c.fleetChanged()
}

// resource returns a published resource; ok is false if it is not published, if its objects only travel as
// related objects, or if its API is being unpublished.
func (c *Controller) resource(of schema.GroupVersionResource) (resource plan.Resource, ok bool) {
	resource, ok = c.CachePolicy.published()[of]
	return resource, ok && isPlaceable(resource)
}

// ensureWorkspace returns the state of a workload workspace, which it creates if there is none.
func (c *Controller) ensureWorkspace(cluster logicalcluster.Name) *workspace {
	c.lock.Lock()
	defer c.lock.Unlock()
	found, ok := c.workspaces[cluster]
	if !ok {
		found = newWorkspace(c, cluster)
		c.workspaces[cluster] = found
		c.run(found)
	}
	return found
}

// findWorkspace returns the state of a workload workspace, or nil.
func (c *Controller) findWorkspace(cluster logicalcluster.Name) *workspace {
	c.lock.Lock()
	defer c.lock.Unlock()
	return c.workspaces[cluster]
}

// drop removes the state of a workspace that is not visible and has no copies.
func (c *Controller) drop(w *workspace) {
	c.lock.Lock()
	defer c.lock.Unlock()
	if c.workspaces[w.cluster] != w || !w.closeIfEmpty() {
		return
	}
	delete(c.workspaces, w.cluster)
	c.paths.forget(w.cluster)
	c.CachePolicy.forget(w.cluster)
	if w.cancel != nil {
		w.cancel()
	}
}

// enqueueResolves enqueues the resolve of all workspaces.
func (c *Controller) enqueueResolves() {
	for _, w := range c.allWorkspaces() {
		c.resolveRequests.Publish(w.cluster)
	}
}

// enqueueRollouts enqueues the decisions about the rollouts of all workspaces.
func (c *Controller) enqueueRollouts() {
	for _, w := range c.allWorkspaces() {
		c.rolloutRequests.Publish(w.cluster)
	}
}

// allWorkspaces returns all workspaces.
func (c *Controller) allWorkspaces() []*workspace {
	c.lock.Lock()
	defer c.lock.Unlock()
	return slices.Collect(maps.Values(c.workspaces))
}
