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
	"time"

	"github.com/kcp-dev/logicalcluster/v3"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/synchub-dev/synchub/controllers/internal/status"
	"github.com/synchub-dev/synchub/controllers/internal/writes"
	"github.com/synchub-dev/synchub/controllers/placement/reflection"
	"github.com/synchub-dev/synchub/controllers/placement/rules"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/transform"
	"github.com/synchub-dev/synchub/provider/requestclass"
)

// Failures of reflections.
var (
	errReflectionConflict  = denied(plan.ReasonConflict, "the workspace has an object of this name that did not come up from the cluster: delete it, or give it another name")
	errReflectionContended = denied(plan.ReasonContended, "somebody keeps changing or deleting the object in the workspace; the hub puts it back less and less often")
	errReflectionLimit     = denied(rules.ReasonLimitExceeded, fmt.Sprintf("the workspace has as many upsynced objects as it may have, or %d MiB of them: narrow spec.upsync, or ask the operator of the hub for a larger --max-upsynced-objects", maxReflectedBytes>>20))
)

// reflectionReconciler makes the passes for the reflections of a workspace: only it writes reflections.
type reflectionReconciler struct {
	cluster     logicalcluster.Name
	reflections *reflections
	observer    *reflectionObserver
	writer      writes.WorkspaceWriter[copyKey]
	journal     *status.Journal
	clock       clock.PassiveClock
}

func newReflectionReconciler(s *shared, w *workspace, manager string) *reflectionReconciler {
	o := s.options
	return &reflectionReconciler{
		cluster: w.cluster, reflections: w.reflections, journal: o.Journal, clock: o.Clock,
		observer: &reflectionObserver{
			sources: w.sources, mailboxes: o.Mailboxes, reflections: w.reflections, active: w.active, fleet: o.Fleet, marks: s.marks,
			verifier: s.verifier, startup: s.startup, hasher: o.Hasher, clock: o.Clock,
		},
		writer: writes.WorkspaceWriter[copyKey]{
			Workspaces: o.Workloads, FieldManager: manager, Expectations: &w.reflections.writes,
			Locate: func(key copyKey) writes.Object {
				return writes.Object{Workspace: w.cluster, Resource: key.resource, Name: w.reflections.get(key).name}
			},
		},
	}
}

// reconcile makes one pass for a reflection: it observes the origin and the reflection, decides, and makes at most one write to the
// reflection and one to its status.
func (r *reflectionReconciler) reconcile(ctx context.Context, key copyKey) (reconcile.Result, error) {
	ctx = requestclass.With(ctx, requestclass.Object)
	defer r.reflections.dropIfUnused(key)
	s, err := r.observer.observe(ctx, key)
	if s == nil {
		return reconcile.Result{}, err
	}
	if !r.reflections.record(s) {
		err = errReflectionLimit
	}
	if err != nil {
		return r.fail(ctx, s, err)
	}
	planned, err := reflection.Decide(&s.Snapshot)
	switch {
	case err != nil:
		return r.fail(ctx, s, err)
	case planned.Cause == plan.Cause(plan.Unknown):
		return r.wait(s, planned), nil
	}
	if wait := r.countRepair(key, planned.Decision); wait > 0 {
		_, _ = r.fail(ctx, s, errReflectionContended)
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	log.FromContext(ctx).V(1).Info("decided about an upsynced object of the workspace", "decision", planned.String())
	object, err := r.execute(ctx, s, planned)
	switch {
	case errors.Is(err, writes.ErrOutdated):
		// The cache is about to show the newer object.
		return reconcile.Result{RequeueAfter: plan.CacheTimeout}, nil
	case errors.Is(err, writes.ErrUnreachable):
		return reconcile.Result{}, nil
	case err != nil:
		return r.fail(ctx, s, err)
	}
	r.succeed(s, planned, object)
	if planned.Action == plan.Create && object != nil {
		// The cache may never show it.
		return reconcile.Result{RequeueAfter: plan.CacheTimeout}, nil
	}
	return reconcile.Result{}, nil
}

// wait records that a reflection waits for its owners, or for the rest of its object.
func (r *reflectionReconciler) wait(s *reflectionSnapshot, planned reflection.Plan) (result reconcile.Result) {
	r.reflections.update(s.key, func(found *reflected) {
		found.isPlanned = found.isPlanned || planned.Waits
		found.isOwnerGone = planned.Waits && s.Owners == reflection.OwnerGone
		if s.Owners == reflection.OwnerUnknown {
			result.RequeueAfter = startupPoll
		}
		if planned.Waits && s.Owners == reflection.OwnerPending {
			if found.awaitsOwnersSince.IsZero() {
				found.awaitsOwnersSince = r.clock.Now()
			}
			result.RequeueAfter = max(time.Millisecond, ownerPatience-r.clock.Since(found.awaitsOwnersSince))
		}
	})
	return result
}

// countRepair counts a repair of a reflection that somebody changed or deleted, and returns how long it must wait.
func (r *reflectionReconciler) countRepair(key copyKey, decision plan.Decision) (wait time.Duration) {
	r.reflections.update(key, func(found *reflected) {
		if decision.Cause != plan.Drifted && (decision.Action != plan.Create || !found.isRemoved) {
			return
		}
		if found.backoff == nil {
			found.backoff = &writes.DriftBackoff{}
		}
		wait = found.backoff.Next(r.clock.Now())
	})
	return wait
}

// execute makes the writes of a plan. It returns the object of the workspace after them.
func (r *reflectionReconciler) execute(ctx context.Context, s *reflectionSnapshot, planned reflection.Plan) (object *unstructured.Unstructured, err error) {
	object = s.Object
	switch planned.Action {
	case plan.VerifyAbsence:
		r.observer.mailboxes.Absences.VerifyAbsence(s.key.mailbox, s.key.candidate())
	case plan.Conflict:
		return nil, errReflectionConflict
	case plan.Delete:
		uid := s.Object.GetUID()
		r.reflections.update(s.key, func(found *reflected) { found.deleted = uid })
		return nil, r.writer.Delete(ctx, s.key, s.Object, nil)
	case plan.Create:
		if !s.hasNamespace {
			// Its event enqueues the reflection.
			return nil, nil
		}
		object, err = r.writer.Put(ctx, s.key, s.Desired.Object)
	case plan.Update:
		merged := writes.Merge(s.Object, s.Desired.Object)
		merged.SetOwnerReferences(s.Desired.Object.GetOwnerReferences())
		merged.SetFinalizers(nil)
		object, err = r.writer.Put(ctx, s.key, merged)
	default:
	}
	if err != nil {
		return nil, err
	}
	if planned.Action == plan.Create || planned.Action == plan.Update {
		r.reflections.writes.SetDroppedPaths(s.key, transform.MissingPaths(s.Desired.Object.Object, object.Object))
	}
	if planned.WritesStatus || planned.Action == plan.Create && s.Resource.StatusSubresource && len(s.Status) > 0 {
		return r.writeStatus(ctx, s, object)
	}
	return object, nil
}

// writeStatus writes the status of a reflection, unless the workspace is known to store it differently.
func (r *reflectionReconciler) writeStatus(ctx context.Context, s *reflectionSnapshot, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	stored := transform.StatusOf(object.Object["status"])
	if unkept := r.reflections.get(s.key).unkept; unkept != nil && apiequality.Semantic.DeepEqual(unkept.desired, s.Status) && transform.EqualStatus(unkept.stored, stored) {
		return object, nil
	}
	patch, err := writes.StatusPatch(object.GetUID(), stored, s.Status)
	if err != nil {
		return nil, fmt.Errorf("cannot compare the status: %w", err)
	}
	patched, err := r.writer.Patch(ctx, s.key, patch, "status")
	switch {
	case apierrors.IsNotFound(err) || apierrors.IsConflict(err):
		return nil, fmt.Errorf("%w: %w", writes.ErrOutdated, err)
	case err != nil:
		return nil, err
	}
	var unkept *unkeptStatus
	if after := transform.StatusOf(patched.Object["status"]); !transform.EqualStatus(after, s.Status) {
		unkept = &unkeptStatus{s.Status, after}
	}
	r.reflections.update(s.key, func(found *reflected) { found.unkept = unkept })
	return patched, nil
}

// succeed records that the workspace has the reflection as desired, or is about to lose it.
func (r *reflectionReconciler) succeed(s *reflectionSnapshot, planned reflection.Plan, object *unstructured.Unstructured) {
	isPresent, added := false, planned.AddedPaths
	if s.Desired != nil && object != nil {
		isPresent, added = true, reflection.AddedPaths(s.Desired.Object, object)
	}
	isChanged := false
	r.reflections.update(s.key, func(found *reflected) {
		isChanged = found.isPresent != isPresent || found.failure != nil
		found.isPresent, found.failure, found.isOwnerGone, found.isPlanned = isPresent, nil, false, true
		if isPresent {
			found.uid, found.added, found.isRemoved, found.awaitsOwnersSince = object.GetUID(), added, false, time.Time{}
		}
	})
	if isChanged {
		r.reflections.reports.request()
		r.reflections.aggregationChanged()
	}
}

// fail records why the workspace does not have the reflection as desired. It returns only errors to retry, and reports a refusal, which its
// user must mend: for other failures an event follows when the cause changes.
func (r *reflectionReconciler) fail(ctx context.Context, s *reflectionSnapshot, err error) (reconcile.Result, error) {
	if ctx.Err() != nil && !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return reconcile.Result{}, nil
	}
	why := newFailure(err)
	if why.Reason == plan.ReasonMailboxRefused {
		why.Reason = rules.ReasonWorkspaceRefused
	}
	isChanged, isNew := false, false
	r.reflections.update(s.key, func(found *reflected) {
		isChanged = !found.failure.equal(&why)
		isNew = found.failure == nil || found.failure.Reason != why.Reason
		found.failure, found.isPlanned = &why, true
	})
	if isChanged {
		r.reflections.reports.request()
		r.reflections.enqueueInterested(objectKey{s.key.resource, s.name})
	}
	if isNew {
		r.journal.Record(status.JournalEntry{
			Message: status.JournalFailingUpsync, SyncTarget: s.syncTarget.Name, Inventory: s.syncTarget.Inventory.String(), Workspace: r.cluster.String(),
			Resource: s.key.resource.GroupResource(), Reason: why.Reason,
		}, s.name, why.Message)
	}
	return reconcile.Result{}, errorToRetry(err, why.Reason == rules.ReasonWorkspaceRefused)
}
