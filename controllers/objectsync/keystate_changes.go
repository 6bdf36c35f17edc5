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

// Since when changes are pending, for the latency metrics and the oldest pending change.

// addChange records changes; earlier pending ones count.
func (s *keyStates) addChange(now time.Time, from changeOrigin, keys ...types.NamespacedName) {
	s.lock.Lock()
	defer s.lock.Unlock()
	at := s.relative(now)
	for _, key := range keys {
		if state := s.keys[key]; state.changes.record(from, at) {
			s.put(key, state)
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

// takeChanges returns the pending changes of a key and removes them: the pass that begins now covers them. hasPending is
// false if none were pending.
func (s *keyStates) takeChanges(key types.NamespacedName) (pending pendingChange, hasPending bool) {
	s.lock.Lock()
	defer s.lock.Unlock()
	state := s.keys[key]
	taken := state.changes
	s.setChanges(key, changeTimes{})
	return pendingChange{since: s.absolute(taken.first), mailbox: s.absolute(taken.mailbox), target: s.absolute(taken.target)}, taken.first != 0
}

// setChanges requires the lock.
func (s *keyStates) setChanges(key types.NamespacedName, changes changeTimes) {
	state := s.keys[key]
	state.changes = changes
	s.put(key, state)
}

// putBackChanges makes changes pending again that failed because the target is away.
func (s *keyStates) putBackChanges(key types.NamespacedName, pending pendingChange) {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.setChanges(key, changeTimes{first: s.relative(pending.since)})
}

// keepChangeTimes keeps the times of changes until the key is planned again.
func (s *keyStates) keepChangeTimes(key types.NamespacedName, pending pendingChange) {
	if pending.mailbox.IsZero() && pending.target.IsZero() {
		return
	}
	s.lock.Lock()
	defer s.lock.Unlock()
	s.setChanges(key, changeTimes{first: s.keys[key].changes.first, mailbox: s.relative(pending.mailbox), target: s.relative(pending.target)})
}

// excludeFromLatency excludes the pending changes of a key from latencies, because the target is away.
func (s *keyStates) excludeFromLatency(key types.NamespacedName) {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.setChanges(key, changeTimes{first: s.keys[key].changes.first})
}

// pendingKeys returns the keys with pending changes.
func (s *keyStates) pendingKeys() []types.NamespacedName {
	s.lock.Lock()
	defer s.lock.Unlock()
	keys := make([]types.NamespacedName, 0, len(s.keys))
	for key, state := range s.keys {
		if state.changes != (changeTimes{}) {
			keys = append(keys, key)
		}
	}
	return keys
}

// countPending returns the number of keys with pending changes, and when the oldest change was observed; zero if there is none.
func (s *keyStates) countPending() (objects int, since time.Time) {
	s.lock.Lock()
	defer s.lock.Unlock()
	first := relativeTime(0)
	for _, state := range s.keys {
		seen := state.changes
		if seen.first == 0 {
			continue
		}
		objects++
		if first == 0 || seen.first < first {
			first = seen.first
		}
	}
	return objects, s.absolute(first)
}

// relative returns a time relative to the epoch, and absolute does the reverse; both require the lock.
func (s *keyStates) relative(when time.Time) relativeTime {
	if when.IsZero() {
		return 0
	}
	if s.epoch.IsZero() {
		s.epoch = when
	}
	return max(1, relativeTime(when.Sub(s.epoch)+1))
}

func (s *keyStates) absolute(of relativeTime) time.Time {
	if of == 0 {
		return time.Time{}
	}
	return s.epoch.Add(time.Duration(of - 1))
}
