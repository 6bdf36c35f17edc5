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
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/synchub-dev/synchub/provider/metrics/requestmetrics"
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
	// Namespace is that of the entries; [Namespace] if it is empty. An agent has its ledger in its own cluster.
	Namespace string
	// Client writes to the provider workspace, and Reader reads from it without a cache.
	Client client.Client
	Reader client.Reader
	// Shared lists and watches the entries if several replicas write them. With nil only the leader writes them, and reads them once.
	Shared client.WithWatch
	// Holder returns who this hub is; the zero Holder if the hub leads without a Lease. It may be nil.
	Holder func(ctx context.Context) (Holder, error)
	Clock  clock.WithTicker
	Log    logr.Logger
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
	// leaderVersion is the resourceVersion of leaderConfigMap, and holder this hub. Only Start uses them.
	leaderVersion string
	holder        Holder
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
	options.Namespace = cmp.Or(options.Namespace, Namespace)
	return &Store{Options: options, loaded: make(chan struct{}), records: map[types.UID]*record{}}
}

// NeedLeaderElection returns true: only the leader writes that it leads.
func (l *Store) NeedLeaderElection() bool { return true }

// Start reads all entries, unless a [Watcher] does. Then it writes regularly that this hub leads, until ctx ends. The error
// may be [ErrOtherHubActive].
func (l *Store) Start(ctx context.Context) error {
	if err := l.load(ctx); err != nil {
		return err
	}
	ticker := l.Clock.NewTicker(renewInterval)
	defer ticker.Stop()
	for {
		err := l.renewLeader(ctx)
		if errors.Is(err, ErrOtherHubActive) {
			return err
		}
		if err != nil && ctx.Err() == nil {
			l.Log.Info("cannot write that this hub leads; a restart will check every target anew", "error", err.Error())
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
		}
	}
}

// load waits for the end of another hub. Then it reads all entries, unless a [Watcher] does.
func (l *Store) load(ctx context.Context) error {
	var err error
	if l.holder, err = l.readHolder(ctx); err != nil {
		return err
	}
	renewTime, err := l.waitForPreviousHub(ctx)
	if err != nil {
		return err
	}
	if l.Shared != nil {
		l.setPreviousRenewTime(renewTime)
		return nil
	}
	records := map[types.UID]*record{}
	for next := ""; ; {
		var list corev1.ConfigMapList
		err := l.withTimeout(ctx, func(ctx context.Context) error {
			return l.Reader.List(ctx, &list, client.InNamespace(l.Namespace), client.HasLabels{syncTargetLabel}, client.Limit(pageSize), client.Continue(next))
		})
		if err != nil {
			return l.readError(err)
		}
		for i := range list.Items {
			stored := &list.Items[i]
			entry, err := decode(stored.Data[entryKey])
			if err != nil {
				return fmt.Errorf("the ledger entry in the ConfigMap %s/%s: %w", l.Namespace, stored.Name, err)
			}
			records[types.UID(stored.Name)] = &record{entry: entry, version: stored.ResourceVersion}
		}
		if next = list.Continue; next == "" {
			break
		}
	}
	l.lock.Lock()
	defer l.lock.Unlock()
	l.records, l.previousRenewTime = records, renewTime
	close(l.loaded)
	return nil
}

// readError says what to do if the ledger cannot be read.
func (l *Store) readError(err error) error {
	isMissing := apierrors.IsForbidden(err) || apierrors.IsNotFound(err)
	switch {
	case l.Namespace != Namespace && isMissing:
		return fmt.Errorf("the agent may not read its records in its namespace %s; apply its manifest again: %w", l.Namespace, err)
	case l.Namespace != Namespace:
		return fmt.Errorf("cannot read the agent's records in its namespace %s: %w", l.Namespace, err)
	case isMissing:
		return fmt.Errorf("the hub may not read its ledger in the namespace %s of the provider workspace; run `synchub init` again as its administrator: %w", Namespace, err)
	default:
		return fmt.Errorf("cannot read the hub's ledger in the provider workspace: %w", err)
	}
}

// WaitForLoad waits until Start, or the [Watcher], has read all entries. If ctx ends first, it returns the error of ctx.
func (l *Store) WaitForLoad(ctx context.Context) error {
	select {
	case <-l.loaded:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (l *Store) setPreviousRenewTime(renewTime time.Time) {
	l.lock.Lock()
	defer l.lock.Unlock()
	l.previousRenewTime = renewTime
}

// PreviousRenewTime returns the last renew time of the leader before this replica led, or zero if there is none. On a replica that does
// not lead it is that of the leader when its [Watcher] had read all entries.
func (l *Store) PreviousRenewTime() time.Time {
	l.lock.Lock()
	defer l.lock.Unlock()
	return l.previousRenewTime
}

// SyncTargets returns the UIDs of all SyncTargets with an entry. loaded is false until Start has read all entries.
func (l *Store) SyncTargets() (all []types.UID, loaded bool) {
	if !l.IsLoaded() {
		return nil, false
	}
	l.lock.Lock()
	defer l.lock.Unlock()
	for syncTarget, found := range l.records {
		if l.Shared == nil || found.version != "" {
			all = append(all, syncTarget)
		}
	}
	return all, true
}

// Each calls visit for each SyncTarget with an entry. visit must not block, nor call the Store, nor change or keep the entry.
func (l *Store) Each(visit func(types.UID, *Entry)) {
	l.lock.Lock()
	defer l.lock.Unlock()
	for syncTarget, found := range l.records {
		if found.version != "" {
			visit(syncTarget, &found.entry)
		}
	}
}

// Get returns the entry of a SyncTarget, or the zero entry if there is none.
func (l *Store) Get(syncTarget types.UID) Entry {
	l.lock.Lock()
	defer l.lock.Unlock()
	if found := l.records[syncTarget]; found != nil {
		return found.entry
	}
	return Entry{}
}

// Has reports whether a SyncTarget has an entry.
func (l *Store) Has(syncTarget types.UID) bool { return l.versionOf(syncTarget) != "" }

// Read reads the entry of a SyncTarget from the provider workspace; the zero entry if there is none. A replica that has not loaded the
// entries uses it, and [Store.Get] returns the entry from then on. A replica that is the new holder of a SyncTarget in a shared Store
// uses it, so that the entry is not older than the last write of the former holder.
func (l *Store) Read(ctx context.Context, syncTarget types.UID) (Entry, error) {
	before := l.versionOf(syncTarget)
	var stored corev1.ConfigMap
	err := l.withTimeout(ctx, func(ctx context.Context) error {
		return l.Reader.Get(ctx, types.NamespacedName{Namespace: l.Namespace, Name: string(syncTarget)}, &stored)
	})
	if client.IgnoreNotFound(err) != nil {
		return Entry{}, l.readError(err)
	}
	entry, found := Entry{}, err == nil
	if found {
		if entry, err = decode(stored.Data[entryKey]); err != nil {
			return Entry{}, fmt.Errorf("the ledger entry in the ConfigMap %s/%s: %w", l.Namespace, syncTarget, err)
		}
	}
	if l.Shared != nil {
		if found {
			l.observe(syncTarget, entry, stored.ResourceVersion)
		} else {
			l.observeMissing(syncTarget, before)
		}
		return l.Get(syncTarget), nil
	}
	l.lock.Lock()
	defer l.lock.Unlock()
	if l.IsLoaded() {
		return entry, nil
	}
	if found {
		l.records[syncTarget] = &record{entry: entry, version: stored.ResourceVersion}
	} else {
		delete(l.records, syncTarget)
	}
	return entry, nil
}

// IsLoaded reports whether all entries have been read.
func (l *Store) IsLoaded() bool {
	select {
	case <-l.loaded:
		return true
	default:
		return false
	}
}

// Update changes the entry of a SyncTarget, and returns when the entry is stored. If change does not change the entry,
// Update sends no request. After a conflict, Update calls change again. If somebody has deleted the ConfigMap, Update
// creates it again; but not in a shared Store for a SyncTarget that is cleaned up, since the leader deletes its entry.
func (l *Store) Update(ctx context.Context, syncTarget types.UID, change func(*Entry)) error {
	return l.update(ctx, syncTarget, change, true)
}

// UpdateExisting is like Update, but does nothing if there is no entry.
func (l *Store) UpdateExisting(ctx context.Context, syncTarget types.UID, change func(*Entry)) error {
	return l.update(ctx, syncTarget, change, false)
}

func (l *Store) update(ctx context.Context, syncTarget types.UID, change func(*Entry), mayCreate bool) error {
	record := l.acquireRecord(syncTarget)
	defer l.releaseRecord(syncTarget, record)
	record.writeLock.Lock()
	defer record.writeLock.Unlock()
	var err error
	for range maxAttempts {
		l.lock.Lock()
		current, version := record.entry, record.version
		l.lock.Unlock()
		if version == "" && (!mayCreate || l.Shared != nil && current.CleanedUp) {
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
		if version, err = l.writeEntry(ctx, syncTarget, after, version); err == nil {
			l.setWritten(record, next, version)
			return nil
		}
		if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) && !apierrors.IsNotFound(err) {
			break
		}
		// Another hub that leads, or believes that it leads, has written the entry.
		if err := l.refreshRecord(ctx, syncTarget, record); err != nil {
			return err
		}
	}
	return fmt.Errorf("cannot store the ledger entry of the SyncTarget %s: %w", syncTarget, err)
}

// Delete deletes the entry of a SyncTarget.
func (l *Store) Delete(ctx context.Context, syncTarget types.UID) error {
	if l.Shared == nil && !l.hasRecord(syncTarget) {
		return nil
	}
	found := l.acquireRecord(syncTarget)
	defer l.releaseRecord(syncTarget, found)
	found.writeLock.Lock()
	defer found.writeLock.Unlock()
	stored := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: l.Namespace, Name: string(syncTarget)}}
	err := l.withTimeout(ctx, func(ctx context.Context) error { return l.Client.Delete(ctx, stored) })
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cannot delete the ledger entry of the SyncTarget %s: %w", syncTarget, err)
	}
	l.lock.Lock()
	defer l.lock.Unlock()
	if l.Shared == nil {
		delete(l.records, syncTarget)
		return nil
	}
	found.entry, found.version = Entry{}, ""
	return nil
}

// setWritten stores what was written in a record, also if somebody has deleted the ConfigMap since.
func (l *Store) setWritten(changed *record, written Entry, version string) {
	if l.setRecord(changed, written, version) {
		return
	}
	l.lock.Lock()
	defer l.lock.Unlock()
	if changed.version == "" && !changed.entry.CleanedUp {
		changed.entry = written
	}
}

func (l *Store) hasRecord(syncTarget types.UID) bool {
	l.lock.Lock()
	defer l.lock.Unlock()
	return l.records[syncTarget] != nil
}

// versionOf returns the resourceVersion of an entry, or "" if there is none.
func (l *Store) versionOf(syncTarget types.UID) string {
	l.lock.Lock()
	defer l.lock.Unlock()
	if found := l.records[syncTarget]; found != nil {
		return found.version
	}
	return ""
}

// acquireRecord returns the record of a SyncTarget, which is made if there is none. The caller releases it.
func (l *Store) acquireRecord(syncTarget types.UID) *record {
	l.lock.Lock()
	defer l.lock.Unlock()
	found := l.records[syncTarget]
	if found == nil {
		found = &record{}
		l.records[syncTarget] = found
	}
	found.users++
	return found
}

// releaseRecord ends the use of a record.
func (l *Store) releaseRecord(syncTarget types.UID, released *record) {
	l.lock.Lock()
	defer l.lock.Unlock()
	released.users--
	l.forgetUnused(syncTarget, released)
}

// forgetUnused forgets the record of a shared Store if it has no ConfigMap, no entry that is still needed, and no user. The caller holds the lock.
func (l *Store) forgetUnused(syncTarget types.UID, unused *record) {
	if l.Shared == nil || unused.users > 0 || unused.version != "" {
		return
	}
	if unused.entry.CleanedUp || reflect.ValueOf(unused.entry).IsZero() {
		delete(l.records, syncTarget)
	}
}

// setRecord stores the entry of the given resourceVersion in a record. It reports whether that was done: a shared Store does not replace a
// newer version.
func (l *Store) setRecord(changed *record, entry Entry, version string) bool {
	l.lock.Lock()
	defer l.lock.Unlock()
	if l.Shared != nil && (!isNewer(version, changed.version) || changed.deletedAt != "" && !isNewer(version, changed.deletedAt)) {
		return false
	}
	changed.entry, changed.version, changed.deletedAt = entry, version, ""
	return true
}

// writeEntry stores an encoded entry and returns the new resourceVersion. version is the expected resourceVersion, or ""
// to create the ConfigMap.
func (l *Store) writeEntry(ctx context.Context, syncTarget types.UID, entry, version string) (string, error) {
	stored := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: l.Namespace, Name: string(syncTarget), Labels: map[string]string{syncTargetLabel: "true"}, ResourceVersion: version},
		Data:       map[string]string{entryKey: entry},
	}
	err := l.withTimeout(ctx, func(ctx context.Context) error {
		if version == "" {
			return l.Client.Create(ctx, stored)
		}
		return l.Client.Update(ctx, stored)
	})
	return stored.ResourceVersion, err
}

// refreshRecord reads an entry again after a conflict.
func (l *Store) refreshRecord(ctx context.Context, syncTarget types.UID, changed *record) error {
	var stored corev1.ConfigMap
	err := l.withTimeout(ctx, func(ctx context.Context) error {
		return l.Reader.Get(ctx, types.NamespacedName{Namespace: l.Namespace, Name: string(syncTarget)}, &stored)
	})
	if apierrors.IsNotFound(err) {
		// Somebody has deleted the ConfigMap. The entry in memory is still valid, so the next attempt creates the ConfigMap.
		l.Log.Info("the ledger entry of a SyncTarget was deleted in the provider workspace; the hub writes it again", "syncTargetUID", syncTarget)
		l.lock.Lock()
		defer l.lock.Unlock()
		changed.version = ""
		return nil
	}
	if err != nil {
		return l.readError(err)
	}
	entry, err := decode(stored.Data[entryKey])
	if err != nil {
		return err
	}
	if l.setRecord(changed, entry, stored.ResourceVersion) {
		l.changes.publish(syncTarget)
	}
	return nil
}

func (l *Store) withTimeout(ctx context.Context, request func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(requestmetrics.WithClass(ctx, requestmetrics.Background), requestTimeout)
	defer cancel()
	return request(ctx)
}
