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
	"context"
	"maps"
	"slices"
	gosync "sync"

	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/synchub-dev/synchub/controllers/internal/writes"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/provider/topic"
)

// workspaces are the known workload workspaces.
type workspaces struct {
	shared *shared

	lock gosync.Mutex
	// ctx is set by start; the queues of all workspaces run in it.
	ctx     context.Context //nolint:containedctx // queues outlive the call that needs the first of a workspace
	all     map[logicalcluster.Name]*workspace
	running gosync.WaitGroup
}

// start runs the queues of all workspaces, also of later ones, until ctx ends, and returns the present workspaces.
func (w *workspaces) start(ctx context.Context) []*workspace {
	w.lock.Lock()
	defer w.lock.Unlock()
	w.ctx = ctx
	for _, one := range w.all {
		w.run(one)
	}
	return slices.Collect(maps.Values(w.all))
}

// run runs the queue of a workspace. It requires the lock.
func (w *workspaces) run(one *workspace) {
	if w.ctx == nil || w.ctx.Err() != nil {
		return
	}
	ctx, cancel := context.WithCancel(w.ctx)
	one.cancel = cancel
	w.running.Go(func() {
		if err := one.tasks.run(ctx); err != nil {
			w.shared.options.Log.Error(err, "the queue of a workload workspace ended", "workspace", one.cluster)
		}
	})
}

// ensure returns a workspace, which it creates if there is none.
func (w *workspaces) ensure(cluster logicalcluster.Name) *workspace {
	w.lock.Lock()
	defer w.lock.Unlock()
	found, ok := w.all[cluster]
	if !ok {
		found = newWorkspace(w.shared, cluster)
		w.all[cluster] = found
		w.run(found)
	}
	return found
}

// find returns a workspace, or nil.
func (w *workspaces) find(cluster logicalcluster.Name) *workspace {
	w.lock.Lock()
	defer w.lock.Unlock()
	return w.all[cluster]
}

// list returns all workspaces.
func (w *workspaces) list() []*workspace {
	w.lock.Lock()
	defer w.lock.Unlock()
	return slices.Collect(maps.Values(w.all))
}

// publish publishes all workspaces.
func (w *workspaces) publish(to *topic.Topic[logicalcluster.Name]) {
	for _, one := range w.list() {
		to.Publish(one.cluster)
	}
}

// drop removes a workspace that is not visible, unless it has copies.
func (w *workspaces) drop(one *workspace) {
	w.lock.Lock()
	defer w.lock.Unlock()
	if w.all[one.cluster] != one || !one.reflections.isEmpty() || !one.pairs.closeIfEmpty() {
		return
	}
	delete(w.all, one.cluster)
	w.shared.paths.forget(one.cluster)
	w.shared.options.CachePolicy.forget(one.cluster)
	if one.cancel != nil {
		one.cancel()
	}
}

// reconciler returns a reconciler of workspaces. It does nothing for a workspace that is dropped.
func (w *workspaces) reconciler(reconcileOne func(context.Context, *workspace) (reconcile.Result, error)) reconcile.TypedFunc[logicalcluster.Name] {
	return func(ctx context.Context, cluster logicalcluster.Name) (reconcile.Result, error) {
		one := w.find(cluster)
		if one == nil {
			return reconcile.Result{}, nil
		}
		return reconcileOne(ctx, one)
	}
}

// workspace is a workload workspace with the components that place its objects: the resolver resolves its placements, the
// selector selects objects by them, passes bring the pairs in line, and the reporter shows the result.
type workspace struct {
	cluster logicalcluster.Name
	tasks   *tasks
	cancel  context.CancelFunc

	sources    *sources
	active     *activePlacements
	pairs      *pairs
	resolver   *resolver
	finalizers *finalizers
	selector   *selector
	rollouts   *rollouts
	passes     *pairReconciler
	statuses   *sourceStatus
	// reflections are what came up into the workspace.
	reflections *reflections
	reflecting  *reflectionReconciler
	reporter    *reporter
}

func newWorkspace(s *shared, cluster logicalcluster.Name) *workspace {
	o, manager := s.options, ownership.FieldManager(s.options.Hub)
	w := &workspace{cluster: cluster, sources: &sources{cluster, o.Workloads, o.CachePolicy, o.Clock}, active: &activePlacements{}}
	reports := &reports{cluster: cluster, topic: &s.requests.report}
	w.tasks = newTasks(s, cluster, w, reports.request)
	w.pairs = newPairs(s, cluster, w.tasks, reports)
	inWorkspace := func(key objectKey) writes.Object {
		return writes.Object{Workspace: cluster, Resource: key.resource, Name: key.name}
	}
	// It writes placements, their slices and their PlacementRevisions.
	writer := &writes.WorkspaceWriter[objectKey]{Workspaces: o.Workloads, FieldManager: manager, Locate: inWorkspace}
	w.reflections = newReflections(s, cluster, w.tasks, reports, &w.pairs.deleting)
	copies := &copies{cluster, o.Mailboxes, o.CachePolicy, s.marks, &w.pairs.writes}
	w.resolver = &resolver{
		sources: w.sources, active: w.active, startup: s.startup, paths: s.paths, verifier: s.verifier, marks: s.marks,
		readiness: o.Readiness, maxPairs: o.MaxPairs, clock: o.Clock, pairs: w.pairs, grace: o.WithdrawalGrace,
		loggedInventories: map[types.UID]string{},
	}
	w.finalizers = &finalizers{sources: w.sources, pairs: w.pairs, reflections: w.reflections, fleet: o.Fleet, startup: s.startup, writer: writer}
	w.selector = &selector{sources: w.sources, pairs: w.pairs, reflections: w.reflections, active: w.active, reports: reports, tasks: w.tasks, marks: s.marks, requests: s.requests}
	w.rollouts = &rollouts{
		active: w.active, selector: w.selector, pairs: w.pairs, reports: reports, clock: o.Clock,
		revisions: &revisions{sources: w.sources, pairs: w.pairs, marks: s.marks, reports: reports, writer: writer, clock: o.Clock},
	}
	withdrawn := &withdrawn{}
	w.passes = &pairReconciler{
		withdrawn: withdrawn, journal: o.Journal,
		copies: copies, pairs: w.pairs, tasks: w.tasks, fleet: o.Fleet, history: o.History, hasher: o.Hasher, sync: o.Sync, clock: o.Clock,
		observer: &observer{sources: w.sources, copies: copies, pairs: w.pairs, active: w.active, marks: s.marks, verifier: s.verifier},
		executor: &executor{sources: w.sources, copies: copies, deletions: w.pairs.deletions, writer: writes.WorkspaceWriter[pairKey]{
			Workspaces: o.Mailboxes, FieldManager: manager, Locate: copies.locate, Expectations: &w.pairs.writes,
		}},
	}
	w.statuses = &sourceStatus{
		sources: w.sources, copies: copies, pairs: w.pairs, active: w.active, fleet: o.Fleet, startup: s.startup, marks: s.marks, journal: o.Journal,
		writes: writes.NewExpectations[objectKey, *unstructured.Unstructured](&gosync.Mutex{}, o.Clock),
	}
	w.statuses.writer = writes.WorkspaceWriter[objectKey]{Workspaces: o.Workloads, FieldManager: manager, Locate: inWorkspace, Expectations: &w.statuses.writes}
	w.reflecting = newReflectionReconciler(s, w, manager)
	w.reporter = &reporter{
		reflecting: w.reflecting, aggregator: &aggregator{sources: w.sources, reflections: w.reflections, active: w.active, reports: reports, clock: o.Clock},
		sources: w.sources, pairs: w.pairs, active: w.active, selector: w.selector, reports: reports, startup: s.startup, fleet: o.Fleet,
		history: o.History, marks: s.marks, writer: writer, withdrawals: o.Withdrawals, readiness: o.Readiness, withdrawn: withdrawn,
		announced: map[types.UID]announcedState{}, stuck: s.stuck, clock: o.Clock,
	}
	return w
}

// Reconcile carries out one task.
func (w *workspace) Reconcile(ctx context.Context, t task) (reconcile.Result, error) {
	switch {
	case t.warning != failure{}:
		warn(ctx, w.sources, t.object(), t.warning)
	case t.reflection && t.resource == schema.GroupVersionResource{}:
		return reconcile.Result{RequeueAfter: w.reflecting.observer.selectAt(t.mailbox, t.inMailbox)}, nil
	case t.reflection:
		return w.reflecting.reconcile(ctx, copyKey{t.resource, t.mailbox, t.name})
	case t.status:
		return w.statuses.reconcile(ctx, t.object())
	case t.mailbox == "":
		w.selector.selectObject(t.object(), true)
	case t.resource == schema.GroupVersionResource{}:
		w.pairs.enqueueAt(t.mailbox)
	default:
		return w.passes.reconcile(ctx, pairKey{t.object(), t.site})
	}
	return reconcile.Result{}, nil
}
