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

package schemas

import (
	"fmt"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"
)

// validator validates objects as an API server that serves a CustomResourceDefinition does.
type validator struct {
	structural *schema.Structural
	openAPI    validation.SchemaValidator
	cel        *cel.Validator
}

func newValidator(t *testing.T, crdName string) *validator {
	t.Helper()
	crd, err := CRD(crdName)
	if err != nil {
		t.Fatal(err)
	}
	var internal apiextensions.CustomResourceValidation
	version := crd.Spec.Versions[0]
	err = apiextensionsv1.Convert_v1_CustomResourceValidation_To_apiextensions_CustomResourceValidation(
		version.Schema, &internal, nil)
	if err != nil {
		t.Fatalf("converting the schema of %s: %v", crdName, err)
	}
	structural, err := schema.NewStructural(internal.OpenAPIV3Schema)
	if err != nil {
		t.Fatalf("the schema of %s is not structural: %v", crdName, err)
	}
	openAPI, _, err := validation.NewSchemaValidator(internal.OpenAPIV3Schema)
	if err != nil {
		t.Fatalf("making a validator from the schema of %s: %v", crdName, err)
	}
	return &validator{
		structural: structural,
		openAPI:    openAPI,
		cel:        cel.NewValidator(structural, true, celconfig.PerCallLimit),
	}
}

// create defaults the object and returns its errors. A field that the server would prune is an error too.
func (v *validator) create(t *testing.T, object map[string]any) field.ErrorList {
	t.Helper()
	errs := v.admit(object)
	errs = append(errs, validation.ValidateCustomResource(nil, object, v.openAPI)...)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, v.structural, object)...)
	celErrs, _ := v.cel.Validate(t.Context(), nil, v.structural, object, nil, celconfig.RuntimeCELCostBudget)
	return append(errs, celErrs...)
}

// update is create for a change of an existing object.
func (v *validator) update(t *testing.T, object, old map[string]any) field.ErrorList {
	t.Helper()
	v.admit(old)
	errs := v.admit(object)
	errs = append(errs, validation.ValidateCustomResourceUpdate(nil, object, old, v.openAPI)...)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, v.structural, object)...)
	celErrs, _ := v.cel.Validate(t.Context(), nil, v.structural, object, old, celconfig.RuntimeCELCostBudget)
	return append(errs, celErrs...)
}

func (v *validator) admit(object map[string]any) field.ErrorList {
	dropped := pruning.PruneWithOptions(object, v.structural, true,
		schema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
	defaulting.PruneNonNullableNullsWithoutDefaults(object, v.structural)
	defaulting.Default(object, v.structural)

	var errs field.ErrorList
	for _, path := range dropped {
		errs = append(errs, field.Forbidden(field.NewPath(path), "unknown field"))
	}
	return errs
}

func decode(t *testing.T, manifest string) map[string]any {
	t.Helper()
	object := map[string]any{}
	if err := yaml.UnmarshalStrict([]byte(manifest), &object); err != nil {
		t.Fatalf("decoding the test's manifest: %v\n%s", err, manifest)
	}
	// Numbers become int64, as in the decoder of an API server.
	return runtime.DeepCopyJSON(normalize(object).(map[string]any))
}

func normalize(value any) any {
	switch value := value.(type) {
	case map[string]any:
		for key := range value {
			value[key] = normalize(value[key])
		}
	case []any:
		for i := range value {
			value[i] = normalize(value[i])
		}
	case float64:
		if whole := int64(value); float64(whole) == value {
			return whole
		}
	}
	return value
}

// requireOneError fails the test unless the error is about the wanted field only. An empty field means no error.
func requireOneError(t *testing.T, errs field.ErrorList, wantedField string) {
	t.Helper()
	if wantedField == "" {
		if len(errs) > 0 {
			t.Errorf("wanted a valid object, got: %v", errs.ToAggregate())
		}
		return
	}
	if len(errs) != 1 || errs[0].Field != wantedField {
		t.Errorf("wanted one error, at %s, got: %s", wantedField, describe(errs))
	}
}

func describe(errs field.ErrorList) string {
	if len(errs) == 0 {
		return "none"
	}
	return fmt.Sprint(errs.ToAggregate())
}
