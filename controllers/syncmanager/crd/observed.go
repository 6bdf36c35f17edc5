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

package crd

import (
	"encoding/json"
	"fmt"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/synchub-dev/synchub/controllers/plan/ownership"
)

// observedCRD is a CRD of the target, typed and unstructured. Nil means that there is none.
type observedCRD struct {
	typed  *apiextensionsv1.CustomResourceDefinition
	object *unstructured.Unstructured
}

func (o *observedCRD) crd() *apiextensionsv1.CustomResourceDefinition {
	if o == nil {
		return nil
	}
	return o.typed
}

func newObservedCRD(object *unstructured.Unstructured) (*observedCRD, error) {
	typed := &apiextensionsv1.CustomResourceDefinition{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, typed); err != nil {
		return nil, fmt.Errorf("the target's %s is not one: %w", object.GetName(), err)
	}
	return &observedCRD{typed: typed, object: object}, nil
}

// toUnstructured returns the object to apply, without the fields that belong to the API server.
func toUnstructured(desired *apiextensionsv1.CustomResourceDefinition) (*unstructured.Unstructured, error) {
	text, err := json.Marshal(desired)
	if err != nil {
		return nil, fmt.Errorf("the definition cannot be written as JSON: %w", err)
	}
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(text); err != nil {
		return nil, fmt.Errorf("the definition cannot be written as JSON: %w", err)
	}
	unstructured.RemoveNestedField(object.Object, "status")
	unstructured.RemoveNestedField(object.Object, "metadata", "creationTimestamp")
	return object, nil
}

// contentionMessage names the managers that keep changing the CRD, and the fields.
func (t *task) contentionMessage(observed *observedCRD) string {
	const unknown = "Somebody keeps changing the definition; the hub repairs it less and less often."
	desired, err := toUnstructured(t.desired)
	if err != nil {
		return unknown
	}
	manager := ownership.FieldManager(t.owner.Hub)
	var others []metav1.ManagedFieldsEntry
	for _, entry := range observed.object.GetManagedFields() {
		switch {
		case entry.Subresource != "" || entry.FieldsV1 == nil:
		case entry.Manager == manager && entry.Operation == metav1.ManagedFieldsOperationApply:
		default:
			others = append(others, entry)
		}
	}
	lost, err := ownership.UnownedPaths(desired.Object, ownership.AppliedFields(observed.object, manager))
	if err != nil || len(lost) == 0 {
		return unknown
	}
	holders, err := ownership.ManagersOf(desired.Object, others, lost)
	if err != nil || len(holders) == 0 {
		return unknown
	}
	return fmt.Sprintf("%s keeps changing %s of the definition; the hub repairs it less and less often.", strings.Join(holders, ", "), strings.Join(lost, ", "))
}
