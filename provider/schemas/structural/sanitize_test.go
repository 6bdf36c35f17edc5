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
	"fmt"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/synchub-dev/synchub/provider/schemas/structural"
)

// versionOf returns a version with a status, whose spec has the schema.
func versionOf(t *testing.T, spec string) *apiextensionsv1.CustomResourceDefinitionVersion {
	t.Helper()
	version := &apiextensionsv1.CustomResourceDefinitionVersion{Name: "v1", Served: true}
	if err := yaml.UnmarshalStrict([]byte(`
subresources: {status: {}}
schema:
  openAPIV3Schema:
    type: object
    properties:
      spec:
`+indent(spec, "        ")), version); err != nil {
		t.Fatalf("%v in\n%s", err, spec)
	}
	return version
}

// Each row is the schema of a spec, and the schema that Sanitize leaves.
func TestSanitize(t *testing.T) {
	for name, test := range map[string]struct {
		spec, wanted string // an empty wanted means that nothing changes
		notes        []string
	}{
		"a legal schema": {spec: `
type: object
required: [a]
x-kubernetes-validations: [{rule: "self.a == oldSelf.a", message: m}]
properties:
  a: {type: string, default: b, enum: [b, c], maxLength: 9, pattern: "^[a-z]+$", format: unknown}
  port: {x-kubernetes-int-or-string: true, anyOf: [{type: integer}, {type: string}]}
  pod: {type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true}
  list: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [k], items: {type: object, required: [k], properties: {k: {type: string}}}}
oneOf: [{required: [port]}, {properties: {a: {minLength: 2}}}]`},
		"a rule that does not compile": {spec: `{type: string, x-kubernetes-validations: [{rule: "self.size() > 1"}, {rule: "self.none() == 1"}]}`,
			wanted: `{type: string, x-kubernetes-validations: [{rule: "self.size() > 1"}]}`, notes: []string{`.spec: the rule "self.none() == 1" is left out: compilation failed`}},
		"a rule that is too expensive": {
			spec:   `{type: array, items: {type: string}, x-kubernetes-validations: [{rule: "self.all(a, self.all(b, self.all(c, a + b != c)))"}, {rule: "self.size() < 9"}]}`,
			wanted: `{type: array, items: {type: string}, x-kubernetes-validations: [{rule: "self.size() < 9"}]}`,
			notes:  []string{`.spec: the rule "self.all(a, self.all(b, self.all(c, a + b != c)))" is left out: estimated rule cost exceeds budget`},
		},
		"a message that does not compile": {spec: `{type: string, x-kubernetes-validations: [{rule: "self.size() > 1", messageExpression: "self.none()"}]}`,
			wanted: `{type: string, x-kubernetes-validations: [{rule: "self.size() > 1"}]}`, notes: []string{`.spec: the messageExpression of the rule "self.size() > 1" is left out`}},
		"a rule on the old value of an item that has none": {spec: `{type: array, items: {type: string, x-kubernetes-validations: [{rule: "self == oldSelf"}]}}`,
			wanted: `{type: array, items: {type: string}}`, notes: []string{`.spec[]: the rule "self == oldSelf" is left out`}},
		"a default of another type": {spec: `{type: object, properties: {a: {type: string, default: 7}, b: {type: integer, default: 7}}}`,
			wanted: `{type: object, properties: {a: {type: string}, b: {type: integer, default: 7}}}`, notes: []string{".spec.a: default is left out"}},
		"a default with unknown fields": {spec: `{type: object, default: {b: 1}, properties: {a: {type: string}}}`,
			wanted: `{type: object, properties: {a: {type: string}}}`, notes: []string{".spec: default is left out"}},
		"a pattern that does not compile": {spec: `{type: string, pattern: "(?=a)"}`, wanted: `{type: string}`, notes: []string{".spec: pattern is left out"}},
		"a junctor that describes": {spec: `{type: object, properties: {a: {type: string}}, anyOf: [{properties: {a: {type: string}}}]}`,
			wanted: `{type: object, properties: {a: {type: string}}}`, notes: []string{".spec: anyOf is left out"}},
		"a negation with a default": {spec: `{type: object, properties: {a: {type: string}}, not: {properties: {a: {default: b}}}}`,
			wanted: `{type: object, properties: {a: {type: string}}}`, notes: []string{".spec: not is left out"}},
		"unique items":                 {spec: `{type: array, uniqueItems: true, items: {type: string}}`, wanted: `{type: array, items: {type: string}}`, notes: []string{".spec: uniqueItems is left out"}},
		"unknown fields not preserved": {spec: `{type: object, x-kubernetes-preserve-unknown-fields: false}`, wanted: `{type: object}`},
		"a key that may be null": {spec: `{type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [k], items: {type: object, required: [k], properties: {k: {type: string, nullable: true}}}}`,
			wanted: `{type: array, x-kubernetes-list-type: atomic, items: {type: object, required: [k], properties: {k: {type: string, nullable: true}}}}`,
			notes:  []string{".spec: the list is atomic: the key k may be null"}},
		"a key twice": {spec: `{type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [k, k], items: {type: object, required: [k], properties: {k: {type: string}}}}`,
			wanted: `{type: array, x-kubernetes-list-type: atomic, items: {type: object, required: [k], properties: {k: {type: string}}}}`, notes: []string{".spec: the list is atomic: the key k is named twice"}},
		"a key that is a list": {spec: `{type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [k], items: {type: object, required: [k], properties: {k: {type: array, items: {type: string}}}}}`,
			wanted: `{type: array, x-kubernetes-list-type: atomic, items: {type: object, required: [k], properties: {k: {type: array, items: {type: string}}}}}`, notes: []string{".spec: the list is atomic: the key k is no scalar"}},
		"items that may be null": {spec: `{type: array, x-kubernetes-list-type: set, items: {type: string, nullable: true}}`,
			wanted: `{type: array, x-kubernetes-list-type: atomic, items: {type: string, nullable: true}}`, notes: []string{".spec: the list is atomic: its items may be null"}},
		"keys without a list type": {spec: `{type: array, x-kubernetes-list-map-keys: [k], items: {type: string}}`,
			wanted: `{type: array, x-kubernetes-list-type: atomic, items: {type: string}}`, notes: []string{".spec: the list is atomic"}},
		"a list type on no list": {spec: `{type: string, x-kubernetes-list-type: atomic}`, wanted: `{type: string}`, notes: []string{".spec: the list is atomic: it is no list"}},
		"a map type on no map":   {spec: `{type: string, x-kubernetes-map-type: atomic}`, wanted: `{type: string}`},
		"faults in items and values": {spec: `{type: object, additionalProperties: {type: array, items: {type: string, pattern: "("}}}`,
			wanted: `{type: object, additionalProperties: {type: array, items: {type: string}}}`, notes: []string{".spec.*[]: pattern is left out"}},
		"a field with a dot in its name": {spec: `{type: object, properties: {a.b: {type: string, pattern: "("}, a: {type: string, pattern: b}}}`,
			wanted: `{type: object, properties: {a.b: {type: string}, a: {type: string, pattern: b}}}`, notes: []string{".spec.a.b: pattern is left out"}},
	} {
		t.Run(name, func(t *testing.T) {
			version := versionOf(t, test.spec)
			notes, err := structural.Sanitize(t.Context(), version)
			if err != nil {
				t.Fatal(err)
			}
			requireValid(t, version)
			wanted := test.wanted
			if wanted == "" {
				wanted = test.spec
			}
			requireSchema(t, new(version.Schema.OpenAPIV3Schema.Properties["spec"]), wanted)
			requireNotes(t, notes, test.notes...)

			if again, err := structural.Sanitize(t.Context(), version); err != nil || len(again) > 0 {
				t.Errorf("the sanitized schema is not legal: %v, %v", again, err)
			}
		})
	}
}

// Sanitize removes rules that are only together too expensive one by one, the most expensive first.
func TestSanitizeKeepsTheCheapRules(t *testing.T) {
	var rules, fields strings.Builder
	for i := range 15 {
		fmt.Fprintf(&rules, "- {rule: \"self.list%d.all(a, a.contains('b'))\"}\n", i)
		fmt.Fprintf(&fields, "list%d: {type: array, maxItems: 800, items: {type: string, maxLength: 100000}}\n", i)
	}
	version := versionOf(t, "type: object\nx-kubernetes-validations:\n- {rule: \"self.a == 'b'\"}\n"+rules.String()+"properties:\n  a: {type: string, maxLength: 3}\n"+indent(fields.String(), "  "))
	notes, err := structural.Sanitize(t.Context(), version)
	if err != nil {
		t.Fatal(err)
	}
	requireValid(t, version)
	kept := version.Schema.OpenAPIV3Schema.Properties["spec"].XValidations
	if len(notes) == 0 || len(notes)+len(kept) != 16 {
		t.Errorf("wanted some of 16 rules to be left out, kept %d, got the notes %v", len(kept), notes)
	}
	if kept[0].Rule != "self.a == 'b'" {
		t.Errorf("the cheap rule is gone: %v", kept)
	}
}

// Servers require only at the root that combinators restrict fields that the schema describes.
func TestSanitizeTheRoot(t *testing.T) {
	version := versionOf(t, `{type: object}`)
	version.Subresources = nil
	root := version.Schema.OpenAPIV3Schema
	unknown := apiextensionsv1.JSONSchemaProps{Properties: map[string]apiextensionsv1.JSONSchemaProps{"b": {MinLength: new(int64(1))}}}
	root.AllOf = []apiextensionsv1.JSONSchemaProps{{Not: &unknown}}
	root.OneOf = []apiextensionsv1.JSONSchemaProps{{Required: []string{"spec"}}}
	notes, err := structural.Sanitize(t.Context(), version)
	if err != nil {
		t.Fatal(err)
	}
	requireValid(t, version)
	requireSchema(t, root, `{type: object, properties: {spec: {type: object}}, oneOf: [{required: [spec]}]}`)
	requireNotes(t, notes, ".: allOf is left out: because it is defined in")
}

func TestSanitizeRefuses(t *testing.T) {
	for name, spec := range map[string]string{
		"a reference":         `{$ref: "#/definitions/x"}`,
		"a type that is none": `{type: text}`,
		"a list of nothing":   `{type: array}`,
		"no type":             `{description: d}`,
		"many faults":         `{type: object, properties: {a: {}, b: {}, c: {}, d: {}, e: {}, f: {}, g: {type: string, description: ` + strings.Repeat("long", 1000) + `}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			if notes, err := structural.Sanitize(t.Context(), versionOf(t, spec)); err == nil || !strings.Contains(err.Error(), "the schema of version v1") {
				t.Errorf("wanted an error, got %v and the notes %v", err, notes)
			} else if len(err.Error()) > 1000 {
				t.Errorf("an error of %d bytes is too long: %v", len(err.Error()), err)
			}
		})
	}
	t.Run("no schema", func(t *testing.T) {
		if _, err := structural.Sanitize(t.Context(), &apiextensionsv1.CustomResourceDefinitionVersion{Name: "v1"}); err == nil {
			t.Error("wanted an error")
		}
	})
}

func TestPreserveUnknownFields(t *testing.T) {
	version := versionOf(t, `{type: object, properties: {a: {type: string}, b: {type: array, items: {type: object}}, c: {type: object, additionalProperties: {type: string}}}}`)
	structural.PreserveUnknownFields(version)
	requireValid(t, version)
	requireSchema(t, version.Schema.OpenAPIV3Schema, `
type: object
x-kubernetes-preserve-unknown-fields: true
properties:
  spec:
    type: object
    x-kubernetes-preserve-unknown-fields: true
    properties:
      a: {type: string}
      b: {type: array, items: {type: object, x-kubernetes-preserve-unknown-fields: true}}
      c: {type: object, additionalProperties: {type: string}}`)

	none := &apiextensionsv1.CustomResourceDefinitionVersion{Name: "v1"}
	structural.PreserveUnknownFields(none)
	requireValid(t, none)
	requireSchema(t, none.Schema.OpenAPIV3Schema, `{type: object, x-kubernetes-preserve-unknown-fields: true}`)
}

func TestDropDescriptions(t *testing.T) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	crd.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{*versionOf(t, `{type: object, description: d, properties: {a: {type: array, items: {type: string, description: e}}}}`)}
	if structural.DropDescriptions(crd) || crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Description == "" {
		t.Error("a small definition was shortened")
	}
	crd.Spec.Versions = append(crd.Spec.Versions, *versionOf(t, `{type: string, description: `+strings.Repeat("long ", 250_000)+`}`))
	if !structural.DropDescriptions(crd) {
		t.Fatal("a large definition was not shortened")
	}
	requireSchema(t, new(crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]), `{type: object, properties: {a: {type: array, items: {type: string}}}}`)
	requireSchema(t, new(crd.Spec.Versions[1].Schema.OpenAPIV3Schema.Properties["spec"]), `{type: string}`)
}

func TestUnstoredFields(t *testing.T) {
	for name, test := range map[string]struct {
		version, storage string
		wanted           []string
	}{
		"the same":        {version: `{type: object, properties: {a: {type: string}}}`, storage: `{type: object, properties: {a: {type: string}, b: {type: string}}}`},
		"another field":   {version: `{type: object, properties: {a: {type: object, properties: {b: {type: string}}}, c: {type: string}}}`, storage: `{type: object, properties: {c: {type: string}}}`, wanted: []string{".spec.a: it is lost"}},
		"deeper":          {version: `{type: array, items: {type: object, additionalProperties: {type: object, properties: {a: {type: string}}}}}`, storage: `{type: array, items: {type: object, additionalProperties: {type: object}}}`, wanted: []string{".spec[].*.a: it is lost"}},
		"free fields":     {version: `{type: object, properties: {a: {type: string}}}`, storage: `{type: object, x-kubernetes-preserve-unknown-fields: true}`},
		"fields in a map": {version: `{type: object, properties: {a: {type: string}}}`, storage: `{type: object, additionalProperties: {type: string}}`},
		"a map in fields": {version: `{type: object, additionalProperties: {type: string}}`, storage: `{type: object, properties: {a: {type: string}}}`, wanted: []string{".spec.*: it is lost"}},
	} {
		t.Run(name, func(t *testing.T) {
			requireNotes(t, structural.UnstoredFields(versionOf(t, test.version), versionOf(t, test.storage)), test.wanted...)
		})
	}
}
