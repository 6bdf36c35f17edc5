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
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/objectsync"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/selection"
	"github.com/synchub-dev/synchub/controllers/plan/waves"
)

// reconcileControllers starts the needed sync controllers and stops the other ones.
func (m *Manager) reconcileControllers(ctx context.Context, state *targetState, published []plan.Resource, publication int) error {
	resolved, err := m.resolveTargetAPIs(state, published)
	errs := []error{err}
	unpublishing := m.unpublishing(state, published)
	wanted, err := desiredResources(state, published, resolved, func(resource plan.Resource) (bool, error) { return m.isEmptied(state, resource) })
	errs = append(errs, err)
	m.updateSchemaCheck(state, wanted)
	if err := m.storeWrittenResources(ctx, state, wanted, published, resolved); err != nil {
		return err
	}
	wanted = append(wanted, unpublishing...)
	m.stopControllers(state, wanted, resolved)
	state.updatePrimaries(wanted)
	m.updateCRDs(state, wanted)
	unstarted := m.startControllers(state, wanted, resolved)
	if state.markApplied(publication, unstarted) {
		m.ObjectsChanged.Publish(state.currentTarget().UID)
	}
	m.reportStates(state)
	return errors.Join(errs...)
}

// resolveTargetAPIs returns the APIs of all published resources. The error is only for the log. The caller holds reconcileMutex.
func (m *Manager) resolveTargetAPIs(state *targetState, published []plan.Resource) (map[schema.GroupResource]resolvedAPIs, error) {
	state.hasUnresolved.Store(false)
	resolved := map[schema.GroupResource]resolvedAPIs{}
	var errs []error
	for _, resource := range published {
		found, err := m.resolveTargetAPIsOf(state, resource, relationsTo(published, resource), published)
		errs = append(errs, err)
		resolved[resource.GroupResource()] = found
	}
	state.awaitAPIs(state.hasUnresolved.Load())
	return resolved, errors.Join(errs...)
}

// stopControllers stops the controllers that are not wanted, or not in this way. The caller holds reconcileMutex.
func (m *Manager) stopControllers(state *targetState, wanted []plan.Resource, resolved map[schema.GroupResource]resolvedAPIs) {
	connection := state.currentTarget().Connection
	for groupResource, running := range state.syncControllers {
		controller := running.controller
		if controller.Connection != connection || !slices.Contains(wanted, controller.Resource) || !resolved[groupResource].equal(controller.Options) || m.isIncompatible(state, controller.Resource) || controller.Pruner != m.prunerFor(controller.Resource) {
			state.stopController(groupResource)
			// The status of the configs names resources that are no longer published.
			m.ObjectsChanged.Publish(state.currentTarget().UID)
		}
	}
}

// startControllers starts the wanted controllers that do not run. It returns the resources of the controllers
// that cannot start before the target has responded. The caller holds reconcileMutex.
func (m *Manager) startControllers(state *targetState, wanted []plan.Resource, resolved map[schema.GroupResource]resolvedAPIs) (unstarted []schema.GroupResource) {
	// Controllers of earlier waves start first, so that later waves can wait for them.
	slices.SortStableFunc(wanted, func(a, b plan.Resource) int {
		return int(waves.Of(a.GroupResource()) - waves.Of(b.GroupResource()))
	})
	for _, resource := range wanted {
		groupResource := resource.GroupResource()
		switch {
		case !state.lacksController(resource) || m.isIncompatible(state, resource):
		case resolved[groupResource].unknown:
			unstarted = append(unstarted, groupResource)
		default:
			m.startController(state, resource, resolved[groupResource])
		}
	}
	return unstarted
}

// desiredResources returns the published resources that need a controller: the selected ones, resources related
// to them, and written resources that are not emptied yet. If it cannot determine whether a resource is empty,
// it includes the resource and returns the error, which does not affect the other resources.
func desiredResources(state *targetState, published []plan.Resource, resolved map[schema.GroupResource]resolvedAPIs, emptied func(plan.Resource) (bool, error)) ([]plan.Resource, error) {
	var chosen []plan.Resource
	var errs []error
	for _, resource := range published {
		if resource.Unpublishing {
			continue
		}
		if isSelected(state.matcher, resource, resolved[resource.GroupResource()].apis) {
			chosen = append(chosen, resource)
		}
	}
	chosen = withRelated(chosen, published)
	for _, resource := range published {
		if resource.Unpublishing || slices.Contains(chosen, resource) || !state.mayHaveWritten(resource.GroupResource()) {
			state.emptinessChecks.forget(resource.GroupResource())
			continue
		}
		empty, err := emptied(resource)
		errs = append(errs, err)
		if err != nil || !empty {
			chosen = append(chosen, resource)
		}
	}
	return withRelated(chosen, published), errors.Join(errs...)
}

// isSelected reports whether the resource is selected for downsync or upsync, not counting relations.
func isSelected(matcher *selection.Matcher, resource plan.Resource, targets []plan.TargetAPI) bool {
	if resource.RelatedOnly {
		return false
	}
	return resource.SelectAll || matcher.SelectsDown(resource.GroupResource(), resource.Kind) ||
		slices.ContainsFunc(targets, func(target plan.TargetAPI) bool { return matcher.SelectsUp(target.GroupResource(), target.Kind) })
}

// isEmptied reports whether an unselected pair has no object on the target or in the mailbox. Both the caches
// and a list on the target, which does not depend on the caches, must be empty.
func (m *Manager) isEmptied(state *targetState, resource plan.Resource) (bool, error) {
	running, ok := state.syncControllers[resource.GroupResource()]
	if !ok {
		return m.isIncompatibleEmpty(state, resource)
	}
	// If the target does not serve the API, its objects may reappear together with the API.
	if !running.controller.IsEmpty() || !running.controller.Status.IsServed() {
		state.emptinessChecks.forget(resource.GroupResource())
		return false, nil
	}
	return m.isListedEmpty(state, resource)
}

// storeWrittenResources records, if that changed, which resources of the target the hub may write, and whether
// objects fit there. Entries of resources that are no longer published stay, because their objects are still on
// the target.
func (m *Manager) storeWrittenResources(ctx context.Context, state *targetState, wanted, published []plan.Resource, resolved map[schema.GroupResource]resolvedAPIs) error {
	next := WrittenResources{}
	for _, resource := range wanted {
		groupResource := resource.GroupResource()
		for _, target := range resolved[groupResource].apis {
			if target.GroupResource() == groupResource {
				next[groupResource] = WrittenResource{Version: target.Version, Direct: true, ConvertedFrom: next[groupResource].ConvertedFrom}
			} else {
				next[target.GroupResource()] = next[target.GroupResource()].withSource(groupResource, target.Version)
			}
		}
	}
	isPublished := func(groupResource schema.GroupResource) bool {
		return slices.ContainsFunc(published, func(r plan.Resource) bool { return !r.Unpublishing && r.GroupResource() == groupResource })
	}
	for groupResource, record := range state.writtenResources {
		if record.Direct && !isPublished(groupResource) {
			kept := next[groupResource]
			kept.Direct, kept.Version = true, record.Version
			next[groupResource] = kept
		}
		for _, source := range record.ConvertedFrom {
			if !isPublished(source) {
				next[groupResource] = next[groupResource].withSource(source, record.Version)
			}
		}
	}
	state.addCompatibility(next)
	if maps.EqualFunc(next, state.writtenResources, WrittenResource.equal) {
		return nil
	}
	if err := m.WrittenResourceStore.StoreWrittenResources(ctx, state.currentTarget().UID, next); err != nil {
		return fmt.Errorf("cannot record the synced resources: %w", err)
	}
	state.writtenResources = next
	m.StateChanged.Publish(state.currentTarget().UID)
	return nil
}

// addCompatibility adds the known compatibility states to the records.
func (t *targetState) addCompatibility(records WrittenResources) {
	for group, record := range records {
		if state := t.compatibilityStates[group]; record.Direct && state.SyncedResourceState != edgev2alpha1.SyncedResourcePending {
			record.Compatibility = state
			record.Served = t.writtenResources[group].Served || state.SyncedResourceState == edgev2alpha1.SyncedResourceAccepted
			records[group] = record
		}
	}
}

func (m *Manager) startController(state *targetState, resource plan.Resource, resolved resolvedAPIs) {
	target := state.currentTarget()
	log := m.Log.WithValues("syncTarget", target.Name, "resource", resource.GroupResource().String())
	controller := objectsync.New(objectsync.Options{
		Resource:            resource,
		TargetAPIs:          resolved.apis,
		UnresolvedKinds:     resolved.unresolved,
		Mailbox:             target.Mailbox,
		Mailboxes:           m.Mailboxes,
		Connection:          target.Connection,
		Owner:               m.Owner(target.UID),
		Hasher:              m.Hasher,
		SyncTarget:          target.Name,
		SyncTargetInput:     func() map[string]any { return state.mutationInput.Load().value },
		Registry:            state.registry,
		Relations:           resolved.relations,
		Pruner:              m.prunerFor(resource),
		Cordoned:            state.cordoned.Load,
		Held:                func() bool { return m.History.Holds(target.UID) },
		Lost:                m.History.Lost,
		Adoption:            func() synchubv1alpha1.AdoptionPolicy { return state.adoption.Load().(synchubv1alpha1.AdoptionPolicy) },
		NamespacePolicy:     state.namespaces.Load,
		IsPublished:         m.isPublished,
		RequestCompleteness: func(answered func() bool) { state.requestCompleteness(resource, answered) },
		RequeueRelated:      func() { state.requeueRelated(resource) },
		WaitFor:             slices.Concat([]<-chan struct{}{state.writesAllowed}, state.predecessors(resource), m.unblockedChannels(state, resource)),
		OnChange:            func() { m.onObjectsChanged(target.UID) },
		ObjectStates:        m.ObjectStateChanged,
		AggregateMetrics:    m.AggregateMetrics,
		Tracer:              m.Tracer,
		Clock:               m.Clock,
		Log:                 log,
	}, state.matcher)
	state.lock.Lock()
	state.syncControllers[resource.GroupResource()] = &syncController{controller, m.Clock.Now(), m.run(target.UID, controller.Run, log)}
	state.lock.Unlock()
	state.forwardCompletenessRequests(controller)
}

// predecessors returns the channels that close when the controllers of earlier waves have tried all their objects once.
func (t *targetState) predecessors(resource plan.Resource) []<-chan struct{} {
	var before []<-chan struct{}
	for group, running := range t.syncControllers {
		if waves.Of(group) < waves.Of(resource.GroupResource()) {
			before = append(before, running.controller.FirstPassDone())
		}
	}
	return before
}

// onObjectsChanged is called by a sync controller when its objects changed. The delayed reconcile stops a sync
// controller whose resource is empty.
func (m *Manager) onObjectsChanged(syncTarget types.UID) {
	m.ObjectsChanged.Publish(syncTarget)
	m.enqueueAfter(requeueDelay, syncTarget)
}
