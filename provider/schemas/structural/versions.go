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
	"encoding/json"
	"maps"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// UnstoredFields returns a note for each field of a version that the storage version lacks. A server without
// conversion loses these fields.
func UnstoredFields(version, storage *apiextensionsv1.CustomResourceDefinitionVersion) []Note {
	reason := "it is lost when objects are stored, because " + storage.Name + " has no such field and kcp converts nothing"
	var notes []Note
	for _, path := range missingFields(version.Schema.OpenAPIV3Schema, storage.Schema.OpenAPIV3Schema, "") {
		notes = append(notes, Note{path, reason})
	}
	return notes
}

// missingFields lists the outermost fields of a schema that the other schema does not keep.
func missingFields(s, other *apiextensionsv1.JSONSchemaProps, path string) (paths []string) {
	if s == nil || other != nil && other.XPreserveUnknownFields != nil {
		return nil
	}
	if other == nil {
		return []string{path}
	}
	values := valuesOf(other)
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		counterpart := values
		if property, ok := other.Properties[name]; ok {
			counterpart = &property
		}
		if path != "" || name != "metadata" {
			paths = append(paths, missingFields(new(s.Properties[name]), counterpart, path+"."+name)...)
		}
	}
	if s.Items != nil && other.Items != nil {
		paths = append(paths, missingFields(s.Items.Schema, other.Items.Schema, path+"[]")...)
	}
	if mine := valuesOf(s); mine != nil && other.Type == typeObject {
		paths = append(paths, missingFields(mine, values, path+".*")...)
	}
	return paths
}

// valuesOf returns the schema of the values of a map, or nil.
func valuesOf(s *apiextensionsv1.JSONSchemaProps) *apiextensionsv1.JSONSchemaProps {
	if s.AdditionalProperties == nil {
		return nil
	}
	return s.AdditionalProperties.Schema
}

// maxStoredBytes is the maximum size of a CRD in JSON. etcd accepts 1.5 MiB, and the stored object is larger than the
// CRD.
const maxStoredBytes = 1 << 20

// PreserveUnknownFields makes a version keep all fields, also those that its schema does not name.
// spec.preserveUnknownFields of a CRD means the same, but kcp does not know that field. A version without a schema
// gets one.
func PreserveUnknownFields(version *apiextensionsv1.CustomResourceDefinitionVersion) {
	if version.Schema == nil || version.Schema.OpenAPIV3Schema == nil {
		version.Schema = &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{}}
	}
	root := version.Schema.OpenAPIV3Schema
	root.Type = typeObject
	walk(root, position{}, func(node *apiextensionsv1.JSONSchemaProps, at position) {
		structured := node.Type == typeObject && node.AdditionalProperties == nil || node.Type == "" && !node.XIntOrString
		if structured && at.path != ".metadata" {
			node.XPreserveUnknownFields = new(true)
		}
	})
}

// DropDescriptions removes the descriptions from a CRD that is too large to be stored with them. It reports whether
// it did.
func DropDescriptions(crd *apiextensionsv1.CustomResourceDefinition) bool {
	content, err := json.Marshal(crd.Spec)
	if err != nil || len(content) <= maxStoredBytes {
		return false // a CRD that cannot be encoded is refused when it is written
	}
	RemoveDescriptions(crd)
	return true
}

// RemoveDescriptions removes the descriptions from the schemas of all versions of a CRD.
func RemoveDescriptions(crd *apiextensionsv1.CustomResourceDefinition) {
	for i := range crd.Spec.Versions {
		if schema := crd.Spec.Versions[i].Schema; schema != nil && schema.OpenAPIV3Schema != nil {
			walk(schema.OpenAPIV3Schema, position{}, func(node *apiextensionsv1.JSONSchemaProps, _ position) {
				node.Description = ""
			})
		}
	}
}
