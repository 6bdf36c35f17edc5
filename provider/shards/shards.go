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

package shards

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/synchub-dev/synchub/provider/fence"
	"github.com/synchub-dev/synchub/provider/topic"
)

// Shards are the shards that this replica owns, each with the fence of its writes. An [Elector] acquires and releases them.
type Shards struct {
	// Changed carries the shards that this replica has acquired or released.
	Changed topic.Topic[Set]

	all [Count]*shard
}

// New returns Shards that are not owned.
func New(clock clock.PassiveClock) *Shards {
	s := &Shards{}
	for number := range s.all {
		s.all[number] = &shard{number: number, fence: fence.New(clock)}
	}
	return s
}

// Owns reports whether this replica works for a SyncTarget.
func (s *Shards) Owns(syncTarget types.UID) bool { return s.all[Of(syncTarget)].isOwned() }

// Fence returns the fence of writes for a SyncTarget.
func (s *Shards) Fence(syncTarget types.UID) *fence.Fence { return s.all[Of(syncTarget)].fence }

// shard is whether this replica owns one shard.
type shard struct {
	number int
	fence  *fence.Fence

	lock  sync.Mutex
	held  bool
	since time.Time
}

func (s *shard) isOwned() bool {
	s.lock.Lock()
	defer s.lock.Unlock()
	return s.held
}

// ownedFor returns for how long this replica has held the shard; zero if it does not.
func (s *shard) ownedFor(now time.Time) time.Duration {
	s.lock.Lock()
	defer s.lock.Unlock()
	if !s.held {
		return 0
	}
	return now.Sub(s.since)
}

// set records whether this replica holds the shard, and reports whether that has changed. It calls isValid under the lock.
func (s *shard) set(isOwned bool, now time.Time, isValid func() bool) (changed bool) {
	s.lock.Lock()
	defer s.lock.Unlock()
	if s.held == isOwned || !isValid() {
		return false
	}
	s.held, s.since = isOwned, now
	if isOwned {
		ownedShards.Inc()
	} else {
		ownedShards.Dec()
	}
	return true
}
