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

package targets

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
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/csaupgrade"
	"k8s.io/client-go/util/retry"
)

var namespacesResource = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

// ErrAlreadyExists means that an object of the name is there already; nothing was written.
var ErrAlreadyExists = errors.New("an object of this name exists")

// Create creates the object unless one of its name exists: then the error wraps [ErrAlreadyExists], and nothing was written.
// A missing namespace is reported as the API server does, by a NotFound error.
func (c *Connection) Create(ctx context.Context, resource schema.GroupVersionResource, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	ctx, done := withTimeout(ctx, requestTimeout)
	defer done()
	byApply, err := c.supportsCreateByApply()
	if err != nil {
		return nil, err
	}
	client := c.resourceClient(resource, object.GetNamespace())
	if !byApply {
		return c.createByPost(ctx, client, object)
	}
	fenced := withMetadata(object, "resourceVersion", impossibleResourceVersion)
	created, err := client.Apply(ctx, object.GetName(), fenced, metav1.ApplyOptions{FieldManager: c.fieldManager, Force: true})
	if apierrors.IsConflict(err) {
		return nil, fmt.Errorf("%w: %w", ErrAlreadyExists, err)
	}
	return created, err
}

// createByPost is for targets that do not create by apply. A POST records our fields as an update's, and an apply would
// then never remove one of them; so they are turned into an apply's at once.
func (c *Connection) createByPost(ctx context.Context, client dynamic.ResourceInterface, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	created, err := client.Create(ctx, object, metav1.CreateOptions{FieldManager: c.fieldManager})
	if apierrors.IsAlreadyExists(err) {
		return nil, fmt.Errorf("%w: %w", ErrAlreadyExists, err)
	}
	if err != nil {
		return nil, err
	}
	current := created
	err = retry.RetryOnConflict(retry.DefaultRetry, func() error {
		patch, err := csaupgrade.UpgradeManagedFieldsPatch(current, sets.New(c.fieldManager), c.fieldManager)
		if err != nil || len(patch) == 0 {
			return err
		}
		upgraded, conflict := client.Patch(ctx, created.GetName(), types.JSONPatchType, patch, metav1.PatchOptions{FieldManager: c.fieldManager})
		if !apierrors.IsConflict(conflict) {
			current = upgraded
			return conflict
		}
		// Controllers write to new objects at once.
		if current, err = client.Get(ctx, created.GetName(), metav1.GetOptions{}); err != nil {
			return err
		}
		if current.GetUID() != created.GetUID() {
			return fmt.Errorf("%w: it was replaced", ErrAlreadyExists)
		}
		return conflict
	})
	if err != nil {
		return nil, err
	}
	return current, nil
}

// Apply applies the object to the one that has the UID. It fails with a Conflict or Invalid error if that one is gone or
// replaced.
func (c *Connection) Apply(ctx context.Context, resource schema.GroupVersionResource, object *unstructured.Unstructured, uid types.UID) (*unstructured.Unstructured, error) {
	ctx, done := withTimeout(ctx, requestTimeout)
	defer done()
	fenced := withMetadata(object, "uid", string(uid))
	return c.resourceClient(resource, object.GetNamespace()).
		Apply(ctx, object.GetName(), fenced, metav1.ApplyOptions{FieldManager: c.fieldManager, Force: true})
}

// Delete deletes the object that has the UID. That it is gone already is no error.
func (c *Connection) Delete(ctx context.Context, resource schema.GroupVersionResource, key types.NamespacedName, uid types.UID) error {
	ctx, done := withTimeout(ctx, requestTimeout)
	defer done()
	background := metav1.DeletePropagationBackground
	err := c.resourceClient(resource, key.Namespace).Delete(ctx, key.Name, metav1.DeleteOptions{
		Preconditions:     &metav1.Preconditions{UID: &uid},
		PropagationPolicy: &background,
	})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// DryRunApply tells what an [Connection.Apply] would make of the object, and changes nothing.
func (c *Connection) DryRunApply(ctx context.Context, resource schema.GroupVersionResource, object *unstructured.Unstructured, uid types.UID) (*unstructured.Unstructured, error) {
	ctx, done := withTimeout(ctx, requestTimeout)
	defer done()
	fenced := withMetadata(object, "uid", string(uid))
	return c.resourceClient(resource, object.GetNamespace()).Apply(ctx, object.GetName(), fenced, metav1.ApplyOptions{
		FieldManager: c.fieldManager, Force: true, DryRun: []string{metav1.DryRunAll},
	})
}

// DryRunCreate asks the target whether it would accept the object as a new one, and changes nothing. That the name is
// taken is no error: the API server says so only after it has found the object valid.
func (c *Connection) DryRunCreate(ctx context.Context, resource schema.GroupVersionResource, object *unstructured.Unstructured) error {
	ctx, done := withTimeout(ctx, requestTimeout)
	defer done()
	_, err := c.resourceClient(resource, object.GetNamespace()).Create(ctx, object, metav1.CreateOptions{
		FieldManager: c.fieldManager, DryRun: []string{metav1.DryRunAll},
	})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// Get reads an object from the target.
func (c *Connection) Get(ctx context.Context, resource schema.GroupVersionResource, key types.NamespacedName) (*unstructured.Unstructured, error) {
	ctx, done := withTimeout(ctx, requestTimeout)
	defer done()
	return c.resourceClient(resource, key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
}

// EnsureNamespace creates a namespace with the annotations, unless it exists.
func (c *Connection) EnsureNamespace(ctx context.Context, name string, annotations map[string]string) error {
	ctx, done := withTimeout(ctx, requestTimeout)
	defer done()
	namespace := &unstructured.Unstructured{}
	namespace.SetAPIVersion("v1")
	namespace.SetKind("Namespace")
	namespace.SetName(name)
	namespace.SetAnnotations(annotations)
	_, err := c.client.Resource(namespacesResource).Create(ctx, namespace, metav1.CreateOptions{FieldManager: c.fieldManager})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

func (c *Connection) resourceClient(resource schema.GroupVersionResource, namespace string) dynamic.ResourceInterface {
	if namespace == "" {
		return c.client.Resource(resource)
	}
	return c.client.Resource(resource).Namespace(namespace)
}

// withMetadata returns a shallow copy of object with one field of its metadata set.
func withMetadata(object *unstructured.Unstructured, field, value string) *unstructured.Unstructured {
	content := make(map[string]any, len(object.Object))
	maps.Copy(content, object.Object)
	metadata := map[string]any{}
	if original, ok := object.Object["metadata"].(map[string]any); ok {
		maps.Copy(metadata, original)
	}
	metadata[field] = value
	content["metadata"] = metadata
	return &unstructured.Unstructured{Object: content}
}

// maxShownVersion is how much is shown of what a target calls its version.
const maxShownVersion = 64

func (c *Connection) parseVersion(body []byte) (string, error) {
	var info version.Info
	if err := json.Unmarshal(body, &info); err != nil {
		return "", fmt.Errorf("the target's answer is not a version: %w", c.credentials.Error(err))
	}
	return c.credentials.Truncate(info.GitVersion, maxShownVersion), nil
}
