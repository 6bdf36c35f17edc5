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

package storehistory

import (
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/synchub-dev/synchub/provider/topic"
)

const (
	// episode is the time in which reports may be about the same rewind: caches and the ledger notice it one after the other, on each
	// replica.
	episode = 3 * time.Minute
	// maxEvidence bounds the text of a [Rewind].
	maxEvidence = 512
)

// Rewind is the fact that the store went back.
type Rewind struct {
	// ID identifies the rewind. An operator confirms exactly this one.
	ID string `json:"id"`
	// Detected is when a hub first detected the rewind, and Evidence is the contradiction.
	Detected time.Time `json:"detected"`
	Evidence string    `json:"evidence"`
	// Lost is the highest resourceVersion that is known from the lost history. A mark with a version up to Lost proves no
	// other rewind.
	Lost uint64 `json:"lost"`
}

// Options configure a [Guard].
type Options struct {
	// Client writes to the workspace with the ledger, and Reader reads from it without a cache. Namespace is the ledger's.
	Client    client.Client
	Reader    client.Reader
	Namespace string
	// RestartWatches makes all caches of kcp list their objects again, since they have the lost history. It is called when this replica
	// notices a rewind, and must not block.
	RestartWatches func()
	Clock          clock.WithTicker
	Log            logr.Logger
}

// Guard records whether the store went back. A nil Guard never reports a rewind. All methods may be called concurrently.
type Guard struct {
	Options
	changes topic.Topic[struct{}]
	// wake makes Start store the rewind.
	wake chan struct{}

	lock   sync.Mutex
	rewind *Rewind
	// isStored is true if the workspace has the rewind as it is, and wasStored if it has had it.
	isStored, wasStored bool
	// isUnsettled is true while the Guard does not know whether a report is about the rewind or about another one. All
	// SyncTargets are held during that time.
	isUnsettled bool
	syncTargets map[types.UID]syncTarget
	// watermarks return the highest observed version of each source, and previous are the versions that the Lease had.
	watermarks map[string]func() uint64
	previous   map[string]uint64
}

// syncTarget has the facts that decide whether a rewind concerns a SyncTarget.
type syncTarget struct {
	created   time.Time
	confirmed string
}

// New returns a Guard without a rewind.
func New(options Options) *Guard {
	return &Guard{
		Options: options, wake: make(chan struct{}, 1), isStored: true, syncTargets: map[types.UID]syncTarget{},
		watermarks: map[string]func() uint64{}, previous: map[string]uint64{},
	}
}

// ParseVersion returns a resourceVersion as a number; zero if it is none.
func ParseVersion(resourceVersion string) uint64 {
	version, err := strconv.ParseUint(resourceVersion, 10, 64)
	if err != nil {
		return 0
	}
	return version
}

// Report records that the store went back: it is at the resourceVersion now, although a reader observed the later version
// seen. where describes the object or list that proves it. It must not be called for a read that may be outdated.
func (g *Guard) Report(where string, seen, now uint64) {
	if g == nil {
		return
	}
	evidence := fmt.Sprintf("%s has the resourceVersion %d now, and had %d", where, now, seen)
	g.lock.Lock()
	isSame := g.rewind != nil && g.Clock.Since(g.rewind.Detected) < episode
	if isSame {
		g.isUnsettled = true
		if seen > g.rewind.Lost {
			g.rewind.Lost, g.isStored = seen, false
		}
	} else {
		g.replaceLocked(evidence, seen)
	}
	g.lock.Unlock()
	g.store()
	if !isSame {
		g.Log.Info("kcp went back to an earlier state: the hub removes and overwrites nothing on clusters until an operator confirms that", "evidence", evidence)
		g.restartWatches()
		g.changes.Publish(struct{}{})
	}
}

// replaceLocked replaces the rewind by a new one. The caller holds the lock.
func (g *Guard) replaceLocked(evidence string, lost uint64) {
	g.rewind = &Rewind{ID: string(uuid.NewUUID()), Detected: g.Clock.Now().UTC().Truncate(time.Second), Evidence: evidence[:min(len(evidence), maxEvidence)], Lost: lost}
	g.isStored, g.wasStored = false, false
}

// settleLocked determines whether a report was about another rewind: if so, the store has lost the record of the former one.
// It reports whether that is the case. The caller holds the lock.
func (g *Guard) settleLocked(stored *Rewind) (isOther bool) {
	isOther = g.isUnsettled && g.wasStored && (stored == nil || stored.ID != g.rewind.ID && stored.Detected.Before(g.rewind.Detected))
	if isOther {
		g.replaceLocked("the hub's own record of the last restore is gone", g.rewind.Lost)
	}
	g.isUnsettled = false
	return isOther
}

// Current returns the last rewind, nil if the store never went back.
func (g *Guard) Current() *Rewind {
	if g == nil {
		return nil
	}
	g.lock.Lock()
	defer g.lock.Unlock()
	if g.rewind == nil {
		return nil
	}
	current := *g.rewind
	return &current
}

// Lost returns the highest version that is known from a lost history; zero if there is none.
func (g *Guard) Lost() uint64 {
	if g == nil {
		return 0
	}
	g.lock.Lock()
	defer g.lock.Unlock()
	if g.rewind == nil {
		return 0
	}
	return g.rewind.Lost
}

// Explains reports whether a version in a mark, or in a cache, is from the lost history of the last rewind.
func (g *Guard) Explains(version uint64) bool {
	current := g.Current()
	return current != nil && version <= current.Lost
}

// SetSyncTarget records when a SyncTarget was created, and which rewind its operator confirmed. It reports whether the
// SyncTarget is held.
func (g *Guard) SetSyncTarget(uid types.UID, created time.Time, confirmed string) (held bool) {
	if g == nil {
		return false
	}
	g.lock.Lock()
	defer g.lock.Unlock()
	g.syncTargets[uid] = syncTarget{created, confirmed}
	return g.holdsLocked(uid)
}

// ForgetSyncTarget drops the state of a SyncTarget.
func (g *Guard) ForgetSyncTarget(uid types.UID) {
	if g == nil {
		return
	}
	g.lock.Lock()
	defer g.lock.Unlock()
	delete(g.syncTargets, uid)
}

// Holds reports whether nothing may be removed from the target of a SyncTarget, or overwritten there: the store went back after
// the SyncTarget was created, and no operator has confirmed that for it. A SyncTarget that is not known yet is held.
func (g *Guard) Holds(uid types.UID) bool {
	if g == nil {
		return false
	}
	g.lock.Lock()
	defer g.lock.Unlock()
	return g.holdsLocked(uid)
}

func (g *Guard) holdsLocked(uid types.UID) bool {
	if g.rewind == nil {
		return false
	}
	known, ok := g.syncTargets[uid]
	return !ok || g.isUnsettled || known.confirmed != g.rewind.ID && !known.created.After(g.rewind.Detected)
}

// HeldCount returns how many known SyncTargets are held.
func (g *Guard) HeldCount() (held int) {
	if g == nil {
		return 0
	}
	g.lock.Lock()
	defer g.lock.Unlock()
	for uid := range g.syncTargets {
		if g.holdsLocked(uid) {
			held++
		}
	}
	return held
}

// adoptLocked takes over a rewind that another replica, or this one before a restart, has stored. It reports whether that changes
// anything. The caller holds the lock.
func (g *Guard) adoptLocked(stored *Rewind) (changed bool) {
	if stored == nil {
		return false
	}
	if g.rewind != nil && g.rewind.ID != stored.ID && (g.wasStored && !stored.Detected.After(g.rewind.Detected) || g.rewind.Detected.Sub(stored.Detected) >= episode) {
		// The stored one is an earlier rewind.
		return false
	}
	changed = g.rewind == nil || g.rewind.ID != stored.ID
	lost := stored.Lost
	if g.rewind != nil {
		lost = max(lost, g.rewind.Lost)
	}
	adopted := *stored
	adopted.Lost = lost
	g.rewind, g.isStored, g.wasStored = &adopted, lost == stored.Lost, true
	return changed
}

func (g *Guard) restartWatches() {
	if g.RestartWatches != nil {
		g.RestartWatches()
	}
}

// Changes publishes when a rewind is new, or has become another one.
func (g *Guard) Changes() *topic.Topic[struct{}] {
	if g == nil {
		return nil
	}
	return &g.changes
}
