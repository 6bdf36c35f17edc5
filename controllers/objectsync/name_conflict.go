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

// reclaim takes back the object that has the name if it is the hub's, adopts it if that is allowed, and else returns a
// conflict.
func (c *Controller) reclaim(ctx context.Context, current plan.Copy, desired *transform.Desired, refused error) error {
	object, err := c.Connection.Get(ctx, current.API.GroupVersionResource, current.Key)
	if err != nil {
		return fmt.Errorf("the target refused to create the object: %w; and reading it failed: %w", refused, err)
	}
	observed, reason := c.observeObject(object)
	current.Object = object
	switch {
	case reason == nil && !plan.SameSource(observed.Mark, desired.Mark):
		return &nameTakenError{ref: current.Ref(), reason: "it came from " + describeSource(observed.Mark.Source)}
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
		return &nameTakenError{ref: current.Ref(), reason: reason.Error(), adoptable: ownership.IsAdoptable(reason), unverified: errors.Is(reason, ownership.ErrUnverified)}
	default:
		return c.adopt(ctx, current, object, desired.AsAdopted())
	}
}

// applyFunc applies to the object of a UID.
type applyFunc func(ctx context.Context, here plan.Copy, desired *transform.Desired, uid types.UID) error

// reapplyOwned brings an object that the hub wrote in sync.
func (c *Controller) reapplyOwned(ctx context.Context, current plan.Copy, desired *transform.Desired, observed *plan.TargetObject, write applyFunc) error {
	switch {
	case desired.Mark.Policy == ownership.PolicyCreateOnly:
		return c.updateMark(ctx, current, desired, observed)
	case observed.Mark.Adopted:
		return write(ctx, current, desired.AsAdopted(), observed.UID)
	default:
		return write(ctx, current, desired, observed.UID)
	}
}

// unsealedMark returns the mark of an object that the hub marked before marks were sealed. Without a seal, the mark counts
// only if its hash is that of the desired object.
func (c *Controller) unsealedMark(object *unstructured.Unstructured, direction ownership.Direction, desired *transform.Desired, reason error) (ownership.Mark, bool) {
	if !errors.Is(reason, ownership.ErrUnsealed) {
		return ownership.Mark{}, false
	}
	text, _ := plan.Annotation(object, ownership.MarkAnnotation)
	mark, proven := c.Owner.VerifyUnsealed(text, transform.SelfOf(object), direction, desired.Mark.Hash)
	return mark, proven && plan.SameSource(mark, desired.Mark)
}

// isEnsured reports whether an unmarked object is a namespace that this hub created for its contents, or an object that it
// released.
func (c *Controller) isEnsured(object *unstructured.Unstructured, reason error) bool {
	value, ok := plan.Annotation(object, ownership.EnsuredAnnotation)
	return ok && errors.Is(reason, ownership.ErrUnmarked) && c.Owner.HasEnsured(value, transform.SelfOf(object))
}

// mayAdopt reports whether the adoption policy of the PublishedResource or the SyncTarget lets the hub take over an object.
// The hub never adopts an object with another hub's mark, or with a mark that cannot be parsed.
func (c *Controller) mayAdopt(ctx context.Context, current plan.Copy, object *unstructured.Unstructured, desired *transform.Desired, reason error) (bool, error) {
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
		dryRun, err := c.Connection.DryRunApply(ctx, current.API.GroupVersionResource, desired.Object, object.GetUID())
		if apierrors.IsInvalid(err) {
			// An object that cannot even become the desired one is not identical to it.
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

// comparableContent returns the content in which two objects must agree to be identical: all but the marks and ignored fields.
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

// adopt makes the hub the only owner of the fields that it applies: a field that is removed in the mailbox later must
// disappear from the target, although the object's creator applied it too. Other fields stay with their owners.
func (c *Controller) adopt(ctx context.Context, current plan.Copy, object *unstructured.Unstructured, desired *transform.Desired) error {
	if desired.Mark.Policy == ownership.PolicyCreateOnly {
		mark := desired.Mark
		mark.Hash = "" // nothing was applied
		return c.editTarget(ctx, current, object.GetUID(), targets.MetadataPatch{
			SetLabels:         map[string]string{ownership.OwnerLabel: c.Owner.LabelValue()},
			SetAnnotations:    map[string]string{ownership.MarkAnnotation: c.Owner.Seal(mark), ownership.OverwriteAnnotation: "false"},
			RemoveAnnotations: kubeStellarMarks(object),
		})
	}
	// Take the ownership before the mark: if the hub ends in between, it begins again.
	dryRun, err := c.Connection.DryRunApply(ctx, current.API.GroupVersionResource, desired.Object, object.GetUID())
	if err != nil {
		return asImmutableError(err)
	}
	if entries, shared := ownership.TakeOwnership(dryRun.GetManagedFields(), c.fieldManager); shared {
		edits := targets.MetadataPatch{ManagedFields: entries, ResourceVersion: object.GetResourceVersion()}
		if _, err := c.Connection.PatchMetadata(ctx, current.API.GroupVersionResource, current.Key, object.GetUID(), edits); err != nil {
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

// kubeStellarMarks returns the annotation of KubeStellar's syncer on an object. With it the syncer would go on to delete the
// object.
func kubeStellarMarks(object *unstructured.Unstructured) []string {
	if _, ok := object.GetAnnotations()[ownership.KubeStellarDownsynced]; ok {
		return []string{ownership.KubeStellarDownsynced}
	}
	return nil
}
