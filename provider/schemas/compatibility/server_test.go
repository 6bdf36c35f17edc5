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

package compatibility_test

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
	"k8s.io/apimachinery/pkg/runtime"
)

// server validates objects as an API server with only a schema does, except for rules.
type server struct {
	structural *structuralschema.Structural
	validator  validation.SchemaValidator
}

func newServer(t testing.TB, schema *apiextensionsv1.JSONSchemaProps) server {
	t.Helper()
	var internal apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(schema, &internal, nil); err != nil {
		t.Fatal(err)
	}
	structural, err := structuralschema.NewStructural(&internal)
	if err != nil {
		t.Fatal(err)
	}
	validator, _, err := validation.NewSchemaValidator(&internal)
	if err != nil {
		t.Fatal(err)
	}
	return server{structural, validator}
}

// errLost means that a server dropped a field.
var errLost = errors.New("fields are lost")

// accept returns the object as a server would store it, or the reason why it would not. Dropped fields do not prevent
// storage.
func (s server) accept(object map[string]any) (map[string]any, error) {
	object = runtime.DeepCopyJSON(object)
	var errs []error
	lost := pruning.PruneWithOptions(object, s.structural, true, structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
	if len(lost) > 0 {
		errs = append(errs, fmt.Errorf("%w: %v", errLost, lost))
	}
	defaulting.PruneNonNullableNullsWithoutDefaults(object, s.structural)
	defaulting.Default(object, s.structural)
	for _, err := range validation.ValidateCustomResource(nil, object, s.validator) {
		errs = append(errs, err)
	}
	for _, err := range listtype.ValidateListSetsAndMaps(nil, s.structural, object) {
		errs = append(errs, err)
	}
	return object, errors.Join(errs...)
}
