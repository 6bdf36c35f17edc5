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
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// Each row is the property "field" of a Go type, and the resulting schema.
func TestGoTypes(t *testing.T) {
	const quantity = `x-kubernetes-preserve-unknown-fields: true, pattern: '^\s*[+-]?[0-9]*(\.[0-9]*)?([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?\s*$'`
	for name, test := range map[string]struct {
		field, wanted string
		notes         []string
	}{
		"a string":            {field: `{type: string, description: d, default: ""}`, wanted: `{type: string, description: d}`},
		"a whole number":      {field: `{type: integer, format: int64, default: 3, minimum: 1}`, wanted: `{type: integer, format: int64, minimum: 1}`},
		"a number":            {field: `{type: number, format: double}`, wanted: `{type: number, format: double}`},
		"a time":              {field: `{type: string, format: date-time}`, wanted: `{type: string, format: date-time}`},
		"bytes":               {field: `{type: string, format: byte}`, wanted: `{type: string}`},
		"an enum":             {field: `{type: string, enum: [a, b]}`, wanted: `{type: string, enum: [a, b, ""]}`},
		"an enum with empty":  {field: `{type: string, enum: ["", b]}`, wanted: `{type: string, enum: ["", b]}`},
		"an enum of numbers":  {field: `{type: integer, enum: [1, 2]}`, wanted: `{type: integer, enum: [1, 2]}`},
		"a quantity":          {field: ref("io.k8s.apimachinery.pkg.api.resource.Quantity"), wanted: `{description: The field., ` + quantity + `}`},
		"a string or integer": {field: ref("io.k8s.apimachinery.pkg.util.intstr.IntOrString"), wanted: `{description: The field., x-kubernetes-int-or-string: true}`},
		"either, by anyOf":    {field: `{anyOf: [{type: integer}, {type: string}]}`, wanted: `{x-kubernetes-int-or-string: true}`},
		"either, by a list":   {field: `{type: [string, integer]}`, wanted: `{x-kubernetes-int-or-string: true}`},
		"either, by a keyword": {field: `{x-kubernetes-int-or-string: true, anyOf: [{type: integer}, {type: string}]}`,
			wanted: `{x-kubernetes-int-or-string: true}`},
		"a string or boolean": {field: `{oneOf: [{type: boolean}, {type: string}]}`, wanted: `{x-kubernetes-preserve-unknown-fields: true}`},
		"any object":          {field: ref("io.k8s.apimachinery.pkg.runtime.RawExtension"), wanted: `{description: The field., type: object, x-kubernetes-preserve-unknown-fields: true}`},
		"anything":            {field: ref("com.example.JSON"), wanted: `{description: The field., x-kubernetes-preserve-unknown-fields: true}`},
		"a map of strings":    {field: `{type: object, additionalProperties: {type: string, default: ""}}`, wanted: `{type: object, additionalProperties: {type: string, nullable: true}}`},
		"a map of quantities": {field: `{type: object, additionalProperties: {$ref: '#/components/schemas/io.k8s.apimachinery.pkg.api.resource.Quantity'}}`,
			wanted: `{type: object, additionalProperties: {nullable: true, ` + quantity + `}}`},
		"a map of anything":     {field: `{type: object, additionalProperties: true}`, wanted: `{type: object, x-kubernetes-preserve-unknown-fields: true}`},
		"an atomic map":         {field: `{type: object, additionalProperties: {type: string}, x-kubernetes-map-type: atomic}`, wanted: `{type: object, additionalProperties: {type: string, nullable: true}, x-kubernetes-map-type: atomic}`},
		"the type of no object": {field: `{type: string, x-kubernetes-map-type: atomic}`, wanted: `{type: string}`},
		"named and free fields": {field: `{type: object, properties: {a: {type: string}}, additionalProperties: {type: string}}`,
			wanted: `{type: object, properties: {a: {type: string}}, x-kubernetes-preserve-unknown-fields: true}`, notes: []string{".field: fields that are not named"}},
		"fields of no type": {field: `{properties: {a: {type: string}}}`, wanted: `{type: object, properties: {a: {type: string}}}`},
		"no other fields":   {field: `{type: object, properties: {a: {type: string}}, additionalProperties: false}`, wanted: `{type: object, properties: {a: {type: string}}}`},
		"required fields":   {field: `{type: object, required: [a], properties: {a: {type: string}}}`, wanted: `{type: object, properties: {a: {type: string}}}`},
		"a list": {field: `{type: array, items: {type: string, default: ""}, x-kubernetes-list-type: atomic}`,
			wanted: `{type: array, items: {type: string, nullable: true}, x-kubernetes-list-type: atomic}`},
		"a list of anything": {field: `{type: array}`, wanted: `{type: array, items: {nullable: true, x-kubernetes-preserve-unknown-fields: true}}`},
		"a reference in itself": {field: ref("com.example.Alias"), wanted: `{description: The field., x-kubernetes-preserve-unknown-fields: true}`,
			notes: nil},
		"a reference to nothing": {field: `{$ref: '#/components/schemas/none'}`, wanted: `{x-kubernetes-preserve-unknown-fields: true}`},
		"a tree": {field: ref("com.example.Tree"), wanted: `
description: The field.
type: object
properties:
  leaf: {type: string}
  left: {description: A tree., type: object, x-kubernetes-preserve-unknown-fields: true}
  children: {type: array, items: {description: A tree., type: object, nullable: true, x-kubernetes-preserve-unknown-fields: true}}`,
			notes: []string{".field.children[]: Tree contains itself", ".field.left: Tree contains itself"}},
		"alternatives that restrict": {field: `{type: object, properties: {a: {type: string}, b: {type: string}}, oneOf: [{required: [a]}, {required: [b]}], not: {required: [a, b]}}`,
			wanted: `{type: object, properties: {a: {type: string}, b: {type: string}}, oneOf: [{required: [a]}, {required: [b]}], not: {required: [a, b]}}`},
		"alternatives that describe": {field: `{type: object, properties: {a: {type: string}}, oneOf: [{$ref: '#/components/schemas/com.example.Port'}, {properties: {c: {type: string}}}]}`,
			wanted: `{type: object, x-kubernetes-preserve-unknown-fields: true}`, notes: []string{".field: allOf, anyOf, oneOf or not describes fields"}},
		"types put together": {field: `{allOf: [{$ref: '#/components/schemas/com.example.Port'}, {$ref: '#/components/schemas/com.example.Tree'}]}`,
			wanted: `{x-kubernetes-preserve-unknown-fields: true}`, notes: []string{".field: allOf, anyOf, oneOf or not describes fields"}},
		"a rule": {field: `{type: integer, x-kubernetes-validations: [{rule: self > 1}]}`, wanted: `{type: integer}`, notes: []string{".field: the rules are left out"}},
	} {
		t.Run(name, func(t *testing.T) {
			version, notes := convert(t, goDocument(t, "field:\n"+indent(test.field, "  ")), thing)
			requireField(t, version.Schema.OpenAPIV3Schema, "field", test.wanted)
			requireNotes(t, notes, test.notes...)
		})
	}
}

func TestLists(t *testing.T) {
	port := `{description: A port., type: object, properties: {name: {type: string}, number: {type: integer, format: int32}, protocol: {type: string, enum: [TCP, UDP, ""]}, note: {type: string}}}`
	for name, test := range map[string]struct {
		list, items, wanted string
		notes               []string
	}{
		"a required key": {list: `x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name]`, items: port,
			wanted: `{x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name], items: {required: [name]}}`},
		"a key with a default": {list: `x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [number, protocol]`,
			wanted: `{x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [number, protocol], items: {required: [number], properties: {protocol: {default: TCP}}}}`},
		"a key with an empty default": {list: `x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [note]`,
			wanted: `{x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [note], items: {properties: {note: {default: ""}}}}`},
		"the older strategy": {list: `x-kubernetes-patch-strategy: merge, x-kubernetes-patch-merge-key: name`,
			wanted: `{x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name], items: {required: [name]}}`},
		"the older strategy beside the newer": {list: `x-kubernetes-patch-strategy: merge, x-kubernetes-patch-merge-key: name, x-kubernetes-list-type: atomic`,
			wanted: `{x-kubernetes-list-type: atomic, items: {nullable: true}}`},
		"a strategy that replaces": {list: `x-kubernetes-patch-strategy: replace`, wanted: `{items: {nullable: true}}`},
		"a key that is no field": {list: `x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [none]`,
			wanted: `{x-kubernetes-list-type: atomic, items: {nullable: true}}`, notes: []string{".field: the list is atomic: its items have no field none"}},
		"no key": {list: `x-kubernetes-list-type: map`,
			wanted: `{x-kubernetes-list-type: atomic, items: {nullable: true}}`, notes: []string{".field: the list is atomic: its items have no keys"}},
		"a key of a list that is no map": {list: `x-kubernetes-list-type: atomic, x-kubernetes-list-map-keys: [note]`,
			wanted: `{x-kubernetes-list-type: atomic, items: {nullable: true, properties: {note: {default: ""}}}}`},
		"a set of objects": {list: `x-kubernetes-list-type: set`,
			wanted: `{x-kubernetes-list-type: atomic, items: {nullable: true}}`, notes: []string{".field: the list is atomic: the members of a set must be atomic"}},
		"an unknown type": {list: `x-kubernetes-list-type: heap`,
			wanted: `{x-kubernetes-list-type: atomic, items: {nullable: true}}`, notes: []string{`.field: the list is atomic: its type is "heap"`}},
	} {
		t.Run(name, func(t *testing.T) {
			version, notes := convert(t, goDocument(t, `field: {type: array, items: `+ref("com.example.Port")+`, `+test.list+`}`), thing)
			field := version.Schema.OpenAPIV3Schema.Properties["field"]
			// All rows have the remaining keywords in common.
			field.Type, field.Nullable, field.Items.Schema.Type, field.Items.Schema.Description = "", false, "", ""
			for name, property := range field.Items.Schema.Properties {
				property.Type, property.Format, property.Enum = "", "", nil
				field.Items.Schema.Properties[name] = property
				if property.Default == nil {
					delete(field.Items.Schema.Properties, name)
				}
			}
			requireSchema(t, &field, test.wanted)
			requireNotes(t, notes, test.notes...)
		})
	}
	t.Run("a set", func(t *testing.T) {
		version, _ := convert(t, goDocument(t, `field: {type: array, items: {type: string}, x-kubernetes-list-type: set}`), thing)
		requireField(t, version.Schema.OpenAPIV3Schema, "field", `{type: array, items: {type: string}, x-kubernetes-list-type: set}`)
	})
	t.Run("a key that may be missing", func(t *testing.T) {
		_, notes := convert(t, goDocument(t, `field: {type: array, items: {type: object, properties: {k: {type: string}}}, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [k]}`), thing)
		requireNotes(t, notes, ".field: the list is atomic: the key k may be missing")
	})
}

// In the status, restrictions are removed and descriptions stay.
func TestStatusOfGoTypes(t *testing.T) {
	version, notes := convert(t, goDocument(t, `
status:
  type: object
  required: [phase]
  properties:
    phase: {type: string, enum: [A], maxLength: 3, default: ""}
    count: {type: integer, format: int32, maximum: 3}
    ports: {type: array, items: `+ref("com.example.Port")+`, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name]}
    free: {type: object}
  oneOf: [{required: [phase]}]
spec: {type: object, properties: {status: {type: string, enum: [A]}}}`), thing)
	requireNotes(t, notes)
	requireSchema(t, new(version.Schema.OpenAPIV3Schema.Properties["status"]), `
type: object
nullable: true
properties:
  phase: {type: string}
  count: {type: integer, format: int32}
  free: {type: object, x-kubernetes-preserve-unknown-fields: true}
  ports:
    type: array
    items:
      description: The field.
      type: object
      nullable: true
      properties: {name: {type: string}, note: {type: string}, protocol: {type: string}, number: {type: integer, format: int32}}`)
	requireField(t, version.Schema.OpenAPIV3Schema, "spec", `{type: object, properties: {status: {type: string, enum: [A, ""]}}}`)
}

// The metadata at the root has the schema of any object's metadata. In a template its fields are converted like all other
// fields.
func TestMetadataOfGoTypes(t *testing.T) {
	version, _ := convert(t, goDocument(t, `template: {type: object, properties: {metadata: `+ref("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta")+`}}`), thing)
	root := version.Schema.OpenAPIV3Schema
	requireSchema(t, new(root.Properties["metadata"]), `{type: object}`)
	requireSchema(t, new(root.Properties["apiVersion"]), `{type: string}`)
	requireField(t, new(root.Properties["template"]), "metadata",
		`{description: The field., type: object, properties: {name: {type: string}, labels: {type: object, additionalProperties: {type: string, nullable: true}}}}`)
	if len(root.Required) > 0 {
		t.Errorf("nothing is required at the root, got %v", root.Required)
	}
}

func TestSubresources(t *testing.T) {
	const scalable = `
spec: {type: object, properties: {replicas: {type: integer, format: int32}}}
status: {type: object, properties: {replicas: {type: integer, format: int32}}}`
	for name, test := range map[string]struct {
		status, scale bool
		properties    string
		wanted        *apiextensionsv1.CustomResourceSubresources
		notes         []string
	}{
		"none":  {properties: scalable},
		"both":  {status: true, scale: true, properties: scalable, wanted: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}, Scale: &apiextensionsv1.CustomResourceSubresourceScale{SpecReplicasPath: ".spec.replicas", StatusReplicasPath: ".status.replicas"}}},
		"scale": {scale: true, properties: "spec: {type: object}", notes: []string{".spec: the subresource scale is left out"}},
	} {
		t.Run(name, func(t *testing.T) {
			kind := thing
			kind.Status, kind.Scale = test.status, test.scale
			version, notes := convert(t, goDocument(t, test.properties), kind)
			requireNotes(t, notes, test.notes...)
			if got := version.Subresources; (got == nil) != (test.wanted == nil) || got != nil && got.String() != test.wanted.String() {
				t.Errorf("got %v, wanted %v", got, test.wanted)
			}
			if version.Name != "v1" || !version.Served || version.Storage {
				t.Errorf("wanted v1, served and not stored, got %s, %t, %t", version.Name, version.Served, version.Storage)
			}
		})
	}
}

// A kind with a status may not have alternatives at its root.
func TestAlternativesAtTheRoot(t *testing.T) {
	kind := thing
	kind.Status = true
	_, notes := convert(t, document(t, `
com.example.v1.Thing:
  x-kubernetes-group-version-kind: [{group: example.com, version: v1, kind: Thing}]
  type: object
  properties: {metadata: `+ref("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta")+`, a: {type: string}}
  anyOf: [{required: [a]}]
`), kind)
	requireNotes(t, notes, ".: allOf, anyOf, oneOf and not are left out")
}
