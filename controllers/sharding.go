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
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/wait"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	configv1alpha1 "github.com/synchub-dev/synchub/apis/config/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/internal/leadership"
	"github.com/synchub-dev/synchub/controllers/placement/syncstatus"
	"github.com/synchub-dev/synchub/controllers/syncmanager"
	"github.com/synchub-dev/synchub/controllers/synctarget"
	"github.com/synchub-dev/synchub/provider/fence"
	"github.com/synchub-dev/synchub/provider/shards"
)

// LeaseName is the name of the Lease that the leader holds.
const LeaseName = "synchub"

// Labels on the Lease of the leader: its setting for coordination, and a digest of its provider workspace. Replicas with another setting
// wait until the setting has changed everywhere, and replicas of another hub wait as long as this Lease exists.
const (
	LabelCoordination = "synchub.dev/coordination"
	LabelProvider     = "synchub.dev/provider-workspace"
)

// readyPollInterval is how often a starting replica checks whether its caches have synced. They cause no event.
const readyPollInterval = time.Second

// LeaderLabels returns the labels of the leader's Lease.
func LeaderLabels(settings *configv1alpha1.HubConfiguration) map[string]string {
	return map[string]string{LabelCoordination: string(settings.Coordination), LabelProvider: digestOf(settings.KCP.ProviderWorkspace)}
}

// ReplicaGroup returns the name of the group of replicas that shard the SyncTargets of a provider workspace.
// Other replicas do not count as members.
func ReplicaGroup(workspace string) string {
	return string(configv1alpha1.CoordinationSharded) + "-" + digestOf(workspace)
}

// digestOf returns a digest of a workspace that is a valid label value.
func digestOf(workspace string) string {
	sum := sha256.Sum256([]byte(workspace))
	return hex.EncodeToString(sum[:5])
}

// newRole returns this replica's role. The shards are nil unless SyncTargets are sharded.
func newRole(elected leadership.Elected, leader *fence.Fence, isSharded bool) (leadership.Role, *shards.Shards) {
	if !isSharded {
		return leadership.OfLeader(elected, leader), nil
	}
	owned := shards.New(clock.RealClock{})
	return leadership.Role{Elected: elected, Shards: owned, Changed: &owned.Changed}, owned
}

// publishElection publishes that this replica owns all shards once it leads, if SyncTargets are not sharded.
func publishElection(role leadership.Role) onEachReplica {
	return func(ctx context.Context) error {
		select {
		case <-role.Elected:
			role.Changed.Publish(shards.All)
		case <-ctx.Done():
		}
		return nil
	}
}

// newElector returns the runnable that acquires this replica's share of the shards, and stops the work for those that it releases.
func newElector(h *hub, syncTargets *synctarget.Controller) (*shards.Elector, error) {
	config, settings := rest.CopyConfig(h.hosting.GetConfig()), h.settings.LeaderElection
	// Elections have deadlines, so their requests must not wait for the requests of controllers.
	config.QPS, config.Timeout = -1, settings.RenewDeadline.Duration/2
	client, err := coordinationv1client.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("cannot make a client for the Leases of shards: %w", err)
	}
	wanted := labels.SelectorFromSet(LeaderLabels(h.settings))
	return shards.NewElector(h.shards, shards.Options{
		Leases: client, Watcher: h.Leases, Replica: h.Replica, LiveReplicas: h.LiveReplicas, Settings: settings,
		LeaderShards: func(ctx context.Context) (bool, error) {
			if observed, ok := h.Leases.Labels(LeaseName, 2*settings.RetryPeriod.Duration); ok {
				return wanted.Matches(labels.Set(observed)), nil
			}
			lease, err := client.Leases(settings.Namespace).Get(ctx, LeaseName, metav1.GetOptions{})
			if err != nil {
				return false, err
			}
			return wanted.Matches(labels.Set(lease.Labels)), nil
		},
		Stop: syncTargets.StopShard, Clock: h.clock, Log: h.Log.WithName("shards"),
	}), nil
}

// setReady sets Ready once the ledger is loaded and the mailbox caches have synced. Until then the other
// replicas keep their shards.
func setReady(h *hub, syncManager *syncmanager.Manager) onEachReplica {
	return func(ctx context.Context) error {
		hasAll := func(context.Context) (bool, error) {
			return h.ledger.IsLoaded() && haveCachesSynced(syncManager, h.mailboxes), nil
		}
		h.Ready.Store(wait.PollUntilContextCancel(ctx, readyPollInterval, true, hasAll) == nil)
		return nil
	}
}

// newCopiesWriter returns the controller that stores the sync status of the copies of placements on the SyncTargets of this replica.
func newCopiesWriter(h *hub, syncManager *syncmanager.Manager) *syncstatus.Writer {
	return syncstatus.NewWriter(syncstatus.WriterOptions{
		ConfigMaps: h.configMaps, Sync: syncManager, Sealer: h.sealer, SyncStatusChanged: &syncManager.SyncStatusChanged, Owner: h.role,
		Clock: h.clock, Log: h.Log.WithName("syncstatus"),
	})
}

// newCopiesWatcher returns the runnable that makes the leader read what the other replicas have stored.
func newCopiesWatcher(h *hub, copies *syncstatus.Store) (*syncstatus.Watcher, error) {
	return syncstatus.NewWatcher(syncstatus.WatcherOptions{
		ConfigMaps: h.configMaps, Store: copies, Sealer: h.sealer, KnownSyncTargets: h.ledger.SyncTargets, Clock: h.clock, Log: h.Log.WithName("syncstatus"),
	})
}
