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
	"k8s.io/client-go/dynamic"

	"github.com/synchub-dev/synchub/controllers/internal/writes"
	"github.com/synchub-dev/synchub/controllers/plan"
)

// HasFinalizer reports whether the hub's finalizer is on a mailbox object.
func HasFinalizer(source *unstructured.Unstructured) bool {
	return source != nil && slices.Contains(source.GetFinalizers(), plan.Finalizer)
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
