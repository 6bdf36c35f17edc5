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
	"github.com/synchub-dev/synchub/controllers/sync"
)

// Finalizer keeps a PublishedResource whose objects in mailboxes wait for their targets until none of them does: without
// it nobody would let them go.
const Finalizer = "synchub.dev/published"

// leaves tells whether a PublishedResource is not in force any more.
func leaves(resource *synchubv1alpha1.PublishedResource) bool {
	return resource.DeletionTimestamp != nil && !controllerutil.ContainsFinalizer(resource, Finalizer)
}

// isLeaving tells whether a PublishedResource is going, and is still needed to let objects of mailboxes go.
func (c *candidate) isLeaving() bool { return c.published.DeletionTimestamp != nil }

// leave makes of a candidate one that only lets objects of mailboxes go.
func (c *candidate) leave() {
	c.synced, c.flaw = nil, nil
	if c.api != nil && c.absent == nil {
		c.synced = &sync.Resource{
			PublishedResource: c.published.Name, GroupVersionResource: c.api.GroupVersionResource, Kind: c.api.Kind,
			Namespaced: c.api.Namespaced, Exported: c.api.Exported, Leaving: true,
		}
	}
}

// holdsNothing tells whether no object waits because of a candidate: mailboxes never had its API, or have it from another.
func (c *candidate) holdsNothing() bool {
	return c.published.Status.SchemaName == "" || c.absent != nil && c.absent.reason == ReasonDuplicate
}

// guard puts the finalizer on a PublishedResource whose objects wait for their targets, and takes it off one that goes and
// for which none waits any more.
func (c *Controller) guard(ctx context.Context, candidate *candidate) error {
	resource := candidate.published
	has := controllerutil.ContainsFinalizer(resource, Finalizer)
	changed := resource.DeepCopy()
	switch {
	case !candidate.isLeaving() && !has && candidate.synced != nil && candidate.synced.Wait:
		controllerutil.AddFinalizer(changed, Finalizer)
	case candidate.isLeaving() && (candidate.holdsNothing() || c.Sync.HasLeft(candidate.group)):
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
