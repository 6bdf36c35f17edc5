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
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// quantityPattern matches every text that a server accepts as a quantity, and little else.
const quantityPattern = `^\s*[+-]?[0-9]*(\.[0-9]*)?([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?\s*$`

// relaxRestrictions removes formats and widens enums that a server written in Go does not enforce as declared.
func relaxRestrictions(out *apiextensionsv1.JSONSchemaProps) {
	if out.Type == typeString && out.Format != "date-time" {
		out.Format = ""
	}
	if empty := []byte(`""`); out.Type == typeString && len(out.Enum) > 0 &&
		!slices.ContainsFunc(out.Enum, func(value apiextensionsv1.JSON) bool { return slices.Equal(value.Raw, empty) }) {
		out.Enum = append(out.Enum, apiextensionsv1.JSON{Raw: empty})
	}
}

// unknownSchema returns a copy of a schema without the keywords that describe the content.
func unknownSchema(s apiextensionsv1.JSONSchemaProps) apiextensionsv1.JSONSchemaProps {
	kept := apiextensionsv1.JSONSchemaProps{Description: s.Description, Nullable: s.Nullable, XPreserveUnknownFields: new(true)}
	if s.Type == typeObject {
		kept.Type = typeObject
	}
	return kept
}

// alternatives returns the sorted types of a value that may have several types.
func alternatives(s *spec.Schema) (types []string) {
	if len(s.Type) > 1 {
		return slices.Sorted(slices.Values(s.Type))
	}
	if len(s.Type) > 0 || len(s.OneOf) > 0 && len(s.AnyOf) > 0 {
		return nil
	}
	for _, branch := range append(slices.Clone(s.OneOf), s.AnyOf...) {
		if len(branch.Type) != 1 {
			return nil
		}
		types = append(types, branch.Type[0])
	}
	slices.Sort(types)
	return types
}
