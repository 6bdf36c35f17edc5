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
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/synchub-dev/synchub/provider/metrics/requestmetrics"
	"github.com/synchub-dev/synchub/provider/storehistory"
)

const (
	// Namespace is the namespace of the hub's ledger in the provider workspace.
	Namespace = "synchub-ledger"
	// syncTargetLabel is "true" on the ConfigMap of each SyncTarget.
	syncTargetLabel = "synchub.dev/synctarget"
	// entryKey is the key of the entry in its ConfigMap.
	entryKey = "entry"
	// requestTimeout is the timeout of each request.
	requestTimeout = 30 * time.Second
	// pageSize is the number of entries in a page of a list.
	pageSize = 500
	// maxAttempts is the maximum number of writes for one change, if another hub changes the entry at the same time.
	maxAttempts = 3
)

// Options configure a [Store].
type Options struct {
	// Client writes to the provider workspace, and Reader reads from it without a cache.
	Client client.Client
	Reader client.Reader
	// WatchClient lists and watches the entries if several replicas write them: the Store is shared then. With nil only the leader
	// writes them, and reads them once.
	WatchClient client.WithWatch
	// Identity returns the identity of this hub; it is zero if the hub leads without a Lease. Identity may be nil.
	Identity func(ctx context.Context) (HubIdentity, error)
	// History is loaded before the entries, and notices if the ledger went back with kcp; nil does not.
	History *storehistory.Guard
	Clock   clock.WithTicker
	Log     logr.Logger
}

// Store holds all entries in memory and writes their changes to the provider workspace. Only the leader starts it. If only
// the leader writes the entries, it reads them once. If they are shared, each replica starts a [Watcher], which keeps them up to date.
type Store struct {
	Options
	loaded  chan struct{}
	changes subscribers

	lock              sync.Mutex
	records           map[types.UID]*record
	previousRenewTime time.Time
	// leaderVersion is the resourceVersion of leaderConfigMap, and self identifies this hub. Only Start uses them. ledVersion is the
	// version of this hub's last write.
	leaderVersion string
	self          HubIdentity
	ledVersion    atomic.Uint64
}

// record is an entry with the state for writing it.
type record struct {
	// writeLock is held during the request that writes the entry.
	writeLock sync.Mutex
	// entry and version are guarded by the lock of the Store. version is the resourceVersion of the ConfigMap, or "" if there
	// is no ConfigMap.
	entry   Entry
	version string
	// users counts the callers that write the entry, or wait for that. A shared Store keeps the record while there are some, and forgets
	// then a record without a ConfigMap. deletedAt is the resourceVersion at which somebody deleted the ConfigMap meanwhile.
	users     int
	deletedAt string
}

// New returns a Store, which is empty until Start has read the entries.
func New(options Options) *Store {
	return &Store{Options: options, loaded: make(chan struct{}), records: map[types.UID]*record{}}
}

// IsShared reports whether several replicas write the entries.
func (s *Store) IsShared() bool { return s.WatchClient != nil }

// NeedLeaderElection returns true: only the leader writes that it leads.
func (s *Store) NeedLeaderElection() bool { return true }

// Start reads all entries, unless a [Watcher] does. Then it writes regularly that this hub leads, until ctx ends. The error
// may be [ErrOtherHubActive].
func (s *Store) Start(ctx context.Context) error {
	if err := s.load(ctx); err != nil {
		return err
	}
	defer s.History.Track(storehistory.LedgerSource, s.ledVersion.Load)()
	ticker := s.Clock.NewTicker(renewInterval)
	defer ticker.Stop()
	for {
		err := s.renewLeader(ctx)
		if errors.Is(err, ErrOtherHubActive) {
			return err
		}
		if err != nil && ctx.Err() == nil {
			s.Log.Info("cannot write that this hub leads; a restart will check every target anew", "error", err.Error())
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
		}
	}
}

// load waits for the end of another hub. Then it reads all entries, unless a [Watcher] does.
func (s *Store) load(ctx context.Context) error {
	var err error
	if s.self, err = s.readIdentity(ctx); err != nil {
		return err
	}
	renewTime, err := s.waitForPreviousHub(ctx)
	if err != nil {
		return err
	}
	s.History.Check(storehistory.LedgerSource, s.leaderDescription(), storehistory.ParseVersion(s.leaderVersion))
	if err := s.History.Load(ctx); err != nil {
		return err
	}
	if s.IsShared() {
		s.setPreviousRenewTime(renewTime)
		return nil
	}
	records := map[types.UID]*record{}
	for next := ""; ; {
		var list corev1.ConfigMapList
		err := s.withTimeout(ctx, func(ctx context.Context) error {
			return s.Reader.List(ctx, &list, client.InNamespace(Namespace), client.HasLabels{syncTargetLabel}, client.Limit(pageSize), client.Continue(next))
		})
		if err != nil {
			return s.readError(err)
		}
		for i := range list.Items {
			stored := &list.Items[i]
			entry, err := s.decodeStored(stored)
			if err != nil {
				return err
			}
			records[types.UID(stored.Name)] = &record{entry: entry, version: stored.ResourceVersion}
		}
		if next = list.Continue; next == "" {
			break
		}
	}
	s.lock.Lock()
	defer s.lock.Unlock()
	s.records, s.previousRenewTime = records, renewTime
	close(s.loaded)
	return nil
}

// readError says what to do if the ledger cannot be read.
func (s *Store) readError(err error) error {
	isMissing := apierrors.IsForbidden(err) || apierrors.IsNotFound(err)
	switch {
	case isMissing:
		return fmt.Errorf("the hub may not read its ledger in the namespace %s of the provider workspace; run `synchub init` again as its administrator: %w", Namespace, err)
	default:
		return fmt.Errorf("cannot read the hub's ledger in the provider workspace: %w", err)
	}
}

// WaitForLoad waits until Start, or the [Watcher], has read all entries. If ctx ends first, it returns the error of ctx.
func (s *Store) WaitForLoad(ctx context.Context) error {
	select {
	case <-s.loaded:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *Store) setPreviousRenewTime(renewTime time.Time) {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.previousRenewTime = renewTime
}

// PreviousRenewTime returns the last renew time of the leader before this replica led, or zero if there is none. On a replica that does
// not lead it is that of the leader when its [Watcher] had read all entries.
func (s *Store) PreviousRenewTime() time.Time {
	s.lock.Lock()
	defer s.lock.Unlock()
	return s.previousRenewTime
}

// SyncTargets returns the UIDs of all SyncTargets with an entry. loaded is false until Start has read all entries.
func (s *Store) SyncTargets() (all []types.UID, loaded bool) {
	if !s.IsLoaded() {
		return nil, false
	}
	s.lock.Lock()
	defer s.lock.Unlock()
	for syncTarget, found := range s.records {
		if !s.IsShared() || found.version != "" {
			all = append(all, syncTarget)
		}
	}
	return all, true
}

// Each calls visit for each SyncTarget with an entry. visit must not block, nor call the Store, nor change or keep the entry.
func (s *Store) Each(visit func(types.UID, *Entry)) {
	s.lock.Lock()
	defer s.lock.Unlock()
	for syncTarget, found := range s.records {
		if found.version != "" {
			visit(syncTarget, &found.entry)
		}
	}
}

// Get returns the entry of a SyncTarget, or the zero entry if there is none.
func (s *Store) Get(syncTarget types.UID) Entry {
	s.lock.Lock()
	defer s.lock.Unlock()
	if found := s.records[syncTarget]; found != nil {
		return found.entry
	}
	return Entry{}
}

// Has reports whether a SyncTarget has an entry.
func (s *Store) Has(syncTarget types.UID) bool { return s.versionOf(syncTarget) != "" }

// Read reads the entry of a SyncTarget from the provider workspace; the zero entry if there is none. A replica that has not loaded the
// entries uses it, and [Store.Get] returns the entry from then on. A replica that is the new owner of a SyncTarget in a shared Store
// uses it, so that the entry is not older than the last write of the former owner.
func (s *Store) Read(ctx context.Context, syncTarget types.UID) (Entry, error) {
	before := s.versionOf(syncTarget)
	var stored corev1.ConfigMap
	err := s.getConfigMap(ctx, string(syncTarget), &stored)
	if client.IgnoreNotFound(err) != nil {
		return Entry{}, s.readError(err)
	}
	entry, found := Entry{}, err == nil
	if found {
		if entry, err = s.decodeStored(&stored); err != nil {
			return Entry{}, err
		}
	}
	if s.IsShared() {
		if found {
			s.observe(syncTarget, entry, stored.ResourceVersion)
		} else {
			s.observeMissing(syncTarget, before)
		}
		return s.Get(syncTarget), nil
	}
	s.lock.Lock()
	defer s.lock.Unlock()
	if s.IsLoaded() {
		return entry, nil
	}
	if found {
		s.records[syncTarget] = &record{entry: entry, version: stored.ResourceVersion}
	} else {
		delete(s.records, syncTarget)
	}
	return entry, nil
}

// IsLoaded reports whether all entries have been read.
func (s *Store) IsLoaded() bool {
	select {
	case <-s.loaded:
		return true
	default:
		return false
	}
}

// Update changes the entry of a SyncTarget, and returns when the entry is stored. If change does not change the entry,
// Update sends no request. After a conflict, Update calls change again. If somebody has deleted the ConfigMap, Update
// creates it again; but not in a shared Store for a SyncTarget that is cleaned up, since the leader deletes its entry.
func (s *Store) Update(ctx context.Context, syncTarget types.UID, change func(*Entry)) error {
	return s.update(ctx, syncTarget, change, true)
}

// UpdateExisting is like Update, but does nothing if there is no entry.
func (s *Store) UpdateExisting(ctx context.Context, syncTarget types.UID, change func(*Entry)) error {
	return s.update(ctx, syncTarget, change, false)
}

func (s *Store) update(ctx context.Context, syncTarget types.UID, change func(*Entry), mayCreate bool) error {
	record := s.acquireRecord(syncTarget)
	defer s.releaseRecord(syncTarget, record)
	record.writeLock.Lock()
	defer record.writeLock.Unlock()
	var err error
	for range maxAttempts {
		s.lock.Lock()
		current, version := record.entry, record.version
		s.lock.Unlock()
		if version == "" && (!mayCreate || s.IsShared() && current.CleanedUp) {
			return nil
		}
		next := current.clone()
		change(&next)
		before, beforeErr := current.encode()
		after, afterErr := next.encode()
		if err := errors.Join(beforeErr, afterErr); err != nil {
			return fmt.Errorf("cannot encode the ledger entry of the SyncTarget %s: %w", syncTarget, err)
		}
		if before == after && (version != "" || after == emptyEntry) {
			return nil
		}
		if version, err = s.writeEntry(ctx, syncTarget, after, version); err == nil {
			s.setWritten(record, next, version)
			return nil
		}
		if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) && !apierrors.IsNotFound(err) {
			break
		}
		// Another hub that leads, or believes that it leads, has written the entry.
		if err := s.refreshRecord(ctx, syncTarget, record); err != nil {
			return err
		}
	}
	return fmt.Errorf("cannot store the ledger entry of the SyncTarget %s: %w", syncTarget, err)
}

// Delete deletes the entry of a SyncTarget.
func (s *Store) Delete(ctx context.Context, syncTarget types.UID) error {
	if !s.IsShared() && !s.hasRecord(syncTarget) {
		return nil
	}
	found := s.acquireRecord(syncTarget)
	defer s.releaseRecord(syncTarget, found)
	found.writeLock.Lock()
	defer found.writeLock.Unlock()
	stored := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: string(syncTarget)}}
	err := s.withTimeout(ctx, func(ctx context.Context) error { return s.Client.Delete(ctx, stored) })
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cannot delete the ledger entry of the SyncTarget %s: %w", syncTarget, err)
	}
	s.lock.Lock()
	defer s.lock.Unlock()
	if !s.IsShared() {
		delete(s.records, syncTarget)
		return nil
	}
	found.entry, found.version = Entry{}, ""
	return nil
}

// setWritten stores what was written in a record, also if somebody has deleted the ConfigMap since.
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

func (s *Store) hasRecord(syncTarget types.UID) bool {
	s.lock.Lock()
	defer s.lock.Unlock()
	return s.records[syncTarget] != nil
}

// versionOf returns the resourceVersion of an entry, or "" if there is none.
func (s *Store) versionOf(syncTarget types.UID) string {
	s.lock.Lock()
	defer s.lock.Unlock()
	if found := s.records[syncTarget]; found != nil {
		return found.version
	}
	return ""
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

// forgetUnused forgets the record of a shared Store if it has no ConfigMap, no entry that is still needed, and no user. The caller holds the lock.
func (s *Store) forgetUnused(syncTarget types.UID, unused *record) {
	if !s.IsShared() || unused.users > 0 || unused.version != "" {
		return
	}
	if unused.entry.CleanedUp || reflect.ValueOf(unused.entry).IsZero() {
		delete(s.records, syncTarget)
	}
}

// setRecord stores the entry of the given resourceVersion in a record. It reports whether that was done: a shared Store does not replace a
// newer version.
func (s *Store) setRecord(changed *record, entry Entry, version string) bool {
	s.lock.Lock()
	defer s.lock.Unlock()
	if s.IsShared() && (!isNewer(version, changed.version) || changed.deletedAt != "" && !isNewer(version, changed.deletedAt)) {
		return false
	}
	changed.entry, changed.version, changed.deletedAt = entry, version, ""
	return true
}

// writeEntry stores an encoded entry and returns the new resourceVersion. version is the expected resourceVersion, or ""
// to create the ConfigMap.
func (s *Store) writeEntry(ctx context.Context, syncTarget types.UID, entry, version string) (string, error) {
	stored := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: string(syncTarget), Labels: map[string]string{syncTargetLabel: "true"}, ResourceVersion: version},
		Data:       map[string]string{entryKey: entry},
	}
	err := s.withTimeout(ctx, func(ctx context.Context) error {
		if version == "" {
			return s.Client.Create(ctx, stored)
		}
		return s.Client.Update(ctx, stored)
	})
	return stored.ResourceVersion, err
}

// refreshRecord reads an entry again after a conflict.
func (s *Store) refreshRecord(ctx context.Context, syncTarget types.UID, changed *record) error {
	var stored corev1.ConfigMap
	err := s.getConfigMap(ctx, string(syncTarget), &stored)
	if apierrors.IsNotFound(err) {
		// Somebody has deleted the ConfigMap. The entry in memory is still valid, so the next attempt creates the ConfigMap.
		s.Log.Info("the ledger entry of a SyncTarget was deleted in the provider workspace; the hub writes it again", "syncTargetUID", syncTarget)
		s.lock.Lock()
		defer s.lock.Unlock()
		changed.version = ""
		return nil
	}
	if err != nil {
		return s.readError(err)
	}
	entry, err := s.decodeStored(&stored)
	if err != nil {
		return err
	}
	if s.setRecord(changed, entry, stored.ResourceVersion) {
		s.changes.publish(syncTarget)
	}
	return nil
}

// getConfigMap reads a ConfigMap of the ledger without a cache.
func (s *Store) getConfigMap(ctx context.Context, name string, into *corev1.ConfigMap) error {
	return s.withTimeout(ctx, func(ctx context.Context) error {
		return s.Reader.Get(ctx, types.NamespacedName{Namespace: Namespace, Name: name}, into)
	})
}

// decodeStored returns the entry in a ConfigMap of the ledger.
func (s *Store) decodeStored(stored *corev1.ConfigMap) (Entry, error) {
	entry, err := decode(stored.Data[entryKey])
	if err != nil {
		return Entry{}, fmt.Errorf("the ledger entry in the ConfigMap %s/%s: %w", Namespace, stored.Name, err)
	}
	return entry, nil
}

func (s *Store) withTimeout(ctx context.Context, request func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(requestmetrics.WithClass(ctx, requestmetrics.Background), requestTimeout)
	defer cancel()
	return request(ctx)
}
