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

package replicas

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/multicluster-runtime/pkg/manager/coordinator/sharded/peers"
	"sigs.k8s.io/multicluster-runtime/pkg/manager/coordinator/sharded/sharder"
)

const (
	// leasePrefix begins the name of the Lease of each replica.
	leasePrefix = "synchub-replica"
	// checkInterval is how often a leader checks whether it must step down.
	checkInterval = 10 * time.Second
	// reachTimeout is how long kcp may take to answer.
	reachTimeout = 5 * time.Second
	// maxSilence is how long kcp may fail to answer a leader before it steps down. It must exceed the time for which another replica stays
	// listed after losing kcp: 30 s in the registry, 10 s of clock correction, 10 s between reads, and reachTimeout.
	maxSilence = time.Minute
)

// ErrSteppedDown is returned by a leader that does not reach kcp, while another replica does.
var ErrSteppedDown = errors.New("this replica does not reach kcp, and steps down for another one that does")

// Options configure a [Monitor].
type Options struct {
	// Hosting is the client of the hosting cluster, without a cache. It may get, list, create and update the Leases in the Namespace.
	Hosting   client.Client
	Namespace string
	// Name identifies this replica among all. It is part of the name of its Lease.
	Name string
	// Group separates replicas that do other work. A replica ignores the replicas of another group. It may be empty.
	Group string
	// Pod is the Pod of this replica, which owns its Lease; nil outside a cluster.
	Pod *metav1.OwnerReference
	// Reach sends a request to kcp, as the user of the hub. An error means that kcp does not answer this replica.
	Reach func(ctx context.Context) error
	// IsReady reports whether this replica can do work. It is not called any more once it has returned true. Nil means
	// always. A replica that is not ready is not announced, so that no other replica leaves work to it.
	IsReady func() bool
	// Elected is closed once this replica has work that other replicas could do: it leads, or SyncTargets are sharded.
	Elected <-chan struct{}
	Clock   clock.WithTicker
	Log     logr.Logger
}

// Monitor announces that this replica reaches kcp. It runs on each replica.
type Monitor struct {
	Options
	registry peers.Registry
	// reachedAt is when kcp answered last.
	reachedAt atomic.Pointer[time.Time]
	ready     atomic.Bool
}

// New returns the monitor of a replica that has just reached kcp.
func New(options Options) *Monitor {
	m := &Monitor{Options: options}
	now := options.Clock.Now()
	m.reachedAt.Store(&now)
	prefix := leasePrefix
	if options.Group != "" {
		prefix += "-" + options.Group
	}
	m.registry = peers.NewLeaseRegistry(announcer{options.Hosting, m, &renewals{}}, options.Namespace, prefix, options.Name, 0, options.Log)
	return m
}

// NeedLeaderElection returns false: replicas that do not lead announce themselves too.
func (m *Monitor) NeedLeaderElection() bool { return false }

// Start announces this replica until ctx ends. The error is [ErrSteppedDown] if this replica leads and another one should.
func (m *Monitor) Start(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		// The registry ends with ctx only.
		_ = m.registry.Run(ctx)
	}()
	defer func() { cancel(); <-ended }()
	ticker := m.Clock.NewTicker(checkInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
			if err := m.checkLeadership(); err != nil {
				return err
			}
		}
	}
}

// ID returns the name of this replica, with characters replaced that the name of a Lease cannot have.
func (m *Monitor) ID() string { return m.registry.Self().ID }

// LiveReplicas returns the names of all replicas that reach kcp, including this one. It returns none before the replicas are
// known and this one is ready.
func (m *Monitor) LiveReplicas() []string {
	peers := m.registry.Snapshot()
	if len(peers) == 0 || !m.ready.Load() {
		return nil
	}
	return append(othersOf(m.registry.Self().ID, peers), m.registry.Self().ID)
}

// checkLeadership returns [ErrSteppedDown] if this replica has been elected and kcp has not answered for maxSilence, while it
// answers other replicas.
func (m *Monitor) checkLeadership() error {
	select {
	case <-m.Elected:
	default:
		return nil
	}
	silence := m.Clock.Since(*m.reachedAt.Load())
	others := othersOf(m.registry.Self().ID, m.registry.Snapshot())
	if silence < maxSilence || len(others) == 0 {
		return nil
	}
	return fmt.Errorf("%w: kcp has not answered for %s, while it answers %s; check the network between this replica and kcp", ErrSteppedDown, silence.Round(time.Second), strings.Join(others, ", "))
}

// othersOf returns the names of all replicas but this one, sorted.
func othersOf(self string, all []sharder.PeerInfo) []string {
	var others []string
	for _, peer := range all {
		if peer.ID != self {
			others = append(others, peer.ID)
		}
	}
	slices.Sort(others)
	return others
}

// reach sends a request to kcp, and records that kcp answered.
func (m *Monitor) reach(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, reachTimeout)
	defer cancel()
	began := m.Clock.Now()
	if err := m.Reach(ctx); err != nil {
		m.Log.V(1).Info("kcp does not answer", "error", err.Error())
		return fmt.Errorf("kcp does not answer: %w", err)
	}
	m.reachedAt.Store(&began)
	return nil
}

// errNotReady keeps a replica from being announced.
var errNotReady = errors.New("this replica cannot work yet")

// mayAnnounce returns an error if kcp does not answer, or this replica is not ready.
func (m *Monitor) mayAnnounce(ctx context.Context) error {
	if err := m.reach(ctx); err != nil {
		return err
	}
	if !m.ready.Load() && m.IsReady != nil && !m.IsReady() {
		return errNotReady
	}
	m.ready.Store(true)
	return nil
}

// announcer is the client of the registry. It writes the Lease of this replica only if kcp answers, and the replica is ready.
type announcer struct {
	client.Client
	monitor *Monitor
	// renewals are used by the goroutine of the registry only.
	renewals *renewals
}

// List implements [client.Client].
func (a announcer) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if err := a.Client.List(ctx, list, options...); err != nil {
		return err
	}
	if leases, ok := list.(*coordinationv1.LeaseList); ok {
		// The registry compares with the same clock.
		a.renewals.correct(leases.Items, time.Now())
	}
	return nil
}

// Create implements [client.Client].
func (a announcer) Create(ctx context.Context, lease client.Object, options ...client.CreateOption) error {
	if err := a.monitor.mayAnnounce(ctx); err != nil {
		return err
	}
	if pod := a.monitor.Pod; pod != nil {
		// The registry deletes no Lease. Kubernetes deletes it with the Pod.
		lease.SetOwnerReferences([]metav1.OwnerReference{*pod})
	}
	return a.Client.Create(ctx, lease, options...)
}

// Update implements [client.Client].
func (a announcer) Update(ctx context.Context, lease client.Object, options ...client.UpdateOption) error {
	if err := a.monitor.mayAnnounce(ctx); err != nil {
		return err
	}
	return a.Client.Update(ctx, lease, options...)
}
