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
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/csaupgrade"
	"k8s.io/client-go/util/retry"

	"github.com/synchub-dev/synchub/provider/notfound"
)

var namespacesResource = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

// ErrAlreadyExists means that an object of this name exists, and nothing was written.
var ErrAlreadyExists = errors.New("an object of this name exists")

// Create creates the object. The error wraps [ErrAlreadyExists] if an object of its name exists; nothing was written then. A
// missing namespace causes a NotFound error.
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
	conditional := withMetadata(object, "resourceVersion", impossibleResourceVersion)
	created, err := client.Apply(ctx, object.GetName(), conditional, metav1.ApplyOptions{FieldManager: c.fieldManager, Force: true})
	if apierrors.IsConflict(err) {
		return nil, fmt.Errorf("%w: %w", ErrAlreadyExists, err)
	}
	return created, err
}

// createByPost is for targets that do not create by apply. A POST records our fields under an Update manager, and a later apply
// could not remove one of them. So createByPost moves them to an Apply manager at once.
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
		// A controller of the target has written to the new object.
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

// Apply changes the object that has the UID with a server-side apply. It fails with a Conflict or Invalid error if that object
// was deleted or replaced.
func (c *Connection) Apply(ctx context.Context, resource schema.GroupVersionResource, object *unstructured.Unstructured, uid types.UID) (*unstructured.Unstructured, error) {
	ctx, done := withTimeout(ctx, requestTimeout)
	defer done()
	conditional := withMetadata(object, "uid", string(uid))
	return c.resourceClient(resource, object.GetNamespace()).
		Apply(ctx, object.GetName(), conditional, metav1.ApplyOptions{FieldManager: c.fieldManager, Force: true})
}

// ReplaceFields gives other values to existing fields of an object that the caller has read, by their JSON pointers. It fails with a
// Conflict, Invalid or NotFound error if the object was changed, replaced or deleted since.
func (c *Connection) ReplaceFields(ctx context.Context, resource schema.GroupVersionResource, read *unstructured.Unstructured, values map[string]any) error {
	values = maps.Clone(values)
	values["/metadata/uid"], values["/metadata/resourceVersion"] = read.GetUID(), read.GetResourceVersion()
	operations := make([]map[string]any, 0, len(values))
	for _, pointer := range slices.Sorted(maps.Keys(values)) {
		operations = append(operations, map[string]any{"op": "replace", "path": pointer, "value": values[pointer]})
	}
	patch, err := json.Marshal(operations)
	if err != nil {
		return err
	}
	ctx, done := withTimeout(ctx, requestTimeout)
	defer done()
	_, err = c.resourceClient(resource, read.GetNamespace()).
		Patch(ctx, read.GetName(), types.JSONPatchType, patch, metav1.PatchOptions{FieldManager: c.fieldManager})
	return err
}

// Delete deletes the object that has the UID, and its dependents in the background. It is no error if the object is gone.
func (c *Connection) Delete(ctx context.Context, resource schema.GroupVersionResource, key types.NamespacedName, uid types.UID) error {
	_, err := c.DeleteExisting(ctx, resource, key, uid, metav1.DeletePropagationBackground)
	return err
}

// DeleteExisting deletes the object that has the UID, with an option for its dependents. It returns false if the object was gone
// already; not every 404 proves that.
func (c *Connection) DeleteExisting(ctx context.Context, resource schema.GroupVersionResource, key types.NamespacedName, uid types.UID, propagation metav1.DeletionPropagation) (existed bool, err error) {
	ctx, done := withTimeout(ctx, requestTimeout)
	defer done()
	err = c.resourceClient(resource, key.Namespace).Delete(ctx, key.Name, metav1.DeleteOptions{
		Preconditions:     &metav1.Preconditions{UID: &uid},
		PropagationPolicy: &propagation,
	})
	if notfound.Proves(err, resource.GroupResource(), key.Name) {
		return false, nil
	}
	return err == nil, err
}

// DryRunApply returns the result that [Connection.Apply] would have, and changes nothing.
func (c *Connection) DryRunApply(ctx context.Context, resource schema.GroupVersionResource, object *unstructured.Unstructured, uid types.UID) (*unstructured.Unstructured, error) {
	ctx, done := withTimeout(ctx, requestTimeout)
	defer done()
	conditional := withMetadata(object, "uid", string(uid))
	return c.resourceClient(resource, object.GetNamespace()).Apply(ctx, object.GetName(), conditional, metav1.ApplyOptions{
		FieldManager: c.fieldManager, Force: true, DryRun: []string{metav1.DryRunAll},
	})
}

// DryRunCreate fails if the target would not accept the object as a new one, and changes nothing. It is no error if the object
// exists: the API server validates an object before it checks its name.
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

// Get gets an object from the target.
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

// withMetadata returns a shallow copy of the object with one field of its metadata set.
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
