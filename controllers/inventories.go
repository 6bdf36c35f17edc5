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
	"fmt"

	mcmanager "sigs.k8s.io/multicluster-runtime/pkg/manager"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/provider/inventories"
)

// inventoryWorkspaces are the managers of the controllers that reconcile over all inventory workspaces. As a runnable it finds the
// workspaces, and engages the controllers with them.
type inventoryWorkspaces struct {
	provider *inventories.Provider
	all      mcmanager.Manager
	// ofLeader runs controllers on the leader, and ofStandby runs them on a warm standby, too.
	ofLeader, ofStandby mcmanager.Manager
	// leaderOnly is true if a standby does not need the workspaces.
	leaderOnly bool
}

func newInventoryWorkspaces(r *replica) (*inventoryWorkspaces, error) {
	provider, err := inventories.New(inventories.Options{
		KCP: r.Access, Workspace: r.owner.Workspace, Export: synchubv1alpha1.InventoryExport, Scheme: r.hosting.GetScheme(), Log: r.Log.WithName("inventory"),
	})
	if err != nil {
		return nil, fmt.Errorf("cannot watch the inventory workspaces: %w", err)
	}
	all, err := mcmanager.WithMultiCluster(r.hosting, provider)
	if err != nil {
		return nil, err
	}
	made := &inventoryWorkspaces{provider: provider, all: all, ofLeader: leaderOnly{all}, ofStandby: everyReplica{all}, leaderOnly: r.isColdStandby}
	if r.isColdStandby {
		made.ofStandby = made.ofLeader
	}
	return made, nil
}

// Start implements [manager.Runnable].
func (i *inventoryWorkspaces) Start(ctx context.Context) error { return i.provider.Start(ctx, i.all) }

// NeedLeaderElection implements [manager.LeaderElectionRunnable].
func (i *inventoryWorkspaces) NeedLeaderElection() bool { return i.leaderOnly }
