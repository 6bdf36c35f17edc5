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
	"math"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/internal/events"
	"github.com/synchub-dev/synchub/controllers/internal/mailboxwrite"
	"github.com/synchub-dev/synchub/controllers/placement/rules"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/provider/mailboxes"
	"github.com/synchub-dev/synchub/provider/requestclass"
)

// reportInterval is the least time between two status writes for the placements of one workspace.
const reportInterval = 5 * time.Second

// maxReportDelay bounds how long a report waits for the decision about a rollout. Objects that keep changing
// delay the decision.
const maxReportDelay = 30 * time.Second

// report writes the status and the slice of each placement of a workspace, where they differ.
func (c *Controller) report(ctx context.Context, cluster logicalcluster.Name) (reconcile.Result, error) {
	w := c.findWorkspace(cluster)
	if w == nil {
		return reconcile.Result{}, nil
	}
	if wait := w.reportDelay(); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	placements, known := c.Workloads.List(edgePlacements, cluster)
	existing, knownSlices := c.Workloads.List(slicesResource, cluster)
	// Check the selection first: the summary then contains all selected objects.
	wasSelected := w.wasSelectionComplete()
	summary, resolved := w.summarize()
	if !known || !knownSlices || !resolved {
		return reconcile.Result{}, nil
	}
	summary.readsAll = w.readsAllObjects()
	w.updateUnread(summary.readsAll)
	ctx = requestclass.With(ctx, requestclass.Extra)
	byName := map[string]*unstructured.Unstructured{}
	for _, slice := range existing {
		byName[slice.GetName()] = slice
	}
	isCaughtUp := w.isCaughtUp(wasSelected, summary)
	excluded, again := w.observeExcluded()
	summary.setExcluded(excluded)
	result := reconcile.Result{RequeueAfter: sooner(summary.recheck, again)}
	for _, placement := range placements {
		found, ok := w.outcomeOf(placement, summary)
		counted := summary.counts[placement.GetUID()]
		if !ok || w.mustAwaitDecision(summary, placement.GetUID()) {
			continue
		}
		if !isCaughtUp && isReported(placement) {
			// The status of the previous leader stays until the hub has caught up.
			result.RequeueAfter = sooner(result.RequeueAfter, startupPoll)
			continue
		}
		if err := w.reportOne(ctx, placement, byName[placement.GetName()], found, counted); err != nil {
			return reconcile.Result{}, fmt.Errorf("cannot write the status of the EdgePlacement %s: %w", placement.GetName(), err)
		}
		if len(c.heldDestinations(found)) > 0 {
			result.RequeueAfter = heldRetryInterval
		}
	}
	return result, nil
}

// outcomeOf returns the outcome of a placement; ok is false while it is unknown.
func (w *workspace) outcomeOf(placement *unstructured.Unstructured, summed summary) (found outcome, ok bool) {
	if placement.GetDeletionTimestamp() != nil {
		return w.withdrawing(placement, summed), true
	}
	found, ok = summed.outcomes[placement.GetUID()]
	if found.reason == "" && found.byLabels && !summed.readsAll {
		found.reason, found.message = rules.ReasonLimitExceeded, objectLimitMessage
	}
	return found, ok
}

// wasSelectionComplete reports whether the hub has listed and selected all objects, or has caught up.
func (w *workspace) wasSelectionComplete() bool {
	w.lock.Lock()
	caughtUp := w.caughtUp
	w.lock.Unlock()
	return caughtUp || w.knowsSources() && w.hasSelectedAll()
}

// isCaughtUp reports whether the hub knows all facts in the statuses of the previous leader. It has then
// selected all objects, each destination has its mailbox, a pass was made for each pair, and each copy is
// synced with its cluster or has failed. After the first true, and after startupGrace, it always returns true.
func (w *workspace) isCaughtUp(wasSelected bool, summed summary) bool {
	w.lock.Lock()
	caughtUp := w.caughtUp
	w.lock.Unlock()
	if caughtUp {
		return true
	}
	if w.inStartupGrace() && (!wasSelected || summed.isPending()) {
		return false
	}
	w.lock.Lock()
	defer w.lock.Unlock()
	w.caughtUp = true
	return true
}

// mustAwaitDecision reports whether the decision about the rollout of a placement is about to be made. Another
// report follows the decision.
func (w *workspace) mustAwaitDecision(summed summary, placement types.UID) bool {
	counted := summed.counts[placement]
	return summed.allSelected && counted != nil && counted.rollout != nil && !counted.rollout.decided && w.reportDelay() > -maxReportDelay
}

// hasSelectedAll reports whether each cached object that a placement selects is counted. After a cache has been
// filled, its events are still to come.
func (w *workspace) hasSelectedAll() bool {
	w.lock.Lock()
	placements := w.placements
	w.lock.Unlock()
	if placements == nil {
		return false
	}
	missing := false
	w.forEachObject(func(resource plan.Resource, source *unstructured.Unstructured) {
		if missing || source.GetDeletionTimestamp() != nil || !rules.IsPlaceable(resource, source) {
			return
		}
		key := keyOf(resource.GroupVersionResource, source)
		selected, _ := placements.forObject(ruleObject(w.Workloads, w.cluster, resource, source))
		w.lock.Lock()
		defer w.lock.Unlock()
		missing = w.placements != placements || len(selected) > 0 && (w.objects[key] == nil || len(w.objects[key].selectedBy) < len(selected))
	})
	return !missing
}

// knowsSources reports whether the hub has listed all objects of the workspace.
func (w *workspace) knowsSources() bool {
	for of := range w.CachePolicy.published() {
		if _, ok := w.resource(of); ok && !isListed(w.Workloads, of, w.cluster) {
			return false
		}
	}
	return true
}

// objectLimitMessage is the message of a placement whose counts may lack objects.
const objectLimitMessage = "The workspace has more objects than the hub reads, or larger ones: it does not know the labels of those beyond the limit, and places none of them by a label selector. Remove objects, or ask the operator of the hub for larger limits of mailboxes."

// readsAllObjects reports whether the hub knows the labels of all objects of the workspace.
func (w *workspace) readsAllObjects() bool {
	limit := w.Workloads.MailboxLimitError(w.cluster)
	return limit.IdentityOnly == 0 && !limit.Evicted && len(w.Workloads.ResourceLimitErrors(w.cluster)) == 0
}

// updateUnread lets [workspace.noteUnread] request a report again once the hub knows the labels of all objects.
func (w *workspace) updateUnread(readsAll bool) {
	w.lock.Lock()
	defer w.lock.Unlock()
	w.hasUnread = w.hasUnread && !readsAll
}

// noteUnread requests a report at the first object beyond a limit. It requires the lock.
func (w *workspace) noteUnread(object *unstructured.Unstructured) {
	if mailboxes.ProjectionOf(object) == mailboxes.IdentityOnly && !w.hasUnread {
		w.hasUnread = true
		w.reportRequests.Publish(w.cluster)
	}
}

// isReported reports whether the status of a placement describes its present generation.
func isReported(placement *unstructured.Unstructured) bool {
	reported, _, _ := unstructured.NestedInt64(placement.Object, "status", "specGeneration")
	return reported == placement.GetGeneration()
}

// reportOne writes the status and the slice of one placement if they differ. A deleted placement keeps its
// slice.
func (w *workspace) reportOne(ctx context.Context, placement, slice *unstructured.Unstructured, found outcome, counted *placementCounts) error {
	wrote, err := w.writeStatus(ctx, placement, found, counted)
	if wrote {
		w.setReported()
	}
	if err != nil || placement.GetDeletionTimestamp() != nil {
		return err
	}
	return w.writeSlice(ctx, placement, slice, found)
}

func (w *workspace) reportDelay() time.Duration {
	w.lock.Lock()
	defer w.lock.Unlock()
	return reportInterval - w.Clock.Since(w.reported)
}

func (w *workspace) setReported() {
	w.lock.Lock()
	defer w.lock.Unlock()
	w.reported = w.Clock.Now()
}

// withdrawing returns the outcome of a deleted placement while copies are left to withdraw.
func (w *workspace) withdrawing(placement *unstructured.Unstructured, summed summary) outcome {
	w.lock.Lock()
	defer w.lock.Unlock()
	result := outcome{
		generation: placement.GetGeneration(), reason: rules.ReasonWithdrawing,
		message: fmt.Sprintf("%d copies of objects of this workspace are left to withdraw.%s", summed.withdrawing, summed.blockedWithdrawal),
	}
	if w.placements != nil && w.placements.partial {
		result.message += " Another placement of the workspace is invalid or beyond a limit, or a workspace cannot be found: see their conditions. Until that is fixed, only copies of deleted objects are withdrawn."
	}
	return result
}

// writeStatus patches the status of a placement if it differs, and reports whether it did.
func (w *workspace) writeStatus(ctx context.Context, object *unstructured.Unstructured, found outcome, counted *placementCounts) (bool, error) {
	var placement edgev2alpha1.EdgePlacement
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &placement); err != nil {
		return false, err
	}
	if counted == nil {
		counted = &placementCounts{}
	}
	next := *placement.Status.DeepCopy()
	next.SpecGeneration = toInt32(found.generation)
	next.MatchingLocationCount = toInt32(int64(found.resolution.Locations))
	next.Destinations = toInt32(int64(len(found.resolution.Destinations)))
	next.Selected, next.Placed, next.Failed, next.Failures = counted.selected, counted.placed, counted.failed, counted.failures
	next.Progressing, next.UnplacedResources = counted.inProgressPairs, w.CachePolicy.unplaced()
	next.Excluded, next.ExcludedObjects = counted.excluded, counted.excludedObjects
	if !counted.unobserved {
		next.ObservedObjects = counted.fingerprint.String()
	}
	next.Synced, next.Healthy, next.Rollout = counted.synced, counted.healthy, rolloutStatus(found, counted)
	if before := placement.Status.Rollout; before != nil && next.Rollout != nil && next.Rollout.Revision == nil {
		// The hub has not read the revision since its start.
		next.Rollout.Revision = before.Revision
	}
	conditions := []metav1.Condition{
		readyCondition(found, counted), healthyCondition(found, counted), rolloutCondition(found, counted),
		apisMissingCondition(found), upsyncCondition(found), choiceCondition(found), storeWentBackCondition(w.heldDestinations(found)),
	}
	for _, condition := range conditions {
		condition.ObservedGeneration = found.generation
		if condition.Reason == "" {
			meta.RemoveStatusCondition(&next.Conditions, condition.Type)
			continue
		}
		// Users write the selectors and names that messages quote.
		condition.Message = events.Truncate(condition.Message)
		meta.SetStatusCondition(&next.Conditions, condition)
	}
	if apiequality.Semantic.DeepEqual(placement.Status, next) {
		return false, nil
	}
	patch, err := mailboxwrite.MergePatch(map[string]any{"metadata": map[string]any{"uid": object.GetUID()}, "status": statusFields(next)})
	if err != nil {
		return false, err
	}
	err = w.placementWriter.PatchStatus(ctx, keyOf(edgePlacements, object), patch, true)
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return true, nil
	}
	return true, err
}

// toInt32 returns the number, or the largest int32 if it is larger: KubeStellar's fields have 32 bits.
func toInt32(number int64) int32 { return int32(min(number, math.MaxInt32)) } //nolint:gosec // it fits

// statusFields returns a status for a merge patch: an empty list replaces the former one.
func statusFields(status edgev2alpha1.EdgePlacementStatus) map[string]any {
	fields, _ := runtime.DefaultUnstructuredConverter.ToUnstructured(&status)
	for _, list := range []string{"conditions", "failures", "progressing", "unplacedResources", "excludedObjects"} {
		if fields[list] == nil {
			fields[list] = []any{}
		}
	}
	if fields["excluded"] == nil {
		fields["excluded"] = int64(0)
	}
	rollout, ok := fields["rollout"].(map[string]any)
	switch {
	case !ok:
		fields["rollout"] = nil
	case rollout["failedClusters"] == nil:
		rollout["failedClusters"] = nil
	}
	return fields
}
