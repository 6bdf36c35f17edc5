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

package sync

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
	"github.com/synchub-dev/synchub/controllers/sync/boundary"
	"github.com/synchub-dev/synchub/controllers/sync/ownership"
	"github.com/synchub-dev/synchub/controllers/sync/relation"
	"github.com/synchub-dev/synchub/controllers/sync/selection"
	"github.com/synchub-dev/synchub/controllers/sync/transform"
	"github.com/synchub-dev/synchub/provider/mailboxes"
	"github.com/synchub-dev/synchub/provider/targets"
)

const (
	// workers is how many objects of one resource go to one target at once.
	workers = 4
	// reconcileTimeout bounds all requests about one object together.
	reconcileTimeout = 2 * time.Minute
	// A failing object is tried again after firstRetry, then each time twice as late, up to lastRetry.
	firstRetry = 100 * time.Millisecond
	lastRetry  = 5 * time.Minute
)

// Options are what a controller needs.
type Options struct {
	Resource Resource
	// Targets are what the mailbox's objects can be on the target: the resource itself first, then what conversions make
	// of it, or made of it before.
	Targets []TargetResource
	// Unresolved are kinds that conversions make of the mailbox's objects and the target does not serve, or that are refused.
	Unresolved []Unavailable
	// Mailbox is the mailbox's logical cluster.
	Mailbox    logicalcluster.Name
	Mailboxes  *mailboxes.Mailboxes
	Connection *targets.Connection
	Owner      ownership.Owner
	Hasher     ownership.Hasher
	// SyncTarget is the name of the target's SyncTarget.
	SyncTarget string
	// Kept is what the schema of the mailbox's API keeps, nil if the hub does not know that.
	Kept *transform.Kept
	// Register knows, for all controllers of the SyncTarget, which objects are related; Relations are those by which
	// objects of the resource travel with others.
	Register  *relation.Register
	Relations []*relation.Relation
	// Demand has it found out whether all primaries have spoken that objects of the resource can be related to, unless the
	// question that this is asked for is answered by then (see [Confirm]).
	Demand func(answered func() bool)
	// Again has looked again at all that may be related to objects of the resource.
	Again func()
	// Cordoned tells whether nothing new may be made on the target. Nil stands for never.
	Cordoned func() bool
	// Adoption is what the SyncTarget lets the hub take over beside what the PublishedResource does. Nil stands for nothing.
	Adoption func() synchubv1alpha1.AdoptionPolicy
	// Namespaces says which namespaces may be used now. Nil stands for all.
	Namespaces func() *boundary.Namespaces
	// Publishes tells whether a PublishedResource of that name is in force.
	Publishes func(publishedResource string) bool
	// After are closed when all that must go first has been tried.
	After []<-chan struct{}
	// Changed is called when an object was acted on, its failure changed, or the target began or ceased to serve the
	// resource. It must return at once.
	Changed func()
	Clock   clock.Clock
	Log     logr.Logger
}

// Controller keeps one resource of one mailbox in step with one target, in both directions. Create it with [New] and run
// it with [Controller.Run].
type Controller struct {
	Options
	down     transform.Down
	up       transform.Up
	selector string
	manager  string
	matcher  atomic.Pointer[selection.Matcher]
	sides    []*side
	// onTarget and inMailbox remember what was written to either side.
	onTarget  *memory[place]
	inMailbox *memory[types.NamespacedName]
	moves     *moves
	raised    *raised
	relatives *relatives
	waiting   *waiting
	failures  *failures
	pending   *pending
	metrics   *metrics
	events    *events
	firstPass *firstPass
	dropped   dropped
	poked     chan struct{}
	// wholeOnTarget is true if a rule looks at objects of the target that went down.
	wholeOnTarget bool
	// looksAtOther is true if what comes up is made with a look at what the mailbox holds.
	looksAtOther bool

	// active is how many objects are being reconciled now.
	active atomic.Int32

	lock gosync.Mutex
	// queue is nil until the controller begins.
	queue interface {
		AddWithOpts(options priorityqueue.AddOpts, keys ...types.NamespacedName)
		Len() int
	}
	// feeding owns the feeds; it is nil while the controller does not run.
	feeding context.Context //nolint:containedctx // feeds start and end with the matcher, within the run
	running gosync.WaitGroup
}

// New returns a controller that selects by the matcher.
func New(options Options, matcher *selection.Matcher) *Controller {
	if options.Register == nil {
		// Nothing is related to anything.
		options.Register = relation.NewRegister()
		options.Demand, options.Again = func(func() bool) {}, func() {}
		options.Publishes = func(string) bool { return true }
	}
	c := &Controller{
		Options: options,
		down: transform.Down{
			Owner: options.Owner, Hasher: options.Hasher, Mailbox: options.Mailbox.String(), SyncTarget: options.SyncTarget,
			Resource: options.Resource.GroupResource(), Namespaced: options.Resource.Namespaced,
		},
		up: transform.Up{
			Owner: options.Owner, Hasher: options.Hasher, Mailbox: options.Mailbox.String(), SyncTarget: options.SyncTarget,
			Resource: options.Resource.GroupResource(), Namespaced: options.Resource.Namespaced,
			Version: options.Resource.Version, Kind: options.Resource.Kind, Kept: options.Kept,
		},
		selector:  Selector(options.Owner),
		manager:   ownership.FieldManager(options.Owner.Hub),
		raised:    newRaised(),
		moves:     newMoves(),
		relatives: newRelatives(options.Register, options.Resource),
		waiting:   newWaiting(),
		failures:  newFailures(options.Clock),
		pending:   newPending(),
		metrics:   newMetrics(options.Owner.SyncTarget, options.Resource),
		firstPass: newFirstPass(),
		poked:     make(chan struct{}, 1),
	}
	c.onTarget = newMemory(options.Clock, func(at place, resourceVersion string) bool {
		return c.sideOf(at.resource).cache.HasReached(at.key.Namespace, resourceVersion)
	})
	c.onTarget.grown = options.Connection.Grown
	// The caches of mailboxes do not tell how far they have got.
	c.inMailbox = newMemory(options.Clock, func(types.NamespacedName, string) bool { return true })
	c.wholeOnTarget = looksAtTarget(options)
	c.looksAtOther = options.Resource.rules().Up.UsesOther() ||
		slices.ContainsFunc(options.Relations, func(r *relation.Relation) bool { return r.Up.UsesOther() })
	c.events = &events{mailboxes: options.Mailboxes, mailbox: options.Mailbox, clock: options.Clock}
	c.matcher.Store(matcher)
	for _, target := range options.Targets {
		c.sides = append(c.sides, c.newSide(target))
	}
	return c
}

// looksAtTarget tells whether a rule needs the values of what went down, and not only whose they are.
func looksAtTarget(options Options) bool {
	rules := options.Resource.rules()
	if rules.Down.UsesOther() || rules.Up != nil && options.Resource.StatusReturn {
		return true
	}
	return slices.ContainsFunc(rules.Related, func(r *relation.Relation) bool { return r.Origin == synchubv1alpha1.RelatedOriginTarget }) ||
		slices.ContainsFunc(options.Relations, func(r *relation.Relation) bool { return r.Down.UsesOther() || r.Up != nil })
}

// Selector is the label selector for the objects of an owner.
func Selector(owner ownership.Owner) string {
	return ownership.OwnerLabel + "=" + owner.LabelValue()
}

// Run works until ctx ends. It does not return before all it started has ended.
func (c *Controller) Run(ctx context.Context) error {
	defer c.running.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer c.metrics.remove()
	defer controllers.Add(c)()
	defer c.firstPass.end()
	defer c.Connection.Subscribe(c.listener(ctx))()
	defer c.Connection.Count(&c.onTarget.held)()

	for _, side := range c.sides {
		c.running.Go(func() { side.cache.Run(ctx) })
		c.running.Go(func() {
			side.cache.OnProgress(ctx, func() {
				c.poke()
				c.answerRoll()
			})
		})
	}
	c.startFeeds(ctx)
	defer c.stopFeeds()
	defer c.Mailboxes.Subscribe(c.Resource.GroupVersionResource, c.Mailbox, c)()
	defer c.Mailboxes.Subscribe(namespaces, c.Mailbox, (*namespaceSubscriber)(c))()
	defer c.listenToRelations(ctx)()
	if !c.waitUntilKnown(ctx) {
		return nil
	}
	c.Changed()
	if !waitFor(ctx, c.After) {
		return nil
	}
	todo := newQueue(c.Clock)
	c.begin(todo)
	return c.workOn(ctx, todo)
}

// workOn works whenever there is something to do, until ctx ends.
func (c *Controller) workOn(ctx context.Context, todo *queue) error {
	for todo.awaitWork(ctx) {
		if err := c.work(ctx, todo); err != nil {
			return fmt.Errorf("cannot run the sync controller: %w", err)
		}
	}
	return nil
}

// work works until nothing is left to do, or ctx ends.
func (c *Controller) work(ctx context.Context, todo *queue) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	worker, err := c.worker(todo.open())
	if err != nil {
		return err
	}
	c.running.Go(func() {
		defer cancel()
		todo.awaitRest(ctx)
	})
	return worker.Start(ctx)
}

func (c *Controller) worker(shift *shift) (controller.TypedController[types.NamespacedName], error) {
	return controller.NewTypedUnmanaged("sync", controller.TypedOptions[types.NamespacedName]{
		// Names are never freed, and hundreds of controllers come and go.
		SkipNameValidation:      new(true),
		MaxConcurrentReconciles: workers,
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

// begin takes over the queue and puts everything there is into it.
func (c *Controller) begin(todo *queue) {
	c.lock.Lock()
	c.queue = todo
	c.lock.Unlock()
	keys := c.keys()
	c.firstPass.begin(keys)
	c.enqueue(replayPriority, keys...)
	c.answerRoll()
}

// waitUntilKnown returns when it is known what the target holds; nothing may be decided before. While the target serves
// the hub nothing of the resource there is nothing to do but to take back what came up before; where it lacks one form of
// several, or does not show one namespace of several, the others go on.
func (c *Controller) waitUntilKnown(ctx context.Context) bool {
	begins := func() bool {
		if c.Resource.Leaving {
			return true
		}
		known := 0
		for _, side := range c.sides {
			filled, pending := side.cache.Progress()
			if pending > 0 {
				return false
			}
			known += filled
		}
		return known > 0 || c.holdsAbove()
	}
	for !begins() {
		select {
		case <-ctx.Done():
			return false
		case <-c.poked:
		}
	}
	return true
}

// poke makes the controller look again whether it can begin.
func (c *Controller) poke() {
	select {
	case c.poked <- struct{}{}:
	default:
	}
}

func waitFor(ctx context.Context, all []<-chan struct{}) bool {
	for _, one := range all {
		select {
		case <-ctx.Done():
			return false
		case <-one:
		}
	}
	return true
}

// Synced tells whether it is known what the target holds.
func (c *Controller) Synced() bool {
	for _, side := range c.sides {
		if !side.isKnown() {
			return false
		}
	}
	return true
}

// FirstPass is closed when everything there was at the start has been tried once, or could not be.
func (c *Controller) FirstPass() <-chan struct{} { return c.firstPass.ended }

// Knows tells whether the mailbox's objects can be seen, and everything there was at the start has been tried once, or could
// not be.
func (c *Controller) Knows() bool {
	select {
	case <-c.firstPass.ended:
	default:
		return false
	}
	_, state := c.Mailboxes.Get(c.Resource.GroupVersionResource, c.Mailbox, types.NamespacedName{})
	return state != mailboxes.Unknown
}

// Hidden returns why the hub does not see what the mailbox has of the resource now; empty if it does.
func (c *Controller) Hidden() string {
	if c.Mailboxes.Lacks(c.Mailbox, c.Resource.GroupResource()) {
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

// Unavailable returns what of the controller's resource the target does not serve, or not to the hub.
func (c *Controller) Unavailable() []Unavailable {
	unavailable := slices.Clone(c.Unresolved)
	for _, side := range c.sides {
		availability := side.cache.Availability()
		if feed := side.feeding(); availability.Reason == "" && feed != nil {
			availability = feed.Availability()
		}
		if availability.Reason != "" {
			unavailable = append(unavailable, Unavailable{
				Target: side.GroupResource(), Kind: side.Kind, Reason: availability.Reason, Message: availability.Message,
			})
		}
	}
	return unavailable
}

// availabilityChanged is called when the target begins or ceases to serve a resource.
func (c *Controller) availabilityChanged() {
	if len(c.Unavailable()) > len(c.Unresolved) {
		// What cannot be tried must not hold up what comes after it.
		c.firstPass.end()
	}
	c.poke()
	// What the target does not serve it does not hold: that may be all that was missing.
	c.answerRoll()
	c.Changed()
}
