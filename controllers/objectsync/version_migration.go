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
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/objectsync/plan"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/transform"
	"github.com/synchub-dev/synchub/provider/metrics/requestmetrics"
	"github.com/synchub-dev/synchub/provider/targets"
)

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
	ctx = requestmetrics.WithClass(ctx, requestmetrics.Extra)
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
		return nil, errStale
	case failed != nil:
		return nil, fmt.Errorf("%w; and what is held in that version cannot be moved to another: %w", err, failed)
	}
	return c.Connection.Apply(ctx, resource, desired.Object, uid)
}
