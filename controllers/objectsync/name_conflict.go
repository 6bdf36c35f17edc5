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

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/plan/transform"
	"github.com/synchub-dev/synchub/provider/targets/metadatapatch"
)

// resolveConflict handles the target object that has the name: it applies to the object if it is the hub's, adopts it if that is
// allowed, and otherwise returns a conflict error.
func (w *targetWriter) resolveConflict(ctx context.Context, current plan.Copy, desired *transform.Desired, refused error) error {
	object, err := w.objects.Get(ctx, current.API.GroupVersionResource, current.Key)
	if err != nil {
		return fmt.Errorf("the target refused to create the object: %w; and reading it failed: %w", refused, err)
	}
	observed, markErr := w.view.observeObject(object)
	current.Object = object
	if object.GetLabels()[ownership.OwnerLabel] == w.owner.LabelValue() {
		w.view.contradicted(current.Ref(), "")
	}
	switch {
	case markErr == nil && !plan.SameSource(observed.Mark, desired.Mark):
		return &nameTakenError{ref: current.Ref(), reason: "it came from " + describeSource(observed.Mark.Source)}
	case markErr == nil:
		return w.reapplyOwned(ctx, current, desired, observed)
	case isEnsured(w.owner, object, markErr):
		return w.applyInPlace(ctx, current, desired, object.GetUID())
	case desired.ReportsDrift && plan.DecideAdoption(object, markErr, w.adoptionPolicies()...) != plan.NotAdopted:
		return w.reportAdoption(ctx, current, object, desired.AsAdopted())
	}
	allowed, err := w.mayAdopt(ctx, current, object, desired, markErr)
	switch {
	case err != nil:
		return fmt.Errorf("cannot find out whether the object may be adopted: %w", err)
	case !allowed:
		return &nameTakenError{ref: current.Ref(), reason: markErr.Error(), adoptable: ownership.IsAdoptable(markErr), unverified: errors.Is(markErr, ownership.ErrUnverified)}
	default:
		return w.adopt(ctx, current, object, desired.AsAdopted())
	}
}

// reapplyOwned brings an object with the hub's mark in sync.
func (w *targetWriter) reapplyOwned(ctx context.Context, current plan.Copy, desired *transform.Desired, observed *plan.TargetObject) error {
	switch {
	case desired.Mark.Policy == ownership.PolicyCreateOnly:
		return w.updateMark(ctx, current, desired, observed)
	case desired.ReportsDrift && observed.Mark.Hash == desired.Mark.Hash && !observed.HasOwnerLabel:
		// An apply would also take back what other clients have changed.
		return w.patchMetadata(ctx, current, observed.UID, metadatapatch.Patch{SetLabels: map[string]string{ownership.OwnerLabel: w.owner.LabelValue()}})
	case observed.Mark.Adopted:
		return w.apply(ctx, current, desired.AsAdopted(), observed.UID)
	default:
		return w.apply(ctx, current, desired, observed.UID)
	}
}

// isEnsured reports whether an unmarked object is a namespace that this hub created for its contents, or an object that this hub
// released.
func isEnsured(owner ownership.Owner, object *unstructured.Unstructured, markErr error) bool {
	value, ok := plan.Annotation(object, ownership.EnsuredAnnotation)
	return ok && errors.Is(markErr, ownership.ErrUnmarked) && owner.HasEnsured(value, transform.SelfOf(object))
}
