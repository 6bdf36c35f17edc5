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

	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/synchub-dev/synchub/controllers/placement/fleetcache"
	"github.com/synchub-dev/synchub/provider/mailboxes"
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
	mailboxes        *mailboxes.Mailboxes
	policy           *CachePolicy
	marks            marks
	workspaces       *workspaces
	clock            clock.PassiveClock
	// startedAt is nil before the start. A replica that is not the leader only keeps its state up to date.
	startedAt atomic.Pointer[time.Time]
	// fleetSynced is true once isFleetSynced was, and copiesSynced once areCopiesSynced was.
	fleetSynced, copiesSynced atomic.Bool
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

// areCopiesSynced reports whether the hub has processed the events of all copies in mailboxes. After the
// first true it always returns true. After startupGrace, mailboxes that cannot be listed do not count: a
// mailbox that never becomes ready must not keep all deleted placements.
func (s *startup) areCopiesSynced() bool {
	if s.copiesSynced.Load() {
		return true
	}
	for mailbox := range s.fleet.Snapshot().Mailboxes() {
		if !s.areCopiesSyncedIn(mailbox) {
			return false
		}
	}
	s.copiesSynced.Store(true)
	return true
}

// areCopiesSyncedIn is areCopiesSynced for one mailbox.
func (s *startup) areCopiesSyncedIn(mailbox logicalcluster.Name) bool {
	if s.copiesSynced.Load() {
		return true
	}
	for of := range s.policy.published() {
		objects, _ := s.mailboxes.List(of, mailbox)
		if !isListed(s.mailboxes, of, mailbox) && s.inGrace() || !s.areKnown(of, mailbox, objects) {
			return false
		}
	}
	return true
}

// areKnown reports whether the hub has processed the events of all copies among the objects of a
// mailbox.
func (s *startup) areKnown(of schema.GroupVersionResource, mailbox logicalcluster.Name, objects []*unstructured.Unstructured) bool {
	for _, inMailbox := range objects {
		cluster, key, is := s.marks.pairOf(of, mailbox, inMailbox)
		if !is {
			continue
		}
		isKnown := false
		s.workspaces.ensure(cluster).pairs.inspect(key, func(_ *object, found *pair) { isKnown = found.hasCopy })
		if !isKnown {
			return false
		}
	}
	return true
}
