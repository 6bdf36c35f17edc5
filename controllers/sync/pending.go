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

package sync

import (
	"maps"
	"slices"
	gosync "sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// origin is where a change was seen that has an object looked at.
type origin int

const (
	// seenElsewhere is a config, a cure, or whatever else is no change of the object itself.
	seenElsewhere origin = iota
	seenInMailbox
	seenOnTarget
)

// pending knows since when changes wait that have not reached their other side yet. It holds an entry only for as long as
// one waits, or is to be decided about once more.
type pending struct {
	lock gosync.Mutex
	// began is when the first moment was noted.
	began   time.Time
	changes map[types.NamespacedName]moments
}

// moment is a time, in nanoseconds after pending began; zero is never. There is a map of them that grows as large as a
// burst, so they are small.
type moment int64

// moments are when changes of one object were first seen.
type moments struct {
	// waiting is when the first of them was, wherever that came from; never if all that there was has been tried.
	waiting moment
	// mailbox and target are when the object was first seen to change there, while what it took was the hub's alone.
	mailbox, target moment
}

// change is what was seen of an object that waits. Times of what was not seen are zero.
type change struct {
	// since is when the first change was seen, wherever.
	since time.Time
	// mailbox and target are when the object was first seen to change there.
	mailbox, target time.Time
}

func newPending() *pending { return &pending{changes: map[types.NamespacedName]moments{}} }

// note notes that objects changed; what waits already has waited longer.
func (p *pending) note(now time.Time, from origin, keys ...types.NamespacedName) {
	p.lock.Lock()
	defer p.lock.Unlock()
	at := p.at(now)
	for _, key := range keys {
		if seen := p.changes[key]; seen.first(from, at) {
			p.changes[key] = seen
		}
	}
}

// first takes down a moment where it is the first of its kind, and tells whether it is.
func (m *moments) first(from origin, at moment) (news bool) {
	take := func(kind *moment) {
		if *kind == 0 {
			*kind, news = at, true
		}
	}
	take(&m.waiting)
	switch from {
	case seenInMailbox:
		take(&m.mailbox)
	case seenOnTarget:
		take(&m.target)
	case seenElsewhere:
	}
	return news
}

// take returns what was seen of an object, and forgets it: what changes from now on is another change. waits is false if it
// is looked at for another reason.
func (p *pending) take(key types.NamespacedName) (seen change, waits bool) {
	p.lock.Lock()
	defer p.lock.Unlock()
	taken := p.changes[key]
	delete(p.changes, key)
	return change{since: p.time(taken.waiting), mailbox: p.time(taken.mailbox), target: p.time(taken.target)}, taken.waiting != 0
}

// putBack makes an object wait on that could not be brought in step since the target is away.
func (p *pending) putBack(key types.NamespacedName, seen change) {
	p.lock.Lock()
	defer p.lock.Unlock()
	p.changes[key] = moments{waiting: p.at(seen.since)}
}

// decideLater keeps when an object changed until it is decided about once more.
func (p *pending) decideLater(key types.NamespacedName, seen change) {
	if seen.mailbox.IsZero() && seen.target.IsZero() {
		return
	}
	p.lock.Lock()
	defer p.lock.Unlock()
	p.changes[key] = moments{waiting: p.changes[key].waiting, mailbox: p.at(seen.mailbox), target: p.at(seen.target)}
}

// awaitTarget notes that an object waits for the target, and not for the hub.
func (p *pending) awaitTarget(key types.NamespacedName) {
	p.lock.Lock()
	defer p.lock.Unlock()
	if seen := p.changes[key]; seen.waiting != 0 {
		p.changes[key] = moments{waiting: seen.waiting}
		return
	}
	delete(p.changes, key)
}

// keys returns what waits.
func (p *pending) keys() []types.NamespacedName {
	p.lock.Lock()
	defer p.lock.Unlock()
	return slices.Collect(maps.Keys(p.changes))
}

// oldest returns since when the change waits that has waited longest; ok is false if none waits.
func (p *pending) oldest() (since time.Time, ok bool) {
	_, since = p.count()
	return since, !since.IsZero()
}

// count returns how many objects wait, and since when the first of them does.
func (p *pending) count() (objects int, since time.Time) {
	p.lock.Lock()
	defer p.lock.Unlock()
	first := moment(0)
	for _, seen := range p.changes {
		if seen.waiting == 0 {
			continue
		}
		objects++
		if first == 0 || seen.waiting < first {
			first = seen.waiting
		}
	}
	return objects, p.time(first)
}

// at and time are called with the lock.
func (p *pending) at(when time.Time) moment {
	if when.IsZero() {
		return 0
	}
	if p.began.IsZero() {
		p.began = when
	}
	return max(1, moment(when.Sub(p.began)+1))
}

func (p *pending) time(of moment) time.Time {
	if of == 0 {
		return time.Time{}
	}
	return p.began.Add(time.Duration(of - 1))
}
