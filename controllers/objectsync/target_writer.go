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
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/internal/status"
	"github.com/synchub-dev/synchub/controllers/internal/writes"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/plan/transform"
	"github.com/synchub-dev/synchub/controllers/tenants"
	"github.com/synchub-dev/synchub/provider/notfound"
	"github.com/synchub-dev/synchub/provider/requestclass"
	"github.com/synchub-dev/synchub/provider/targets"
	"github.com/synchub-dev/synchub/provider/targets/metadatapatch"
)

// targetWriter writes to the target.
type targetWriter struct {
	resource     *plan.Resource
	owner        ownership.Owner
	fieldManager string
	objects      *targets.Objects
	view         *targetView
	mailbox      *mailboxView
	reporter     *reporter
	// cordoned and adoption are nil if there is no cordon, and no adoption policy of the SyncTarget.
	cordoned func() bool
	adoption func() synchubv1alpha1.AdoptionPolicy
	tenants  func() *tenants.Controller
	onChange func()
}

func newTargetWriter(o *Options, view *targetView, mailbox *mailboxView, reporter *reporter) *targetWriter {
	ofTarget := o.Tenants
	if ofTarget == nil {
		ofTarget = func() *tenants.Controller { return nil }
	}
	return &targetWriter{
		resource: &o.Resource, owner: o.Owner, fieldManager: ownership.FieldManager(o.Owner.Hub), objects: &o.Connection.Objects, view: view,
		mailbox: mailbox, reporter: reporter, cordoned: o.Cordoned, adoption: o.Adoption, tenants: ofTarget, onChange: o.OnChange,
	}
}

// write executes an operation, with all requests that it needs. Its writes impersonate the author of the object.
func (w *targetWriter) write(ctx context.Context, o plan.Operation) error {
	if o.Decision.Action == plan.None {
		return nil
	}
	if o.Decision.Action == plan.Create {
		// Nothing need be made ready, and nothing asked, for an object that the target cannot have.
		if err := w.view.checkServed(o.Copy.API); err != nil {
			return err
		}
	}
	ctx, author, err := w.asAuthor(ctx, o)
	if err == nil {
		err = w.request(ctx, o)
	}
	if err != nil {
		return w.explainDenial(ctx, author, o, err)
	}
	log.FromContext(ctx).V(1).Info("wrote to the target", "decision", o.Decision.String(), "resource", o.Copy.API.GroupResource(), "name", o.Copy.Key)
	switch o.Decision.Action {
	case plan.Delete:
		w.reporter.removed(status.JournalRemoved, o.Decision.Cause, o.Copy.API.GroupResource(), o.Copy.Key)
	case plan.Release:
		w.reporter.removed(status.JournalReleased, o.Decision.Cause, o.Copy.API.GroupResource(), o.Copy.Key)
	default:
	}
	w.onChange()
	return nil
}

// request makes the requests of an operation.
func (w *targetWriter) request(ctx context.Context, o plan.Operation) error {
	switch o.Decision.Action {
	case plan.None:
		return nil
	case plan.Create:
		return w.create(ctx, o.Copy, o.Desired)
	case plan.Apply:
		if o.Decision.Cause == plan.Restored {
			return w.adoptRestored(requestclass.With(ctx, requestclass.Extra), o)
		}
		err := w.apply(ctx, o.Copy, o.Desired, o.Copy.Observed.UID)
		if err == nil && o.Copy.Observed.Mark.Policy == ownership.PolicyCreateOnly {
			err = w.removeOverwriteAnnotation(ctx, o.Copy, o.Desired)
		}
		return err
	case plan.UpdateMark:
		return w.updateMark(ctx, o.Copy, o.Desired, o.Copy.Observed)
	case plan.Delete:
		return w.delete(ctx, o.Copy, o.Copy.Observed.UID, o.Propagation)
	case plan.Release:
		return w.release(ctx, o.Copy)
	case plan.Conflict:
		return &nameTakenError{ref: o.Copy.Ref(), reason: "it came from " + describeFormer(o)}
	case plan.VerifyAbsence, plan.Update, plan.Report:
	}
	return fmt.Errorf("%s is no action on the target", o.Decision)
}

// fieldConflictError names the field managers that keep changing the fields that the hub applies.
func (w *targetWriter) fieldConflictError(ctx context.Context, o plan.Operation) error {
	if len(o.Decision.Fields) == 0 {
		return fmt.Errorf("%w: spec.mutation.down of the PublishedResource returns a different object on every run", errFieldConflict)
	}
	object, err := w.objects.Get(requestclass.With(ctx, requestclass.Extra), o.Copy.API.GroupVersionResource, o.Copy.Key)
	if err != nil {
		return err
	}
	managers, err := w.otherManagersOf(o.Desired, object, o.Decision.Fields)
	if err != nil {
		return err
	}
	return fmt.Errorf("%w: %v keeps changing %v", errFieldConflict, managers, o.Decision.Fields)
}

// otherManagersOf returns the field managers of an object, beside the hub's, that own fields at the paths or below them.
func (w *targetWriter) otherManagersOf(desired *transform.Desired, object *unstructured.Unstructured, paths []string) ([]string, error) {
	managers, err := ownership.ManagersOf(desired.Object.Object, object.GetManagedFields(), paths)
	return slices.DeleteFunc(managers, func(manager string) bool { return manager == w.fieldManager }), err
}

// describeFormer describes the source of a copy if it is not the operation's object.
func describeFormer(o plan.Operation) string {
	if plan.SameSource(o.Desired.Mark, o.Copy.Observed.Mark) {
		return "a former object of this name, of other users, whose end the hub has not seen"
	}
	return describeSource(o.Copy.Observed.Mark.Source)
}

func describeSource(source ownership.Source) string {
	return fmt.Sprintf("%s %s of the mailbox", source.Resource, types.NamespacedName{Namespace: source.Namespace, Name: source.Name})
}

// create creates the desired object, and first its namespace if that is missing. If the name is taken, it reads the object there
// once: the hub may own the object although the label is missing, or may adopt it.
func (w *targetWriter) create(ctx context.Context, current plan.Copy, desired *transform.Desired) error {
	if w.isCordoned() {
		return errCordoned
	}
	ref := current.Ref()
	w.view.writes.Started(ref)
	extra := requestclass.With(ctx, requestclass.Extra)
	created, err := w.objects.Create(ctx, current.API.GroupVersionResource, desired.ForCreate())
	if namespace := current.Key.Namespace; writes.IsMissingNamespace(err, namespace) {
		labels := w.tenants().NamespaceLabels(workspaceOf(desired.Identity))
		ensured := map[string]string{ownership.EnsuredAnnotation: w.owner.EnsuredValue(writes.NamespaceSelf(namespace))}
		if _, err = w.objects.EnsureNamespace(extra, namespace, labels, ensured); err != nil {
			err = fmt.Errorf("cannot create the namespace %s: %w", namespace, err)
		} else {
			created, err = w.objects.Create(extra, current.API.GroupVersionResource, desired.ForCreate())
		}
	}
	if err == nil {
		return w.finish(ctx, ref, created, desired)
	}
	w.view.writes.Finished(ref, nil)
	if errors.Is(err, targets.ErrAlreadyExists) {
		return w.resolveConflict(extra, current, desired, err)
	}
	return err
}

// isCordoned reports whether nothing new may be created on the target. Existing copies stay in sync.
func (w *targetWriter) isCordoned() bool { return w.cordoned != nil && w.cordoned() }

// apply applies to the hub's copy of the given UID. If an immutable field differs, it replaces the copy if the PublishedResource
// allows it.
func (w *targetWriter) apply(ctx context.Context, current plan.Copy, desired *transform.Desired, uid types.UID) error {
	err := w.applyInPlace(ctx, current, desired, uid)
	if refused, ok := errors.AsType[*immutableError](err); ok {
		return w.replace(ctx, current, desired, uid, refused)
	}
	return err
}

// applyInPlace applies to the object of the given UID and never replaces it, so the hub need not own the object yet.
func (w *targetWriter) applyInPlace(ctx context.Context, current plan.Copy, desired *transform.Desired, uid types.UID) error {
	if err := w.relinquishFields(ctx, current, desired, uid); err != nil {
		return err
	}
	ref := current.Ref()
	desired = desired.ForCopy(uid)
	w.view.writes.Started(ref)
	applied, err := w.applyEmptying(ctx, current, desired, uid)
	if err != nil {
		err = asImmutableError(w.checkIdentity(ref, uid, err))
		applied, err = w.applyWithoutObstacles(requestclass.With(ctx, requestclass.Extra), current, desired, uid, err)
	}
	if err != nil {
		w.view.writes.Finished(ref, nil)
		return err
	}
	w.reportKeptFields(ctx, current, desired, applied)
	return w.finish(ctx, ref, applied, desired)
}

// replace deletes a copy that has immutable fields to change; the delete event leads to a create. A dry run first
// makes sure that the target accepts the new object.
func (w *targetWriter) replace(ctx context.Context, current plan.Copy, desired *transform.Desired, uid types.UID, refused *immutableError) error {
	// A mailbox that was bound again has lost its former objects although no user deleted them.
	superseded := plan.Supersedes(desired, current.Observed) && !w.mailbox.mailboxes.Absences.WasRebound(w.mailbox.name)
	if !w.resource.Replace && !superseded || w.resource.DeletesContents {
		return refused
	}
	if w.isCordoned() {
		return fmt.Errorf("%w; it is not replaced: %w", refused, errCordoned)
	}
	ctx = requestclass.With(ctx, requestclass.Extra)
	if err := w.objects.DryRunCreate(ctx, current.API.GroupVersionResource, desired.ForCreate()); err != nil {
		return fmt.Errorf("%w; it was not replaced, since the target refuses the new one as well: %w", refused, err)
	}
	return w.delete(ctx, current, uid, metav1.DeletePropagationBackground)
}

// updateMark updates the marks of a copy that the hub does not overwrite. The mark keeps the hash of the last apply.
func (w *targetWriter) updateMark(ctx context.Context, current plan.Copy, desired *transform.Desired, observed *plan.TargetObject) error {
	mark := desired.Mark
	mark.Hash, mark.Adopted = observed.Mark.Hash, observed.Mark.Adopted
	return w.patchMark(ctx, current, desired, observed.UID, mark, nil)
}

// patchMark writes only the marks of an object that the hub does not overwrite.
func (w *targetWriter) patchMark(ctx context.Context, current plan.Copy, desired *transform.Desired, uid types.UID, mark ownership.Mark, removeAnnotations []string) error {
	return w.patchMetadata(ctx, current, uid, metadatapatch.Patch{
		SetLabels: map[string]string{ownership.OwnerLabel: w.owner.LabelValue()},
		SetAnnotations: map[string]string{
			ownership.MarkAnnotation: w.owner.Seal(mark), ownership.OverwriteAnnotation: "false",
			ownership.IdentityAnnotation: desired.ForCopy(uid).SealedIdentity(),
		},
		RemoveAnnotations: removeAnnotations,
	})
}

// removeOverwriteAnnotation removes the annotation that patchMark has set. An apply without the annotation would not remove it,
// because no apply has set it.
func (w *targetWriter) removeOverwriteAnnotation(ctx context.Context, current plan.Copy, desired *transform.Desired) error {
	if _, ok := desired.Object.GetAnnotations()[ownership.OverwriteAnnotation]; ok {
		return nil
	}
	extra := requestclass.With(ctx, requestclass.Extra)
	return w.objects.RemoveMetadata(extra, current.API.GroupVersionResource, current.Key, current.Observed.UID, nil, []string{ownership.OverwriteAnnotation})
}

func (w *targetWriter) patchMetadata(ctx context.Context, current plan.Copy, uid types.UID, edits metadatapatch.Patch) error {
	ref := current.Ref()
	w.view.writes.Started(ref)
	edited, err := w.objects.PatchMetadata(ctx, current.API.GroupVersionResource, current.Key, uid, edits)
	if err != nil {
		w.view.writes.Finished(ref, nil)
		return w.checkIdentity(ref, uid, err)
	}
	cached, _ := w.view.cachedCopyOf(edited, verifiedMark{})
	w.view.writes.Written(ctx, ref, cached)
	return nil
}

// finish records the response until the cache contains it. It also records the desired fields that the target dropped, so that
// the hub does not repair them as drift.
func (w *targetWriter) finish(ctx context.Context, ref plan.Ref, answer *unstructured.Unstructured, desired *transform.Desired) error {
	cached, err := w.view.cachedCopyOf(answer, verifiedMark{desired.Mark, desired.SealedMark()})
	w.view.writes.Written(ctx, ref, cached)
	if err != nil {
		return fmt.Errorf("the target did not keep the hub's mark: %w", err)
	}
	dropped, err := ownership.UnownedPaths(desired.Object.Object, cached.observed.AppliedFields)
	if err != nil {
		return err
	}
	var conflict error
	if len(dropped) > 0 {
		nulls, managers, err := w.nullsOfOthers(desired, cached, answer)
		if err != nil {
			return err
		}
		if len(managers) > 0 {
			dropped = slices.DeleteFunc(dropped, func(path string) bool { return slices.Contains(nulls, path) })
			conflict = fmt.Errorf("%w: the mailbox has null in %v, but the target keeps the fields there that %v has set: remove them, or do not select the object", errFieldConflict, nulls, managers)
		}
	}
	w.view.writes.SetDroppedPaths(ref, dropped)
	return conflict
}

// nullsOfOthers returns the paths where the hub applied a null and the target keeps fields of other managers, and these managers.
// It returns none if an admission webhook fills the null, because the webhook's fields belong to the hub's write.
func (w *targetWriter) nullsOfOthers(desired *transform.Desired, cached *cachedCopy, answer *unstructured.Unstructured) (paths, managers []string, err error) {
	paths, err = ownership.NullsOfOthers(desired.Object.Object, cached.observed.AppliedFields)
	if err != nil || len(paths) == 0 {
		return nil, nil, err
	}
	managers, err = w.otherManagersOf(desired, answer, paths)
	return paths, managers, err
}

// delete deletes a copy.
func (w *targetWriter) delete(ctx context.Context, current plan.Copy, uid types.UID, propagation metav1.DeletionPropagation) error {
	return w.withdraw(ctx, current.Ref(), uid, func() (existed bool, err error) {
		return w.objects.DeleteExisting(ctx, current.API.GroupVersionResource, current.Key, uid, propagation)
	})
}

// release removes the hub's marks from an object, which stays.
func (w *targetWriter) release(ctx context.Context, current plan.Copy) error {
	observed := current.Observed
	edits := metadatapatch.Patch{RemoveAnnotations: []string{ownership.MarkAnnotation, ownership.IdentityAnnotation}}
	if observed.HasOwnerLabel {
		edits.RemoveLabels = []string{ownership.OwnerLabel}
	}
	if mayReclaim(observed.Mark) {
		edits.SetAnnotations = map[string]string{ownership.EnsuredAnnotation: w.owner.EnsuredValue(observed.Mark.Self)}
	}
	return w.withdraw(ctx, current.Ref(), observed.UID, func() (existed bool, err error) {
		_, err = w.objects.PatchMetadata(ctx, current.API.GroupVersionResource, current.Key, observed.UID, edits)
		if notfound.Proves(err, current.API.GroupResource(), current.Key.Name) {
			return false, nil
		}
		return true, err
	})
}

// withdraw makes a request after which the object is no copy of the hub's, and counts as deleted.
func (w *targetWriter) withdraw(ctx context.Context, ref plan.Ref, uid types.UID, request func() (existed bool, err error)) error {
	w.view.writes.Started(ref)
	w.view.deletionStarted(ref, uid)
	existed, err := request()
	if err != nil {
		w.view.writes.Finished(ref, nil)
		w.view.deletionStarted(ref, "")
		return w.checkIdentity(ref, uid, err)
	}
	w.view.writes.DeleteAccepted(ctx, ref, uid)
	if !existed {
		w.view.contradicted(ref, uid)
	}
	return nil
}

// mayReclaim reports whether the hub may take back a released object when the source is created again. It may if the policy is
// Delete and the object stays only because its deletion would delete other objects. Orphaned and adopted objects keep no trace of
// the hub.
func mayReclaim(mark ownership.Mark) bool {
	return mark.Policy == ownership.PolicyDelete && !mark.Adopted
}

// checkIdentity returns the error of a write to the object of the given UID. If the error means that the object does not exist,
// it marks the cache as outdated.
func (w *targetWriter) checkIdentity(ref plan.Ref, uid types.UID, err error) error {
	if notfound.Proves(err, ref.Resource, ref.Key.Name) || apierrors.IsConflict(err) && otherUIDMessage.MatchString(err.Error()) || isOtherUID(err) {
		w.view.contradicted(ref, uid)
	}
	return err
}
