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
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/synchub-dev/synchub/controllers/internal/writes"
	"github.com/synchub-dev/synchub/controllers/plan"
	"github.com/synchub-dev/synchub/provider/requestclass"
)

// HasFinalizer reports whether the hub's finalizer is on a mailbox object.
func HasFinalizer(source *unstructured.Unstructured) bool {
	return source != nil && controllerutil.ContainsFinalizer(source, plan.Finalizer)
}

// withoutFinalizer returns the other finalizers of an object.
func withoutFinalizer(source *unstructured.Unstructured) []string {
	return slices.DeleteFunc(slices.Clone(source.GetFinalizers()), func(finalizer string) bool { return finalizer == plan.Finalizer })
}

// RemoveFinalizer removes the finalizer from a mailbox object that no controller reconciles any more.
func RemoveFinalizer(ctx context.Context, client dynamic.ResourceInterface, source *unstructured.Unstructured) error {
	patch, err := writes.FinalizersPatch(source, withoutFinalizer(source))
	if err != nil {
		return err
	}
	_, err = client.Patch(ctx, source.GetName(), patch.Type, patch.Data, metav1.PatchOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot take the finalizer %s off %s %s: %w", plan.Finalizer, source.GetKind(), source.GetName(), err)
	}
	return nil
}

// configureFinalizer sets the finalizer on an object that is about to be downsynced, or removes it if the PublishedResource no
// longer requires it.
func (w *mailboxWriter) configureFinalizer(ctx context.Context, key types.NamespacedName, source *unstructured.Unstructured) error {
	switch {
	case w.resource.WaitForTarget && !HasFinalizer(source):
		return w.setFinalizers(ctx, key, source, append(slices.Clone(source.GetFinalizers()), plan.Finalizer))
	case !w.resource.WaitForTarget:
		return w.removeFinalizer(ctx, key, source)
	default:
		return nil
	}
}

// removeFinalizer removes the finalizer from an object whose copies are gone.
func (w *mailboxWriter) removeFinalizer(ctx context.Context, key types.NamespacedName, source *unstructured.Unstructured) error {
	if !HasFinalizer(source) {
		return nil
	}
	return w.setFinalizers(ctx, key, source, withoutFinalizer(source))
}

// setFinalizers replaces the finalizers of a mailbox object, unless it has changed since the pass observed it.
func (w *mailboxWriter) setFinalizers(ctx context.Context, key types.NamespacedName, source *unstructured.Unstructured, finalizers []string) error {
	if err := w.writer.SetFinalizers(requestclass.With(ctx, requestclass.Extra), key, source, finalizers); err != nil {
		return fmt.Errorf("%w: cannot change the finalizers: %w", errMailboxRefused, err)
	}
	return nil
}
