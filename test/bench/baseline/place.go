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

package baseline

import (
	"context"

	kcpcache "github.com/kcp-dev/apimachinery/v2/pkg/cache"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// place writes an object into all mailboxes that have the object, and applies it to each target after its mailbox.
func (s *syncer) place(ctx context.Context, order Request) (objects int, err error) {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(order.Workers)
	for mailbox, to := range s.targets {
		key := kcpcache.ToClusterAwareKey(mailbox.String(), order.Namespace, order.Name)
		cached, exists, err := s.mailboxObjects[order.Resource].GetStore().GetByKey(key)
		if err != nil {
			return objects, err
		}
		if !exists {
			continue
		}
		objects++
		group.Go(func() error { return to.place(ctx, order.Resource, cached.(*unstructured.Unstructured), order.Entry) })
	}
	return objects, group.Wait()
}

func (t *target) place(ctx context.Context, resource schema.GroupVersionResource, cached *unstructured.Unstructured, entry string) error {
	changed := cached.DeepCopy()
	// The update is unconditional: nobody else writes the object, and the cache may lack the last update.
	changed.SetResourceVersion("")
	if err := unstructured.SetNestedField(changed.Object, entry, "data", "entry"); err != nil {
		return err
	}
	written, err := t.mailboxClient.Resource(resource).Namespace(changed.GetNamespace()).Update(ctx, changed, metav1.UpdateOptions{})
	if err != nil {
		return err
	}
	return t.apply(ctx, resource, written)
}
