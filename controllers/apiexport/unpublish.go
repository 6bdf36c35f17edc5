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
	"github.com/synchub-dev/synchub/controllers/objectsync"
)

// Finalizer keeps a PublishedResource whose objects in mailboxes wait for their targets until none of them does: without
// it nobody would let them go.
const Finalizer = "synchub.dev/published"

// isUnpublished tells whether a PublishedResource is not in force any more.
func isUnpublished(resource *synchubv1alpha1.PublishedResource) bool {
	return resource.DeletionTimestamp != nil && !controllerutil.ContainsFinalizer(resource, Finalizer)
}

// isUnpublishing tells whether a PublishedResource is going, and is still needed to let objects of mailboxes go.
func (c *resourcePlan) isUnpublishing() bool { return c.published.DeletionTimestamp != nil }

// setUnpublishing makes of a candidate one that only lets objects of mailboxes go.
func (c *resourcePlan) setUnpublishing() {
	c.synced, c.problem = nil, nil
	if c.api != nil && c.notExported == nil {
		c.synced = &objectsync.Resource{
			PublishedResource: c.published.Name, GroupVersionResource: c.api.GroupVersionResource, Kind: c.api.Kind,
			Namespaced: c.api.Namespaced, Exported: c.api.Exported, Unpublishing: true,
		}
	}
}

// hasNoWaitingObjects tells whether no object waits because of a candidate: mailboxes never had its API, or have it from another.
func (c *resourcePlan) hasNoWaitingObjects() bool {
	return c.published.Status.SchemaName == "" || c.notExported != nil && c.notExported.reason == ReasonDuplicate
}

// reconcileFinalizer puts the finalizer on a PublishedResource whose objects wait for their targets, and takes it off one that goes and
// for which none waits any more.
func (c *Controller) reconcileFinalizer(ctx context.Context, candidate *resourcePlan) error {
	resource := candidate.published
	has := controllerutil.ContainsFinalizer(resource, Finalizer)
	changed := resource.DeepCopy()
	switch {
	case !candidate.isUnpublishing() && !has && candidate.synced != nil && candidate.synced.WaitForTarget:
		controllerutil.AddFinalizer(changed, Finalizer)
	case candidate.isUnpublishing() && (candidate.hasNoWaitingObjects() || c.Sync.IsUnpublished(candidate.group)):
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
