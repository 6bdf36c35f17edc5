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
	"cmp"
	"context"
	"fmt"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/plan/transform"
	"github.com/synchub-dev/synchub/provider/targets/metadatapatch"
)

// mayAdopt reports whether the adoption policy of the PublishedResource or the SyncTarget lets the hub take over an object.
func (w *targetWriter) mayAdopt(ctx context.Context, current plan.Copy, object *unstructured.Unstructured, desired *transform.Desired, markErr error) (bool, error) {
	decision := plan.DecideAdoption(object, markErr, w.adoptionPolicies()...)
	if decision != plan.AdoptedIfIdentical {
		return decision == plan.Adopted, nil
	}
	dryRun, err := w.objects.DryRunApply(ctx, current.API.GroupVersionResource, desired.Object, object.GetUID())
	if apierrors.IsInvalid(err) {
		// An object that cannot even become the desired one is not identical to it.
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return apiequality.Semantic.DeepEqual(transform.ComparableContent(dryRun, desired.IgnoredFields), transform.ComparableContent(object, desired.IgnoredFields)), nil
}

// adopt makes the hub the only owner of the fields that it applies: a field that is removed in the mailbox later must
// disappear from the target, although the object's creator applied it too. Other fields stay with their owners.
func (w *targetWriter) adopt(ctx context.Context, current plan.Copy, object *unstructured.Unstructured, desired *transform.Desired) error {
	if desired.Mark.Policy == ownership.PolicyCreateOnly {
		mark := desired.Mark
		mark.Hash = "" // nothing was applied
		return w.patchMark(ctx, current, desired, object.GetUID(), mark, kubeStellarMarks(object))
	}
	// Take the ownership before the mark: if the hub stops in between, the next pass adopts the object again.
	dryRun, err := w.objects.DryRunApply(ctx, current.API.GroupVersionResource, desired.Object, object.GetUID())
	if isNullRefused(err) {
		// The hub applied to the object when the object was its copy.
		if emptied, patchErr := w.empty(ctx, current, desired, object.GetUID()); emptied || patchErr != nil {
			return cmp.Or(patchErr, errOutdated)
		}
	}
	if err != nil {
		return asImmutableError(err)
	}
	if entries, shared := ownership.TakeOwnership(dryRun.GetManagedFields(), w.fieldManager); shared {
		edits := metadatapatch.Patch{ManagedFields: entries, ResourceVersion: object.GetResourceVersion()}
		if _, err := w.objects.PatchMetadata(ctx, current.API.GroupVersionResource, current.Key, object.GetUID(), edits); err != nil {
			return fmt.Errorf("cannot become the only owner of the fields: %w", err)
		}
	}
	if err := w.applyInPlace(ctx, current, desired, object.GetUID()); err != nil {
		return err
	}
	if marks := kubeStellarMarks(object); len(marks) > 0 {
		return w.patchMetadata(ctx, current, object.GetUID(), metadatapatch.Patch{RemoveAnnotations: marks})
	}
	return nil
}

// adoptRestored takes over an object that somebody restored from a backup of a copy. The restore made its user the owner of the
// fields.
func (w *targetWriter) adoptRestored(ctx context.Context, o plan.Operation) error {
	object, err := w.objects.Get(ctx, o.Copy.API.GroupVersionResource, o.Copy.Key)
	switch {
	case apierrors.IsNotFound(err), err == nil && object.GetUID() != o.Copy.Observed.UID:
		return errOutdated
	case err != nil:
		return err
	default:
		return w.adopt(ctx, o.Copy, object, o.Desired)
	}
}

// kubeStellarMarks returns the annotation of KubeStellar's syncer on an object. As long as the object has it, the syncer may
// delete the object.
func kubeStellarMarks(object *unstructured.Unstructured) []string {
	if _, ok := object.GetAnnotations()[ownership.KubeStellarDownsynced]; ok {
		return []string{ownership.KubeStellarDownsynced}
	}
	return nil
}
