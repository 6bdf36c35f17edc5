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
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/internal/idlequeue"
	"github.com/synchub-dev/synchub/controllers/objectsync/observe"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/mutation"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/plan/policy"
	"github.com/synchub-dev/synchub/controllers/plan/related"
	"github.com/synchub-dev/synchub/controllers/plan/selection"
	"github.com/synchub-dev/synchub/controllers/plan/transform"
	"github.com/synchub-dev/synchub/controllers/tenants"
	"github.com/synchub-dev/synchub/provider/mailboxes"
	"github.com/synchub-dev/synchub/provider/mailboxes/absence"
	"github.com/synchub-dev/synchub/provider/targets"
	"github.com/synchub-dev/synchub/provider/topic"
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
	// conversions, both current and former ones.
	TargetAPIs []plan.TargetAPI
	// UnresolvedKinds are the kinds that conversions produce, but that the target does not serve or the hub denies.
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
	// Registry contains the related objects; all controllers of the SyncTarget share it. Relations are the relations that sync
	// objects of this resource with their primaries.
	Registry  *related.Registry
	Relations []*related.Relation
	// RequestCompleteness asks the controllers of all primaries to finish their initial sync, unless answered returns true first
	// (see [RequestCompleteness]).
	RequestCompleteness func(answered func() bool)
	// RequeueRelated enqueues every object that may be related to objects of this resource.
	RequeueRelated func()
	// Cordoned reports whether nothing new may be created on the target. Nil means never.
	Cordoned func() bool
	// Held reports whether removing and overwriting copies is forbidden, because kcp went back to an earlier state. Lost returns
	// the highest resourceVersion that kcp lost. Nil means that kcp never went back.
	Held func() bool
	Lost func() uint64
	// Adoption returns the SyncTarget's adoption policy, which counts beside the PublishedResource's policy. Nil means none.
	Adoption func() synchubv1alpha1.AdoptionPolicy
	// Tenants returns the tenants of the target, nil if there are none. They decide who writes an object on the target. A nil function
	// means that there are never any.
	Tenants func() *tenants.Controller
	// NamespacePolicy returns the policy for namespaces of the target. Nil allows all.
	NamespacePolicy func() *policy.NamespacePolicy
	// IsPublished reports whether a PublishedResource of this name is in force.
	IsPublished func(publishedResource string) bool
	// WaitFor are channels that close when the controllers of earlier waves have tried all their objects once.
	WaitFor []<-chan struct{}
	// OnChange is called when a summary may have changed: after a write and when the caches show it, when the failure of an object
	// changes, when an object begins or ceases to be held back, and when the target begins or ceases to serve the resource. It must
	// not block.
	OnChange func()
	// ObjectStates carries the marked mailbox objects whose [Controller.ObjectState] changed; nil carries nothing.
	ObjectStates *topic.Topic[ObjectRef]
	// AggregateMetrics makes the controller share one series per metric with the other controllers of its SyncTarget, without the
	// resource label's value.
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
	// Status reports on the controller's objects.
	Status *Status

	planner     *plan.Planner
	matcher     atomic.Pointer[selection.Matcher]
	mailbox     *mailboxView
	target      *targetView
	upsync      *upsyncCaches
	enqueuer    *enqueuer
	nameWatches *nameWatches
	primaries   *primaries
	observer    *observer
	executor    *executor
	reporter    *reporter
	firstPass   *firstPass
	tasks       tasks
	startSignal chan struct{}
	// activeReconciles counts the passes under way.
	activeReconciles atomic.Int32
}

// New returns a controller that selects by the matcher. It does nothing until it runs.
func New(options Options, matcher *selection.Matcher) *Controller {
	if options.Registry == nil {
		// Without a registry nothing is related to anything.
		options.Registry = related.NewRegistry()
		options.RequestCompleteness, options.RequeueRelated = func(func() bool) {}, func() {}
		options.IsPublished = func(string) bool { return true }
	}
	if options.Tenants == nil {
		options.Tenants = func() *tenants.Controller { return nil }
	}
	if options.SyncTargetInput == nil {
		named := mutation.SyncTarget(options.SyncTarget, nil, nil)
		options.SyncTargetInput = func() map[string]any { return named }
	}
	c := &Controller{Options: options, firstPass: newFirstPass(), startSignal: make(chan struct{}, 1)}
	c.matcher.Store(matcher)
	planner := plan.NewPlanner(options.Resource, options.Owner, options.Hasher, options.Mailbox, options.SyncTarget)
	planner.Up.Pruner = options.Pruner
	c.planner = &planner
	o := &c.Options
	c.mailbox, c.target = newMailboxView(o), newTargetView(o)
	rules := newRules(o, c.planner, c.mailbox, c.target)
	states, upsynced, changes, placed, waiters := newKeyStates(o.Clock), newUpsyncIndex(), newPendingChanges(), newPlacementCopies(o), &nameWaiters{}
	c.enqueuer = &enqueuer{
		resource: &o.Resource, relations: o.Relations, matcher: &c.matcher, rules: rules, mailbox: c.mailbox, target: c.target, states: states,
		upsynced: upsynced, waiters: waiters, changes: changes, placed: placed, firstPass: c.firstPass, onChange: o.OnChange,
		isTraced: o.Tracer != nil, clock: o.Clock,
	}
	for _, api := range o.TargetAPIs {
		c.target.addCache(api, c.enqueuer.copyHandler, c.onAvailabilityChanged)
	}
	c.nameWatches = newNameWatches(waiters, c.target, c.enqueuer, &c.tasks)
	c.upsync = &upsyncCaches{
		resource: &o.Resource, planner: c.planner, matcher: &c.matcher, registry: o.Registry, rules: rules, mailbox: c.mailbox, target: c.target,
		upsynced: upsynced, enqueuer: c.enqueuer, tasks: &c.tasks, onSynced: c.resync, onAvailability: c.onAvailabilityChanged, onChange: o.OnChange,
		log: o.Log,
	}
	c.primaries = &primaries{
		tracker: newPrimaryTracker(o.Registry, o.Resource), registry: o.Registry, mailbox: c.mailbox, target: c.target, upsync: c.upsync,
		enqueuer: c.enqueuer, syncTarget: o.SyncTarget, requeueRelated: o.RequeueRelated,
	}
	dropped := &droppedFields{}
	c.reporter = newReporter(o, c.mailbox, c.target, states, changes, placed, dropped)
	c.Status = &Status{
		resource: &o.Resource, matcher: &c.matcher, rules: rules, mailbox: c.mailbox, target: c.target, upsync: c.upsync, upsynced: upsynced,
		states: states, changes: changes, placed: placed, dropped: dropped,
	}
	c.observer = &observer{
		matcher: &c.matcher, registry: o.Registry, rules: rules, mailbox: c.mailbox, target: c.target, upsync: c.upsync, upsynced: upsynced,
		states: states, primaries: c.primaries.tracker, held: o.Held, lost: o.Lost, upsyncReadsMailbox: upsyncReadsMailbox(o),
	}
	c.executor = &executor{
		states: states, mailbox: c.mailbox, upsync: c.upsync, primaries: c.primaries, reporter: c.reporter, upsyncReadsMailbox: upsyncReadsMailbox(o),
		requestCompleteness: o.RequestCompleteness,
		toTarget:            newTargetWriter(o, c.target, c.mailbox, c.reporter), toMailbox: newMailboxWriter(o, c.planner, c.mailbox, rules, states, upsynced, c.reporter),
	}
	return c
}

// newRules returns the observer of single objects over the views of both sides.
func newRules(o *Options, planner *plan.Planner, mailbox *mailboxView, target *targetView) *observe.Observer {
	return observe.New(observe.Observer{
		Mailbox: mailbox, Target: target, Planner: planner, Registry: o.Registry,
		IsPublished: o.IsPublished, SyncTargetInput: o.SyncTargetInput, ReadsCopies: target.cachesWholeObjects,
	})
}

// needsWholeTargetObjects reports whether a rule reads values of target objects, and not only their metadata and status.
func needsWholeTargetObjects(options *Options) bool {
	rules := options.Resource.GetRules()
	if rules.Down.UsesOther() || rules.Up != nil && options.Resource.StatusReturn {
		return true
	}
	return slices.ContainsFunc(rules.Related, func(r *related.Relation) bool { return r.Origin == synchubv1alpha1.RelatedOriginTarget }) ||
		slices.ContainsFunc(options.Relations, func(r *related.Relation) bool { return r.Down.UsesOther() || r.Up != nil })
}

// upsyncReadsMailbox reports whether a rule for upsync reads the mailbox object.
func upsyncReadsMailbox(options *Options) bool {
	return options.Resource.GetRules().Up.UsesOther() ||
		slices.ContainsFunc(options.Relations, func(r *related.Relation) bool { return r.Up.UsesOther() })
}

// readsSyncTarget reports whether a mutation of objects of the resource reads the SyncTarget.
func readsSyncTarget(options *Options) bool {
	rules := options.Resource.GetRules()
	return rules.Down.UsesSyncTarget() || rules.Up.UsesSyncTarget() ||
		slices.ContainsFunc(options.Relations, func(r *related.Relation) bool { return r.Down.UsesSyncTarget() || r.Up.UsesSyncTarget() })
}

// Selector returns the label selector for an owner's objects on a target.
func Selector(owner ownership.Owner) string {
	return ownership.OwnerLabel + "=" + owner.LabelValue()
}

// Run syncs until ctx ends, and returns when all its goroutines have ended. Thousands of idle controllers wait in Run, each with
// a stack of 4 KiB. One more kilobyte in this frame would double the stacks, so Run calls functions that return for everything
// else.
func (c *Controller) Run(ctx context.Context) error {
	defer c.tasks.running.Wait()
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
	c.enqueuer.start(queue)
	c.resync()
	return queue.Run(ctx)
}

// start starts the caches, which stop with ctx, and subscribes to all events that decisions depend on. stop ends the
// subscriptions in reverse order.
func (c *Controller) start(ctx context.Context) (stop func()) {
	c.tasks.begin(ctx)
	stops := []func(){
		c.reporter.metrics.use(),
		collector.Add(c),
		c.firstPass.finish,
		c.Connection.Watches.Subscribe(c.enqueuer.targetListener(c.onNamespaceLabels)),
		c.Connection.CacheSize.Add(&c.target.writes.Size),
	}
	for _, api := range c.target.apis {
		c.tasks.start(func() { api.cache.Run(ctx) })
		c.tasks.start(func() {
			api.cache.OnProgress(ctx, func() {
				c.recheckStart()
				c.primaries.recheckInitialSync()
			})
		})
	}
	c.upsync.update(c.matcher.Load())
	stops = append(stops, c.tasks.end, c.Mailboxes.Subscribe(c.Resource.GroupVersionResource, c.Mailbox, c))
	if c.readsNamespaceLabels() {
		stops = append(stops, c.Mailboxes.Subscribe(namespaces, c.Mailbox, namespaceSubscriber{c.enqueuer}))
	}
	stops = append(
		stops,
		c.Registry.Subscribe(synchubv1alpha1.RelatedOriginMailbox, c.Resource.GroupResource(), c.enqueuer.relatedInMailbox),
		c.upsync.subscribe(),
	)
	return func() {
		for _, stop := range slices.Backward(stops) {
			stop()
		}
	}
}

// readsNamespaceLabels reports whether a rule reads the labels of namespaces of the mailbox.
func (c *Controller) readsNamespaceLabels() bool {
	return c.Resource.GetRules().Filter.UsesNamespaceLabels() || c.selectsNamespaces()
}

// selectsNamespaces reports whether a relation selects namespaces by their labels.
func (c *Controller) selectsNamespaces() bool {
	return slices.ContainsFunc(c.Relations, (*related.Relation).SelectsNamespaces)
}

// onNamespaceLabels is called when the labels of namespaces of the target have changed; of all, if none is named.
func (c *Controller) onNamespaceLabels(changed ...string) {
	if c.selectsNamespaces() {
		c.upsync.onRelatedChanges(related.Change{All: len(changed) == 0, Namespaces: changed})
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

// resync enqueues every known key, and completes the initial sync of primaries if it can.
func (c *Controller) resync() {
	c.enqueuer.enqueueAll()
	c.primaries.recheckInitialSync()
}

// waitForCacheSync waits until the target's caches have synced, because no decision is safe before. It does not wait for APIs and
// namespaces that the hub cannot list. If the hub can list nothing, waitForCacheSync returns only if the mailbox has upsynced
// objects, or objects with the finalizer. It returns false if ctx ends first.
func (c *Controller) waitForCacheSync(ctx context.Context) bool {
	begins := func() bool {
		if c.Resource.Unpublishing {
			return true
		}
		known := 0
		for _, api := range c.target.apis {
			filled, pending := api.cache.Progress()
			if pending > 0 {
				return false
			}
			known += filled
		}
		return known > 0 || c.mailbox.holdsObjects()
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
func (c *Controller) HasSynced() bool { return c.target.hasSynced() }

// FirstPassDone returns a channel that closes when each key that was known at the start was tried once, or cannot be tried.
func (c *Controller) FirstPassDone() <-chan struct{} { return c.firstPass.done }

// HasCompletedFirstPass reports whether the mailbox is readable, and each key that was known when it became readable was tried
// once.
func (c *Controller) HasCompletedFirstPass() bool {
	return c.firstPass.isOver() && c.mailbox.isReadable()
}

// QueueLength returns the number of keys that wait for a worker.
func (c *Controller) QueueLength() int {
	if queue := c.enqueuer.current(); queue != nil {
		return queue.Len()
	}
	return 0
}

// IsEmpty reports whether the hub knows that it has no synced object on either side, and no pass is under way. A pass that begins
// after [Controller.SetMatcher] selects by the new matcher, so a controller that is empty under a matcher that selects nothing
// stays empty.
func (c *Controller) IsEmpty() bool {
	if !c.target.hasSynced() || c.activeReconciles.Load() > 0 || c.target.count() > 0 {
		return false
	}
	_, known := c.mailbox.list()
	return known && !c.mailbox.holdsObjects()
}

// IsEmptyFor reports the same as [Controller.IsEmpty] for one target API.
func (c *Controller) IsEmptyFor(resource schema.GroupResource) bool {
	api := c.target.resourceFor(resource)
	if api == nil || !api.cache.HasSynced() || c.activeReconciles.Load() > 0 || api.count() > 0 {
		return false
	}
	inMailbox, known := c.mailbox.list()
	return known && !slices.ContainsFunc(inMailbox, func(object *unstructured.Unstructured) bool {
		mark, err := plan.MailboxMark(c.Owner, object)
		return err == nil && upsyncSourceRef(mark).Resource == resource
	})
}

// onAvailabilityChanged is called when the target begins or ceases to serve an API of the controller.
func (c *Controller) onAvailabilityChanged() {
	if len(c.Status.UnavailableResources()) > len(c.UnresolvedKinds) {
		// Objects that cannot be tried must not hold up later waves.
		c.firstPass.finish()
	} else {
		// A 404 of an API that was not served proved nothing about the object.
		c.enqueuer.retry(plan.ReasonNotServed)
	}
	c.recheckStart()
	// An API that is not served has no objects, so the initial sync may be complete.
	c.primaries.recheckInitialSync()
	c.OnChange()
}

// Resume enqueues all keys after the target was away, and also keys with pending changes whose objects no longer exist on either
// side.
func (c *Controller) Resume() {
	c.enqueuer.enqueueAll()
	c.enqueuer.enqueue(replayPriority, c.enqueuer.changes.all()...)
}

// Uncordon enqueues the objects that failed because of the cordon.
func (c *Controller) Uncordon() { c.enqueuer.retry(plan.ReasonTargetCordoned) }

// Release enqueues the objects whose copies were held because kcp went back to an earlier state.
func (c *Controller) Release() { c.enqueuer.retry(plan.ReasonStoreWentBack) }

// RetryConflicts enqueues the objects whose name is taken, after the adoption policy has changed.
func (c *Controller) RetryConflicts() { c.enqueuer.retry(plan.ReasonConflict) }

// RetryDenied enqueues the objects in a namespace of the target that the target has denied, after the hub gave their authors rights
// there. The empty namespace means all objects.
func (c *Controller) RetryDenied(namespace string) { c.enqueuer.retryDenied(namespace) }

// SyncTargetChanged enqueues all keys if a mutation reads the SyncTarget.
func (c *Controller) SyncTargetChanged() {
	if readsSyncTarget(&c.Options) {
		c.enqueuer.enqueueAll()
	}
}

// NamespacesChanged enqueues all keys after the namespace policy, or the namespaces of the connection, changed.
func (c *Controller) NamespacesChanged() {
	c.upsync.update(c.matcher.Load())
	c.enqueuer.enqueue(defaultPriority, c.enqueuer.keys()...)
}

// EnqueueRelated enqueues all objects that were synced by a relation.
func (c *Controller) EnqueueRelated() {
	all := related.Change{All: true}
	c.enqueuer.relatedInMailbox(all)
	for _, api := range c.target.apis {
		c.upsync.enqueueRelated(api.TargetAPI, all)
	}
}

// SetMatcher makes the controller select by another matcher, and enqueues the objects whose selection differs.
func (c *Controller) SetMatcher(matcher *selection.Matcher) {
	old := c.matcher.Swap(matcher)
	keys := c.Status.upsynced.allKeys()
	changed := c.upsync.update(matcher)
	c.enqueuer.enqueueReselected(old, matcher, changed)
	c.enqueuer.enqueue(defaultPriority, keys...)
	if old.HasUnresolved() || matcher.HasUnresolved() {
		// It has become certain, or uncertain, whether unselected objects are deselected.
		c.enqueuer.enqueueAll()
	}
	if len(c.Relations) > 0 {
		// The matcher decides in which namespaces related objects may be.
		c.upsync.onRelatedChanges(related.Change{All: true})
	}
}

// OnEvent is called for each change in the mailbox.
func (c *Controller) OnEvent(event mailboxes.Event) { c.enqueuer.onMailboxEvent(event) }

// OnReset is called when the mailbox cache was relisted, or stops being filled.
func (c *Controller) OnReset() {
	c.OnChange()
	c.recheckStart()
	c.resync()
}

// OnAbsenceDecided is called when a suspected absence was verified or refuted.
func (c *Controller) OnAbsenceDecided(key types.NamespacedName) {
	if key == absence.AllObjects {
		c.primaries.checkInitialSync()
		return
	}
	c.enqueuer.enqueue(changePriority, key)
}
