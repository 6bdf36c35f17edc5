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
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/synchub-dev/synchub/controllers/objectsync/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/transform"
	"github.com/synchub-dev/synchub/provider/metrics/requestmetrics"
)

var namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

// errStale says that an object of the mailbox has changed since it was looked at.
var errStale = errors.New("the object in the mailbox has changed meanwhile")

// mailboxClient returns the client for the objects of a namespace in the mailbox. Through it nothing is ever applied: through
// the virtual workspace an apply is evaluated there and stored as an update.
func (c *Controller) mailboxClient(namespace string) (dynamic.ResourceInterface, error) {
	client, ok := c.Mailboxes.Client(c.Mailbox)
	if !ok {
		return nil, fmt.Errorf("%w: it cannot be reached now", errMailboxRefused)
	}
	if namespace == "" {
		return client.Resource(c.Resource.GroupVersionResource), nil
	}
	return client.Resource(c.Resource.GroupVersionResource).Namespace(namespace), nil
}

// createInMailbox creates what an object of the target is in the mailbox. A namespace that is missing there is ensured first.
func (c *Controller) createInMailbox(ctx context.Context, key types.NamespacedName, desired *transform.Desired, object *unstructured.Unstructured) error {
	client, err := c.mailboxClient(key.Namespace)
	if err != nil {
		return err
	}
	toWrite := c.withStatus(desired.Object, object)
	c.mailboxExpectations.writeStarted(key)
	created, err := client.Create(ctx, toWrite, metav1.CreateOptions{FieldManager: c.fieldManager})
	if isMissingNamespace(err, key.Namespace) {
		extra := requestmetrics.WithClass(ctx, requestmetrics.Extra)
		if err := c.ensureMailboxNamespace(extra, key.Namespace); err != nil {
			c.mailboxExpectations.writeFinished(key, nil)
			return err
		}
		created, err = client.Create(extra, toWrite, metav1.CreateOptions{FieldManager: c.fieldManager})
	}
	if apierrors.IsAlreadyExists(err) {
		return c.readConflictInMailbox(requestmetrics.WithClass(ctx, requestmetrics.Extra), client, key)
	}
	return c.recordMailboxWrite(ctx, key, created, desired, object, err)
}

// readConflictInMailbox reads an object that the cache of the mailbox does not show yet, so that it is known whose it is.
func (c *Controller) readConflictInMailbox(ctx context.Context, client dynamic.ResourceInterface, key types.NamespacedName) error {
	object, err := client.Get(ctx, key.Name, metav1.GetOptions{})
	if err != nil {
		c.mailboxExpectations.writeFinished(key, nil)
		return fmt.Errorf("%w: it has the object already, but does not show it: %w", errMailboxRefused, err)
	}
	object.SetManagedFields(nil)
	c.mailboxExpectations.writeFinished(key, object)
	if c.isUpsynced(object) {
		return nil
	}
	return errNameTakenInMailbox
}

func (c *Controller) ensureMailboxNamespace(ctx context.Context, name string) error {
	client, ok := c.Mailboxes.Client(c.Mailbox)
	if !ok {
		return fmt.Errorf("%w: it cannot be reached now", errMailboxRefused)
	}
	namespace := &unstructured.Unstructured{}
	namespace.SetAPIVersion("v1")
	namespace.SetKind("Namespace")
	namespace.SetName(name)
	namespace.SetAnnotations(map[string]string{ownership.EnsuredAnnotation: c.Owner.EnsuredValue(namespaceSelf(name))})
	if _, err := client.Resource(namespaces).Create(ctx, namespace, metav1.CreateOptions{FieldManager: c.fieldManager}); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("%w: cannot create the namespace %s: %w", errMailboxRefused, name, err)
	}
	return nil
}

// updateInMailbox writes the desired object over what the mailbox holds, if that is still as it was seen.
func (c *Controller) updateInMailbox(ctx context.Context, key types.NamespacedName, inMailbox *unstructured.Unstructured, desired *transform.Desired, object *unstructured.Unstructured) error {
	client, err := c.mailboxClient(key.Namespace)
	if err != nil {
		return err
	}
	c.mailboxExpectations.writeStarted(key)
	updated, err := client.Update(ctx, mergeIntoMailboxObject(inMailbox, c.withStatus(desired.Object, object)), metav1.UpdateOptions{FieldManager: c.fieldManager})
	if apierrors.IsConflict(err) {
		err = errStale
	}
	return c.recordMailboxWrite(ctx, key, updated, desired, object, err)
}

// recordMailboxWrite keeps the mailbox's answer until the cache shows it, and goes on with the status.
func (c *Controller) recordMailboxWrite(ctx context.Context, key types.NamespacedName, answer *unstructured.Unstructured, desired *transform.Desired, object *unstructured.Unstructured, err error) error {
	if err != nil {
		c.mailboxExpectations.writeFinished(key, nil)
		return fmt.Errorf("%w: %w", errMailboxRefused, err)
	}
	answer.SetManagedFields(nil)
	c.mailboxExpectations.writeFinished(key, answer)
	c.mailboxExpectations.setDroppedPaths(key, transform.MissingPaths(desired.Object.Object, answer.Object))
	c.OnChange()
	_, err = c.writeUpsyncedStatus(ctx, key, answer, object)
	return err
}

// withStatus adds the status where it is part of the object; as a subresource it is written by itself.
func (c *Controller) withStatus(desired, object *unstructured.Unstructured) *unstructured.Unstructured {
	status, ok := object.Object["status"]
	if !ok || c.Resource.StatusSubresource || c.Resource.Native {
		return desired
	}
	with := &unstructured.Unstructured{Object: maps.Clone(desired.Object)}
	with.Object["status"] = status
	return with
}

// mergeIntoMailboxObject returns the held object with the content of the desired one. What belongs to the mailbox stays: identity, owners,
// finalizers, status, and what kcp notes on it.
func mergeIntoMailboxObject(inMailbox, desired *unstructured.Unstructured) *unstructured.Unstructured {
	result := &unstructured.Unstructured{Object: maps.Clone(desired.Object)}
	if _, ok := result.Object["status"]; !ok {
		if status, ok := inMailbox.Object["status"]; ok {
			result.Object["status"] = status
		}
	}
	metadata, _ := inMailbox.DeepCopy().Object["metadata"].(map[string]any)
	result.Object["metadata"] = metadata
	result.SetLabels(withKCPEntries(desired.GetLabels(), inMailbox.GetLabels()))
	result.SetAnnotations(withKCPEntries(desired.GetAnnotations(), inMailbox.GetAnnotations()))
	return result
}

// withKCPEntries adds the entries of kcp to the desired ones.
func withKCPEntries(desired, inMailbox map[string]string) map[string]string {
	all := map[string]string{}
	maps.Copy(all, desired)
	for key, value := range inMailbox {
		if transform.BelongsToKCP(key) {
			all[key] = value
		}
	}
	return all
}

// deleteFromMailbox deletes what came up.
func (c *Controller) deleteFromMailbox(ctx context.Context, key types.NamespacedName, inMailbox *unstructured.Unstructured) error {
	client, err := c.mailboxClient(key.Namespace)
	if err != nil {
		return err
	}
	uid := inMailbox.GetUID()
	c.mailboxExpectations.writeStarted(key)
	if err := client.Delete(ctx, key.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}}); err != nil && !apierrors.IsNotFound(err) {
		c.mailboxExpectations.writeFinished(key, nil)
		return fmt.Errorf("%w: %w", errMailboxRefused, err)
	}
	c.mailboxExpectations.deleteAccepted(key, uid)
	c.forgetSourceDeletion(inMailbox)
	c.OnChange()
	return nil
}

// releaseInMailbox takes the marks off what came up, and leaves it.
func (c *Controller) releaseInMailbox(ctx context.Context, key types.NamespacedName, inMailbox *unstructured.Unstructured) error {
	client, err := c.mailboxClient(key.Namespace)
	if err != nil {
		return err
	}
	annotations := map[string]any{ownership.MarkAnnotation: nil}
	if mark, err := mailboxMark(c.Owner, inMailbox); err == nil && mayReclaim(mark) {
		annotations[ownership.EnsuredAnnotation] = c.Owner.EnsuredValue(mark.Self)
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid":         inMailbox.GetUID(),
		"labels":      map[string]any{ownership.OwnerLabel: nil},
		"annotations": annotations,
	}})
	if err != nil {
		return err
	}
	c.mailboxExpectations.writeStarted(key)
	released, err := client.Patch(ctx, key.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: c.fieldManager})
	if err != nil {
		c.mailboxExpectations.writeFinished(key, nil)
		return fmt.Errorf("%w: %w", errMailboxRefused, err)
	}
	released.SetManagedFields(nil)
	c.mailboxExpectations.writeFinished(key, released)
	c.forgetSourceDeletion(inMailbox)
	c.OnChange()
	return nil
}

func (c *Controller) forgetSourceDeletion(inMailbox *unstructured.Unstructured) {
	if mark, err := mailboxMark(c.Owner, inMailbox); err == nil {
		c.upsyncIndex.forgetDeleted(upsyncSourceRef(mark))
	}
}
