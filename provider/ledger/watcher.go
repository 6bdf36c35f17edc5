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
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/synchub-dev/synchub/provider/metrics/requestmetrics"
)

// leaderPollInterval is how often a replica asks whether a leader of its hub works with the provider workspace, until one does.
const leaderPollInterval = 2 * time.Second

// Watcher keeps the entries of a shared [Store] up to date. It runs on every replica.
type Watcher struct {
	*Store
	synced chan struct{}
	// failed carries an error because of which the entries cannot be loaded.
	failed chan error
}

// Watcher returns the [Watcher] of a shared Store. Call it once.
func (s *Store) Watcher() *Watcher {
	return &Watcher{Store: s, synced: make(chan struct{}), failed: make(chan error, 1)}
}

// NeedLeaderElection returns false: every replica has all entries.
func (w *Watcher) NeedLeaderElection() bool { return false }

// Start follows the entries until ctx ends. They are loaded once all have been read and a leader of this hub works with the provider
// workspace: a replica must not work while its leader still waits for the end of another hub. The error is [ErrOtherHubActive] if another
// hub has taken over since.
func (w *Watcher) Start(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	running.Go(func() { w.newReflector().RunWithContext(ctx) })
	select {
	case <-ctx.Done():
		return nil
	case err := <-w.failed:
		return err
	case <-w.synced:
	}
	self, err := w.awaitLeader(ctx)
	if err != nil {
		// The error is that of ctx: the replica ends.
		return nil
	}
	close(w.loaded)
	return w.watchLeader(ctx, self)
}

// awaitLeader waits until a leader of this hub works with the provider workspace, and returns the identity of this hub. The error is that of ctx.
func (w *Watcher) awaitLeader(ctx context.Context) (HubIdentity, error) {
	ticker := w.Clock.NewTicker(leaderPollInterval)
	defer ticker.Stop()
	for logged := ""; ; {
		self, leader, err := w.readBoth(ctx)
		switch {
		case err != nil && err.Error() != logged:
			logged = err.Error()
			w.Log.Info("cannot find out whether this hub has a leader; this is tried again", "error", logged)
		case err == nil && leader.version != "" && leader.otherThan(self) == "":
			w.setPreviousRenewTime(leader.renewTime)
			return self, nil
		}
		select {
		case <-ctx.Done():
			return HubIdentity{}, ctx.Err()
		case <-ticker.C():
		}
	}
}

func (w *Watcher) readBoth(ctx context.Context) (self HubIdentity, leader leaderRecord, err error) {
	if self, err = w.readIdentity(ctx); err == nil {
		leader, err = w.getLeader(ctx)
	}
	if err == nil {
		err = w.History.Load(ctx)
	}
	return self, leader, err
}

// watchLeader returns [ErrOtherHubActive] once another hub has taken the provider workspace over.
func (w *Watcher) watchLeader(ctx context.Context, self HubIdentity) error {
	ticker := w.Clock.NewTicker(renewInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
		}
		if err := w.History.Load(ctx); err != nil {
			w.Log.V(1).Info("cannot read what other replicas know of a restored kcp", "error", err.Error())
		}
		leader, err := w.getLeader(ctx)
		if err != nil || leader.otherThan(self) == "" {
			continue
		}
		// The Lease of this hub may be another one than before.
		self, err = w.readIdentity(ctx)
		if other := leader.otherThan(self); err == nil && other != "" {
			return self.otherHubError(other, leader.renewTime)
		}
	}
}

// newReflector returns a reflector that calls observe and observeDeleted. A reflector needs no second copy of the entries.
func (w *Watcher) newReflector() *cache.Reflector {
	options := func(raw metav1.ListOptions) *client.ListOptions {
		return &client.ListOptions{Namespace: Namespace, LabelSelector: labels.SelectorFromSet(labels.Set{syncTargetLabel: "true"}), Raw: &raw, Limit: raw.Limit, Continue: raw.Continue}
	}
	source := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, raw metav1.ListOptions) (runtime.Object, error) {
			list := &corev1.ConfigMapList{}
			err := w.withTimeout(ctx, func(ctx context.Context) error { return w.WatchClient.List(ctx, list, options(raw)) })
			return list, w.checked(err)
		},
		WatchFuncWithContext: func(ctx context.Context, raw metav1.ListOptions) (watch.Interface, error) {
			watching, err := w.WatchClient.Watch(requestmetrics.WithClass(ctx, requestmetrics.Background), &corev1.ConfigMapList{}, options(raw))
			return watching, w.checked(err)
		},
	}
	return cache.NewReflectorWithOptions(cache.ToListWatcherWithWatchListSemantics(source, w.WatchClient), &corev1.ConfigMap{}, reflectorStore{w},
		cache.ReflectorOptions{Name: "ledger"})
}

// checked returns the error of a list or a watch. If the hub may not read its ledger, the load fails, as on a replica whose Store is
// not shared.
func (w *Watcher) checked(err error) error {
	if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
		w.fail(w.readError(err))
	}
	return err
}

// fail makes Start return the error if the entries are not loaded yet.
func (w *Watcher) fail(err error) {
	select {
	case w.failed <- err:
	default:
	}
}

// reflectorStore is what the reflector of a Watcher fills.
type reflectorStore struct{ *Watcher }

var _ cache.ReflectorStore = reflectorStore{}

// Add implements [cache.ReflectorStore].
func (s reflectorStore) Add(object any) error { return s.Update(object) }

// Update implements [cache.ReflectorStore].
func (s reflectorStore) Update(object any) error {
	stored := object.(*corev1.ConfigMap)
	entry, err := s.decodeStored(stored)
	if err != nil {
		s.fail(err)
		return err
	}
	s.observe(types.UID(stored.Name), entry, stored.ResourceVersion)
	return nil
}

// Delete implements [cache.ReflectorStore].
func (s reflectorStore) Delete(object any) error {
	stored := object.(*corev1.ConfigMap)
	s.observeDeleted(types.UID(stored.Name), stored.ResourceVersion)
	return nil
}

// Replace implements [cache.ReflectorStore].
func (s reflectorStore) Replace(objects []any, version string) error {
	listed := make(map[types.UID]bool, len(objects))
	for _, object := range objects {
		if err := s.Update(object); err != nil {
			return err
		}
		listed[types.UID(object.(*corev1.ConfigMap).Name)] = true
	}
	var missing []types.UID
	s.Each(func(syncTarget types.UID, _ *Entry) {
		if !listed[syncTarget] {
			missing = append(missing, syncTarget)
		}
	})
	for _, syncTarget := range missing {
		s.observeDeleted(syncTarget, version)
	}
	select {
	case <-s.synced:
	default:
		close(s.synced)
	}
	return nil
}

// Resync implements [cache.ReflectorStore].
func (reflectorStore) Resync() error { return nil }

// observe stores an entry that was read, unless a newer one is known.
func (s *Store) observe(syncTarget types.UID, entry Entry, version string) {
	found := s.acquireRecord(syncTarget)
	defer s.releaseRecord(syncTarget, found)
	if s.setRecord(found, entry, version) {
		s.changes.publish(syncTarget)
	}
}

// observeDeleted notes that an entry was deleted at a resourceVersion, unless a newer one is known. A record in use stays; its writer
// learns of the deletion from the failed write.
func (s *Store) observeDeleted(syncTarget types.UID, version string) {
	s.drop(syncTarget, func(found *record) bool {
		found.deletedAt = version
		return !isNewer(found.version, version)
	})
}

// observeMissing forgets an entry that was not found, unless it has changed since it had the resourceVersion before.
func (s *Store) observeMissing(syncTarget types.UID, before string) {
	s.drop(syncTarget, func(found *record) bool { return found.version == before })
}

// drop notes that the ConfigMap of a SyncTarget is gone if isGone says so, and publishes that. The leader deletes those of SyncTargets that are
// cleaned up, so their entries are forgotten. Those of others stay in memory, and the next [Store.Update] writes them again: without them
// the hub would not know which objects it has on a target.
func (s *Store) drop(syncTarget types.UID, isGone func(*record) bool) {
	s.lock.Lock()
	found := s.records[syncTarget]
	gone := found != nil && found.version != "" && isGone(found)
	if gone {
		found.version = ""
		s.forgetUnused(syncTarget, found)
	}
	s.lock.Unlock()
	if gone {
		s.changes.publish(syncTarget)
	}
}

// isNewer reports whether the resourceVersion one is later than other, which may be "". If they cannot be compared, any difference counts
// as later.
func isNewer(one, other string) bool {
	order, err := resourceversion.CompareResourceVersion(one, other)
	return order > 0 || err != nil && one != other
}

// Subscribe calls follow for each SyncTarget whose entry another replica has changed or deleted, from now on until ctx ends. It may
// call it for a change of this replica too. follow must not block.
func (s *Store) Subscribe(ctx context.Context, follow func(types.UID)) { s.changes.add(ctx, follow) }

// subscribers are called for changed entries. The zero value is ready to use.
type subscribers struct {
	lock sync.RWMutex
	all  map[*subscriber]struct{}
}

type subscriber struct{ follow func(types.UID) }

func (s *subscribers) add(ctx context.Context, follow func(types.UID)) {
	one := &subscriber{follow}
	s.lock.Lock()
	defer s.lock.Unlock()
	if s.all == nil {
		s.all = map[*subscriber]struct{}{}
	}
	s.all[one] = struct{}{}
	context.AfterFunc(ctx, func() {
		s.lock.Lock()
		defer s.lock.Unlock()
		delete(s.all, one)
	})
}

func (s *subscribers) publish(syncTarget types.UID) {
	s.lock.RLock()
	defer s.lock.RUnlock()
	for one := range s.all {
		one.follow(syncTarget)
	}
}
