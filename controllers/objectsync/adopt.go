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

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/transform"
	"github.com/synchub-dev/synchub/provider/targets"
)

// reclaim takes back the object that has taken the name if it is ours, adopts it if it may be, and reports a conflict
// otherwise.
func (c *Controller) reclaim(ctx context.Context, current targetCopy, desired *transform.Desired, refused error) error {
	object, err := c.Connection.Get(ctx, current.target.GroupVersionResource, current.key)
	if err != nil {
		return fmt.Errorf("the target refused to create the object: %w; and reading it failed: %w", refused, err)
	}
	observed, reason := c.observeObject(object)
	current.object = object
	switch {
	case reason == nil && !plan.SameSource(observed.Mark, desired.Mark):
		return &nameTakenError{ref: current.ref(), reason: "it came from " + describeSource(observed.Mark.Source)}
	case reason == nil:
		return c.reapplyOwned(ctx, current, desired, observed, c.applyToTarget)
	case c.isEnsured(object, reason):
		return c.applyInPlace(ctx, current, desired, object.GetUID())
	}
	if mark, proven := c.unsealedMark(object, ownership.DirectionDown, desired, reason); proven {
		return c.reapplyOwned(ctx, current, desired, &plan.TargetObject{UID: object.GetUID(), Mark: mark}, c.applyInPlace)
	}
	allowed, err := c.mayAdopt(ctx, current, object, desired, reason)
	switch {
	case err != nil:
		return fmt.Errorf("cannot find out whether the object may be adopted: %w", err)
	case !allowed:
		return &nameTakenError{ref: current.ref(), reason: reason.Error(), adoptable: ownership.IsAdoptable(reason), unverified: errors.Is(reason, ownership.ErrUnverified)}
	default:
		return c.adopt(ctx, current, object, desired.AsAdopted())
	}
}

// applyFunc brings in sync the object that has the UID.
type applyFunc func(ctx context.Context, here targetCopy, desired *transform.Desired, uid types.UID) error

// reapplyOwned brings in sync an object that the hub wrote.
func (c *Controller) reapplyOwned(ctx context.Context, current targetCopy, desired *transform.Desired, observed *plan.TargetObject, write applyFunc) error {
	switch {
	case desired.Mark.Policy == ownership.PolicyCreateOnly:
		return c.updateMark(ctx, current, desired, observed)
	case observed.Mark.Adopted:
		return write(ctx, current, desired.AsAdopted(), observed.UID)
	default:
		return write(ctx, current, desired, observed.UID)
	}
}

// unsealedMark returns the mark of an object that is not ours, for the reason given, if the hub wrote it before marks were sealed,
// and it was then what it is to be now.
func (c *Controller) unsealedMark(object *unstructured.Unstructured, direction ownership.Direction, desired *transform.Desired, reason error) (ownership.Mark, bool) {
	if !errors.Is(reason, ownership.ErrUnsealed) {
		return ownership.Mark{}, false
	}
	text, _ := annotation(object, ownership.MarkAnnotation)
	mark, proven := c.Owner.VerifyUnsealed(text, transform.SelfOf(object), direction, desired.Mark.Hash)
	return mark, proven && plan.SameSource(mark, desired.Mark)
}

// isEnsured tells whether an object that is not ours is a namespace that this very hub made for its contents, or one that it made
// and let go of.
func (c *Controller) isEnsured(object *unstructured.Unstructured, reason error) bool {
	value, ok := annotation(object, ownership.EnsuredAnnotation)
	return ok && errors.Is(reason, ownership.ErrUnmarked) && c.Owner.HasEnsured(value, transform.SelfOf(object))
}

// mayAdopt tells whether the PublishedResource or the SyncTarget lets the hub take over an object. One with a mark of another
// hub, or that cannot be read, is never taken over.
func (c *Controller) mayAdopt(ctx context.Context, current targetCopy, object *unstructured.Unstructured, desired *transform.Desired, reason error) (bool, error) {
	if !ownership.IsAdoptable(reason) {
		return false, nil
	}
	allowed := func(policy synchubv1alpha1.AdoptionPolicy) bool {
		return c.Resource.Adoption == policy || c.Adoption != nil && c.Adoption() == policy
	}
	switch {
	case allowed(synchubv1alpha1.AdoptionAlways):
		return true, nil
	case allowed(synchubv1alpha1.AdoptionKubeStellar) && ownership.IsFromKubeStellar(object.GetAnnotations(), ownership.KubeStellarDownsynced, transform.SelfOf(object)):
		return true, nil
	case allowed(synchubv1alpha1.AdoptionIfIdentical):
		dryRun, err := c.Connection.DryRunApply(ctx, current.target.GroupVersionResource, desired.Object, object.GetUID())
		if apierrors.IsInvalid(err) {
			// What cannot even become like ours is not like it.
			return false, nil
		}
		if err != nil {
			return false, err
		}
		return apiequality.Semantic.DeepEqual(comparableContent(dryRun, desired.IgnoredFields), comparableContent(object, desired.IgnoredFields)), nil
	default:
		return false, nil
	}
}

// comparableContent returns what two objects must have in common to be identical but for the marks and what is ignored.
func comparableContent(object *unstructured.Unstructured, ignored []transform.IgnoredField) map[string]any {
	kept := object.DeepCopy()
	for _, field := range ignored {
		field.Path.Delete(kept.Object)
	}
	for _, field := range []string{"managedFields", "resourceVersion", "generation"} {
		unstructured.RemoveNestedField(kept.Object, "metadata", field)
	}
	labels, annotations := kept.GetLabels(), kept.GetAnnotations()
	delete(labels, ownership.OwnerLabel)
	delete(annotations, ownership.MarkAnnotation)
	kept.SetLabels(nilIfEmpty(labels))
	kept.SetAnnotations(nilIfEmpty(annotations))
	return kept.Object
}

// nilIfEmpty returns nil for an empty map, which removes the field.
func nilIfEmpty(entries map[string]string) map[string]string {
	if len(entries) == 0 {
		return nil
	}
	return entries
}

// adopt makes an object ours, and alone ours in what we apply: a field that is removed in the mailbox later must
// disappear, though who made the object holds it too. What else it holds is left to it.
func (c *Controller) adopt(ctx context.Context, current targetCopy, object *unstructured.Unstructured, desired *transform.Desired) error {
	if desired.Mark.Policy == ownership.PolicyCreateOnly {
		mark := desired.Mark
		mark.Hash = "" // nothing was applied
		return c.editTarget(ctx, current, object.GetUID(), targets.MetadataPatch{
			SetLabels:         map[string]string{ownership.OwnerLabel: c.Owner.LabelValue()},
			SetAnnotations:    map[string]string{ownership.MarkAnnotation: c.Owner.Seal(mark), ownership.OverwriteAnnotation: "false"},
			RemoveAnnotations: kubeStellarMarks(object),
		})
	}
	// First the others yield, then the object is marked: should the hub end in between, it begins anew.
	dryRun, err := c.Connection.DryRunApply(ctx, current.target.GroupVersionResource, desired.Object, object.GetUID())
	if err != nil {
		return asImmutableError(err)
	}
	if entries, shared := ownership.TakeOwnership(dryRun.GetManagedFields(), c.fieldManager); shared {
		edits := targets.MetadataPatch{ManagedFields: entries, ResourceVersion: object.GetResourceVersion()}
		if _, err := c.Connection.PatchMetadata(ctx, current.target.GroupVersionResource, current.key, object.GetUID(), edits); err != nil {
			return fmt.Errorf("cannot become the only owner of the fields: %w", err)
		}
	}
	if err := c.applyInPlace(ctx, current, desired, object.GetUID()); err != nil {
		return err
	}
	if marks := kubeStellarMarks(object); len(marks) > 0 {
		return c.editTarget(ctx, current, object.GetUID(), targets.MetadataPatch{RemoveAnnotations: marks})
	}
	return nil
}

// kubeStellarMarks returns the marks of KubeStellar's syncer on an object. With them it would go on to delete the object.
func kubeStellarMarks(object *unstructured.Unstructured) []string {
	if _, ok := object.GetAnnotations()[ownership.KubeStellarDownsynced]; ok {
		return []string{ownership.KubeStellarDownsynced}
	}
	return nil
}
