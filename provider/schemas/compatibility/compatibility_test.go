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

package compatibility_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/synchub-dev/synchub/provider/schemas/compatibility"
	"github.com/synchub-dev/synchub/test/fixtures"
)

// wholeSchema returns the schema of objects whose spec has the given schema, in YAML.
func wholeSchema(t *testing.T, spec string) *apiextensionsv1.JSONSchemaProps {
	t.Helper()
	node := fixtures.Decode[*apiextensionsv1.JSONSchemaProps](t, spec)
	return &apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
		"metadata": {Type: "object"}, "spec": *node,
	}}
}

func TestCompare(t *testing.T) {
	const strict, wide = `{type: object, properties: {a: {type: string, maxLength: 3}}, required: [a]}`, `{type: object, properties: {a: {type: string}, b: {type: string}}}`
	for name, test := range map[string]struct {
		mailbox, target string
		// want contains the fields with their reasons.
		want []string
	}{
		"a narrower mailbox":          {strict, wide, nil},
		"a narrower target":           {wide, strict, []string{"spec.a Required", "spec.a Length", "spec.b FieldLost"}},
		"an integer for a number":     {`{type: integer}`, `{type: number}`, nil},
		"a number for an integer":     {`{type: number}`, `{type: integer}`, []string{"spec Type"}},
		"anything for something":      {`{x-kubernetes-preserve-unknown-fields: true}`, `{type: object}`, []string{"spec Type"}},
		"something for anything":      {strict, `{x-kubernetes-preserve-unknown-fields: true}`, nil},
		"either for both":             {`{x-kubernetes-int-or-string: true}`, `{type: string}`, []string{"spec Type"}},
		"one for either":              {`{type: string}`, `{x-kubernetes-int-or-string: true, anyOf: [{type: integer}, {type: string}]}`, nil},
		"either, in two notations":    {`{x-kubernetes-int-or-string: true}`, `{x-kubernetes-int-or-string: true, allOf: [{anyOf: [{type: integer}, {type: string}]}]}`, nil},
		"either, and more":            {`{x-kubernetes-int-or-string: true}`, `{x-kubernetes-int-or-string: true, allOf: [{anyOf: [{type: integer}, {type: string}]}, {maxLength: 1}]}`, []string{"spec Alternatives"}},
		"null in a field":             {`{type: object, properties: {a: {type: string, nullable: true}}}`, `{type: object, properties: {a: {type: string}}}`, nil},
		"null in a required field":    {`{type: object, required: [a], properties: {a: {type: string, nullable: true}}}`, `{type: object, required: [a], properties: {a: {type: string}}}`, []string{"spec.a Null"}},
		"null in a list":              {`{type: array, items: {type: string, nullable: true}}`, `{type: array, items: {type: string}}`, []string{"spec[] Null"}},
		"fewer values":                {`{type: string, enum: [a]}`, `{type: string, enum: [a, b]}`, nil},
		"other values":                {`{type: string, enum: [a, c]}`, `{type: string, enum: [a, b]}`, []string{"spec Enum"}},
		"fewer values or null":        {`{type: string, nullable: true, allOf: [{enum: [a]}]}`, `{type: string, nullable: true, allOf: [{enum: [a, b]}]}`, nil},
		"other values or null":        {`{type: string, nullable: true, allOf: [{enum: [a, c]}]}`, `{type: string, nullable: true, allOf: [{enum: [a, b]}]}`, []string{"spec Enum"}},
		"values below":                {`{type: string}`, `{type: string, enum: [a, b]}`, []string{"spec Enum"}},
		"values that fit a pattern":   {`{type: string, enum: [a, ab]}`, `{type: string, pattern: ^a, maxLength: 2}`, nil},
		"values that do not":          {`{type: string, enum: [a, b]}`, `{type: string, pattern: ^a}`, []string{"spec Enum"}},
		"a wider range":               {`{type: integer, minimum: 1, maximum: 5}`, `{type: integer, minimum: 0, maximum: 5}`, nil},
		"a bound that is excluded":    {`{type: integer, minimum: 1}`, `{type: integer, minimum: 1, exclusiveMinimum: true}`, []string{"spec Range"}},
		"a lower maximum":             {`{type: integer, maximum: 6}`, `{type: integer, maximum: 5}`, []string{"spec Range"}},
		"a bound that is cut off":     {`{type: number, minimum: 1.5}`, `{type: number, minimum: 1.2, exclusiveMinimum: true}`, []string{"spec Range"}},
		"a bound that is no integer":  {`{type: integer, minimum: 2}`, `{type: integer, minimum: 1.5}`, []string{"spec Range"}},
		"multiples of multiples":      {`{type: integer, multipleOf: 4}`, `{type: integer, multipleOf: 2}`, nil},
		"other multiples":             {`{type: integer, multipleOf: 3}`, `{type: integer, multipleOf: 2}`, []string{"spec MultipleOf"}},
		"a format":                    {`{type: string}`, `{type: string, format: ipv4}`, []string{"spec Format"}},
		"a format by another name":    {`{type: string, format: datetime}`, `{type: string, format: date-time}`, nil},
		"a format that means nothing": {`{type: string}`, `{type: string, format: animal}`, nil},
		"a short integer":             {`{type: integer}`, `{type: integer, format: int32}`, []string{"spec Format"}},
		"one that is short anyway":    {`{type: integer, minimum: 0, maximum: 9}`, `{type: integer, format: int32}`, nil},
		"a pattern":                   {`{type: string, pattern: ^b}`, `{type: string, pattern: ^a}`, []string{"spec Pattern"}},
		"more items":                  {`{type: array, items: {type: string}, maxItems: 3}`, `{type: array, items: {type: string}, maxItems: 2}`, []string{"spec Items"}},
		"duplicates in a set":         {`{type: array, items: {type: string}}`, `{type: array, items: {type: string}, x-kubernetes-list-type: set}`, []string{"spec Duplicates"}},
		"a single item in a set":      {`{type: array, items: {type: string}, maxItems: 1}`, `{type: array, items: {type: string}, x-kubernetes-list-type: set}`, nil},
		"a set in a list":             {`{type: array, items: {type: string}, x-kubernetes-list-type: set}`, `{type: array, items: {type: string}}`, nil},
		"fewer keys":                  {keyed("a", "b"), keyed("a"), []string{"spec Duplicates"}},
		"more keys":                   {keyed("a"), keyed("a", "b"), nil},
		"an atomic list for keys":     {strings.ReplaceAll(keyed("a"), "list-type: map", "list-type: atomic"), keyed("a"), []string{"spec Duplicates"}},
		"a required field, default":   {`{type: object, properties: {a: {type: string}}}`, `{type: object, required: [a], properties: {a: {type: string, default: x}}}`, nil},
		"a required field, ours":      {`{type: object, properties: {a: {type: string, default: x}}}`, `{type: object, required: [a], properties: {a: {type: string}}}`, nil},
		"a default under a rule":      {`{type: object, properties: {a: {type: string}}, maxProperties: 1}`, `{type: object, maxProperties: 1, properties: {a: {type: string, default: x}}}`, []string{"spec.a Default"}},
		"a map for fields":            {`{type: object, additionalProperties: {type: string}}`, `{type: object, properties: {a: {type: string, maxLength: 1}}}`, []string{"spec.a Length", "spec.* FieldLost"}},
		"fields for a map":            {`{type: object, properties: {a.b: {type: integer}}}`, `{type: object, additionalProperties: {type: string}}`, []string{"spec['a.b'] Type"}},
		"unknown fields":              {`{type: object, x-kubernetes-preserve-unknown-fields: true}`, `{type: object, properties: {a: {type: string}}}`, []string{"spec.a Type", "spec.* FieldLost"}},
		"unknown fields below":        {wide, `{type: object, x-kubernetes-preserve-unknown-fields: true}`, nil},
		"values without fields":       {`{type: object, additionalProperties: {type: object, properties: {a: {type: string}}}}`, `{type: object, additionalProperties: true}`, []string{"spec.* FieldLost"}},
		"a resource":                  {`{type: object, x-kubernetes-preserve-unknown-fields: true}`, `{type: object, x-kubernetes-preserve-unknown-fields: true, x-kubernetes-embedded-resource: true}`, []string{"spec EmbeddedResource"}},
		"a resource for fields":       {`{type: object, properties: {a: {type: string}}, x-kubernetes-embedded-resource: true}`, `{type: object, properties: {a: {type: string}}}`, []string{"spec.apiVersion FieldLost", "spec.kind FieldLost", "spec.metadata FieldLost"}},
		"a number of fields":          {`{type: object, additionalProperties: {type: string}}`, `{type: object, additionalProperties: {type: string}, minProperties: 1}`, []string{"spec Properties"}},
		"the same rule":               {`{type: string, x-kubernetes-validations: [{rule: "self != 'a'", message: b}]}`, `{type: string, x-kubernetes-validations: [{rule: "self != 'a'"}]}`, nil},
		"another rule":                {`{type: string, x-kubernetes-validations: [{rule: "self != 'a'"}]}`, `{type: string, x-kubernetes-validations: [{rule: "self != 'b'"}]}`, []string{"spec Rule"}},
		"a rule about few values":     {`{type: string, enum: [a]}`, `{type: string, x-kubernetes-validations: [{rule: "self != 'b'"}]}`, []string{"spec Rule"}},
		"a rule that looks back":      {`{type: string, x-kubernetes-validations: [{rule: "self == oldSelf"}]}`, `{type: string, x-kubernetes-validations: [{rule: "self == oldSelf", optionalOldSelf: true}]}`, []string{"spec Rule"}},
		"fewer alternatives":          {`{type: integer, anyOf: [{minimum: 1}]}`, `{type: integer, anyOf: [{minimum: 1}, {maximum: -1}]}`, nil},
		"other alternatives":          {`{type: integer, anyOf: [{minimum: 1}, {maximum: 0}]}`, `{type: integer, anyOf: [{minimum: 1}, {maximum: -1}]}`, []string{"spec Alternatives"}},
		"one of":                      {`{type: integer}`, `{type: integer, oneOf: [{minimum: 1}]}`, []string{"spec Alternatives"}},
		"not":                         {`{type: integer}`, `{type: integer, not: {minimum: 1}}`, []string{"spec Alternatives"}},
		"all of":                      {`{type: integer, allOf: [{minimum: 1}, {maximum: 3}]}`, `{type: integer, allOf: [{maximum: 3}]}`, nil},
		"more of all of":              {`{type: integer, allOf: [{maximum: 3}]}`, `{type: integer, allOf: [{minimum: 1}, {maximum: 3}]}`, []string{"spec Alternatives"}},
		"descriptions do not count":   {`{type: string, description: a}`, `{type: string, description: b}`, nil},
		"deep in lists and maps":      {`{type: array, items: {type: object, additionalProperties: {type: string}}}`, `{type: array, items: {type: object, additionalProperties: {type: integer}}}`, []string{"spec[].* Type"}},
		"inner fields are not listed": {`{type: object, properties: {a: {type: object, properties: {b: {type: string}}}}}`, `{type: object}`, []string{"spec.a FieldLost"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, finding := range compatibility.Compare(t.Context(), wholeSchema(t, test.mailbox), wholeSchema(t, test.target)) {
				got = append(got, fmt.Sprintf("%s %s", finding.Field, finding.Reason))
				if finding.Message == "" || !strings.HasPrefix(finding.String(), finding.Field+": ") {
					t.Errorf("it reads %q", finding)
				}
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("want %q\ngot  %q", test.want, got)
			}
		})
	}
}

// keyed returns the schema of a list of objects with the fields a and b. keys are the fields that identify an item.
func keyed(keys ...string) string {
	return fmt.Sprintf(`{type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [%s],
		items: {type: object, required: [a, b], properties: {a: {type: string}, b: {type: string}}}}`, strings.Join(keys, ", "))
}

func TestCompareMetadata(t *testing.T) {
	plain, named := wholeSchema(t, `{type: object}`), wholeSchema(t, `{type: object}`)
	metadata := named.Properties["metadata"]
	metadata.Properties = map[string]apiextensionsv1.JSONSchemaProps{"name": {Type: "string", MaxLength: new(int64(5))}}
	named.Properties["metadata"] = metadata
	named.Required = []string{"apiVersion", "kind", "metadata"}
	if findings := compatibility.Compare(t.Context(), named, plain); len(findings) > 0 {
		t.Errorf("%v", findings)
	}
	findings := compatibility.Compare(t.Context(), plain, named)
	if len(findings) != 1 || findings[0].Field != "metadata.name" || findings[0].Reason != compatibility.ReasonLength {
		t.Errorf("%v", findings)
	}
}

// A nil schema accepts everything, and Compare terminates for it.
func TestCompareWithoutSchemas(t *testing.T) {
	some := wholeSchema(t, `{type: object}`)
	if findings := slices.Concat(compatibility.Compare(t.Context(), nil, nil), compatibility.Compare(t.Context(), some, nil)); len(findings) > 0 {
		t.Errorf("%v", findings)
	}
	if findings := compatibility.Compare(t.Context(), nil, some); len(findings) == 0 {
		t.Error("anything fits into something")
	}
}

// Compare bounds its work and its findings for schemas of any size and depth.
func TestCompareIsBounded(t *testing.T) {
	wide := apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{}}
	for i := range 1000 {
		wide.Properties[fmt.Sprint(i)] = apiextensionsv1.JSONSchemaProps{Type: "string"}
	}
	values := func(inside apiextensionsv1.JSONSchemaProps) *apiextensionsv1.JSONSchemaProps {
		return &apiextensionsv1.JSONSchemaProps{Type: "object", AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{Schema: &inside}}
	}
	names := func(inside apiextensionsv1.JSONSchemaProps) *apiextensionsv1.JSONSchemaProps {
		all := &apiextensionsv1.JSONSchemaProps{Type: "object", Properties: maps.Clone(wide.Properties)}
		for name := range all.Properties {
			all.Properties[name] = inside
		}
		return all
	}
	deep := apiextensionsv1.JSONSchemaProps{Type: "string"}
	for range 1000 {
		deep = apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"a": deep}}
	}
	for name, pair := range map[string][2]*apiextensionsv1.JSONSchemaProps{
		"many findings":   {&wide, {Type: "object"}},
		"too many fields": {names(wide), values(wide)},
		"too deep":        {&deep, &deep},
	} {
		findings := compatibility.Compare(t.Context(), pair[0], pair[1])
		if len(findings) == 0 || len(findings) > 51 || findings[len(findings)-1].Reason != compatibility.ReasonTooLarge {
			t.Errorf("%s: %d findings, the last is %v", name, len(findings), findings[max(0, len(findings)-1):])
		}
	}
}

func FuzzCompare(f *testing.F) {
	f.Add(`{"type": "object", "properties": {"a": {"type": "string", "enum": ["a"]}}}`, `{"type": "object", "x-kubernetes-preserve-unknown-fields": true}`)
	f.Add(`{}`, `{"type": "array", "items": {}}`)
	f.Add(`{"type": "integer", "enum": ["a", null, 1.5]}`, `{"anyOf": [{"not": {}}], "format": "ipv4", "x-kubernetes-list-type": "map"}`)
	f.Fuzz(func(t *testing.T, mailbox, target string) {
		mine, theirs := &apiextensionsv1.JSONSchemaProps{}, &apiextensionsv1.JSONSchemaProps{}
		if yaml.Unmarshal([]byte(mailbox), mine) != nil || yaml.Unmarshal([]byte(target), theirs) != nil {
			return
		}
		first, second := compatibility.Compare(t.Context(), mine, theirs), compatibility.Compare(t.Context(), mine, theirs)
		if !slices.Equal(first, second) {
			t.Errorf("first %v, then %v", first, second)
		}
	})
}
