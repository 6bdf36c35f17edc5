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

package writes

import (
	"context"
	"errors"
	"fmt"

	"github.com/kcp-dev/logicalcluster/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/controllers/plan/transform"
	"github.com/synchub-dev/synchub/provider/notfound"
	"github.com/synchub-dev/synchub/provider/requestclass"
)

// Errors of a write, in addition to the responses of kcp.
var (
	// ErrUnreachable means that no request was sent, because no endpoint serves the workspace now. When one does, the objects of
	// the workspace are enqueued again.
	ErrUnreachable = errors.New("the workspace cannot be reached now")
	// ErrOutdated means that nothing was written, because the object has changed since the cache read it. The
	// cache is about to show the newer one.
	ErrOutdated = errors.New("the object has changed since the hub read it")
	// ErrExists means that nothing was created, because an object that the cache does not show yet has the name.
	ErrExists = errors.New("an object of this name exists")
)

// Workspaces are the workspaces of one export, as [mailboxes.Mailboxes].
type Workspaces interface {
	Client(workspace logicalcluster.Name) (client dynamic.Interface, ok bool)
}

// Object names an object of a workspace.
type Object struct {
	Workspace logicalcluster.Name
	Resource  schema.GroupVersionResource
	Name      types.NamespacedName
}

// WorkspaceWriter writes objects to workspaces. The objects have keys of the caller.
type WorkspaceWriter[K comparable] struct {
	Workspaces   Workspaces
	FieldManager string
	// Locate returns the object of a key.
	Locate func(key K) Object
	// Expectations get the responses until the cache shows them; nil if no decision depends on that.
	Expectations *Expectations[K, *unstructured.Unstructured]
}

// Create creates an object, and first its namespace if that is missing: the owner may take that over later. If the object exists, Create
// returns it with [ErrExists].
func (w *WorkspaceWriter[K]) Create(ctx context.Context, key K, desired *unstructured.Unstructured, owner ownership.Owner) (*unstructured.Unstructured, error) {
	exists := false
	object, err := w.write(ctx, key, func(at Object, objects dynamic.ResourceInterface) (*unstructured.Unstructured, error) {
		options := metav1.CreateOptions{FieldManager: w.FieldManager}
		created, err := objects.Create(ctx, desired, options)
		if IsMissingNamespace(err, at.Name.Namespace) {
			extra := requestclass.With(ctx, requestclass.Extra)
			if err = w.ensureNamespace(extra, at, owner); err == nil {
				created, err = objects.Create(extra, desired, options)
			}
		}
		if exists = apierrors.IsAlreadyExists(err); exists {
			// The cache does not show it yet.
			if created, err = objects.Get(requestclass.With(ctx, requestclass.Extra), at.Name.Name, metav1.GetOptions{}); err != nil {
				err = fmt.Errorf("the workspace has the object already, but does not show it: %w", err)
			}
		}
		return created, err
	})
	switch {
	case err != nil:
		return nil, err
	case exists:
		return object, ErrExists
	default:
		w.recordDropped(key, desired, object)
		return object, nil
	}
}

// ensureNamespace creates the namespace of an object, unless it exists. The owner does not own the namespace, but may later take it over.
func (w *WorkspaceWriter[K]) ensureNamespace(ctx context.Context, at Object, owner ownership.Owner) error {
	client, ok := w.Workspaces.Client(at.Workspace)
	if !ok {
		return ErrUnreachable
	}
	name := at.Name.Namespace
	namespace := &unstructured.Unstructured{}
	namespace.SetAPIVersion("v1")
	namespace.SetKind("Namespace")
	namespace.SetName(name)
	namespace.SetAnnotations(map[string]string{ownership.EnsuredAnnotation: owner.EnsuredValue(NamespaceSelf(name))})
	if _, err := client.Resource(namespaces).Create(ctx, namespace, metav1.CreateOptions{FieldManager: w.FieldManager}); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("cannot create the namespace %s: %w", name, err)
	}
	return nil
}

// Update gives an object the content of the desired one, see [Merge]. It returns [ErrOutdated] if the object has changed.
func (w *WorkspaceWriter[K]) Update(ctx context.Context, key K, object, desired *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	updated, err := w.Put(ctx, key, Merge(object, desired))
	if err == nil {
		w.recordDropped(key, desired, updated)
	}
	return updated, err
}

// Put creates an object without a UID, and replaces one with a UID. It returns [ErrOutdated] if such an object exists, or has changed.
func (w *WorkspaceWriter[K]) Put(ctx context.Context, key K, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	return w.write(ctx, key, func(_ Object, objects dynamic.ResourceInterface) (written *unstructured.Unstructured, err error) {
		if object.GetUID() == "" {
			written, err = objects.Create(ctx, object, metav1.CreateOptions{FieldManager: w.FieldManager})
		} else {
			written, err = objects.Update(ctx, object, metav1.UpdateOptions{FieldManager: w.FieldManager})
		}
		return written, asOutdated(err)
	})
}

// Delete deletes an object as it was observed. It returns [ErrOutdated] if another object has the name or the object has changed, and nil
// if no object has the name.
func (w *WorkspaceWriter[K]) Delete(ctx context.Context, key K, observed metav1.Object, propagation *metav1.DeletionPropagation) error {
	at, objects, err := w.begin(key)
	if err != nil {
		return err
	}
	uid, version := observed.GetUID(), observed.GetResourceVersion()
	err = objects.Delete(ctx, at.Name.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version}, PropagationPolicy: propagation,
	})
	if err != nil && !notfound.Proves(err, at.Resource.GroupResource(), at.Name.Name) {
		w.failed(key)
		return asOutdated(err)
	}
	w.expectDeletion(ctx, key, uid)
	return nil
}

// Patch patches an object.
func (w *WorkspaceWriter[K]) Patch(ctx context.Context, key K, patch Patch, subresources ...string) (*unstructured.Unstructured, error) {
	return w.write(ctx, key, func(at Object, objects dynamic.ResourceInterface) (*unstructured.Unstructured, error) {
		return objects.Patch(ctx, at.Name.Name, patch.Type, patch.Data, metav1.PatchOptions{FieldManager: w.FieldManager}, subresources...)
	})
}

// PatchStatus patches the status of an object, which is a subresource or not.
func (w *WorkspaceWriter[K]) PatchStatus(ctx context.Context, key K, patch Patch, isSubresource bool) error {
	var subresources []string
	if isSubresource {
		subresources = append(subresources, "status")
	}
	_, err := w.Patch(ctx, key, patch, subresources...)
	return err
}

// Release removes the hub's mark from an object, which stays. With ensured, the hub may take it over again, see
// [ownership.Owner.EnsuredValue]. An empty text leaves no trace of the hub. Release returns [ErrOutdated] if the object has changed since it
// was observed: the mark may be another one.
func (w *WorkspaceWriter[K]) Release(ctx context.Context, key K, observed metav1.Object, ensured string, keepsLabel bool) error {
	annotations := map[string]any{ownership.MarkAnnotation: nil}
	if ensured != "" {
		annotations[ownership.EnsuredAnnotation] = ensured
	}
	metadata := map[string]any{"uid": observed.GetUID(), "resourceVersion": observed.GetResourceVersion(), "annotations": annotations}
	if !keepsLabel {
		metadata["labels"] = map[string]any{ownership.OwnerLabel: nil}
	}
	patch, err := MergePatch(map[string]any{"metadata": metadata})
	if err != nil {
		return err
	}
	_, err = w.Patch(ctx, key, patch)
	return asOutdated(err)
}

// SetFinalizers replaces the finalizers of an object. It returns [ErrOutdated] if the object has changed. A
// terminating object without finalizers is deleted.
func (w *WorkspaceWriter[K]) SetFinalizers(ctx context.Context, key K, object *unstructured.Unstructured, finalizers []string) error {
	patch, err := FinalizersPatch(object, finalizers)
	if err != nil {
		return err
	}
	patched, err := w.Patch(ctx, key, patch)
	switch {
	case apierrors.IsNotFound(err) && object.GetDeletionTimestamp() != nil:
		return nil
	case err == nil && patched.GetDeletionTimestamp() != nil && len(finalizers) == 0:
		w.expectDeletion(ctx, key, object.GetUID())
	}
	return asOutdated(err)
}

// write makes a write, and expects the cache to show the response.
func (w *WorkspaceWriter[K]) write(ctx context.Context, key K, send func(Object, dynamic.ResourceInterface) (*unstructured.Unstructured, error)) (*unstructured.Unstructured, error) {
	at, objects, err := w.begin(key)
	if err != nil {
		return nil, err
	}
	response, err := send(at, objects)
	if err != nil {
		w.failed(key)
		return nil, err
	}
	response.SetManagedFields(nil)
	if w.Expectations != nil {
		w.Expectations.Written(ctx, key, response)
	}
	return response, nil
}

// begin returns the object of a key and the client for it, and expects a write.
func (w *WorkspaceWriter[K]) begin(key K) (Object, dynamic.ResourceInterface, error) {
	at := w.Locate(key)
	client, ok := w.Workspaces.Client(at.Workspace)
	if !ok {
		return at, nil, ErrUnreachable
	}
	if w.Expectations != nil {
		w.Expectations.Started(key)
	}
	if at.Name.Namespace == "" {
		return at, client.Resource(at.Resource), nil
	}
	return at, client.Resource(at.Resource).Namespace(at.Name.Namespace), nil
}

// failed expects no object after a failed write.
func (w *WorkspaceWriter[K]) failed(key K) {
	if w.Expectations != nil {
		w.Expectations.Finished(key, nil)
	}
}

// expectDeletion expects the cache to show an accepted delete.
func (w *WorkspaceWriter[K]) expectDeletion(ctx context.Context, key K, uid types.UID) {
	if w.Expectations != nil {
		w.Expectations.DeleteAccepted(ctx, key, uid)
	}
}

// recordDropped records the fields of the desired object that the workspace did not keep.
func (w *WorkspaceWriter[K]) recordDropped(key K, desired, written *unstructured.Unstructured) {
	if w.Expectations != nil {
		w.Expectations.SetDroppedPaths(key, transform.MissingPaths(desired.Object, written.Object))
	}
}

// asOutdated wraps the refusal of a write because of another version of the object.
func asOutdated(err error) error {
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("%w: %w", ErrOutdated, err)
	}
	return err
}
