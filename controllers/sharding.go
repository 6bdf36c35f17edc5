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

package controllers

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/wait"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/synchub-dev/synchub/controllers/internal/leadership"
	"github.com/synchub-dev/synchub/controllers/placement/copystates"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/syncmanager"
	"github.com/synchub-dev/synchub/provider/shards"
)

// Labels on the Lease of the leader. They contain the value [CoordinationSharded] if the leader shards
// SyncTargets, and a digest of its provider workspace. Replicas with another setting wait until the setting has
// changed everywhere, and replicas of another hub wait as long as this Lease exists.
const (
	LabelCoordination   = "synchub.dev/coordination"
	LabelProvider       = "synchub.dev/provider-workspace"
	CoordinationSharded = "sharded"
)

// readyPollInterval is how often a starting replica checks whether its caches have synced. They cause no event.
const readyPollInterval = time.Second

// LeaderLabels returns the labels of the leader's Lease.
func LeaderLabels(coordination, workspace string) map[string]string {
	return map[string]string{LabelCoordination: coordination, LabelProvider: digestOf(workspace)}
}

// ReplicaGroup returns the name of the group of replicas that shard the SyncTargets of a provider workspace.
// Other replicas do not count as members.
func ReplicaGroup(workspace string) string { return CoordinationSharded + "-" + digestOf(workspace) }

// digestOf returns a digest of a workspace that is a valid label value.
func digestOf(workspace string) string {
	sum := sha256.Sum256([]byte(workspace))
	return hex.EncodeToString(sum[:5])
}

// newRole returns this replica's role. The shards are nil unless SyncTargets are sharded. stop ends this
// replica's work for a shard.
func newRole(hosting manager.Manager, changed *changes, stop func(shard int), options Options) (leadership.Role, *shards.Shards, error) {
	role := leadership.OfLeader(hosting.Elected(), options.Fence)
	role.Changed = &changed.shardsChanged
	if !options.Sharded {
		return role, nil, hosting.Add(electionPublisher{role})
	}
	config := rest.CopyConfig(hosting.GetConfig())
	// Elections have deadlines, so their requests must not wait for the requests of controllers.
	config.QPS, config.Timeout = -1, options.RenewDeadline/2
	client, err := coordinationv1client.NewForConfig(config)
	if err != nil {
		return role, nil, fmt.Errorf("cannot make a client for the Leases of shards: %w", err)
	}
	sharded := shards.New(shards.Options{
		Leases: client, Watcher: options.Leases, Namespace: options.Lease.Namespace, Replica: options.Replica, LiveReplicas: options.LiveReplicas,
		LeaseDuration: options.LeaseDuration, RenewDeadline: options.RenewDeadline, RenewPeriod: options.RenewPeriod,
		LeaderShards: func(ctx context.Context) (bool, error) {
			wanted := labels.SelectorFromSet(LeaderLabels(CoordinationSharded, options.Workspace))
			if observed, ok := options.Leases.Labels(options.Lease.Name, 2*options.RenewPeriod); ok {
				return wanted.Matches(labels.Set(observed)), nil
			}
			lease, err := client.Leases(options.Lease.Namespace).Get(ctx, options.Lease.Name, metav1.GetOptions{})
			if err != nil {
				return false, err
			}
			return wanted.Matches(labels.Set(lease.Labels)), nil
		},
		Stop: stop, OnChange: func(shard int) { role.Changed.Publish(shards.SetOf(shard)) }, Clock: clock.RealClock{}, Log: options.Log.WithName("shards"),
	})
	role.Shards = sharded
	return role, sharded, nil
}

// electionPublisher publishes that this replica owns all shards once it leads, if SyncTargets are not sharded.
type electionPublisher struct{ leadership.Role }

// NeedLeaderElection implements [manager.LeaderElectionRunnable].
func (electionPublisher) NeedLeaderElection() bool { return false }

// Start implements [manager.Runnable].
func (p electionPublisher) Start(ctx context.Context) error {
	select {
	case <-p.Elected:
		p.Changed.Publish(shards.All)
	case <-ctx.Done():
	}
	return nil
}

// division adds the runnables that replicas need to shard SyncTargets.
type division struct {
	hosting manager.Manager
	// shards is nil if SyncTargets are not sharded.
	shards   *shards.Shards
	clusters *clusters
	sync     *syncmanager.Manager
	changed  *changes
	role     leadership.Role
	// ready is set once this replica can hold SyncTargets.
	ready *atomic.Bool
	log   logr.Logger
}

// add makes each replica acquire its share of the shards, and store the facts about their SyncTargets that the
// leader needs.
func (d division) add(states *copystates.Store, sealer *ownership.Sealer) error {
	if d.shards == nil {
		return nil
	}
	summaries := syncmanager.NewSyncSummaryWriter(d.sync, d.clusters.ledger, &d.changed.readiness, d.log.WithName("answers"))
	return errors.Join(d.hosting.Add(readySetter{d}), d.hosting.Add(d.shards), summaries.Register(d.hosting), d.addCopyStates(states, sealer))
}

// readySetter sets ready once the ledger is loaded and the mailbox caches have synced. Until then the other
// replicas keep their shards.
type readySetter struct{ division }

// NeedLeaderElection implements [manager.LeaderElectionRunnable].
func (readySetter) NeedLeaderElection() bool { return false }

// Start implements [manager.Runnable].
func (d readySetter) Start(ctx context.Context) error {
	hasAll := func(context.Context) (bool, error) {
		return d.clusters.ledger.IsLoaded() && haveCachesSynced(d.sync, d.clusters.mailboxes), nil
	}
	d.ready.Store(wait.PollUntilContextCancel(ctx, readyPollInterval, true, hasAll) == nil)
	return nil
}

// addCopyStates makes each replica store the sync status of the copies of placements on its SyncTargets, and
// makes the leader read what the other replicas have stored.
func (d division) addCopyStates(states *copystates.Store, sealer *ownership.Sealer) error {
	configMaps, log := d.clusters.configMaps, d.log.WithName("copystates")
	watcher, err := copystates.NewWatcher(copystates.WatcherOptions{
		ConfigMaps: configMaps, Store: states, Sealer: sealer, KnownSyncTargets: d.clusters.ledger.SyncTargets, Clock: clock.RealClock{}, Log: log,
	})
	if err != nil {
		return err
	}
	writer := copystates.NewWriter(copystates.WriterOptions{
		ConfigMaps: configMaps, Sync: d.sync, Sealer: sealer, ObjectStateChanged: &d.changed.objectStateChanged, Owner: d.role, Clock: clock.RealClock{}, Log: log,
	})
	return errors.Join(d.hosting.Add(watcher), writer.Register(d.hosting))
}
