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

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/controllers/plan/fieldpath"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/plan/transform"
	"github.com/synchub-dev/synchub/provider/requestclass"
	"github.com/synchub-dev/synchub/provider/targets/metadatapatch"
)

// appliedFields returns the fields of a copy that the hub applied and still owns.
func (w *targetWriter) appliedFields(current plan.Copy) []byte {
	switch {
	case current.Observed != nil:
		return current.Observed.AppliedFields
	case current.Object != nil:
		return ownership.AppliedFields(current.Object, w.fieldManager)
	default:
		return nil
	}
}

// relinquishFields gives up the ownership of fields that the hub applied before and ignores from now on. An apply without
// those fields would delete them from the object.
func (w *targetWriter) relinquishFields(ctx context.Context, current plan.Copy, desired *transform.Desired, uid types.UID) error {
	if len(desired.IgnoredFields) == 0 {
		return nil
	}
	paths := make([]fieldpath.Path, 0, len(desired.IgnoredFields))
	for _, field := range desired.IgnoredFields {
		paths = append(paths, field.Path)
	}
	if !ownership.OwnsAny(w.appliedFields(current), paths) {
		return nil
	}
	extra := requestclass.With(ctx, requestclass.Extra)
	object, err := w.objects.Get(extra, current.API.GroupVersionResource, current.Key)
	if err != nil {
		return fmt.Errorf("cannot relinquish ignored fields: %w", err)
	}
	entries, changed := ownership.RelinquishFields(object.GetManagedFields(), w.fieldManager, paths)
	if !changed {
		return nil
	}
	if err := w.replaceManagedFields(extra, current, uid, object, entries); err != nil {
		return fmt.Errorf("cannot relinquish ignored fields: %w", err)
	}
	return nil
}

// replaceManagedFields replaces the managedFields of the object of the given UID, unless the object has changed since it was
// read.
func (w *targetWriter) replaceManagedFields(ctx context.Context, current plan.Copy, uid types.UID, object *unstructured.Unstructured, entries []metav1.ManagedFieldsEntry) error {
	edits := metadatapatch.Patch{ManagedFields: entries, ResourceVersion: object.GetResourceVersion()}
	_, err := w.objects.PatchMetadata(ctx, current.API.GroupVersionResource, current.Key, uid, edits)
	if apierrors.IsConflict(err) {
		return errOutdated
	}
	return err
}

// unknownVersionMessage matches the refusal of an apply to an object whose managedFields name a version that its CRD no longer
// has.
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

// applyMigratingVersion applies to the object of the UID. If managedFields name a version that was removed from the CRD, it moves
// them to the current version and applies again: until then no client can apply to the object.
func (w *targetWriter) applyMigratingVersion(ctx context.Context, current plan.Copy, desired *transform.Desired, uid types.UID) (*unstructured.Unstructured, error) {
	resource := current.API.GroupVersionResource
	applied, err := w.objects.Apply(ctx, resource, desired.Object, uid)
	vanished := removedVersion(err, resource.GroupVersion())
	if vanished == "" {
		return applied, err
	}
	ctx = requestclass.With(ctx, requestclass.Extra)
	object, failed := w.objects.Get(ctx, resource, current.Key)
	if failed != nil {
		return nil, errors.Join(err, failed)
	}
	entries, moved := ownership.MoveAPIVersion(object.GetManagedFields(), vanished, resource.GroupVersion().String())
	if !moved {
		return nil, err
	}
	if failed = w.replaceManagedFields(ctx, current, uid, object, entries); failed != nil {
		return nil, fmt.Errorf("%w; and the managedFields of that version cannot be moved to another: %w", err, failed)
	}
	return w.objects.Apply(ctx, resource, desired.Object, uid)
}
