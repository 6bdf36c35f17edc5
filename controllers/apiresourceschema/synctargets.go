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

package apiresourceschema

import (
	"context"
	"errors"
	"fmt"

	"github.com/kcp-dev/logicalcluster/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/provider/kcp"
	"github.com/synchub-dev/synchub/provider/targets"
)

// ErrNoSyncTarget means that no inventory workspace shows a SyncTarget of that name.
var ErrNoSyncTarget = errors.New("there is no such SyncTarget")

// Targets looks up connections by SyncTarget.
type Targets interface {
	// Find returns the connection of a SyncTarget, or nil while the hub has none. workspace is a path or the name of a
	// logical cluster. The error is [ErrNoSyncTarget] if the hub does not find the SyncTarget.
	Find(ctx context.Context, workspace, name string) (*targets.Connection, error)
}

// Inventories provides the clusters of the workspaces that bind the inventory export.
type Inventories interface {
	// GetCluster returns an inventory by the name of its logical cluster.
	GetCluster(ctx context.Context, name multicluster.ClusterName) (cluster.Cluster, error)
}

// SyncTargets implements [Targets] with the inventory caches and the registry of connections.
type SyncTargets struct {
	Inventories Inventories
	// ResolvePath returns the logical cluster of a workspace path, as [kcp.ConfigProvider.LogicalClusterOf] does.
	ResolvePath func(ctx context.Context, path logicalcluster.Path) (logicalcluster.Name, error)
	Registry    *targets.Registry
	// Connect makes this replica connect to a SyncTarget, whichever replica owns it.
	Connect func(syncTarget types.UID)
}

var _ Targets = &SyncTargets{}

// Find implements [Targets].
func (s *SyncTargets) Find(ctx context.Context, workspace, name string) (*targets.Connection, error) {
	logicalCluster, err := s.resolve(ctx, workspace)
	if err != nil {
		return nil, err
	}
	inventory, err := s.Inventories.GetCluster(ctx, multicluster.ClusterName(logicalCluster))
	if err != nil {
		if errors.Is(err, multicluster.ErrClusterNotFound) {
			return nil, ErrNoSyncTarget
		}
		return nil, fmt.Errorf("cannot read the inventory workspace %s: %w", workspace, err)
	}
	var syncTarget edgev2alpha1.SyncTarget
	if err := inventory.GetClient().Get(ctx, types.NamespacedName{Name: name}, &syncTarget); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, ErrNoSyncTarget
		}
		return nil, fmt.Errorf("cannot get SyncTarget %s in the workspace %s: %w", name, workspace, err)
	}
	s.Connect(syncTarget.UID)
	connection, _ := s.Registry.Get(syncTarget.UID)
	return connection, nil
}

// resolve returns the logical cluster of a workspace, which is given by its path or by the name of the logical
// cluster. The paths in annotations of workspaces prove nothing: a tenant could claim the operator's path, and
// give all mailboxes the tenant's schema.
func (s *SyncTargets) resolve(ctx context.Context, workspace string) (logicalcluster.Name, error) {
	logicalCluster, err := s.ResolvePath(ctx, logicalcluster.NewPath(workspace))
	if errors.Is(err, kcp.ErrNoWorkspace) {
		return "", ErrNoSyncTarget
	}
	return logicalCluster, err
}
