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

package syncmanager

import (
	"fmt"
	"maps"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/synchub-dev/synchub/controllers/plan"
)

// prepare starts, on a replica that is not the leader, the controllers of the resources that the leader syncs.
// They fill their caches and wait for [Manager.startPrepared]. It writes nothing, neither to the target nor
// into the ledger. The caller holds reconcileMutex.
func (m *Manager) prepare(state *targetState, published []plan.Resource, publication int) (reconcile.Result, error) {
	requeueAfter, unanswered := m.chooseVersions(state, published)
	if unanswered != nil {
		m.Log.V(1).Info("cannot choose versions while preparing", "syncTarget", state.currentTarget().Name, "error", unanswered.Error())
	}
	published = state.withChosenVersions(published)
	resolved, err := m.resolveTargetAPIs(state, published)
	if err != nil {
		m.Log.V(1).Info("cannot resolve all kinds while preparing", "syncTarget", state.currentTarget().Name, "error", err.Error())
	}
	// Only the leader checks whether unselected resources have objects left.
	wanted, err := desiredResources(state, published, resolved, func(plan.Resource) (bool, error) { return false, nil })
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("SyncTarget %s: %w", state.currentTarget().Name, err)
	}
	wanted = slices.DeleteFunc(wanted, func(resource plan.Resource) bool {
		return !state.hasRecorded(resource, resolved[resource.GroupResource()]) || !m.isKnownToFit(state, resource)
	})
	m.stopControllers(state, wanted, resolved)
	state.updatePrimaries(wanted)
	unstarted := m.startControllers(state, wanted, resolved)
	state.markApplied(publication, unstarted)
	return reconcile.Result{RequeueAfter: requeueAfter}, nil
}

// hasRecorded reports whether the written resources contain the resource with all of these APIs, so that the
// leader may write it. The caller holds reconcileMutex.
func (t *targetState) hasRecorded(resource plan.Resource, resolved resolvedAPIs) bool {
	return !slices.ContainsFunc(resolved.apis, func(target plan.TargetAPI) bool {
		record := t.writtenResources[target.GroupResource()]
		if target.GroupResource() == resource.GroupResource() {
			return !record.Direct || record.Version != target.Version
		}
		return !slices.Contains(record.ConvertedFrom, resource.GroupResource())
	})
}

// isKnownToFit reports whether the leader has found that objects of the resource fit, or does not check it. The
// caller holds reconcileMutex.
func (m *Manager) isKnownToFit(state *targetState, resource plan.Resource) bool {
	known, ok := m.schemaFor(resource)
	return !ok || known.WarnOnly || state.isAccepted(resource)
}

// canContinueWith reports whether the conclusions of the state still apply to the target. They do not if the
// mailbox was created again, or if the leader has recorded other written resources since the preparation.
func (t *targetState) canContinueWith(target Target) bool {
	before := t.currentTarget()
	return before.Mailbox == target.Mailbox &&
		(!t.isPreparing() || maps.EqualFunc(before.WrittenResources, target.WrittenResources, WrittenResource.equal))
}

// isPreparing reports whether the replica is not the leader, so that nothing may be written.
func (t *targetState) isPreparing() bool {
	select {
	case <-t.writesAllowed:
		return false
	default:
		return true
	}
}

// startPrepared starts the work of the prepared controllers, since this replica leads now.
func (m *Manager) startPrepared(state *targetState, target Target) {
	now := m.Clock.Now()
	state.lock.Lock()
	state.target.Prepare, state.target.TrustedUntil = false, target.TrustedUntil
	// Counts may be unknown for a time from now on, as for controllers that have just started.
	state.syncStartedAt = now
	for _, running := range state.syncControllers {
		running.startedAt = now
	}
	state.lock.Unlock()
	close(state.writesAllowed)
	m.enqueue(target.UID)
	m.ObjectsChanged.Publish(target.UID)
}
