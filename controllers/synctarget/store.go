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

package synctarget

import (
	"context"
	gosync "sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/objectsync"
	"github.com/synchub-dev/synchub/provider/shards"
)

type requestQueue = workqueue.TypedRateLimitingInterface[mcreconcile.Request]

// store contains the controller's state of each SyncTarget between two reconciles, from its first event until
// it is gone. Its lock is never held over a request.
type store struct {
	clock clock.Clock

	lock gosync.Mutex
	// queue is nil until the controller starts, as runContext is, the parent context of all drains.
	queue      requestQueue
	runContext context.Context //nolint:containedctx // drains outlive the reconciles that begin them
	entries    map[types.UID]*entry
	// uids are the UIDs of the SyncTargets that have the requests' names now. secrets and identities are indexes of the entries, too.
	uids       map[mcreconcile.Request]types.UID
	secrets    secretIndex
	identities clusterIdentities
	// owned is since when this replica owns each shard; zero if it does not, or does not know yet.
	owned [shards.Count]time.Time
}

// entry is one SyncTarget.
type entry struct {
	// request is zero until the SyncTarget is tracked, and state is nil.
	request mcreconcile.Request
	state   *syncTargetState
	// drain is the drain that is running or finished.
	drain *drainRun
	// isCleanedUp is true if the mailbox may be deleted.
	isCleanedUp bool
	// counted is the progress at the last count of objects; nil before the first reconcile.
	counted *objectsync.Progress
	// isSchemaSource is true if this replica connects to the cluster to read schemas, although another replica may own the SyncTarget.
	isSchemaSource bool
}

func newStore(clock clock.Clock) *store {
	return &store{clock: clock, entries: map[types.UID]*entry{}, uids: map[mcreconcile.Request]types.UID{}}
}

// start sets where requests are enqueued.
func (s *store) start(ctx context.Context, queue requestQueue) {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.queue, s.runContext = queue, ctx
}

// get returns a copy of the entry of a SyncTarget, which is zero if there is none.
func (s *store) get(syncTarget types.UID) entry {
	s.lock.Lock()
	defer s.lock.Unlock()
	if found := s.entries[syncTarget]; found != nil {
		return *found
	}
	return entry{}
}

// update changes the entry of a SyncTarget, and adds one if there is none. The change must not block.
func (s *store) update(syncTarget types.UID, change func(*entry)) {
	s.lock.Lock()
	defer s.lock.Unlock()
	change(s.getOrAdd(syncTarget))
}

func (s *store) getOrAdd(syncTarget types.UID) *entry {
	found := s.entries[syncTarget]
	if found == nil {
		found = &entry{}
		s.entries[syncTarget] = found
	}
	return found
}

// setUID stores the UID of the SyncTarget that has the request's name now, and returns the UID of the one that had it before, if it is another
// one.
func (s *store) setUID(request mcreconcile.Request, syncTarget types.UID) (replaced types.UID, isReplaced bool) {
	s.lock.Lock()
	defer s.lock.Unlock()
	replaced, isKnown := s.uids[request]
	s.uids[request] = syncTarget
	found := s.getOrAdd(syncTarget)
	found.request = request
	if found.state == nil {
		found.state = &syncTargetState{since: s.clock.Now()}
	}
	setInfo(syncTarget, request)
	return replaced, isKnown && replaced != syncTarget
}

// deleteUID records that no SyncTarget has the request's name any more, and returns the UID of the former one.
func (s *store) deleteUID(request mcreconcile.Request) (syncTarget types.UID, known bool) {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.secrets.delete(request)
	syncTarget, known = s.uids[request]
	delete(s.uids, request)
	return syncTarget, known
}

// delete removes a deleted SyncTarget.
func (s *store) delete(syncTarget types.UID) {
	s.lock.Lock()
	defer s.lock.Unlock()
	delete(s.entries, syncTarget)
	deleteInfo(syncTarget)
}

// endWork drops the results of work for a SyncTarget, and this replica's remaining work for it. It enqueues the
// SyncTargets whose conflicts that may change.
func (s *store) endWork(syncTarget types.UID) {
	s.lock.Lock()
	if found := s.entries[syncTarget]; found != nil {
		found.isCleanedUp, found.isSchemaSource = false, false
		if found.state == nil {
			delete(s.entries, syncTarget)
		}
	}
	concerned := s.identities.delete(syncTarget)
	s.lock.Unlock()
	s.enqueue(concerned...)
}

// enqueue enqueues SyncTargets. It does nothing before the controller starts, and for SyncTargets that are not tracked.
func (s *store) enqueue(syncTargets ...types.UID) {
	s.lock.Lock()
	defer s.lock.Unlock()
	for _, syncTarget := range syncTargets {
		s.enqueueLocked(s.entries[syncTarget])
	}
}

// onChanged enqueues a SyncTarget whose connection or sync state changed.
func (s *store) onChanged(_ requestQueue, syncTarget types.UID) { s.enqueue(syncTarget) }

// enqueueAll enqueues all SyncTargets.
func (s *store) enqueueAll() {
	s.lock.Lock()
	defer s.lock.Unlock()
	for _, found := range s.entries {
		s.enqueueLocked(found)
	}
}

func (s *store) enqueueLocked(found *entry) {
	if found != nil && found.state != nil && s.queue != nil {
		s.queue.Add(found.request)
	}
}

// ConnectForSchemas makes this replica connect to the cluster of a SyncTarget, no matter which replica owns it.
// The connection only reads schemas.
func (c *Controller) ConnectForSchemas(syncTarget types.UID) {
	c.store.update(syncTarget, func(found *entry) {
		if !found.isSchemaSource {
			found.isSchemaSource = true
			c.store.enqueueLocked(found)
		}
	})
}

// resetShards enqueues the SyncTargets of shards that this replica acquired or released. It drops their states,
// except that a new owner keeps the Secrets.
func (s *store) resetShards(changed shards.Set, owns func(types.UID) bool) {
	s.lock.Lock()
	defer s.lock.Unlock()
	now := s.clock.Now()
	for syncTarget, found := range s.entries {
		if !changed.Has(syncTarget) || found.state == nil {
			continue
		}
		if owns(syncTarget) {
			found.state.owned = false
			s.owned[shards.Of(syncTarget)] = now
		} else {
			found.state = &syncTargetState{since: now}
			s.owned[shards.Of(syncTarget)] = time.Time{}
		}
		s.enqueueLocked(found)
	}
}

// inShard returns the SyncTargets of a shard.
func (s *store) inShard(shard int) (syncTargets []types.UID) {
	s.lock.Lock()
	defer s.lock.Unlock()
	for syncTarget := range s.entries {
		if shards.Of(syncTarget) == shard {
			syncTargets = append(syncTargets, syncTarget)
		}
	}
	return syncTargets
}

// stateOf returns the state of a tracked SyncTarget.
func (s *store) stateOf(syncTarget types.UID) *syncTargetState {
	s.lock.Lock()
	defer s.lock.Unlock()
	return s.stateLocked(syncTarget)
}

func (s *store) stateLocked(syncTarget types.UID) *syncTargetState {
	if found := s.entries[syncTarget]; found != nil && found.state != nil {
		return found.state
	}
	// The SyncTarget is gone, and this reconcile is about to end.
	return &syncTargetState{since: s.clock.Now()}
}

// ownedState returns the state of a tracked SyncTarget that this replica owns. A new owner keeps the Secret,
// but no other earlier observation.
func (s *store) ownedState(syncTarget types.UID) *syncTargetState {
	s.lock.Lock()
	defer s.lock.Unlock()
	found := s.stateLocked(syncTarget)
	if !found.owned {
		*found = syncTargetState{since: s.clock.Now(), owned: true, secret: found.secret, supersededVersion: found.supersededVersion}
	}
	return found
}

// ownedSince returns since when this replica owns the shard of a SyncTarget that it owns.
func (s *store) ownedSince(syncTarget types.UID) time.Time {
	s.lock.Lock()
	defer s.lock.Unlock()
	since := &s.owned[shards.Of(syncTarget)]
	if since.IsZero() {
		*since = s.clock.Now()
	}
	return *since
}

// onUnauthorized is called after each probe whose credentials the target refused. It makes the next reconcile read the Secret from
// kcp, because the cache may not show replaced credentials yet.
func (s *store) onUnauthorized(_ requestQueue, syncTarget types.UID) {
	s.lock.Lock()
	defer s.lock.Unlock()
	if found := s.entries[syncTarget]; found != nil && found.state != nil {
		found.state.credentialsRefused = true
		s.enqueueLocked(found)
	}
}

// beginSecretRead records that the Secret is read, and reports whether the target refused the credentials since the last call.
func (s *store) beginSecretRead(state *syncTargetState) (isRefused bool) {
	s.lock.Lock()
	defer s.lock.Unlock()
	isRefused = state.credentialsRefused
	state.credentialsRefused, state.secretRead = false, true
	return isRefused
}

// isSecretUnread reports whether this replica has not read the Secret of a SyncTarget yet.
func (s *store) isSecretUnread(syncTarget types.UID) bool {
	s.lock.Lock()
	defer s.lock.Unlock()
	return !s.stateLocked(syncTarget).secretRead
}

// indexSecret stores which Secret the SyncTarget refers to. Reconcile calls it before it reads the Secret, so that it misses no
// change of the Secret.
func (s *store) indexSecret(request mcreconcile.Request, syncTarget *edgev2alpha1.SyncTarget) {
	s.lock.Lock()
	defer s.lock.Unlock()
	if reference := secretReferenceOf(syncTarget); reference != nil {
		s.secrets.set(request, secretKey{request.ClusterName, types.NamespacedName{Namespace: reference.Namespace, Name: reference.Name}})
	} else {
		s.secrets.delete(request)
	}
}

// unindexSecret makes changes of the Secret enqueue the SyncTarget no more.
func (s *store) unindexSecret(request mcreconcile.Request) {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.secrets.delete(request)
}

// requestsForSecret returns the SyncTargets of the Secret's workspace that refer to the Secret.
func (s *store) requestsForSecret(secret secretKey) []reconcile.Request {
	s.lock.Lock()
	defer s.lock.Unlock()
	all := s.secrets.syncTargetsOf[secret]
	requests := make([]reconcile.Request, 0, len(all))
	for _, syncTarget := range all {
		requests = append(requests, syncTarget.Request)
	}
	return requests
}

// setIdentity stores which cluster a SyncTarget claims to stand for, and enqueues the SyncTargets whose
// conflicts may change. changed is true if there are any. conflicting is the older SyncTarget of the same
// workspace that claims the cluster, and other is one of another workspace. Both are nil if there is none.
func (s *store) setIdentity(own clusterIdentity) (conflicting, other *clusterIdentity, changed bool) {
	s.lock.Lock()
	concerned := s.identities.set(own)
	conflicting, other = s.identities.conflictingTarget(own), s.identities.otherInventoryTarget(own)
	s.lock.Unlock()
	s.enqueue(concerned...)
	return conflicting, other, len(concerned) > 0
}

// setDrain replaces the drain of a SyncTarget, and returns the former one; nil means none.
func (s *store) setDrain(syncTarget types.UID, next *drainRun) (before *drainRun) {
	s.lock.Lock()
	defer s.lock.Unlock()
	if found := s.entries[syncTarget]; found != nil {
		before, found.drain = found.drain, next
	}
	return before
}
