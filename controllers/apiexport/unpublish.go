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

package apiexport

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/publishedresource"
)

// Finalizer keeps a terminating PublishedResource while mailbox objects carry the hub's finalizer for it: after the
// PublishedResource is gone, no controller would remove those finalizers.
const Finalizer = "synchub.dev/published"

// isUnpublished reports whether a PublishedResource is terminating without our finalizer, so that the plan ignores it.
func isUnpublished(resource *synchubv1alpha1.PublishedResource) bool {
	return resource.DeletionTimestamp != nil && !controllerutil.ContainsFinalizer(resource, Finalizer)
}

// isUnpublishing reports whether the PublishedResource is terminating and the hub still removes finalizers from mailbox
// objects.
func (c *resourcePlan) isUnpublishing() bool { return c.published.DeletionTimestamp != nil }

// setUnpublishing changes the plan so that the hub only removes finalizers from mailbox objects.
func (c *resourcePlan) setUnpublishing() {
	c.synced, c.problem = nil, nil
	if c.api != nil && c.notExported == nil {
		c.synced = new(publishedresource.UnpublishingAPI(c.published.Name, *c.api))
		c.synced.UID = c.published.UID
	}
}

// hasNoWaitingObjects reports whether no mailbox object carries the finalizer for this PublishedResource: mailboxes never
// had its schema, or an older PublishedResource publishes the API.
func (c *resourcePlan) hasNoWaitingObjects() bool {
	return c.published.Status.SchemaName == "" || c.notExported != nil && c.notExported.reason == ReasonDuplicate
}

// reconcileFinalizer adds the finalizer to a PublishedResource whose mailbox objects wait for their targets. It removes the
// finalizer from a terminating one when no object waits any more.
func (c *Controller) reconcileFinalizer(ctx context.Context, candidate *resourcePlan) error {
	resource := candidate.published
	has := controllerutil.ContainsFinalizer(resource, Finalizer)
	changed := resource.DeepCopy()
	switch {
	case !candidate.isUnpublishing() && !has && candidate.synced != nil && candidate.synced.WaitForTarget:
		controllerutil.AddFinalizer(changed, Finalizer)
	case candidate.isUnpublishing() && (candidate.hasNoWaitingObjects() || c.Counter.IsUnpublished(candidate.groupResource)):
		controllerutil.RemoveFinalizer(changed, Finalizer)
	default:
		return nil
	}
	if err := c.Hosting.Patch(ctx, changed, client.MergeFromWithOptions(resource, client.MergeFromWithOptimisticLock{})); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cannot change the finalizers of PublishedResource %s: %w", resource.Name, err)
	}
	resource.Finalizers, resource.ResourceVersion = changed.Finalizers, changed.ResourceVersion
	return nil
}
