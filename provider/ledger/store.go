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
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/singleflight"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/synchub-dev/synchub/provider/requestclass"
	"github.com/synchub-dev/synchub/provider/storehistory"
	"github.com/synchub-dev/synchub/provider/topic"
)

const (
	// Namespace is the namespace of the hub's ledger in the provider workspace.
	Namespace = "synchub-ledger"
	// ledgerLabel is on the ConfigMaps that replicas watch: it is labelSyncTarget on a SyncTarget's, and labelLeader on leaderConfigMap.
	ledgerLabel, labelSyncTarget, labelLeader = "synchub.dev/synctarget", "true", "leader"
	// entryKey is the key of the entry in its ConfigMap.
	entryKey = "entry"
	// requestTimeout is the timeout of each request.
	requestTimeout = 30 * time.Second
	// pageSize is the number of entries in a page of a list.
	pageSize = 500
	// maxAttempts is the maximum number of writes for one change, if another replica changes the entry at the same time.
	maxAttempts = 3
)

// Options configure a [Store].
type Options struct {
	// ConfigMaps reads and writes the ConfigMaps of [Namespace] in the provider workspace.
	ConfigMaps corev1client.ConfigMapInterface
	// Elected is closed once this replica leads. Nil stands for a replica that always leads.
	Elected <-chan struct{}
	// LeaderOnly is true if a replica that does not lead does not need the entries.
	LeaderOnly bool
	// Identity returns the identity of this hub; it is zero if the hub leads without a Lease. Identity may be nil.
	Identity func(ctx context.Context) (HubIdentity, error)
	// History is loaded before the entries, and detects that the ledger went back with kcp; with nil nothing detects that.
	History *storehistory.Guard
	Clock   clock.WithTicker
	Log     logr.Logger
}

// Store has the entries of all SyncTargets. A watch keeps them up to date on every replica, and a replica's own writes count at once:
// an event never replaces a newer entry. All methods may be called concurrently.
type Store struct {
	Options
	changes topic.Topic[types.UID]
	// lists joins the callers of EnsureFresh that wait for the same list.
	lists singleflight.Group
	// followed is closed once the entries are loaded on a replica that does not lead, and led once they are loaded on the leader.
	followed, led chan struct{}
	// leaderChanged has a value after the watch has shown another version of leaderConfigMap, or all entries. watchFailed has
	// the error that keeps the watch from showing the entries.
	leaderChanged chan struct{}
	watchFailed   chan error

	// self identifies this hub, and leaderVersion is the resourceVersion of leaderConfigMap. Only Start uses them. ledVersion is the
	// version of this hub's last write of it.
	self          HubIdentity
	leaderVersion string
	ledVersion    atomic.Uint64

	lock    sync.Mutex
	records map[types.UID]*record
	// highest is the highest resourceVersion of all records.
	highest string
	// listing is true while entries are listed, and listedSince is when the last complete list began.
	listing     bool
	listedSince time.Time
	// watched is true once the watch has shown all entries, and watchedLeader is the leaderConfigMap that it has shown last.
	watched           bool
	watchedLeader     leaderRecord
	previousRenewTime time.Time
}

// New returns a Store, which is empty until Start has read the entries.
func New(options Options) *Store {
	return &Store{
		Options: options, records: map[types.UID]*record{}, followed: make(chan struct{}), led: make(chan struct{}),
		leaderChanged: make(chan struct{}, 1), watchFailed: make(chan error, 1),
	}
}

// NeedLeaderElection implements [manager.LeaderElectionRunnable] of controller-runtime.
func (s *Store) NeedLeaderElection() bool { return s.LeaderOnly }

// Start watches the entries until ctx ends. Once this replica leads, it also writes regularly that it does. The error may be
// [ErrOtherHubActive].
func (s *Store) Start(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	running.Go(func() { s.newReflector().RunWithContext(ctx) })
	if err := s.follow(ctx); err != nil || ctx.Err() != nil {
		return err
	}
	return s.lead(ctx)
}

// readError adds advice for the operator to an error of reading the ledger.
func (s *Store) readError(err error) error {
	if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
		return fmt.Errorf("the hub may not read its ledger in the namespace %s of the provider workspace; run `synchub init` again as its administrator: %w", Namespace, err)
	}
	return fmt.Errorf("cannot read the hub's ledger in the provider workspace: %w", err)
}

func (s *Store) leads() bool { return s.Elected == nil || isClosed(s.Elected) }

// loaded returns the channel that is closed once the entries are loaded. A replica that has become the leader loads them again.
func (s *Store) loaded() <-chan struct{} {
	if s.leads() {
		return s.led
	}
	return s.followed
}

// IsLoaded reports whether all entries have been read.
func (s *Store) IsLoaded() bool { return isClosed(s.loaded()) }

// WaitForLoad waits until all entries have been read, on the leader since it leads. If ctx ends first, it returns the error of ctx.
func (s *Store) WaitForLoad(ctx context.Context) error {
	for !s.IsLoaded() {
		select {
		case <-s.loaded():
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// isClosed reports whether a channel that carries no values is closed.
func isClosed(channel <-chan struct{}) bool {
	select {
	case <-channel:
		return true
	default:
		return false
	}
}

// PreviousRenewTime returns the last renew time of the leader before this replica led, or zero if there is none. On a replica that
// does not lead, it is the leader's when the entries were loaded.
func (s *Store) PreviousRenewTime() time.Time {
	s.lock.Lock()
	defer s.lock.Unlock()
	return s.previousRenewTime
}

func (s *Store) setPreviousRenewTime(renewTime time.Time) {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.previousRenewTime = renewTime
}

// SyncTargets returns the UIDs of all SyncTargets with an entry. loaded is false until all entries have been read.
func (s *Store) SyncTargets() (all []types.UID, loaded bool) {
	if !s.IsLoaded() {
		return nil, false
	}
	s.Each(func(syncTarget types.UID, _ *Entry) { all = append(all, syncTarget) })
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

// Has reports whether a SyncTarget has an entry. It is false while [Store.Get] returns an entry whose ConfigMap was deleted.
func (s *Store) Has(syncTarget types.UID) bool {
	s.lock.Lock()
	defer s.lock.Unlock()
	found := s.records[syncTarget]
	return found != nil && found.version != ""
}

// Update changes the entry of a SyncTarget, and returns when the entry is stored. If change does not change the entry, Update
// sends no request. After a conflict, Update calls change again. If the ConfigMap was deleted, Update creates it again, but not
// for a SyncTarget that is cleaned up, since the leader deletes its entry.
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
		current, version, seen := record.entry, record.version, cmp.Or(record.version, record.deletedAt)
		s.lock.Unlock()
		if version == "" && (!mayCreate || current.CleanedUp) {
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
		var written string
		if written, err = s.writeEntry(ctx, syncTarget, after, version); err == nil {
			s.setWritten(record, next, written)
			return nil
		}
		if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) && !apierrors.IsNotFound(err) {
			break
		}
		// Another replica, or a hub that still considers itself the leader, has written the entry.
		if err := s.refreshRecord(ctx, syncTarget, record, seen); err != nil {
			return err
		}
	}
	return fmt.Errorf("cannot store the ledger entry of the SyncTarget %s: %w", syncTarget, err)
}

// Delete deletes the entry of a SyncTarget. It marks the entry as cleaned up first, unless it is: other replicas keep entries
// that another client deletes.
func (s *Store) Delete(ctx context.Context, syncTarget types.UID) error {
	if err := s.UpdateExisting(ctx, syncTarget, func(entry *Entry) { entry.CleanedUp = true }); err != nil {
		return err
	}
	found := s.acquireRecord(syncTarget)
	defer s.releaseRecord(syncTarget, found)
	found.writeLock.Lock()
	defer found.writeLock.Unlock()
	err := s.withTimeout(ctx, func(ctx context.Context) error {
		return s.ConfigMaps.Delete(ctx, string(syncTarget), metav1.DeleteOptions{})
	})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cannot delete the ledger entry of the SyncTarget %s: %w", syncTarget, err)
	}
	s.lock.Lock()
	defer s.lock.Unlock()
	found.entry, found.version = Entry{}, ""
	return nil
}

// writeEntry stores an encoded entry and returns the new resourceVersion. version is the expected resourceVersion, or ""
// to create the ConfigMap.
func (s *Store) writeEntry(ctx context.Context, syncTarget types.UID, entry, version string) (string, error) {
	return s.write(ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: string(syncTarget), Labels: map[string]string{ledgerLabel: labelSyncTarget}, ResourceVersion: version},
		Data:       map[string]string{entryKey: entry},
	})
}

// write creates a ConfigMap without a resourceVersion, and updates one with it. It returns the new resourceVersion.
func (s *Store) write(ctx context.Context, desired *corev1.ConfigMap) (version string, err error) {
	err = s.withTimeout(ctx, func(ctx context.Context) error {
		var written *corev1.ConfigMap
		var err error
		if desired.ResourceVersion == "" {
			written, err = s.ConfigMaps.Create(ctx, desired, metav1.CreateOptions{})
		} else {
			written, err = s.ConfigMaps.Update(ctx, desired, metav1.UpdateOptions{})
		}
		if err == nil {
			version = written.ResourceVersion
		}
		return err
	})
	return version, err
}

// refreshRecord reads an entry again after a conflict. seen is the last resourceVersion before that.
func (s *Store) refreshRecord(ctx context.Context, syncTarget types.UID, changed *record, seen string) error {
	stored, err := s.getConfigMap(ctx, string(syncTarget))
	if apierrors.IsNotFound(err) {
		// The ConfigMap was deleted. The entry in memory is still valid, so the next attempt creates the ConfigMap.
		s.Log.Info("the ledger entry of a SyncTarget was deleted in the provider workspace; the hub writes it again", "syncTargetUID", syncTarget)
		s.lock.Lock()
		defer s.lock.Unlock()
		changed.version = ""
		return nil
	}
	if err != nil {
		return s.readError(err)
	}
	entry, err := decodeStored(stored)
	if err != nil {
		return err
	}
	if wentBack(seen, stored.ResourceVersion) {
		s.lock.Lock()
		changed.forgetVersion()
		s.lock.Unlock()
	}
	if s.setRecord(changed, entry, stored.ResourceVersion) {
		s.changes.Publish(syncTarget)
	}
	return nil
}

// getConfigMap reads a ConfigMap of the ledger from kcp.
func (s *Store) getConfigMap(ctx context.Context, name string) (stored *corev1.ConfigMap, err error) {
	err = s.withTimeout(ctx, func(ctx context.Context) error {
		stored, err = s.ConfigMaps.Get(ctx, name, metav1.GetOptions{})
		return err
	})
	return stored, err
}

// decodeStored returns the entry in a ConfigMap of the ledger.
func decodeStored(stored *corev1.ConfigMap) (Entry, error) {
	entry, err := decode(stored.Data[entryKey])
	if err != nil {
		return Entry{}, fmt.Errorf("the ledger entry in the ConfigMap %s/%s: %w", Namespace, stored.Name, err)
	}
	return entry, nil
}

func (s *Store) withTimeout(ctx context.Context, request func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(requestclass.With(ctx, requestclass.Background), requestTimeout)
	defer cancel()
	return request(ctx)
}
