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

package compatibility

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
	"github.com/synchub-dev/synchub/controllers/alarm"
	"github.com/synchub-dev/synchub/provider/requests"
	"github.com/synchub-dev/synchub/provider/targets"
)

const (
	// settling is how long a definition that changes is left alone before it is looked at.
	settling = 200 * time.Millisecond
	// checkTimeout bounds all requests for one resource.
	checkTimeout = 30 * time.Second
	// What could not be asked is asked again after firstRetry, then each time twice as late, up to lastRetry.
	firstRetry = time.Second
	lastRetry  = 5 * time.Minute
	// A target may have schemas compared for workAtOnce, which is enough for hundreds, and then for one workShare of the time:
	// one whose definitions change all the time takes a twentieth of one processor.
	workAtOnce = 10 * time.Second
	workShare  = 20
	// lookInterval is how often all is compared when nothing tells of a change, give or take lookJitter of it: built-in kinds
	// change with an upgrade, and of what is granted nobody tells.
	lookInterval = 10 * time.Minute
	lookJitter   = 0.2
)

// Options are what a keeper needs.
type Options struct {
	Connection *targets.Connection
	Checker    *Checker
	// Changed is called when a state changed. It must return at once.
	Changed func()
	Clock   clock.Clock
	Log     logr.Logger
}

// Keeper knows which resources fit into one target. Create it with [New] and run it with [Keeper.Run].
type Keeper struct {
	Options
	limiter workqueue.TypedRateLimiter[schema.GroupResource]
	alarm   *alarm.Alarm
	work    allowance

	lock    sync.Mutex
	entries map[schema.GroupResource]*entry
}

// entry is a resource that is compared. It is named as in mailboxes.
type entry struct {
	wanted Wanted
	state  State
	// due is when to compare it.
	due time.Time
	// fits is closed once there is no reason, or no way to find one, to hold back objects.
	fits chan struct{}
	open bool
}

// New returns a keeper for which nothing is wanted yet.
func New(options Options) *Keeper {
	return &Keeper{
		Options: options,
		limiter: workqueue.NewTypedItemExponentialFailureRateLimiter[schema.GroupResource](firstRetry, lastRetry),
		alarm:   alarm.New(options.Clock),
		entries: map[schema.GroupResource]*entry{},
	}
}

// Set makes exactly these the resources that are compared. It costs nothing for what is as it was. What was known of a
// resource holds until it has been compared anew.
func (k *Keeper) Set(wanted map[schema.GroupResource]Wanted) {
	k.lock.Lock()
	defer k.lock.Unlock()
	for resource := range k.entries {
		if _, ok := wanted[resource]; !ok {
			delete(k.entries, resource)
			k.limiter.Forget(resource)
		}
	}
	for resource, one := range wanted {
		found, ok := k.entries[resource]
		switch {
		// Each version has a schema of its own.
		case !ok, found.wanted.Target != one.Target:
			pending := State{SyncedResourceState: edgev2alpha1.SyncedResourcePending, Reason: ReasonPending, Message: "The target was not looked at yet."}
			k.entries[resource] = &entry{wanted: one, state: pending, due: one.Trusted, fits: make(chan struct{})}
		case !found.wanted.same(one):
			found.wanted, found.due = one, k.Clock.Now()
			k.limiter.Forget(resource)
		}
	}
	k.alarm.Ring()
}

// State returns what is known of a resource; ok is false if it was not compared yet.
func (k *Keeper) State(resource schema.GroupResource) (state State, ok bool) {
	k.lock.Lock()
	defer k.lock.Unlock()
	found, ok := k.entries[resource]
	if !ok || found.state.Reason == ReasonPending {
		return State{}, false
	}
	return found.state, true
}

// Fits is closed once the resource was compared and nothing speaks against writing its objects, or once the target failed to
// answer: a schema that cannot be read holds up nothing. It is nil if the resource is not compared.
func (k *Keeper) Fits(resource schema.GroupResource) <-chan struct{} {
	k.lock.Lock()
	defer k.lock.Unlock()
	if found, ok := k.entries[resource]; ok {
		return found.fits
	}
	return nil
}

// Run compares until ctx ends.
func (k *Keeper) Run(ctx context.Context) {
	defer k.Connection.Subscribe(targets.Listener{CRD: k.changed, Synced: k.lookAtAll})()
	for k.waitUp(ctx) {
		due, wait := k.next()
		if len(due) > 0 {
			look := k.Checker.Look(k.Connection.Discovery())
			for resource, wanted := range due {
				k.check(ctx, look, resource, wanted)
			}
			k.rest(ctx, k.work.take(look.Worked(), k.Clock.Now()))
			continue
		}
		k.alarm.Sleep(ctx, wait)
	}
}

// rest waits, whatever happens.
func (k *Keeper) rest(ctx context.Context, pause time.Duration) {
	if pause <= 0 {
		return
	}
	select {
	case <-ctx.Done():
	case <-k.Clock.After(pause):
	}
}

// allowance is how much of a processor was used lately.
type allowance struct {
	used time.Duration
	at   time.Time
}

// take notes what was used up to now, and returns for how long nothing more may be.
func (a *allowance) take(used time.Duration, now time.Time) (pause time.Duration) {
	a.used = max(0, a.used-now.Sub(a.at)/workShare) + used
	a.at = now
	return max(0, a.used-workAtOnce) * workShare
}

// waitUp returns when the target is up; false if ctx ended before. What comes back may serve something else.
func (k *Keeper) waitUp(ctx context.Context) bool {
	if k.Connection.Up() {
		return ctx.Err() == nil
	}
	if k.Connection.WaitUp(ctx) != nil {
		return false
	}
	k.lookAtAll()
	return true
}

// next returns what to compare now, or for how long there is nothing to do; zero for until something happens.
func (k *Keeper) next() (due map[schema.GroupResource]Wanted, wait time.Duration) {
	k.lock.Lock()
	defer k.lock.Unlock()
	now := k.Clock.Now()
	due = map[schema.GroupResource]Wanted{}
	for resource, entry := range k.entries {
		if until := entry.due.Sub(now); until <= 0 {
			due[resource] = entry.wanted
		} else if wait == 0 || until < wait {
			wait = until
		}
	}
	return due, wait
}

func (k *Keeper) check(ctx context.Context, look *Look, resource schema.GroupResource, wanted Wanted) {
	k.begin(resource)
	checking, cancel := context.WithTimeout(requests.As(ctx, requests.Background), checkTimeout)
	defer cancel()
	state, err := look.Check(checking, wanted)
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		k.Connection.Doubt()
	} else {
		state.Schema = wanted.Schema.ID()
	}
	if k.take(resource, wanted, state, err) {
		k.Log.Info("whether objects fit into the target changed", "resource", resource.String(), "state", string(state.SyncedResourceState), "reason", state.Reason, "message", state.Message)
		k.Changed()
	}
}

// begin puts off the next comparison; what happens during this one brings it forward again.
func (k *Keeper) begin(resource schema.GroupResource) {
	k.lock.Lock()
	defer k.lock.Unlock()
	if found, ok := k.entries[resource]; ok {
		jitter := 1 + lookJitter*(2*rand.Float64()-1) //nolint:gosec // jitter needs no secrecy
		found.due = k.Clock.Now().Add(time.Duration(jitter * float64(lookInterval)))
	}
}

// take takes over what was found, and tells whether that changed anything. What could not be found out leaves what was known.
func (k *Keeper) take(resource schema.GroupResource, wanted Wanted, state State, err error) (changed bool) {
	k.lock.Lock()
	defer k.lock.Unlock()
	found, ok := k.entries[resource]
	if !ok || !found.wanted.same(wanted) {
		return false
	}
	if err != nil {
		found.bring(k.Clock.Now().Add(k.limiter.When(resource)))
		if found.state.Reason != ReasonPending && found.state.Reason != ReasonNotAnswered {
			return false
		}
	} else {
		k.limiter.Forget(resource)
	}
	changed = found.state != state
	found.state = state
	if !state.Refuses() && !found.open {
		found.open = true
		close(found.fits)
	}
	return changed
}

// bring makes the entry due at a time, unless it is earlier.
func (e *entry) bring(due time.Time) {
	if due.Before(e.due) {
		e.due = due
	}
}

// changed is called when the definition of a resource of the target came, changed or went.
func (k *Keeper) changed(defined schema.GroupResource) {
	k.again(func(entry *entry) bool { return entry.wanted.Target.GroupResource() == defined })
}

// lookAtAll is called when changes begin to be told, and when the target is back. What is trusted and
// was not compared yet waits for its time.
func (k *Keeper) lookAtAll() {
	k.again(func(entry *entry) bool { return entry.state.Reason != ReasonPending || entry.wanted.Trusted.IsZero() })
}

func (k *Keeper) again(concerned func(*entry) bool) {
	k.lock.Lock()
	defer k.lock.Unlock()
	for _, entry := range k.entries {
		if concerned(entry) {
			entry.bring(k.Clock.Now().Add(settling))
		}
	}
	k.alarm.Ring()
}
