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
	"strings"

	"github.com/kcp-dev/logicalcluster/v3"
	apisv1alpha1 "github.com/kcp-dev/sdk/apis/apis/v1alpha1"
	"github.com/kcp-dev/sdk/apis/core"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/provider/targets"
)

// ErrNoSyncTarget means that the hub sees no SyncTarget of that name.
var ErrNoSyncTarget = errors.New("there is no such SyncTarget")

// Targets find the targets of SyncTargets.
type Targets interface {
	// Find returns the connection of a SyncTarget, which is nil while there is none. The workspace is given by its path or
	// by the name of its logical cluster. The error is [ErrNoSyncTarget] if the hub sees none.
	Find(ctx context.Context, workspace, name string) (*targets.Connection, error)
}

// Inventories are the workspaces that bind the inventory export.
type Inventories interface {
	// GetCluster returns one by the name of its logical cluster.
	GetCluster(ctx context.Context, name multicluster.ClusterName) (cluster.Cluster, error)
}

// Bindings list what all workspaces have bound of the inventory export.
type Bindings interface {
	List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error
}

// SyncTargets find targets by what the inventory export shows.
type SyncTargets struct {
	Inventories Inventories
	Bindings    Bindings
	Registry    *targets.Registry
}

var _ Targets = &SyncTargets{}

// Find returns the connection of a SyncTarget.
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
		return nil, fmt.Errorf("cannot look into the inventory workspace %s: %w", workspace, err)
	}
	var syncTarget edgev2alpha1.SyncTarget
	if err := inventory.GetClient().Get(ctx, types.NamespacedName{Name: name}, &syncTarget); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, ErrNoSyncTarget
		}
		return nil, fmt.Errorf("cannot get SyncTarget %s in the workspace %s: %w", name, workspace, err)
	}
	connection, _ := s.Registry.Get(syncTarget.UID)
	return connection, nil
}

// resolve returns the name of a workspace's logical cluster. kcp writes the path of a workspace on each of its bindings.
func (s *SyncTargets) resolve(ctx context.Context, workspace string) (logicalcluster.Name, error) {
	if !strings.Contains(workspace, ":") {
		return logicalcluster.Name(workspace), nil
	}
	var bindings apisv1alpha1.APIBindingList
	if err := s.Bindings.List(ctx, &bindings); err != nil {
		return "", fmt.Errorf("cannot list the inventory workspaces: %w", err)
	}
	for i := range bindings.Items {
		if bindings.Items[i].Annotations[core.LogicalClusterPathAnnotationKey] == workspace {
			return logicalcluster.From(&bindings.Items[i]), nil
		}
	}
	return "", ErrNoSyncTarget
}
