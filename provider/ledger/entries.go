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

package ledger

import (
	"cmp"
	"reflect"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/synchub-dev/synchub/provider/topic"
)

// Entries has the entries of all SyncTargets in memory. An event never replaces a newer entry. All methods may be called concurrently.
type Entries struct {
	changes topic.Topic[types.UID]

	lock    sync.Mutex
	records map[types.UID]*record
	// highest is the highest resourceVersion of all records.
	highest string
	// listing is true while entries are listed, and listedSince is when the last complete list began.
	listing     bool
	listedSince time.Time
}

// record is an entry with the state for writing it. The lock of [Entries] guards all fields but writeLock.
type record struct {
	// writeLock is held during the request that writes the entry.
	writeLock sync.Mutex
	entry     Entry
	// version is the resourceVersion of the ConfigMap, or "" if there is no ConfigMap. deletedAt is the one at which it was deleted.
	version, deletedAt string
	// users counts the callers that write the entry, or wait to write it. The record stays while the count is not zero.
	users int
}

// forgetVersion makes the next version that is read the newest one.
func (r *record) forgetVersion() {
	r.deletedAt = ""
	if r.version != "" {
		r.version = "1"
	}
}

// Each calls visit for each SyncTarget with an entry. visit must not block, nor call the Entries, nor change or keep the entry.
func (e *Entries) Each(visit func(types.UID, *Entry)) {
	e.lock.Lock()
	defer e.lock.Unlock()
	for syncTarget, found := range e.records {
		if found.version != "" {
			visit(syncTarget, &found.entry)
		}
	}
}

// Get returns the entry of a SyncTarget, or the zero entry if there is none.
func (e *Entries) Get(syncTarget types.UID) Entry {
	e.lock.Lock()
	defer e.lock.Unlock()
	if found := e.records[syncTarget]; found != nil {
		return found.entry
	}
	return Entry{}
}

// Has reports whether a SyncTarget has an entry. It is false while [Entries.Get] returns an entry whose ConfigMap was deleted.
func (e *Entries) Has(syncTarget types.UID) bool {
	e.lock.Lock()
	defer e.lock.Unlock()
	found := e.records[syncTarget]
	return found != nil && found.version != ""
}

// acquire returns the record of a SyncTarget, which is made if there is none. The caller releases it.
func (e *Entries) acquire(syncTarget types.UID) *record {
	e.lock.Lock()
	defer e.lock.Unlock()
	found := e.records[syncTarget]
	if found == nil {
		found = &record{}
		e.records[syncTarget] = found
	}
	found.users++
	return found
}

// release ends the use of a record.
func (e *Entries) release(syncTarget types.UID, released *record) {
	e.lock.Lock()
	defer e.lock.Unlock()
	released.users--
	e.forgetUnused(syncTarget, released)
}

// forgetUnused forgets a record without a ConfigMap, without an entry that is still needed, and without a user. forgetUnused
// forgets no record during a list: the list may contain entries that were deleted after it began. The caller holds the lock.
func (e *Entries) forgetUnused(syncTarget types.UID, unused *record) {
	if e.listing || unused.users > 0 || unused.version != "" {
		return
	}
	if unused.entry.CleanedUp || reflect.ValueOf(unused.entry).IsZero() {
		delete(e.records, syncTarget)
	}
}

// set stores the entry of the given resourceVersion in a record. It reports whether that was done: it does not replace a newer
// version.
func (e *Entries) set(changed *record, entry Entry, version string) bool {
	e.lock.Lock()
	defer e.lock.Unlock()
	if !isNewer(version, changed.version) || changed.deletedAt != "" && !isNewer(version, changed.deletedAt) {
		return false
	}
	changed.entry, changed.version, changed.deletedAt = entry, version, ""
	if isNewer(version, e.highest) {
		e.highest = version
	}
	return true
}

// setWritten stores the written entry in a record, even if the ConfigMap was deleted since.
func (e *Entries) setWritten(changed *record, written Entry, version string) {
	if e.set(changed, written, version) {
		return
	}
	e.lock.Lock()
	defer e.lock.Unlock()
	if changed.version == "" && !changed.entry.CleanedUp {
		changed.entry = written
	}
}

// record stores an entry that was read, unless the record has a newer one.
func (e *Entries) record(syncTarget types.UID, entry Entry, version string) {
	found := e.acquire(syncTarget)
	defer e.release(syncTarget, found)
	if e.set(found, entry, version) {
		e.changes.Publish(syncTarget)
	}
}

// recordDeleted records that an entry was deleted at a resourceVersion, unless the record has a newer one. The leader deletes
// entries that are cleaned up, so these are forgotten. All other entries stay in memory, and the next [Store.Update] writes them
// again: without them the objects of the hub on a target would be unknown. A record in use stays; its writer notices the deletion
// by the failed write.
func (e *Entries) recordDeleted(syncTarget types.UID, version string) {
	e.lock.Lock()
	found := e.records[syncTarget]
	gone := found != nil && found.version != "" && !isNewer(found.version, version)
	if found != nil {
		found.deletedAt = version
	}
	if gone {
		found.version = ""
		e.forgetUnused(syncTarget, found)
	}
	e.lock.Unlock()
	if gone {
		e.changes.Publish(syncTarget)
	}
}

// recordOnly records that a list of the given resourceVersion contained only the listed entries.
func (e *Entries) recordOnly(listed map[types.UID]struct{}, version string) {
	var missing []types.UID
	e.Each(func(syncTarget types.UID, _ *Entry) {
		if _, ok := listed[syncTarget]; !ok {
			missing = append(missing, syncTarget)
		}
	})
	for _, syncTarget := range missing {
		e.recordDeleted(syncTarget, version)
	}
}

// state returns the entry in a record and the version of its ConfigMap. seen is the last version that the record has had.
func (e *Entries) state(of *record) (entry Entry, version, seen string) {
	e.lock.Lock()
	defer e.lock.Unlock()
	return of.entry, of.version, cmp.Or(of.version, of.deletedAt)
}

// modify changes a record under the lock.
func (e *Entries) modify(changed *record, change func(*record)) {
	e.lock.Lock()
	defer e.lock.Unlock()
	change(changed)
}

// beginList keeps all records until endList. It returns the highest resourceVersion of all records.
func (e *Entries) beginList() (highest string) {
	e.lock.Lock()
	defer e.lock.Unlock()
	e.listing = true
	return e.highest
}

// endList forgets the records that were kept during a list. began is when the list began; zero if it is not complete.
func (e *Entries) endList(began time.Time) {
	e.lock.Lock()
	defer e.lock.Unlock()
	e.listing = false
	if !began.IsZero() {
		e.listedSince = began
	}
	for syncTarget, kept := range e.records {
		e.forgetUnused(syncTarget, kept)
	}
}

// forgetVersions makes every entry that is read from now on newer than the entries in memory, because kcp was restored from a
// backup. now is kcp's current resourceVersion.
func (e *Entries) forgetVersions(now string) {
	e.lock.Lock()
	defer e.lock.Unlock()
	e.highest = now
	for _, found := range e.records {
		found.forgetVersion()
	}
}

// isFresh reports whether a complete list has begun since a time.
func (e *Entries) isFresh(since time.Time) bool {
	e.lock.Lock()
	defer e.lock.Unlock()
	return !e.listedSince.IsZero() && !e.listedSince.Before(since)
}

// Changes carries the SyncTargets whose entry another replica has changed or deleted. It may carry a change of this replica too.
func (e *Entries) Changes() *topic.Topic[types.UID] { return &e.changes }

// isNewer reports whether the resourceVersion one is later than other, which may be "". If they cannot be compared, any difference counts
// as later.
func isNewer(one, other string) bool {
	order, err := resourceversion.CompareResourceVersion(one, other)
	return order > 0 || err != nil && one != other
}

// wentBack reports whether kcp was restored from a backup: a read that is not outdated returned the resourceVersion now, and seen was read
// before.
func wentBack(seen, now string) bool {
	order, err := resourceversion.CompareResourceVersion(seen, now)
	return err == nil && order > 0
}
