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

package sync

import (
	"context"
	"encoding/json"
	"fmt"

	jsonpatch "github.com/evanphx/json-patch/v5"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/sync/selection"
	"github.com/synchub-dev/synchub/controllers/sync/transform"
)

// returnStatus writes the status of the target's object to its source, if it is to and they differ.
func (c *Controller) returnStatus(ctx context.Context, key types.NamespacedName, source *unstructured.Unstructured, here placed, desired *transform.Desired, selected selection.Selection) error {
	if !selected.StatusReturn || !c.Resource.StatusReturn {
		return nil
	}
	return c.writeStatus(ctx, key, source, here.object, here.observed.Mark.Hash == desired.Mark.Hash)
}

// raiseStatus writes the status of the target's object to what came up of it, if they differ.
func (c *Controller) raiseStatus(ctx context.Context, key types.NamespacedName, held, object *unstructured.Unstructured) error {
	if c.Resource.Native {
		return nil
	}
	return c.writeStatus(ctx, key, held, object, true)
}

// writeStatus makes the status of a mailbox object that of the target's; applied tells whether the target's object is
// what the mailbox's says.
func (c *Controller) writeStatus(ctx context.Context, key types.NamespacedName, above, below *unstructured.Unstructured, applied bool) error {
	current, wanted := statusOf(above.Object["status"]), statusOf(below.Object["status"])
	var subresources []string
	if c.Resource.StatusSubresource {
		subresources = append(subresources, "status")
		// Without the subresource each write of a status makes a generation, and its number means nothing.
		wanted = transform.ReturnedStatus(wanted, transform.Generations{Source: above.GetGeneration(), Target: below.GetGeneration(), Applied: applied})
	}
	if apiequality.Semantic.DeepEqual(current, wanted) {
		return nil
	}
	patch, err := statusPatch(above.GetUID(), current, wanted)
	if err != nil {
		return fmt.Errorf("cannot compare the status: %w", err)
	}
	client, err := c.mailbox(key.Namespace)
	if err != nil {
		// The mailbox became unknown; all its objects are looked at again when it is back.
		return nil //nolint:nilerr // see above
	}
	c.inMailbox.begin(key)
	updated, err := client.Patch(ctx, key.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: c.manager}, subresources...)
	if err != nil {
		c.inMailbox.wrote(key, nil)
		return fmt.Errorf("%w: cannot write the status: %w", errMailbox, err)
	}
	updated.SetManagedFields(nil)
	c.inMailbox.wrote(key, updated)
	return nil
}

// statusOf returns what of a status can be compared and returned. An empty one is like none, and so is a field that is
// null: to a merge patch that means its removal, so it would differ for ever.
func statusOf(status any) map[string]any {
	fields, _ := status.(map[string]any)
	kept := make(map[string]any, len(fields))
	for name, value := range fields {
		if value != nil {
			kept[name] = withoutNulls(value)
		}
	}
	return kept
}

func withoutNulls(value any) any {
	switch typed := value.(type) {
	case map[string]any:
		return statusOf(typed)
	case []any:
		kept := make([]any, len(typed))
		for i, item := range typed {
			kept[i] = withoutNulls(item)
		}
		return kept
	default:
		return value
	}
}

// statusPatch is a merge patch (RFC 7386) that turns one status into the other, fenced by the source's UID.
func statusPatch(uid types.UID, current, wanted map[string]any) ([]byte, error) {
	before, err := json.Marshal(map[string]any{"status": current})
	if err != nil {
		return nil, err
	}
	after, err := json.Marshal(map[string]any{"status": wanted, "metadata": map[string]any{"uid": uid}})
	if err != nil {
		return nil, err
	}
	return jsonpatch.CreateMergePatch(before, after)
}
