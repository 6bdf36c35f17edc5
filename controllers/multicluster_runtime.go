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

// This file works around two gaps of multicluster-runtime v0.24.1. Delete it when they are closed. Report
// upstream:
//
//	A controller ignores NeedLeaderElection
//
//	mccontroller.NewTypedUnmanaged wraps controller-runtime's controller in mcController, which embeds the interface
// That interface has no NeedLeaderElection, so the manager assumes that every multi-cluster controller needs
// leader election, and controller.Options.NeedLeaderElection has no effect. Expected: mcController forwards
// NeedLeaderElection to the controller that it wraps.
//
//	A controller that waits for leader election keeps clusters that are gone
//
// A manager engages its controllers with each cluster before they start. mcController.Engage adds a source for
// the cluster to the controller, which keeps the source until the start, even if the context of the cluster has
// ended. A standby that waits for weeks keeps every former cluster, and starts a watch for each when it is
// elected. Expected: a controller that has not started drops a cluster whose context has ended.

import (
	"context"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/cluster"
	mcmanager "sigs.k8s.io/multicluster-runtime/pkg/manager"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"
)

// everyReplica makes the controllers of a manager run on every replica.
type everyReplica struct{ mcmanager.Manager }

// Add implements [mcmanager.Manager].
func (m everyReplica) Add(runnable mcmanager.Runnable) error {
	return m.Manager.Add(withoutLeaderElection{runnable})
}

// withoutLeaderElection is a Runnable that runs on all replicas.
type withoutLeaderElection struct{ mcmanager.Runnable }

// NeedLeaderElection implements [manager.LeaderElectionRunnable].
func (withoutLeaderElection) NeedLeaderElection() bool { return false }

// leaderOnly is the manager of the inventory workspaces for controllers that only the leader runs. A standby
// finds workspaces long before these controllers start.
type leaderOnly struct{ mcmanager.Manager }

// Add implements [mcmanager.Manager].
func (m leaderOnly) Add(runnable mcmanager.Runnable) error {
	return m.Manager.Add(&engagedAtStart{Runnable: runnable, waiting: map[multicluster.ClusterName]engagement{}})
}

// engagedAtStart passes clusters to its Runnable only after the Runnable has started.
type engagedAtStart struct {
	mcmanager.Runnable

	lock    sync.Mutex
	started bool
	waiting map[multicluster.ClusterName]engagement
}

// engagement is a cluster until ctx ends.
type engagement struct {
	ctx     context.Context //nolint:containedctx // it is the life of the cluster
	cluster cluster.Cluster
}

// Engage implements [multicluster.Aware].
func (e *engagedAtStart) Engage(ctx context.Context, name multicluster.ClusterName, cluster cluster.Cluster) error {
	e.lock.Lock()
	defer e.lock.Unlock()
	if e.started {
		return e.Runnable.Engage(ctx, name, cluster)
	}
	e.waiting[name] = engagement{ctx, cluster}
	context.AfterFunc(ctx, func() {
		e.lock.Lock()
		defer e.lock.Unlock()
		if e.waiting[name].ctx == ctx {
			delete(e.waiting, name)
		}
	})
	return nil
}

// Start implements [mcmanager.Runnable].
func (e *engagedAtStart) Start(ctx context.Context) error {
	if err := e.engageWaiting(); err != nil {
		return err
	}
	return e.Runnable.Start(ctx)
}

func (e *engagedAtStart) engageWaiting() error {
	e.lock.Lock()
	defer e.lock.Unlock()
	e.started = true
	for name, waiting := range e.waiting {
		if err := e.Runnable.Engage(waiting.ctx, name, waiting.cluster); err != nil && waiting.ctx.Err() == nil {
			return err
		}
	}
	e.waiting = nil
	return nil
}
