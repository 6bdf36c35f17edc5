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

package exportbinding

import (
	"context"
	"errors"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/synchub-dev/synchub/cmd/kubectl-synchub/registration"
)

// Count returns the number of objects of a resource in the workspace.
func (b *Binder) Count(ctx context.Context, resource schema.GroupResource) (int64, error) {
	kind, err := b.Client.RESTMapper().KindFor(resource.WithVersion(""))
	if err != nil {
		return 0, err
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	if err := b.Client.List(ctx, list, client.Limit(1)); err != nil {
		return 0, err
	}
	count := int64(len(list.Items))
	if list.RemainingItemCount != nil {
		count += *list.RemainingItemCount
	}
	return count, nil
}

// Remove deletes an object, unless another one has taken its name. With wait it returns when the object is gone.
func (b *Binder) Remove(ctx context.Context, kind string, object client.Object, wait bool) error {
	what, uid := kind+" "+object.GetName(), object.GetUID()
	if err := b.Writer().Delete(ctx, object.DeepCopyObject().(client.Object), client.Preconditions{UID: &uid}); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cannot delete the %s: %w", what, err)
	}
	if wait && !b.DryRun {
		if err := b.awaitGone(ctx, object, what); err != nil {
			return err
		}
	}
	b.Report(registration.Change{Object: object, Result: registration.Deleted})
	return nil
}

func (b *Binder) awaitGone(ctx context.Context, object client.Object, what string) error {
	waiting, cancel := context.WithTimeout(ctx, b.Timeout)
	defer cancel()
	var finalizers []string
	err := registration.WatchObject(waiting, b.Client, object, func(current client.Object) (bool, error) {
		if current == nil || current.GetUID() != object.GetUID() {
			return true, nil
		}
		finalizers = current.GetFinalizers()
		return false, nil
	})
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(waiting.Err(), context.DeadlineExceeded):
		return fmt.Errorf("the %s is being deleted, but was not gone after %s; it has the finalizers [%s]. Run the command again to continue waiting", what, b.Timeout, strings.Join(finalizers, ", "))
	default:
		return fmt.Errorf("cannot wait until the %s is gone: %w", what, err)
	}
}
