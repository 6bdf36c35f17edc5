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
	"math/rand/v2"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/internal/alarm"
	"github.com/synchub-dev/synchub/provider/metrics/requestmetrics"
	"github.com/synchub-dev/synchub/provider/targets"
)

const (
	// debounceDelay is the delay from an event of a CRD to the comparison.
	debounceDelay = 200 * time.Millisecond
	// checkTimeout bounds all requests for one resource.
	checkTimeout = 30 * time.Second
	// A comparison that failed for lack of an answer is retried after minRetryDelay. The delay doubles each time, up to
	// maxRetryDelay.
	minRetryDelay = time.Second
	maxRetryDelay = 5 * time.Minute
	// The comparisons for a target may take workBurst of processor time, which suffices for hundreds, and then one workDivisor-th
	// of the time. So a target whose CRDs change all the time takes a twentieth of one processor.
	workBurst   = 10 * time.Second
	workDivisor = 20
	// resyncInterval is how often all resources are compared without an event, jittered by resyncJitter. Built-in kinds change
	// only with an upgrade, and no event tells of that or of changed permissions.
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

// Controller determines which resources fit into one target. Create it with [New] and run it with [Controller.Run].
type Controller struct {
	Options
	limiter workqueue.TypedRateLimiter[schema.GroupResource]
	alarm   *alarm.Alarm
	budget  workBudget

	lock    sync.Mutex
	entries map[schema.GroupResource]*entry
}

// entry is the state of a resource that is compared. Its key is the mailbox resource.
type entry struct {
	resource Resource
	state    State
	// due is when to compare the resource.
	due time.Time
	// unblocked is closed once no reason is known to hold back objects, or none can be determined.
	unblocked   chan struct{}
	isUnblocked bool
}

// New returns a controller without any resource to compare.
func New(options Options) *Controller {
	return &Controller{
		Options: options,
		limiter: workqueue.NewTypedItemExponentialFailureRateLimiter[schema.GroupResource](minRetryDelay, maxRetryDelay),
		alarm:   alarm.New(options.Clock),
		entries: map[schema.GroupResource]*entry{},
	}
}

// SetResources replaces the set of resources to compare. It does no work for unchanged resources. The known state of a resource stays
// valid until the resource has been compared again.
func (k *Controller) SetResources(desired map[schema.GroupResource]Resource) {
	k.lock.Lock()
	defer k.lock.Unlock()
	for resource := range k.entries {
		if _, ok := desired[resource]; !ok {
			delete(k.entries, resource)
			k.limiter.Forget(resource)
		}
	}
	for resource, one := range desired {
		found, ok := k.entries[resource]
		switch {
		// Each version has its own schema.
		case !ok, found.resource.Target != one.Target:
			pending := State{SyncedResourceState: edgev2alpha1.SyncedResourcePending, Reason: ReasonPending, Message: "The target was not looked at yet."}
			k.entries[resource] = &entry{resource: one, state: pending, due: one.TrustedUntil, unblocked: make(chan struct{})}
		case !found.resource.isSameCheck(one):
			found.resource, found.due = one, k.Clock.Now()
			k.limiter.Forget(resource)
		}
	}
	k.alarm.Ring()
}

// State returns the known state of a resource. ok is false if the resource has not been compared yet.
func (k *Controller) State(resource schema.GroupResource) (state State, ok bool) {
	k.lock.Lock()
	defer k.lock.Unlock()
	found, ok := k.entries[resource]
	if !ok || found.state.Reason == ReasonPending {
		return State{}, false
	}
	return found.state, true
}

// Unblocked returns a channel that closes once the resource was compared and its objects may be written. It also closes once the
// target failed to answer, because an unreadable schema must not block objects. It returns nil if the resource is not compared.
func (k *Controller) Unblocked(resource schema.GroupResource) <-chan struct{} {
	k.lock.Lock()
	defer k.lock.Unlock()
	if found, ok := k.entries[resource]; ok {
		return found.unblocked
	}
	return nil
}

// Run compares resources until ctx ends.
func (k *Controller) Run(ctx context.Context) {
	defer k.Connection.Subscribe(targets.Listener{OnCRD: k.onCRDChanged, OnSynced: k.recheckAll})()
	for k.waitUntilUp(ctx) {
		due, wait := k.nextDue()
		if len(due) > 0 {
			session := k.Checker.NewSession(k.Connection.Discovery())
			for resource, desired := range due {
				k.check(ctx, session, resource, desired)
			}
			k.pause(ctx, k.budget.spend(session.WorkDuration(), k.Clock.Now()))
			continue
		}
		k.alarm.Sleep(ctx, wait)
	}
}

// pause waits for the given time or until ctx ends. Unlike alarm.Sleep, no event ends it.
func (k *Controller) pause(ctx context.Context, pause time.Duration) {
	if pause <= 0 {
		return
	}
	select {
	case <-ctx.Done():
	case <-k.Clock.After(pause):
	}
}

// workBudget limits the processor time for comparisons.
type workBudget struct {
	used time.Duration
	at   time.Time
}

// spend adds used processor time, and returns how long to pause before more may be used.
func (a *workBudget) spend(used time.Duration, now time.Time) (pause time.Duration) {
	a.used = max(0, a.used-now.Sub(a.at)/workDivisor) + used
	a.at = now
	return max(0, a.used-workBurst) * workDivisor
}

// waitUntilUp blocks until the target is up, and returns false if ctx ended before. After a wait it makes the resources due
// again, because the target may serve other schemas now.
func (k *Controller) waitUntilUp(ctx context.Context) bool {
	if k.Connection.IsUp() {
		return ctx.Err() == nil
	}
	if k.Connection.WaitUntilUp(ctx) != nil {
		return false
	}
	k.recheckAll()
	return true
}

// nextDue returns the resources to compare now, or else the delay until the next one is due; zero if none is without an event.
func (k *Controller) nextDue() (due map[schema.GroupResource]Resource, wait time.Duration) {
	k.lock.Lock()
	defer k.lock.Unlock()
	now := k.Clock.Now()
	due = map[schema.GroupResource]Resource{}
	for resource, entry := range k.entries {
		if until := entry.due.Sub(now); until <= 0 {
			due[resource] = entry.resource
		} else if wait == 0 || until < wait {
			wait = until
		}
	}
	return due, wait
}

func (k *Controller) check(ctx context.Context, session *Session, resource schema.GroupResource, desired Resource) {
	k.scheduleResync(resource)
	checking, cancel := context.WithTimeout(requestmetrics.WithClass(ctx, requestmetrics.Background), checkTimeout)
	defer cancel()
	state, err := session.Check(checking, desired)
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		k.Connection.ProbeNow()
	} else {
		state.Schema = desired.Schema.ID()
	}
	if k.setResult(resource, desired, state, err) {
		k.Log.Info("whether objects fit into the target changed", "resource", resource.String(), "state", string(state.SyncedResourceState), "reason", state.Reason, "message", state.Message)
		k.OnChange()
	}
}

// scheduleResync schedules the next periodic comparison, before this one starts: an event during this one makes it due earlier.
func (k *Controller) scheduleResync(resource schema.GroupResource) {
	k.lock.Lock()
	defer k.lock.Unlock()
	if found, ok := k.entries[resource]; ok {
		jitter := 1 + resyncJitter*(2*rand.Float64()-1) //nolint:gosec // jitter needs no secrecy
		found.due = k.Clock.Now().Add(time.Duration(jitter * float64(resyncInterval)))
	}
}

// setResult stores the result of a comparison, and reports whether it changed the state. After an error the known state stays.
func (k *Controller) setResult(resource schema.GroupResource, desired Resource, state State, err error) (changed bool) {
	k.lock.Lock()
	defer k.lock.Unlock()
	found, ok := k.entries[resource]
	if !ok || !found.resource.isSameCheck(desired) {
		return false
	}
	if err != nil {
		found.dueBy(k.Clock.Now().Add(k.limiter.When(resource)))
		if found.state.Reason != ReasonPending && found.state.Reason != ReasonNotAnswered {
			return false
		}
	} else {
		k.limiter.Forget(resource)
	}
	changed = found.state != state
	found.state = state
	if !state.IsSchemaIncompatible() && !found.isUnblocked {
		found.isUnblocked = true
		close(found.unblocked)
	}
	return changed
}

// dueBy makes the entry due at the given time, unless it is due earlier.
func (e *entry) dueBy(due time.Time) {
	if due.Before(e.due) {
		e.due = due
	}
}

// onCRDChanged is called when the CRD of a target resource was created, changed or deleted.
func (k *Controller) onCRDChanged(defined schema.GroupResource) {
	k.recheck(func(entry *entry) bool { return entry.resource.Target.GroupResource() == defined })
}

// recheckAll is called when the watch of CRDs has started, and when the target is up again. A trusted resource that was not
// compared yet waits for its time.
func (k *Controller) recheckAll() {
	k.recheck(func(entry *entry) bool {
		return entry.state.Reason != ReasonPending || entry.resource.TrustedUntil.IsZero()
	})
}

func (k *Controller) recheck(concerned func(*entry) bool) {
	k.lock.Lock()
	defer k.lock.Unlock()
	for _, entry := range k.entries {
		if concerned(entry) {
			entry.dueBy(k.Clock.Now().Add(debounceDelay))
		}
	}
	k.alarm.Ring()
}
