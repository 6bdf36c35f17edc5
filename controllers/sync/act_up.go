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

	"github.com/synchub-dev/synchub/controllers/sync/ownership"
	"github.com/synchub-dev/synchub/controllers/sync/transform"
	"github.com/synchub-dev/synchub/provider/requests"
)

var namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

// errStale says that an object of the mailbox has changed since it was looked at.
var errStale = errors.New("the object in the mailbox has changed meanwhile")

// mailbox returns the client for the objects of a namespace in the mailbox. Through it nothing is ever applied: through
// the virtual workspace an apply is evaluated there and stored as an update.
func (c *Controller) mailbox(namespace string) (dynamic.ResourceInterface, error) {
	client, ok := c.Mailboxes.Client(c.Mailbox)
	if !ok {
		return nil, fmt.Errorf("%w: it cannot be reached now", errMailbox)
	}
	if namespace == "" {
		return client.Resource(c.Resource.GroupVersionResource), nil
	}
	return client.Resource(c.Resource.GroupVersionResource).Namespace(namespace), nil
}

// raise creates what an object of the target is in the mailbox. A namespace that is missing there is ensured first.
func (c *Controller) raise(ctx context.Context, key types.NamespacedName, desired *transform.Desired, object *unstructured.Unstructured) error {
	client, err := c.mailbox(key.Namespace)
	if err != nil {
		return err
	}
	wanted := c.withStatus(desired.Object, object)
	c.inMailbox.begin(key)
	created, err := client.Create(ctx, wanted, metav1.CreateOptions{FieldManager: c.manager})
	if isMissingNamespace(err, key.Namespace) {
		extra := requests.As(ctx, requests.Extra)
		if err := c.ensureNamespaceAbove(extra, key.Namespace); err != nil {
			c.inMailbox.wrote(key, nil)
			return err
		}
		created, err = client.Create(extra, wanted, metav1.CreateOptions{FieldManager: c.manager})
	}
	if apierrors.IsAlreadyExists(err) {
		return c.lookAbove(requests.As(ctx, requests.Extra), client, key)
	}
	return c.rememberAbove(ctx, key, created, desired, object, err)
}

// lookAbove reads an object that the cache of the mailbox does not show yet, so that it is known whose it is.
func (c *Controller) lookAbove(ctx context.Context, client dynamic.ResourceInterface, key types.NamespacedName) error {
	object, err := client.Get(ctx, key.Name, metav1.GetOptions{})
	if err != nil {
		c.inMailbox.wrote(key, nil)
		return fmt.Errorf("%w: it has the object already, but does not show it: %w", errMailbox, err)
	}
	object.SetManagedFields(nil)
	c.inMailbox.wrote(key, object)
	if c.cameUp(object) {
		return nil
	}
	return errTakenAbove
}

func (c *Controller) ensureNamespaceAbove(ctx context.Context, name string) error {
	client, ok := c.Mailboxes.Client(c.Mailbox)
	if !ok {
		return fmt.Errorf("%w: it cannot be reached now", errMailbox)
	}
	namespace := &unstructured.Unstructured{}
	namespace.SetAPIVersion("v1")
	namespace.SetKind("Namespace")
	namespace.SetName(name)
	namespace.SetAnnotations(map[string]string{ownership.EnsuredAnnotation: c.Owner.EnsuredValue(namespaceOf(name))})
	if _, err := client.Resource(namespaces).Create(ctx, namespace, metav1.CreateOptions{FieldManager: c.manager}); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("%w: cannot create the namespace %s: %w", errMailbox, name, err)
	}
	return nil
}

// update writes the desired object over what the mailbox holds, if that is still as it was seen.
func (c *Controller) update(ctx context.Context, key types.NamespacedName, held *unstructured.Unstructured, desired *transform.Desired, object *unstructured.Unstructured) error {
	client, err := c.mailbox(key.Namespace)
	if err != nil {
		return err
	}
	c.inMailbox.begin(key)
	updated, err := client.Update(ctx, over(held, c.withStatus(desired.Object, object)), metav1.UpdateOptions{FieldManager: c.manager})
	if apierrors.IsConflict(err) {
		err = errStale
	}
	return c.rememberAbove(ctx, key, updated, desired, object, err)
}

// rememberAbove keeps the mailbox's answer until the cache shows it, and goes on with the status.
func (c *Controller) rememberAbove(ctx context.Context, key types.NamespacedName, answer *unstructured.Unstructured, desired *transform.Desired, object *unstructured.Unstructured, err error) error {
	if err != nil {
		c.inMailbox.wrote(key, nil)
		return fmt.Errorf("%w: %w", errMailbox, err)
	}
	answer.SetManagedFields(nil)
	c.inMailbox.wrote(key, answer)
	c.inMailbox.setDropped(key, transform.Missing(desired.Object.Object, answer.Object))
	c.Changed()
	_, err = c.raiseStatus(ctx, key, answer, object)
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

// over returns the held object with the content of the desired one. What belongs to the mailbox stays: identity, owners,
// finalizers, status, and what kcp notes on it.
func over(held, desired *unstructured.Unstructured) *unstructured.Unstructured {
	result := &unstructured.Unstructured{Object: maps.Clone(desired.Object)}
	if _, ok := result.Object["status"]; !ok {
		if status, ok := held.Object["status"]; ok {
			result.Object["status"] = status
		}
	}
	metadata, _ := held.DeepCopy().Object["metadata"].(map[string]any)
	result.Object["metadata"] = metadata
	result.SetLabels(withKCPs(desired.GetLabels(), held.GetLabels()))
	result.SetAnnotations(withKCPs(desired.GetAnnotations(), held.GetAnnotations()))
	return result
}

// withKCPs adds the entries of kcp to the desired ones.
func withKCPs(desired, held map[string]string) map[string]string {
	all := map[string]string{}
	maps.Copy(all, desired)
	for key, value := range held {
		if transform.BelongsToKCP(key) {
			all[key] = value
		}
	}
	return all
}

// lower deletes what came up.
func (c *Controller) lower(ctx context.Context, key types.NamespacedName, held *unstructured.Unstructured) error {
	client, err := c.mailbox(key.Namespace)
	if err != nil {
		return err
	}
	uid := held.GetUID()
	c.inMailbox.begin(key)
	if err := client.Delete(ctx, key.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}}); err != nil && !apierrors.IsNotFound(err) {
		c.inMailbox.wrote(key, nil)
		return fmt.Errorf("%w: %w", errMailbox, err)
	}
	c.inMailbox.deleted(key, uid)
	c.forgetEnd(held)
	c.Changed()
	return nil
}

// letGo takes the marks off what came up, and leaves it.
func (c *Controller) letGo(ctx context.Context, key types.NamespacedName, held *unstructured.Unstructured) error {
	client, err := c.mailbox(key.Namespace)
	if err != nil {
		return err
	}
	annotations := map[string]any{ownership.MarkAnnotation: nil}
	if mark, err := markAbove(c.Owner, held); err == nil && mayReturn(mark) {
		annotations[ownership.EnsuredAnnotation] = c.Owner.EnsuredValue(mark.Self)
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid":         held.GetUID(),
		"labels":      map[string]any{ownership.OwnerLabel: nil},
		"annotations": annotations,
	}})
	if err != nil {
		return err
	}
	c.inMailbox.begin(key)
	released, err := client.Patch(ctx, key.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: c.manager})
	if err != nil {
		c.inMailbox.wrote(key, nil)
		return fmt.Errorf("%w: %w", errMailbox, err)
	}
	released.SetManagedFields(nil)
	c.inMailbox.wrote(key, released)
	c.forgetEnd(held)
	c.Changed()
	return nil
}

func (c *Controller) forgetEnd(held *unstructured.Unstructured) {
	if mark, err := markAbove(c.Owner, held); err == nil {
		c.raised.settled(placeBelow(mark))
	}
}
