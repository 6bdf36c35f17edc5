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

package objectsync

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/internal/status"
	"github.com/synchub-dev/synchub/controllers/internal/writes"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/plan/transform"
	"github.com/synchub-dev/synchub/provider/requestclass"
)

var namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

// errOutdated means that the object to write has changed since the hub read it, on either side.
var errOutdated = writes.ErrOutdated

// refusedByMailbox returns the error of a write to the mailbox; nil if it has none.
func refusedByMailbox(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", errMailboxRefused, err)
}

// mailboxWriter writes to the mailbox.
type mailboxWriter struct {
	writer   writes.WorkspaceWriter[types.NamespacedName]
	resource *plan.Resource
	owner    ownership.Owner
	planner  *plan.Planner
	view     *mailboxView
	states   *keyStates
	upsynced *upsyncIndex
	reporter *reporter
	onChange func()
}

func newMailboxWriter(o *Options, planner *plan.Planner, view *mailboxView, states *keyStates, upsynced *upsyncIndex, reporter *reporter) *mailboxWriter {
	return &mailboxWriter{
		writer: writes.WorkspaceWriter[types.NamespacedName]{
			Workspaces: o.Mailboxes, FieldManager: ownership.FieldManager(o.Owner.Hub), Expectations: &view.writes,
			Locate: func(key types.NamespacedName) writes.Object {
				return writes.Object{Workspace: o.Mailbox, Resource: o.Resource.GroupVersionResource, Name: key}
			},
		},
		resource: &o.Resource, owner: o.Owner, planner: planner, view: view, states: states, upsynced: upsynced,
		reporter: reporter, onChange: o.OnChange,
	}
}

// write makes the write that the plan decided on.
func (w *mailboxWriter) write(ctx context.Context, p plan.UpPlan) error {
	switch p.Decision.Action {
	case plan.None, plan.VerifyAbsence:
		return nil
	case plan.Create:
		return w.create(ctx, p)
	case plan.Update:
		err := w.update(ctx, p, p.Desired)
		if IsImmutable(err) && p.ReplaceIfImmutable {
			// The source was deleted and created again, so the mailbox object may be replaced too.
			return w.delete(requestclass.With(ctx, requestclass.Extra), p.Key, p.InMailbox)
		}
		return err
	case plan.Conflict:
		return w.resolveConflict(ctx, p)
	case plan.Delete:
		err := w.delete(ctx, p.Key, p.InMailbox)
		if err == nil {
			w.reporter.removed(status.JournalRemovedUp, p.Decision.Cause, w.resource.GroupResource(), p.Key)
		}
		return err
	case plan.Release:
		return w.release(ctx, p.Key, p.InMailbox)
	default:
		return fmt.Errorf("%s is no decision about an object of the mailbox", p.Decision)
	}
}

// create creates the desired object.
func (w *mailboxWriter) create(ctx context.Context, p plan.UpPlan) error {
	created, err := w.writer.Create(ctx, p.Key, w.withStatus(p.Desired.Object, p.Status), w.owner)
	switch exists := errors.Is(err, writes.ErrExists); {
	case exists && w.view.isUpsynced(created):
		// Nobody removed the object. If it vanished from the cache, that had another cause.
		w.states.refundRemoval(p.Key)
		return nil
	case exists:
		return errNameTakenInMailbox
	default:
		return w.finish(ctx, p, created, err)
	}
}

// update replaces the content of the mailbox object if nobody has changed it since the pass observed it.
func (w *mailboxWriter) update(ctx context.Context, p plan.UpPlan, desired *transform.Desired) error {
	updated, err := w.writer.Update(ctx, p.Key, p.InMailbox, w.withStatus(desired.Object, p.Status))
	return w.finish(ctx, p, updated, err)
}

// finish writes the status after the rest of the object.
func (w *mailboxWriter) finish(ctx context.Context, p plan.UpPlan, written *unstructured.Unstructured, err error) error {
	if err != nil {
		return refusedByMailbox(err)
	}
	w.onChange()
	_, err = w.writeStatus(ctx, p.Key, written, p.Status)
	return err
}

// withStatus adds the status if the resource has no status subresource. A status subresource needs its own request.
func (w *mailboxWriter) withStatus(desired *unstructured.Unstructured, returned plan.StatusReturn) *unstructured.Unstructured {
	if returned.OnTarget == nil || w.resource.StatusSubresource {
		return desired
	}
	status, ok := returned.OnTarget.Object["status"]
	if !ok {
		return desired
	}
	with := &unstructured.Unstructured{Object: maps.Clone(desired.Object)}
	with.Object["status"] = status
	return with
}

// delete deletes an upsynced object.
func (w *mailboxWriter) delete(ctx context.Context, key types.NamespacedName, inMailbox *unstructured.Unstructured) error {
	return w.withdrawn(inMailbox, w.writer.Delete(ctx, key, inMailbox, nil))
}

// release removes the hub's marks from an upsynced object, which stays.
func (w *mailboxWriter) release(ctx context.Context, key types.NamespacedName, inMailbox *unstructured.Unstructured) error {
	var ensured string
	if mark, err := plan.MailboxMark(w.owner, inMailbox); err == nil && mayReclaim(mark) {
		ensured = w.owner.EnsuredValue(mark.Self)
	}
	return w.withdrawn(inMailbox, w.writer.Release(ctx, key, inMailbox, ensured, false))
}

// withdrawn drops the recorded deletion of the source of a mailbox object that was deleted or released, unless the request
// failed.
func (w *mailboxWriter) withdrawn(inMailbox *unstructured.Unstructured, err error) error {
	if err != nil {
		return refusedByMailbox(err)
	}
	if mark, err := plan.MailboxMark(w.owner, inMailbox); err == nil {
		w.upsynced.forgetSourceDeleted(upsyncSourceRef(mark))
	}
	w.onChange()
	return nil
}

// writeStatus writes the status of an object of the target to the mailbox object if they differ.
func (w *mailboxWriter) writeStatus(ctx context.Context, key types.NamespacedName, inMailbox *unstructured.Unstructured, returned plan.StatusReturn) (written bool, err error) {
	if returned.OnTarget == nil {
		return false, nil
	}
	wanted, pruned, err := w.planner.MailboxStatus(inMailbox, returned)
	if err != nil {
		return false, err
	}
	w.reporter.recordPrunedPaths(returned.Selection.Configs, pruned)
	current := transform.StatusOf(inMailbox.Object["status"])
	if transform.EqualStatus(current, wanted) {
		return false, nil
	}
	patch, err := writes.StatusPatch(inMailbox.GetUID(), current, wanted)
	if err != nil {
		return false, fmt.Errorf("cannot compare the status: %w", err)
	}
	switch err := w.writer.PatchStatus(ctx, key, patch, w.resource.StatusSubresource); {
	case errors.Is(err, writes.ErrUnreachable):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("%w: cannot write the status: %w", errMailboxRefused, err)
	}
	return true, nil
}

// markFinished annotates a mailbox object that has run to completion, so that the hub does not run it again, not even after a
// restart.
func (w *mailboxWriter) markFinished(ctx context.Context, key types.NamespacedName, uid types.UID, mark string) error {
	patch, err := writes.MergePatch(map[string]any{"metadata": map[string]any{
		"uid": uid, "annotations": map[string]any{ownership.FinishedAnnotation: mark},
	}})
	if err != nil {
		return err
	}
	if _, err := w.writer.Patch(requestclass.With(ctx, requestclass.Extra), key, patch); err != nil && !errors.Is(err, writes.ErrUnreachable) {
		return fmt.Errorf("%w: cannot note that the object has run: %w", errMailboxRefused, err)
	}
	return nil
}

// resolveConflict takes over the mailbox object of the same name if it is a namespace that the hub created for upsynced objects,
// or if KubeStellar's syncer upsynced it and the PublishedResource allows its adoption. Otherwise it returns a conflict error.
func (w *mailboxWriter) resolveConflict(ctx context.Context, p plan.UpPlan) error {
	inMailbox := p.InMailbox
	ctx = requestclass.With(ctx, requestclass.Extra)
	_, markErr := plan.MailboxMark(w.owner, inMailbox)
	switch {
	case isEnsured(w.owner, inMailbox, markErr):
		return w.update(ctx, p, p.Desired)
	case w.mayAdopt(inMailbox, markErr):
		return w.update(ctx, p, p.Desired.AsAdopted())
	case isKubeStellarUpsynced(inMailbox, markErr):
		return fmt.Errorf("%w, or let spec.adoption of the PublishedResource be KubeStellar, whose syncer brought it up", errNameTakenInMailbox)
	default:
		return errNameTakenInMailbox
	}
}

// mayAdopt reports whether the hub may adopt a mailbox object. It never adopts an object with a hub's verified mark.
func (w *mailboxWriter) mayAdopt(inMailbox *unstructured.Unstructured, markErr error) bool {
	return w.resource.Adoption == synchubv1alpha1.AdoptionKubeStellar && isKubeStellarUpsynced(inMailbox, markErr)
}

// isKubeStellarUpsynced reports whether KubeStellar's syncer upsynced a mailbox object, and no hub's mark forbids its adoption.
func isKubeStellarUpsynced(inMailbox *unstructured.Unstructured, markErr error) bool {
	return ownership.IsAdoptable(markErr) &&
		ownership.IsFromKubeStellar(inMailbox.GetAnnotations(), ownership.KubeStellarUpsynced, transform.SelfOf(inMailbox))
}

// nameConflict returns an error if another target object would have the same name in the mailbox.
func nameConflict(other *plan.Ref) error {
	if other == nil {
		return nil
	}
	return fmt.Errorf("%w: %s %s of the target would have the same name", errNameTakenInMailbox, other.Resource, other.Key)
}
