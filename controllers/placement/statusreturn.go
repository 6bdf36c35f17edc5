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
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/kcp-dev/logicalcluster/v3"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/internal/mailboxwrite"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/transform"
	"github.com/synchub-dev/synchub/provider/mailboxes"
	"github.com/synchub-dev/synchub/provider/metrics/requestmetrics"
)

// aggregationDelay is how long changes of the statuses of an object with several destinations are gathered into one write.
const aggregationDelay = time.Second

// reportedState is what the source of an object shows of its destinations.
type reportedState struct {
	// wanted is true if a placement asks for the status. Otherwise the hub removes what it has written before.
	wanted bool
	// destinations is the number of destinations, and status that of the object on them; empty if there is none to show.
	destinations int
	status       map[string]any
}

// statusTask returns the task that writes the status of a source.
func (k objectKey) statusTask() task { return task{resource: k.resource, key: k.key, status: true} }

// enqueueStatus writes the status of the source of an object, if a placement asks for it. It requires the lock.
func (w *workspace) enqueueStatus(key objectKey, object *object) {
	switch {
	case !object.wantsStatus:
	case object.destinations() > 1:
		w.queue.AddAfter(aggregationDelay, key.statusTask())
	default:
		w.add(key.statusTask())
	}
}

// destinations returns the number of mailboxes that are to have the object. It requires the lock.
func (o *object) destinations() (count int) {
	for _, found := range o.pairs {
		if found.desired {
			count++
		}
	}
	return count
}

// wantsStatus reports whether one of the placements asks for the status of the objects that it selects.
func wantsStatus(selectedBy []*placementInForce) bool {
	return slices.ContainsFunc(selectedBy, func(one *placementInForce) bool { return one.SingletonStatus || one.AggregateStatus })
}

// returnStatus makes the status of a source what its placements ask for. It makes at most one write for the annotation that counts
// the destinations, and one for the status.
func (w *workspace) returnStatus(ctx context.Context, key objectKey) (reconcile.Result, error) {
	resource, ok := w.resource(key.resource)
	if !ok || !resource.StatusReturn {
		return reconcile.Result{}, nil
	}
	source := w.statusSource(key)
	if source == nil {
		return reconcile.Result{}, nil
	}
	desired, known, err := w.reportedStateOf(key, resource, source)
	if err != nil {
		w.aggregationFailed(ctx, key, err)
		return reconcile.Result{}, nil
	}
	if !known || !desired.wanted && !isStatusReturned(source) || desired.wanted && mailboxes.ProjectionOf(source) != mailboxes.FullObject {
		return reconcile.Result{}, nil
	}
	ctx = requestmetrics.WithClass(ctx, requestmetrics.Object)
	if desired.wanted {
		// The annotation comes first and goes last: it tells that the status is the hub's.
		err = errors.Join(w.writeCount(ctx, key, source, strconv.Itoa(desired.destinations)), w.writeSourceStatus(ctx, key, resource, source, desired.status))
	} else if err = w.removeSourceStatus(ctx, key, resource, source); err == nil {
		err = w.writeCount(ctx, key, source, "")
	}
	return retryStale(err)
}

// isStatusReturned reports whether the hub has written the status of an object, which may be nil.
func isStatusReturned(source *unstructured.Unstructured) bool {
	if source == nil {
		return false
	}
	_, isReturned := plan.Annotation(source, edgev2alpha1.AnnotationExecutingCount)
	return isReturned
}

// statusSource returns the object whose status may be written; nil if there is none, if it is being deleted, or if it is a copy itself.
func (w *workspace) statusSource(key objectKey) *unstructured.Unstructured {
	cached, _ := w.Workloads.Get(key.resource, w.cluster, key.key)
	source, deleted := w.sourceWrites.Current(key, cached)
	if source == nil || deleted || source.GetDeletionTimestamp() != nil || plan.IsMarked(source) {
		return nil
	}
	return source
}

// statusRequest is what the placements of a workspace ask for of the status of one object.
type statusRequest struct {
	// isKnown is false while a placement that may ask for the status cannot be read, and after a start until a pass was made for each pair.
	isKnown bool
	wanted  bool
	// hasStatus is true if the destinations have one status to show.
	hasStatus bool
	// placed are the mailboxes of the destinations, with whether the copy has the content of the source.
	placed map[logicalcluster.Name]bool
}

// statusRequestOf returns what the placements ask for of the status of an object.
func (w *workspace) statusRequestOf(key objectKey, resource plan.Resource, source *unstructured.Unstructured) statusRequest {
	isStarting := w.mayBeStarting()
	w.lock.Lock()
	defer w.lock.Unlock()
	if w.placements == nil || !w.placements.fleetSeen {
		return statusRequest{}
	}
	request := statusRequest{isKnown: true, placed: map[logicalcluster.Name]bool{}}
	if entry := w.objects[key]; entry != nil {
		for mailbox, found := range entry.pairs {
			if found.desired {
				request.placed[mailbox] = found.placed
				request.isKnown = request.isKnown && (!isStarting || found.placed || found.failure != nil)
			}
		}
		request.wanted = wantsStatus(entry.selectedBy)
		request.hasStatus = slices.ContainsFunc(entry.selectedBy, func(one *placementInForce) bool {
			return one.AggregateStatus || one.SingletonStatus && len(request.placed) == 1
		})
	}
	if !request.wanted {
		request.isKnown = w.isStatusUnwanted(resource, source)
	}
	return request
}

// reportedStateOf returns what the source of an object is to show; known is false while that is unknown, or a mailbox cannot be read.
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

// isStatusUnwanted reports whether it is certain that no placement asks for the status of an object: all placements are known, and none
// of them that asks selects the object, whether or not it has been counted yet. It requires the lock.
func (w *workspace) isStatusUnwanted(resource plan.Resource, source *unstructured.Unstructured) bool {
	if w.placements.partial || mailboxes.ProjectionOf(source) == mailboxes.IdentityOnly {
		return false
	}
	selected, known := w.placements.selecting(ruleObject(w.Workloads, w.cluster, resource, source))
	return known && !wantsStatus(selected)
}

// statusesOf returns the statuses of the copies of an object, sorted by SyncTarget, counted in generations of the source; nil for a
// copy that is not there yet. placed says whether a copy has the content of the source.
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
		inMailbox, state := w.Mailboxes.Get(key.resource, mailbox, key.key)
		if state == mailboxes.Unknown {
			return nil, false
		}
		var status map[string]any
		if cluster, ok := (mailboxObserver{w.Controller}).sourceOf(inMailbox); ok && cluster == w.cluster && mailboxes.ProjectionOf(inMailbox) == mailboxes.FullObject {
			status = resource.MailboxStatus(source, inMailbox, placed[mailbox])
		}
		statuses = append(statuses, status)
	}
	return statuses, true
}

// writeCount writes the annotation that counts the destinations, if it differs; empty removes it.
func (w *workspace) writeCount(ctx context.Context, key objectKey, source *unstructured.Unstructured, count string) error {
	present, found := plan.Annotation(source, edgev2alpha1.AnnotationExecutingCount)
	if present == count && found == (count != "") {
		return nil
	}
	var value any
	if count != "" {
		value = count
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": source.GetUID(), "annotations": map[string]any{edgev2alpha1.AnnotationExecutingCount: value},
	}})
	if err != nil {
		return err
	}
	return w.patchSource(ctx, key, patch)
}

// writeSourceStatus writes the status of the source, if it differs.
func (w *workspace) writeSourceStatus(ctx context.Context, key objectKey, resource plan.Resource, source *unstructured.Unstructured, status map[string]any) error {
	present, desired := transform.StatusWithoutNulls(source.Object["status"]), transform.StatusWithoutNulls(status)
	if apiequality.Semantic.DeepEqual(present, desired) {
		return nil
	}
	before, err := json.Marshal(map[string]any{"status": present})
	if err != nil {
		return err
	}
	after, err := json.Marshal(map[string]any{"status": desired, "metadata": map[string]any{"uid": source.GetUID()}})
	if err != nil {
		return err
	}
	patch, err := jsonpatch.CreateMergePatch(before, after)
	if err != nil {
		return fmt.Errorf("cannot compare the status: %w", err)
	}
	if resource.StatusSubresource {
		return w.patchSource(ctx, key, patch, "status")
	}
	return w.patchSource(ctx, key, patch)
}

// removeSourceStatus removes the status of an object that no placement selects any more. The cache may not have the status then.
func (w *workspace) removeSourceStatus(ctx context.Context, key objectKey, resource plan.Resource, source *unstructured.Unstructured) error {
	if mailboxes.ProjectionOf(source) == mailboxes.FullObject {
		return w.writeSourceStatus(ctx, key, resource, source, nil)
	}
	patch, err := json.Marshal(map[string]any{"status": nil, "metadata": map[string]any{"uid": source.GetUID()}})
	if err != nil {
		return err
	}
	if resource.StatusSubresource {
		return w.patchSource(ctx, key, patch, "status")
	}
	return w.patchSource(ctx, key, patch)
}

// patchSource patches an object of the workspace, and remembers the answer until the cache shows it.
func (w *workspace) patchSource(ctx context.Context, key objectKey, patch []byte, subresources ...string) error {
	client, ok := w.Workloads.Client(w.cluster)
	if !ok {
		// The workspace became unreadable; its objects are enqueued again when it is back.
		return nil
	}
	w.sourceWrites.Started(key)
	patched, err := mailboxwrite.Objects(client, key.resource, key.key.Namespace).
		Patch(ctx, key.key.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: w.fieldManager}, subresources...)
	if err != nil {
		w.sourceWrites.Finished(key, nil)
		if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
			// The object is gone, or another one has its name. An event follows.
			return nil
		}
		return fmt.Errorf("cannot return the status of %s %s: %w", key.resource.Resource, key.key, err)
	}
	patched.SetManagedFields(nil)
	w.sourceWrites.Finished(key, patched)
	return nil
}

// aggregationFailed reports a rule that cannot combine the statuses of an object, once for each text. The status stays as it is.
func (w *workspace) aggregationFailed(ctx context.Context, key objectKey, err error) {
	failure := Failure{ReasonAggregationFailed, newFailure(err).Message}
	w.lock.Lock()
	entry := w.objects[key]
	isNew := entry != nil && entry.aggregationError != failure.Message
	if isNew {
		entry.aggregationError = failure.Message
	}
	w.lock.Unlock()
	if isNew {
		w.warn(ctx, key, failure)
	}
}
