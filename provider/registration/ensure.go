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

// Result is what became of an object.
type Result string

const (
	Created   Result = "created"
	Changed   Result = "configured"
	Unchanged Result = "unchanged"
	Deleted   Result = "deleted"
)

// Change is an object and what became of it.
type Change struct {
	Object client.Object
	Result Result
}

// NotOwnedError says that an object of a name is somebody else's.
type NotOwnedError struct{ Object client.Object }

func (e *NotOwnedError) Error() string {
	return fmt.Sprintf("%s %s was not made by a registration of this SyncTarget and is left as it is: delete it, or choose another name",
		e.Object.GetObjectKind().GroupVersionKind().Kind, client.ObjectKeyFromObject(e.Object))
}

// createOrPatch makes an object what is wanted: its labels and annotations beside those that others put there, and its content.
func createOrPatch(ctx context.Context, to client.Client, wanted client.Object, isOurs func(client.Object) bool, content func(from, to client.Object)) (Change, error) {
	kind, err := apiutil.GVKForObject(wanted, to.Scheme())
	if err != nil {
		return Change{}, err
	}
	// It may have more to say than what is wanted, so it begins with nothing but its name.
	empty, err := to.Scheme().New(kind)
	if err != nil {
		return Change{}, err
	}
	current := empty.(client.Object)
	current.SetNamespace(wanted.GetNamespace())
	current.SetName(wanted.GetName())
	result, err := controllerutil.CreateOrPatch(ctx, to, current, func() error {
		if current.GetResourceVersion() != "" && !isOurs(current) {
			return &NotOwnedError{Object: wanted}
		}
		current.SetLabels(mergeMaps(current.GetLabels(), wanted.GetLabels()))
		current.SetAnnotations(mergeMaps(current.GetAnnotations(), wanted.GetAnnotations()))
		content(wanted, current)
		return nil
	})
	if err != nil {
		return Change{}, err
	}
	// A typed answer has lost its kind.
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

func mergeMaps(current, wanted map[string]string) map[string]string {
	if len(current)+len(wanted) == 0 {
		return nil
	}
	merged := map[string]string{}
	maps.Copy(merged, current)
	maps.Copy(merged, wanted)
	return merged
}
