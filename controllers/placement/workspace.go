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
	gosync "sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/synchub-dev/synchub/controllers/internal/driftbackoff"
	"github.com/synchub-dev/synchub/controllers/internal/expectations"
	"github.com/synchub-dev/synchub/controllers/internal/idlequeue"
	"github.com/synchub-dev/synchub/controllers/internal/lanes"
	"github.com/synchub-dev/synchub/controllers/internal/mailboxwrite"
	"github.com/synchub-dev/synchub/controllers/placement/customization"
	"github.com/synchub-dev/synchub/controllers/placement/rules"
	"github.com/synchub-dev/synchub/controllers/plan"
)

const (
	// concurrentPairs is the number of requests to mailboxes that one workspace has in flight.
	concurrentPairs = 16
	// patience is how long a worker waits for a mailbox. slowPairs is the number of requests to a slow mailbox that one workspace has in
	// flight; they take none of the workers.
	patience  = 500 * time.Millisecond
	slowPairs = 4
	// slowReportDelay is how long a mailbox must be slow before placements report it. kcp itself may be busy
	// for a moment.
	slowReportDelay = 5 * time.Second
	// idleTimeout is how long the queue of a workspace must be empty before its workers stop.
	idleTimeout = 5 * time.Second
)

// task is a key of a workspace's queue. With a mailbox and a resource it stands for one pair, and with only a
// mailbox for all pairs of the mailbox. Without a mailbox it stands for an object of the workspace, for the
// object's status, or for an event about the object.
type task struct {
	resource schema.GroupVersionResource
	name     types.NamespacedName
	mailbox  logicalcluster.Name
	status   bool
	warning  failure
}

// taskLane names the servers that a task waits for: a mailbox, or the workspace itself. The zero lane waits for
// neither.
type taskLane struct {
	mailbox logicalcluster.Name
	source  bool
}

func laneOf(t task) taskLane {
	return taskLane{mailbox: t.mailbox, source: t.status || t.warning != failure{}}
}

// objectKey names an object of a workload workspace. Its copies have the same name.
type objectKey struct {
	resource schema.GroupVersionResource
	name     types.NamespacedName
}

// keyOf returns the key of an object of a resource.
func keyOf(resource schema.GroupVersionResource, object *unstructured.Unstructured) objectKey {
	return objectKey{resource, types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}}
}

// pairKey names the copy of an object in a mailbox.
type pairKey struct {
	objectKey
	mailbox logicalcluster.Name
}

// workspace is a workload workspace.
type workspace struct {
	*Controller
	cluster logicalcluster.Name
	queue   *idlequeue.Queue[task]
	// lanes keep the tasks of slow mailboxes away from the workers of the queue.
	lanes  *lanes.Reconciler[task, taskLane]
	cancel context.CancelFunc
	// copyWriter writes to mailboxes, sourceWriter to the objects of the workspace, and placementWriter to its
	// placements, their slices and their PlacementRevisions.
	copyWriter                    mailboxwrite.Writer[pairKey]
	sourceWriter, placementWriter mailboxwrite.Writer[objectKey]
	// writes are the writes to mailboxes that the caches do not show yet.
	writes expectations.Writes[pairKey, *unstructured.Unstructured]
	// sourceWrites are the writes to objects of the workspace that the caches do not show yet.
	sourceWrites expectations.Writes[objectKey, *unstructured.Unstructured]
	deletions    deletions

	lock gosync.Mutex
	// closed is true once the controller has dropped the workspace.
	closed bool
	// placements are the active placements; nil before they are known.
	placements *placements
	// knownPlacements are the EdgePlacements of the last resolve. One that vanished stays until its absence is verified.
	knownPlacements []*unstructured.Unstructured
	// mustReselect is true if all objects must be selected again, whether or not the placements change.
	mustReselect bool
	// deleting is true if a placement waits for the withdrawal of its copies.
	deleting bool
	// objects have an entry if a placement selects them, or if they have a copy. desired is the number of desired pairs.
	// isBeyondLimit is true if objects lack pairs because there may be no more.
	objects map[objectKey]*object
	// crds are the keys of objects that are CustomResourceDefinitions.
	crds          map[objectKey]struct{}
	desired       int
	isBeyondLimit bool
	// customized are the objects whose copies differ from destination to destination.
	customized customized
	// reselecting is true while all objects are selected again. allSelected is true once all objects are known and selected.
	reselecting, allSelected bool
	// caughtUp is true once the hub may replace the statuses of the previous leader, see isCaughtUp.
	caughtUp bool
	// hasUnread is true if the labels of an object are beyond a limit and a report was requested.
	hasUnread bool
	// excluded are the objects that no placement selects.
	excluded excludedState
	// reported is when the status was last written.
	reported time.Time
}

// object is the state of one object of the workspace.
type object struct {
	// selectedBy are the placements that select the object, the oldest first.
	selectedBy []*resolvedPlacement
	// absence is the reason why no placement places the object; empty if one does. verified is true once kcp
	// has confirmed the reason.
	absence  plan.State
	verified bool
	pairs    map[logicalcluster.Name]*pair
	// customization is the customization request of the source.
	customization customization.Request
	// isBeyondLimit is true if the object lacks pairs at some destinations, because the workspace has reached
	// its limit of pairs.
	isBeyondLimit bool
	// contentHash is the hash of the source, see [rules.ContentHash].
	contentHash uint64
	// aggregationError is why the statuses of the copies cannot be combined.
	aggregationError string
}

// pair is the state of an object at one destination.
type pair struct {
	// desired is true if a placement wants the copy, and hasCopy if the mailbox shows one.
	desired, hasCopy bool
	// placed is true if the copy is as desired. waiting is true if the rollout holds the pair back. undecided
	// is true if the last pass could not decide about the pair.
	placed, waiting, undecided bool
	// inPass is true during a pass, which may write.
	inPass bool
	// changes is the number of changes of the content so far, and observedChanges the number at the last pass.
	changes, observedChanges uint32
	// failure is why the copy cannot be as desired; nil if nothing has failed.
	failure *failure
	// syncStatus is the sync status of the copy; nil if the copy is not placed, or no sync controller has tried
	// it.
	syncStatus *syncStatus
	// heldSince is when the copy first had to wait for the CRDs of the workspace; zero if it never did.
	heldSince time.Time
	backoff   *driftbackoff.Backoff
}

// passResult is the result of a pass for a pair, see the fields of pair.
type passResult struct {
	placed, waiting bool
	failure         *failure
	syncStatus      *syncStatus
}

// result returns the result of the last pass. The lock of the workspace guards it.
func (p *pair) result() passResult {
	return passResult{p.placed, p.waiting, p.failure, p.syncStatus}
}

// setResult sets the result of a pass. The lock of the workspace guards it.
func (p *pair) setResult(next passResult) {
	p.placed, p.waiting, p.failure, p.syncStatus = next.placed, next.waiting, next.failure, next.syncStatus
}

// changesCopy reports whether another result is about another content of the copy, or another failure of it. The status of the source
// depends on these.
func (r passResult) changesCopy(next passResult) bool {
	return r.placed != next.placed || r.waiting != next.waiting || !r.failure.equal(next.failure)
}

// equal reports whether two results look the same to users.
func (r passResult) equal(next passResult) bool {
	return !r.changesCopy(next) && r.syncStatus.equal(next.syncStatus)
}

// resolvedPlacement is an active placement with its destinations.
type resolvedPlacement struct {
	*rules.Placement
	rules.Resolution
	// chosen are the SyncTargets that the placement has chosen, including missing ones that keep their places;
	// nil if it takes all.
	chosen chosenTargets
	// workspace and inventories are the arguments that the destinations were resolved with.
	workspace   rules.Workspace
	inventories []logicalcluster.Name
	// mailboxes are the destinations that have a mailbox, by mailbox.
	mailboxes map[logicalcluster.Name]rules.Destination
	// rollout is the state of the placement's rollout; nil if it has none.
	rollout *rolloutState
}

func newWorkspace(c *Controller, cluster logicalcluster.Name) *workspace {
	w := &workspace{Controller: c, cluster: cluster, objects: map[objectKey]*object{}, crds: map[objectKey]struct{}{}, customized: newCustomized()}
	w.writes = expectations.New[pairKey, *unstructured.Unstructured](&w.lock, c.Clock)
	w.sourceWrites = expectations.New[objectKey, *unstructured.Unstructured](&w.lock, c.Clock)
	inWorkspace := func(key objectKey) mailboxwrite.Object {
		return mailboxwrite.Object{Workspace: cluster, Resource: key.resource, Name: key.name}
	}
	inMailbox := func(key pairKey) mailboxwrite.Object {
		return mailboxwrite.Object{Workspace: key.mailbox, Resource: key.resource, Name: key.name}
	}
	w.copyWriter = mailboxwrite.Writer[pairKey]{Workspaces: c.Mailboxes, FieldManager: c.fieldManager, Locate: inMailbox, Expectations: &w.writes}
	w.sourceWriter = mailboxwrite.Writer[objectKey]{Workspaces: c.Workloads, FieldManager: c.fieldManager, Locate: inWorkspace, Expectations: &w.sourceWrites}
	w.placementWriter = mailboxwrite.Writer[objectKey]{Workspaces: c.Workloads, FieldManager: c.fieldManager, Locate: inWorkspace}
	w.lanes = lanes.New(lanes.Options[task, taskLane]{
		Reconciler: w, LaneOf: laneOf, Patience: patience, Timeout: reconcileTimeout, MaxSlow: slowPairs,
		OnChange: func(taskLane) { c.reportRequests.Publish(cluster) }, Clock: c.Clock,
	})
	w.queue = idlequeue.New(idlequeue.Options[task]{
		Name:                    "placementpairs",
		Reconciler:              w.lanes,
		MaxConcurrentReconciles: concurrentPairs,
		MinRetryDelay:           minRetryDelay,
		MaxRetryDelay:           maxRetryDelay,
		IdleTimeout:             idleTimeout,
		Log: func(t task) logr.Logger {
			return c.Log.WithValues("workspace", cluster, "resource", t.resource.GroupResource(), "object", t.name.String(), "mailbox", t.mailbox)
		},
		Clock: c.Clock,
	})
	w.lanes.SetQueue(func(t task, after time.Duration) { w.queue.AddAfter(after, t) })
	return w
}

// slowMailboxes returns the mailboxes that are slow for slowReportDelay or longer. recheck is when the next
// mailbox reaches that delay; zero if no other mailbox is slow.
func (w *workspace) slowMailboxes() (slow map[logicalcluster.Name]bool, recheck time.Duration) {
	slow = map[logicalcluster.Name]bool{}
	for lane, since := range w.lanes.Slow() {
		wait := slowReportDelay - w.Clock.Since(since)
		switch {
		case lane.mailbox == "":
		case wait <= 0:
			slow[lane.mailbox] = true
		default:
			recheck = sooner(recheck, wait)
		}
	}
	return slow, recheck
}

// enqueue adds tasks to the queue. It does nothing before the controller has started: Start enqueues each pair,
// and makes the next resolve select all objects.
func (w *workspace) enqueue(tasks ...task) {
	if w.started.Load() {
		w.queue.Add(tasks...)
	}
}

// Reconcile carries out one task.
func (w *workspace) Reconcile(ctx context.Context, t task) (reconcile.Result, error) {
	switch {
	case t.warning != failure{}:
		w.warn(ctx, objectKey{t.resource, t.name}, t.warning)
		return reconcile.Result{}, nil
	case t.status:
		return w.reconcileSourceStatus(ctx, objectKey{t.resource, t.name})
	case t.mailbox == "":
		w.selectObject(objectKey{t.resource, t.name}, true)
		return reconcile.Result{}, nil
	case t.resource == schema.GroupVersionResource{}:
		w.enqueuePairsAt(t.mailbox)
		return reconcile.Result{}, nil
	default:
		return w.reconcilePair(ctx, pairKey{objectKey{t.resource, t.name}, t.mailbox})
	}
}

// enqueuePairsAt enqueues all pairs of a mailbox.
func (w *workspace) enqueuePairsAt(mailbox logicalcluster.Name) {
	w.lock.Lock()
	defer w.lock.Unlock()
	for key, object := range w.objects {
		if object.pairs[mailbox] != nil {
			w.enqueue(pairKey{key, mailbox}.task())
		}
	}
}

// enqueueAllPairs enqueues all pairs.
func (w *workspace) enqueueAllPairs() {
	w.lock.Lock()
	defer w.lock.Unlock()
	for key, object := range w.objects {
		for mailbox := range object.pairs {
			w.enqueue(pairKey{key, mailbox}.task())
		}
	}
}

// onCopy records that a mailbox shows a copy of an object of the workspace, or that the copy is gone.
func (w *workspace) onCopy(resource schema.GroupVersionResource, name types.NamespacedName, mailbox logicalcluster.Name, before, after *unstructured.Unstructured) {
	key := pairKey{objectKey{resource, name}, mailbox}
	if after == nil && before != nil {
		w.writes.DeletionObserved(key, before.GetUID())
	}
	w.lock.Lock()
	entry := w.ensureObject(key.objectKey)
	found := entry.pairs[mailbox]
	if found == nil {
		found = &pair{}
		entry.pairs[mailbox] = found
		w.countPair(key)
	}
	found.hasCopy = after != nil
	if found.hasCopy && !found.desired && entry.isWantedAt(mailbox) {
		w.change(entry, mailbox, func() { w.setPairDesired(found) })
	}
	w.enqueueWantedStatus(key.objectKey, entry)
	w.dropIfUnused(key)
	w.lock.Unlock()
	w.enqueue(key.task())
}

// ensureObject returns the state of an object, which it creates if there is none. It requires the lock.
func (w *workspace) ensureObject(key objectKey) *object {
	found, ok := w.objects[key]
	if !ok {
		found = &object{pairs: map[logicalcluster.Name]*pair{}}
		w.objects[key] = found
		if key.resource.GroupResource() == crdGroupResource {
			w.crds[key] = struct{}{}
		}
	}
	return found
}

// pairAt returns a pair with its object; nil if there is none. It requires the lock.
func (w *workspace) pairAt(key pairKey) (*object, *pair) {
	entry := w.objects[key.objectKey]
	if entry == nil || entry.pairs[key.mailbox] == nil {
		return nil, nil
	}
	return entry, entry.pairs[key.mailbox]
}

// countPair counts a new pair. The first pair of a resource changes the config of its mailbox.
func (w *workspace) countPair(key pairKey) {
	if w.configs.addPair(key) {
		w.configRequests.Publish(configKey{mailbox: key.mailbox})
	}
}

// mayHaveCopy reports whether the mailbox of a pair has a copy, or is about to show one. It requires the lock.
func (w *workspace) mayHaveCopy(key pairKey, found *pair) bool {
	return found.hasCopy || found.inPass || w.writes.IsPending(key)
}

// dropIfUnused drops a pair that is neither desired nor has a copy, and its object after the last pair. It requires the lock.
func (w *workspace) dropIfUnused(key pairKey) {
	entry := w.objects[key.objectKey]
	if entry == nil {
		return
	}
	if found := entry.pairs[key.mailbox]; found != nil && !found.desired && !w.mayHaveCopy(key, found) {
		delete(entry.pairs, key.mailbox)
		if w.configs.removePair(key) {
			w.configRequests.Publish(configKey{mailbox: key.mailbox})
		}
		w.names.set(key, w.cluster, false)
		if w.deleting {
			w.resolveRequests.Publish(w.cluster)
		}
	}
	w.dropObjectIfUnused(key.objectKey, entry)
}

// dropObjectIfUnused drops an object that no placement selects and that has no copy. It requires the lock.
func (w *workspace) dropObjectIfUnused(key objectKey, entry *object) {
	if len(entry.pairs) == 0 && len(entry.selectedBy) == 0 {
		w.setCustomization(key, entry, customization.Request{})
		delete(w.objects, key)
		w.deletions.forget(key)
		delete(w.crds, key)
	}
}

// requireReselect makes the next resolve select all objects again.
func (w *workspace) requireReselect() {
	w.lock.Lock()
	defer w.lock.Unlock()
	w.mustReselect = true
}

// selectsByNamespaceLabels reports whether an active placement selects objects by the labels of their
// Namespaces.
func (w *workspace) selectsByNamespaceLabels() bool {
	w.lock.Lock()
	defer w.lock.Unlock()
	return w.placements != nil && w.placements.byNamespaceLabels
}

// closeIfEmpty closes the workspace unless it has objects, and reports whether it is closed.
func (w *workspace) closeIfEmpty() bool {
	w.lock.Lock()
	defer w.lock.Unlock()
	w.closed = len(w.objects) == 0
	return w.closed
}
