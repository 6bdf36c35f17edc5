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

package structural_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/synchub-dev/synchub/provider/schemas/structural"
)

var thing = structural.Kind{GroupVersionKind: schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Thing"}, Plural: "things"}

// types are the referenced types of the documents in these tests, as servers describe them.
const types = `
io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta:
  type: object
  properties: {name: {type: string}, labels: {type: object, additionalProperties: {type: string}}}
io.k8s.apimachinery.pkg.api.resource.Quantity:
  oneOf: [{type: string}, {type: number}]
io.k8s.apimachinery.pkg.util.intstr.IntOrString:
  format: int-or-string
  oneOf: [{type: integer}, {type: string}]
io.k8s.apimachinery.pkg.runtime.RawExtension:
  type: object
com.example.JSON: {}
com.example.Port:
  description: A port.
  type: object
  required: [number, name]
  properties:
    name: {type: string, default: ""}
    number: {type: integer, format: int32, default: 0}
    protocol: {type: string, default: TCP, enum: [TCP, UDP]}
    note: {type: string, default: ""}
com.example.Tree:
  description: A tree.
  type: object
  properties:
    left: {$ref: '#/components/schemas/com.example.Tree'}
    children: {type: array, items: {default: {}, allOf: [{$ref: '#/components/schemas/com.example.Tree'}]}}
    leaf: {type: string}
com.example.Alias: {$ref: '#/components/schemas/com.example.Other'}
com.example.Other: {$ref: '#/components/schemas/com.example.Alias'}
`

// ref returns a reference as documents of Go types write it.
func ref(name string) string {
	return "{default: {}, description: The field., allOf: [{$ref: '#/components/schemas/" + name + "'}]}"
}

// goDocument returns the document of a Thing of Go types with these properties.
func goDocument(t *testing.T, properties string) []byte {
	t.Helper()
	return document(t, `
com.example.v1.Thing:
  x-kubernetes-group-version-kind: [{group: example.com, version: v1, kind: Thing}]
  type: object
  required: [metadata]
  properties:
    apiVersion: {type: string}
    kind: {type: string}
    metadata: `+ref("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta")+`
`+indent(properties, "    "))
}

func document(t *testing.T, components string) []byte {
	t.Helper()
	raw, err := yaml.YAMLToJSONStrict([]byte("openapi: 3.0.0\ncomponents:\n  schemas:\n" + indent(types+components, "    ")))
	if err != nil {
		t.Fatalf("%v in\n%s", err, components)
	}
	return raw
}

func indent(text, by string) string {
	return by + strings.ReplaceAll(strings.Trim(text, "\n"), "\n", "\n"+by) + "\n"
}

func convert(t *testing.T, document []byte, kind structural.Kind) (*apiextensionsv1.CustomResourceDefinitionVersion, []structural.Note) {
	t.Helper()
	version, notes, err := structural.Schema(t.Context(), document, kind)
	if err != nil {
		t.Fatal(err)
	}
	requireValid(t, version)
	return version, notes
}

// requireSchema compares a schema with one in YAML.
func requireSchema(t *testing.T, got *apiextensionsv1.JSONSchemaProps, wanted string) {
	t.Helper()
	raw, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	wantedRaw, err := yaml.YAMLToJSONStrict([]byte(wanted))
	if err != nil {
		t.Fatalf("%v in\n%s", err, wanted)
	}
	if canonical(t, raw) != canonical(t, wantedRaw) {
		t.Errorf("got\n%s\nwanted\n%s", canonical(t, raw), canonical(t, wantedRaw))
	}
}

// requireField is [requireSchema] for a field of a Go type. wanted leaves out that the field, and each field in it, is nullable.
func requireField(t *testing.T, root *apiextensionsv1.JSONSchemaProps, name, wanted string) {
	t.Helper()
	var schema apiextensionsv1.JSONSchemaProps
	if err := yaml.UnmarshalStrict([]byte(wanted), &schema); err != nil {
		t.Fatalf("%v in\n%s", err, wanted)
	}
	setNullable(&schema)
	raw, err := json.Marshal(schema)
	if err != nil {
		t.Fatal(err)
	}
	requireSchema(t, new(root.Properties[name]), string(raw))
}

func setNullable(field *apiextensionsv1.JSONSchemaProps) {
	field.Nullable = true
	if len(field.Enum) > 0 {
		field.AllOf, field.Enum = append(field.AllOf, apiextensionsv1.JSONSchemaProps{Enum: field.Enum}), nil
	}
	setPropertiesNullable(field)
}

func setPropertiesNullable(node *apiextensionsv1.JSONSchemaProps) {
	for name, property := range node.Properties {
		setNullable(&property)
		node.Properties[name] = property
	}
	if node.Items != nil {
		setPropertiesNullable(node.Items.Schema)
	}
}

func canonical(t *testing.T, raw []byte) string {
	t.Helper()
	var value any
	if err := json.Unmarshal(raw, &value); err != nil {
		t.Fatal(err)
	}
	content, err := yaml.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func requireNotes(t *testing.T, got []structural.Note, wanted ...string) {
	t.Helper()
	same := slices.EqualFunc(got, wanted, func(got structural.Note, wanted string) bool {
		return strings.HasPrefix(got.String(), wanted)
	})
	if !same {
		t.Errorf("got the notes %v, wanted %q", got, wanted)
	}
}
