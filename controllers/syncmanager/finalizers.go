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

package syncmanager

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/kcp-dev/logicalcluster/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/synchub-dev/synchub/controllers/objectsync"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/provider/mailboxes"
	"github.com/synchub-dev/synchub/provider/requestclass"
	"github.com/synchub-dev/synchub/provider/transport"
)

// finalizerPageSize is how many objects are listed at once to remove finalizers.
const finalizerPageSize = 500

// errMailboxUnreachable means that no client for the mailbox is available yet.
var errMailboxUnreachable = errors.New("the mailbox cannot be reached")

// withFinalizers returns the resources that are about to be unpublished, and whose mailbox objects still have the
// hub's finalizer.
func withFinalizers(all *mailboxes.Mailboxes, mailbox logicalcluster.Name, published []plan.Resource) (found []plan.Resource) {
	for _, resource := range published {
		if !resource.Unpublishing {
			continue
		}
		if objects, _ := all.List(resource.GroupVersionResource, mailbox); slices.ContainsFunc(objects, objectsync.HasFinalizer) {
			found = append(found, resource)
		}
	}
	return found
}

// RemoveFinalizers removes the hub's finalizer from all objects of a mailbox whose target is no longer synced.
// Otherwise the mailbox could not be deleted. Only resources that the hub exports itself have the finalizer.
func (m *Manager) RemoveFinalizers(ctx context.Context, mailbox logicalcluster.Name) error {
	var errs []error
	for _, resource := range m.Published() {
		if resource.Exported {
			errs = append(errs, m.removeFinalizersOf(ctx, mailbox, resource))
		}
	}
	return errors.Join(errs...)
}

func (m *Manager) removeFinalizersOf(ctx context.Context, mailbox logicalcluster.Name, resource plan.Resource) error {
	client, ok := m.Mailboxes.Client(mailbox)
	switch {
	case !ok && m.Mailboxes.HasSynced():
		// No binding connects the mailbox to the hub any more.
		return nil
	case !ok:
		return errMailboxUnreachable
	}
	objects := client.Resource(resource.GroupVersionResource)
	// The cache may be stale, and an object that it lacks would keep its finalizer for ever.
	ctx = requestclass.With(ctx, requestclass.Extra)
	options := metav1.ListOptions{Limit: finalizerPageSize}
	var errs []error
	for {
		list, err := transport.ListPage(ctx, &options, objects.List)
		if apierrors.IsNotFound(err) {
			return errors.Join(errs...)
		}
		if apierrors.IsForbidden(err) && m.Mailboxes.IsKnownNotServed(mailbox, resource.GroupResource()) {
			// A mailbox without the API has no objects of it.
			m.Log.Info("the mailbox does not have the API, so there are no finalizers to remove", "mailbox", mailbox, "resource", resource.GroupResource().String())
			return nil
		}
		if err != nil {
			return errors.Join(append(errs, fmt.Errorf("cannot list %s of the mailbox: %w", resource.GroupResource(), err))...)
		}
		for i := range list.Items {
			object := &list.Items[i]
			if objectsync.HasFinalizer(object) {
				errs = append(errs, objectsync.RemoveFinalizer(ctx, objects.Namespace(object.GetNamespace()), object))
			}
		}
		if options.Continue = list.GetContinue(); options.Continue == "" {
			return errors.Join(errs...)
		}
	}
}
