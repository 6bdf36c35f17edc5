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
	gosync "sync"
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
	"github.com/synchub-dev/synchub/controllers/internal/findings"
	"github.com/synchub-dev/synchub/controllers/internal/queue"
	"github.com/synchub-dev/synchub/controllers/internal/status"
	"github.com/synchub-dev/synchub/controllers/internal/writes"
	"github.com/synchub-dev/synchub/controllers/objectsync"
	"github.com/synchub-dev/synchub/controllers/placement/fleetcache"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/provider/mailboxes"
	"github.com/synchub-dev/synchub/provider/requestclass"
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
	Readiness *findings.Readiness
	// Journal logs withdrawn copies and failures; nil logs none.
	Journal *status.Journal
	// Sync returns the sync status of copies, and SyncStatusChanged publishes the copies whose status changed.
	Sync              SyncStatuses
	SyncStatusChanged *topic.Topic[objectsync.ObjectRef]
	// Hub is the UID of the provider workspace's LogicalCluster; Hasher and Sealer have the hub's key.
	Hub    types.UID
	Hasher ownership.Hasher
	Sealer *ownership.Sealer
	// KnownSyncTargets returns the SyncTargets of the previous leader; known is false until they are loaded.
	KnownSyncTargets func() (syncTargets []types.UID, known bool)
	// WithdrawalGrace is how long copies stay after a change in an inventory; zero withdraws them at once. Withdrawals publishes
	// which copies wait.
	WithdrawalGrace time.Duration
	Withdrawals     *findings.Withdrawals
	// MaxPairs is the largest number of pairs of an object and a destination in one workspace.
	MaxPairs int
	// MaxReflections is the largest number of upsynced objects in one workspace.
	MaxReflections int
	Clock          clock.Clock
	Log            logr.Logger
}

// Controller places objects. Create it with [New].
type Controller struct {
	options    *Options
	startup    *startup
	requests   *requests
	workspaces *workspaces
	configs    *configs
	mailboxes  mailboxObserver
	// changedReadiness are the SyncTargets whose readiness has changed since the last reconcile of the readiness.
	changedReadiness syncTargetSet
}

// requests carry the keys of the controllers that [Controller.Register] adds: the workspaces to resolve, the workspaces whose
// rollouts may continue, the workspaces whose status may have changed, and the SyncerConfigs that may have to change.
type requests struct {
	resolve, rollout, report topic.Topic[logicalcluster.Name]
	config                   topic.Topic[configKey]
}

// shared are the components that all workspaces use.
type shared struct {
	options     *Options
	startup     *startup
	marks       marks
	requests    *requests
	paths       *pathVerifier
	verifier    verifier
	names       *nameWaiters
	inMailboxes *mailboxPairs
	reflections *reflectionIndex
	workspaces  *workspaces
	stuck       *stuckCopies
}

func newShared(options *Options) *shared {
	s := &shared{
		options: options, marks: marks{options.Hub, options.Sealer}, requests: &requests{}, paths: newPathVerifier(options), verifier: verifier{options.Fleet},
		names: &nameWaiters{waiting: map[copyKey]map[waiter]struct{}{}}, inMailboxes: &mailboxPairs{counts: map[logicalcluster.Name]map[selectedKey]int{}},
		stuck:       &stuckCopies{sync: options.Sync, of: map[logicalcluster.Name]map[objectsync.ObjectRef]failure{}},
		reflections: newReflectionIndex(),
	}
	s.workspaces = &workspaces{shared: s, all: map[logicalcluster.Name]*workspace{}}
	s.startup = &startup{
		fleet: options.Fleet, knownSyncTargets: options.KnownSyncTargets, mailboxes: options.Mailboxes, policy: options.CachePolicy, marks: s.marks,
		workspaces: s.workspaces, clock: options.Clock,
	}
	return s
}

// New returns a controller, which observes the caches of the workloads and the mailboxes from then on.
func New(options Options) *Controller {
	s := newShared(&options)
	c := &Controller{options: &options, startup: s.startup, requests: s.requests, workspaces: s.workspaces, configs: newConfigs(s)}
	c.mailboxes = mailboxObserver{
		mailboxes: options.Mailboxes, workspaces: s.workspaces, requests: s.requests, marks: s.marks, names: s.names, configs: c.configs, stuck: s.stuck,
		reflections: s.reflections,
	}
	options.Workloads.SetObserver(workloadObserver{options.Workloads, s.workspaces, s.requests, s.startup, s.marks})
	options.Mailboxes.SetObserver(c.mailboxes)
	return c
}

// Register adds the controllers of placement to the manager of the hosting cluster.
func (c *Controller) Register(hosting manager.Manager) error {
	forWorkspace := func(workspace logicalcluster.Name) logr.Logger {
		return c.options.Log.WithValues("workspace", workspace)
	}
	return errors.Join(
		hosting.Add(c),
		addController(hosting, "placement", c.workspaces.reconciler(c.resolve), &c.requests.resolve, forWorkspace, func() { c.workspaces.publish(&c.requests.resolve) }),
		addController(hosting, "placementrollout", c.workspaces.reconciler(func(ctx context.Context, w *workspace) (reconcile.Result, error) { return w.rollouts.decide(ctx) }), &c.requests.rollout, forWorkspace, func() { c.workspaces.publish(&c.requests.rollout) }),
		addController(hosting, "placementstatus", c.workspaces.reconciler(func(ctx context.Context, w *workspace) (reconcile.Result, error) { return w.reporter.report(ctx) }), &c.requests.report, forWorkspace, func() {}),
		addController(hosting, "placementconfig", c.configs.reconcile, &c.requests.config, func(key configKey) logr.Logger {
			return c.options.Log.WithValues("mailbox", key.mailbox, "config", key.name())
		}, c.configs.enqueueAll),
		c.watchFleet(hosting),
	)
}

// addController adds a controller that reconciles the keys of requests. It calls started when the controller
// starts, because earlier requests were lost.
func addController[K comparable](hosting manager.Manager, name string, reconciler reconcile.TypedFunc[K], requests *topic.Topic[K], logFor func(K) logr.Logger, started func()) error {
	slow := queue.LanePerKey[K](reconciler, reconcileTimeout, clock.RealClock{})
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

// watchFleet adds a controller for changes of inventories and of the readiness of SyncTargets. It has one key for each.
func (c *Controller) watchFleet(hosting manager.Manager) error {
	const inventories, readiness = "inventories", "readiness"
	reconcilers := map[string]func(){inventories: c.fleetChanged, readiness: c.readinessChanged}
	added, err := controller.NewTyped("placementfleet", hosting, controller.TypedOptions[string]{
		Reconciler: reconcile.TypedFunc[string](func(_ context.Context, changed string) (reconcile.Result, error) {
			reconcilers[changed]()
			return reconcile.Result{}, nil
		}),
		LogConstructor: func(*string) logr.Logger { return c.options.Log.V(2) },
	})
	if err != nil {
		return err
	}
	return errors.Join(
		added.Watch(topic.Source(c.options.Fleet.Changes(), func(queue workqueue.TypedRateLimitingInterface[string], _ logicalcluster.Name) {
			// Coalesce the changes within fleetDelay.
			queue.AddAfter(inventories, fleetDelay)
		})),
		added.Watch(topic.Source(c.options.Readiness.Changes(), func(queue workqueue.TypedRateLimitingInterface[string], syncTarget types.UID) {
			c.changedReadiness.add(syncTarget)
			queue.AddAfter(readiness, fleetDelay)
		})),
	)
}

// syncTargetSet is a set of SyncTargets. The zero value is empty.
type syncTargetSet struct {
	lock gosync.Mutex
	all  map[types.UID]bool
}

func (s *syncTargetSet) add(syncTarget types.UID) {
	s.lock.Lock()
	defer s.lock.Unlock()
	if s.all == nil {
		s.all = map[types.UID]bool{}
	}
	s.all[syncTarget] = true
}

// take returns all SyncTargets, and empties the set.
func (s *syncTargetSet) take() (all map[types.UID]bool) {
	s.lock.Lock()
	defer s.lock.Unlock()
	all, s.all = s.all, nil
	return all
}

// fleetDelay is how long changes of inventories are gathered before the workspaces are resolved again.
const fleetDelay = 100 * time.Millisecond

// readinessChanged enqueues the workspaces with a placement that chooses SyncTargets, and the reports of those with a destination whose
// readiness has changed.
func (c *Controller) readinessChanged() {
	changed := c.changedReadiness.take()
	for _, w := range c.workspaces.list() {
		active := w.active.get()
		if active == nil {
			continue
		}
		if active.choosing {
			c.requests.resolve.Publish(w.cluster)
		}
		if active.hasDestination(changed) {
			c.requests.report.Publish(w.cluster)
		}
	}
}

// fleetChanged enqueues all workspaces, and the configs of all mailboxes: a mailbox may have become known.
func (c *Controller) fleetChanged() {
	c.workspaces.publish(&c.requests.resolve)
	c.configs.enqueueAll()
}

// NeedLeaderElection makes the controller run on the leader only.
func (c *Controller) NeedLeaderElection() bool { return true }

// Start runs the queues of all workspaces until ctx ends.
func (c *Controller) Start(ctx context.Context) error {
	// The first pass for each pair reads the state.
	c.options.SyncStatusChanged.Subscribe(ctx, c.mailboxes.onSyncStatus)
	c.options.History.Changes().Subscribe(ctx, func(struct{}) { c.reportAll() })
	for _, ref := range c.options.Sync.StuckCopies() {
		c.mailboxes.onSyncStatus(ref)
	}
	c.startup.begin()
	for _, w := range c.workspaces.start(ctx) {
		// Earlier events were not queued. The next resolve finds their changes.
		w.active.requireReselect()
		c.requests.resolve.Publish(w.cluster)
	}
	defer runningControllers.Add(c)()
	<-ctx.Done()
	c.workspaces.running.Wait()
	return nil
}

// SetResources sets the resources that workspaces and mailboxes have, and enqueues the resolve of all workspaces.
func (c *Controller) SetResources(resources []plan.Resource) {
	c.options.CachePolicy.publish(resources)
	c.options.Workloads.Reviews.EnqueueAllCacheReviews()
	for _, w := range c.workspaces.list() {
		w.active.requireReselect()
	}
	c.fleetChanged()
}

// reportAll requests a report of all workspaces, after the hub has found that kcp went back to an earlier
// state.
func (c *Controller) reportAll() { c.workspaces.publish(&c.requests.report) }

// resolve resolves and activates the placements of a workspace.
func (c *Controller) resolve(ctx context.Context, w *workspace) (reconcile.Result, error) {
	if c.options.CachePolicy.published() == nil {
		return reconcile.Result{}, nil
	}
	ctx = requestclass.With(ctx, requestclass.Extra)
	var next *placements
	switch c.options.Workloads.BindingState(w.cluster) {
	case mailboxes.BindingUnknown:
		// Nothing is known about the workspace: it keeps its copies.
		w.resolver.forget()
		c.options.Withdrawals.Set(w.cluster, nil)
		c.workspaces.drop(w)
		return reconcile.Result{}, nil
	case mailboxes.BindingTerminating:
		// A user deletes the binding, or the workspace, and so withdraws everything.
		next = &placements{outcomes: map[types.UID]outcome{}, withdrawAll: true, fleetSynced: true}
	case mailboxes.BindingPresent:
		observed, known := w.resolver.observe()
		if !known {
			return reconcile.Result{}, nil
		}
		if err := w.finalizers.add(ctx, observed); err != nil {
			return retryOutdated(err)
		}
		var err error
		if next, err = w.resolver.resolve(ctx, observed); err != nil {
			return reconcile.Result{}, err
		}
	}
	w.selector.activate(next)
	c.configs.enqueueUpsync(w.cluster, next)
	after, err := w.finalizers.remove(ctx)
	if err != nil {
		return retryOutdated(err)
	}
	return reconcile.Result{RequeueAfter: sooner(after, next.resolveDelay(c.options.Clock.Now()))}, nil
}

// outdatedRetryDelay is the delay of a retry after a write of an outdated object.
const outdatedRetryDelay = time.Second

// retryOutdated retries soon if an object has changed since the cache read it: the cache is about to show the
// newer one.
func retryOutdated(err error) (reconcile.Result, error) {
	if errors.Is(err, writes.ErrOutdated) {
		return reconcile.Result{RequeueAfter: outdatedRetryDelay}, nil
	}
	return reconcile.Result{}, err
}
