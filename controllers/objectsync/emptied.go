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
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/plan/transform"
	"github.com/synchub-dev/synchub/provider/requestclass"
)

// applyEmptying applies to the object of the UID. If that leaves nothing in a map or list of a custom resource, a patch empties the map
// first: many API servers would replace it by null. See docs/design/0036-emptied-maps.md.
func (w *targetWriter) applyEmptying(ctx context.Context, current plan.Copy, desired *transform.Desired, uid types.UID) (*unstructured.Unstructured, error) {
	empties, err := ownership.Empties(desired.Object.Object, w.appliedFields(current))
	if err != nil {
		return nil, err
	}
	if empties && !transform.IsBuiltIn(current.API.Group) {
		return w.emptyAndApply(ctx, current, desired, uid, nil)
	}
	applied, err := w.applyMigratingVersion(ctx, current, desired, uid)
	if !isNullRefused(err) {
		return applied, err
	}
	return w.emptyAndApply(requestclass.With(ctx, requestclass.Extra), current, desired, uid, err)
}

// emptyAndApply empties maps and lists of the object, and applies to it. refused is the refusal of an apply that was tried before, or nil.
func (w *targetWriter) emptyAndApply(ctx context.Context, current plan.Copy, desired *transform.Desired, uid types.UID, refused error) (*unstructured.Unstructured, error) {
	extra := requestclass.With(ctx, requestclass.Extra)
	emptied, patchErr := w.empty(extra, current, desired, uid)
	switch {
	case patchErr != nil && !isRefused(patchErr):
		return nil, patchErr
	case patchErr == nil && !emptied && refused != nil:
		return nil, refused
	}
	applied, err := w.applyMigratingVersion(ctx, current, desired, uid)
	switch {
	case patchErr == nil:
		return applied, err
	case err != nil:
		// The API server's error is about a null that no user wrote. The refused patch contains the cause.
		return nil, patchErr
	default:
		// The apply left a null or no field. A second apply can set the empty map there.
		return w.applyMigratingVersion(extra, current, desired, uid)
	}
}

// empty empties the maps and lists of the object in which an apply would leave nothing. It returns false if there are none.
func (w *targetWriter) empty(ctx context.Context, current plan.Copy, desired *transform.Desired, uid types.UID) (bool, error) {
	object, err := w.objects.Get(ctx, current.API.GroupVersionResource, current.Key)
	if err != nil {
		return false, err
	}
	fields := ownership.EmptiedFields(object, desired.Object.Object, w.fieldManager)
	if object.GetUID() != uid || len(fields) == 0 {
		return false, nil
	}
	err = w.objects.ReplaceFields(ctx, current.API.GroupVersionResource, object, fields)
	if apierrors.IsConflict(err) {
		return false, fmt.Errorf("%w: %w", errOutdated, err)
	}
	return err == nil, err
}

// isRefused reports whether the target refused the content of a write to the object of the UID.
func isRefused(err error) bool {
	return (apierrors.IsInvalid(err) || isAdmissionDenied(err)) && !isOtherUID(err)
}

// isNullRefused reports whether the target refused a null, or the lack of a field.
func isNullRefused(err error) bool {
	return !isAdmissionDenied(err) && slices.ContainsFunc(invalidCauses(err), func(cause metav1.StatusCause) bool {
		return cause.Type == metav1.CauseTypeFieldValueRequired || strings.Contains(cause.Message, `"null"`)
	})
}
