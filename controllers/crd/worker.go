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
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/synchub-dev/synchub/provider/targets"
)

// Run keeps the CRDs in sync until ctx ends. It returns after the last write has ended.
func (k *Controller) Run(ctx context.Context) {
	var workers sync.WaitGroup
	defer workers.Wait()
	defer k.Connection.Subscribe(targets.Listener{OnCRD: k.onCRDChanged, OnSynced: k.recheckAll})()
	for k.waitUntilUp(ctx) {
		due, wait := k.nextDue()
		for resource, desired := range due {
			workers.Go(func() { k.reconcile(ctx, resource, desired) })
		}
		k.alarm.Sleep(ctx, wait)
	}
}

// waitUntilUp blocks until the target is up, and returns false if ctx ended before. After a wait it makes failed CRDs due at once.
func (k *Controller) waitUntilUp(ctx context.Context) bool {
	if k.Connection.IsUp() {
		return ctx.Err() == nil
	}
	if k.Connection.WaitUntilUp(ctx) != nil {
		return false
	}
	k.lock.Lock()
	defer k.lock.Unlock()
	for resource, entry := range k.entries {
		if entry.failing {
			k.limiter.Forget(resource)
			entry.dueBy(k.Clock.Now())
		}
	}
	return true
}

// nextDue returns the CRDs to reconcile now, and the delay until the next one is due; zero if none is without an event.
func (k *Controller) nextDue() (due map[schema.GroupResource]*Installation, wait time.Duration) {
	k.lock.Lock()
	defer k.lock.Unlock()
	now := k.Clock.Now()
	due = map[schema.GroupResource]*Installation{}
	for resource, entry := range k.entries {
		switch {
		case entry.desired == nil || entry.reconciling || entry.due.IsZero():
		case entry.due.After(now):
			if until := entry.due.Sub(now); wait == 0 || until < wait {
				wait = until
			}
		case k.activeReconciles < maxConcurrentReconciles:
			k.activeReconciles++
			entry.reconciling, entry.due = true, time.Time{}
			due[resource] = entry.desired
		}
	}
	return due, wait
}

// reconcile brings one CRD in sync.
func (k *Controller) reconcile(ctx context.Context, resource schema.GroupResource, desired *Installation) {
	state, err := k.installer.Ensure(ctx, *desired)
	if ctx.Err() != nil {
		// The controller is being stopped, so the error says nothing about the CRD.
		state, err = k.States()[resource], nil
	}
	if state.Reason == ReasonTargetUnreachable {
		k.Connection.ProbeNow()
	}
	changed := k.recordResult(resource, state, err)
	k.alarm.Ring()
	if changed && ctx.Err() == nil {
		k.Log.Info("the state of a definition changed", "definition", resource.String(),
			"reason", state.Reason, "message", state.Message, "ready", state.Ready, "installed", state.Installed)
		k.OnChange()
	}
}

// recordResult stores the result of a reconcile, and reports whether it changed anything. If the installation changed meanwhile,
// the next reconcile is due already.
func (k *Controller) recordResult(resource schema.GroupResource, state State, err error) (changed bool) {
	k.lock.Lock()
	defer k.lock.Unlock()
	k.activeReconciles--
	entry := k.entries[resource]
	before := entry.state
	entry.reconciling = false
	if entry.desired == nil {
		entry.state.Installed = state.Installed
		k.stopManaging(resource, entry)
		return true
	}
	entry.state, entry.failing = state, err != nil
	now := k.Clock.Now()
	switch {
	case err != nil, state.Reason == ReasonNotNeeded:
		// No event tells when an API without a CRD comes or goes. And discovery still shows an API for a moment after its CRD was
		// deleted.
		entry.dueBy(now.Add(k.limiter.When(resource)))
	default:
		k.limiter.Forget(resource)
		if state.RequeueAfter > 0 {
			entry.dueBy(now.Add(state.RequeueAfter))
		}
	}
	before.RequeueAfter, state.RequeueAfter = 0, 0
	return before != state
}

// dueBy makes the entry due at the given time, unless it is due earlier.
func (e *entry) dueBy(due time.Time) {
	if e.due.IsZero() || due.Before(e.due) {
		e.due = due
	}
}

// onCRDChanged is called when the CRD of a resource was created, changed or deleted.
func (k *Controller) onCRDChanged(resource schema.GroupResource) {
	k.lock.Lock()
	defer k.lock.Unlock()
	if entry, ok := k.entries[resource]; ok && entry.desired != nil {
		entry.dueBy(k.Clock.Now().Add(debounceDelay))
		k.alarm.Ring()
	}
}

// recheckAll is called when the watch of CRDs has started. The watch does not report changes between the last read and its start.
func (k *Controller) recheckAll() {
	k.lock.Lock()
	defer k.lock.Unlock()
	for _, entry := range k.entries {
		if entry.desired != nil {
			entry.dueBy(k.Clock.Now().Add(debounceDelay))
		}
	}
	k.alarm.Ring()
}
