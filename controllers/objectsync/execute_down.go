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
	"net/http"
	"regexp"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/internal/mailboxwrite"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/fieldpath"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/plan/transform"
	"github.com/synchub-dev/synchub/provider/notfound"
	"github.com/synchub-dev/synchub/provider/requestclass"
	"github.com/synchub-dev/synchub/provider/targets"
)

// createOnTarget creates the desired object, and first its namespace if that is missing. If the name is taken, it reads the
// object there once: the hub may own it, without its label, or may adopt it.
func (c *Controller) createOnTarget(ctx context.Context, current plan.Copy, desired *transform.Desired) error {
	if c.isCordoned() {
		return errCordoned
	}
	ref := current.Ref()
	c.states.targetExpectations.Started(ref)
	created, err := c.Connection.Create(ctx, current.API.GroupVersionResource, desired.ForCreate())
	if mailboxwrite.IsMissingNamespace(err, current.Key.Namespace) {
		extra := requestclass.With(ctx, requestclass.Extra)
		if err := c.Connection.EnsureNamespace(extra, current.Key.Namespace, map[string]string{ownership.EnsuredAnnotation: c.Owner.EnsuredValue(mailboxwrite.NamespaceSelf(current.Key.Namespace))}); err != nil {
			c.states.targetExpectations.Finished(ref, nil)
			return fmt.Errorf("cannot create the namespace %s: %w", current.Key.Namespace, err)
		}
		created, err = c.Connection.Create(extra, current.API.GroupVersionResource, desired.ForCreate())
	}
	if errors.Is(err, targets.ErrAlreadyExists) {
		c.states.targetExpectations.Finished(ref, nil)
		return c.resolveTargetConflict(requestclass.With(ctx, requestclass.Extra), current, desired, err)
	}
	if err != nil {
		c.states.targetExpectations.Finished(ref, nil)
		return err
	}
	return c.finishTargetWrite(ctx, ref, created, desired)
}

// isCordoned reports whether nothing new may be created on the target. Existing copies stay in sync.
func (c *Controller) isCordoned() bool { return c.Cordoned != nil && c.Cordoned() }

// applyToTarget applies to the hub's copy of that UID. A copy that refuses the change is replaced if the PublishedResource
// allows it.
func (c *Controller) applyToTarget(ctx context.Context, current plan.Copy, desired *transform.Desired, uid types.UID) error {
	err := c.applyInPlace(ctx, current, desired, uid)
	if refused, ok := errors.AsType[*immutableError](err); ok {
		return c.replaceOnTarget(ctx, current, desired, uid, refused)
	}
	return err
}

// applyInPlace applies to the object of that UID and never replaces it, so the object need not be the hub's yet.
func (c *Controller) applyInPlace(ctx context.Context, current plan.Copy, desired *transform.Desired, uid types.UID) error {
	if err := c.relinquishFields(ctx, current, desired, uid); err != nil {
		return err
	}
	ref := current.Ref()
	desired = desired.ForCopy(uid)
	c.states.targetExpectations.Started(ref)
	applied, err := c.applyEmptying(ctx, current, desired, uid)
	if err != nil {
		err = asImmutableError(c.checkIdentity(ref, uid, err))
		applied, err = c.applyWithoutObstacles(requestclass.With(ctx, requestclass.Extra), current, desired, uid, err)
	}
	if err != nil {
		c.states.targetExpectations.Finished(ref, nil)
		return err
	}
	c.reportKeptFields(ctx, current, desired, applied)
	return c.finishTargetWrite(ctx, ref, applied, desired)
}

// appliedFields returns the fields of a copy that the hub applied and still owns.
func (c *Controller) appliedFields(current plan.Copy) []byte {
	switch {
	case current.Observed != nil:
		return current.Observed.AppliedFields
	case current.Object != nil:
		return ownership.AppliedFields(current.Object, c.fieldManager)
	default:
		return nil
	}
}

// relinquishFields gives up the ownership of fields that the hub applied before and ignores from now on. An apply without
// those fields would delete them from the object.
func (c *Controller) relinquishFields(ctx context.Context, current plan.Copy, desired *transform.Desired, uid types.UID) error {
	if len(desired.IgnoredFields) == 0 {
		return nil
	}
	paths := make([]fieldpath.Path, 0, len(desired.IgnoredFields))
	for _, field := range desired.IgnoredFields {
		paths = append(paths, field.Path)
	}
	if !ownership.OwnsAny(c.appliedFields(current), paths) {
		return nil
	}
	extra := requestclass.With(ctx, requestclass.Extra)
	object, err := c.Connection.Get(extra, current.API.GroupVersionResource, current.Key)
	if err != nil {
		return fmt.Errorf("cannot relinquish ignored fields: %w", err)
	}
	entries, changed := ownership.RelinquishFields(object.GetManagedFields(), c.fieldManager, paths)
	if !changed {
		return nil
	}
	edits := targets.MetadataPatch{ManagedFields: entries, ResourceVersion: object.GetResourceVersion()}
	_, err = c.Connection.PatchMetadata(extra, current.API.GroupVersionResource, current.Key, uid, edits)
	if apierrors.IsConflict(err) {
		return errOutdated
	}
	if err != nil {
		return fmt.Errorf("cannot relinquish ignored fields: %w", err)
	}
	return nil
}

// unknownVersionMessage matches the refusal of an apply to an object whose managedFields name a version that its CRD does not
// have any more.
var unknownVersionMessage = regexp.MustCompile(`invalid group/version: ([-a-z0-9.]+/[a-z0-9]+)`)

// removedVersion returns the removed version for which the target refused an apply; empty if the refusal has another cause.
func removedVersion(err error, in schema.GroupVersion) string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Code != http.StatusInternalServerError {
		return ""
	}
	found := unknownVersionMessage.FindStringSubmatch(status.Status().Message)
	if found == nil {
		return ""
	}
	version, err := schema.ParseGroupVersion(found[1])
	if err != nil || version.Group != in.Group || version == in {
		return ""
	}
	return found[1]
}

// applyMigratingVersion applies to the object of the UID. If managedFields name a version that was removed from the CRD, they
// are moved to the current version first: until then nobody can apply to the object.
func (c *Controller) applyMigratingVersion(ctx context.Context, current plan.Copy, desired *transform.Desired, uid types.UID) (*unstructured.Unstructured, error) {
	resource := current.API.GroupVersionResource
	applied, err := c.Connection.Apply(ctx, resource, desired.Object, uid)
	vanished := removedVersion(err, resource.GroupVersion())
	if vanished == "" {
		return applied, err
	}
	ctx = requestclass.With(ctx, requestclass.Extra)
	object, failed := c.Connection.Get(ctx, resource, current.Key)
	if failed != nil {
		return nil, errors.Join(err, failed)
	}
	entries, moved := ownership.MoveAPIVersion(object.GetManagedFields(), vanished, resource.GroupVersion().String())
	if !moved {
		return nil, err
	}
	_, failed = c.Connection.PatchMetadata(ctx, resource, current.Key, uid, targets.MetadataPatch{ManagedFields: entries, ResourceVersion: object.GetResourceVersion()})
	switch {
	case apierrors.IsConflict(failed):
		return nil, errOutdated
	case failed != nil:
		return nil, fmt.Errorf("%w; and the managedFields of that version cannot be moved to another: %w", err, failed)
	}
	return c.Connection.Apply(ctx, resource, desired.Object, uid)
}

// replaceOnTarget deletes a copy that has immutable fields to change; the delete event leads to a create. A dry run first
// makes sure that the target accepts the new object.
func (c *Controller) replaceOnTarget(ctx context.Context, current plan.Copy, desired *transform.Desired, uid types.UID, refused *immutableError) error {
	// A mailbox that was bound again has lost the former objects without a user's order.
	superseded := plan.Supersedes(desired, current.Observed) && !c.Mailboxes.WasRebound(c.Mailbox)
	if !c.Resource.Replace && !superseded || c.Resource.DeletesContents {
		return refused
	}
	if c.isCordoned() {
		return fmt.Errorf("%w; it is not replaced: %w", refused, errCordoned)
	}
	ctx = requestclass.With(ctx, requestclass.Extra)
	if err := c.Connection.DryRunCreate(ctx, current.API.GroupVersionResource, desired.ForCreate()); err != nil {
		return fmt.Errorf("%w; it was not replaced, since the target refuses the new one as well: %w", refused, err)
	}
	return c.deleteFromTarget(ctx, current, uid, metav1.DeletePropagationBackground)
}

// updateMark updates the marks of a copy whose content is left to the target. The mark keeps the hash of the last apply.
func (c *Controller) updateMark(ctx context.Context, current plan.Copy, desired *transform.Desired, observed *plan.TargetObject) error {
	mark := desired.Mark
	mark.Hash, mark.Adopted = observed.Mark.Hash, observed.Mark.Adopted
	return c.editTarget(ctx, current, observed.UID, targets.MetadataPatch{
		SetLabels: map[string]string{ownership.OwnerLabel: c.Owner.LabelValue()},
		SetAnnotations: map[string]string{
			ownership.MarkAnnotation: c.Owner.Seal(mark), ownership.OverwriteAnnotation: "false",
			ownership.IdentityAnnotation: desired.ForCopy(observed.UID).SealedIdentity(),
		},
	})
}

// removeOverwriteAnnotation removes the annotation that [Controller.updateMark] set. An apply without it would not remove it,
// because no apply has set it.
func (c *Controller) removeOverwriteAnnotation(ctx context.Context, current plan.Copy, desired *transform.Desired) error {
	if _, ok := desired.Object.GetAnnotations()[ownership.OverwriteAnnotation]; ok {
		return nil
	}
	extra := requestclass.With(ctx, requestclass.Extra)
	return c.Connection.RemoveMetadata(extra, current.API.GroupVersionResource, current.Key, current.Observed.UID, nil, []string{ownership.OverwriteAnnotation})
}

func (c *Controller) editTarget(ctx context.Context, current plan.Copy, uid types.UID, edits targets.MetadataPatch) error {
	ref := current.Ref()
	c.states.targetExpectations.Started(ref)
	edited, err := c.Connection.PatchMetadata(ctx, current.API.GroupVersionResource, current.Key, uid, edits)
	if err != nil {
		c.states.targetExpectations.Finished(ref, nil)
		return c.checkIdentity(ref, uid, err)
	}
	cached, _ := c.cachedCopyOf(edited, verifiedMark{})
	c.states.targetExpectations.Written(ctx, ref, cached)
	return nil
}

// finishTargetWrite uses the response until the cache shows it. It also notes the desired fields that the target dropped,
// so that they are not taken for drift for ever.
func (c *Controller) finishTargetWrite(ctx context.Context, ref plan.Ref, answer *unstructured.Unstructured, desired *transform.Desired) error {
	cached, err := c.cachedCopyOf(answer, verifiedMark{desired.Mark, desired.SealedMark()})
	c.states.targetExpectations.Written(ctx, ref, cached)
	if err != nil {
		return fmt.Errorf("the target did not keep the hub's mark: %w", err)
	}
	dropped, err := ownership.UnownedPaths(desired.Object.Object, cached.observed.AppliedFields)
	if err != nil {
		return err
	}
	var conflict error
	if len(dropped) > 0 {
		nulls, managers, err := c.nullsOfOthers(desired, cached, answer)
		if err != nil {
			return err
		}
		if len(managers) > 0 {
			dropped = slices.DeleteFunc(dropped, func(path string) bool { return slices.Contains(nulls, path) })
			conflict = fmt.Errorf("%w: the mailbox has null in %v, but the target keeps the fields there that %v has set: remove them, or do not select the object", errFieldConflict, nulls, managers)
		}
	}
	c.states.targetExpectations.SetDroppedPaths(ref, dropped)
	return conflict
}

// nullsOfOthers returns the paths at which the hub applied a null and the target keeps what other managers have set, and those managers. There
// are none if an admission webhook fills the null: its fields belong to an update by the hub.
func (c *Controller) nullsOfOthers(desired *transform.Desired, cached *cachedCopy, answer *unstructured.Unstructured) (paths, managers []string, err error) {
	paths, err = ownership.NullsOfOthers(desired.Object.Object, cached.observed.AppliedFields)
	if err != nil || len(paths) == 0 {
		return nil, nil, err
	}
	managers, err = c.otherManagersOf(desired, answer, paths)
	return paths, managers, err
}

func (c *Controller) deleteFromTarget(ctx context.Context, current plan.Copy, uid types.UID, propagation metav1.DeletionPropagation) error {
	ref := current.Ref()
	c.states.targetExpectations.Started(ref)
	c.states.deletionStarted(ref, uid)
	existed, err := c.Connection.DeleteExisting(ctx, current.API.GroupVersionResource, current.Key, uid, propagation)
	if err != nil {
		c.states.targetExpectations.Finished(ref, nil)
		c.states.deletionStarted(ref, "")
		return c.checkIdentity(ref, uid, err)
	}
	c.states.targetExpectations.DeleteAccepted(ctx, ref, uid)
	if !existed {
		c.contradicted(ref, uid)
	}
	return nil
}

// releaseOnTarget removes the hub's marks from an object, which stays.
func (c *Controller) releaseOnTarget(ctx context.Context, current plan.Copy) error {
	ref, observed := current.Ref(), current.Observed
	edits := targets.MetadataPatch{RemoveAnnotations: []string{ownership.MarkAnnotation, ownership.IdentityAnnotation}}
	if observed.HasOwnerLabel {
		edits.RemoveLabels = []string{ownership.OwnerLabel}
	}
	if mayReclaim(observed.Mark) {
		edits.SetAnnotations = map[string]string{ownership.EnsuredAnnotation: c.Owner.EnsuredValue(observed.Mark.Self)}
	}
	c.states.targetExpectations.Started(ref)
	c.states.deletionStarted(ref, observed.UID)
	if _, err := c.Connection.PatchMetadata(ctx, current.API.GroupVersionResource, current.Key, observed.UID, edits); c.checkIdentity(ref, observed.UID, err) != nil && !notfound.Proves(err, current.API.GroupResource(), current.Key.Name) {
		c.states.targetExpectations.Finished(ref, nil)
		c.states.deletionStarted(ref, "")
		return err
	}
	// A released object counts as deleted.
	c.states.targetExpectations.DeleteAccepted(ctx, ref, observed.UID)
	return nil
}

// mayReclaim reports whether the hub may take back an object that it releases, when the source is created again. It may if the
// object was to be deleted and stays only because its deletion would delete others. Orphaned and adopted objects keep no trace
// of the hub.
func mayReclaim(mark ownership.Mark) bool {
	return mark.Policy == ownership.PolicyDelete && !mark.Adopted
}
