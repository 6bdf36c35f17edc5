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

	"github.com/synchub-dev/synchub/controllers/internal/status"
	"github.com/synchub-dev/synchub/controllers/objectsync"
	"github.com/synchub-dev/synchub/controllers/placement/rules"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/health"
)

// SyncStates returns the sync status of the copies in mailboxes, as [syncmanager.Manager] does.
type SyncStates interface {
	// ObjectState returns the state of a version of a copy; known is false before a sync controller has tried the copy.
	ObjectState(syncTarget types.UID, resource schema.GroupResource, key types.NamespacedName, version objectsync.PlacementCopyVersion) (state objectsync.ObjectState, known bool)
}

// syncStatus is the sync status of one copy at the last pass. It stays while the cluster is disconnected.
type syncStatus struct {
	// synced is true if the cluster has the content of the copy. failure is why it does not; nil if nothing has
	// failed.
	synced  bool
	failure *failure
	// isBlocked is true if the cluster does not have the object and cannot have it.
	isBlocked bool
	// health is the health of the object on the cluster, if synced.
	health health.Health
}

// newSyncStatus returns the sync status of the present version of a copy.
func newSyncStatus(state objectsync.ObjectState) *syncStatus {
	switch {
	case state.Excluded:
		return &syncStatus{isBlocked: true, failure: &failure{rules.ReasonExcludedByUpsync, "spec.upsync of a placement, or a config of the mailbox, selects the object of this name on the cluster for upsync, which takes precedence"}}
	case state.Failure != nil && state.Failure.Reason == plan.ReasonConflict:
		// The message of the sync controller may contain the names of other users' objects.
		return &syncStatus{isBlocked: true, failure: &failure{plan.ReasonConflict, "the cluster has an object of this name that this placement did not make: choose another name, or ask who administers the cluster to delete that object"}}
	case state.Failure != nil:
		return &syncStatus{
			isBlocked: isBlocking(state), failure: &failure{state.Failure.Reason, status.Truncate(state.Failure.Message)},
		}
	case state.Synced:
		return &syncStatus{synced: true, health: state.Health}
	default:
		return &syncStatus{}
	}
}

// isBlocking reports whether a cluster lacks an object, because the API is missing there or the hub has no right to write it.
func isBlocking(state objectsync.ObjectState) bool {
	hasNone := state.Health == health.Health{Status: health.InProgress}
	return hasNone && (state.Failure.Reason == plan.ReasonNotServed || state.Failure.Reason == plan.ReasonForbidden)
}

// hasArrived reports whether the cluster has the content of the copy or, if mustSucceed is false, cannot have
// it.
func (p *syncStatus) hasArrived(mustSucceed bool) bool {
	return p != nil && (p.synced || p.failure != nil && !mustSucceed)
}

// equal reports whether two sync statuses look the same to users.
func (p *syncStatus) equal(other *syncStatus) bool {
	if p == nil || other == nil {
		return p == other
	}
	return p.synced == other.synced && p.isBlocked == other.isBlocked && p.health == other.health && p.failure.equal(other.failure)
}
