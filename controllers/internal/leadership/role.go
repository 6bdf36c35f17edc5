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
	"github.com/synchub-dev/synchub/provider/shards"
)

// Shards are the SyncTargets for which this replica works, as [shards.Shards] are.
type Shards interface {
	Owns(syncTarget types.UID) bool
	Fence(syncTarget types.UID) *fence.Fence
}

var _ Shards = &shards.Shards{}

// Role says which work this replica does: the leader's, and that of the SyncTargets it holds. The leader holds all SyncTargets, unless they
// are sharded: then the replica that holds the shard holds the SyncTarget. The zero Role is that of a hub without other replicas.
type Role struct {
	Elected Elected
	// Shards are nil if SyncTargets are not sharded. ShardChanged carries those that this replica got or lost.
	Shards       Shards
	ShardChanged *topic.Topic[int]
}

// Leads reports whether this replica leads.
func (r Role) Leads() bool { return r.Elected.Leads() }

// IsSharded reports whether SyncTargets are sharded among the replicas.
func (r Role) IsSharded() bool { return r.Shards != nil }

// Owns reports whether this replica works for a SyncTarget.
func (r Role) Owns(syncTarget types.UID) bool {
	if r.Shards == nil {
		return r.Leads()
	}
	return r.Shards.Owns(syncTarget)
}

// Context returns a context whose writes to kcp fail once this replica no longer holds the SyncTarget.
func (r Role) Context(ctx context.Context, syncTarget types.UID) context.Context {
	if r.Shards == nil {
		return ctx
	}
	return fence.NewContext(ctx, r.Shards.Fence(syncTarget))
}

// Fence returns the fence of writes for a SyncTarget; leader is the leader's.
func (r Role) Fence(syncTarget types.UID, leader *fence.Fence) *fence.Fence {
	if r.Shards == nil {
		return leader
	}
	return r.Shards.Fence(syncTarget)
}
