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
	"iter"
	"maps"
	gosync "sync"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/log"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/provider/inventories"
)

const (
	// minPrefetch is from how many unread Secrets on a workspace is listed. A read of one costs kcp 4 to 5 ms of processor time, and a
	// list of a hundred 50 ms (RESULTS.md, "A restart").
	minPrefetch = 8
	// maxListedPerSecret bounds a list, relative to the number of wanted Secrets: a workspace may have any
	// number of other Secrets.
	maxListedPerSecret = 2
	// maxPrefetches is how many workspaces are listed at once. Each list holds one page of Secrets.
	maxPrefetches = 2
	// prefetchTimeout bounds a list. Secrets that it has not returned by then are read one by one.
	prefetchTimeout = 10 * time.Second
	// prefetchLifetime is how long a list is valid. The next added list deletes an outdated one with its unused
	// Secrets.
	prefetchLifetime = time.Minute
)

// secretPrefetch reads the Secrets of an inventory workspace in one list, when this replica is about to read many of them: after a start.
type secretPrefetch struct {
	clock clock.PassiveClock
	// list lists Secrets from kcp, past the cache. unread returns the Secrets that are about to be read.
	list   func(ctx context.Context, inventory cluster.Cluster) iter.Seq2[*corev1.Secret, error]
	unread func(ctx context.Context, inventory cluster.Cluster) map[types.NamespacedName][]secretUse
	slots  chan struct{}

	lock  gosync.Mutex
	lists map[logicalcluster.Name]*secretList
}

func newSecretPrefetch(clock clock.PassiveClock, unread func(context.Context, cluster.Cluster) map[types.NamespacedName][]secretUse) *secretPrefetch {
	return &secretPrefetch{
		clock: clock, list: inventories.CredentialSecrets, unread: unread, slots: make(chan struct{}, maxPrefetches), lists: map[logicalcluster.Name]*secretList{},
	}
}

// secretList is the result of a list, which is complete when done is closed.
type secretList struct {
	since time.Time
	done  chan struct{}
	// secrets are trimmed. Each is taken once, by the SyncTarget of that UID.
	secrets gosync.Map
}

// secretUse is a SyncTarget that refers to a key of a Secret.
type secretUse struct {
	syncTarget types.UID
	key        string
}

// take returns the trimmed Secret of a SyncTarget from the list of its workspace, nil if the list lacks it or
// there is no list. The Secret may be older than the cached one. The first call for a workspace makes the list,
// and concurrent calls wait for it.
func (p *secretPrefetch) take(ctx context.Context, inventory cluster.Cluster, syncTarget *edgev2alpha1.SyncTarget) *corev1.Secret {
	list, isNew := p.getOrAdd(logicalcluster.From(syncTarget), p.clock.Now())
	if isNew {
		p.fill(ctx, inventory, list)
	}
	select {
	case <-list.done:
	case <-ctx.Done():
		return nil
	}
	found, _ := list.secrets.LoadAndDelete(syncTarget.UID)
	secret, _ := found.(*corev1.Secret)
	return secret
}

// getOrAdd returns the list of a workspace, or a new one, which the caller must fill.
func (p *secretPrefetch) getOrAdd(workspace logicalcluster.Name, now time.Time) (list *secretList, isNew bool) {
	p.lock.Lock()
	defer p.lock.Unlock()
	isOutdated := func(_ logicalcluster.Name, list *secretList) bool { return now.Sub(list.since) > prefetchLifetime }
	if found := p.lists[workspace]; found != nil && !isOutdated(workspace, found) {
		return found, false
	}
	maps.DeleteFunc(p.lists, isOutdated)
	list = &secretList{since: now, done: make(chan struct{})}
	p.lists[workspace] = list
	return list, true
}

// fill reads the Secrets that SyncTargets of the workspace are about to need, if there are many.
func (p *secretPrefetch) fill(ctx context.Context, inventory cluster.Cluster, list *secretList) {
	defer close(list.done)
	wanted := p.unread(ctx, inventory)
	if len(wanted) < minPrefetch {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, prefetchTimeout)
	defer cancel()
	select {
	case p.slots <- struct{}{}:
		defer func() { <-p.slots }()
	case <-ctx.Done():
		return
	}
	rest := maxListedPerSecret * len(wanted)
	for secret, err := range p.list(ctx, inventory) {
		if err != nil {
			log.FromContext(ctx).V(1).Info("the hub reads Secrets one by one", "reason", err.Error())
			return
		}
		key := types.NamespacedName{Namespace: secret.Namespace, Name: secret.Name}
		for _, use := range wanted[key] {
			list.secrets.Store(use.syncTarget, trimSecret(secret, use.key))
		}
		delete(wanted, key)
		if rest--; rest == 0 || len(wanted) == 0 {
			return
		}
	}
}

// unreadSecrets returns the Secrets of the workspace that this replica has not read yet, although it knows their SyncTargets from before
// its start.
func (c *Controller) unreadSecrets(ctx context.Context, inventory cluster.Cluster) map[types.NamespacedName][]secretUse {
	var all edgev2alpha1.SyncTargetList
	if err := inventory.GetClient().List(ctx, &all); err != nil {
		return nil
	}
	unread := map[types.NamespacedName][]secretUse{}
	for i := range all.Items {
		syncTarget := &all.Items[i]
		reference := secretReferenceOf(syncTarget)
		if reference == nil || c.OtherOwners && !c.Role.Owns(syncTarget.UID) || !c.store.isSecretUnread(syncTarget.UID) {
			continue
		}
		if entry := c.Ledger.Get(syncTarget.UID); entry.MayHaveObjects() {
			key := types.NamespacedName{Namespace: reference.Namespace, Name: reference.Name}
			unread[key] = append(unread[key], secretUse{syncTarget.UID, reference.Key})
		}
	}
	return unread
}
