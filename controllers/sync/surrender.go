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

package sync

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/sync/ownership"
	"github.com/synchub-dev/synchub/controllers/sync/path"
	"github.com/synchub-dev/synchub/controllers/sync/transform"
	"github.com/synchub-dev/synchub/provider/requests"
	"github.com/synchub-dev/synchub/provider/targets"
)

// surrender gives up fields that are left to the target from now on and that the hub has applied before: when it was told
// to set them once, or before it was told to ignore them. An apply that only left them out would remove them.
func (c *Controller) surrender(ctx context.Context, here placed, desired *transform.Desired, uid types.UID) error {
	if here.object == nil || len(desired.Ignored) == 0 {
		return nil
	}
	paths := make([]path.Path, 0, len(desired.Ignored))
	for _, field := range desired.Ignored {
		paths = append(paths, field.Path)
	}
	if !ownership.Holds(appliedFields(here.object, c.manager), paths) {
		return nil
	}
	extra := requests.As(ctx, requests.Extra)
	object, err := c.Connection.Get(extra, here.side.GroupVersionResource, here.key)
	if err != nil {
		return fmt.Errorf("cannot give up what is to be ignored: %w", err)
	}
	entries, changed := ownership.Surrender(object.GetManagedFields(), c.manager, paths)
	if !changed {
		return nil
	}
	given := targets.Edits{ManagedFields: entries, ResourceVersion: object.GetResourceVersion()}
	_, err = c.Connection.Edit(extra, here.side.GroupVersionResource, here.key, uid, given)
	if apierrors.IsConflict(err) {
		return errStale
	}
	if err != nil {
		return fmt.Errorf("cannot give up what is to be ignored: %w", err)
	}
	return nil
}
