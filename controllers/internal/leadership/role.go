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

	"github.com/synchub-dev/synchub/provider/fence"
	"github.com/synchub-dev/synchub/provider/shards"
	"github.com/synchub-dev/synchub/provider/topic"
)

// Shards are the SyncTargets that this replica owns and works for.
type Shards interface {
	Owns(syncTarget types.UID) bool
	// Fence returns the fence of writes for a SyncTarget.
	Fence(syncTarget types.UID) *fence.Fence
}

var _ Shards = &shards.Shards{}

// Role is the part of the hub's work that this replica does: the leader's work, and the work for the SyncTargets of its Shards.
type Role struct {
	Elected
	Shards
	// Changed carries the shards that this replica acquired or released.
	Changed *topic.Topic[shards.Set]
}

// OfLeader returns the Role of a replica that owns all shards while it leads, and none before. The caller publishes to Changed.
func OfLeader(elected Elected, fence *fence.Fence) Role {
	return Role{Elected: elected, Shards: leaderShards{elected, fence}, Changed: &topic.Topic[shards.Set]{}}
}

// Context returns a context whose writes to kcp fail once this replica no longer owns the SyncTarget.
func (r Role) Context(ctx context.Context, syncTarget types.UID) context.Context {
	return fence.NewContext(ctx, r.Fence(syncTarget))
}

// leaderShards are all shards, which the leader owns.
type leaderShards struct {
	elected Elected
	fence   *fence.Fence
}

// Owns implements [Shards].
func (s leaderShards) Owns(types.UID) bool { return s.elected.Leads() }

// Fence implements [Shards].
func (s leaderShards) Fence(types.UID) *fence.Fence { return s.fence }
