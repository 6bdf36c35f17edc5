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
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	toolswatch "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ListWatch returns the source for a watch of the objects of a list's kind.
func ListWatch(workspace client.WithWatch, list client.ObjectList, options ...client.ListOption) *cache.ListWatch {
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, raw metav1.ListOptions) (runtime.Object, error) {
			listed := list.DeepCopyObject().(client.ObjectList)
			return listed, workspace.List(ctx, listed, append(options, &client.ListOptions{Raw: &raw})...)
		},
		WatchFuncWithContext: func(ctx context.Context, raw metav1.ListOptions) (watch.Interface, error) {
			return workspace.Watch(ctx, list.DeepCopyObject().(client.ObjectList), append(options, &client.ListOptions{Raw: &raw})...)
		},
	}
}

// WatchObject calls done with each state of a cluster-scoped object, or with nil after its deletion, until done returns
// true or an error, or ctx ends. The object is found by its name, so its states may belong to a later object.
func WatchObject[T client.Object](ctx context.Context, workspace client.WithWatch, object T, done func(T) (bool, error)) error {
	kind, err := workspace.GroupVersionKindFor(object)
	if err != nil {
		return err
	}
	list, err := workspace.Scheme().New(kind.GroupVersion().WithKind(kind.Kind + "List"))
	if err != nil {
		return err
	}
	source := ListWatch(workspace, list.(client.ObjectList), client.MatchingFields{metav1.ObjectNameField: object.GetName()})
	var none T
	_, err = toolswatch.UntilWithSync(ctx, source, object.DeepCopyObject(), func(store cache.Store) (bool, error) {
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
