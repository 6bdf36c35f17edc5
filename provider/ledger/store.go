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
	"maps"
	"slices"
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
	// Namespace holds the ledger, in the provider workspace.
	Namespace = "synchub-ledger"
	// syncTargetLabel marks the ConfigMaps of SyncTargets, and has the value true.
	syncTargetLabel = "synchub.dev/synctarget"
	// entryKey is where an entry stands in its ConfigMap.
	entryKey = "entry"
	// leaderConfigMap is the ConfigMap that says when a hub led last, under ledKey, and by which Lease, under leaseKey.
	leaderConfigMap, renewTimeKey, leaseKey = "leader", "led", "lease"
	// renewInterval is how often that is written, and silence is for how long a hub that has ended has not written it.
	renewInterval   = time.Minute
	otherHubTimeout = 2 * renewInterval
	// requestTimeout bounds each request.
	requestTimeout = 30 * time.Second
	// pageSize is how many entries are read at a time.
	pageSize = 500
	// maxAttempts is how often a change is tried anew because another leader has changed the entry.
	maxAttempts = 3
)

// ErrOtherHubActive is why a hub does not work: one that stands in another hosting cluster works with the same provider workspace.
var ErrOtherHubActive = errors.New("another hub works with this provider workspace")

// Options are what a ledger needs.
type Options struct {
	// Client writes to the provider workspace, and Reader reads from it without a cache.
	Client client.Client
	Reader client.Reader
	// LeaseUID returns the UID of the Lease by which this hub leads, empty if it leads without one. Nil does the same.
	LeaseUID func(ctx context.Context) (string, error)
	Clock    clock.WithTicker
	Log      logr.Logger
}

// Store keeps the entries. Only the leader has one at work: it reads all entries once, and then knows them, since nobody
// else writes them.
type Store struct {
	Options
	loaded chan struct{}

	lock              sync.Mutex
	records           map[types.UID]*record
	previousRenewTime time.Time
	// leaderVersion is the version of the ConfigMap of that name, and lease what this hub writes there. Both belong to Start.
	leaderVersion, leaseUID string
}

// record is one entry with what is needed to write it.
type record struct {
	// writeLock is held over the request that changes this entry.
	writeLock sync.Mutex
	// entry and version are guarded by the ledger's lock. The version is empty while nothing is stored.
	entry   Entry
	version string
}

// New returns a ledger, which is empty until Start has read it.
func New(options Options) *Store {
	return &Store{Options: options, loaded: make(chan struct{}), records: map[types.UID]*record{}}
}

// NeedLeaderElection makes the manager run the ledger on the leader only.
func (l *Store) NeedLeaderElection() bool { return true }

// Start reads all entries and then writes, until ctx ends, that a hub leads.
func (l *Store) Start(ctx context.Context) error {
	if err := l.load(ctx); err != nil {
		return err
	}
	close(l.loaded)
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

func (l *Store) load(ctx context.Context) error {
	if l.LeaseUID != nil {
		if err := l.withTimeout(ctx, func(ctx context.Context) (err error) { l.leaseUID, err = l.LeaseUID(ctx); return err }); err != nil {
			return fmt.Errorf("cannot read the Lease by which this hub leads: %w", err)
		}
	}
	renewTime, err := l.waitForPreviousHub(ctx)
	if err != nil {
		return err
	}
	records := map[types.UID]*record{}
	for next := ""; ; {
		var list corev1.ConfigMapList
		err := l.withTimeout(ctx, func(ctx context.Context) error {
			return l.Reader.List(ctx, &list, client.InNamespace(Namespace), client.HasLabels{syncTargetLabel}, client.Limit(pageSize), client.Continue(next))
		})
		if err != nil {
			return readError(err)
		}
		for i := range list.Items {
			stored := &list.Items[i]
			entry, err := decode(stored.Data[entryKey])
			if err != nil {
				return fmt.Errorf("the ConfigMap %s/%s of the provider workspace: %w", Namespace, stored.Name, err)
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
	return nil
}

func readError(err error) error {
	if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
		return fmt.Errorf("the hub may not read its memory in the namespace %s of the provider workspace; run `synchub init` again as its administrator: %w", Namespace, err)
	}
	return fmt.Errorf("cannot read the hub's memory in the provider workspace: %w", err)
}

// waitForPreviousHub returns when a hub led last, zero if that is not known, and [ErrOtherHubActive] if that was another one and is at work. The
// successor by the same Lease goes on at once. Another hub's clock may be any: if by ours it wrote long ago, or will, it counts
// whether it writes while our clock waits.
func (l *Store) waitForPreviousHub(ctx context.Context) (time.Time, error) {
	renewTime, other, err := l.readLeader(ctx)
	if err != nil || other == "" {
		return renewTime, err
	}
	if l.Clock.Since(renewTime).Abs() < otherHubTimeout {
		return renewTime, l.otherHubError(other, renewTime)
	}
	l.Log.Info("another hub worked with this provider workspace, waiting to see whether it does", "lease", other, "led", renewTime, "wait", otherHubTimeout)
	seen := l.leaderVersion
	select {
	case <-ctx.Done():
		return renewTime, ctx.Err()
	case <-l.Clock.After(otherHubTimeout):
	}
	renewTime, other, err = l.readLeader(ctx)
	if err == nil && other != "" && l.leaderVersion != seen {
		err = l.otherHubError(other, renewTime)
	}
	return renewTime, err
}

// readLeader returns when a hub led last, zero if that is not known, and by which Lease if that is another than ours.
func (l *Store) readLeader(ctx context.Context) (renewTime time.Time, other string, err error) {
	var leader corev1.ConfigMap
	err = l.withTimeout(ctx, func(ctx context.Context) error {
		return l.Reader.Get(ctx, types.NamespacedName{Namespace: Namespace, Name: leaderConfigMap}, &leader)
	})
	if client.IgnoreNotFound(err) != nil {
		return time.Time{}, "", readError(err)
	}
	l.leaderVersion = leader.ResourceVersion
	renewTime, err = time.Parse(time.RFC3339, leader.Data[renewTimeKey])
	if err != nil {
		renewTime = time.Time{}
	}
	if lease := leader.Data[leaseKey]; l.leaseUID != "" && lease != l.leaseUID {
		other = lease
	}
	return renewTime, other, nil
}

func (l *Store) otherHubError(lease string, renewTime time.Time) error {
	return fmt.Errorf("%w: it leads by the Lease with the UID %s, and did at %s by its clock; this one has the Lease %s. Stop one of them, or give it a provider workspace of its own. "+
		"What is left of a hub that was stopped ends after two minutes", ErrOtherHubActive, lease, renewTime.Format(time.RFC3339), l.leaseUID)
}

// renewLeader writes that this hub leads now. That another one does shows in its having written since, whenever that was by its clock.
func (l *Store) renewLeader(ctx context.Context) error {
	for {
		leader := &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: leaderConfigMap, ResourceVersion: l.leaderVersion},
			Data:       map[string]string{renewTimeKey: l.Clock.Now().UTC().Format(time.RFC3339), leaseKey: l.leaseUID},
		}
		err := l.withTimeout(ctx, func(ctx context.Context) error {
			if l.leaderVersion == "" {
				return l.Client.Create(ctx, leader)
			}
			return l.Client.Update(ctx, leader)
		})
		if err == nil {
			l.leaderVersion = leader.ResourceVersion
		}
		if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) && (l.leaderVersion == "" || !apierrors.IsNotFound(err)) {
			return err
		}
		renewTime, other, err := l.readLeader(ctx)
		if err == nil && other != "" {
			err = l.otherHubError(other, renewTime)
		}
		if err != nil {
			return err
		}
	}
}

// WaitForLoad returns when the entries are known, or with ctx's error.
func (l *Store) WaitForLoad(ctx context.Context) error {
	select {
	case <-l.loaded:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// PreviousRenewTime returns when the hub before this one led last, zero if that is not known.
func (l *Store) PreviousRenewTime() time.Time {
	l.lock.Lock()
	defer l.lock.Unlock()
	return l.previousRenewTime
}

// SyncTargets returns those of which something is remembered; known is false until that has been read.
func (l *Store) SyncTargets() (all []types.UID, known bool) {
	select {
	case <-l.loaded:
	default:
		return nil, false
	}
	l.lock.Lock()
	defer l.lock.Unlock()
	return slices.Collect(maps.Keys(l.records)), true
}

// Get returns what is remembered of a SyncTarget, the zero entry if nothing is.
func (l *Store) Get(syncTarget types.UID) Entry {
	l.lock.Lock()
	defer l.lock.Unlock()
	if found := l.records[syncTarget]; found != nil {
		return found.entry
	}
	return Entry{}
}

// Update changes what is remembered of a SyncTarget, and returns after that has been stored. A change that changes nothing
// costs no request. It may be called more than once. What somebody has deleted in the provider workspace is not forgotten by that.
func (l *Store) Update(ctx context.Context, syncTarget types.UID, change func(*Entry)) error {
	changed := l.getOrAddRecord(syncTarget)
	changed.writeLock.Lock()
	defer changed.writeLock.Unlock()
	var err error
	for range maxAttempts {
		l.lock.Lock()
		current, version := changed.entry, changed.version
		l.lock.Unlock()
		next := current.clone()
		change(&next)
		var before, after string
		before, beforeErr := current.encode()
		after, afterErr := next.encode()
		if err := errors.Join(beforeErr, afterErr); err != nil {
			return fmt.Errorf("cannot write down what the hub remembers of the SyncTarget %s: %w", syncTarget, err)
		}
		if before == after && (version != "" || after == emptyEntry) {
			return nil
		}
		if version, err = l.writeEntry(ctx, syncTarget, after, version); err == nil {
			l.setRecord(changed, next, version)
			return nil
		}
		if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) && !apierrors.IsNotFound(err) {
			break
		}
		// Another hub, which led before or believes that it does, was faster.
		if err := l.refreshRecord(ctx, syncTarget, changed); err != nil {
			return err
		}
	}
	return fmt.Errorf("cannot store what the hub remembers of the SyncTarget %s: %w", syncTarget, err)
}

// Delete removes what is remembered of a SyncTarget.
func (l *Store) Delete(ctx context.Context, syncTarget types.UID) error {
	l.lock.Lock()
	found := l.records[syncTarget]
	l.lock.Unlock()
	if found == nil {
		return nil
	}
	found.writeLock.Lock()
	defer found.writeLock.Unlock()
	stored := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: string(syncTarget)}}
	err := l.withTimeout(ctx, func(ctx context.Context) error { return l.Client.Delete(ctx, stored) })
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cannot remove what the hub remembers of the SyncTarget %s: %w", syncTarget, err)
	}
	l.lock.Lock()
	defer l.lock.Unlock()
	delete(l.records, syncTarget)
	return nil
}

func (l *Store) getOrAddRecord(syncTarget types.UID) *record {
	l.lock.Lock()
	defer l.lock.Unlock()
	found := l.records[syncTarget]
	if found == nil {
		found = &record{}
		l.records[syncTarget] = found
	}
	return found
}

func (l *Store) setRecord(changed *record, entry Entry, version string) {
	l.lock.Lock()
	defer l.lock.Unlock()
	changed.entry, changed.version = entry, version
}

// writeEntry writes an entry in the place of the version given, and returns its new version.
func (l *Store) writeEntry(ctx context.Context, syncTarget types.UID, entry, version string) (string, error) {
	stored := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: string(syncTarget), Labels: map[string]string{syncTargetLabel: "true"}, ResourceVersion: version},
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

func (l *Store) refreshRecord(ctx context.Context, syncTarget types.UID, changed *record) error {
	var stored corev1.ConfigMap
	err := l.withTimeout(ctx, func(ctx context.Context) error {
		return l.Reader.Get(ctx, types.NamespacedName{Namespace: Namespace, Name: string(syncTarget)}, &stored)
	})
	if apierrors.IsNotFound(err) {
		// Somebody has deleted it. What this hub knows is as good as it was, and is written again.
		l.Log.Info("what the hub remembers of a SyncTarget was deleted in the provider workspace; it is written again", "syncTargetUID", syncTarget)
		l.lock.Lock()
		defer l.lock.Unlock()
		changed.version = ""
		return nil
	}
	if err != nil {
		return readError(err)
	}
	entry, err := decode(stored.Data[entryKey])
	if err != nil {
		return err
	}
	l.setRecord(changed, entry, stored.ResourceVersion)
	return nil
}

func (l *Store) withTimeout(ctx context.Context, request func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(requestmetrics.WithClass(ctx, requestmetrics.Background), requestTimeout)
	defer cancel()
	return request(ctx)
}
