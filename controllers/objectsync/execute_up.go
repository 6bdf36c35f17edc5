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
	"maps"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/synchub-dev/synchub/controllers/internal/mailboxwrite"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/transform"
	"github.com/synchub-dev/synchub/provider/metrics/requestmetrics"
	"github.com/synchub-dev/synchub/provider/notfound"
)

var namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

// errOutdated means that the object to write has changed since the hub read it, on either side.
var errOutdated = errors.New("the object has changed meanwhile")

// mailboxClient returns the client for a namespace of the mailbox.
func (c *Controller) mailboxClient(namespace string) (dynamic.ResourceInterface, error) {
	client, ok := c.Mailboxes.Client(c.Mailbox)
	if !ok {
		return nil, fmt.Errorf("%w: it cannot be reached now", errMailboxRefused)
	}
	return mailboxwrite.Objects(client, c.Resource.GroupVersionResource, namespace), nil
}

// createInMailbox creates the desired object, and first its namespace if that is missing.
func (c *Controller) createInMailbox(ctx context.Context, s *plan.Snapshot, desired *transform.Desired) error {
	key := s.Key
	client, err := c.mailboxClient(key.Namespace)
	if err != nil {
		return err
	}
	toWrite := c.withStatus(desired.Object, s.Up.Object)
	c.states.mailboxExpectations.Started(key)
	created, err := client.Create(ctx, toWrite, metav1.CreateOptions{FieldManager: c.fieldManager})
	if mailboxwrite.IsMissingNamespace(err, key.Namespace) {
		extra := requestmetrics.WithClass(ctx, requestmetrics.Extra)
		if err := c.ensureMailboxNamespace(extra, key.Namespace); err != nil {
			c.states.mailboxExpectations.Finished(key, nil)
			return err
		}
		created, err = client.Create(extra, toWrite, metav1.CreateOptions{FieldManager: c.fieldManager})
	}
	if apierrors.IsAlreadyExists(err) {
		return c.readConflictInMailbox(requestmetrics.WithClass(ctx, requestmetrics.Extra), client, key)
	}
	return c.finishMailboxWrite(ctx, s, created, desired, err)
}

// readConflictInMailbox reads the object that has the name and that the cache does not show yet, to find out whose it is.
func (c *Controller) readConflictInMailbox(ctx context.Context, client dynamic.ResourceInterface, key types.NamespacedName) error {
	object, err := client.Get(ctx, key.Name, metav1.GetOptions{})
	if err != nil {
		c.states.mailboxExpectations.Finished(key, nil)
		return fmt.Errorf("%w: it has the object already, but does not show it: %w", errMailboxRefused, err)
	}
	object.SetManagedFields(nil)
	c.states.mailboxExpectations.Finished(key, object)
	if c.isUpsynced(object) {
		// Nobody removed it, if the cache showed that: it had lost the object for another cause.
		c.states.refundRemoval(key)
		return nil
	}
	return errNameTakenInMailbox
}

func (c *Controller) ensureMailboxNamespace(ctx context.Context, name string) error {
	client, ok := c.Mailboxes.Client(c.Mailbox)
	if !ok {
		return fmt.Errorf("%w: it cannot be reached now", errMailboxRefused)
	}
	if err := mailboxwrite.EnsureNamespace(ctx, client, name, c.Owner, c.fieldManager); err != nil {
		return fmt.Errorf("%w: %w", errMailboxRefused, err)
	}
	return nil
}

// updateInMailbox replaces the content of the mailbox object if nobody has changed it since the pass observed it.
func (c *Controller) updateInMailbox(ctx context.Context, s *plan.Snapshot, desired *transform.Desired) error {
	key := s.Key
	client, err := c.mailboxClient(key.Namespace)
	if err != nil {
		return err
	}
	c.states.mailboxExpectations.Started(key)
	updated, err := client.Update(ctx, mailboxwrite.Merge(s.InMailbox, c.withStatus(desired.Object, s.Up.Object)), metav1.UpdateOptions{FieldManager: c.fieldManager})
	if apierrors.IsConflict(err) {
		err = errOutdated
	}
	return c.finishMailboxWrite(ctx, s, updated, desired, err)
}

// finishMailboxWrite uses the response until the cache shows it, and writes the status.
func (c *Controller) finishMailboxWrite(ctx context.Context, s *plan.Snapshot, answer *unstructured.Unstructured, desired *transform.Desired, err error) error {
	key := s.Key
	if err != nil {
		c.states.mailboxExpectations.Finished(key, nil)
		return fmt.Errorf("%w: %w", errMailboxRefused, err)
	}
	answer.SetManagedFields(nil)
	c.expectInMailbox(ctx, key, answer)
	c.states.mailboxExpectations.SetDroppedPaths(key, transform.MissingPaths(desired.Object.Object, answer.Object))
	c.OnChange()
	_, err = c.writeUpsyncedStatus(ctx, s, answer)
	return err
}

// withStatus adds the status if it is part of the object. A status subresource needs its own request.
func (c *Controller) withStatus(desired, object *unstructured.Unstructured) *unstructured.Unstructured {
	status, ok := object.Object["status"]
	if !ok || c.Resource.StatusSubresource || c.Resource.Native {
		return desired
	}
	with := &unstructured.Unstructured{Object: maps.Clone(desired.Object)}
	with.Object["status"] = status
	return with
}

// deleteFromMailbox deletes an upsynced object.
func (c *Controller) deleteFromMailbox(ctx context.Context, key types.NamespacedName, inMailbox *unstructured.Unstructured) error {
	client, err := c.mailboxClient(key.Namespace)
	if err != nil {
		return err
	}
	uid := inMailbox.GetUID()
	c.states.mailboxExpectations.Started(key)
	if err := client.Delete(ctx, key.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}}); err != nil && !notfound.Proves(err, c.Resource.GroupResource(), key.Name) {
		c.states.mailboxExpectations.Finished(key, nil)
		return fmt.Errorf("%w: %w", errMailboxRefused, err)
	}
	c.expectDeletionInMailbox(ctx, key, uid)
	c.forgetSourceDeletion(inMailbox)
	c.OnChange()
	return nil
}

// releaseInMailbox removes the hub's marks from an upsynced object, which stays.
func (c *Controller) releaseInMailbox(ctx context.Context, key types.NamespacedName, inMailbox *unstructured.Unstructured) error {
	client, err := c.mailboxClient(key.Namespace)
	if err != nil {
		return err
	}
	annotations := map[string]any{ownership.MarkAnnotation: nil}
	if mark, err := plan.MailboxMark(c.Owner, inMailbox); err == nil && mayReclaim(mark) {
		annotations[ownership.EnsuredAnnotation] = c.Owner.EnsuredValue(mark.Self)
	}
	patch, err := mailboxwrite.MergePatch(map[string]any{"metadata": map[string]any{
		"uid":         inMailbox.GetUID(),
		"labels":      map[string]any{ownership.OwnerLabel: nil},
		"annotations": annotations,
	}})
	if err != nil {
		return err
	}
	if _, err := c.patchInMailbox(ctx, client, key, patch); err != nil {
		return fmt.Errorf("%w: %w", errMailboxRefused, err)
	}
	c.forgetSourceDeletion(inMailbox)
	c.OnChange()
	return nil
}

// patchInMailbox patches a mailbox object, and uses the response until the cache shows it.
func (c *Controller) patchInMailbox(ctx context.Context, client dynamic.ResourceInterface, key types.NamespacedName, patch mailboxwrite.Patch, subresources ...string) (*unstructured.Unstructured, error) {
	c.states.mailboxExpectations.Started(key)
	patched, err := client.Patch(ctx, key.Name, patch.Type, patch.Data, metav1.PatchOptions{FieldManager: c.fieldManager}, subresources...)
	if err != nil {
		c.states.mailboxExpectations.Finished(key, nil)
		return nil, err
	}
	patched.SetManagedFields(nil)
	c.expectInMailbox(ctx, key, patched)
	return patched, nil
}

func (c *Controller) forgetSourceDeletion(inMailbox *unstructured.Unstructured) {
	if mark, err := plan.MailboxMark(c.Owner, inMailbox); err == nil {
		c.states.forgetSourceDeleted(upsyncSourceRef(mark))
	}
}

// confirmMissingSource asks the target about an object whose deletion nobody observed: it may have been deleted while the hub
// was away. The answer goes into the snapshot.
func (c *Controller) confirmMissingSource(ctx context.Context, s *plan.Snapshot) {
	u, asked := s.Up, s.Up.Unconfirmed
	u.Unconfirmed = nil
	target := c.targetResourceFor(asked.Resource)
	if target == nil {
		return
	}
	object, err := c.Connection.Get(requestmetrics.WithClass(ctx, requestmetrics.Extra), target.GroupVersionResource, asked.Key)
	switch {
	case err == nil:
		if name, ok := c.upsyncKey(target, s.Matcher, object); ok && name == s.Key {
			// The upsync cache is about to show it.
			return
		}
		if plan.IsNeverUpsynced(c.Owner, object) || c.observer.IsUnrelatedOnTarget(s.Matcher, target.TargetAPI, object) {
			u.State, u.AbsenceVerified = plan.Deselected, true
		}
	case notfound.Proves(err, asked.Resource, asked.Key.Name):
		u.State, u.AbsenceVerified = plan.SourceNotFound, true
	default:
		// An API that is not served says nothing about its objects.
		u.Err = fmt.Errorf("cannot find out whether %s %s is gone from the target: %w", asked.Resource, asked.Key, err)
	}
}

// nameConflict reports that another target object would have the same name in the mailbox.
func (c *Controller) nameConflict(u *plan.UpSnapshot) error {
	if u.Conflicting == nil {
		return nil
	}
	return fmt.Errorf("%w: %s %s of the target would have the same name", errNameTakenInMailbox, u.Conflicting.Resource, u.Conflicting.Key)
}
