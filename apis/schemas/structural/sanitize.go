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

// maxValidationPasses is how often a schema is judged at most: most faults show the first time, and some only when others are cured.
// When half of them are used up and the rules are still too expensive together, all are given up.
const maxValidationPasses = 8

// schemaPath is where the validation of a definition with a single version finds its schema.
var schemaPath = field.NewPath("spec", "validation", "openAPIV3Schema")

// Sanitize takes out of the schema of a version what kcp would refuse it for, which a cluster may have accepted once or
// under another version: keys of lists that may be missing, defaults that are invalid, rules that do not compile or are
// estimated to be too expensive, junctors that describe fields. What is left accepts all that the schema accepted. It is
// an error if the schema is wrong beyond that, a [*TooLargeError] if it is beyond a limit, and that of the context if it ended.
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
	for judgement := 1; ; judgement++ {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("the schema of version %s was not judged: %w", version.Name, err)
		}
		faults, err := validateSchema(ctx, root, status)
		if err != nil {
			return nil, fmt.Errorf("the schema of version %s cannot be judged: %w", version.Name, err)
		}
		if len(faults) == 0 {
			return notes, nil
		}
		cured := removeFaults(root, faults, judgement > maxValidationPasses/2)
		if len(cured) == 0 || judgement == maxValidationPasses {
			return nil, fmt.Errorf("the schema of version %s is not structural: %s", version.Name, summary(faults))
		}
		notes = append(notes, cured...)
	}
}

// validateSchema judges a schema as a server does that is asked to serve it.
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
