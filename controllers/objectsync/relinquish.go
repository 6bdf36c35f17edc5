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

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/objectsync/plan"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/fieldpath"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/transform"
	"github.com/synchub-dev/synchub/provider/metrics/requestmetrics"
	"github.com/synchub-dev/synchub/provider/targets"
)

// relinquishFields gives up the ownership of fields that the hub applied before and ignores from now on. An apply without
// those fields would delete them from the object.
func (c *Controller) relinquishFields(ctx context.Context, current plan.Copy, desired *transform.Desired, uid types.UID) error {
	if current.Object == nil || len(desired.IgnoredFields) == 0 {
		return nil
	}
	paths := make([]fieldpath.Path, 0, len(desired.IgnoredFields))
	for _, field := range desired.IgnoredFields {
		paths = append(paths, field.Path)
	}
	applied := plan.AppliedFields(current.Object, c.fieldManager)
	if current.Observed != nil {
		applied = current.Observed.AppliedFields
	}
	if !ownership.OwnsAny(applied, paths) {
		return nil
	}
	extra := requestmetrics.WithClass(ctx, requestmetrics.Extra)
	object, err := c.Connection.Get(extra, current.API.GroupVersionResource, current.Key)
	if err != nil {
		return fmt.Errorf("cannot give up what is to be ignored: %w", err)
	}
	entries, changed := ownership.RelinquishFields(object.GetManagedFields(), c.fieldManager, paths)
	if !changed {
		return nil
	}
	edits := targets.MetadataPatch{ManagedFields: entries, ResourceVersion: object.GetResourceVersion()}
	_, err = c.Connection.PatchMetadata(extra, current.API.GroupVersionResource, current.Key, uid, edits)
	if apierrors.IsConflict(err) {
		return errStale
	}
	if err != nil {
		return fmt.Errorf("cannot give up what is to be ignored: %w", err)
	}
	return nil
}
