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
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// FilteredMetadata returns what the feed has passed over because it was not of interest: name, UID, labels and owners of each.
// It does so only if [FeedOptions.KeepFilteredMetadata] says so.
func (f *FilteredCache) FilteredMetadata() []metav1.ObjectMeta {
	if !f.options.KeepFilteredMetadata {
		return nil
	}
	var all []metav1.ObjectMeta
	for _, informer := range f.informers {
		for _, item := range informer.List() {
			if partial, ok := item.(*metav1.ObjectMeta); ok && f.Get(keyFor(partial)) == nil {
				all = append(all, *partial)
			}
		}
	}
	return all
}

// GetMetadata returns an object as the feed holds it, or what the feed remembers of one that it has passed over, or nil.
func (f *FilteredCache) GetMetadata(key types.NamespacedName) metav1.Object {
	if object := f.Get(key); object != nil {
		return object
	}
	for _, informer := range f.informers {
		item, exists, err := informer.GetByKey(storeKey(key))
		if err != nil || !exists {
			continue
		}
		if shown, ok := item.(metav1.Object); ok {
			return shown
		}
	}
	return nil
}

// Fetch makes the feed hold an object that it has passed over and that has become of interest since. One that is gone
// meanwhile is no error.
func (f *FilteredCache) Fetch(ctx context.Context, key types.NamespacedName) error {
	found, err := f.get(ctx, key)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot read %s from the target: %w", key, err)
	}
	item, err := f.transform(found)
	if err != nil {
		return err
	}
	fetched, interesting := item.(matchingObject)
	if !interesting {
		return nil
	}
	f.handlerLock.Lock()
	defer f.handlerLock.Unlock()
	f.lock.Lock()
	before := f.objects[key]
	// The watch goes on meanwhile: what it has shown counts, unless it is older.
	stale := f.hasNewer(fetched.Unstructured) || before != nil && !isNewer(fetched.GetResourceVersion(), before.GetResourceVersion())
	if !stale {
		f.objects[key] = fetched.Unstructured
	}
	f.lock.Unlock()
	switch {
	case stale:
	case before == nil:
		f.options.Handler.OnAdd(fetched.Unstructured, false)
	default:
		f.options.Handler.OnUpdate(before, fetched.Unstructured)
	}
	return nil
}

// hasNewer reports whether the watch has shown that an object is gone, or a newer state or another object of its name.
func (f *FilteredCache) hasNewer(object *unstructured.Unstructured) bool {
	for _, informer := range f.informers {
		item, exists, err := informer.GetByKey(storeKey(keyFor(object)))
		if err != nil || !exists {
			continue
		}
		shown, ok := item.(metav1.Object)
		return !ok || shown.GetUID() != object.GetUID() || isNewer(shown.GetResourceVersion(), object.GetResourceVersion())
	}
	return true
}

func isNewer(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order > 0
}
