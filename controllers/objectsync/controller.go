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
	"slices"
	gosync "sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/internal/idlequeue"
	"github.com/synchub-dev/synchub/controllers/internal/mailboxwrite"
	"github.com/synchub-dev/synchub/controllers/internal/topic"
	"github.com/synchub-dev/synchub/controllers/objectsync/observe"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/mutation"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/plan/policy"
	"github.com/synchub-dev/synchub/controllers/plan/related"
	"github.com/synchub-dev/synchub/controllers/plan/selection"
	"github.com/synchub-dev/synchub/controllers/plan/transform"
	"github.com/synchub-dev/synchub/provider/mailboxes"
	"github.com/synchub-dev/synchub/provider/metrics/requestmetrics"
	"github.com/synchub-dev/synchub/provider/targets"
	"github.com/synchub-dev/synchub/provider/tracing"
)

const (
	// maxConcurrentReconciles bounds the objects of one resource that are reconciled with one target at a time.
	maxConcurrentReconciles = 4
	// reconcileTimeout bounds all requests of one pass together.
	reconcileTimeout = 2 * time.Minute
	// The retry delay of a failing object starts at retryBaseDelay and doubles up to retryMaxDelay.
	retryBaseDelay = 100 * time.Millisecond
	retryMaxDelay  = 5 * time.Minute
	// idleTimeout is how long the queue must have been empty before the workers stop.
	idleTimeout = time.Minute
)

// Options configure a [Controller].
type Options struct {
	Resource plan.Resource
	// TargetAPIs are the APIs that mailbox objects can have on the target: the resource itself first, then the results of
	// conversions that are, or were, in force.
	TargetAPIs []plan.TargetAPI
	// UnresolvedKinds are results of conversions that the target does not serve, or that the hub denies.
	UnresolvedKinds []UnavailableResource
	// Mailbox is the logical cluster of the mailbox.
	Mailbox    logicalcluster.Name
	Mailboxes  *mailboxes.Mailboxes
	Connection *targets.Connection
	Owner      ownership.Owner
	Hasher     ownership.Hasher
	// SyncTarget is the name of the SyncTarget.
	SyncTarget string
	// SyncTargetInput returns the SyncTarget's fields as mutations read them (see [mutation.SyncTarget]). Nil means its name only.
	SyncTargetInput func() map[string]any
	// Pruner drops the fields that the mailbox's schema does not have; nil if the hub does not know the schema.
	Pruner *transform.Pruner
	// Registry is shared by all controllers of the SyncTarget and knows which objects are related. Relations are those by
	// which objects of this resource are synced with primaries.
	Registry  *related.Registry
	Relations []*related.Relation
	// RequestCompleteness asks the controllers of all primaries to finish their initial sync, unless answered returns true by
	// then (see [RequestCompleteness]).
	RequestCompleteness func(answered func() bool)
	// RequeueRelated enqueues every object that may be related to objects of this resource.
	RequeueRelated func()
	// Cordoned reports whether nothing new may be created on the target. Nil means never.
	Cordoned func() bool
	// Held reports whether no copy may be removed, or overwritten, because kcp went back to an earlier state. Lost is the highest version
	// that it has lost. Nil means that it never did.
	Held func() bool
	Lost func() uint64
	// Adoption is the adoption policy of the SyncTarget, beside that of the PublishedResource. Nil means none.
	Adoption func() synchubv1alpha1.AdoptionPolicy
	// NamespacePolicy returns the policy for namespaces of the target. Nil allows all.
	NamespacePolicy func() *policy.NamespacePolicy
	// IsPublished reports whether a PublishedResource of this name is in force.
	IsPublished func(publishedResource string) bool
	// WaitFor are closed when the controllers of earlier waves have tried all their objects once.
	WaitFor []<-chan struct{}
	// OnChange is called when a summary may have changed: after a write and when the caches show it, when the failure of an object
	// changes, when an object begins or ceases to be held back, and when the target begins or ceases to serve the resource. It must
	// not block.
	OnChange func()
	// ObjectStates carries the marked mailbox objects whose [Controller.ObjectState] changed; nil carries nothing.
	ObjectStates *topic.Topic[ObjectRef]
	// AggregateMetrics adds the metrics of the controller to those of the other resources of its SyncTarget.
	AggregateMetrics bool
	// Tracer records traces of passes; nil records none.
	Tracer *tracing.Tracer
	Clock  clock.Clock
	Log    logr.Logger
}

// Controller keeps one resource of one mailbox in sync with one target, in both directions. Create it with [New] and run it
// with [Controller.Run].
type Controller struct {
	Options
	planner         plan.Planner
	observer        *observe.Observer
	selector        string
	fieldManager    string
	matcher         atomic.Pointer[selection.Matcher]
	mailboxWriter   mailboxwrite.Writer[types.NamespacedName]
	targetResources []*targetResource
	states          *keyStates
	primaryTracker  *primaryTracker
	metrics         *controllerMetrics
	firstPass       *firstPass
	droppedFields   droppedFields
	startSignal     chan struct{}
	// cachesWholeObjects is true if a rule reads the copies on the target; else the cache keeps only metadata and status.
	cachesWholeObjects bool
	// upsyncReadsMailbox is true if a rule for upsync reads the mailbox object.
	upsyncReadsMailbox bool
	// readsSyncTarget is true if a mutation reads the SyncTarget.
	readsSyncTarget bool

	// activeReconciles counts the passes under way.
	activeReconciles atomic.Int32

	lock gosync.Mutex
	// queue is nil until the workers start.
	queue interface {
		AddWithOpts(options priorityqueue.AddOpts, keys ...types.NamespacedName)
		Len() int
	}
	// runContext ends with the run; it is nil while the controller does not run.
	runContext   context.Context //nolint:containedctx // upsync caches start and end with the matcher, within the run
	runningTasks gosync.WaitGroup
}

// New returns a controller that selects by the matcher. It does nothing until it runs.
func New(options Options, matcher *selection.Matcher) *Controller {
	if options.Registry == nil {
		// Without a registry nothing is related to anything.
		options.Registry = related.NewRegistry()
		options.RequestCompleteness, options.RequeueRelated = func(func() bool) {}, func() {}
		options.IsPublished = func(string) bool { return true }
	}
	if options.SyncTargetInput == nil {
		named := mutation.SyncTarget(options.SyncTarget, nil, nil)
		options.SyncTargetInput = func() map[string]any { return named }
	}
	c := &Controller{
		Options:        options,
		planner:        plan.NewPlanner(options.Resource, options.Owner, options.Hasher, options.Mailbox, options.SyncTarget),
		selector:       Selector(options.Owner),
		fieldManager:   ownership.FieldManager(options.Owner.Hub),
		states:         newKeyStates(options.Clock),
		primaryTracker: newPrimaryTracker(options.Registry, options.Resource),
		metrics:        newMetrics(options.Owner.SyncTarget, options.Resource, options.AggregateMetrics),
		firstPass:      newFirstPass(),
		startSignal:    make(chan struct{}, 1),
	}
	c.planner.Up.Pruner = options.Pruner
	c.mailboxWriter = mailboxwrite.Writer[types.NamespacedName]{
		Workspaces: options.Mailboxes, FieldManager: c.fieldManager, Expectations: &c.states.mailboxExpectations,
		Locate: func(key types.NamespacedName) mailboxwrite.Object {
			return mailboxwrite.Object{Workspace: c.Mailbox, Resource: c.Resource.GroupVersionResource, Name: key}
		},
	}
	c.states.mailboxExpectations.Side, c.states.targetExpectations.Side = requestmetrics.Mailbox, requestmetrics.Target
	c.states.mailboxExpectations.Cached = func(key types.NamespacedName) *unstructured.Unstructured {
		cached, _ := c.Mailboxes.Get(c.Resource.GroupVersionResource, c.Mailbox, key)
		return cached
	}
	c.states.targetExpectations.Cached = func(at plan.Ref) *cachedCopy { return c.targetResourceFor(at.Resource).cache.Get(at.Key) }
	// The caches of mailboxes do not report a resourceVersion for the whole cache.
	c.states.targetExpectations.CacheHasReached = func(at plan.Ref, resourceVersion string) bool {
		return c.targetResourceFor(at.Resource).cache.HasReached(at.Key.Namespace, resourceVersion)
	}
	c.states.targetExpectations.OnGrowth = options.Connection.CheckCacheLimits
	c.cachesWholeObjects = needsWholeTargetObjects(options)
	c.upsyncReadsMailbox = options.Resource.GetRules().Up.UsesOther() ||
		slices.ContainsFunc(options.Relations, func(r *related.Relation) bool { return r.Up.UsesOther() })
	c.readsSyncTarget = readsSyncTarget(options)
	c.observer = c.newObserver()
	c.matcher.Store(matcher)
	for _, target := range options.TargetAPIs {
		c.targetResources = append(c.targetResources, c.newTargetResource(target))
	}
	return c
}

// needsWholeTargetObjects reports whether a rule reads values of target objects, and not only their metadata and status.
func needsWholeTargetObjects(options Options) bool {
	rules := options.Resource.GetRules()
	if rules.Down.UsesOther() || rules.Up != nil && options.Resource.StatusReturn {
		return true
	}
	return slices.ContainsFunc(rules.Related, func(r *related.Relation) bool { return r.Origin == synchubv1alpha1.RelatedOriginTarget }) ||
		slices.ContainsFunc(options.Relations, func(r *related.Relation) bool { return r.Down.UsesOther() || r.Up != nil })
}

// readsSyncTarget reports whether a mutation of objects of the resource reads the SyncTarget.
func readsSyncTarget(options Options) bool {
	rules := options.Resource.GetRules()
	return rules.Down.UsesSyncTarget() || rules.Up.UsesSyncTarget() ||
		slices.ContainsFunc(options.Relations, func(r *related.Relation) bool { return r.Down.UsesSyncTarget() || r.Up.UsesSyncTarget() })
}

// Selector returns the label selector for an owner's objects on a target.
func Selector(owner ownership.Owner) string {
	return ownership.OwnerLabel + "=" + owner.LabelValue()
}

// Run works until ctx ends, and returns when everything that it started has ended. Thousands of idle controllers wait in it, each
// with a stack of 4 KiB. One more kilobyte in its frame would double that, so functions that return do all the rest.
func (c *Controller) Run(ctx context.Context) error {
	defer c.runningTasks.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer c.start(ctx)()
	if !c.waitForCacheSync(ctx) {
		return nil
	}
	c.OnChange()
	if !waitForAll(ctx, c.WaitFor) {
		return nil
	}
	queue := c.newQueue()
	c.startQueue(queue)
	return queue.Run(ctx)
}

// start starts the caches, which end with ctx, and subscribes to everything that a decision may depend on. stop ends the
// subscriptions, the last one first.
func (c *Controller) start(ctx context.Context) (stop func()) {
	stops := []func(){
		c.metrics.use(),
		collector.Add(c),
		c.firstPass.finish,
		c.Connection.Subscribe(c.targetListener(ctx)),
		c.Connection.CountCache(&c.states.targetExpectations.Size),
	}
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
	stops = append(
		stops,
		c.stopUpsyncCaches,
		c.Mailboxes.Subscribe(c.Resource.GroupVersionResource, c.Mailbox, c),
		c.Mailboxes.Subscribe(namespaces, c.Mailbox, (*namespaceLabelSubscriber)(c)),
		c.subscribeToRelated(ctx),
	)
	return func() {
		for _, stop := range slices.Backward(stops) {
			stop()
		}
	}
}

func (c *Controller) newQueue() *idlequeue.Queue[types.NamespacedName] {
	return idlequeue.New(idlequeue.Options[types.NamespacedName]{
		Name:                    "sync",
		Reconciler:              c,
		MaxConcurrentReconciles: maxConcurrentReconciles,
		ReconciliationTimeout:   reconcileTimeout,
		MinRetryDelay:           retryBaseDelay,
		MaxRetryDelay:           retryMaxDelay,
		IdleTimeout:             idleTimeout,
		Log:                     func(key types.NamespacedName) logr.Logger { return c.Log.WithValues("object", key.String()) },
		Clock:                   c.Clock,
	})
}

// startQueue makes the queue the controller's, and enqueues every known key.
func (c *Controller) startQueue(queue *idlequeue.Queue[types.NamespacedName]) {
	c.lock.Lock()
	c.queue = queue
	c.lock.Unlock()
	c.enqueueAll()
	c.recheckInitialSync()
}

// waitForCacheSync waits until the caches of the target have synced; before that the controller may decide nothing. It does not
// wait for APIs and namespaces that the target does not show. If the target shows nothing of the resource, the controller starts
// only if the mailbox has objects that were upsynced before. It returns false when ctx ends first.
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

// recheckStart makes [Controller.waitForCacheSync] check its conditions again.
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

// HasSynced reports whether the caches of the target have synced. A cache of an API that the target does not serve counts.
func (c *Controller) HasSynced() bool {
	for _, target := range c.targetResources {
		if !target.hasSynced() {
			return false
		}
	}
	return true
}

// FirstPassDone is closed when each key that was known at the start has been tried once, or cannot be.
func (c *Controller) FirstPassDone() <-chan struct{} { return c.firstPass.done }

// HasCompletedFirstPass reports whether the mailbox is readable, and each key that was known when it became so has been tried once.
func (c *Controller) HasCompletedFirstPass() bool {
	return c.firstPass.isOver() && c.canReadMailbox()
}

// canReadMailbox reports whether the cache of the mailbox shows the resource.
func (c *Controller) canReadMailbox() bool {
	_, state := c.Mailboxes.Get(c.Resource.GroupVersionResource, c.Mailbox, types.NamespacedName{})
	return state != mailboxes.Unknown
}

// NotListedReason is the [Controller.UnreadableReason] of a resource whose objects the hub has not listed, for whatever cause.
const NotListedReason = "the hub cannot list it now"

// UnreadableReason returns why the hub cannot read the mailbox objects of the resource now; empty if it can.
func (c *Controller) UnreadableReason() string {
	if c.Mailboxes.IsKnownNotServed(c.Mailbox, c.Resource.GroupResource()) {
		if c.Resource.Exported {
			return "kcp has not bound it in the mailbox"
		}
		return "the APIBinding of the mailbox does not accept the hub's claim on it, or kcp has not applied that"
	}
	if _, known := c.mailboxObject(types.NamespacedName{}); !known {
		return NotListedReason
	}
	return ""
}

// UnavailableResources returns the APIs that the target does not serve, or does not let the hub read, and kinds that conversions may
// not produce.
func (c *Controller) UnavailableResources() []UnavailableResource {
	unavailable := slices.Clone(c.UnresolvedKinds)
	for _, target := range c.targetResources {
		availability := target.cache.Availability()
		if upsynced := target.currentUpsyncCache(); availability.Reason == "" && upsynced != nil {
			availability = upsynced.Availability()
		}
		if availability.Reason != "" {
			unavailable = append(unavailable, UnavailableResource{
				GroupResource: target.GroupResource(), Kind: target.Kind, Reason: availability.Reason, Message: availability.Message,
			})
		}
	}
	return unavailable
}

// onAvailabilityChanged is called when the target begins or ceases to serve an API of the controller.
func (c *Controller) onAvailabilityChanged() {
	if len(c.UnavailableResources()) > len(c.UnresolvedKinds) {
		// Objects that cannot be tried must not hold up later waves.
		c.firstPass.finish()
	} else {
		// An answer 404 of an API that was not served proved nothing about its object.
		c.retry(plan.ReasonNotServed)
	}
	c.recheckStart()
	// An API that is not served has no objects, so the initial sync may be complete.
	c.recheckInitialSync()
	c.OnChange()
}
