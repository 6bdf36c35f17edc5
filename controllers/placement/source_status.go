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
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/controllers/internal/queue"
	"github.com/synchub-dev/synchub/controllers/internal/status"
	"github.com/synchub-dev/synchub/controllers/internal/writes"
	"github.com/synchub-dev/synchub/controllers/placement/fleetcache"
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

// sourceStatus returns the statuses of copies to the objects of a workspace.
type sourceStatus struct {
	sources *sources
	copies  *copies
	pairs   *pairs
	active  *activePlacements
	fleet   *fleetcache.Fleet
	startup *startup
	marks   marks
	journal *status.Journal
	writer  writes.WorkspaceWriter[objectKey]
	// writes are the writes to objects of the workspace that the caches do not show yet.
	writes writes.Expectations[objectKey, *unstructured.Unstructured]
}

// reconcile brings the status of a source in line with the requests of its placements. It makes at
// most two writes: one for the annotations with the number of destinations and the owner of the status, and one
// for the status.
func (s *sourceStatus) reconcile(ctx context.Context, key objectKey) (reconcile.Result, error) {
	resource, ok := s.sources.policy.placeable(key.resource)
	source := s.source(key)
	if !ok || resource.Native || source == nil {
		return reconcile.Result{}, s.end(ctx, key, nil)
	}
	request, status, err := s.desired(key, resource, source)
	if err != nil {
		s.fail(ctx, key, failure{rules.ReasonAggregationFailed, redact.Text(err.Error())})
		return reconcile.Result{}, nil
	}
	ctx = requestclass.With(ctx, requestclass.Object)
	switch {
	case !request.isKnown:
	case request.wanted:
		err = s.write(ctx, key, resource, source, len(request.placed), status)
	case s.marks.hasReturnedStatus(s.sources.cluster, source):
		err = s.remove(ctx, key, resource, source)
	}
	return reconcile.Result{}, s.end(ctx, key, err)
}

// end records the result of a pass, and reports if the workspace refuses the status of the object. It returns the error to retry.
func (s *sourceStatus) end(ctx context.Context, key objectKey, err error) error {
	switch {
	case err == nil:
		s.setError(key, "")
		return nil
	case apierrors.IsInvalid(err), apierrors.IsForbidden(err):
		s.fail(ctx, key, failure{rules.ReasonWorkspaceRefused, newFailure(err).Message})
		return &queue.ReportedError{Err: err}
	default:
		return err
	}
}

// write writes the annotations and the status where they differ. It writes the annotations first,
// because they mark the status as the hub's.
func (s *sourceStatus) write(ctx context.Context, key objectKey, resource plan.Resource, source *unstructured.Unstructured, destinations int, desired map[string]any) error {
	if mailboxes.ProjectionOf(source) != mailboxes.FullObject {
		// An event follows when the rest has been fetched.
		return nil
	}
	count, owner := strconv.Itoa(destinations), s.marks.statusOwner(s.sources.cluster).EnsuredValue(transform.SelfOf(source))
	presentCount, _ := plan.Annotation(source, edgev2alpha1.AnnotationExecutingCount)
	presentOwner, _ := plan.Annotation(source, ownership.StatusAnnotation)
	if presentCount != count || presentOwner != owner {
		if err := s.annotate(ctx, key, source, count, owner); err != nil {
			return err
		}
	}
	present, status := transform.StatusOf(source.Object["status"]), transform.StatusOf(desired)
	if transform.EqualStatus(present, status) {
		return nil
	}
	patch, err := writes.StatusPatch(source.GetUID(), present, status)
	if err != nil {
		return fmt.Errorf("cannot compare the status: %w", err)
	}
	return sourcePatched(key, s.writer.PatchStatus(ctx, key, patch, resource.StatusSubresource))
}

// remove removes the status that the hub wrote, and then the annotations. If no placement selects
// the object, the cache may lack its status.
func (s *sourceStatus) remove(ctx context.Context, key objectKey, resource plan.Resource, source *unstructured.Unstructured) error {
	if len(transform.StatusOf(source.Object["status"])) > 0 || mailboxes.ProjectionOf(source) != mailboxes.FullObject {
		patch, err := writes.MergePatch(map[string]any{"status": nil, "metadata": map[string]any{"uid": source.GetUID()}})
		if err != nil {
			return err
		}
		if err := sourcePatched(key, s.writer.PatchStatus(ctx, key, patch, resource.StatusSubresource)); err != nil {
			return err
		}
	}
	return s.annotate(ctx, key, source, nil, nil)
}

// source returns the object whose status may be written; nil if there is none, if it is being deleted, or if it is a copy itself.
func (s *sourceStatus) source(key objectKey) *unstructured.Unstructured {
	cached, _ := s.sources.get(key)
	source, deleted := s.writes.Current(key, cached)
	if source == nil || deleted || source.GetDeletionTimestamp() != nil || plan.IsMarked(source) {
		return nil
	}
	return source
}

// statusRequest is the request of placements for an object's status.
type statusRequest struct {
	// isKnown is false while a placement that may request the status, or a mailbox, cannot be read. It is also false until a
	// pass was made for each pair after a change of the source, or after a start.
	isKnown bool
	wanted  bool
	// hasStatus is true if the destinations have a common status to show.
	hasStatus bool
	// placed contains the sites of the copies. The value is true if the copy has the content of the
	// source.
	placed map[site]bool
}

// requestOf returns the status request of the placements for an object. After a start, there may have been no pass for a pair.
func (s *sourceStatus) requestOf(key objectKey, active *placements, resource plan.Resource, source *unstructured.Unstructured) statusRequest {
	request, isStarting := statusRequest{isKnown: true, placed: map[site]bool{}}, s.startup.inGrace()
	s.pairs.locked(func(objects map[objectKey]*object) {
		entry := objects[key]
		if entry == nil {
			return
		}
		for at, found := range entry.pairs {
			if found.desired {
				request.placed[at] = found.placed
				// Before a pass for the present content of the source, placed refers to the former content.
				request.isKnown = request.isKnown && found.observedChanges == found.changes && (!isStarting || found.placed || found.waiting || found.failure != nil)
			}
		}
		request.wanted = resource.StatusReturn && wantsStatus(entry.selectedBy)
		request.hasStatus = slices.ContainsFunc(entry.selectedBy, func(one *resolvedPlacement) bool {
			return one.AggregateStatus || one.SingletonStatus && len(request.placed) == 1
		})
	})
	if !request.wanted {
		request.isKnown = s.isUnwanted(active, resource, source)
	}
	return request
}

// desired returns the status request for a source, and the desired status; empty if there is none to show.
func (s *sourceStatus) desired(key objectKey, resource plan.Resource, source *unstructured.Unstructured) (request statusRequest, status map[string]any, err error) {
	active := s.active.get()
	if active == nil || !active.fleetSynced {
		return statusRequest{}, nil, nil
	}
	if request = s.requestOf(key, active, resource, source); !request.isKnown || !request.hasStatus {
		return request, nil, nil
	}
	statuses, known := s.statusesOf(key, resource, source, request.placed)
	request.isKnown = known
	switch aggregation := resource.GetRules().Aggregation; {
	case !known || len(statuses) == 0:
	case len(statuses) == 1:
		status = statuses[0]
	case aggregation != nil:
		status, err = aggregation.Aggregate(statuses, source.GetGeneration())
	}
	return request, status, err
}

// isUnwanted reports whether it is certain that no placement requests the status of an object: all
// placements are known, and no placement that requests statuses selects the object, even if the object has not
// been counted yet.
func (s *sourceStatus) isUnwanted(active *placements, resource plan.Resource, source *unstructured.Unstructured) bool {
	if active.partial || mailboxes.ProjectionOf(source) == mailboxes.IdentityOnly {
		return false
	}
	selected, known := active.forObject(s.sources.describe(resource, source))
	return known && (!resource.StatusReturn || !wantsStatus(selected))
}

// statusesOf returns the statuses of the copies of an object, sorted by SyncTarget, with generations of the
// source; nil for a copy that does not exist yet. placed is true for a copy that has the content of the source.
func (s *sourceStatus) statusesOf(key objectKey, resource plan.Resource, source *unstructured.Unstructured, placed map[site]bool) (statuses []map[string]any, known bool) {
	view := s.fleet.Snapshot()
	sorted := slices.SortedFunc(maps.Keys(placed), func(a, b site) int {
		one, _ := view.SyncTargetOf(a.mailbox)
		other, _ := view.SyncTargetOf(b.mailbox)
		return cmp.Or(cmp.Compare(one.Name, other.Name), cmp.Compare(a.mailbox, b.mailbox))
	})
	for _, at := range sorted {
		// If the cache does not show the copy's last write yet, its old status does not count for the new
		// content.
		inMailbox, state, _ := s.copies.get(pairKey{key, at})
		if state == mailboxes.Unknown {
			return nil, false
		}
		var status map[string]any
		if s.copies.isCopyOf(inMailbox, source) && mailboxes.ProjectionOf(inMailbox) == mailboxes.FullObject {
			status = resource.MailboxStatus(source, inMailbox, placed[at])
		}
		statuses = append(statuses, status)
	}
	return statuses, true
}

// annotate sets the annotations with the number of destinations and the owner of the status; nil removes one.
func (s *sourceStatus) annotate(ctx context.Context, key objectKey, source *unstructured.Unstructured, count, owner any) error {
	patch, err := writes.MergePatch(map[string]any{"metadata": map[string]any{
		"uid":         source.GetUID(),
		"annotations": map[string]any{edgev2alpha1.AnnotationExecutingCount: count, ownership.StatusAnnotation: owner},
	}})
	if err != nil {
		return err
	}
	_, err = s.writer.Patch(ctx, key, patch)
	return sourcePatched(key, err)
}

// sourcePatched returns the error of a write to an object of the workspace. It ignores errors after which an
// event follows: the object is gone or another one has its name, or the workspace cannot be reached.
func sourcePatched(key objectKey, err error) error {
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) || errors.Is(err, writes.ErrUnreachable) {
		return nil
	}
	return fmt.Errorf("cannot return the status of %s %s: %w", key.resource.Resource, key.name, err)
}

// setError records why the status of an object can be neither written nor removed, empty for none, and reports whether that has changed.
func (s *sourceStatus) setError(key objectKey, message string) (changed bool) {
	s.pairs.lock.Lock()
	defer s.pairs.lock.Unlock()
	changed = s.pairs.statusErrors[key] != message
	if s.pairs.statusErrors[key] = message; message == "" {
		delete(s.pairs.statusErrors, key)
	}
	return changed
}

// fail reports why an object cannot get a status, once for each message. The status stays as it is.
func (s *sourceStatus) fail(ctx context.Context, key objectKey, why failure) {
	if s.setError(key, why.Message) {
		s.journal.Record(status.JournalEntry{
			Message: status.JournalFailingStatus, Workspace: s.sources.cluster.String(), Resource: key.resource.GroupResource(), Reason: why.Reason,
		}, key.name, why.Message)
		warn(ctx, s.sources, key, why)
	}
}
