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
	"errors"
	"fmt"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/internal/findings"
	"github.com/synchub-dev/synchub/controllers/internal/status"
	"github.com/synchub-dev/synchub/controllers/internal/writes"
	"github.com/synchub-dev/synchub/controllers/placement/fleetcache"
	"github.com/synchub-dev/synchub/controllers/placement/rules"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/provider/storehistory"
	"github.com/synchub-dev/synchub/provider/topic"
	"github.com/synchub-dev/synchub/provider/wording"
)

// reportInterval is the least time between two status writes for the placements of one workspace.
const reportInterval = 5 * time.Second

// maxReportDelay bounds how long a report waits for the decision about a rollout. Objects that keep changing
// delay the decision.
const maxReportDelay = 30 * time.Second

// objectLimitMessage is the message of a placement whose counts may lack objects.
const objectLimitMessage = "The workspace has more objects than the hub reads, or larger ones: it does not know the labels of those beyond the limit, and places none of them by a label selector. Remove objects, or ask the operator of the hub for larger limits of mailboxes."

// reporter writes the statuses and the slices of the placements of a workspace. Only the controller of reports uses its state.
type reporter struct {
	sources  *sources
	pairs    *pairs
	active   *activePlacements
	selector *selector
	reports  *reports
	startup  *startup
	fleet    *fleetcache.Fleet
	history  *storehistory.Guard
	marks    marks
	writer   *writes.WorkspaceWriter[objectKey]
	clock    clock.PassiveClock
	// withdrawals get the copies that wait for their withdrawal. withdrawn are the ones that were withdrawn.
	withdrawals *findings.Withdrawals
	withdrawn   *withdrawn
	// readiness reports which destinations are away.
	readiness *findings.Readiness
	// announced is what the last event Placed of each placement is about, or would have been before the start.
	announced map[types.UID]announcedState
	// stuck are the copies that a cluster does not let the hub withdraw.
	stuck *stuckCopies

	// reflecting has what came up into the workspace, and aggregator combines it.
	reflecting *reflectionReconciler
	aggregator *aggregator

	// reportedAt is when a status was last written.
	reportedAt time.Time
	// caughtUp is true once isCaughtUp was.
	caughtUp bool
	// excluded are the objects that no placement selects, counted at countedAt.
	excluded  excludedObjects
	countedAt time.Time
}

// report writes the status and the slice of each placement of the workspace, where they differ, and the events about what was withdrawn.
func (r *reporter) report(ctx context.Context) (reconcile.Result, error) {
	again := r.recordWithdrawn(ctx)
	result, err := r.reportStatuses(ctx)
	result.RequeueAfter = sooner(result.RequeueAfter, again)
	return result, err
}

// setExcluded counts the excluded objects of each placement. It returns when to count them again.
func (r *reporter) setExcluded(of *summary) (again time.Duration) {
	again = r.countExcluded()
	for _, counted := range of.counts {
		counted.excluded, counted.excludedObjects = r.excluded.of(counted.namespaces)
	}
	return again
}

// reportStatuses writes the status and the slice of each placement of the workspace, where they differ.
func (r *reporter) reportStatuses(ctx context.Context) (reconcile.Result, error) {
	if wait := r.delay(); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	placements, known := r.sources.list(edgePlacements)
	_, knownSlices := r.sources.list(slicesResource)
	// Check the selection first: the summary then contains all selected objects.
	wasSelected := r.caughtUp || r.selector.hasSelectedListed() && r.reflecting.observer.areListed()
	summary, resolved := r.summarize()
	if !known || !knownSlices || !resolved {
		return reconcile.Result{}, nil
	}
	r.addStuckCopies(&summary)
	r.publishWithdrawals(summary.pendingWithdrawals)
	readsAll := r.sources.areRead()
	r.caughtUp = r.isCaughtUp(wasSelected, summary)
	again := sooner(r.setExcluded(&summary), r.evaluateAggregations())
	r.forgetAnnounced(placements)
	result := reconcile.Result{RequeueAfter: sooner(summary.recheck, again)}
	for _, placement := range placements {
		found, ok := r.outcomeOf(placement, summary, readsAll)
		counted := summary.counts[placement.GetUID()]
		if !ok || r.mustAwaitDecision(summary, counted) {
			continue
		}
		if !r.caughtUp && isReported(placement) {
			// The status of the previous leader stays until the hub has caught up.
			result.RequeueAfter = sooner(result.RequeueAfter, startupPoll)
			continue
		}
		if counted != nil {
			counted.away = r.awayDestinations(found)
		}
		held := r.heldDestinations(found)
		if err := r.reportOne(ctx, placement, found, counted, held); err != nil {
			return reconcile.Result{}, fmt.Errorf("cannot write the status of the EdgePlacement %s: %w", placement.GetName(), err)
		}
		if len(held) > 0 {
			result.RequeueAfter = heldRetryInterval
		}
	}
	return result, nil
}

// evaluateAggregations evaluates spec.aggregation of the placements, once the hub has caught up after a start. It returns when to repeat
// that.
func (r *reporter) evaluateAggregations() (again time.Duration) {
	if !r.caughtUp {
		return 0
	}
	return r.aggregator.evaluate()
}

// delay returns how long the next report must wait; not positive if it need not.
func (r *reporter) delay() time.Duration { return reportInterval - r.clock.Since(r.reportedAt) }

// outcomeOf returns the outcome of a placement; ok is false while it is unknown.
func (r *reporter) outcomeOf(placement *unstructured.Unstructured, summed summary, readsAll bool) (found outcome, ok bool) {
	if placement.GetDeletionTimestamp() != nil {
		active := r.active.get()
		return withdrawing(placement.GetGeneration(), summed, active != nil && active.partial), true
	}
	found, ok = summed.outcomes[placement.GetUID()]
	if found.reason == "" && found.byLabels && !readsAll {
		found.reason, found.message = rules.ReasonLimitExceeded, objectLimitMessage
	}
	return found, ok
}

// withdrawing returns the outcome of a deleted placement while copies are left to withdraw. isPartial is true if the workspace
// has placements whose rules or destinations are unknown.
func withdrawing(generation int64, summed summary, isPartial bool) outcome {
	message := fmt.Sprintf("Left to withdraw: %s of objects of this workspace.%s", wording.Count(summed.withdrawing, "copy", "copies"), summed.blockedWithdrawal)
	if isPartial {
		message += " Another placement of the workspace is invalid or beyond a limit, or a workspace cannot be found: see their conditions. Until that is fixed, only copies of deleted objects are withdrawn."
	}
	return outcome{generation: generation, reason: rules.ReasonWithdrawing, message: message}
}

// isCaughtUp reports whether the hub knows all facts in the statuses of the previous leader. It has then
// selected all objects, each destination has its mailbox, a pass was made for each pair, and each copy is
// synced with its cluster or has failed. After the first true, and after startupGrace, it always returns true.
func (r *reporter) isCaughtUp(wasSelected bool, summed summary) bool {
	return r.caughtUp || wasSelected && !summed.isPending() || !r.startup.inGrace()
}

// mustAwaitDecision reports whether the decision about the rollout of a placement is about to be made. Another
// report follows the decision.
func (r *reporter) mustAwaitDecision(summed summary, counted *placementCounts) bool {
	return summed.allSelected && counted != nil && counted.rollout != nil && !counted.rollout.decided && r.delay() > -maxReportDelay
}

// countExcluded counts the excluded objects if they have changed, at most once in reportInterval. again is when it may count them
// again; zero if nothing has changed.
func (r *reporter) countExcluded() (again time.Duration) {
	if !r.reports.excludedChanged.Load() {
		return 0
	}
	if wait := reportInterval - r.clock.Since(r.countedAt); wait > 0 {
		return wait
	}
	r.reports.excludedChanged.Store(false)
	active := r.active.get()
	r.excluded, r.countedAt = r.sources.countExcluded(active), r.clock.Now()
	return 0
}

// heldDestinations returns the names of the placement's destinations where nothing is withdrawn, because kcp went back to
// an earlier state.
func (r *reporter) heldDestinations(found outcome) (held []string) {
	if r.history.Current() == nil {
		return nil
	}
	for i := range found.resolution.Destinations {
		if destination := &found.resolution.Destinations[i]; r.history.Holds(destination.UID) {
			held = append(held, destination.Name)
		}
	}
	slices.Sort(held)
	return held
}

// isReported reports whether the status of a placement describes its present generation.
func isReported(placement *unstructured.Unstructured) bool {
	reported, _, _ := unstructured.NestedInt64(placement.Object, "status", "specGeneration")
	return reported == placement.GetGeneration()
}

// reportOne writes the status and the slice of one placement if they differ. A deleted placement keeps its
// slice.
func (r *reporter) reportOne(ctx context.Context, placement *unstructured.Unstructured, found outcome, counted *placementCounts, held []string) error {
	if err := r.writeStatus(ctx, placement, found, counted, held); err != nil || placement.GetDeletionTimestamp() != nil {
		return err
	}
	return r.writeSlice(ctx, placement, found)
}

// writeStatus patches the status of a placement if it differs.
func (r *reporter) writeStatus(ctx context.Context, object *unstructured.Unstructured, found outcome, counted *placementCounts, held []string) error {
	var placement edgev2alpha1.EdgePlacement
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &placement); err != nil {
		return err
	}
	if counted == nil {
		counted = &placementCounts{}
	}
	next := nextStatus(&placement.Status, found, counted, held)
	setAggregation(next, &placement, r.aggregator.results[object.GetUID()])
	next.UnplacedResources = r.sources.policy.load().unplaced
	// The events come first: after a crash the status still differs.
	events := append(statusEvents(&placement.Status, next, counted.onClusters), r.placedEvents(object.GetUID(), &placement.Status, next, found)...)
	r.recordEvents(ctx, object, events)
	if apiequality.Semantic.DeepEqual(&placement.Status, next) {
		return nil
	}
	fields, err := statusFields(&placement.Status, next)
	if err != nil {
		return err
	}
	patch, err := writes.MergePatch(map[string]any{"metadata": map[string]any{"uid": object.GetUID()}, "status": fields})
	if err != nil {
		return err
	}
	err = r.writer.PatchStatus(ctx, keyOf(edgePlacements, object), patch, true)
	r.reportedAt = r.clock.Now()
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// nextStatus returns the status of a placement, without the unplaced resources. held are the result of heldDestinations.
func nextStatus(before *edgev2alpha1.EdgePlacementStatus, found outcome, counted *placementCounts, held []string) *edgev2alpha1.EdgePlacementStatus {
	next := before.DeepCopy()
	next.SpecGeneration = toInt32(found.generation)
	next.MatchingLocationCount = toInt32(int64(found.resolution.Locations))
	next.Destinations = toInt32(int64(len(found.resolution.Destinations)))
	next.Selected, next.Placed, next.Failed, next.Failures = counted.selected, counted.placed, counted.failed, counted.failures
	next.Progressing, next.Upsynced = counted.inProgressPairs, counted.reflections.present
	next.Excluded, next.ExcludedObjects = counted.excluded, counted.excludedObjects
	if !counted.unobserved {
		next.ObservedObjects = counted.fingerprint.String()
	}
	next.Synced, next.Healthy, next.Rollout = counted.synced, counted.healthy, rolloutStatus(found, counted)
	if before.Rollout != nil && next.Rollout != nil && next.Rollout.Revision == nil {
		// The hub has not read the revision since its start.
		next.Rollout.Revision = before.Rollout.Revision
	}
	for _, condition := range []metav1.Condition{
		readyCondition(found, counted), healthyCondition(found, counted), rolloutCondition(found, counted),
		apisMissingCondition(found), upsyncCondition(found), upsyncIncompleteCondition(counted), choiceCondition(found), storeWentBackCondition(held), withdrawalCondition(counted),
	} {
		condition.ObservedGeneration = found.generation
		if condition.Reason == "" {
			meta.RemoveStatusCondition(&next.Conditions, condition.Type)
			continue
		}
		// Users write the selectors and names that messages quote.
		condition.Message = status.Truncate(condition.Message)
		meta.SetStatusCondition(&next.Conditions, condition)
	}
	return next
}

// toInt32 returns the number, or the largest int32 if it is larger: KubeStellar's fields have 32 bits.
func toInt32(number int64) int32 { return int32(min(number, math.MaxInt32)) } //nolint:gosec // it fits

// statusFields returns a status for a merge patch: an empty list replaces the former one, and fields of the former aggregation go.
func statusFields(before, status *edgev2alpha1.EdgePlacementStatus) (map[string]any, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(status)
	if err != nil {
		return nil, err
	}
	if fields["aggregation"], err = aggregationPatch(before.Aggregation, status.Aggregation); err != nil {
		return nil, err
	}
	for _, list := range []string{"conditions", "failures", "progressing", "unplacedResources", "excludedObjects"} {
		if fields[list] == nil {
			fields[list] = []any{}
		}
	}
	for _, count := range []string{"excluded", "upsynced"} {
		if fields[count] == nil {
			fields[count] = int64(0)
		}
	}
	rollout, ok := fields["rollout"].(map[string]any)
	switch {
	case !ok:
		fields["rollout"] = nil
	case rollout["failedClusters"] == nil:
		rollout["failedClusters"] = nil
	}
	return fields, nil
}

// writeSlice creates or updates the SinglePlacementSlice of a placement if it differs. While a mistake hides
// destinations, whose copies stay, the slice stays too: after a restart, the hub reads the chosen SyncTargets
// from it.
func (r *reporter) writeSlice(ctx context.Context, placement *unstructured.Unstructured, found outcome) error {
	before := r.sources.slice(placement.GetName())
	if before != nil && (found.reason == plan.ReasonInvalid || found.hasMissingTarget()) {
		return nil
	}
	slice := edgev2alpha1.SinglePlacementSlice{
		TypeMeta:     metav1.TypeMeta{APIVersion: edgev2alpha1.GroupVersion.String(), Kind: "SinglePlacementSlice"},
		Destinations: make([]edgev2alpha1.SinglePlacement, 0, len(found.resolution.Destinations)),
	}
	for _, destination := range found.resolution.Destinations {
		slice.Destinations = append(slice.Destinations, edgev2alpha1.SinglePlacement{
			Cluster: destination.Inventory.String(), LocationName: destination.Location, SyncTargetName: destination.Name, SyncTargetUID: destination.UID,
			NamespaceTemplate: string(destination.Tenancy.Naming),
		})
	}
	slice.Annotations = map[string]string{}
	if found.chosen != nil {
		slice.Annotations[ownership.ChoiceAnnotation] = r.marks.sealChoice(r.sources.cluster, placement.GetUID(), slice.Destinations)
	}
	if text := found.former.format(); text != "" {
		slice.Annotations[edgev2alpha1.AnnotationFormerDestinations] = text
	}
	if before != nil {
		isSame := func(annotation string) bool { return before.Annotations[annotation] == slice.Annotations[annotation] }
		if slices.Equal(before.Destinations, slice.Destinations) && isSame(ownership.ChoiceAnnotation) && isSame(edgev2alpha1.AnnotationFormerDestinations) {
			return nil
		}
		slice.UID, slice.ResourceVersion = before.UID, before.ResourceVersion
	}
	slice.Name = placement.GetName()
	slice.OwnerReferences = ownerReferences(placement.GetName(), placement.GetUID())
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&slice)
	if err != nil {
		return err
	}
	_, err = r.writer.Put(ctx, keyOf(slicesResource, placement), &unstructured.Unstructured{Object: content})
	if errors.Is(err, writes.ErrOutdated) {
		// The event of the newer slice requests another report.
		return nil
	}
	return err
}

// reports requests reports of a workspace, which [reporter] makes.
type reports struct {
	cluster logicalcluster.Name
	topic   *topic.Topic[logicalcluster.Name]
	// excludedChanged is true if the excluded objects may have changed since they were last counted.
	excludedChanged atomic.Bool
	// aggregationChanged is true if what comes up into the workspace may have changed since spec.aggregation was last evaluated.
	aggregationChanged atomic.Bool
}

// request requests a report.
func (r *reports) request() { r.topic.Publish(r.cluster) }

// requestExcluded requests a report, because an object that no placement selects has appeared, changed or
// vanished.
func (r *reports) requestExcluded() {
	if !r.excludedChanged.Swap(true) {
		r.request()
	}
}
