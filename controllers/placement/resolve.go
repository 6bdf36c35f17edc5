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
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/internal/mailboxwrite"
	"github.com/synchub-dev/synchub/controllers/placement/rules"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/waves"
	"github.com/synchub-dev/synchub/provider/mailboxes"
	"github.com/synchub-dev/synchub/provider/mailboxes/absence"
	"github.com/synchub-dev/synchub/provider/requestclass"
)

// outcome is the result of resolving one EdgePlacement. A non-empty reason overrides the reason that
// placementCounts give for the condition Ready.
type outcome struct {
	generation      int64
	reason, message string
	resolution      rules.Resolution
	// byLabels is true if the labels of objects decide which of them the placement selects.
	byLabels bool
	// choice is the rule that limits the destinations, and chosen are the chosen SyncTargets; both nil if the
	// placement takes all.
	choice *rules.Choice
	chosen chosenTargets
	// upsyncDenied are the names of the SyncTargets that spec.upsync does not apply to.
	upsyncDenied []string
	// missingAPIs are the APIs that the placement can select and that the workspace lacks.
	missingAPIs missingAPIs
}

// resolve resolves and activates the placements of a workspace.
func (c *Controller) resolve(ctx context.Context, cluster logicalcluster.Name) (reconcile.Result, error) {
	w := c.findWorkspace(cluster)
	if w == nil || c.CachePolicy.published() == nil {
		return reconcile.Result{}, nil
	}
	ctx = requestclass.With(ctx, requestclass.Extra)
	var next *placements
	switch c.Workloads.BindingState(cluster) {
	case mailboxes.BindingUnknown:
		// Nothing is known about the workspace: it keeps its copies.
		w.forgetPlacements()
		c.drop(w)
		return reconcile.Result{}, nil
	case mailboxes.BindingTerminating:
		// A user deletes the binding, or the workspace, and so withdraws everything.
		next = &placements{outcomes: map[types.UID]outcome{}, withdrawAll: true, fleetSynced: true}
	case mailboxes.BindingPresent:
		observed, known := w.observePlacements()
		if !known {
			return reconcile.Result{}, nil
		}
		if err := w.addFinalizers(ctx, observed); err != nil {
			return retryOutdated(err)
		}
		var err error
		if next, err = w.resolvePlacements(ctx, observed); err != nil {
			return reconcile.Result{}, err
		}
	}
	w.activate(next)
	after, err := w.removeFinalizers(ctx)
	if err != nil {
		return retryOutdated(err)
	}
	return reconcile.Result{RequeueAfter: sooner(after, next.resolveDelay(w.Clock.Now()))}, nil
}

// retryOutdated retries soon if an object has changed since the cache read it: the cache is about to show the
// newer one.
func retryOutdated(err error) (reconcile.Result, error) {
	if errors.Is(err, mailboxwrite.ErrOutdated) {
		return reconcile.Result{RequeueAfter: outdatedRetryDelay}, nil
	}
	return reconcile.Result{}, err
}

// outdatedRetryDelay is the delay of a retry after a write of an outdated object.
const outdatedRetryDelay = time.Second

// observePlacements returns the placements of the workspace. A placement that vanished counts until its absence
// is verified. known is false while the workspace cannot be read.
func (w *workspace) observePlacements() (observed []*unstructured.Unstructured, known bool) {
	listed, known := w.Workloads.List(edgePlacements, w.cluster)
	// The slices hold the choices of the previous leader.
	_, knownSlices := w.Workloads.List(slicesResource, w.cluster)
	if !known || !knownSlices {
		return nil, false
	}
	w.lock.Lock()
	before := w.knownPlacements
	w.lock.Unlock()
	names := map[string]bool{}
	for _, object := range listed {
		names[object.GetName()] = true
		if object.GetDeletionTimestamp() == nil {
			observed = append(observed, object)
		}
	}
	for _, object := range before {
		candidate := absence.Candidate{Resource: edgePlacements, Key: types.NamespacedName{Name: object.GetName()}, Missing: true}
		if names[object.GetName()] || w.Workloads.TakeVerifiedAbsence(w.cluster, candidate) {
			continue
		}
		w.Workloads.VerifyAbsence(w.cluster, candidate)
		observed = append(observed, object)
	}
	w.lock.Lock()
	w.knownPlacements = observed
	w.lock.Unlock()
	return observed, true
}

// resolvePlacements compiles and resolves placements. A placement that cannot be compiled or resolved makes the
// result partial. It returns an error if kcp does not answer now.
func (w *workspace) resolvePlacements(ctx context.Context, observed []*unstructured.Unstructured) (*placements, error) {
	// Take the snapshot after isFleetSynced, so that it has all SyncTargets that isFleetSynced found.
	next := &placements{outcomes: map[types.UID]outcome{}, fleetSynced: w.isFleetSynced()}
	view := w.Fleet.Snapshot()
	path, err := w.paths.pathOf(ctx, w.cluster)
	if err != nil && !isPathRefuted(err) {
		return nil, err
	}
	if err != nil {
		// The workspace's own Locations are available to it nevertheless.
		log.FromContext(ctx).Info("the path of a workload workspace is not verified, so only its own Locations are available to it", "reason", err.Error())
		next.partial, next.unresolvedPaths = true, true
	}
	self, paths := rules.Workspace{Cluster: w.cluster, Path: path}, 0
	var all []*resolvedPlacement
	for _, object := range observed {
		result := outcome{generation: object.GetGeneration()}
		one, err := parse(object)
		if err == nil {
			paths += len(one.InventoryPaths)
			err = checkPaths(paths)
		}
		if err != nil {
			next.partial = true
			result.reason, result.message = plan.ReasonInvalid, err.Error()
			// The placement keeps its choice until it is valid again.
			result.chosen = w.outcomeBefore(object.GetUID(), object.GetName()).chosen
			next.outcomes[object.GetUID()] = result
			continue
		}
		inventories, err := w.paths.clustersOf(ctx, one.InventoryPaths)
		if err != nil && !isPathRefuted(err) {
			return nil, err
		}
		if err != nil {
			// The status does not show whether such a workspace exists, because the tenant must not learn that.
			log.FromContext(ctx).Info("an inventory workspace of a placement is not found", "placement", one.Name, "reason", err.Error())
			next.partial, next.unresolvedPaths = true, true
		}
		active := &resolvedPlacement{Placement: one, workspace: self, inventories: inventories, rollout: w.rolloutOf(one)}
		result.resolution, result.missingAPIs = one.ResolveDestinations(view, self, inventories), w.missingAPIsOf(one)
		w.applyChoice(ctx, active, next, &result)
		active.setDestinations(&result)
		result.byLabels = one.SelectsByLabels()
		if path == "" && result.resolution.Locations == 0 {
			result.reason, result.message = rules.ReasonPathUnverified, pathUnverifiedMessage
		}
		result.upsyncDenied = upsyncDenied(one, result.resolution)
		next.outcomes[object.GetUID()] = result
		all = append(all, active)
		next.byNamespaceLabels = next.byNamespaceLabels || one.SelectsByNamespaceLabels()
	}
	if next.unresolvedPaths {
		// No event follows when a workspace of the path appears, or when the hub may see it.
		next.resolveBy(w.Clock.Now().Add(pathRetryDelay))
	}
	slices.SortFunc(all, func(a, b *resolvedPlacement) int { return a.Compare(b.Placement) })
	next.setAll(all)
	next.excludeCostly()
	costly := len(next.all)
	if next.excludeBeyondLimit(w.countPairs(next), w.MaxPairs, w.activeBefore(observed)); len(next.all) < costly {
		next.resolveBy(w.Clock.Now().Add(limitRecheck))
	}
	return next, nil
}

// upsyncDenied returns the names of the destinations that the upsync of a placement does not apply to.
func upsyncDenied(placement *rules.Placement, resolution rules.Resolution) (names []string) {
	for _, destination := range resolution.Destinations {
		if len(placement.Upsync) > 0 && !destination.MayUpsync {
			names = append(names, destination.Name)
		}
	}
	return names
}

// missingAPIs are the published resources that a placement can select and that its workspace does not show to
// the hub.
type missingAPIs struct {
	// unaccepted are claims that the binding does not accept. unbound are APIs that kcp has not bound because
	// of a naming conflict, and conflict is kcp's message about it.
	unaccepted, unbound []string
	conflict            string
}

// missingAPIsOf returns the APIs that a placement can select and that the workspace lacks. It ignores an
// exported API without a naming conflict, because kcp is about to bind it.
func (w *workspace) missingAPIsOf(placement *rules.Placement) (missing missingAPIs) {
	conflict, _ := w.Workloads.NamingConflict(w.cluster)
	for of := range w.CachePolicy.published() {
		resource, ok := w.resource(of)
		switch {
		case !ok, !placement.MaySelect(of.Group, of.Resource), !w.Workloads.IsKnownNotServed(w.cluster, of.GroupResource()):
		case !resource.Exported:
			missing.unaccepted = append(missing.unaccepted, of.GroupResource().String())
		case conflict != nil:
			missing.conflict = strings.TrimSuffix(conflict.Message, ".")
			missing.unbound = append(missing.unbound, of.GroupResource().String())
		}
	}
	slices.Sort(missing.unaccepted)
	slices.Sort(missing.unbound)
	return missing
}

// parse compiles a cached placement.
func parse(object *unstructured.Unstructured) (*rules.Placement, error) {
	if mailboxes.ProjectionOf(object) != mailboxes.FullObject {
		return nil, fmt.Errorf("the workspace has more placements, or larger ones, than the hub reads: remove some")
	}
	var placement edgev2alpha1.EdgePlacement
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &placement); err != nil {
		return nil, fmt.Errorf("the placement cannot be read: %w", err)
	}
	return rules.Compile(&placement)
}

// setDestinations sets the destinations and the choice from the outcome, and indexes the destinations by
// mailbox.
func (p *resolvedPlacement) setDestinations(result *outcome) {
	p.Resolution, p.chosen, p.mailboxes = result.resolution, result.chosen, map[logicalcluster.Name]rules.Destination{}
	for _, destination := range p.Destinations {
		if destination.Mailbox != "" {
			p.mailboxes[destination.Mailbox] = destination
		}
	}
}

// forEachObject calls a function for each cached object of the published resources. CustomResourceDefinitions
// come first, so that other objects can wait for them.
func (w *workspace) forEachObject(do func(resource plan.Resource, source *unstructured.Unstructured)) {
	crdsFirst := func(a, b schema.GroupVersionResource) int {
		return cmp.Compare(min(waves.Of(a.GroupResource()), waves.RBAC), min(waves.Of(b.GroupResource()), waves.RBAC))
	}
	for _, of := range slices.SortedFunc(maps.Keys(w.CachePolicy.published()), crdsFirst) {
		resource, ok := w.resource(of)
		if !ok {
			continue
		}
		objects, _ := w.Workloads.List(of, w.cluster)
		for _, source := range objects {
			do(resource, source)
		}
	}
}

// activate replaces the active placements. It selects all objects again if they differ. It enqueues the copies
// to withdraw in any case, because the view of an inventory may have changed.
func (w *workspace) activate(next *placements) {
	w.lock.Lock()
	before := w.placements
	next.requireNewDecisions()
	isBelowLimit := w.updateBeyondLimit(next)
	changed, all := before.reselection(next, w.mustReselect)
	changed = changed || isBelowLimit
	w.placements, w.mustReselect, w.reselecting = next, false, true
	hasCustomized := len(w.customized.all) > 0
	known := make(map[objectKey]bool, len(w.objects))
	for key := range w.objects {
		known[key] = true
	}
	w.lock.Unlock()
	w.CachePolicy.set(w.cluster, next)
	w.reportRequests.Publish(w.cluster)
	w.enqueueUpsync(next)
	if changed {
		w.Workloads.EnqueueCacheReview(w.cluster)
		w.selectAll(known, all)
	}
	if hasCustomized {
		w.enqueueCustomizedAt(before.mailboxesWithOtherParameters(next))
	}
	w.setSelectedAll()
}

// selectAll selects all objects that the workspace shows, and the known ones that it no longer shows. If all is
// true, it enqueues all pairs of the known ones.
func (w *workspace) selectAll(known map[objectKey]bool, all bool) {
	w.forEachObject(func(resource plan.Resource, source *unstructured.Unstructured) {
		key := keyOf(resource.GroupVersionResource, source)
		w.selectObject(key, all && known[key])
		delete(known, key)
	})
	// The workspace shows no source for these.
	for key := range known {
		w.selectObject(key, all)
	}
}

// setSelectedAll records that all objects have been selected, and requests the decisions about rollouts and the
// withdrawals. Only now it is certain which copies must be withdrawn.
func (w *workspace) setSelectedAll() {
	w.lock.Lock()
	defer w.lock.Unlock()
	w.reselecting = false
	w.noteExcluded()
	w.rolloutRequests.Publish(w.cluster)
	for key, object := range w.objects {
		w.enqueueWithdrawals(key, object, "")
	}
}

// rolloutOf returns the state of a placement's rollout: the present state if the placement is active already;
// nil if it has no rollout.
func (w *workspace) rolloutOf(placement *rules.Placement) *rolloutState {
	if placement.Rollout == nil {
		return nil
	}
	for _, one := range w.resolvedPlacements() {
		if one.UID == placement.UID && one.rollout != nil {
			return one.rollout
		}
	}
	return newRolloutState()
}

// enqueueWithdrawals enqueues the copies of an object that must be withdrawn, except from one mailbox. It
// requires the lock.
func (w *workspace) enqueueWithdrawals(key objectKey, object *object, except logicalcluster.Name) {
	for mailbox, found := range object.pairs {
		if !found.desired && found.hasCopy && mailbox != except {
			w.enqueue(pairKey{key, mailbox}.task())
		}
	}
}

// forgetPlacements drops the placements, because the workspace is not visible.
func (w *workspace) forgetPlacements() {
	w.lock.Lock()
	defer w.lock.Unlock()
	w.placements, w.knownPlacements, w.allSelected = nil, nil, false
}
