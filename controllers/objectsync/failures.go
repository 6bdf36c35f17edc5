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
	"k8s.io/utils/clock"

	"github.com/synchub-dev/synchub/controllers/internal/driftbackoff"
)

// failures tracks which objects fail, and the history of their writes.
type failures struct {
	clock clock.Clock

	lock     gosync.Mutex
	current  map[types.NamespacedName]Failure
	backoffs map[types.NamespacedName]*driftbackoff.Backoff
	// writtenFor is the resourceVersion of the source at the last write, for objects with a rule that reads the other side.
	writtenFor map[types.NamespacedName]string
	// deferred are fields that the hub does not ignore any more, and leaves to the target until the source changes.
	deferred map[types.NamespacedName][]string
	// former are keys with copies that are left on the target although their mailbox is gone.
	former map[types.NamespacedName]bool
}

func newFailures(clock clock.Clock) *failures {
	return &failures{clock: clock, current: map[types.NamespacedName]Failure{}, backoffs: map[types.NamespacedName]*driftbackoff.Backoff{}, writtenFor: map[types.NamespacedName]string{}, deferred: map[types.NamespacedName][]string{}, former: map[types.NamespacedName]bool{}}
}

// recordWrite notes the version of the source for which an object was written.
func (f *failures) recordWrite(key types.NamespacedName, resourceVersion string) {
	f.lock.Lock()
	defer f.lock.Unlock()
	f.writtenFor[key] = resourceVersion
}

// hasWritten reports whether the last write was for this version of the source.
func (f *failures) hasWritten(key types.NamespacedName, resourceVersion string) bool {
	f.lock.Lock()
	defer f.lock.Unlock()
	return f.writtenFor[key] == resourceVersion
}

// set returns the former failure, and whether the reason is another one now.
func (f *failures) set(key types.NamespacedName, failure Failure) (before Failure, changed bool) {
	f.lock.Lock()
	defer f.lock.Unlock()
	before, failed := f.current[key]
	f.current[key] = failure
	return before, !failed || before.Reason != failure.Reason
}

// clear returns the former failure, and whether there was one.
func (f *failures) clear(key types.NamespacedName) (before Failure, failed bool) {
	f.lock.Lock()
	defer f.lock.Unlock()
	before, failed = f.current[key]
	delete(f.current, key)
	return before, failed
}

// forgetHistory drops the history of an object whose source is gone.
func (f *failures) forgetHistory(key types.NamespacedName) {
	f.lock.Lock()
	defer f.lock.Unlock()
	delete(f.backoffs, key)
	delete(f.writtenFor, key)
}

// setFormer notes whether copies are left on the target although their mailbox is gone.
func (f *failures) setFormer(key types.NamespacedName, former bool) {
	f.lock.Lock()
	defer f.lock.Unlock()
	if former {
		f.former[key] = true
		return
	}
	delete(f.former, key)
}

// setDeferred notes which fields of an object are deferred, and reports whether that changed.
func (f *failures) setDeferred(key types.NamespacedName, fields []string) (changed bool) {
	f.lock.Lock()
	defer f.lock.Unlock()
	if slices.Equal(f.deferred[key], fields) {
		return false
	}
	if len(fields) == 0 {
		delete(f.deferred, key)
	} else {
		f.deferred[key] = fields
	}
	return true
}

// deferredFields returns the deferred fields of all objects.
func (f *failures) deferredFields() map[types.NamespacedName][]string {
	f.lock.Lock()
	defer f.lock.Unlock()
	return maps.Clone(f.deferred)
}

// formerKeys returns the keys with copies that are left on the target although their mailbox is gone.
func (f *failures) formerKeys() []types.NamespacedName {
	f.lock.Lock()
	defer f.lock.Unlock()
	return slices.Collect(maps.Keys(f.former))
}

// keysWhere returns the keys of failed objects that satisfy a predicate.
func (f *failures) keysWhere(is func(types.NamespacedName, Failure) bool) []types.NamespacedName {
	f.lock.Lock()
	defer f.lock.Unlock()
	var keys []types.NamespacedName
	for key, failure := range f.current {
		if is(key, failure) {
			keys = append(keys, key)
		}
	}
	return keys
}

func (f *failures) snapshot() map[types.NamespacedName]Failure {
	f.lock.Lock()
	defer f.lock.Unlock()
	return maps.Clone(f.current)
}

// driftBackoff returns how long the next repair of drift must wait; zero if it may be made now, which counts it.
func (f *failures) driftBackoff(key types.NamespacedName) (wait time.Duration) {
	f.lock.Lock()
	defer f.lock.Unlock()
	repairs, ok := f.backoffs[key]
	if !ok {
		repairs = &driftbackoff.Backoff{}
		f.backoffs[key] = repairs
	}
	return repairs.Next(f.clock.Now())
}
