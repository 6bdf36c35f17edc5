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

package definition

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/synchub-dev/synchub/provider/targets"
)

// Run keeps definitions in step until ctx ends, and returns when nothing is written any more.
func (k *Keeper) Run(ctx context.Context) {
	var looks sync.WaitGroup
	defer looks.Wait()
	defer k.Connection.Subscribe(targets.Listener{CRD: k.changed, Synced: k.lookAtAll})()
	for k.waitUp(ctx) {
		due, wait := k.next()
		for resource, wanted := range due {
			looks.Go(func() { k.look(ctx, resource, wanted) })
		}
		k.alarm.Sleep(ctx, wait)
	}
}

// waitUp returns when the target is up; false if ctx ended before. What failed before the target went away is tried at once
// when it is back.
func (k *Keeper) waitUp(ctx context.Context) bool {
	if k.Connection.Up() {
		return ctx.Err() == nil
	}
	if k.Connection.WaitUp(ctx) != nil {
		return false
	}
	k.lock.Lock()
	defer k.lock.Unlock()
	for resource, entry := range k.entries {
		if entry.failing {
			k.limiter.Forget(resource)
			entry.bring(k.Clock.Now())
		}
	}
	return true
}

// next returns what to look at now, and for how long there is nothing else to do then; zero for until something happens.
func (k *Keeper) next() (due map[schema.GroupResource]*Wanted, wait time.Duration) {
	k.lock.Lock()
	defer k.lock.Unlock()
	now := k.Clock.Now()
	due = map[schema.GroupResource]*Wanted{}
	for resource, entry := range k.entries {
		switch {
		case entry.wanted == nil || entry.looking || entry.due.IsZero():
		case entry.due.After(now):
			if until := entry.due.Sub(now); wait == 0 || until < wait {
				wait = until
			}
		case k.busy < atOnce:
			k.busy++
			entry.looking, entry.due = true, time.Time{}
			due[resource] = entry.wanted
		}
	}
	return due, wait
}

// look brings one definition in step.
func (k *Keeper) look(ctx context.Context, resource schema.GroupResource, wanted *Wanted) {
	state, err := k.installer.Ensure(ctx, *wanted)
	if ctx.Err() != nil {
		// The keeper is being stopped; the definition has done nothing wrong.
		state, err = k.States()[resource], nil
	}
	if state.Reason == ReasonTargetUnreachable {
		k.Connection.Doubt()
	}
	changed := k.looked(resource, state, err)
	k.alarm.Ring()
	if changed && ctx.Err() == nil {
		k.Log.Info("the state of a definition changed", "definition", resource.String(),
			"reason", state.Reason, "message", state.Message, "ready", state.Ready, "installed", state.Installed)
		k.Changed()
	}
}

// looked takes over what came of a look, and tells whether that changed anything. If something else is wanted meanwhile, the
// next look is due already.
func (k *Keeper) looked(resource schema.GroupResource, state State, err error) (changed bool) {
	k.lock.Lock()
	defer k.lock.Unlock()
	k.busy--
	entry := k.entries[resource]
	before := entry.state
	entry.looking = false
	if entry.wanted == nil {
		entry.state.Installed = state.Installed
		k.leave(resource, entry)
		return true
	}
	entry.state, entry.failing = state, err != nil
	now := k.Clock.Now()
	switch {
	case err != nil, state.Reason == ReasonNotNeeded:
		// APIs that have no definition come and go without a sign; and one that has just lost its definition is still there for
		// a moment.
		entry.bring(now.Add(k.limiter.When(resource)))
	default:
		k.limiter.Forget(resource)
		if state.Again > 0 {
			entry.bring(now.Add(state.Again))
		}
	}
	before.Again, state.Again = 0, 0
	return before != state
}

// bring makes the entry due at a time, unless it is earlier.
func (e *entry) bring(due time.Time) {
	if e.due.IsZero() || due.Before(e.due) {
		e.due = due
	}
}

// changed is called when the definition of a resource came, changed or went.
func (k *Keeper) changed(resource schema.GroupResource) {
	k.lock.Lock()
	defer k.lock.Unlock()
	if entry, ok := k.entries[resource]; ok && entry.wanted != nil {
		entry.bring(k.Clock.Now().Add(settling))
		k.alarm.Ring()
	}
}

// lookAtAll is called when changes begin to be told. What changed before, though after it was looked at, was not.
func (k *Keeper) lookAtAll() {
	k.lock.Lock()
	defer k.lock.Unlock()
	for _, entry := range k.entries {
		if entry.wanted != nil {
			entry.bring(k.Clock.Now().Add(settling))
		}
	}
	k.alarm.Ring()
}
