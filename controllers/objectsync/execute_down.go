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

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/objectsync/plan"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/transform"
	"github.com/synchub-dev/synchub/provider/metrics/requestmetrics"
	"github.com/synchub-dev/synchub/provider/targets"
)

// createOnTarget makes the desired object. A namespace that is missing is ensured first. If the name is taken, the object there
// is read once: it may be ours, without its label, or one that may be adopted.
func (c *Controller) createOnTarget(ctx context.Context, current targetCopy, desired *transform.Desired) error {
	if c.isCordoned() {
		return errCordoned
	}
	ref := current.ref()
	c.targetExpectations.writeStarted(ref)
	created, err := c.Connection.Create(ctx, current.target.GroupVersionResource, desired.ForCreate())
	if isMissingNamespace(err, current.key.Namespace) {
		extra := requestmetrics.WithClass(ctx, requestmetrics.Extra)
		if err := c.Connection.EnsureNamespace(extra, current.key.Namespace, map[string]string{ownership.EnsuredAnnotation: c.Owner.EnsuredValue(namespaceSelf(current.key.Namespace))}); err != nil {
			c.targetExpectations.writeFinished(ref, nil)
			return fmt.Errorf("cannot create the namespace %s: %w", current.key.Namespace, err)
		}
		created, err = c.Connection.Create(extra, current.target.GroupVersionResource, desired.ForCreate())
	}
	if errors.Is(err, targets.ErrAlreadyExists) {
		c.targetExpectations.writeFinished(ref, nil)
		return c.reclaim(requestmetrics.WithClass(ctx, requestmetrics.Extra), current, desired, err)
	}
	if err != nil {
		c.targetExpectations.writeFinished(ref, nil)
		return err
	}
	return c.recordTargetWrite(ref, created, desired.Object)
}

// applyToTarget brings an object of ours, which has the UID, in sync. One that cannot be changed is replaced where that is allowed.
func (c *Controller) applyToTarget(ctx context.Context, current targetCopy, desired *transform.Desired, uid types.UID) error {
	err := c.applyInPlace(ctx, current, desired, uid)
	if refused, ok := errors.AsType[*immutableError](err); ok {
		return c.replaceOnTarget(ctx, current, desired, uid, refused)
	}
	return err
}

// applyInPlace applies to the object that has the UID, and never replaces it: it need not be ours yet.
func (c *Controller) applyInPlace(ctx context.Context, current targetCopy, desired *transform.Desired, uid types.UID) error {
	if err := c.relinquishFields(ctx, current, desired, uid); err != nil {
		return err
	}
	ref := current.ref()
	c.targetExpectations.writeStarted(ref)
	applied, err := c.applyMigratingVersion(ctx, current, desired, uid)
	if err != nil {
		c.targetExpectations.writeFinished(ref, nil)
		return asImmutableError(err)
	}
	return c.recordTargetWrite(ref, applied, desired.Object)
}

// replaceOnTarget deletes an object of which a field cannot be changed, so that it is created anew when it is gone. The target
// must first have said that the new one is valid.
func (c *Controller) replaceOnTarget(ctx context.Context, current targetCopy, desired *transform.Desired, uid types.UID, refused *immutableError) error {
	if !c.Resource.Replace || c.Resource.Container {
		return refused
	}
	if c.isCordoned() {
		return fmt.Errorf("%w; it is not replaced: %w", refused, errCordoned)
	}
	ctx = requestmetrics.WithClass(ctx, requestmetrics.Extra)
	if err := c.Connection.DryRunCreate(ctx, current.target.GroupVersionResource, desired.ForCreate()); err != nil {
		return fmt.Errorf("%w; it was not replaced, since the target refuses the new one as well: %w", refused, err)
	}
	return c.deleteFromTarget(ctx, current, uid)
}

// updateMark brings the marks of an object in sync that is to be left alone otherwise. They keep the hash of what was last
// applied.
func (c *Controller) updateMark(ctx context.Context, current targetCopy, desired *transform.Desired, observed *plan.TargetObject) error {
	mark := desired.Mark
	mark.Hash, mark.Adopted = observed.Mark.Hash, observed.Mark.Adopted
	return c.editTarget(ctx, current, observed.UID, targets.MetadataPatch{
		SetLabels:      map[string]string{ownership.OwnerLabel: c.Owner.LabelValue()},
		SetAnnotations: map[string]string{ownership.MarkAnnotation: c.Owner.Seal(mark), ownership.OverwriteAnnotation: "false"},
	})
}

// removeOverwriteAnnotation takes off what remark said on an object that is not to be left alone any more: an apply without the annotation does
// not remove it, since it was not applied.
func (c *Controller) removeOverwriteAnnotation(ctx context.Context, current targetCopy, desired *transform.Desired) error {
	if _, ok := desired.Object.GetAnnotations()[ownership.OverwriteAnnotation]; ok {
		return nil
	}
	extra := requestmetrics.WithClass(ctx, requestmetrics.Extra)
	return c.Connection.RemoveMetadata(extra, current.target.GroupVersionResource, current.key, current.observed.UID, nil, []string{ownership.OverwriteAnnotation})
}

func (c *Controller) editTarget(ctx context.Context, current targetCopy, uid types.UID, edits targets.MetadataPatch) error {
	ref := current.ref()
	c.targetExpectations.writeStarted(ref)
	edited, err := c.Connection.PatchMetadata(ctx, current.target.GroupVersionResource, current.key, uid, edits)
	if err != nil {
		c.targetExpectations.writeFinished(ref, nil)
		return err
	}
	c.targetExpectations.writeFinished(ref, c.strippedObject(edited))
	return nil
}

// recordTargetWrite keeps the target's answer until the cache shows it, and notes which of the desired paths the target did not
// keep, so that they are not taken for drift for ever.
func (c *Controller) recordTargetWrite(ref targetRef, answer, desired *unstructured.Unstructured) error {
	kept := c.strippedObject(answer)
	c.targetExpectations.writeFinished(ref, kept)
	observed, err := c.observeObject(kept)
	if err != nil {
		return fmt.Errorf("the target did not keep the hub's mark: %w", err)
	}
	dropped, err := ownership.UnownedPaths(desired.Object, observed.AppliedFields)
	if err != nil {
		return err
	}
	c.targetExpectations.setDroppedPaths(ref, dropped)
	return nil
}

func (c *Controller) deleteFromTarget(ctx context.Context, current targetCopy, uid types.UID) error {
	ref := current.ref()
	c.targetExpectations.writeStarted(ref)
	if err := c.Connection.Delete(ctx, current.target.GroupVersionResource, current.key, uid); err != nil {
		c.targetExpectations.writeFinished(ref, nil)
		return err
	}
	c.targetExpectations.deleteAccepted(ref, uid)
	return nil
}

// releaseOnTarget takes the marks off an object, which stays.
func (c *Controller) releaseOnTarget(ctx context.Context, current targetCopy) error {
	ref, observed := current.ref(), current.observed
	labels, annotations := c.Owner.MarkKeys(current.object.GetLabels(), current.object.GetAnnotations())
	edits := targets.MetadataPatch{RemoveLabels: labels, RemoveAnnotations: annotations}
	if mayReclaim(observed.Mark) {
		edits.SetAnnotations = map[string]string{ownership.EnsuredAnnotation: c.Owner.EnsuredValue(observed.Mark.Self)}
	}
	c.targetExpectations.writeStarted(ref)
	if _, err := c.Connection.PatchMetadata(ctx, current.target.GroupVersionResource, current.key, observed.UID, edits); err != nil && !apierrors.IsNotFound(err) {
		c.targetExpectations.writeFinished(ref, nil)
		return err
	}
	c.targetExpectations.deleteAccepted(ref, observed.UID)
	return nil
}

// mayReclaim tells whether an object that is let go remains one that the hub made: it was to be deleted, and stays only because
// its end would be that of others. When its source is made again, it is taken back. Of what was to be left nothing of the hub
// remains, nor of what others had made: what let the hub adopt that lets it again.
func mayReclaim(mark ownership.Mark) bool {
	return mark.Policy == ownership.PolicyDelete && !mark.Adopted
}

// namespaceSelf is how marks name a namespace.
func namespaceSelf(name string) ownership.Self { return ownership.Self{Kind: "Namespace", Name: name} }

// isMissingNamespace tells whether a create failed because its namespace does not exist.
func isMissingNamespace(err error, namespace string) bool {
	var status apierrors.APIStatus
	if !apierrors.IsNotFound(err) || !errors.As(err, &status) {
		return false
	}
	details := status.Status().Details
	return details != nil && details.Kind == "namespaces" && details.Name == namespace
}
