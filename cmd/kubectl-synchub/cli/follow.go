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

package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	toolswatch "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Follow calls handle for each change since a list was read, until the context ends. When a watch ends, as each does after some minutes,
// the next one continues from there.
func Follow(ctx context.Context, workspace client.WithWatch, list client.ObjectList, handle func(watch.EventType, client.Object) error, options ...client.ListOption) error {
	empty := list.DeepCopyObject().(client.ObjectList)
	events, err := toolswatch.NewRetryWatcherWithContext(ctx, list.GetResourceVersion(), &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, raw metav1.ListOptions) (watch.Interface, error) {
			return workspace.Watch(ctx, empty, append(slices.Clone(options), &client.ListOptions{Raw: &raw})...)
		},
	})
	if err != nil {
		return fmt.Errorf("cannot watch the objects: %w", err)
	}
	defer events.Stop()
	for event := range events.ResultChan() {
		if event.Type == watch.Error {
			return apierrors.FromObject(event.Object)
		}
		changed, ok := event.Object.(client.Object)
		if !ok {
			continue
		}
		if err := handle(event.Type, changed); err != nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return nil
	}
	return errors.New("the watch has ended; run the command again")
}
