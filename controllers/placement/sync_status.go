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
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/internal/status"
	"github.com/synchub-dev/synchub/controllers/objectsync"
	"github.com/synchub-dev/synchub/controllers/placement/rules"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/health"
)

// SyncStatuses returns the sync status of the copies in mailboxes, as [syncmanager.Manager] does.
type SyncStatuses interface {
	// StuckCopies returns the copies that mailboxes do not have any more, and whose objects clusters do not let the hub remove.
	StuckCopies() []objectsync.ObjectRef
	// SyncStatus returns the state of a version of a copy; known is false before a sync controller has tried the copy.
	SyncStatus(syncTarget types.UID, resource schema.GroupResource, key types.NamespacedName, version objectsync.CopyVersion) (state objectsync.SyncStatus, known bool)
}

// syncStatus is the sync status of one copy at the last pass. It stays while the cluster is disconnected.
type syncStatus struct {
	// synced is true if the cluster has the content of the copy. failure is why it does not; nil if nothing has
	// failed.
	synced  bool
	failure *failure
	// differences are the fields that differ on the cluster, if that is the failure. They are shared.
	differences *[]edgev2alpha1.FieldDifference
	// isBlocked is true if the cluster does not have the object and cannot have it.
	isBlocked bool
	// health is the health of the object on the cluster, if synced. A copy that is synced and fails has drifted.
	health health.Health
}

// newSyncStatus returns the sync status of the present version of a copy.
func newSyncStatus(state objectsync.SyncStatus) *syncStatus {
	switch {
	case state.Excluded:
		return &syncStatus{isBlocked: true, failure: &failure{rules.ReasonExcludedByUpsync, "spec.upsync of a placement, or a config of the mailbox, selects the object of this name on the cluster for upsync, which takes precedence"}}
	case state.Failure != nil && state.Failure.Reason == plan.ReasonConflict:
		// The message of the sync controller may contain the names of other users' objects.
		return &syncStatus{isBlocked: true, failure: &failure{plan.ReasonConflict, "the cluster has an object of this name that this placement did not make: choose another name, or ask who administers the cluster to delete that object"}}
	case state.Failure != nil:
		found := &syncStatus{
			isBlocked: isBlocking(state), failure: &failure{state.Failure.Reason, status.Truncate(state.Failure.Message)}, differences: state.Failure.Differences,
		}
		if isDrifted(state.Failure.Reason) {
			found.synced, found.health = state.Synced, state.Health
		}
		return found
	case state.Synced:
		return &syncStatus{synced: true, health: state.Health}
	default:
		return &syncStatus{}
	}
}

// isDrifted reports whether a copy has had the content of its object, and another client has changed it since. The rollout of a change
// does not wait for that: the change takes the copy back.
func isDrifted(reason string) bool { return reason == plan.ReasonDrifted }

// isBlocking reports whether a cluster lacks an object, because the API is missing there, the hub has no right to write it, or the hub
// only reports how it would change an object of that name.
func isBlocking(state objectsync.SyncStatus) bool {
	if state.Failure.Reason == plan.ReasonAdoptionReported {
		return true
	}
	hasNone := state.Health == health.Health{Status: health.InProgress}
	return hasNone && (state.Failure.Reason == plan.ReasonNotServed || state.Failure.Reason == plan.ReasonForbidden)
}

// isAvailable reports whether the cluster has the content of the copy or, if mustSucceed is false, cannot have
// it.
func (p *syncStatus) isAvailable(mustSucceed bool) bool {
	return p != nil && (p.synced || p.failure != nil && !mustSucceed)
}

// equal reports whether two sync statuses look the same to users.
func (p *syncStatus) equal(other *syncStatus) bool {
	if p == nil || other == nil {
		return p == other
	}
	return p.synced == other.synced && p.isBlocked == other.isBlocked && p.health == other.health && p.failure.equal(other.failure) &&
		apiequality.Semantic.DeepEqual(p.differences, other.differences)
}
