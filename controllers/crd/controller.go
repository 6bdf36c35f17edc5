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
	// maxConcurrentReconciles is how many CRDs of one target are reconciled concurrently.
	maxConcurrentReconciles = 4
	// A failed reconcile is retried after minRetryDelay. The delay doubles each time, up to maxRetryDelay.
	minRetryDelay = 100 * time.Millisecond
	maxRetryDelay = 5 * time.Minute
	// debounceDelay is the delay from an event of a CRD to its reconcile: API servers change a CRD several times before they
	// serve it.
	debounceDelay = 100 * time.Millisecond
)

// Options are the dependencies of a [Controller].
type Options struct {
	Connection *targets.Connection
	Owner      ownership.Owner
	// OnChange is called when a state changed, except by [Controller.SetInstallations]. It must not block.
	OnChange func()
	Clock    clock.Clock
	Log      logr.Logger
}

// Controller keeps all CRDs in sync that one target must have. It reconciles a CRD when it is first desired and when the target
// reports a change of it, and retries failures with backoff. While the target is down it does nothing. Create it with [New] and
// run it with [Controller.Run].
type Controller struct {
	Options
	installer *Installer
	limiter   workqueue.TypedRateLimiter[schema.GroupResource]
	alarm     *alarm.Alarm

	lock    sync.Mutex
	entries map[schema.GroupResource]*entry
	// activeReconciles is the number of running reconciles.
	activeReconciles int
}

// entry is the state of a CRD that is, or was, desired.
type entry struct {
	// desired is nil if the CRD is no longer desired.
	desired *Installation
	state   State
	// due is when to reconcile the CRD; zero for never without an event.
	due time.Time
	// failing is true if the last reconcile returned an error. reconciling is true while a reconcile is running.
	failing, reconciling bool
}

// New returns a controller without any desired CRD.
func New(options Options) *Controller {
	return &Controller{
		Options:   options,
		installer: NewInstaller(options.Connection, options.Owner, options.Clock),
		limiter:   workqueue.NewTypedItemExponentialFailureRateLimiter[schema.GroupResource](minRetryDelay, maxRetryDelay),
		alarm:     alarm.New(options.Clock),
		entries:   map[schema.GroupResource]*entry{},
	}
}

// SetInstallations replaces the set of CRDs that the target must have. If two are for the same resource, the first counts. CRDs that
// are no longer desired stay on the target. It may be called at any time, and does no work for unchanged installations.
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

// addInstallation makes one CRD desired. The caller holds the lock.
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

// stopManaging leaves a CRD that is no longer desired on the target. The caller holds the lock.
func (k *Controller) stopManaging(resource schema.GroupResource, entry *entry) {
	entry.due, entry.failing = time.Time{}, false
	k.limiter.Forget(resource)
	switch {
	case entry.reconciling:
		// recordResult calls stopManaging again when the reconcile has ended.
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

// States returns the states of the desired CRDs, and of those that the hub installed and no longer manages.
func (k *Controller) States() map[schema.GroupResource]State {
	k.lock.Lock()
	defer k.lock.Unlock()
	states := map[schema.GroupResource]State{}
	for resource, entry := range k.entries {
		states[resource] = entry.state
	}
	return states
}
