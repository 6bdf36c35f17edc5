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
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/patch"
	"github.com/synchub-dev/synchub/controllers/sync"
	"github.com/synchub-dev/synchub/controllers/sync/ownership"
	"github.com/synchub-dev/synchub/controllers/sync/selection"
	"github.com/synchub-dev/synchub/provider/requests"
)

// Reconcile brings the set of sync controllers of one SyncTarget in step with its configs.
func (m *Manager) Reconcile(ctx context.Context, syncTarget types.UID) (reconcile.Result, error) {
	managed, ok := m.get(syncTarget)
	if !ok {
		return reconcile.Result{}, nil
	}
	published := m.Published()
	managed.turn.Lock()
	defer managed.turn.Unlock()
	if managed.gone {
		return reconcile.Result{}, nil
	}
	if !m.compile(managed) {
		// The mailbox cannot be seen yet; its subscriber is told when it can.
		return reconcile.Result{}, nil
	}
	err := m.settle(ctx, managed, published)
	if err != nil && !apierrors.IsConflict(err) {
		return reconcile.Result{}, fmt.Errorf("SyncTarget %s: %w", managed.describe().Name, err)
	}
	return patch.Settle(err)
}

// compile takes over the configs of the mailbox as they are now; it returns false if they are not known.
func (m *Manager) compile(managed *managed) bool {
	m.lock.Lock()
	stale := managed.stale
	managed.stale = false
	m.lock.Unlock()
	if !stale {
		return managed.known
	}
	syncerConfigs, ok := list[edgev2alpha1.SyncerConfig](m, managed, ConfigResources[0])
	if !ok {
		return managed.known
	}
	edgeSyncConfigs, ok := list[edgev2alpha1.EdgeSyncConfig](m, managed, ConfigResources[1])
	if !ok {
		return managed.known
	}
	matcher := selection.Compile(syncerConfigs, edgeSyncConfigs)
	managed.lock.Lock()
	before := managed.known
	managed.known, managed.matcher = true, matcher
	managed.lock.Unlock()
	if !before {
		m.OnKnown(managed.describe().UID)
	}
	for _, controller := range managed.controllers() {
		controller.SetMatcher(matcher)
	}
	m.observer.Changed(managed.describe().UID)
	return true
}

// list returns all configs of one kind in the mailbox; ok is false if they cannot be seen now, and then the configs so
// far hold on.
func list[T any](m *Manager, managed *managed, resource schema.GroupVersionResource) (configs []*T, ok bool) {
	objects, ok := m.Mailboxes.List(resource, managed.describe().Mailbox)
	if !ok {
		return nil, false
	}
	slices.SortFunc(objects, oldestFirst)
	for _, object := range objects {
		config := new(T)
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, config); err != nil {
			// The schema that kcp enforces is generated from this type.
			m.Log.Error(err, "cannot read a config", "resource", resource.Resource, "name", object.GetName())
			continue
		}
		configs = append(configs, config)
	}
	return configs, true
}

func oldestFirst(a, b *unstructured.Unstructured) int {
	return a.GetCreationTimestamp().Compare(b.GetCreationTimestamp().Time)
}

// settle starts what must run and stops what need not run any more.
func (m *Manager) settle(ctx context.Context, managed *managed, published []sync.Resource) error {
	wanted, unclear := wanted(managed, published, func(resource sync.Resource) (bool, error) { return m.emptied(ctx, managed, resource) })
	if err := m.record(ctx, managed, wanted, published); err != nil {
		return err
	}
	connection := managed.describe().Connection
	for group, running := range managed.pairs {
		if running.controller.Connection != connection || !slices.Contains(wanted, running.controller.Resource) {
			managed.end(group)
		}
	}
	for _, resource := range wanted {
		if _, ok := managed.pairs[resource.GroupResource()]; !ok {
			if err := m.start(managed, resource); err != nil {
				return err
			}
		}
	}
	return unclear
}

// wanted returns the published resources that are selected, or recorded and not yet emptied on the target. One of which
// that cannot be told is wanted too, and does not hold up the others; the error says why.
func wanted(managed *managed, published []sync.Resource, emptied func(sync.Resource) (bool, error)) ([]sync.Resource, error) {
	var wanted []sync.Resource
	var errs []error
	for _, resource := range published {
		selected := managed.matcher.Selects(resource.GroupResource(), resource.Kind)
		_, recorded := managed.recorded[resource.GroupResource()]
		if !selected && recorded {
			empty, err := emptied(resource)
			errs = append(errs, err)
			recorded = err != nil || !empty
		}
		if selected || recorded {
			wanted = append(wanted, resource)
		}
	}
	return wanted, errors.Join(errs...)
}

// emptied tells whether a pair that nothing selects has left nothing on the target: its cache is empty, and a list on
// the target, which does not depend on the cache, says so too.
func (m *Manager) emptied(ctx context.Context, managed *managed, resource sync.Resource) (bool, error) {
	target := managed.describe()
	running, ok := managed.pairs[resource.GroupResource()]
	if !ok || !running.controller.Empty() || !target.Connection.Up() {
		return false, nil
	}
	owner := ownership.Owner{Hub: m.Hub, SyncTarget: target.UID}
	return target.Connection.IsEmpty(requests.As(ctx, requests.Background), resource.GroupVersionResource, sync.Selector(owner))
}

// record writes the pairs into the SyncTarget's status if they changed. Pairs whose resource is no longer published stay
// recorded: what they placed is still there.
func (m *Manager) record(ctx context.Context, managed *managed, wanted, published []sync.Resource) error {
	next := map[schema.GroupResource]struct{}{}
	all := slices.Clone(wanted)
	for _, resource := range wanted {
		next[resource.GroupResource()] = struct{}{}
	}
	for group := range managed.recorded {
		if !slices.ContainsFunc(published, func(r sync.Resource) bool { return r.GroupResource() == group }) {
			next[group] = struct{}{}
			all = append(all, sync.Resource{GroupVersionResource: group.WithVersion("")})
		}
	}
	same := len(next) == len(managed.recorded)
	for group := range next {
		_, ok := managed.recorded[group]
		same = same && ok
	}
	if same {
		return nil
	}
	if err := m.Recorder.Record(ctx, managed.describe(), all); err != nil {
		return fmt.Errorf("cannot record the synced resources: %w", err)
	}
	managed.recorded = next
	return nil
}

func (m *Manager) start(managed *managed, resource sync.Resource) error {
	m.lock.Lock()
	owner := m.ctx
	m.lock.Unlock()
	target := managed.describe()
	log := m.Log.WithValues("syncTarget", target.Name, "resource", resource.GroupResource().String())
	controller, err := sync.New(sync.Options{
		Resource:   resource,
		Mailbox:    target.Mailbox,
		Mailboxes:  m.Mailboxes,
		Connection: target.Connection,
		Owner:      ownership.Owner{Hub: m.Hub, SyncTarget: target.UID},
		Hasher:     m.Hasher,
		Changed:    func() { m.changed(target.UID) },
		Clock:      m.Clock,
		Log:        log,
	}, managed.matcher)
	if err != nil {
		return fmt.Errorf("cannot sync %s: %w", resource.GroupResource(), err)
	}
	ctx, cancel := context.WithCancel(owner)
	started := &pair{controller: controller, cancel: cancel, done: make(chan struct{})}
	managed.lock.Lock()
	managed.pairs[resource.GroupResource()] = started
	managed.lock.Unlock()
	go func() {
		defer close(started.done)
		if err := controller.Run(ctx); err != nil {
			log.Error(err, "the sync controller ended")
		}
	}()
	return nil
}

// changed is called by a sync controller when something happened to its objects.
func (m *Manager) changed(syncTarget types.UID) {
	m.observer.Changed(syncTarget)
	m.enqueueAfter(lookAgain, syncTarget)
}
