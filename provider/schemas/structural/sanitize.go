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

package structural

import (
	"context"
	"fmt"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// maxValidationPasses is the maximum number of validations of a schema. Most faults appear in the first pass, some only after
// other faults have been removed. When half of the passes are used and the rules together are still too expensive, Sanitize
// removes all rules.
const maxValidationPasses = 8

// schemaPath is the path at which validation reports faults in the schema of a CRD with a single version.
var schemaPath = field.NewPath("spec", "validation", "openAPIV3Schema")

// Sanitize removes the parts of a version's schema that make kcp refuse it. A cluster may have accepted these parts
// in the past or under another version: list keys that may be missing, invalid defaults, rules that do not compile or
// whose estimated cost is too high, and combinators that describe fields. The remaining schema accepts every object
// that the original accepted. Sanitize returns an error if the schema has other faults, a [*TooLargeError] if it
// exceeds a limit, and the error of the context if the context has ended.
func Sanitize(ctx context.Context, version *apiextensionsv1.CustomResourceDefinitionVersion) ([]Note, error) {
	if version.Schema == nil || version.Schema.OpenAPIV3Schema == nil {
		return nil, fmt.Errorf("version %s has no schema", version.Name)
	}
	root := version.Schema.OpenAPIV3Schema
	if err := CheckSchema(root); err != nil {
		return nil, fmt.Errorf("the schema of version %s is too large: %w", version.Name, err)
	}
	var notes []Note
	walk(root, position{}, func(node *apiextensionsv1.JSONSchemaProps, at position) {
		if reason := normalizeList(node); reason != "" {
			notes = append(notes, Note{at.path, reason})
		}
		if node.UniqueItems {
			node.UniqueItems = false
			notes = append(notes, Note{at.path, "uniqueItems is left out: to compare all items with each other takes too long"})
		}
		if node.XPreserveUnknownFields != nil && !*node.XPreserveUnknownFields {
			node.XPreserveUnknownFields = nil
		}
	})
	status := version.Subresources != nil && version.Subresources.Status != nil
	for pass := 1; ; pass++ {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("the schema of version %s was not checked: %w", version.Name, err)
		}
		faults, err := validateSchema(ctx, root, status)
		if err != nil {
			return nil, fmt.Errorf("the schema of version %s cannot be checked: %w", version.Name, err)
		}
		if len(faults) == 0 {
			return notes, nil
		}
		fixed := removeFaults(root, faults, pass > maxValidationPasses/2)
		if len(fixed) == 0 || pass == maxValidationPasses {
			return nil, fmt.Errorf("the schema of version %s is not structural: %s", version.Name, summary(faults))
		}
		notes = append(notes, fixed...)
	}
}

// validateSchema returns the faults that a server would report if it were asked to serve the schema.
func validateSchema(ctx context.Context, root *apiextensionsv1.JSONSchemaProps, status bool) (field.ErrorList, error) {
	crd := &apiextensions.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "kinds.example.com"},
		Spec: apiextensions.CustomResourceDefinitionSpec{
			Group:                 "example.com",
			Scope:                 apiextensions.ClusterScoped,
			Names:                 apiextensions.CustomResourceDefinitionNames{Plural: "kinds", Singular: "kind", Kind: "Kind", ListKind: "KindList"},
			Versions:              []apiextensions.CustomResourceDefinitionVersion{{Name: "v1", Served: true, Storage: true}},
			Validation:            &apiextensions.CustomResourceValidation{OpenAPIV3Schema: &apiextensions.JSONSchemaProps{}},
			Conversion:            &apiextensions.CustomResourceConversion{Strategy: apiextensions.NoneConverter},
			PreserveUnknownFields: new(false),
		},
		Status: apiextensions.CustomResourceDefinitionStatus{StoredVersions: []string{"v1"}},
	}
	if status {
		crd.Spec.Subresources = &apiextensions.CustomResourceSubresources{Status: &apiextensions.CustomResourceSubresourceStatus{}}
	}
	err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(root, crd.Spec.Validation.OpenAPIV3Schema, nil)
	if err != nil {
		return nil, err
	}
	return validation.ValidateCustomResourceDefinition(ctx, crd), nil
}
