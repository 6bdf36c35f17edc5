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

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

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
	for i := range crd.Spec.Versions {
		if schema := crd.Spec.Versions[i].Schema; schema != nil && schema.OpenAPIV3Schema != nil {
			walk(schema.OpenAPIV3Schema, position{}, func(node *apiextensionsv1.JSONSchemaProps, _ position) {
				node.Description = ""
			})
		}
	}
	return true
}
