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
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/internal/findings"
	"github.com/synchub-dev/synchub/controllers/placement/fleet"
	"github.com/synchub-dev/synchub/controllers/placement/rules"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/provider/mailboxes"
	"github.com/synchub-dev/synchub/provider/mailboxes/absence"
)

// resolver resolves the placements of a workspace.
type resolver struct {
	sources   *sources
	active    *activePlacements
	startup   *startup
	paths     *pathVerifier
	verifier  verifier
	marks     marks
	readiness *findings.Readiness
	maxPairs  int
	clock     clock.PassiveClock
	// pairs and grace decide how long copies stay after a change in an inventory.
	pairs *pairs
	grace time.Duration
	// observed are the EdgePlacements of the last resolve. One that vanished stays until its absence is verified. Only the
	// controller that resolves uses them.
	observed []*unstructured.Unstructured
	// pathProblemSince is since when the path of the workspace is not verified; zero if it is. isPathLogged is true once the log has that.
	// loggedInventories is the last message about missing inventory workspaces, by placement.
	pathProblemSince  time.Time
	isPathLogged      bool
	loggedInventories map[types.UID]string
}

// pathProblemDelay is how long a path must have been unverified before that is logged. kcp takes some seconds to grant the hub access to a
// workspace that has just been bound.
const pathProblemDelay = 30 * time.Second

// logPathProblem logs once that the path of the workspace is not verified, if that lasts.
func (r *resolver) logPathProblem(ctx context.Context, err error) {
	now := r.clock.Now()
	if r.pathProblemSince.IsZero() {
		r.pathProblemSince = now
	}
	if !r.isPathLogged && now.Sub(r.pathProblemSince) >= pathProblemDelay {
		r.isPathLogged = true
		log.FromContext(ctx).Info("the path of a workload workspace is not verified, so only its own Locations are available to it", "reason", err.Error())
	}
}

// forget drops what the resolver has observed, because the workspace is not visible.
func (r *resolver) forget() {
	r.observed = nil
	r.active.update(func(s *selectionState) { s.placements, s.allSelected = nil, false })
}

// observe returns the placements of the workspace. A placement that vanished counts until its absence
// is verified. known is false while the workspace cannot be read.
func (r *resolver) observe() (observed []*unstructured.Unstructured, known bool) {
	listed, known := r.sources.list(edgePlacements)
	// The slices hold the choices of the previous leader.
	_, knownSlices := r.sources.list(slicesResource)
	if !known || !knownSlices {
		return nil, false
	}
	names := map[string]bool{}
	for _, object := range listed {
		names[object.GetName()] = true
		if object.GetDeletionTimestamp() == nil {
			observed = append(observed, object)
		}
	}
	workloads, cluster := r.sources.workloads, r.sources.cluster
	for _, object := range r.observed {
		candidate := absence.Candidate{Resource: edgePlacements, Key: types.NamespacedName{Name: object.GetName()}, Missing: true}
		if names[object.GetName()] || workloads.Absences.TakeVerifiedAbsence(cluster, candidate) {
			continue
		}
		workloads.Absences.VerifyAbsence(cluster, candidate)
		observed = append(observed, object)
	}
	r.observed = observed
	return observed, true
}

// resolve compiles and resolves placements. A placement that cannot be compiled or resolved makes the
// result partial. It returns an error if kcp does not answer now.
func (r *resolver) resolve(ctx context.Context, observed []*unstructured.Unstructured) (*placements, error) {
	// Take the snapshot after isFleetSynced, so that it has all SyncTargets that isFleetSynced found.
	next := &placements{outcomes: map[types.UID]outcome{}, fleetSynced: r.startup.isFleetSynced()}
	view := r.verifier.fleet.Snapshot()
	path, err := r.paths.pathOf(ctx, r.sources.cluster)
	if err != nil && !isPathRefuted(err) {
		return nil, err
	}
	if err != nil {
		// The workspace's own Locations are available to it nevertheless.
		r.logPathProblem(ctx, err)
		next.partial, next.unresolvedPaths = true, true
	} else {
		r.pathProblemSince, r.isPathLogged = time.Time{}, false
	}
	next.path = path
	self, paths := rules.Workspace{Cluster: r.sources.cluster, Path: path}, 0
	var all []*resolvedPlacement
	for _, object := range observed {
		one, err := parse(object)
		if err == nil {
			paths += len(one.InventoryPaths)
			err = checkPaths(paths)
		}
		if err != nil {
			next.partial = true
			next.outcomes[object.GetUID()] = outcome{
				generation: object.GetGeneration(), reason: plan.ReasonInvalid, message: err.Error(),
				// The placement keeps its choice until it is valid again.
				chosen: r.outcomeBefore(object.GetUID(), object.GetName()).chosen,
			}
			continue
		}
		active, err := r.resolveOne(ctx, next, one, view, self)
		if err != nil {
			return nil, err
		}
		all = append(all, active)
		next.byNamespaceLabels = next.byNamespaceLabels || one.SelectsByNamespaceLabels()
	}
	if next.unresolvedPaths {
		// No event follows when a workspace of the path appears, or when the hub may see it.
		next.resolveBy(r.clock.Now().Add(pathRetryDelay))
	}
	slices.SortFunc(all, func(a, b *resolvedPlacement) int { return a.Compare(b.Placement) })
	next.setAll(all)
	next.excludeCostly()
	count := len(next.all)
	if next.excludeBeyondLimit(next.countPairs(r.sources), r.maxPairs, r.activeBefore(observed)); len(next.all) < count {
		next.resolveBy(r.clock.Now().Add(limitRecheck))
	}
	r.holdCopies(next, view, observed)
	maps.DeleteFunc(r.loggedInventories, func(placement types.UID, _ string) bool { return !next.has(placementRef{uid: placement}) })
	return next, nil
}

// resolveOne resolves one placement, and adds its outcome to the next ones.
func (r *resolver) resolveOne(ctx context.Context, next *placements, one *rules.Placement, view *fleet.Snapshot, self rules.Workspace) (*resolvedPlacement, error) {
	inventories, err := r.paths.clustersOf(ctx, one.InventoryPaths)
	if err != nil && !isPathRefuted(err) {
		return nil, err
	}
	if err != nil {
		// The status does not show whether such a workspace exists, because the tenant must not learn that.
		if text := err.Error(); r.loggedInventories[one.UID] != text {
			r.loggedInventories[one.UID] = text
			log.FromContext(ctx).Info("an inventory workspace of a placement is not found", "placement", one.Name, "reason", text)
		}
		next.partial, next.unresolvedPaths = true, true
	}
	active := &resolvedPlacement{Placement: one, workspace: self, inventories: inventories, mailboxes: map[logicalcluster.Name]rules.Destination{}, rollout: r.rolloutOf(one)}
	result := outcome{
		generation: one.Generation, resolution: one.ResolveDestinations(view, self, inventories), missingAPIs: r.sources.missingAPIs(one), byLabels: one.SelectsByLabels(),
	}
	r.applyChoice(ctx, active, next, &result)
	active.Resolution, active.chosen = result.resolution, result.chosen
	for _, destination := range active.Destinations {
		if destination.Mailbox != "" {
			active.mailboxes[destination.Mailbox] = destination
		}
	}
	if self.Path == "" && result.resolution.Locations == 0 {
		result.reason, result.message = rules.ReasonPathUnverified, pathUnverifiedMessage
	}
	result.upsyncDenied = active.upsyncDenied()
	next.outcomes[one.UID] = result
	return active, nil
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

// rolloutOf returns the state of a placement's rollout: the present state if the placement is active already;
// nil if it has no rollout.
func (r *resolver) rolloutOf(placement *rules.Placement) *rolloutState {
	if placement.Rollout == nil {
		return nil
	}
	if active := r.active.get(); active != nil {
		if one := active.find(placement.UID); one != nil && one.rollout != nil {
			return one.rollout
		}
	}
	return newRolloutState()
}

// activeBefore returns the placements that were active before this resolve. After a start, it returns the
// placements whose status.placed is above zero. A user who sets status.placed only gets a part of their own
// placement placed, within the limit.
func (r *resolver) activeBefore(observed []*unstructured.Unstructured) map[types.UID]bool {
	before := map[types.UID]bool{}
	if active := r.active.get(); active != nil {
		for _, one := range active.all {
			before[one.UID] = true
		}
		return before
	}
	for _, object := range observed {
		placed, _, _ := unstructured.NestedInt64(object.Object, "status", "placed")
		before[object.GetUID()] = placed > 0
	}
	return before
}

// outcomeBefore returns the outcome of a placement from the last resolve. After a start the outcome contains
// only the choice, which comes from the slice.
func (r *resolver) outcomeBefore(placement types.UID, name string) outcome {
	if active := r.active.get(); active != nil {
		if found, ok := active.outcomes[placement]; ok {
			return found
		}
	}
	if slice := r.sources.slice(name); slice != nil {
		return outcome{chosen: r.marks.verifyChoice(r.sources.cluster, placement, slice)}
	}
	return outcome{}
}
