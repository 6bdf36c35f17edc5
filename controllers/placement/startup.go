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
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/synchub-dev/synchub/controllers/placement/fleetcache"
)

const (
	// startupGrace is how long after the start the hub waits for the SyncTargets and the copies of the previous leader.
	startupGrace = 2 * time.Minute
	// startupPoll is the time between two checks during startupGrace.
	startupPoll = 500 * time.Millisecond
)

// startup decides whether the hub may still lack facts of the previous leader.
type startup struct {
	fleet            *fleetcache.Fleet
	knownSyncTargets func() (syncTargets []types.UID, known bool)
	clock            clock.PassiveClock
	// startedAt is nil before the start. A replica that is not the leader only keeps its state up to date.
	startedAt atomic.Pointer[time.Time]
	// fleetSynced is true once isFleetSynced was.
	fleetSynced atomic.Bool
}

// begin records the start.
func (s *startup) begin() {
	now := s.clock.Now()
	s.startedAt.Store(&now)
}

// hasBegun reports whether the hub has started.
func (s *startup) hasBegun() bool { return s.startedAt.Load() != nil }

// inGrace reports whether the hub started less than startupGrace ago: until then, sync controllers may not have tried every copy.
func (s *startup) inGrace() bool {
	at := s.startedAt.Load()
	return at == nil || s.clock.Since(*at) <= startupGrace
}

// isFleetSynced reports whether the view of the inventories has all SyncTargets of the previous leader. Before
// that, a destination may be missing only because the hub has not read its inventory yet, so no status must
// report that it is gone.
func (s *startup) isFleetSynced() bool {
	if s.fleetSynced.Load() {
		return true
	}
	known, loaded := s.knownSyncTargets()
	if !loaded {
		return false
	}
	missing := map[types.UID]struct{}{}
	for _, uid := range known {
		missing[uid] = struct{}{}
	}
	for inventory := range s.fleet.Snapshot().Inventories() {
		for _, syncTarget := range inventory.SyncTargets {
			delete(missing, syncTarget.UID)
		}
	}
	if len(missing) == 0 || !s.inGrace() {
		s.fleetSynced.Store(true)
	}
	return s.fleetSynced.Load()
}
