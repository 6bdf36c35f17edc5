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
	gosync "sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/synchub-dev/synchub/controllers/sync/ownership"
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

// Priorities of keys in the queue: replays give way to new objects, and those to changes of objects known.
const (
	replayPriority = -100
	createPriority = 0
	changePriority = 100
)

// Options are what a controller needs.
type Options struct {
	Resource Resource
	// Mailbox is the mailbox's logical cluster.
	Mailbox    logicalcluster.Name
	Mailboxes  *mailboxes.Mailboxes
	Connection *targets.Connection
	Owner      ownership.Owner
	Hasher     ownership.Hasher
	// Changed is called when an object was acted on or its failure changed. It must return at once.
	Changed func()
	Clock   clock.Clock
	Log     logr.Logger
}

// Controller keeps one resource of one mailbox in step with one target. Create it with [New] and run it with
// [Controller.Run].
type Controller struct {
	Options
	down     transform.Down
	selector string
	manager  string
	matcher  atomic.Pointer[selection.Matcher]
	cache    *targets.Cache
	memory   *memory
	failures *failures
	metrics  *metrics
	events   *events

	// active is how many objects are being reconciled now.
	active atomic.Int32

	lock  gosync.Mutex
	queue priorityqueue.PriorityQueue[types.NamespacedName]
}

// New returns a controller that selects by the matcher.
func New(options Options, matcher *selection.Matcher) (*Controller, error) {
	c := &Controller{
		Options: options,
		down: transform.Down{
			Owner:    options.Owner,
			Mailbox:  options.Mailbox.String(),
			Resource: options.Resource.GroupResource(),
			Hasher:   options.Hasher,
		},
		selector: Selector(options.Owner),
		manager:  ownership.FieldManager(options.Owner.Hub),
		memory:   newMemory(options.Clock),
		failures: newFailures(options.Clock),
		metrics:  newMetrics(options.Owner.SyncTarget, options.Resource),
	}
	c.events = &events{mailboxes: options.Mailboxes, mailbox: options.Mailbox, clock: options.Clock}
	c.matcher.Store(matcher)
	objects, err := options.Connection.NewCache(options.Resource.GroupVersionResource, c.selector, c.strip, c.targetHandler())
	if err != nil {
		return nil, err
	}
	c.cache = objects
	return c, nil
}

// Selector is the label selector for the objects of an owner.
func Selector(owner ownership.Owner) string {
	return ownership.OwnerLabel + "=" + owner.LabelValue()
}

// Run works until ctx ends. It does not return before all it started has ended.
func (c *Controller) Run(ctx context.Context) error {
	var running gosync.WaitGroup
	defer running.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer c.metrics.remove()

	running.Go(func() { c.cache.Run(ctx) })
	// Nothing may be decided before it is known what the target holds.
	if !c.cache.WaitSynced(ctx) {
		return nil
	}
	c.Changed()
	unsubscribe := c.Mailboxes.Subscribe(c.Resource.GroupVersionResource, c.Mailbox, c)
	defer unsubscribe()

	worker, err := controller.NewTypedUnmanaged("sync", controller.TypedOptions[types.NamespacedName]{
		// Names are never freed, and hundreds of controllers come and go.
		SkipNameValidation:      new(true),
		MaxConcurrentReconciles: workers,
		ReconciliationTimeout:   reconcileTimeout,
		Reconciler:              c,
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](firstRetry, lastRetry),
		NewQueue: func(_ string, limiter workqueue.TypedRateLimiter[types.NamespacedName]) workqueue.TypedRateLimitingInterface[types.NamespacedName] {
			// A queue with a name has metrics, and those cost a ticker each.
			return priorityqueue.New("", func(o *priorityqueue.Opts[types.NamespacedName]) { o.RateLimiter = limiter })
		},
		LogConstructor: func(key *types.NamespacedName) logr.Logger {
			if key == nil {
				return c.Log.V(2)
			}
			return c.Log.WithValues("object", key.String())
		},
	})
	if err != nil {
		return fmt.Errorf("cannot make the sync controller: %w", err)
	}
	if err := worker.Watch(source.TypedFunc[types.NamespacedName](c.begin)); err != nil {
		return fmt.Errorf("cannot watch: %w", err)
	}
	return worker.Start(ctx)
}

// begin takes over the queue and puts everything there is into it.
func (c *Controller) begin(_ context.Context, queue workqueue.TypedRateLimitingInterface[types.NamespacedName]) error {
	c.lock.Lock()
	c.queue = queue.(priorityqueue.PriorityQueue[types.NamespacedName])
	c.lock.Unlock()
	c.enqueueAll()
	return nil
}

// Synced tells whether it is known what the target holds.
func (c *Controller) Synced() bool { return c.cache.Synced() }

// Resume makes the controller look at all objects again, after the target was away.
func (c *Controller) Resume() { c.enqueueAll() }

// OnReset is called when the mailbox's cache was filled anew.
func (c *Controller) OnReset() { c.enqueueAll() }

// OnProven is called when a suspicion about an object has been decided.
func (c *Controller) OnProven(key types.NamespacedName) { c.enqueue(changePriority, key) }

// OnEvent is called for each change in the mailbox.
func (c *Controller) OnEvent(event mailboxes.Event) {
	switch {
	case event.Initial:
		c.enqueue(replayPriority, event.Key)
	case event.Old == nil:
		c.enqueue(createPriority, event.Key)
	default:
		c.enqueue(changePriority, event.Key)
	}
}

// targetHandler passes on each change on the target.
func (c *Controller) targetHandler() cache.ResourceEventHandler {
	keyOf := func(object *unstructured.Unstructured) types.NamespacedName {
		return types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { c.enqueue(changePriority, keyOf(obj.(*unstructured.Unstructured))) },
		UpdateFunc: func(oldObj, obj any) {
			old, object := oldObj.(*unstructured.Unstructured), obj.(*unstructured.Unstructured)
			if old.GetResourceVersion() != object.GetResourceVersion() {
				c.enqueue(changePriority, keyOf(object))
			}
		},
		DeleteFunc: func(obj any) {
			if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = tombstone.Obj
			}
			object := obj.(*unstructured.Unstructured)
			key := keyOf(object)
			c.memory.targetGone(key, object.GetUID())
			c.enqueue(changePriority, key)
			c.Changed()
		},
	}
}

// SetMatcher makes the controller select by another matcher, and looks again at those objects whose answer changed.
func (c *Controller) SetMatcher(matcher *selection.Matcher) {
	old := c.matcher.Swap(matcher)
	sources, _ := c.Mailboxes.List(c.Resource.GroupVersionResource, c.Mailbox)
	for _, source := range sources {
		object := c.describe(source)
		before, was := old.Match(object)
		after, is := matcher.Match(object)
		if was != is || !before.Equal(after) {
			c.enqueue(changePriority, types.NamespacedName{Namespace: object.Namespace, Name: object.Name})
		}
	}
}

// enqueueAll puts all objects of the mailbox that are selected, and all of ours on the target, into the queue.
func (c *Controller) enqueueAll() {
	matcher := c.matcher.Load()
	keys := map[types.NamespacedName]struct{}{}
	sources, _ := c.Mailboxes.List(c.Resource.GroupVersionResource, c.Mailbox)
	for _, source := range sources {
		if _, ok := matcher.Match(c.describe(source)); ok {
			keys[types.NamespacedName{Namespace: source.GetNamespace(), Name: source.GetName()}] = struct{}{}
		}
	}
	for _, object := range c.cache.List() {
		keys[types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}] = struct{}{}
	}
	all := make([]types.NamespacedName, 0, len(keys))
	for key := range keys {
		all = append(all, key)
	}
	c.enqueue(replayPriority, all...)
}

func (c *Controller) enqueue(priority int, keys ...types.NamespacedName) {
	c.lock.Lock()
	queue := c.queue
	c.lock.Unlock()
	if queue != nil {
		queue.AddWithOpts(priorityqueue.AddOpts{Priority: &priority}, keys...)
	}
}

// describe is what selection needs to know of a mailbox object.
func (c *Controller) describe(source *unstructured.Unstructured) selection.Object {
	object := selection.Object{
		Resource:    c.Resource.GroupVersionResource,
		Kind:        c.Resource.Kind,
		Namespace:   source.GetNamespace(),
		Name:        source.GetName(),
		Labels:      source.GetLabels(),
		Annotations: source.GetAnnotations(),
	}
	if c.Resource.Group == "" && c.Resource.Resource == "secrets" {
		object.SecretType, _, _ = unstructured.NestedString(source.Object, "type")
	}
	return object
}
