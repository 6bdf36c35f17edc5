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

package objectsync

import (
	"context"
	"fmt"
	"slices"
	gosync "sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/policy"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/related"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/selection"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/transform"
	"github.com/synchub-dev/synchub/provider/mailboxes"
	"github.com/synchub-dev/synchub/provider/targets"
)

const (
	// maxConcurrentReconciles is how many objects of one resource go to one target at once.
	maxConcurrentReconciles = 4
	// reconcileTimeout bounds all requests about one object together.
	reconcileTimeout = 2 * time.Minute
	// A failing object is tried again after firstRetry, then each time twice as late, up to lastRetry.
	retryBaseDelay = 100 * time.Millisecond
	retryMaxDelay  = 5 * time.Minute
)

// Options are what a controller needs.
type Options struct {
	Resource Resource
	// TargetAPIs are what the mailbox's objects can be on the target: the resource itself first, then what conversions make
	// of it, or made of it before.
	TargetAPIs []TargetAPI
	// UnresolvedKinds are kinds that conversions make of the mailbox's objects and the target does not serve, or that are refused.
	UnresolvedKinds []UnavailableResource
	// Mailbox is the mailbox's logical cluster.
	Mailbox    logicalcluster.Name
	Mailboxes  *mailboxes.Mailboxes
	Connection *targets.Connection
	Owner      ownership.Owner
	Hasher     ownership.Hasher
	// SyncTarget is the name of the target's SyncTarget.
	SyncTarget string
	// Pruner is what the schema of the mailbox's API keeps, nil if the hub does not know that.
	Pruner *transform.Pruner
	// Registry knows, for all controllers of the SyncTarget, which objects are related; Relations are those by which
	// objects of the resource travel with others.
	Registry  *related.Registry
	Relations []*related.Relation
	// RequestCompleteness has it found out whether all primaries have spoken that objects of the resource can be related to, unless the
	// question that this is asked for is answered by then (see [RequestCompleteness]).
	RequestCompleteness func(answered func() bool)
	// RequeueRelated has looked again at all that may be related to objects of the resource.
	RequeueRelated func()
	// Cordoned tells whether nothing new may be made on the target. Nil stands for never.
	Cordoned func() bool
	// Adoption is what the SyncTarget lets the hub take over beside what the PublishedResource does. Nil stands for nothing.
	Adoption func() synchubv1alpha1.AdoptionPolicy
	// NamespacePolicy says which namespaces may be used now. Nil stands for all.
	NamespacePolicy func() *policy.NamespacePolicy
	// IsPublished tells whether a PublishedResource of that name is in force.
	IsPublished func(publishedResource string) bool
	// WaitFor are closed when all that must go first has been tried.
	WaitFor []<-chan struct{}
	// OnChange is called when an object was acted on, its failure changed, or the target began or ceased to serve the
	// resource. It must return at once.
	OnChange func()
	Clock    clock.Clock
	Log      logr.Logger
}

// Controller keeps one resource of one mailbox in sync with one target, in both directions. Create it with [New] and run
// it with [Controller.Run].
type Controller struct {
	Options
	planner
	selector        string
	fieldManager    string
	matcher         atomic.Pointer[selection.Matcher]
	targetResources []*targetResource
	// targetExpectations and inMailbox remember what was written to either side.
	targetExpectations  *expectations[targetRef]
	mailboxExpectations *expectations[types.NamespacedName]
	pendingRenames      *pendingRenames
	upsyncIndex         *upsyncIndex
	primaryTracker      *primaryTracker
	nameWaiters         *nameWaiters
	failures            *failures
	pendingChanges      *pendingChanges
	metrics             *controllerMetrics
	events              *events
	firstPass           *firstPass
	droppedFields       droppedFields
	startSignal         chan struct{}
	// cachesWholeObjects is true if a rule looks at objects of the target that went down.
	cachesWholeObjects bool
	// upsyncReadsMailbox is true if what comes up is made with a look at what the mailbox holds.
	upsyncReadsMailbox bool

	// activeReconciles is how many objects are being reconciled now.
	activeReconciles atomic.Int32

	lock gosync.Mutex
	// queue is nil until the controller begins.
	queue interface {
		AddWithOpts(options priorityqueue.AddOpts, keys ...types.NamespacedName)
		Len() int
	}
	// upsyncContext owns the feeds; it is nil while the controller does not run.
	upsyncContext context.Context //nolint:containedctx // feeds start and end with the matcher, within the run
	runningTasks  gosync.WaitGroup
}

// New returns a controller that selects by the matcher.
func New(options Options, matcher *selection.Matcher) *Controller {
	if options.Registry == nil {
		// Nothing is related to anything.
		options.Registry = related.NewRegistry()
		options.RequestCompleteness, options.RequeueRelated = func(func() bool) {}, func() {}
		options.IsPublished = func(string) bool { return true }
	}
	c := &Controller{
		Options: options,
		planner: planner{resource: options.Resource, owner: options.Owner, down: transform.Down{
			Owner: options.Owner, Hasher: options.Hasher, Mailbox: options.Mailbox.String(), SyncTarget: options.SyncTarget,
			Resource: options.Resource.GroupResource(), Namespaced: options.Resource.Namespaced,
		}, up: transform.Up{
			Owner: options.Owner, Hasher: options.Hasher, Mailbox: options.Mailbox.String(), SyncTarget: options.SyncTarget,
			Resource: options.Resource.GroupResource(), Namespaced: options.Resource.Namespaced,
			Version: options.Resource.Version, Kind: options.Resource.Kind, Pruner: options.Pruner,
		}},
		selector:       Selector(options.Owner),
		fieldManager:   ownership.FieldManager(options.Owner.Hub),
		upsyncIndex:    newUpsyncIndex(),
		pendingRenames: newPendingRenames(),
		primaryTracker: newPrimaryTracker(options.Registry, options.Resource),
		nameWaiters:    newNameWaiters(),
		failures:       newFailures(options.Clock),
		pendingChanges: newPendingChanges(),
		metrics:        newMetrics(options.Owner.SyncTarget, options.Resource),
		firstPass:      newFirstPass(),
		startSignal:    make(chan struct{}, 1),
	}
	c.targetExpectations = newExpectations(options.Clock, func(at targetRef, resourceVersion string) bool {
		return c.targetResourceFor(at.resource).cache.HasReached(at.key.Namespace, resourceVersion)
	})
	c.targetExpectations.onGrowth = options.Connection.CheckCacheLimits
	// The caches of mailboxes do not tell how far they have got.
	c.mailboxExpectations = newExpectations(options.Clock, func(types.NamespacedName, string) bool { return true })
	c.cachesWholeObjects = needsWholeTargetObjects(options)
	c.upsyncReadsMailbox = options.Resource.rules().Up.UsesOther() ||
		slices.ContainsFunc(options.Relations, func(r *related.Relation) bool { return r.Up.UsesOther() })
	c.events = &events{mailboxes: options.Mailboxes, mailbox: options.Mailbox, clock: options.Clock}
	c.matcher.Store(matcher)
	for _, target := range options.TargetAPIs {
		c.targetResources = append(c.targetResources, c.newTargetResource(target))
	}
	return c
}

// needsWholeTargetObjects tells whether a rule needs the values of what went down, and not only whose they are.
func needsWholeTargetObjects(options Options) bool {
	rules := options.Resource.rules()
	if rules.Down.UsesOther() || rules.Up != nil && options.Resource.StatusReturn {
		return true
	}
	return slices.ContainsFunc(rules.Related, func(r *related.Relation) bool { return r.Origin == synchubv1alpha1.RelatedOriginTarget }) ||
		slices.ContainsFunc(options.Relations, func(r *related.Relation) bool { return r.Down.UsesOther() || r.Up != nil })
}

// Selector is the label selector for the objects of an owner.
func Selector(owner ownership.Owner) string {
	return ownership.OwnerLabel + "=" + owner.LabelValue()
}

// Run works until ctx ends. It does not return before all it started has ended.
func (c *Controller) Run(ctx context.Context) error {
	defer c.runningTasks.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer c.metrics.remove()
	defer collector.Add(c)()
	defer c.firstPass.finish()
	defer c.Connection.Subscribe(c.targetListener(ctx))()
	defer c.Connection.CountCache(&c.targetExpectations.size)()

	for _, target := range c.targetResources {
		c.runningTasks.Go(func() { target.cache.Run(ctx) })
		c.runningTasks.Go(func() {
			target.cache.OnProgress(ctx, func() {
				c.recheckStart()
				c.recheckInitialSync()
			})
		})
	}
	c.startUpsyncCaches(ctx)
	defer c.stopUpsyncCaches()
	defer c.Mailboxes.Subscribe(c.Resource.GroupVersionResource, c.Mailbox, c)()
	defer c.Mailboxes.Subscribe(namespaces, c.Mailbox, (*namespaceLabelSubscriber)(c))()
	defer c.subscribeToRelated(ctx)()
	if !c.waitForCacheSync(ctx) {
		return nil
	}
	c.OnChange()
	if !waitForAll(ctx, c.WaitFor) {
		return nil
	}
	todo := newQueue(c.Clock)
	c.startQueue(todo)
	return c.runWorkers(ctx, todo)
}

// runWorkers works whenever there is something to do, until ctx ends.
func (c *Controller) runWorkers(ctx context.Context, todo *queue) error {
	for todo.waitForWork(ctx) {
		if err := c.runWorkersUntilIdle(ctx, todo); err != nil {
			return fmt.Errorf("cannot run the sync controller: %w", err)
		}
	}
	return nil
}

// runWorkersUntilIdle works until nothing is left to do, or ctx ends.
func (c *Controller) runWorkersUntilIdle(ctx context.Context, todo *queue) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	worker, err := c.newWorkers(todo.activate())
	if err != nil {
		return err
	}
	c.runningTasks.Go(func() {
		defer cancel()
		todo.waitUntilIdle(ctx)
	})
	return worker.Start(ctx)
}

func (c *Controller) newWorkers(shift *activeQueue) (controller.TypedController[types.NamespacedName], error) {
	return controller.NewTypedUnmanaged("sync", controller.TypedOptions[types.NamespacedName]{
		// Names are never freed, and hundreds of controllers come and go.
		SkipNameValidation:      new(true),
		MaxConcurrentReconciles: maxConcurrentReconciles,
		ReconciliationTimeout:   reconcileTimeout,
		Reconciler:              c,
		NewQueue: func(string, workqueue.TypedRateLimiter[types.NamespacedName]) workqueue.TypedRateLimitingInterface[types.NamespacedName] {
			return shift
		},
		LogConstructor: func(key *types.NamespacedName) logr.Logger {
			if key == nil {
				return c.Log.V(2)
			}
			return c.Log.WithValues("object", key.String())
		},
	})
}

// startQueue takes over the queue and puts everything there is into it.
func (c *Controller) startQueue(todo *queue) {
	c.lock.Lock()
	c.queue = todo
	c.lock.Unlock()
	keys := c.keys()
	c.firstPass.start(keys)
	c.enqueue(replayPriority, keys...)
	c.recheckInitialSync()
}

// waitForCacheSync returns when it is known what the target holds; nothing may be decided before. While the target serves
// the hub nothing of the resource there is nothing to do but to take back what came up before; where it lacks one form of
// several, or does not show one namespace of several, the others go on.
func (c *Controller) waitForCacheSync(ctx context.Context) bool {
	begins := func() bool {
		if c.Resource.Unpublishing {
			return true
		}
		known := 0
		for _, target := range c.targetResources {
			filled, pending := target.cache.Progress()
			if pending > 0 {
				return false
			}
			known += filled
		}
		return known > 0 || c.mailboxHoldsObjects()
	}
	for !begins() {
		select {
		case <-ctx.Done():
			return false
		case <-c.startSignal:
		}
	}
	return true
}

// recheckStart makes the controller look again whether it can begin.
func (c *Controller) recheckStart() {
	select {
	case c.startSignal <- struct{}{}:
	default:
	}
}

func waitForAll(ctx context.Context, all []<-chan struct{}) bool {
	for _, one := range all {
		select {
		case <-ctx.Done():
			return false
		case <-one:
		}
	}
	return true
}

// HasSynced tells whether it is known what the target holds.
func (c *Controller) HasSynced() bool {
	for _, target := range c.targetResources {
		if !target.hasSynced() {
			return false
		}
	}
	return true
}

// FirstPassDone is closed when everything there was at the start has been tried once, or could not be.
func (c *Controller) FirstPassDone() <-chan struct{} { return c.firstPass.done }

// HasCompletedFirstPass tells whether the mailbox's objects can be seen, and everything there was at the start has been tried once, or could
// not be.
func (c *Controller) HasCompletedFirstPass() bool {
	select {
	case <-c.firstPass.done:
	default:
		return false
	}
	_, state := c.Mailboxes.Get(c.Resource.GroupVersionResource, c.Mailbox, types.NamespacedName{})
	return state != mailboxes.Unknown
}

// UnreadableReason returns why the hub does not see what the mailbox has of the resource now; empty if it does.
func (c *Controller) UnreadableReason() string {
	if c.Mailboxes.IsKnownNotServed(c.Mailbox, c.Resource.GroupResource()) {
		if c.Resource.Exported {
			return "kcp has not bound it in the mailbox"
		}
		return "the APIBinding of the mailbox does not accept the hub's claim on it, or kcp has not applied that"
	}
	if _, known := c.mailboxObject(types.NamespacedName{}); !known {
		return "the hub cannot list it now"
	}
	return ""
}

// UnavailableResources returns what of the controller's resource the target does not serve, or not to the hub.
func (c *Controller) UnavailableResources() []UnavailableResource {
	unavailable := slices.Clone(c.UnresolvedKinds)
	for _, target := range c.targetResources {
		availability := target.cache.Availability()
		if feed := target.currentUpsyncCache(); availability.Reason == "" && feed != nil {
			availability = feed.Availability()
		}
		if availability.Reason != "" {
			unavailable = append(unavailable, UnavailableResource{
				GroupResource: target.GroupResource(), Kind: target.Kind, Reason: availability.Reason, Message: availability.Message,
			})
		}
	}
	return unavailable
}

// onAvailabilityChanged is called when the target begins or ceases to serve a resource.
func (c *Controller) onAvailabilityChanged() {
	if len(c.UnavailableResources()) > len(c.UnresolvedKinds) {
		// What cannot be tried must not hold up what comes after it.
		c.firstPass.finish()
	}
	c.recheckStart()
	// What the target does not serve it does not hold: that may be all that was missing.
	c.recheckInitialSync()
	c.OnChange()
}
