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

package scenario

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
)

// observedObject is an object of a watch event.
type observedObject struct {
	at     time.Time
	object *unstructured.Unstructured
}

// watcher watches the objects of one namespace.
type watcher struct {
	events chan observedObject
	stream watch.Interface
}

func newWatcher(ctx context.Context, client dynamic.Interface, resource schema.GroupVersionResource, namespace string) (*watcher, error) {
	stream, err := client.Resource(resource).Namespace(namespace).Watch(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("watch %s of %s: %w", resource.Resource, namespace, err)
	}
	w := &watcher{events: make(chan observedObject, 100), stream: stream}
	go func() {
		defer close(w.events)
		for event := range stream.ResultChan() {
			if object, ok := event.Object.(*unstructured.Unstructured); ok {
				w.events <- observedObject{time.Now(), object}
			}
		}
	}()
	return w, nil
}

// until returns the time of the first event whose object satisfies the condition.
func (w *watcher) until(ctx context.Context, is func(*unstructured.Unstructured) bool) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		select {
		case <-ctx.Done():
			return time.Time{}, fmt.Errorf("it did not arrive: %w", ctx.Err())
		case event, open := <-w.events:
			if !open {
				return time.Time{}, fmt.Errorf("the watch has ended")
			}
			if is(event.object) {
				return event.at, nil
			}
		}
	}
}
