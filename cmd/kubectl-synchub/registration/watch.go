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

package registration

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	toolswatch "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// WatchObject calls done with each state of a cluster-scoped object, or with nil after its deletion, until done returns
// true or an error, or ctx ends. The object is found by its name, so its states may belong to a later object. newList
// returns an empty list of the kind.
func WatchObject[T client.Object](ctx context.Context, workspace client.WithWatch, object T, newList func() client.ObjectList, done func(T) (bool, error)) error {
	only := &client.ListOptions{FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, object.GetName())}
	source := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			list := newList()
			return list, workspace.List(ctx, list, only, &client.ListOptions{Raw: &options})
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return workspace.Watch(ctx, newList(), only, &client.ListOptions{Raw: &options})
		},
	}
	var none T
	_, err := toolswatch.UntilWithSync(ctx, source, object.DeepCopyObject(), func(store cache.Store) (bool, error) {
		if len(store.List()) == 0 {
			return done(none)
		}
		return false, nil
	}, func(event watch.Event) (bool, error) {
		current, ok := event.Object.(T)
		if !ok {
			return false, apierrors.FromObject(event.Object)
		}
		if event.Type == watch.Deleted {
			current = none
		}
		return done(current)
	})
	return err
}
