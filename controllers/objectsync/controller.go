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
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/internal/queue"
	"github.com/synchub-dev/synchub/controllers/objectsync/observe"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/mutation"
	"github.com/synchub-dev/synchub/controllers/plan/related"
	"github.com/synchub-dev/synchub/controllers/plan/selection"
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
	pods        *podReasons
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
	if options.SyncTargetInput == nil {
		named := mutation.SyncTarget(options.SyncTarget, nil, nil)
		options.SyncTargetInput = func() map[string]any { return named }
	}
	c := &Controller{Options: options, firstPass: newFirstPass(), startSignal: make(chan struct{}, 1)}
	c.matcher.Store(matcher)
	planner := plan.NewPlanner(options.Resource, options.Owner, options.Hasher, options.Mailbox, options.SyncTarget)
	planner.Up.Pruner, planner.Relations = options.Pruner, options.Resource.Related()
	c.planner = &planner
	o := &c.Options
	c.mailbox, c.target = newMailboxView(o), newTargetView(o)
	rules := newRules(o, c.planner, c.mailbox, c.target)
	states, upsynced, changes, placed, waiters := newKeyStates(o.Clock), newUpsyncIndex(), newPendingChanges(), newSyncStatuses(o), &nameWaiters{}
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
		tracker: newPrimaryTracker(o.Registry, o.Resource), mailbox: c.mailbox, target: c.target, upsync: c.upsync,
		enqueuer: c.enqueuer, requeueRelated: o.RequeueRelated,
	}
	dropped := &droppedFields{}
	c.reporter = newReporter(o, c.mailbox, c.target, states, changes, placed, dropped)
	c.pods = newPodReasons(o.Resource.GroupResource(), &o.Connection.Objects, o.Clock)
	c.Status = &Status{
		resource: &o.Resource, matcher: &c.matcher, rules: rules, mailbox: c.mailbox, target: c.target, upsync: c.upsync, upsynced: upsynced,
		states: states, changes: changes, placed: placed, dropped: dropped, pods: c.pods,
	}
	c.observer = &observer{
		matcher: &c.matcher, registry: o.Registry, rules: rules, mailbox: c.mailbox, target: c.target, upsync: c.upsync, upsynced: upsynced,
		states: states, primaries: c.primaries.tracker, held: o.Held, lost: o.Lost,
	}
	c.executor = &executor{
		states: states, mailbox: c.mailbox, upsync: c.upsync, primaries: c.primaries, reporter: c.reporter,
		requestCompleteness: o.RequestCompleteness,
		toTarget:            newTargetWriter(o, c.target, c.mailbox, c.reporter), toMailbox: newMailboxWriter(o, c.planner, c.mailbox, states, upsynced, c.reporter),
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

func (c *Controller) newQueue() *queue.Queue[types.NamespacedName] {
	return queue.New(queue.Options[types.NamespacedName]{
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
