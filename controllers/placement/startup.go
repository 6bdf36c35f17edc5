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

package placement

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// startupGrace is how long after the start the hub waits for the SyncTargets and the copies of the previous leader.
	startupGrace = 2 * time.Minute
	// startupPoll is the time between two checks during startupGrace.
	startupPoll = 500 * time.Millisecond
)

// inStartupGrace reports whether the hub started less than startupGrace ago: until then, sync controllers may not have tried every copy.
func (c *Controller) inStartupGrace() bool {
	c.lock.Lock()
	defer c.lock.Unlock()
	return c.startedAt.IsZero() || c.Clock.Since(c.startedAt) <= startupGrace
}

// isFleetSynced reports whether the view of the inventories has all SyncTargets of the previous leader. Before
// that, a destination may be missing only because the hub has not read its inventory yet, so no status must
// report that it is gone.
func (c *Controller) isFleetSynced() bool {
	if c.fleetSynced.Load() {
		return true
	}
	known, loaded := c.KnownSyncTargets()
	if !loaded {
		return false
	}
	missing := map[types.UID]struct{}{}
	for _, uid := range known {
		missing[uid] = struct{}{}
	}
	for inventory := range c.Fleet.Snapshot().Inventories() {
		for _, syncTarget := range inventory.SyncTargets {
			delete(missing, syncTarget.UID)
		}
	}
	c.lock.Lock()
	defer c.lock.Unlock()
	if len(missing) == 0 || !c.startedAt.IsZero() && c.Clock.Since(c.startedAt) > startupGrace {
		c.fleetSynced.Store(true)
	}
	return c.fleetSynced.Load()
}
