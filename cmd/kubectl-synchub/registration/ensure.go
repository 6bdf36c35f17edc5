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
	"maps"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
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

// createOrPatch creates the desired object, or patches the existing one. It adds the desired labels and annotations, and
// calls setContent to set the other fields. If isOurs returns false for the existing object, the error is a
// [*NotOwnedError].
func createOrPatch(ctx context.Context, c client.Client, desired client.Object, isOurs func(client.Object) bool, setContent func(from, to client.Object)) (Change, error) {
	kind, err := apiutil.GVKForObject(desired, c.Scheme())
	if err != nil {
		return Change{}, err
	}
	// The existing object may have fields that the desired one lacks, so current starts with the name only.
	empty, err := c.Scheme().New(kind)
	if err != nil {
		return Change{}, err
	}
	current := empty.(client.Object)
	current.SetNamespace(desired.GetNamespace())
	current.SetName(desired.GetName())
	result, err := controllerutil.CreateOrPatch(ctx, c, current, func() error {
		if current.GetResourceVersion() != "" && !isOurs(current) {
			return &NotOwnedError{Object: desired}
		}
		current.SetLabels(mergeMaps(current.GetLabels(), desired.GetLabels()))
		current.SetAnnotations(mergeMaps(current.GetAnnotations(), desired.GetAnnotations()))
		setContent(desired, current)
		return nil
	})
	if err != nil {
		return Change{}, err
	}
	// Decoding into a typed object clears its kind.
	current.GetObjectKind().SetGroupVersionKind(kind)
	return Change{Object: current, Result: toResult(result)}, nil
}

func toResult(result controllerutil.OperationResult) Result {
	switch result {
	case controllerutil.OperationResultCreated:
		return Created
	case controllerutil.OperationResultNone:
		return Unchanged
	default:
		return Changed
	}
}

func mergeMaps(current, desired map[string]string) map[string]string {
	if len(current)+len(desired) == 0 {
		return nil
	}
	merged := map[string]string{}
	maps.Copy(merged, current)
	maps.Copy(merged, desired)
	return merged
}
