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
	"slices"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/synchub-dev/synchub/controllers/objectsync"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/selection"
	"github.com/synchub-dev/synchub/controllers/plan/waves"
)

// stopControllers stops the controllers that are not wanted, or not in this way.
func (p *pass) stopControllers(wanted []plan.Resource, resolved map[schema.GroupResource]resolvedAPIs) {
	for groupResource, running := range p.state.syncControllers {
		controller := running.controller
		if controller.Connection != p.target.Connection || !slices.Contains(wanted, controller.Resource) || !resolved[groupResource].equal(controller.Options) || p.isIncompatible(controller.Resource) || controller.Pruner != p.manager.catalog.prunerFor(controller.Resource) {
			p.state.stopController(groupResource)
			// The status of the configs names resources that are no longer published.
			p.manager.ObjectsChanged.Publish(p.target.UID)
		}
	}
}

// startControllers starts the wanted controllers that do not run. It returns the resources of the controllers
// that cannot start before the target has responded.
func (p *pass) startControllers(wanted []plan.Resource, resolved map[schema.GroupResource]resolvedAPIs) (unstarted []schema.GroupResource) {
	// Controllers of earlier waves start first, so that later waves can wait for them.
	slices.SortStableFunc(wanted, func(a, b plan.Resource) int {
		return int(waves.Of(a.GroupResource()) - waves.Of(b.GroupResource()))
	})
	for _, resource := range wanted {
		groupResource := resource.GroupResource()
		switch {
		case !p.state.lacksController(resource) || p.isIncompatible(resource):
		case resolved[groupResource].unknown:
			unstarted = append(unstarted, groupResource)
		default:
			p.startController(resource, resolved[groupResource])
		}
	}
	return unstarted
}

func (p *pass) startController(resource plan.Resource, resolved resolvedAPIs) {
	m, state, target := p.manager, p.state, p.target
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
		SyncTargetInput:     func() map[string]any { return state.rules.mutationInput.Load().value },
		Registry:            state.registry,
		Relations:           resolved.relations,
		Pruner:              m.catalog.prunerFor(resource),
		Cordoned:            state.rules.cordoned.Load,
		Held:                func() bool { return m.History.Holds(target.UID) },
		Lost:                m.History.Lost,
		Adoption:            state.rules.adoptionPolicy,
		Tenants:             state.currentTenants,
		NamespacePolicy:     state.rules.namespaces.Load,
		IsPublished:         m.catalog.isPublished,
		RequestCompleteness: func(answered func() bool) { state.requestCompleteness(resource, answered) },
		RequeueRelated:      func() { state.requeueRelated(resource) },
		WaitFor:             slices.Concat([]<-chan struct{}{state.writesAllowed}, p.predecessors(resource), p.unblockedChannels(resource)),
		OnChange: func() {
			m.ObjectsChanged.Publish(target.UID)
			// The delayed reconcile stops a sync controller whose resource is empty.
			m.enqueueAfter(requeueDelay, target.UID)
		},
		SyncStatusChanged: &m.SyncStatusChanged,
		AggregateMetrics:  !m.settings.Metrics.PerResource,
		Journal:           m.Journal,
		Tracer:            m.Tracer,
		Clock:             m.Clock,
		Log:               log,
	}, state.matcher)
	state.lock.Lock()
	state.syncControllers[resource.GroupResource()] = &syncController{controller, m.Clock.Now(), p.start(controller.Run, log)}
	state.lock.Unlock()
	state.forwardCompletenessRequests(controller)
}

// predecessors returns the channels that close when the controllers of earlier waves have tried all their objects once.
func (p *pass) predecessors(resource plan.Resource) []<-chan struct{} {
	var before []<-chan struct{}
	for group, running := range p.state.syncControllers {
		if waves.Of(group) < waves.Of(resource.GroupResource()) {
			before = append(before, running.controller.FirstPassDone())
		}
	}
	return before
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
		if resource.Unpublishing || slices.Contains(chosen, resource) || !state.writtenResources.mayContain(resource.GroupResource()) {
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

// runner is the goroutine of a controller. The zero value means none.
type runner struct {
	cancel context.CancelFunc
	done   chan struct{}
}

// start runs a controller until [runner.stop], or until the manager ends.
func (p *pass) start(controller func(context.Context) error, log logr.Logger) runner {
	ctx, cancel := context.WithCancel(p.manager.Role.Context(p.manager.ctx, p.target.UID))
	started := runner{cancel, make(chan struct{})}
	go func() {
		defer close(started.done)
		if err := controller(ctx); err != nil {
			log.Error(err, "a controller ended")
		}
	}()
	return started
}

// stop returns when the controller has ended.
func (r runner) stop() {
	if r.cancel != nil {
		r.cancel()
		<-r.done
	}
}

// syncController is a running sync controller.
type syncController struct {
	controller *objectsync.Controller
	startedAt  time.Time
	runner
}
