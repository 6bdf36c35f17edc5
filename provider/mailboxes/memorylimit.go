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

	"github.com/synchub-dev/synchub/provider/metrics/cachesize"
)

// fairShareInterval is how long one level holds at least.
const fairShareInterval = 2 * time.Second

// errMemoryLimitReached says that the mailboxes take all the memory they may. The level is about to fall.
var errMemoryLimitReached = errors.New("the mailboxes take all the memory that the hub has for them")

// memoryLimit bounds what all mailboxes take together. While they want more than that, none is held more of than the level, which is
// the highest at which all fit: what fits into an equal share is held whole, and the largest are cut first.
type memoryLimit struct {
	// limit is how many bytes there may be; zero stands for no limit.
	limit int64
	// cached is what the caches hold, and coming what lists bring that the caches do not hold yet.
	cached  cachesize.Counter
	pending atomic.Int64
	// fairShare is how much a mailbox may take of its objects, and of its configs; zero stands for no level.
	fairShare atomic.Int64
	// refused is set when something was not held because there was no room.
	refused atomic.Bool
	wake    signal
}

// signal wakes a loop; several at once count for one.
type signal chan struct{}

func newSignal() signal { return make(signal, 1) }

func (s signal) notify() {
	select {
	case s <- struct{}{}:
	default:
	}
}

// softLimit is as much as may be held without a level: what is left of the limit is for what comes before the level has fallen.
func (t *memoryLimit) softLimit() int64 { return t.limit / 8 * 7 }

func (t *memoryLimit) isAboveSoftLimit() bool {
	return t.limit > 0 && t.cached.Bytes()+t.pending.Load() > t.softLimit()
}

// hasRoom tells whether there is room for some bytes more.
func (t *memoryLimit) hasRoom(bytes int64) bool {
	if t.limit == 0 || bytes <= 0 || t.cached.Bytes()+t.pending.Load()+bytes <= t.limit {
		return true
	}
	t.refused.Store(true)
	t.wake.notify()
	return false
}

// onGrowth is called when more is held.
func (t *memoryLimit) onGrowth() {
	if t.isAboveSoftLimit() {
		t.wake.notify()
	}
}

// limits returns the limits that hold for the configs of a mailbox, or for its other objects, at the present level.
func (m *Mailboxes) limits(mailbox logicalcluster.Name, configs bool) Limits {
	return m.policyLimits(mailbox, configs).Min(Limits{Bytes: m.memory.fairShare.Load()})
}

// policyLimits returns the limits that hold whatever others have.
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

// runFairShare sets the level anew while there is one, or too much is held, until ctx ends.
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

// updateFairShare sets the level by what the mailboxes want, and has those reviewed of which more or less is to be held now.
func (m *Mailboxes) updateFairShare() {
	m.memory.refused.Store(false)
	var wanted []int64
	m.forEachUsage(func(mailbox logicalcluster.Name, account *usage, configs bool) {
		wanted = append(wanted, account.wantedBytes(m.policyLimits(mailbox, configs)))
	})
	before := m.memory.fairShare.Load()
	level := nextFairShare(before, wanted, m.memory.softLimit())
	m.memory.fairShare.Store(level)
	if before != level {
		m.log.Info("how much of each mailbox is held has changed, so that all fit", "bytes", level, "before", before, "limit", m.memory.limit)
	}
	m.forEachUsage(func(mailbox logicalcluster.Name, account *usage, configs bool) {
		if account.needsAdjustment(m.limits(mailbox, configs)) {
			m.EnqueueReview(mailbox)
		}
	})
}
