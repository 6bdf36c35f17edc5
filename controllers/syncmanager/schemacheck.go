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
	"github.com/synchub-dev/synchub/controllers/syncmanager/schemacheck"
)

// schemaCheck is the running schema check for one connection to a target.
type schemaCheck struct {
	*schemacheck.Controller
	runner
}

// updateSchemaCheck sets the resources that the schema check compares, and reads its results.
func (p *pass) updateSchemaCheck(wanted []plan.Resource) {
	m, target, running := p.manager, p.target, &p.state.schemaCheck
	if m.Checker == nil {
		return
	}
	needed := map[schema.GroupResource]schemacheck.Resource{}
	for _, resource := range wanted {
		if known, ok := m.catalog.comparedSchema(resource); ok {
			onTarget := resource.TargetAPI()
			needed[resource.GroupResource()] = schemacheck.Resource{Schema: known, Target: onTarget.GroupVersionResource, Kind: onTarget.Kind, TrustedUntil: p.trustedUntil(resource, known)}
		}
	}
	if running.Controller == nil || running.Connection != target.Connection {
		running.stop()
		controller := schemacheck.New(schemacheck.Options{
			Connection: target.Connection,
			Checker:    m.Checker,
			OnChange:   func() { m.enqueue(target.UID) },
			Clock:      m.Clock,
			Log:        m.Log.WithValues("syncTarget", target.Name),
		})
		*running = schemaCheck{controller, p.start(controller.Run, controller.Log)}
	}
	running.SetResources(needed)
	p.updateCompatibility(wanted)
}

// updateCompatibility updates the compatibility states of the wanted resources. A state without a new result
// stays, even across a restart. So states do not flap, and the hub does not write incompatible objects while
// the target does not respond.
func (p *pass) updateCompatibility(wanted []plan.Resource) {
	next := maps.Clone(p.state.compatibilityStates)
	maps.DeleteFunc(next, func(target schema.GroupResource, _ schemacheck.State) bool {
		return !p.state.writtenResources[target].Direct
	})
	if next == nil {
		next = map[schema.GroupResource]schemacheck.State{}
	}
	for _, resource := range wanted {
		target := resource.TargetAPI().GroupResource()
		before, known := p.state.compatibilityStates[target]
		if _, ok := p.manager.catalog.comparedSchema(resource); !ok {
			next[target] = schemacheck.NotCompared(resource.Native || resource.RelatedOnly)
			continue
		}
		result, ok := p.state.schemaCheck.State(resource.GroupResource())
		switch {
		case ok && (result.SyncedResourceState != edgev2alpha1.SyncedResourcePending || !known):
			next[target] = result
		case known:
			next[target] = before
		}
	}
	p.state.setCompatibilityStates(next)
}

// forgetCompatibility drops the compatibility state of a resource if the state refers to another version than
// the given one.
func (p *pass) forgetCompatibility(target schema.GroupResource, version string) {
	record, ok := p.state.writtenResources[target]
	if !ok || record.Version == version {
		return
	}
	states := maps.Clone(p.state.compatibilityStates)
	delete(states, target)
	p.state.setCompatibilityStates(states)
}

func (t *targetState) setCompatibilityStates(states map[schema.GroupResource]schemacheck.State) {
	t.lock.Lock()
	defer t.lock.Unlock()
	t.compatibilityStates = states
}

func (p *pass) isIncompatible(resource plan.Resource) bool {
	return p.state.isIncompatible(resource, &p.manager.catalog)
}

// isIncompatible reports whether mailbox objects of the resource do not fit into the target, so that the hub neither writes nor
// removes them there. The caller holds reconcileMutex or t.lock.
func (t *targetState) isIncompatible(resource plan.Resource, catalog *catalog) bool {
	known, ok := catalog.comparedSchema(resource)
	return ok && !known.WarnOnly && t.compatibilityStates[resource.TargetAPI().GroupResource()].IsSchemaIncompatible()
}

// isKnownToFit reports whether the leader has found that objects of the resource fit, or does not check it.
func (p *pass) isKnownToFit(resource plan.Resource) bool {
	known, ok := p.manager.catalog.comparedSchema(resource)
	return !ok || known.WarnOnly || p.isAccepted(resource)
}

// isAccepted reports whether objects of a resource are known to fit.
func (p *pass) isAccepted(resource plan.Resource) bool {
	return p.state.compatibilityStates[resource.TargetAPI().GroupResource()].SyncedResourceState == edgev2alpha1.SyncedResourceAccepted
}

// trustedUntil returns until when the recorded compatibility of a resource counts without asking the target, zero if it does not.
func (p *pass) trustedUntil(resource plan.Resource, schema schemacheck.Schema) time.Time {
	if p.isAccepted(resource) && p.state.compatibilityStates[resource.TargetAPI().GroupResource()].Schema == schema.ID() {
		return p.target.TrustedUntil
	}
	return time.Time{}
}

// unblockedChannels returns the channel that closes once the compatibility of a resource no longer forbids writing its objects, if
// that was not known before.
func (p *pass) unblockedChannels(resource plan.Resource) []<-chan struct{} {
	if p.isKnownToFit(resource) {
		return nil
	}
	if unblocked := p.state.schemaCheck.Unblocked(resource.GroupResource()); unblocked != nil {
		return []<-chan struct{}{unblocked}
	}
	return nil
}

// isIncompatibleEmpty reports whether the target has no objects of an incompatible resource that is no longer
// selected.
func (p *pass) isIncompatibleEmpty(resource plan.Resource) (bool, error) {
	if !p.isIncompatible(resource) {
		p.state.emptinessChecks.forget(resource.GroupResource())
		return false, nil
	}
	empty, err := p.isListedEmpty(resource)
	if apierrors.IsNotFound(err) {
		return false, nil // the next schema check finds that it is not served, and then it does not count as incompatible
	}
	return empty, err
}

// reportStates publishes StateChanged if the states have changed since the last report.
func (p *pass) reportStates() {
	states := p.state.states()
	if !maps.Equal(states, p.state.reportedStates) {
		p.state.reportedStates = states
		p.manager.StateChanged.Publish(p.target.UID)
		p.manager.ObjectsChanged.Publish(p.target.UID)
	}
}

// States returns for each resource of a SyncTarget's target whether mailbox objects fit, and whether the
// resource is usable at all. Resources with an unknown state are absent.
func (m *Manager) States(syncTarget types.UID) map[schema.GroupResource]schemacheck.State {
	found, ok := m.get(syncTarget)
	if !ok {
		return nil
	}
	return found.states()
}

func (t *targetState) states() map[schema.GroupResource]schemacheck.State {
	t.lock.Lock()
	states := maps.Clone(t.compatibilityStates)
	t.lock.Unlock()
	for _, controller := range t.controllers() {
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

// incompatibleResources returns the resources whose objects are not written, with the reason. The caller holds t.lock.
func (t *targetState) incompatibleResources(published []plan.Resource, catalog *catalog) map[schema.GroupResource]schemacheck.State {
	incompatible := map[schema.GroupResource]schemacheck.State{}
	for _, resource := range published {
		if _, runs := t.syncControllers[resource.GroupResource()]; !runs && t.isIncompatible(resource, catalog) {
			incompatible[resource.GroupResource()] = t.compatibilityStates[resource.TargetAPI().GroupResource()]
		}
	}
	return incompatible
}
