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
	"fmt"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Result is the effect on an object.
type Result string

const (
	Created   Result = "created"
	Changed   Result = "configured"
	Unchanged Result = "unchanged"
	Deleted   Result = "deleted"
)

// Change is an object and the effect on it.
type Change struct {
	Object client.Object
	Result Result
}

// NotOwnedError is returned for an existing object that no registration of this SyncTarget has created.
type NotOwnedError struct{ Object client.Object }

func (e *NotOwnedError) Error() string {
	return fmt.Sprintf("%s %s was not made by a registration of this SyncTarget and is left as it is: delete it, or choose another name",
		e.Object.GetObjectKind().GroupVersionKind().Kind, client.ObjectKeyFromObject(e.Object))
}

// apply writes the desired object by server-side apply. If isOurs returns false for the existing object, the error is a
// [*NotOwnedError].
func apply(ctx context.Context, c client.Client, desired client.Object, isOurs func(client.Object) bool) (Change, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(desired)
	if err != nil {
		return Change{}, err
	}
	unstructured.RemoveNestedField(content, "metadata", "creationTimestamp")
	applied := &unstructured.Unstructured{Object: content}
	current := applied.DeepCopy()
	err = c.Get(ctx, client.ObjectKeyFromObject(desired), current)
	options, result := []client.ApplyOption{client.FieldOwner(managerName)}, Created
	switch {
	case client.IgnoreNotFound(err) != nil:
		return Change{}, err
	case err == nil && !isOurs(current):
		return Change{}, &NotOwnedError{Object: desired}
	case err == nil:
		// With the UID, the server refuses an object that has replaced the current one. An absent object is not forced, so
		// that the server refuses one that somebody creates now with other content.
		applied.SetUID(current.GetUID())
		options, result = append(options, client.ForceOwnership), Changed
	}
	if err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(applied), options...); err != nil {
		return Change{}, err
	}
	if result == Changed && apiequality.Semantic.DeepEqual(withoutVersion(current), withoutVersion(applied)) {
		result = Unchanged
	}
	return Change{Object: applied, Result: result}, nil
}

// withoutVersion returns the content of an object without the metadata that every write changes. A dry run does not
// change the resourceVersion, so that cannot show whether an object has changed.
func withoutVersion(object *unstructured.Unstructured) map[string]any {
	bare := object.DeepCopy()
	bare.SetManagedFields(nil)
	bare.SetResourceVersion("")
	return bare.Object
}
