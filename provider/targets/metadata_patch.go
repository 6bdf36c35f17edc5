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

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/provider/notfound"
	"github.com/synchub-dev/synchub/provider/targets/metadatapatch"
)

// PatchMetadata changes the metadata of the object that has the UID, in one request, and returns the changed object. It fails with
// a NotFound error if the object is gone, and with an Invalid or Conflict error if it was replaced.
func (c *Connection) PatchMetadata(ctx context.Context, resource schema.GroupVersionResource, key types.NamespacedName, uid types.UID, changes metadatapatch.Patch) (*unstructured.Unstructured, error) {
	patch, err := changes.Merge(uid)
	if err != nil {
		return nil, fmt.Errorf("cannot patch %s: %w", key, err)
	}
	ctx, done := withTimeout(ctx, requestTimeout)
	defer done()
	return c.resourceClient(resource, key.Namespace).
		Patch(ctx, key.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: c.fieldManager})
}

// RemoveMetadata removes labels and annotations from the object that has the UID. It is no error if the object is gone.
func (c *Connection) RemoveMetadata(ctx context.Context, resource schema.GroupVersionResource, key types.NamespacedName, uid types.UID, labels, annotations []string) error {
	_, err := c.PatchMetadata(ctx, resource, key, uid, metadatapatch.Patch{RemoveLabels: labels, RemoveAnnotations: annotations})
	if notfound.Proves(err, resource.GroupResource(), key.Name) {
		return nil
	}
	return err
}
