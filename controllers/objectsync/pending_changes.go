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

package objectsync

import (
	"maps"
	"slices"
	gosync "sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// changeOrigin is the side on which a change was observed.
type changeOrigin int

const (
	// originOther is a config, the end of a failure's cause, or anything else that is no change of the object itself.
	originOther changeOrigin = iota
	originMailbox
	originTarget
)

// pendingChanges records since when changes are pending, for the latency metrics and the oldest pending change. It has entries
// only for pending objects.
type pendingChanges struct {
	lock gosync.Mutex
	// epoch is the time of the first change; other times are relative to it.
	epoch   time.Time
	changes map[types.NamespacedName]changeTimes
}

// relativeTime is nanoseconds since the epoch; zero is never. A burst makes the map large, so its values are small.
type relativeTime int64

// changeTimes are when pending changes of one object were first observed.
type changeTimes struct {
	// first is when the first was observed on any side; never if all were tried.
	first relativeTime
	// mailbox and target are when the object was first observed to change on that side. Waiting for a target that is away
	// resets them, since that is not the hub's latency.
	mailbox, target relativeTime
}

// pendingChange are the times of one object's pending changes. A zero time means no change.
type pendingChange struct {
	// since is when the first change was observed on any side.
	since time.Time
	// mailbox and target are when the object was first observed to change on that side.
	mailbox, target time.Time
}

func newPendingChanges() *pendingChanges {
	return &pendingChanges{changes: map[types.NamespacedName]changeTimes{}}
}

// add records changes; earlier pending ones count.
func (p *pendingChanges) add(now time.Time, from changeOrigin, keys ...types.NamespacedName) {
	p.lock.Lock()
	defer p.lock.Unlock()
	at := p.relative(now)
	for _, key := range keys {
		if seen := p.changes[key]; seen.record(from, at) {
			p.changes[key] = seen
		}
	}
}

// record sets the times that are unset, and reports whether it set any.
func (m *changeTimes) record(from changeOrigin, at relativeTime) (changed bool) {
	take := func(kind *relativeTime) {
		if *kind == 0 {
			*kind, changed = at, true
		}
	}
	take(&m.first)
	switch from {
	case originMailbox:
		take(&m.mailbox)
	case originTarget:
		take(&m.target)
	case originOther:
	}
	return changed
}

// take returns the pending changes of an object and removes them: the pass that begins now covers them. waits is false if none
// were pending.
func (p *pendingChanges) take(key types.NamespacedName) (seen pendingChange, waits bool) {
	p.lock.Lock()
	defer p.lock.Unlock()
	taken := p.changes[key]
	delete(p.changes, key)
	return pendingChange{since: p.absolute(taken.first), mailbox: p.absolute(taken.mailbox), target: p.absolute(taken.target)}, taken.first != 0
}

// putBack makes changes pending again that failed because the target is away.
func (p *pendingChanges) putBack(key types.NamespacedName, seen pendingChange) {
	p.lock.Lock()
	defer p.lock.Unlock()
	p.changes[key] = changeTimes{first: p.relative(seen.since)}
}

// decideLater keeps the times of changes until the key is planned again.
func (p *pendingChanges) decideLater(key types.NamespacedName, seen pendingChange) {
	if seen.mailbox.IsZero() && seen.target.IsZero() {
		return
	}
	p.lock.Lock()
	defer p.lock.Unlock()
	p.changes[key] = changeTimes{first: p.changes[key].first, mailbox: p.relative(seen.mailbox), target: p.relative(seen.target)}
}

// waitForTarget excludes the time until the target is back from latencies.
func (p *pendingChanges) waitForTarget(key types.NamespacedName) {
	p.lock.Lock()
	defer p.lock.Unlock()
	if seen := p.changes[key]; seen.first != 0 {
		p.changes[key] = changeTimes{first: seen.first}
		return
	}
	delete(p.changes, key)
}

// keys returns the keys of all pending objects.
func (p *pendingChanges) keys() []types.NamespacedName {
	p.lock.Lock()
	defer p.lock.Unlock()
	return slices.Collect(maps.Keys(p.changes))
}

// oldestSince returns when the oldest pending change was observed; ok is false if there is none.
func (p *pendingChanges) oldestSince() (since time.Time, ok bool) {
	_, since = p.count()
	return since, !since.IsZero()
}

// count returns the number of pending objects, and when the oldest change was observed.
func (p *pendingChanges) count() (objects int, since time.Time) {
	p.lock.Lock()
	defer p.lock.Unlock()
	first := relativeTime(0)
	for _, seen := range p.changes {
		if seen.first == 0 {
			continue
		}
		objects++
		if first == 0 || seen.first < first {
			first = seen.first
		}
	}
	return objects, p.absolute(first)
}

// relative requires the lock, as does absolute.
func (p *pendingChanges) relative(when time.Time) relativeTime {
	if when.IsZero() {
		return 0
	}
	if p.epoch.IsZero() {
		p.epoch = when
	}
	return max(1, relativeTime(when.Sub(p.epoch)+1))
}

func (p *pendingChanges) absolute(of relativeTime) time.Time {
	if of == 0 {
		return time.Time{}
	}
	return p.epoch.Add(time.Duration(of - 1))
}
