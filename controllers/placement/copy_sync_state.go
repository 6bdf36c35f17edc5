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

package placement

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/internal/events"
	"github.com/synchub-dev/synchub/controllers/objectsync"
	"github.com/synchub-dev/synchub/controllers/placement/rules"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/health"
)

// SyncStates tells how far the sync controllers have come with the copies in mailboxes, as [syncmanager.Manager] does.
type SyncStates interface {
	// ObjectState returns the state of a version of a copy; known is false before a sync controller has tried the copy.
	ObjectState(syncTarget types.UID, resource schema.GroupResource, key types.NamespacedName, version objectsync.PlacementCopyVersion) (state objectsync.ObjectState, known bool)
}

// copySyncState is how far the sync of one copy with its cluster has come. It is that of the last pass: while the cluster is away, it
// stays.
type copySyncState struct {
	// synced is true if the cluster has the content of the copy. failure is why it has not; nil while it may come to have it.
	synced  bool
	failure *failure
	// isBlocked is true if the failure is that the cluster cannot have the object at all, and has none.
	isBlocked bool
	// health is that of the object on the cluster, if synced.
	health health.Health
}

// onObjectState enqueues the pair of a copy whose sync with its cluster has come further.
func (c *Controller) onObjectState(ref objectsync.ObjectRef) {
	inMailbox, _ := c.Mailboxes.Get(ref.Resource, ref.Mailbox, ref.Key)
	cluster, ok := c.workspaceOf(inMailbox)
	if !ok {
		if ref.Resource == objectsync.CRDResource {
			c.onCRDState(ref)
		}
		return
	}
	if w := c.findWorkspace(cluster); w != nil {
		w.enqueue(pairKey{objectKey{ref.Resource, ref.Key}, ref.Mailbox}.task())
	}
}

// observeSyncState returns how far the sync of a placed copy has come; nil while nobody has tried it.
func (c *Controller) observeSyncState(key pairKey, s *pairSnapshot, decision plan.Decision) *copySyncState {
	if c.Sync == nil {
		return nil
	}
	state, known := c.Sync.ObjectState(s.syncTarget.UID, key.resource.GroupResource(), key.name, objectsync.PlacementCopyVersionOf(s.InMailbox))
	if !known {
		return nil
	}
	// The sync controller does not have a copy yet that this pass has written.
	state.Synced = state.Synced && !decision.Action.Writes()
	return newCopySyncState(state)
}

// newCopySyncState returns the state of the present version of a copy.
func newCopySyncState(state objectsync.ObjectState) *copySyncState {
	switch {
	case state.Excluded:
		return &copySyncState{isBlocked: true, failure: &failure{rules.ReasonExcludedByUpsync, "spec.upsync of a placement, or a config of the mailbox, selects the object of this name on the cluster for upsync, which takes precedence"}}
	case state.Failure != nil && state.Failure.Reason == plan.ReasonConflict:
		// The message of the sync controller may name the objects of others.
		return &copySyncState{isBlocked: true, failure: &failure{plan.ReasonConflict, "the cluster has an object of this name that this placement did not make: choose another name, or ask who administers the cluster to delete that object"}}
	case state.Failure != nil:
		return &copySyncState{
			isBlocked: isBlocking(state), failure: &failure{state.Failure.Reason, events.Truncate(state.Failure.Message)},
		}
	case state.Synced:
		return &copySyncState{synced: true, health: state.Health}
	default:
		return &copySyncState{}
	}
}

// isBlocking reports whether a cluster lacks an object, because the API is missing there or the hub has no right to write it.
func isBlocking(state objectsync.ObjectState) bool {
	hasNone := state.Health == health.Health{Status: health.InProgress}
	return hasNone && (state.Failure.Reason == plan.ReasonNotServed || state.Failure.Reason == plan.ReasonForbidden)
}

// hasArrived reports whether the cluster has the content of the copy or, unless it must, cannot have it.
func (p *copySyncState) hasArrived(mustSucceed bool) bool {
	return p != nil && (p.synced || p.failure != nil && !mustSucceed)
}

// equal reports whether two states are the same to users.
func (p *copySyncState) equal(other *copySyncState) bool {
	if p == nil || other == nil {
		return p == other
	}
	if (p.failure == nil) != (other.failure == nil) || p.failure != nil && *p.failure != *other.failure {
		return false
	}
	return p.synced == other.synced && p.isBlocked == other.isBlocked && p.health == other.health
}
