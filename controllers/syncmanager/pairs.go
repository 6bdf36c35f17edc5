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
	"github.com/synchub-dev/synchub/controllers/sync"
	"github.com/synchub-dev/synchub/controllers/sync/order"
	"github.com/synchub-dev/synchub/controllers/sync/selection"
)

// settle starts what must run and stops what need not run any more.
func (m *Manager) settle(ctx context.Context, managed *managed, published []sync.Resource, publication int) error {
	managed.unresolved.Store(false)
	forms := map[schema.GroupResource]forms{}
	var errs []error
	for _, resource := range published {
		found, err := m.formsOf(managed, resource, relationsTo(published, resource), published)
		errs = append(errs, err)
		forms[resource.GroupResource()] = found
	}
	leaving := m.leaving(managed, published)
	wanted, err := wanted(managed, published, forms, func(resource sync.Resource) (bool, error) { return m.emptied(managed, resource) })
	errs = append(errs, err)
	m.compare(managed, wanted)
	if err := m.record(ctx, managed, wanted, published, forms); err != nil {
		return err
	}
	wanted = append(wanted, leaving...)
	connection := managed.describe().Connection
	for group, running := range managed.pairs {
		controller := running.controller
		if controller.Connection != connection || !slices.Contains(wanted, controller.Resource) || !forms[group].equal(controller.Options) || m.isFrozen(managed, controller.Resource) || controller.Kept != m.keptBy(controller.Resource) {
			managed.end(group)
			// What is no longer published is to be reported.
			m.observer.Changed(managed.describe().UID)
		}
	}
	managed.contribute(wanted)
	m.define(managed, wanted)
	// What must go first is started first, so that the others can wait for it.
	slices.SortStableFunc(wanted, func(a, b sync.Resource) int {
		return int(order.Of(a.GroupResource()) - order.Of(b.GroupResource()))
	})
	var unstarted []schema.GroupResource
	for _, resource := range wanted {
		group := resource.GroupResource()
		switch {
		case !managed.isMissing(resource) || m.isFrozen(managed, resource):
		case forms[group].unknown:
			unstarted = append(unstarted, group)
		default:
			m.start(managed, resource, forms[group])
		}
	}
	if managed.settle(publication, unstarted) {
		m.observer.Changed(managed.describe().UID)
	}
	m.tell(managed)
	return errors.Join(errs...)
}

// wanted returns the published resources that are selected, or recorded and not yet emptied on the target. One of which
// that cannot be told is wanted too, and does not hold up the others; the error says why.
func wanted(managed *managed, published []sync.Resource, forms map[schema.GroupResource]forms, emptied func(sync.Resource) (bool, error)) ([]sync.Resource, error) {
	var chosen []sync.Resource
	var errs []error
	for _, resource := range published {
		if resource.Leaving {
			continue
		}
		if selects(managed.matcher, resource, forms[resource.GroupResource()].targets) {
			chosen = append(chosen, resource)
		}
	}
	chosen = withRelated(chosen, published)
	for _, resource := range published {
		if resource.Leaving || slices.Contains(chosen, resource) || !managed.isRecorded(resource.GroupResource()) {
			managed.lists.forget(resource.GroupResource())
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

// selects tells whether anything asks for the resource for its own sake, in either direction.
func selects(matcher *selection.Matcher, resource sync.Resource, targets []sync.TargetResource) bool {
	if resource.Companion {
		return false
	}
	return resource.All || matcher.Selects(resource.GroupResource(), resource.Kind) ||
		slices.ContainsFunc(targets, func(target sync.TargetResource) bool { return matcher.SelectsUp(target.GroupResource(), target.Kind) })
}

// emptied tells whether a pair that nothing selects has left nothing on the target and in the mailbox: the caches are
// empty, and a list on the target, which does not depend on them, says so too.
func (m *Manager) emptied(managed *managed, resource sync.Resource) (bool, error) {
	running, ok := managed.pairs[resource.GroupResource()]
	if !ok {
		return m.isEmptyOf(managed, resource)
	}
	// Objects of an API that is not served would come back with it.
	if !running.controller.Empty() || !running.controller.Served() {
		managed.lists.forget(resource.GroupResource())
		return false, nil
	}
	return m.listsNothing(managed, resource)
}

// record writes down what the hub may write to, and whether objects fit there, if that changed. What belongs to a resource that is
// no longer published stays recorded: what was placed is still there.
func (m *Manager) record(ctx context.Context, managed *managed, wanted, published []sync.Resource, forms map[schema.GroupResource]forms) error {
	next := map[schema.GroupResource]Record{}
	for _, resource := range wanted {
		group := resource.GroupResource()
		for _, target := range forms[group].targets {
			if target.GroupResource() == group {
				next[group] = Record{Version: target.Version, Own: true, ConvertedFrom: next[group].ConvertedFrom}
			} else {
				next[target.GroupResource()] = next[target.GroupResource()].from(group, target.Version)
			}
		}
	}
	isPublished := func(group schema.GroupResource) bool {
		return slices.ContainsFunc(published, func(r sync.Resource) bool { return !r.Leaving && r.GroupResource() == group })
	}
	for group, record := range managed.recorded {
		if record.Own && !isPublished(group) {
			kept := next[group]
			kept.Own, kept.Version = true, record.Version
			next[group] = kept
		}
		for _, source := range record.ConvertedFrom {
			if !isPublished(source) {
				next[group] = next[group].from(source, record.Version)
			}
		}
	}
	managed.recordFits(next)
	if maps.EqualFunc(next, managed.recorded, Record.equal) {
		return nil
	}
	if err := m.Recorder.Record(ctx, managed.describe(), next); err != nil {
		return fmt.Errorf("cannot record the synced resources: %w", err)
	}
	managed.recorded = next
	if m.OnStates != nil {
		m.OnStates(managed.describe().UID)
	}
	return nil
}

// recordFits adds to the records whether objects fit, where that is known.
func (t *managed) recordFits(records map[schema.GroupResource]Record) {
	for group, record := range records {
		if fit := t.fits[group]; record.Own && fit.SyncedResourceState != edgev2alpha1.SyncedResourcePending {
			record.Fit = fit
			records[group] = record
		}
	}
}

func (m *Manager) start(managed *managed, resource sync.Resource, forms forms) {
	m.lock.Lock()
	owner := m.ctx
	m.lock.Unlock()
	target := managed.describe()
	log := m.Log.WithValues("syncTarget", target.Name, "resource", resource.GroupResource().String())
	controller := sync.New(sync.Options{
		Resource:   resource,
		Targets:    forms.targets,
		Unresolved: forms.unresolved,
		Mailbox:    target.Mailbox,
		Mailboxes:  m.Mailboxes,
		Connection: target.Connection,
		Owner:      m.Owner(target.UID),
		Hasher:     m.Hasher,
		SyncTarget: target.Name,
		Register:   managed.register,
		Relations:  forms.relations,
		Kept:       m.keptBy(resource),
		Cordoned:   managed.cordoned.Load,
		Adoption:   func() synchubv1alpha1.AdoptionPolicy { return managed.adoption.Load().(synchubv1alpha1.AdoptionPolicy) },
		Namespaces: managed.namespaces.Load,
		Publishes:  m.publishes,
		Demand:     func(answered func() bool) { managed.demand(resource, answered) },
		Again:      func() { managed.lookAgain(resource) },
		After:      append(managed.before(resource), m.mayFit(managed, resource)...),
		Changed:    func() { m.changed(target.UID) },
		Clock:      m.Clock,
		Log:        log,
	}, managed.matcher)
	ctx, cancel := context.WithCancel(owner)
	started := &pair{controller: controller, since: m.Clock.Now(), cancel: cancel, done: make(chan struct{})}
	managed.lock.Lock()
	managed.pairs[resource.GroupResource()] = started
	managed.lock.Unlock()
	managed.confirm(controller)
	go func() {
		defer close(started.done)
		if err := controller.Run(ctx); err != nil {
			log.Error(err, "the sync controller ended")
		}
	}()
}

// before returns what tells that all has been tried that must go to the target before the resource.
func (t *managed) before(resource sync.Resource) []<-chan struct{} {
	var before []<-chan struct{}
	for group, pair := range t.pairs {
		if order.Of(group) < order.Of(resource.GroupResource()) {
			before = append(before, pair.controller.FirstPass())
		}
	}
	return before
}

// changed is called by a sync controller when something happened to its objects.
func (m *Manager) changed(syncTarget types.UID) {
	m.observer.Changed(syncTarget)
	m.enqueueAfter(lookAgain, syncTarget)
}
