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

	"github.com/synchub-dev/synchub/provider/metrics/requestmetrics"
)

// changeOrigin is the side on which a change was observed.
type changeOrigin int

const (
	// originOther is a changed config, the end of a failure's cause, or another event that is no change of the object itself.
	originOther changeOrigin = iota
	originMailbox
	originTarget
)

// relativeTime is a time in nanoseconds since the epoch; zero means never. Its values are small, because a burst makes the map
// large.
type relativeTime int64

// changeTimes are when pending changes of one object were first observed.
type changeTimes struct {
	// first is when the first change was observed on any side; never if a pass has covered all.
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

// firstChange returns when the first change was observed, zero for never, and on which side.
func (p pendingChange) firstChange() (at time.Time, origin string) {
	at, origin = p.since, "other"
	if !p.mailbox.IsZero() && (at.IsZero() || !p.mailbox.After(at)) {
		at, origin = p.mailbox, string(requestmetrics.Mailbox)
	}
	if !p.target.IsZero() && (at.IsZero() || p.target.Before(at) || p.target.Equal(at) && origin == "other") {
		at, origin = p.target, string(requestmetrics.Target)
	}
	return at, origin
}

// pendingChanges are the changes that no pass has covered yet, by key. The latency metrics and the age of the oldest pending
// change use them.
type pendingChanges struct {
	lock gosync.Mutex
	keys map[types.NamespacedName]changeTimes
	// passes are the first changes that the passes under way cover. They count for the age of the oldest change: a pass may wait long for a
	// cluster that hangs.
	passes map[types.NamespacedName]relativeTime
	// namespaces are the numbers of keys, by namespace of the mailbox.
	namespaces map[string]int
	// epoch is the time of the first change; other times of changes are relative to it.
	epoch time.Time
}

func newPendingChanges() *pendingChanges {
	return &pendingChanges{keys: map[types.NamespacedName]changeTimes{}, passes: map[types.NamespacedName]relativeTime{}, namespaces: map[string]int{}}
}

// add records changes. It does not change the times of earlier pending changes.
func (p *pendingChanges) add(now time.Time, from changeOrigin, keys ...types.NamespacedName) {
	p.lock.Lock()
	defer p.lock.Unlock()
	at := p.relative(now)
	for _, key := range keys {
		if changes := p.keys[key]; changes.record(from, at) {
			p.set(key, changes)
		}
	}
}

// record sets the times that are unset, and reports whether it set any.
func (c *changeTimes) record(from changeOrigin, at relativeTime) (changed bool) {
	take := func(kind *relativeTime) {
		if *kind == 0 {
			*kind, changed = at, true
		}
	}
	take(&c.first)
	switch from {
	case originMailbox:
		take(&c.mailbox)
	case originTarget:
		take(&c.target)
	case originOther:
	}
	return changed
}

// take returns the pending changes of a key and removes them: the pass that begins now covers them, until endPass. hasPending is
// false if none were pending.
func (p *pendingChanges) take(key types.NamespacedName) (pending pendingChange, hasPending bool) {
	p.lock.Lock()
	defer p.lock.Unlock()
	taken := p.keys[key]
	p.set(key, changeTimes{})
	if taken.first != 0 {
		p.passes[key] = taken.first
	}
	return pendingChange{since: p.absolute(taken.first), mailbox: p.absolute(taken.mailbox), target: p.absolute(taken.target)}, taken.first != 0
}

// endPass is called at the end of a pass, after what it did not complete is pending again.
func (p *pendingChanges) endPass(key types.NamespacedName) {
	p.lock.Lock()
	defer p.lock.Unlock()
	delete(p.passes, key)
}

// set requires the lock.
func (p *pendingChanges) set(key types.NamespacedName, changes changeTimes) {
	before := len(p.keys)
	if changes == (changeTimes{}) {
		delete(p.keys, key)
	} else {
		p.keys[key] = changes
	}
	if added := len(p.keys) - before; added != 0 {
		if p.namespaces[key.Namespace] += added; p.namespaces[key.Namespace] == 0 {
			delete(p.namespaces, key.Namespace)
		}
	}
}

// countIn returns the number of keys with pending changes in a namespace of the mailbox.
func (p *pendingChanges) countIn(namespace string) int {
	p.lock.Lock()
	defer p.lock.Unlock()
	return p.namespaces[namespace]
}

// restore makes changes pending again that failed because the target is away.
func (p *pendingChanges) restore(key types.NamespacedName, pending pendingChange) {
	p.lock.Lock()
	defer p.lock.Unlock()
	p.set(key, changeTimes{first: p.relative(pending.since)})
}

// keepTimes keeps the times of changes until the key is planned again.
func (p *pendingChanges) keepTimes(key types.NamespacedName, pending pendingChange) {
	if pending.mailbox.IsZero() && pending.target.IsZero() {
		return
	}
	p.lock.Lock()
	defer p.lock.Unlock()
	p.set(key, changeTimes{first: p.keys[key].first, mailbox: p.relative(pending.mailbox), target: p.relative(pending.target)})
}

// excludeFromLatency excludes the pending changes of a key from latencies, because the target is away.
func (p *pendingChanges) excludeFromLatency(key types.NamespacedName) {
	p.lock.Lock()
	defer p.lock.Unlock()
	p.set(key, changeTimes{first: p.keys[key].first})
}

// all returns the keys with pending changes.
func (p *pendingChanges) all() []types.NamespacedName {
	p.lock.Lock()
	defer p.lock.Unlock()
	return slices.Collect(maps.Keys(p.keys))
}

// count returns the number of keys with pending changes, and when the oldest change was observed that is pending or that a pass under way
// covers; zero if there is none.
func (p *pendingChanges) count() (objects int, since time.Time) {
	p.lock.Lock()
	defer p.lock.Unlock()
	oldest := relativeTime(0)
	older := func(first relativeTime) {
		if oldest == 0 || first < oldest {
			oldest = first
		}
	}
	for _, changes := range p.keys {
		if changes.first != 0 {
			objects++
			older(changes.first)
		}
	}
	for _, first := range p.passes {
		older(first)
	}
	return objects, p.absolute(oldest)
}

// relative returns a time relative to the epoch, and absolute does the reverse; both require the lock.
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
