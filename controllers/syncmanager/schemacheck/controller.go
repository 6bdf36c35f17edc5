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

package schemacheck

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/internal/queue"
	"github.com/synchub-dev/synchub/provider/requestclass"
	"github.com/synchub-dev/synchub/provider/targets"
)

const (
	// debounceDelay is the delay from an event of a CRD to the comparison.
	debounceDelay = 200 * time.Millisecond
	// idleTimeout is how long the queue must have been empty before the worker stops.
	idleTimeout = time.Second
	// checkTimeout bounds all requests for one resource.
	checkTimeout = 30 * time.Second
	// A comparison without a response is retried after minRetryDelay. The delay doubles each time, up to
	// maxRetryDelay.
	minRetryDelay = time.Second
	maxRetryDelay = 5 * time.Minute
	// The comparisons for a target may take workBurst of CPU time, which suffices for hundreds, and then one
	// workDivisor-th of the time. So a target whose CRDs change all the time takes a twentieth of one CPU.
	workBurst   = 10 * time.Second
	workDivisor = 20
	// resyncInterval is how often all resources are compared without an event, jittered by resyncJitter.
	// Built-in kinds change only with an upgrade, and no event reports an upgrade or changed permissions.
	resyncInterval = 10 * time.Minute
	resyncJitter   = 0.2
)

// Options are the dependencies of a [Controller].
type Options struct {
	Connection *targets.Connection
	Checker    *Checker
	// OnChange is called when a state changed. It must not block.
	OnChange func()
	Clock    clock.Clock
	Log      logr.Logger
}

// Controller determines which resources fit into one target, one resource at a time. While the target is down it makes no requests.
// Create it with [New] and run it with [Controller.Run].
type Controller struct {
	Options
	queue *queue.Queue[schema.GroupResource]
	// budget is used by the one worker only.
	budget workBudget

	lock    sync.Mutex
	entries map[schema.GroupResource]*entry
	// schemas is shared by all resources that are due at once, so that they do not repeat requests. It is nil while none is.
	schemas *TargetSchemas
	// skipped is true if a reconcile was skipped because the target was down.
	skipped bool
}

// entry is the state of a resource that is compared. Its key is the mailbox resource.
type entry struct {
	resource Resource
	state    State
	// outdated may have read the target's schema before the last change. Other TargetSchemas must be used.
	outdated *TargetSchemas
	// unblocked is closed when objects may be written, or when the target's schema cannot be read.
	unblocked   chan struct{}
	isUnblocked bool
}

// New returns a controller without any resource to compare.
func New(options Options) *Controller {
	c := &Controller{Options: options, entries: map[schema.GroupResource]*entry{}}
	c.queue = c.newQueue(c)
	return c
}

func (c *Controller) newQueue(reconciler reconcile.TypedReconciler[schema.GroupResource]) *queue.Queue[schema.GroupResource] {
	return queue.New(queue.Options[schema.GroupResource]{
		Name:                    "schemacheck",
		Reconciler:              reconciler,
		MaxConcurrentReconciles: 1,
		ReconciliationTimeout:   checkTimeout,
		MinRetryDelay:           minRetryDelay,
		MaxRetryDelay:           maxRetryDelay,
		IdleTimeout:             idleTimeout,
		Log: func(resource schema.GroupResource) logr.Logger {
			return c.Log.WithValues("resource", resource.String())
		},
		Clock: c.Clock,
	})
}

// Run compares resources until ctx ends.
func (c *Controller) Run(ctx context.Context) error {
	defer c.Connection.Watches.Subscribe(targets.Listener{
		OnCRD:    c.onCRDChanged,
		OnSynced: func() { c.recheckAll(debounceDelay) },
		OnAPIs:   c.recheckUnserved,
		OnUp: func() {
			c.resume()
			c.recheckUnserved()
		},
	})()
	return c.queue.Run(ctx)
}

// SetResources replaces the set of resources to compare. It does no work for unchanged resources. The known state of a resource stays
// valid until the resource has been compared again.
func (c *Controller) SetResources(desired map[schema.GroupResource]Resource) {
	c.lock.Lock()
	defer c.lock.Unlock()
	for resource := range c.entries {
		if _, ok := desired[resource]; !ok {
			delete(c.entries, resource)
			c.queue.Forget(resource)
		}
	}
	for resource, one := range desired {
		found, ok := c.entries[resource]
		switch {
		// Each version has its own schema.
		case !ok, found.resource.Target != one.Target:
			pending := State{SyncedResourceState: edgev2alpha1.SyncedResourcePending, Reason: ReasonPending, Message: "The hub has not checked the target yet."}
			found = &entry{resource: one, state: pending, unblocked: make(chan struct{})}
			c.entries[resource] = found
			c.enqueue(resource, max(0, one.TrustedUntil.Sub(c.Clock.Now())))
		case !found.resource.isSameCheck(one):
			found.resource = one
			c.queue.Forget(resource)
			c.enqueue(resource, 0)
		}
	}
}

// enqueue enqueues a resource that changed, or whose schema on the target may have changed. The caller holds the lock.
func (c *Controller) enqueue(resource schema.GroupResource, delay time.Duration) {
	c.entries[resource].outdated = c.schemas
	c.queue.AddAfter(delay, resource)
}

// State returns the known state of a resource. ok is false if the resource has not been compared yet.
func (c *Controller) State(resource schema.GroupResource) (state State, ok bool) {
	c.lock.Lock()
	defer c.lock.Unlock()
	found, ok := c.entries[resource]
	if !ok || found.state.Reason == ReasonPending {
		return State{}, false
	}
	return found.state, true
}

// Unblocked returns a channel that closes once the resource was compared and its objects may be written. It
// also closes once the target failed to respond, because an unreadable schema must not block objects. It
// returns nil if the resource is not compared.
func (c *Controller) Unblocked(resource schema.GroupResource) <-chan struct{} {
	c.lock.Lock()
	defer c.lock.Unlock()
	if found, ok := c.entries[resource]; ok {
		return found.unblocked
	}
	return nil
}

// Reconcile compares one resource. While the target is down it does nothing; resume enqueues the resource again.
func (c *Controller) Reconcile(ctx context.Context, resource schema.GroupResource) (reconcile.Result, error) {
	defer c.dropSchemas()
	desired, outdated, ok := c.take(resource)
	if !ok || c.skipIfDown() {
		return reconcile.Result{}, nil
	}
	if pause := c.budget.spend(0, c.Clock.Now()); pause > 0 {
		return reconcile.Result{RequeueAfter: pause}, nil
	}
	schemas := c.schemasAfter(outdated)
	worked := schemas.WorkDuration()
	state, err := schemas.Check(requestclass.With(ctx, requestclass.Background), desired)
	c.budget.spend(schemas.WorkDuration()-worked, c.Clock.Now())
	if errors.Is(ctx.Err(), context.Canceled) {
		// The controller is being stopped.
		return reconcile.Result{}, nil
	}
	if err != nil {
		c.Connection.Health.ProbeNow()
	} else {
		state.Schema = desired.Schema.ID()
	}
	if c.setResult(resource, desired, state, err) {
		c.Log.Info("whether objects fit into the target changed", "resource", resource.String(), "state", string(state.SyncedResourceState), "reason", state.Reason, "message", state.Message)
		c.OnChange()
	}
	if err != nil {
		return reconcile.Result{}, errors.New(c.Connection.RedactError(err))
	}
	jitter := 1 + resyncJitter*(2*rand.Float64()-1) //nolint:gosec // jitter needs no secrecy
	return reconcile.Result{RequeueAfter: time.Duration(jitter * float64(resyncInterval))}, nil
}

// take returns the resource to compare, and the schemas that must not be used for it. A trusted resource is no
// longer trusted afterwards.
func (c *Controller) take(resource schema.GroupResource) (desired Resource, outdated *TargetSchemas, ok bool) {
	c.lock.Lock()
	defer c.lock.Unlock()
	found, ok := c.entries[resource]
	if !ok {
		return Resource{}, nil, false
	}
	outdated, found.outdated, found.resource.TrustedUntil = found.outdated, nil, time.Time{}
	return found.resource, outdated, true
}

// skipIfDown reports whether the target is down. The lock keeps resume from missing this reconcile.
func (c *Controller) skipIfDown() bool {
	c.lock.Lock()
	defer c.lock.Unlock()
	isDown := !c.Connection.Health.IsUp()
	c.skipped = c.skipped || isDown
	return isDown
}

// resume is called when the target is connected again. If a reconcile was skipped, all resources are compared again:
// the target may serve different schemas now.
func (c *Controller) resume() {
	c.lock.Lock()
	hasSkipped := c.skipped
	c.skipped = false
	c.lock.Unlock()
	if hasSkipped {
		c.recheckAll(0)
	}
}

// schemasAfter returns the schemas in use, or new ones if these are outdated.
func (c *Controller) schemasAfter(outdated *TargetSchemas) *TargetSchemas {
	c.lock.Lock()
	defer c.lock.Unlock()
	if c.schemas == nil || c.schemas == outdated {
		c.schemas = c.Checker.NewTargetSchemas(c.Connection.Discovery)
	}
	return c.schemas
}

// dropSchemas drops the schemas in use unless another resource is due.
func (c *Controller) dropSchemas() {
	c.lock.Lock()
	defer c.lock.Unlock()
	if c.queue.Len() == 0 {
		c.schemas = nil
	}
}

// workBudget limits the processor time for comparisons.
type workBudget struct {
	used time.Duration
	at   time.Time
}

// spend adds used processor time, and returns how long to pause before more may be used.
func (b *workBudget) spend(used time.Duration, now time.Time) (pause time.Duration) {
	b.used = max(0, b.used-now.Sub(b.at)/workDivisor) + used
	b.at = now
	return max(0, b.used-workBurst) * workDivisor
}

// setResult stores the result of a comparison, and reports whether it changed the state. After an error the known state stays.
func (c *Controller) setResult(resource schema.GroupResource, desired Resource, state State, err error) (changed bool) {
	c.lock.Lock()
	defer c.lock.Unlock()
	found, ok := c.entries[resource]
	if !ok || !found.resource.isSameCheck(desired) {
		return false
	}
	if err != nil {
		found.outdated = c.schemas
		if found.state.Reason != ReasonPending && found.state.Reason != ReasonNotAnswered {
			return false
		}
	}
	changed = found.state != state
	found.state = state
	if !state.IsSchemaIncompatible() && !found.isUnblocked {
		found.isUnblocked = true
		close(found.unblocked)
	}
	return changed
}

// onCRDChanged is called when the CRD of a target resource was created, changed or deleted.
func (c *Controller) onCRDChanged(defined schema.GroupResource) {
	c.lock.Lock()
	defer c.lock.Unlock()
	for resource, entry := range c.entries {
		if entry.resource.Target.GroupResource() == defined {
			c.enqueue(resource, debounceDelay)
		}
	}
}

// recheckUnserved enqueues the resources that the target did not serve, or not in the version that the hub uses.
func (c *Controller) recheckUnserved() {
	c.lock.Lock()
	defer c.lock.Unlock()
	for resource, entry := range c.entries {
		if entry.state.Reason == ReasonNotServed || entry.state.Reason == ReasonVersionNotServed {
			c.enqueue(resource, 0)
		}
	}
}

// recheckAll enqueues all resources. A trusted resource that was not compared yet waits for its time.
func (c *Controller) recheckAll(delay time.Duration) {
	c.lock.Lock()
	defer c.lock.Unlock()
	for resource, entry := range c.entries {
		if entry.resource.TrustedUntil.IsZero() {
			c.enqueue(resource, delay)
		}
	}
}
