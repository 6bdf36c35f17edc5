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
	"slices"
	"strconv"
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/internal/mailboxwrite"
	"github.com/synchub-dev/synchub/controllers/placement/rules"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/plan/transform"
	"github.com/synchub-dev/synchub/provider/mailboxes"
	"github.com/synchub-dev/synchub/provider/redact"
	"github.com/synchub-dev/synchub/provider/requestclass"
)

// aggregationDelay is how long changes of the statuses of an object with several destinations are gathered
// before one write.
const aggregationDelay = time.Second

// reportedState is the desired status of a source.
type reportedState struct {
	// wanted is true if a placement requests the status. Otherwise the hub removes a status that it has
	// written.
	wanted bool
	// destinations is the number of destinations, and status is the object's status on them; empty if there is
	// none to show.
	destinations int
	status       map[string]any
}

// statusTask returns the task that writes the status of a source.
func (k objectKey) statusTask() task { return task{resource: k.resource, name: k.name, status: true} }

// enqueueStatus enqueues the write of the status of an object's source. It requires the lock.
func (w *workspace) enqueueStatus(key objectKey, object *object) {
	if object.destinations() > 1 {
		w.queue.AddAfter(aggregationDelay, key.statusTask())
		return
	}
	w.enqueue(key.statusTask())
}

// enqueueWantedStatus enqueues the write of the status of an object's source if a placement requests it. It
// requires the lock.
func (w *workspace) enqueueWantedStatus(key objectKey, object *object) {
	if wantsStatus(object.selectedBy) {
		w.enqueueStatus(key, object)
	}
}

// destinations returns the number of mailboxes in which the object is desired. It requires the lock.
func (o *object) destinations() (count int) {
	for _, found := range o.pairs {
		if found.desired {
			count++
		}
	}
	return count
}

// wantsStatus reports whether one of the placements requests the status of its objects.
func wantsStatus(selectedBy []*resolvedPlacement) bool {
	return slices.ContainsFunc(selectedBy, func(one *resolvedPlacement) bool { return one.SingletonStatus || one.AggregateStatus })
}

// reconcileSourceStatus brings the status of a source in line with the requests of its placements. It makes at
// most two writes: one for the annotations with the number of destinations and the owner of the status, and one
// for the status.
func (w *workspace) reconcileSourceStatus(ctx context.Context, key objectKey) (reconcile.Result, error) {
	resource, ok := w.resource(key.resource)
	source := w.statusSource(key)
	if !ok || resource.Native || source == nil {
		return reconcile.Result{}, nil
	}
	desired, known, err := w.reportedStateOf(key, resource, source)
	if err != nil {
		w.aggregationFailed(ctx, key, err)
		return reconcile.Result{}, nil
	}
	ctx = requestclass.With(ctx, requestclass.Object)
	switch {
	case !known:
	case desired.wanted:
		err = w.writeReportedState(ctx, key, resource, source, desired)
	case w.hasReturnedStatus(source):
		err = w.removeReportedState(ctx, key, resource, source)
	}
	return reconcile.Result{}, err
}

// writeReportedState writes the annotations and the status where they differ. It writes the annotations first,
// because they mark the status as the hub's.
func (w *workspace) writeReportedState(ctx context.Context, key objectKey, resource plan.Resource, source *unstructured.Unstructured, desired reportedState) error {
	if mailboxes.ProjectionOf(source) != mailboxes.FullObject {
		// An event follows when the rest has been fetched.
		return nil
	}
	count, owner := strconv.Itoa(desired.destinations), w.statusOwner().EnsuredValue(transform.SelfOf(source))
	presentCount, _ := plan.Annotation(source, edgev2alpha1.AnnotationExecutingCount)
	presentOwner, _ := plan.Annotation(source, ownership.StatusAnnotation)
	if presentCount != count || presentOwner != owner {
		if err := w.annotate(ctx, key, source, count, owner); err != nil {
			return err
		}
	}
	present, status := transform.StatusOf(source.Object["status"]), transform.StatusOf(desired.status)
	if transform.EqualStatus(present, status) {
		return nil
	}
	patch, err := mailboxwrite.StatusPatch(source.GetUID(), present, status)
	if err != nil {
		return fmt.Errorf("cannot compare the status: %w", err)
	}
	return sourcePatched(key, w.sourceWriter.PatchStatus(ctx, key, patch, resource.StatusSubresource))
}

// removeReportedState removes the status that the hub wrote, and then the annotations. If no placement selects
// the object, the cache may lack its status.
func (w *workspace) removeReportedState(ctx context.Context, key objectKey, resource plan.Resource, source *unstructured.Unstructured) error {
	if len(transform.StatusOf(source.Object["status"])) > 0 || mailboxes.ProjectionOf(source) != mailboxes.FullObject {
		patch, err := mailboxwrite.MergePatch(map[string]any{"status": nil, "metadata": map[string]any{"uid": source.GetUID()}})
		if err != nil {
			return err
		}
		if err := sourcePatched(key, w.sourceWriter.PatchStatus(ctx, key, patch, resource.StatusSubresource)); err != nil {
			return err
		}
	}
	return w.annotate(ctx, key, source, nil, nil)
}

// statusOwner is the owner of the statuses that the hub wrote in the workspace. Only the hub can create its
// annotation, which is valid for one object of one workspace. A user who copies the annotation, or sets
// KubeStellar's, cannot make the hub remove a status.
func (w *workspace) statusOwner() ownership.Owner {
	return ownership.Owner{Hub: w.Hub, SyncTarget: types.UID("status/" + w.cluster), Sealer: w.Sealer}
}

// hasReturnedStatus reports whether the hub has written the status of an object.
func (w *workspace) hasReturnedStatus(source *unstructured.Unstructured) bool {
	text, found := plan.Annotation(source, ownership.StatusAnnotation)
	return found && w.statusOwner().HasEnsured(text, transform.SelfOf(source))
}

// statusSource returns the object whose status may be written; nil if there is none, if it is being deleted, or if it is a copy itself.
func (w *workspace) statusSource(key objectKey) *unstructured.Unstructured {
	cached, _ := w.Workloads.Get(key.resource, w.cluster, key.name)
	source, deleted := w.sourceWrites.Current(key, cached)
	if source == nil || deleted || source.GetDeletionTimestamp() != nil || plan.IsMarked(source) {
		return nil
	}
	return source
}

// statusRequest is the request of placements for an object's status.
type statusRequest struct {
	// isKnown is false while a placement that may request the status cannot be read. It is also false until a
	// pass was made for each pair after a change of the source, or after a start.
	isKnown bool
	wanted  bool
	// hasStatus is true if the destinations have a common status to show.
	hasStatus bool
	// placed contains the mailboxes of the destinations. The value is true if the copy has the content of the
	// source.
	placed map[logicalcluster.Name]bool
}

// statusRequestOf returns the status request of the placements for an object.
func (w *workspace) statusRequestOf(key objectKey, resource plan.Resource, source *unstructured.Unstructured) statusRequest {
	request, placements := w.statusRequestOfPairs(key, resource)
	if placements != nil && !request.wanted {
		request.isKnown = w.isStatusUnwanted(placements, resource, source)
	}
	return request
}

// statusRequestOfPairs is statusRequestOf for the placements that the object was selected by. It returns the
// active placements; nil before they are known.
func (w *workspace) statusRequestOfPairs(key objectKey, resource plan.Resource) (request statusRequest, active *placements) {
	isStarting := w.inStartupGrace()
	w.lock.Lock()
	defer w.lock.Unlock()
	if w.placements == nil || !w.placements.fleetSynced {
		return statusRequest{}, nil
	}
	request = statusRequest{isKnown: true, placed: map[logicalcluster.Name]bool{}}
	if entry := w.objects[key]; entry != nil {
		for mailbox, found := range entry.pairs {
			if found.desired {
				request.placed[mailbox] = found.placed
				// Before a pass for the present content of the source, placed refers to the former content.
				request.isKnown = request.isKnown && found.observedChanges == found.changes && (!isStarting || found.placed || found.waiting || found.failure != nil)
			}
		}
		request.wanted = resource.StatusReturn && wantsStatus(entry.selectedBy)
		request.hasStatus = slices.ContainsFunc(entry.selectedBy, func(one *resolvedPlacement) bool {
			return one.AggregateStatus || one.SingletonStatus && len(request.placed) == 1
		})
	}
	return request, w.placements
}

// reportedStateOf returns the desired status of a source; known is false while the status is unknown, or a
// mailbox cannot be read.
func (w *workspace) reportedStateOf(key objectKey, resource plan.Resource, source *unstructured.Unstructured) (state reportedState, known bool, err error) {
	request := w.statusRequestOf(key, resource, source)
	state = reportedState{wanted: request.wanted, destinations: len(request.placed)}
	if !request.isKnown || !request.hasStatus {
		return state, request.isKnown, nil
	}
	statuses, known := w.statusesOf(key, resource, source, request.placed)
	switch aggregation := resource.GetRules().Aggregation; {
	case !known || len(statuses) == 0:
	case len(statuses) == 1:
		state.status = statuses[0]
	case aggregation != nil:
		state.status, err = aggregation.Aggregate(statuses, source.GetGeneration())
	}
	return state, known, err
}

// isStatusUnwanted reports whether it is certain that no placement requests the status of an object: all
// placements are known, and no placement that requests statuses selects the object, even if the object has not
// been counted yet.
func (w *workspace) isStatusUnwanted(placements *placements, resource plan.Resource, source *unstructured.Unstructured) bool {
	if placements.partial || mailboxes.ProjectionOf(source) == mailboxes.IdentityOnly {
		return false
	}
	selected, known := placements.forObject(ruleObject(w.Workloads, w.cluster, resource, source))
	return known && (!resource.StatusReturn || !wantsStatus(selected))
}

// statusesOf returns the statuses of the copies of an object, sorted by SyncTarget, with generations of the
// source; nil for a copy that does not exist yet. placed is true for a copy that has the content of the source.
func (w *workspace) statusesOf(key objectKey, resource plan.Resource, source *unstructured.Unstructured, placed map[logicalcluster.Name]bool) (statuses []map[string]any, known bool) {
	view := w.Fleet.Snapshot()
	names := make(map[logicalcluster.Name]string, len(placed))
	var sorted []logicalcluster.Name
	for mailbox := range placed {
		syncTarget, _ := view.SyncTargetOf(mailbox)
		names[mailbox] = syncTarget.Name
		sorted = append(sorted, mailbox)
	}
	slices.SortFunc(sorted, func(a, b logicalcluster.Name) int { return cmp.Or(cmp.Compare(names[a], names[b]), cmp.Compare(a, b)) })
	for _, mailbox := range sorted {
		cached, state := w.Mailboxes.Get(key.resource, mailbox, key.name)
		if state == mailboxes.Unknown {
			return nil, false
		}
		// If the cache does not show the copy's last write yet, its old status must not count for the new
		// content.
		inMailbox, _ := w.writes.Current(pairKey{key, mailbox}, cached)
		var status map[string]any
		if w.isCopyOf(inMailbox, source) && mailboxes.ProjectionOf(inMailbox) == mailboxes.FullObject {
			status = resource.MailboxStatus(source, inMailbox, placed[mailbox])
		}
		statuses = append(statuses, status)
	}
	return statuses, true
}

// isCopyOf reports whether a mailbox object is the copy of this source, and not of a former object with its
// name.
func (w *workspace) isCopyOf(inMailbox, source *unstructured.Unstructured) bool {
	cluster, ok := w.workspaceOf(inMailbox)
	if !ok || cluster != w.cluster {
		return false
	}
	mark, err := ownership.ParseMark(markOf(inMailbox))
	return err == nil && mark.Source.UID == source.GetUID()
}

// annotate sets the annotations with the number of destinations and the owner of the status; nil removes one.
func (w *workspace) annotate(ctx context.Context, key objectKey, source *unstructured.Unstructured, count, owner any) error {
	patch, err := mailboxwrite.MergePatch(map[string]any{"metadata": map[string]any{
		"uid":         source.GetUID(),
		"annotations": map[string]any{edgev2alpha1.AnnotationExecutingCount: count, ownership.StatusAnnotation: owner},
	}})
	if err != nil {
		return err
	}
	_, err = w.sourceWriter.Patch(ctx, key, patch)
	return sourcePatched(key, err)
}

// sourcePatched returns the error of a write to an object of the workspace. It ignores errors after which an
// event follows: the object is gone or another one has its name, or the workspace cannot be reached.
func sourcePatched(key objectKey, err error) error {
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) || errors.Is(err, mailboxwrite.ErrUnreachable) {
		return nil
	}
	return fmt.Errorf("cannot return the status of %s %s: %w", key.resource.Resource, key.name, err)
}

// aggregationFailed reports that the statuses of an object cannot be combined, once for each message. The
// status stays as it is.
func (w *workspace) aggregationFailed(ctx context.Context, key objectKey, err error) {
	why := failure{rules.ReasonAggregationFailed, redact.Text(err.Error())}
	w.lock.Lock()
	entry := w.objects[key]
	isNew := entry != nil && entry.aggregationError != why.Message
	if isNew {
		entry.aggregationError = why.Message
	}
	w.lock.Unlock()
	if isNew {
		w.warn(ctx, key, why)
	}
}
