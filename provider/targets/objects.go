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
	"sync"

	"golang.org/x/sync/singleflight"
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
	"github.com/synchub-dev/synchub/provider/targets/metadatapatch"
)

var namespacesResource = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

// ErrAlreadyExists means that an object of this name exists, and nothing was written.
var ErrAlreadyExists = errors.New("an object of this name exists")

// Objects reads and writes objects of a target. A write to an existing object has its UID as a precondition.
type Objects struct {
	env          *environment
	client       *client
	health       *HealthMonitor
	namespaces   Namespaces
	fieldManager string

	creationProbes singleflight.Group
	lock           sync.Mutex
	// creation is nil until the first create.
	creation *creationMode
}

// Create creates the object. The error wraps [ErrAlreadyExists] if an object of its name exists; nothing was written then. A
// missing namespace causes a NotFound error.
func (o *Objects) Create(ctx context.Context, resource schema.GroupVersionResource, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	ctx, done := withTimeout(ctx, requestTimeout)
	defer done()
	byApply, err := o.supportsCreateByApply()
	if err != nil {
		return nil, err
	}
	if !byApply {
		return o.createByPost(ctx, o.client.resource(resource, object.GetNamespace()), object)
	}
	created, err := o.apply(ctx, resource, withMetadata(object, "resourceVersion", impossibleResourceVersion))
	if apierrors.IsConflict(err) {
		return nil, fmt.Errorf("%w: %w", ErrAlreadyExists, err)
	}
	return created, err
}

// createByPost is for targets that do not create by apply. A POST records our fields under an Update manager, and a later apply
// could not remove one of them. So createByPost moves them to an Apply manager at once.
func (o *Objects) createByPost(ctx context.Context, client dynamic.ResourceInterface, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	created, err := client.Create(ctx, object, metav1.CreateOptions{FieldManager: o.fieldManager})
	if apierrors.IsAlreadyExists(err) {
		return nil, fmt.Errorf("%w: %w", ErrAlreadyExists, err)
	}
	if err != nil {
		return nil, err
	}
	current := created
	err = retry.RetryOnConflict(retry.DefaultRetry, func() error {
		patch, err := csaupgrade.UpgradeManagedFieldsPatch(current, sets.New(o.fieldManager), o.fieldManager)
		if err != nil || len(patch) == 0 {
			return err
		}
		upgraded, conflict := client.Patch(ctx, created.GetName(), types.JSONPatchType, patch, metav1.PatchOptions{FieldManager: o.fieldManager})
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
func (o *Objects) Apply(ctx context.Context, resource schema.GroupVersionResource, object *unstructured.Unstructured, uid types.UID) (*unstructured.Unstructured, error) {
	ctx, done := withTimeout(ctx, requestTimeout)
	defer done()
	return o.apply(ctx, resource, withMetadata(object, "uid", string(uid)))
}

func (o *Objects) apply(ctx context.Context, resource schema.GroupVersionResource, object *unstructured.Unstructured, dryRun ...string) (*unstructured.Unstructured, error) {
	options := metav1.ApplyOptions{FieldManager: o.fieldManager, Force: true, DryRun: dryRun}
	return o.client.resource(resource, object.GetNamespace()).Apply(ctx, object.GetName(), object, options)
}

// ReplaceFields gives other values to existing fields of an object that the caller has read, by their JSON pointers. It fails with a
// Conflict, Invalid or NotFound error if the object was changed, replaced or deleted since.
func (o *Objects) ReplaceFields(ctx context.Context, resource schema.GroupVersionResource, read *unstructured.Unstructured, values map[string]any) error {
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
	_, err = o.client.resource(resource, read.GetNamespace()).
		Patch(ctx, read.GetName(), types.JSONPatchType, patch, metav1.PatchOptions{FieldManager: o.fieldManager})
	return err
}

// Delete deletes the object that has the UID, and its dependents in the background. It is no error if the object is gone.
func (o *Objects) Delete(ctx context.Context, resource schema.GroupVersionResource, key types.NamespacedName, uid types.UID) error {
	_, err := o.DeleteExisting(ctx, resource, key, uid, metav1.DeletePropagationBackground)
	return err
}

// DeleteExisting deletes the object that has the UID, with an option for its dependents. It returns false if the object was gone
// already; not every 404 proves that.
func (o *Objects) DeleteExisting(ctx context.Context, resource schema.GroupVersionResource, key types.NamespacedName, uid types.UID, propagation metav1.DeletionPropagation) (existed bool, err error) {
	ctx, done := withTimeout(ctx, requestTimeout)
	defer done()
	err = o.client.resource(resource, key.Namespace).Delete(ctx, key.Name, metav1.DeleteOptions{
		Preconditions:     &metav1.Preconditions{UID: &uid},
		PropagationPolicy: &propagation,
	})
	if notfound.Proves(err, resource.GroupResource(), key.Name) {
		return false, nil
	}
	return err == nil, err
}

// DryRunApply returns the result that [Objects.Apply] would have, and changes nothing.
func (o *Objects) DryRunApply(ctx context.Context, resource schema.GroupVersionResource, object *unstructured.Unstructured, uid types.UID) (*unstructured.Unstructured, error) {
	ctx, done := withTimeout(ctx, requestTimeout)
	defer done()
	return o.apply(ctx, resource, withMetadata(object, "uid", string(uid)), metav1.DryRunAll)
}

// DryRunCreate fails if the target would not accept the object as a new one, and changes nothing. It is no error if the object
// exists: the API server validates an object before it checks its name.
func (o *Objects) DryRunCreate(ctx context.Context, resource schema.GroupVersionResource, object *unstructured.Unstructured) error {
	ctx, done := withTimeout(ctx, requestTimeout)
	defer done()
	_, err := o.client.resource(resource, object.GetNamespace()).Create(ctx, object, metav1.CreateOptions{
		FieldManager: o.fieldManager, DryRun: []string{metav1.DryRunAll},
	})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// EnsureNamespace creates a namespace with the labels and annotations as the hub itself, unless it exists. It reports whether it created
// the namespace.
func (o *Objects) EnsureNamespace(ctx context.Context, name string, labels, annotations map[string]string) (created bool, err error) {
	ctx, done := withTimeout(Impersonate(ctx, ""), requestTimeout)
	defer done()
	namespace := &unstructured.Unstructured{}
	namespace.SetAPIVersion("v1")
	namespace.SetKind("Namespace")
	namespace.SetName(name)
	namespace.SetLabels(labels)
	namespace.SetAnnotations(annotations)
	_, err = o.client.objects.Resource(namespacesResource).Create(ctx, namespace, metav1.CreateOptions{FieldManager: o.fieldManager})
	if apierrors.IsAlreadyExists(err) {
		return false, nil
	}
	return err == nil, err
}

// PatchMetadata changes the metadata of the object that has the UID, in one request, and returns the changed object. It fails with
// a NotFound error if the object is gone, and with an Invalid or Conflict error if it was replaced.
func (o *Objects) PatchMetadata(ctx context.Context, resource schema.GroupVersionResource, key types.NamespacedName, uid types.UID, changes metadatapatch.Patch) (*unstructured.Unstructured, error) {
	patch, err := changes.Merge(uid)
	if err != nil {
		return nil, fmt.Errorf("cannot patch %s: %w", key, err)
	}
	ctx, done := withTimeout(ctx, requestTimeout)
	defer done()
	return o.client.resource(resource, key.Namespace).
		Patch(ctx, key.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: o.fieldManager})
}

// RemoveMetadata removes labels and annotations from the object that has the UID. It is no error if the object is gone.
func (o *Objects) RemoveMetadata(ctx context.Context, resource schema.GroupVersionResource, key types.NamespacedName, uid types.UID, labels, annotations []string) error {
	_, err := o.PatchMetadata(ctx, resource, key, uid, metadatapatch.Patch{RemoveLabels: labels, RemoveAnnotations: annotations})
	if notfound.Proves(err, resource.GroupResource(), key.Name) {
		return nil
	}
	return err
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

// Get gets an object from the target.
func (o *Objects) Get(ctx context.Context, resource schema.GroupVersionResource, key types.NamespacedName) (*unstructured.Unstructured, error) {
	ctx, done := withTimeout(ctx, requestTimeout)
	defer done()
	return o.client.resource(resource, key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
}

// ListMetadata returns one page of the metadata of selected objects. An empty namespace means all namespaces, and an empty
// selector all objects. next is empty for the first page, and the continue token of the previous page for all other pages.
func (o *Objects) ListMetadata(ctx context.Context, resource schema.GroupVersionResource, namespace, selector, next string) (*metav1.PartialObjectMetadataList, error) {
	ctx, done := withTimeout(ctx, requestTimeout)
	defer done()
	options := metav1.ListOptions{LabelSelector: selector, Limit: pageSize, Continue: next}
	list, err := listPage(ctx, options, o.client.metadata.Resource(resource).Namespace(namespace).List)
	if err != nil {
		return nil, fmt.Errorf("cannot list %s%s: %w", resource.Resource, inNamespace(namespace), o.client.credentials.Error(err))
	}
	return list, nil
}

// List returns the first objects of a namespace that a selector selects.
func (o *Objects) List(ctx context.Context, resource schema.GroupVersionResource, namespace, selector string, limit int64) ([]unstructured.Unstructured, error) {
	ctx, done := withTimeout(ctx, requestTimeout)
	defer done()
	list, err := o.client.resource(resource, namespace).List(ctx, metav1.ListOptions{LabelSelector: selector, Limit: limit})
	if err != nil {
		return nil, fmt.Errorf("cannot list %s%s: %w", resource.Resource, inNamespace(namespace), err)
	}
	return list.Items, nil
}

// HasNoObjects lists objects on the target, and reports whether the selector selects none in the namespaces. Without namespaces
// it lists the whole cluster.
func (o *Objects) HasNoObjects(ctx context.Context, resource schema.GroupVersionResource, selector string, namespaces ...string) (bool, error) {
	if len(namespaces) == 0 {
		namespaces = allNamespaces
	}
	ctx, done := withTimeout(ctx, requestTimeout)
	defer done()
	for _, namespace := range namespaces {
		list, err := o.client.resource(resource, namespace).List(ctx, metav1.ListOptions{LabelSelector: selector, Limit: 1})
		if err != nil {
			return false, fmt.Errorf("cannot list %s%s: %w", resource.Resource, inNamespace(namespace), err)
		}
		if len(list.Items) > 0 {
			return false, nil
		}
	}
	return true, nil
}

// IsNamespaceMissing reports whether the target has no namespace of this name. It returns false if the request fails.
func (o *Objects) IsNamespaceMissing(ctx context.Context, name string) bool {
	ctx, done := withTimeout(ctx, requestTimeout)
	defer done()
	_, err := o.client.metadata.Resource(namespacesResource).Get(ctx, name, metav1.GetOptions{})
	return notfound.Proves(err, namespacesResource.GroupResource(), name)
}

func inNamespace(namespace string) string {
	if namespace == metav1.NamespaceAll {
		return ""
	}
	return " in the namespace " + namespace
}
