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

// changeOrigin is where a change was seen that has an object looked at.
type changeOrigin int

const (
	// originOther is a config, a cure, or whatever else is no change of the object itself.
	originOther changeOrigin = iota
	originMailbox
	originTarget
)

// pendingChanges knows since when changes wait that have not reached their other side yet. It holds an entry only for as long as
// one waits, or is to be decided about once more.
type pendingChanges struct {
	lock gosync.Mutex
	// epoch is when the first moment was noted.
	epoch   time.Time
	changes map[types.NamespacedName]changeTimes
}

// relativeTime is a time, in nanoseconds after pending began; zero is never. There is a map of them that grows as large as a
// burst, so they are small.
type relativeTime int64

// changeTimes are when changes of one object were first seen.
type changeTimes struct {
	// first is when the first of them was, wherever that came from; never if all that there was has been tried.
	first relativeTime
	// mailbox and target are when the object was first seen to change there, while what it took was the hub's alone.
	mailbox, target relativeTime
}

// pendingChange is what was seen of an object that waits. Times of what was not seen are zero.
type pendingChange struct {
	// since is when the first change was seen, wherever.
	since time.Time
	// mailbox and target are when the object was first seen to change there.
	mailbox, target time.Time
}

func newPendingChanges() *pendingChanges {
	return &pendingChanges{changes: map[types.NamespacedName]changeTimes{}}
}

// add notes that objects changed; what waits already has waited longer.
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

// record takes down a moment where it is the first of its kind, and tells whether it is.
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

// take returns what was seen of an object, and forgets it: what changes from now on is another change. waits is false if it
// is looked at for another reason.
func (p *pendingChanges) take(key types.NamespacedName) (seen pendingChange, waits bool) {
	p.lock.Lock()
	defer p.lock.Unlock()
	taken := p.changes[key]
	delete(p.changes, key)
	return pendingChange{since: p.absolute(taken.first), mailbox: p.absolute(taken.mailbox), target: p.absolute(taken.target)}, taken.first != 0
}

// putBack makes an object wait on that could not be brought in sync since the target is away.
func (p *pendingChanges) putBack(key types.NamespacedName, seen pendingChange) {
	p.lock.Lock()
	defer p.lock.Unlock()
	p.changes[key] = changeTimes{first: p.relative(seen.since)}
}

// decideLater keeps when an object changed until it is decided about once more.
func (p *pendingChanges) decideLater(key types.NamespacedName, seen pendingChange) {
	if seen.mailbox.IsZero() && seen.target.IsZero() {
		return
	}
	p.lock.Lock()
	defer p.lock.Unlock()
	p.changes[key] = changeTimes{first: p.changes[key].first, mailbox: p.relative(seen.mailbox), target: p.relative(seen.target)}
}

// waitForTarget notes that an object waits for the target, and not for the hub.
func (p *pendingChanges) waitForTarget(key types.NamespacedName) {
	p.lock.Lock()
	defer p.lock.Unlock()
	if seen := p.changes[key]; seen.first != 0 {
		p.changes[key] = changeTimes{first: seen.first}
		return
	}
	delete(p.changes, key)
}

// keys returns what waits.
func (p *pendingChanges) keys() []types.NamespacedName {
	p.lock.Lock()
	defer p.lock.Unlock()
	return slices.Collect(maps.Keys(p.changes))
}

// oldestSince returns since when the change waits that has waited longest; ok is false if none waits.
func (p *pendingChanges) oldestSince() (since time.Time, ok bool) {
	_, since = p.count()
	return since, !since.IsZero()
}

// count returns how many objects wait, and since when the first of them does.
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

// relative and time are called with the lock.
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
