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
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"

	"github.com/synchub-dev/synchub/controllers/internal/alarm"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/ownership"
	"github.com/synchub-dev/synchub/provider/targets"
)

const (
	// maxConcurrentReconciles is how many definitions of one target are looked at together.
	maxConcurrentReconciles = 4
	// What failed is tried again after firstRetry, then each time twice as late, up to lastRetry.
	minRetryDelay = 100 * time.Millisecond
	maxRetryDelay = 5 * time.Minute
	// debounceDelay is how long a definition that changes is left alone before it is looked at: API servers change one several
	// times before they serve it.
	debounceDelay = 100 * time.Millisecond
)

// Options are what a keeper needs.
type Options struct {
	Connection *targets.Connection
	Owner      ownership.Owner
	// OnChange is called when a state changed, other than by [Keeper.SetInstallations]. It must return at once.
	OnChange func()
	Clock    clock.Clock
	Log      logr.Logger
}

// Controller keeps all definitions in sync that one target must have. It looks at one once when it is wanted, and then when the
// target says that it changed; what failed is tried again with growing waits. While the target is away it does nothing.
// Create it with [New] and run it with [Keeper.Run].
type Controller struct {
	Options
	installer *Installer
	limiter   workqueue.TypedRateLimiter[schema.GroupResource]
	alarm     *alarm.Alarm

	lock    sync.Mutex
	entries map[schema.GroupResource]*entry
	// activeReconciles is how many are being looked at now.
	activeReconciles int
}

// entry is a definition that is, or was, wanted.
type entry struct {
	// desired is nil if it is not any more.
	desired *Installation
	state   State
	// due is when to look at it; zero for never, unless something happens.
	due time.Time
	// failing is true if the last look ended with an error, looking while one is under way.
	failing, reconciling bool
}

// New returns a keeper for which the target need not have anything yet.
func New(options Options) *Controller {
	return &Controller{
		Options:   options,
		installer: NewInstaller(options.Connection, options.Owner, options.Clock),
		limiter:   workqueue.NewTypedItemExponentialFailureRateLimiter[schema.GroupResource](minRetryDelay, maxRetryDelay),
		alarm:     alarm.New(options.Clock),
		entries:   map[schema.GroupResource]*entry{},
	}
}

// SetInstallations makes exactly these the definitions that the target must have; of two for one resource the first counts. What is not
// wanted any more stays on the target. It may be called at any time, and costs nothing for what is as it was.
func (k *Controller) SetInstallations(all []Installation) {
	k.lock.Lock()
	defer k.lock.Unlock()
	desired := map[schema.GroupResource]*Installation{}
	for _, one := range all {
		if _, ok := desired[one.resource()]; !ok {
			desired[one.resource()] = &one
		}
	}
	for resource, entry := range k.entries {
		if desired[resource] == nil && entry.desired != nil {
			entry.desired = nil
			k.stopManaging(resource, entry)
		}
	}
	for resource, one := range desired {
		k.addInstallation(resource, one)
	}
	k.alarm.Ring()
}

// addInstallation makes one definition wanted. The caller holds the lock.
func (k *Controller) addInstallation(resource schema.GroupResource, desired *Installation) {
	found, ok := k.entries[resource]
	switch {
	case !ok:
		found = &entry{state: pendingState()}
		k.entries[resource] = found
	case found.desired == nil:
		found.state = pendingState()
	case found.desired.equal(*desired):
		return
	}
	found.desired, found.due = desired, k.Clock.Now()
	k.limiter.Forget(resource)
}

// stopManaging leaves a definition on the target that nobody wants any more. The caller holds the lock.
func (k *Controller) stopManaging(resource schema.GroupResource, entry *entry) {
	entry.due, entry.failing = time.Time{}, false
	k.limiter.Forget(resource)
	switch {
	case entry.reconciling:
		// What becomes of it is seen when that has ended.
	case entry.state.Installed:
		k.installer.forget(resource)
		entry.state = State{
			Reason: ReasonKept, Installed: true,
			Message: "The definition that the hub installed is no longer wanted. It is left on the target, since all objects would go with it.",
		}
	default:
		k.installer.forget(resource)
		delete(k.entries, resource)
	}
}

func pendingState() State {
	return State{Reason: ReasonPending, Message: "The target was not looked at yet."}
}

// States returns what is known of each definition that is wanted, and of those that were and that the hub has left.
func (k *Controller) States() map[schema.GroupResource]State {
	k.lock.Lock()
	defer k.lock.Unlock()
	states := map[schema.GroupResource]State{}
	for resource, entry := range k.entries {
		states[resource] = entry.state
	}
	return states
}
