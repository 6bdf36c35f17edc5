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

package crd

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/synchub-dev/synchub/controllers/internal/queue"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/provider/targets"
)

const (
	// maxConcurrentReconciles is how many CRDs of one target are reconciled concurrently.
	maxConcurrentReconciles = 4
	// A failed reconcile is retried after minRetryDelay. The delay doubles each time, up to maxRetryDelay.
	minRetryDelay = 100 * time.Millisecond
	maxRetryDelay = 5 * time.Minute
	// debounceDelay is the delay from an event of a CRD to its reconcile: API servers change a CRD several times before they
	// serve it.
	debounceDelay = 100 * time.Millisecond
	// idleTimeout is how long the queue must have been empty before the workers stop.
	idleTimeout = time.Second
)

// Options are the dependencies of a [Controller].
type Options struct {
	Connection *targets.Connection
	Owner      ownership.Owner
	// OnChange is called when a reconcile changed the state of the CRD of a resource. It must not block.
	OnChange func(resource schema.GroupResource)
	Clock    clock.Clock
	Log      logr.Logger
}

// Controller keeps all CRDs in sync that one target must have. It reconciles a CRD when it is first desired and
// when the target reports a change of it, and retries failures with backoff. While the target is down it sends
// no requests. Create it with [New] and run it with [Controller.Run].
type Controller struct {
	Options
	installer *Installer
	queue     *queue.Queue[schema.GroupResource]

	lock    sync.Mutex
	entries map[schema.GroupResource]*entry
}

// entry is the state of a CRD that is, or was, desired.
type entry struct {
	// desired is nil if the CRD is no longer desired.
	desired *Installation
	state   State
	// unsynced is true from the start of a reconcile until one has succeeded.
	unsynced bool
}

// New returns a controller without any desired CRD.
func New(options Options) *Controller {
	c := &Controller{
		Options:   options,
		installer: NewInstaller(options.Connection, options.Owner, options.Clock),
		entries:   map[schema.GroupResource]*entry{},
	}
	c.queue = queue.New(queue.Options[schema.GroupResource]{
		Name:                    "crd",
		Reconciler:              c,
		MaxConcurrentReconciles: maxConcurrentReconciles,
		MinRetryDelay:           minRetryDelay,
		MaxRetryDelay:           maxRetryDelay,
		IdleTimeout:             idleTimeout,
		Log: func(resource schema.GroupResource) logr.Logger {
			return c.Log.WithValues("definition", resource.String())
		},
		Clock: options.Clock,
	})
	return c
}

// Run keeps the CRDs in sync until ctx ends. It returns after the last write has ended.
func (c *Controller) Run(ctx context.Context) error {
	defer c.Connection.Watches.Subscribe(targets.Listener{OnCRD: c.onCRDChanged, OnSynced: c.recheckAll, OnUp: c.retryUnsynced})()
	return c.queue.Run(ctx)
}

// SetInstallations replaces the set of CRDs that the target must have. If two are for the same resource, the
// first counts. CRDs that are no longer desired stay on the target. It may be called at any time, and does no
// work for unchanged installations.
func (c *Controller) SetInstallations(all []Installation) {
	c.lock.Lock()
	defer c.lock.Unlock()
	desired := map[schema.GroupResource]*Installation{}
	for _, one := range all {
		if _, ok := desired[one.Resource()]; !ok {
			desired[one.Resource()] = &one
		}
	}
	for resource, entry := range c.entries {
		if desired[resource] == nil && entry.desired != nil {
			entry.desired = nil
			c.queue.Add(resource)
		}
	}
	for resource, installation := range desired {
		c.addInstallation(resource, installation)
	}
}

// addInstallation makes one CRD desired. The caller holds the lock.
func (c *Controller) addInstallation(resource schema.GroupResource, desired *Installation) {
	found, ok := c.entries[resource]
	switch {
	case !ok || found.desired == nil:
		found = &entry{state: State{Reason: ReasonPending, Message: "The hub has not checked the target yet."}}
		c.entries[resource] = found
	case found.desired.equal(*desired):
		return
	}
	found.desired = desired
	c.queue.Forget(resource)
	c.queue.Add(resource)
}

// States returns the states of the desired CRDs, and of the CRDs that the hub installed and no longer manages.
func (c *Controller) States() map[schema.GroupResource]State {
	c.lock.Lock()
	defer c.lock.Unlock()
	states := map[schema.GroupResource]State{}
	for resource, entry := range c.entries {
		states[resource] = entry.state
	}
	return states
}

// State returns the state of a desired CRD; ok is false if the CRD is not desired.
func (c *Controller) State(resource schema.GroupResource) (state State, ok bool) {
	c.lock.Lock()
	defer c.lock.Unlock()
	entry, ok := c.entries[resource]
	if !ok || entry.desired == nil {
		return State{}, false
	}
	return entry.state, true
}

// Reconcile brings one CRD in sync. While the target is down it does nothing; retryUnsynced enqueues the CRD again.
func (c *Controller) Reconcile(ctx context.Context, resource schema.GroupResource) (reconcile.Result, error) {
	desired := c.startReconcile(resource)
	if desired == nil {
		c.stopManaging(resource)
		return reconcile.Result{}, nil
	}
	if !c.Connection.Health.IsUp() {
		return reconcile.Result{}, nil
	}
	state, err := c.installer.Ensure(ctx, *desired)
	if ctx.Err() != nil {
		return reconcile.Result{}, nil //nolint:nilerr // the controller is being stopped, so the error does not concern the CRD
	}
	if state.Reason == ReasonTargetUnreachable {
		c.Connection.Health.ProbeNow()
	}
	c.finishReconcile(resource, state, err)
	switch {
	case err != nil:
		return reconcile.Result{}, errors.New(c.Connection.RedactError(err))
	case state.Reason == ReasonNotNeeded:
		// No event reports that an API without a CRD appears or disappears. And discovery still shows an API
		// for a moment after its CRD was deleted.
		return reconcile.Result{Requeue: true}, nil //nolint:staticcheck // RequeueAfter would end the backoff
	default:
		return reconcile.Result{RequeueAfter: state.RequeueAfter}, nil
	}
}

// startReconcile returns the desired CRD, nil if it is not desired. It marks the CRD as unsynced before Reconcile reads the health
// of the target, so that retryUnsynced misses no CRD.
func (c *Controller) startReconcile(resource schema.GroupResource) *Installation {
	c.lock.Lock()
	defer c.lock.Unlock()
	found, ok := c.entries[resource]
	if !ok {
		return nil
	}
	found.unsynced = true
	return found.desired
}

// finishReconcile stores the result of a reconcile.
func (c *Controller) finishReconcile(resource schema.GroupResource, state State, err error) {
	state.RequeueAfter = 0
	c.lock.Lock()
	found := c.entries[resource]
	changed := found.state != state
	found.state, found.unsynced = state, err != nil
	c.lock.Unlock()
	if changed {
		c.Log.Info("the state of a definition changed", "definition", resource.String(),
			"reason", state.Reason, "message", state.Message, "ready", state.Ready, "installed", state.Installed)
		c.OnChange(resource)
	}
}

// stopManaging drops a CRD that is no longer desired, or keeps its state if the hub installed it.
func (c *Controller) stopManaging(resource schema.GroupResource) {
	c.lock.Lock()
	found, ok := c.entries[resource]
	if !ok || found.desired != nil {
		c.lock.Unlock()
		return
	}
	c.installer.forget(resource)
	if found.state.Installed {
		found.unsynced, found.state = false, State{
			Reason: ReasonKept, Installed: true,
			Message: "No PublishedResource asks for this definition any more. The hub leaves it on the target, because all its objects would be deleted with it.",
		}
	} else {
		delete(c.entries, resource)
	}
	c.lock.Unlock()
	c.OnChange(resource)
}

// onCRDChanged is called when the CRD of a resource was created, changed or deleted.
func (c *Controller) onCRDChanged(resource schema.GroupResource) {
	c.lock.Lock()
	defer c.lock.Unlock()
	if entry, ok := c.entries[resource]; ok && entry.desired != nil {
		c.queue.AddAfter(debounceDelay, resource)
	}
}

// recheckAll is called when the watch of CRDs has started. The watch does not report changes between the last read and its start.
func (c *Controller) recheckAll() {
	c.lock.Lock()
	defer c.lock.Unlock()
	for resource, entry := range c.entries {
		if entry.desired != nil {
			c.queue.AddAfter(debounceDelay, resource)
		}
	}
}

// retryUnsynced is called when the target is connected again.
func (c *Controller) retryUnsynced() {
	c.lock.Lock()
	defer c.lock.Unlock()
	for resource, entry := range c.entries {
		if entry.unsynced {
			c.queue.Forget(resource)
			c.queue.Add(resource)
		}
	}
}
