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
	"sync"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/singleflight"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/utils/clock"

	"github.com/synchub-dev/synchub/provider/metrics/targetlabels"
	"github.com/synchub-dev/synchub/provider/storehistory"
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

// Store has the entries of all SyncTargets. A watch keeps them up to date on every replica, and a replica's own writes count at once.
// All methods may be called concurrently.
type Store struct {
	*Entries
	*Leadership
	options    Options
	configMaps configMaps
	// lists joins the callers of EnsureFresh that wait for the same list.
	lists singleflight.Group
}

// New returns a Store, which is empty until Start has read the entries.
func New(options Options) *Store {
	configMaps := configMaps{options.ConfigMaps}
	return &Store{
		Entries:    &Entries{records: map[types.UID]*record{}},
		Leadership: newLeadership(options, configMaps),
		options:    options,
		configMaps: configMaps,
	}
}

// NeedLeaderElection implements [manager.LeaderElectionRunnable] of controller-runtime.
func (s *Store) NeedLeaderElection() bool { return s.options.LeaderOnly }

// Start watches the entries until ctx ends. Once this replica leads, it also writes regularly that it does. The error may be
// [ErrOtherHubActive].
func (s *Store) Start(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	running.Go(func() { s.newReflector().RunWithContext(ctx) })
	if err := s.awaitLeadership(ctx); err != nil || ctx.Err() != nil {
		return err
	}
	return s.lead(ctx, s.EnsureFresh)
}

// SyncTargets returns the UIDs of all SyncTargets with an entry. loaded is false until all entries have been read.
func (s *Store) SyncTargets() (all []types.UID, loaded bool) {
	if !s.IsLoaded() {
		return nil, false
	}
	s.Each(func(syncTarget types.UID, _ *Entry) { all = append(all, syncTarget) })
	return all, true
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
	record := s.acquire(syncTarget)
	defer s.release(syncTarget, record)
	record.writeLock.Lock()
	defer record.writeLock.Unlock()
	var err error
	for range maxAttempts {
		current, version, seen := s.state(record)
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
		written, err = s.configMaps.write(ctx, labelSyncTarget, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: string(syncTarget), ResourceVersion: version}, Data: map[string]string{entryKey: after},
		})
		if err == nil {
			s.setWritten(record, next, written)
			return nil
		}
		if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) && !apierrors.IsNotFound(err) {
			break
		}
		// Another replica, or a hub that still considers itself the leader, has written the entry.
		if err := s.refresh(ctx, syncTarget, record, seen); err != nil {
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
	found := s.acquire(syncTarget)
	defer s.release(syncTarget, found)
	found.writeLock.Lock()
	defer found.writeLock.Unlock()
	if err := s.configMaps.delete(ctx, string(syncTarget)); err != nil {
		return fmt.Errorf("cannot delete the ledger entry of the SyncTarget %s: %w", syncTarget, err)
	}
	s.modify(found, func(deleted *record) { deleted.entry, deleted.version = Entry{}, "" })
	return nil
}

// refresh reads an entry again after a conflict. seen is the last resourceVersion before that.
func (s *Store) refresh(ctx context.Context, syncTarget types.UID, changed *record, seen string) error {
	stored, err := s.configMaps.get(ctx, string(syncTarget))
	if apierrors.IsNotFound(err) {
		// The ConfigMap was deleted. The entry in memory is still valid, so the next attempt creates the ConfigMap.
		s.options.Log.Info("the ledger entry of a SyncTarget was deleted in the provider workspace; the hub writes it again", targetlabels.LogValues(syncTarget)...)
		s.modify(changed, func(deleted *record) { deleted.version = "" })
		return nil
	}
	if err != nil {
		return readError(err)
	}
	entry, err := decode(stored)
	if err != nil {
		return err
	}
	if wentBack(seen, stored.ResourceVersion) {
		s.modify(changed, (*record).forgetVersion)
	}
	if s.set(changed, entry, stored.ResourceVersion) {
		s.changes.Publish(syncTarget)
	}
	return nil
}
