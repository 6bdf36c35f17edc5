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
	"maps"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// position is a location in a schema.
type position struct {
	// path of the field in an object.
	path string
	// schema is the path in the schema, relative to the start of the walk.
	schema *field.Path
}

// walk visits a schema and the schemas of its fields, items and values, each before its content, in a fixed order.
// walk does not follow allOf, anyOf, oneOf and not, which only restrict fields that are described elsewhere.
func walk(node *apiextensionsv1.JSONSchemaProps, at position, visit func(*apiextensionsv1.JSONSchemaProps, position)) {
	visit(node, at)
	for _, name := range slices.Sorted(maps.Keys(node.Properties)) {
		property := node.Properties[name]
		walk(&property, position{at.path + "." + name, at.schema.Child("properties").Key(name)}, visit)
		node.Properties[name] = property
	}
	if node.Items != nil && node.Items.Schema != nil {
		walk(node.Items.Schema, position{at.path + "[]", at.schema.Child("items")}, visit)
	}
	if node.AdditionalProperties != nil && node.AdditionalProperties.Schema != nil {
		walk(node.AdditionalProperties.Schema, position{at.path + ".*", at.schema.Child("additionalProperties")}, visit)
	}
}
