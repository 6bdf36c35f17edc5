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
	"maps"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/objectsync"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/transform"
	"github.com/synchub-dev/synchub/controllers/syncmanager/schemacheck"
)

// schemaCheck is the running schema check for one connection to a target.
type schemaCheck struct {
	*schemacheck.Controller
	runner
}

// SetSchemas sets the schemas that the hub gives mailboxes, by mailbox resource.
func (m *Manager) SetSchemas(schemas map[schema.GroupResource]schemacheck.Schema) {
	m.lock.Lock()
	m.schemas = schemas
	m.lock.Unlock()
	m.enqueueAll()
}

func (m *Manager) schemaFor(resource plan.Resource) (found schemacheck.Schema, ok bool) {
	m.lock.Lock()
	defer m.lock.Unlock()
	found, ok = m.schemas[resource.GroupResource()]
	return found, ok && m.Checker != nil && resource.PublishedResource != ""
}

// prunerFor returns the pruner of the schema that mailboxes have from the hub, nil if they have none.
func (m *Manager) prunerFor(resource plan.Resource) *transform.Pruner {
	m.lock.Lock()
	defer m.lock.Unlock()
	if resource.PublishedResource == "" {
		return nil
	}
	return m.schemas[resource.GroupResource()].Kept
}

// updateSchemaCheck sets the resources that the schema check compares, and reads its results. The caller holds
// reconcileMutex.
func (m *Manager) updateSchemaCheck(state *targetState, wanted []plan.Resource) {
	if m.Checker == nil {
		return
	}
	target := state.currentTarget()
	needed := map[schema.GroupResource]schemacheck.Resource{}
	for _, resource := range wanted {
		if known, ok := m.schemaFor(resource); ok {
			onTarget := resource.TargetAPI()
			needed[resource.GroupResource()] = schemacheck.Resource{Schema: known, Target: onTarget.GroupVersionResource, Kind: onTarget.Kind, TrustedUntil: state.trustedUntil(resource, known)}
		}
	}
	if state.schemaCheck.Controller == nil || state.schemaCheck.Connection != target.Connection {
		state.schemaCheck.stop()
		controller := schemacheck.New(schemacheck.Options{
			Connection: target.Connection,
			Checker:    m.Checker,
			OnChange:   func() { m.enqueue(target.UID) },
			Clock:      m.Clock,
			Log:        m.Log.WithValues("syncTarget", target.Name),
		})
		state.schemaCheck = schemaCheck{controller, m.run(target.UID, controller.Run, controller.Log)}
	}
	state.schemaCheck.SetResources(needed)
	m.updateCompatibility(state, wanted)
}

// updateCompatibility updates the compatibility states of the wanted resources. A state without a new result
// stays, even across a restart. So states do not flap, and the hub does not write incompatible objects while
// the target does not respond.
func (m *Manager) updateCompatibility(state *targetState, wanted []plan.Resource) {
	next := maps.Clone(state.compatibilityStates)
	maps.DeleteFunc(next, func(target schema.GroupResource, _ schemacheck.State) bool {
		return !state.writtenResources[target].Direct
	})
	if next == nil {
		next = map[schema.GroupResource]schemacheck.State{}
	}
	for _, resource := range wanted {
		target := resource.TargetAPI().GroupResource()
		before, known := state.compatibilityStates[target]
		if _, ok := m.schemaFor(resource); !ok {
			next[target] = schemacheck.NotCompared(resource.Native || resource.RelatedOnly)
			continue
		}
		result, ok := state.schemaCheck.State(resource.GroupResource())
		switch {
		case ok && (result.SyncedResourceState != edgev2alpha1.SyncedResourcePending || !known):
			next[target] = result
		case known:
			next[target] = before
		}
	}
	state.lock.Lock()
	state.compatibilityStates = next
	state.lock.Unlock()
}

// isIncompatible reports whether mailbox objects of the resource do not fit into the target, so that the hub neither writes nor
// removes them there. The caller holds reconcileMutex.
func (m *Manager) isIncompatible(state *targetState, resource plan.Resource) bool {
	known, ok := m.schemaFor(resource)
	return ok && !known.WarnOnly && state.compatibilityStates[resource.TargetAPI().GroupResource()].IsSchemaIncompatible()
}

// isAccepted reports whether objects of a resource are known to fit. The caller holds reconcileMutex.
func (t *targetState) isAccepted(resource plan.Resource) bool {
	return t.compatibilityStates[resource.TargetAPI().GroupResource()].SyncedResourceState == edgev2alpha1.SyncedResourceAccepted
}

// trustedUntil returns until when the recorded compatibility of a resource counts without asking the target, zero if it does not. The
// caller holds reconcileMutex.
func (t *targetState) trustedUntil(resource plan.Resource, schema schemacheck.Schema) time.Time {
	if t.isAccepted(resource) && t.compatibilityStates[resource.TargetAPI().GroupResource()].Schema == schema.ID() {
		return t.currentTarget().TrustedUntil
	}
	return time.Time{}
}

// unblockedChannels returns the channel that closes once the compatibility of a resource no longer forbids writing its objects, if
// that was not known before.
func (m *Manager) unblockedChannels(state *targetState, resource plan.Resource) []<-chan struct{} {
	if m.isKnownToFit(state, resource) {
		return nil
	}
	if unblocked := state.schemaCheck.Unblocked(resource.GroupResource()); unblocked != nil {
		return []<-chan struct{}{unblocked}
	}
	return nil
}

// isIncompatibleEmpty reports whether the target has no objects of an incompatible resource that is no longer
// selected.
func (m *Manager) isIncompatibleEmpty(state *targetState, resource plan.Resource) (bool, error) {
	if !m.isIncompatible(state, resource) {
		state.emptinessChecks.forget(resource.GroupResource())
		return false, nil
	}
	empty, err := m.isListedEmpty(state, resource)
	if apierrors.IsNotFound(err) {
		return false, nil // the next schema check finds that it is not served, and then it does not count as incompatible
	}
	return empty, err
}

// reportStates publishes StateChanged if the states have changed since the last report.
func (m *Manager) reportStates(state *targetState) {
	syncTarget := state.currentTarget().UID
	states := m.States(syncTarget)
	if !maps.Equal(states, state.reportedStates) {
		state.reportedStates = states
		m.StateChanged.Publish(syncTarget)
		m.ObjectsChanged.Publish(syncTarget)
	}
}

// States returns for each resource of a SyncTarget's target whether mailbox objects fit, and whether the
// resource is usable at all. Resources with an unknown state are absent.
func (m *Manager) States(syncTarget types.UID) map[schema.GroupResource]schemacheck.State {
	found, ok := m.get(syncTarget)
	if !ok {
		return nil
	}
	found.lock.Lock()
	states := maps.Clone(found.compatibilityStates)
	found.lock.Unlock()
	for _, controller := range found.controllers() {
		target := controller.Resource.TargetAPI().GroupResource()
		unavailable := controller.Status.UnavailableResources()
		missing := slices.IndexFunc(unavailable, func(one objectsync.UnavailableResource) bool { return one.GroupResource == target })
		compat, known := states[target]
		if missing >= 0 && known && compat.SyncedResourceState != edgev2alpha1.SyncedResourceIncompatible {
			states[target] = schemacheck.State{
				SyncedResourceState: edgev2alpha1.SyncedResourceIncompatible, Reason: unavailable[missing].Reason, Message: unavailable[missing].Message,
			}
		}
	}
	return states
}

// incompatibleResources returns the resources whose objects are not written, with the reason. The caller holds
// state.lock.
func (m *Manager) incompatibleResources(state *targetState, published []plan.Resource) map[schema.GroupResource]schemacheck.State {
	incompatible := map[schema.GroupResource]schemacheck.State{}
	for _, resource := range published {
		if _, runs := state.syncControllers[resource.GroupResource()]; !runs && m.isIncompatible(state, resource) {
			incompatible[resource.GroupResource()] = state.compatibilityStates[resource.TargetAPI().GroupResource()]
		}
	}
	return incompatible
}
