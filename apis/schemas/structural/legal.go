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

// schemaPath is where the validation of a definition with a single version finds its schema.
var schemaPath = field.NewPath("spec", "validation", "openAPIV3Schema")

// Legalize takes out of the schema of a version what kcp would refuse it for, which a cluster may have accepted once or
// under another version: keys of lists that may be missing, defaults that are invalid, rules that do not compile or are
// estimated to be too expensive, junctors that describe fields. What is left accepts all that the schema accepted. It is
// an error if the schema is wrong beyond that.
func Legalize(version *apiextensionsv1.CustomResourceDefinitionVersion) ([]Note, error) {
	if version.Schema == nil || version.Schema.OpenAPIV3Schema == nil {
		return nil, fmt.Errorf("version %s has no schema", version.Name)
	}
	root := version.Schema.OpenAPIV3Schema
	var notes []Note
	walk(root, position{}, func(node *apiextensionsv1.JSONSchemaProps, at position) {
		if reason := legalList(node); reason != "" {
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
	for {
		faults, err := faultsOf(root, status)
		if err != nil {
			return nil, fmt.Errorf("the schema of version %s cannot be judged: %w", version.Name, err)
		}
		if len(faults) == 0 {
			return notes, nil
		}
		cured := cure(root, faults)
		if len(cured) == 0 {
			return nil, fmt.Errorf("the schema of version %s is not structural: %s", version.Name, summary(faults))
		}
		notes = append(notes, cured...)
	}
}

// faultsOf judges a schema as a server does that is asked to serve it.
func faultsOf(root *apiextensionsv1.JSONSchemaProps, status bool) (field.ErrorList, error) {
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
	return validation.ValidateCustomResourceDefinition(context.Background(), crd), nil
}
