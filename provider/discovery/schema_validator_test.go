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

package discovery_test

import (
	"errors"
	"fmt"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// schemaValidator validates objects as a server with the CRD does, and much faster.
type schemaValidator struct {
	structural *structuralschema.Structural
	validator  validation.SchemaValidator
}

func newSchemaValidator(t *testing.T, version apiextensionsv1.CustomResourceDefinitionVersion) schemaValidator {
	t.Helper()
	var internal apiextensions.CustomResourceValidation
	err := apiextensionsv1.Convert_v1_CustomResourceValidation_To_apiextensions_CustomResourceValidation(version.Schema, &internal, nil)
	if err != nil {
		t.Fatal(err)
	}
	structural, err := structuralschema.NewStructural(internal.OpenAPIV3Schema)
	if err != nil {
		t.Fatal(err)
	}
	validator, _, err := validation.NewSchemaValidator(internal.OpenAPIV3Schema)
	if err != nil {
		t.Fatal(err)
	}
	return schemaValidator{structural, validator}
}

// validate returns the object as a server would store it, or an error if a server would refuse it.
func (j schemaValidator) validate(object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	object = object.DeepCopy()
	unknown := pruning.PruneWithOptions(object.Object, j.structural, true, structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
	if len(unknown) > 0 {
		return nil, fmt.Errorf("unknown fields %v", unknown)
	}
	defaulting.PruneNonNullableNullsWithoutDefaults(object.Object, j.structural)
	defaulting.Default(object.Object, j.structural)
	var errs []error
	for _, err := range validation.ValidateCustomResource(nil, object.Object, j.validator) {
		errs = append(errs, err)
	}
	for _, err := range listtype.ValidateListSetsAndMaps(nil, j.structural, object.Object) {
		errs = append(errs, err)
	}
	return object, errors.Join(errs...)
}
