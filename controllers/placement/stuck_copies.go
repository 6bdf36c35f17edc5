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
	"cmp"
	"maps"
	"slices"
	gosync "sync"

	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/internal/status"
	"github.com/synchub-dev/synchub/controllers/objectsync"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/policy"
)

// stuckCopies are the copies that mailboxes do not have any more, and whose objects clusters do not let the hub remove, with the failure
// of each. No pair exists for them.
type stuckCopies struct {
	sync SyncStatuses

	lock gosync.Mutex
	of   map[logicalcluster.Name]map[objectsync.ObjectRef]failure
}

// update reads whether a copy is still stuck.
func (s *stuckCopies) update(ref objectsync.ObjectRef) {
	s.lock.Lock()
	defer s.lock.Unlock()
	state, _ := s.sync.SyncStatus(ref.SyncTarget, ref.Resource.GroupResource(), ref.Key, objectsync.CopyVersion{})
	if state.Failure == nil || state.Failure.Reason != plan.ReasonCannotWithdraw {
		delete(s.of[ref.Workspace], ref)
		if len(s.of[ref.Workspace]) == 0 {
			delete(s.of, ref.Workspace)
		}
		return
	}
	if s.of[ref.Workspace] == nil {
		s.of[ref.Workspace] = map[objectsync.ObjectRef]failure{}
	}
	s.of[ref.Workspace][ref] = failure{state.Failure.Reason, status.Truncate(state.Failure.Message)}
}

// forget drops the copies of a SyncTarget that is gone.
func (s *stuckCopies) forget(workspace logicalcluster.Name, syncTarget types.UID) {
	s.lock.Lock()
	defer s.lock.Unlock()
	for ref := range s.of[workspace] {
		if ref.SyncTarget == syncTarget {
			delete(s.of[workspace], ref)
		}
	}
}

// list returns the stuck copies of a workspace.
func (s *stuckCopies) list(workspace logicalcluster.Name) map[objectsync.ObjectRef]failure {
	s.lock.Lock()
	defer s.lock.Unlock()
	return maps.Clone(s.of[workspace])
}

// addStuckCopies counts the stuck copies of the workspace as failures of a placement: of the oldest one that has the SyncTarget as a
// destination, else of the oldest one. Which placement selected the object is not known any more.
func (r *reporter) addStuckCopies(summed *summary) {
	active, view := r.active.get(), r.fleet.Snapshot()
	if active == nil || len(active.all) == 0 {
		return
	}
	for ref, why := range r.stuck.list(r.sources.cluster) {
		syncTarget, known := view.SyncTargetOf(ref.Mailbox)
		if !known {
			r.stuck.forget(r.sources.cluster, ref.SyncTarget)
			continue
		}
		position := slices.IndexFunc(active.all, func(one *resolvedPlacement) bool { _, is := one.mailboxes[ref.Mailbox]; return is })
		uid := active.all[max(0, position)].UID
		if summed.counts[uid] == nil {
			summed.counts[uid] = &placementCounts{}
		}
		summed.counts[uid].fail(r.sources.pairOf(ref, func(namespace string) string {
			return syncTarget.Tenancy.Naming.Namespace(r.sources.cluster, namespace)
		}), syncTarget.Name, why)
	}
}

// pairOf returns the pair of a copy whose mailbox object is gone. onCluster returns the name on the cluster of a namespace of the
// workspace. If the workspace has no such namespace any more, the pair has the name on the cluster.
func (s *sources) pairOf(ref objectsync.ObjectRef, onCluster func(namespace string) string) pairKey {
	name := ref.Key
	own, _ := s.list(namespaces)
	for _, one := range own {
		if ref.Key.Namespace != "" && onCluster(one.GetName()) == ref.Key.Namespace {
			name.Namespace = one.GetName()
		}
	}
	return pairKey{objectKey{policy.InWorkload(ref.Resource), name}, site{ref.Mailbox, cmp.Or(ref.Key.Namespace, name.Namespace)}}
}
