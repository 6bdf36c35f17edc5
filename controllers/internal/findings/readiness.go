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

package findings

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/provider/topic"
)

type state struct {
	ready bool
	since time.Time
	// changedAt is when the readiness changed, by the status of the SyncTarget; zero if that is unknown.
	changedAt time.Time
}

// Readiness contains the states of SyncTargets. The zero value is ready to use; a nil Readiness is empty. All
// methods may be called concurrently.
type Readiness struct {
	changes topic.Topic[types.UID]

	lock   sync.RWMutex
	states map[types.UID]state
}

// Set records whether a SyncTarget is Ready now, and publishes a change. changedAt is when that changed, by the status of the SyncTarget;
// zero if that is unknown. Unlike now it stays the same over a restart of the hub.
func (r *Readiness) Set(syncTarget types.UID, ready bool, now, changedAt time.Time) {
	if r == nil {
		return
	}
	r.lock.Lock()
	before, known := r.states[syncTarget]
	changed := !known || before.ready != ready
	if changed {
		if r.states == nil {
			r.states = map[types.UID]state{}
		}
		r.states[syncTarget] = state{ready, now, changedAt}
	}
	r.lock.Unlock()
	if changed {
		r.changes.Publish(syncTarget)
	}
}

// Forget drops a deleted SyncTarget.
func (r *Readiness) Forget(syncTarget types.UID) {
	if r == nil {
		return
	}
	r.lock.Lock()
	defer r.lock.Unlock()
	delete(r.states, syncTarget)
}

// Of reports whether a SyncTarget is Ready, and since when the hub has observed that. known is false if the hub has not observed the
// SyncTarget since its start.
func (r *Readiness) Of(syncTarget types.UID) (ready bool, since time.Time, known bool) {
	if r == nil {
		return false, time.Time{}, false
	}
	r.lock.RLock()
	defer r.lock.RUnlock()
	found, known := r.states[syncTarget]
	return found.ready, found.since, known
}

// NotReadySince reports whether a SyncTarget is known not to be Ready, and since when by its status; zero if that is unknown.
func (r *Readiness) NotReadySince(syncTarget types.UID) (since time.Time, notReady bool) {
	if r == nil {
		return time.Time{}, false
	}
	r.lock.RLock()
	defer r.lock.RUnlock()
	found, known := r.states[syncTarget]
	if !known || found.ready {
		return time.Time{}, false
	}
	return found.changedAt, true
}

// Changes carries the SyncTargets whose state became known, or changed.
func (r *Readiness) Changes() *topic.Topic[types.UID] {
	if r == nil {
		return nil
	}
	return &r.changes
}
