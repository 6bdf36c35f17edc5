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
	"reflect"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// record is an entry with the state for writing it. The lock of the Store guards all fields but writeLock.
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

// acquireRecord returns the record of a SyncTarget, which is made if there is none. The caller releases it.
func (s *Store) acquireRecord(syncTarget types.UID) *record {
	s.lock.Lock()
	defer s.lock.Unlock()
	found := s.records[syncTarget]
	if found == nil {
		found = &record{}
		s.records[syncTarget] = found
	}
	found.users++
	return found
}

// releaseRecord ends the use of a record.
func (s *Store) releaseRecord(syncTarget types.UID, released *record) {
	s.lock.Lock()
	defer s.lock.Unlock()
	released.users--
	s.forgetUnused(syncTarget, released)
}

// forgetUnused forgets a record without a ConfigMap, without an entry that is still needed, and without a user. forgetUnused
// forgets no record during a list: the list may contain entries that were deleted after it began. The caller holds the lock.
func (s *Store) forgetUnused(syncTarget types.UID, unused *record) {
	if s.listing || unused.users > 0 || unused.version != "" {
		return
	}
	if unused.entry.CleanedUp || reflect.ValueOf(unused.entry).IsZero() {
		delete(s.records, syncTarget)
	}
}

// setRecord stores the entry of the given resourceVersion in a record. It reports whether that was done: it does not replace a newer
// version.
func (s *Store) setRecord(changed *record, entry Entry, version string) bool {
	s.lock.Lock()
	defer s.lock.Unlock()
	if !isNewer(version, changed.version) || changed.deletedAt != "" && !isNewer(version, changed.deletedAt) {
		return false
	}
	changed.entry, changed.version, changed.deletedAt = entry, version, ""
	if isNewer(version, s.highest) {
		s.highest = version
	}
	return true
}

// setWritten stores the written entry in a record, even if the ConfigMap was deleted since.
func (s *Store) setWritten(changed *record, written Entry, version string) {
	if s.setRecord(changed, written, version) {
		return
	}
	s.lock.Lock()
	defer s.lock.Unlock()
	if changed.version == "" && !changed.entry.CleanedUp {
		changed.entry = written
	}
}

// observe stores an entry that was read, unless the record has a newer one.
func (s *Store) observe(syncTarget types.UID, entry Entry, version string) {
	found := s.acquireRecord(syncTarget)
	defer s.releaseRecord(syncTarget, found)
	if s.setRecord(found, entry, version) {
		s.changes.Publish(syncTarget)
	}
}

// observeDeleted records that an entry was deleted at a resourceVersion, unless the record has a newer one. The leader deletes
// entries that are cleaned up, so these are forgotten. All other entries stay in memory, and the next [Store.Update] writes them
// again: without them the objects of the hub on a target would be unknown. A record in use stays; its writer notices the deletion
// by the failed write.
func (s *Store) observeDeleted(syncTarget types.UID, version string) {
	s.lock.Lock()
	found := s.records[syncTarget]
	gone := found != nil && found.version != "" && !isNewer(found.version, version)
	if found != nil {
		found.deletedAt = version
	}
	if gone {
		found.version = ""
		s.forgetUnused(syncTarget, found)
	}
	s.lock.Unlock()
	if gone {
		s.changes.Publish(syncTarget)
	}
}

// observeOnly records that a list of the given resourceVersion contained only the listed entries.
func (s *Store) observeOnly(listed map[types.UID]struct{}, version string) {
	var missing []types.UID
	s.Each(func(syncTarget types.UID, _ *Entry) {
		if _, ok := listed[syncTarget]; !ok {
			missing = append(missing, syncTarget)
		}
	})
	for _, syncTarget := range missing {
		s.observeDeleted(syncTarget, version)
	}
}

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
