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

package mailboxes

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"

	"github.com/synchub-dev/synchub/provider/cachesize"
)

// fairShareInterval is the least time between two updates of the fair share.
const fairShareInterval = 2 * time.Second

// errMemoryLimitReached means that the caches of all mailboxes have reached their limit. The fair share falls next.
var errMemoryLimitReached = errors.New("the mailboxes take all the memory that the hub has for them")

// memoryLimit bounds the caches of all mailboxes together. While they want more, no mailbox gets more than the fair share, the
// highest bound with which all fit: smaller mailboxes are cached whole, and the largest are cut first.
type memoryLimit struct {
	// limit is in bytes; zero means no limit.
	limit int64
	// cached is the size of the caches, and pending the size of lists that are being read, in bytes.
	cached  cachesize.Counter
	pending atomic.Int64
	// fairShare bounds the bytes of each mailbox's objects, and separately the bytes of its configs; zero means no bound.
	fairShare atomic.Int64
	// refused is set when an object was not cached for lack of room.
	refused atomic.Bool
	wake    signal
}

// signal wakes a loop; several signals count as one.
type signal chan struct{}

func newSignal() signal { return make(signal, 1) }

func (s signal) notify() {
	select {
	case s <- struct{}{}:
	default:
	}
}

// softLimit is the size up to which no fair share is needed. The rest of the limit is for objects that arrive before a fair
// share takes effect.
func (m *memoryLimit) softLimit() int64 { return m.limit / 8 * 7 }

func (m *memoryLimit) isAboveSoftLimit() bool {
	return m.limit > 0 && m.cached.Bytes()+m.pending.Load() > m.softLimit()
}

// hasRoom reports whether some more bytes fit.
func (m *memoryLimit) hasRoom(bytes int64) bool {
	if m.limit == 0 || bytes <= 0 || m.cached.Bytes()+m.pending.Load()+bytes <= m.limit {
		return true
	}
	m.refused.Store(true)
	m.wake.notify()
	return false
}

// onGrowth is called when the caches grow.
func (m *memoryLimit) onGrowth() {
	if m.isAboveSoftLimit() {
		m.wake.notify()
	}
}

// limits returns the limits of a mailbox's configs, or of its other objects, at the current fair share.
func (m *Mailboxes) limits(mailbox logicalcluster.Name, configs bool) Limits {
	return m.policyLimits(mailbox, configs).Min(Limits{Bytes: m.memory.fairShare.Load()})
}

// policyLimits returns the limits that hold regardless of other mailboxes.
func (m *Mailboxes) policyLimits(mailbox logicalcluster.Name, configs bool) Limits {
	switch {
	case m.policy == nil:
		return Limits{}
	case configs:
		return m.policy.ConfigLimits()
	default:
		return m.policy.Limits(mailbox)
	}
}

// runFairShare updates the fair share while there is one, or while the caches exceed the soft limit, until ctx ends.
func (m *Mailboxes) runFairShare(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-m.memory.wake:
		}
		m.updateFairShare()
		select {
		case <-ctx.Done():
			return
		case <-m.clock.After(fairShareInterval):
		}
		if m.memory.fairShare.Load() > 0 || m.memory.refused.Load() {
			m.memory.wake.notify()
		}
	}
}

// updateFairShare computes the fair share, and enqueues reviews of the mailboxes that get more or less now.
func (m *Mailboxes) updateFairShare() {
	m.memory.refused.Store(false)
	var wanted []int64
	m.forEachUsage(func(mailbox logicalcluster.Name, usage *usage, configs bool) {
		wanted = append(wanted, usage.wantedBytes(m.policyLimits(mailbox, configs)))
	})
	before := m.memory.fairShare.Load()
	share := nextFairShare(before, wanted, m.memory.softLimit())
	m.memory.fairShare.Store(share)
	if before != share {
		m.log.Info("changed the fair share of each mailbox", "bytes", share, "before", before, "limit", m.memory.limit)
	}
	m.forEachUsage(func(mailbox logicalcluster.Name, usage *usage, configs bool) {
		if usage.needsAdjustment(m.limits(mailbox, configs)) {
			m.EnqueueCacheReview(mailbox)
		}
	})
}
