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

package leadership

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/internal/topic"
	"github.com/synchub-dev/synchub/provider/fence"
	"github.com/synchub-dev/synchub/provider/partitions"
)

// Partitions are the SyncTargets for which this replica works, as [partitions.Partitions] are.
type Partitions interface {
	Holds(syncTarget types.UID) bool
	Fence(syncTarget types.UID) *fence.Fence
}

var _ Partitions = &partitions.Partitions{}

// Scope is what this replica does. The leader does what is there once. The holder of a SyncTarget works for it: the leader, or if
// SyncTargets are divided among the replicas, the one that holds the partition. The zero Scope is that of a hub without other replicas.
type Scope struct {
	Elected Elected
	// Partitions are nil if SyncTargets are not divided. PartitionChanged carries those that this replica got or lost.
	Partitions       Partitions
	PartitionChanged *topic.Topic[int]
}

// Leads reports whether this replica leads.
func (s Scope) Leads() bool { return s.Elected.Leads() }

// IsDivided reports whether SyncTargets are divided among the replicas.
func (s Scope) IsDivided() bool { return s.Partitions != nil }

// Holds reports whether this replica works for a SyncTarget.
func (s Scope) Holds(syncTarget types.UID) bool {
	if s.Partitions == nil {
		return s.Leads()
	}
	return s.Partitions.Holds(syncTarget)
}

// Context returns a context for requests of the holder of a SyncTarget. kcp gets writes with it while this replica is the holder.
func (s Scope) Context(ctx context.Context, syncTarget types.UID) context.Context {
	if s.Partitions == nil {
		return ctx
	}
	return fence.NewContext(ctx, s.Partitions.Fence(syncTarget))
}

// Fence returns the fence of writes for a SyncTarget; undivided is that of the leader.
func (s Scope) Fence(syncTarget types.UID, undivided *fence.Fence) *fence.Fence {
	if s.Partitions == nil {
		return undivided
	}
	return s.Partitions.Fence(syncTarget)
}
