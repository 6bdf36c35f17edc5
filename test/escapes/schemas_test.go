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

package escapes

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/synchub-dev/synchub/provider/schemas/compatibility"
	"github.com/synchub-dev/synchub/provider/schemas/structural"
)

type props = apiextensionsv1.JSONSchemaProps

// spec returns a version of a CRD with a field spec.
func spec(content props) *apiextensionsv1.CustomResourceDefinitionVersion {
	content.Type = "object"
	root := &props{Type: "object", Properties: map[string]props{"spec": content}}
	return &apiextensionsv1.CustomResourceDefinitionVersion{Name: "v1", Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: root}}
}

// fields returns the given number of fields of one kind.
func fields(count int, field func(index int) props) map[string]props {
	all := make(map[string]props, count)
	for i := range count {
		all[fmt.Sprintf("f%d", i)] = field(i)
	}
	return all
}

func text(int) props { return props{Type: "string"} }

// nested returns fields that are nested in each other.
func nested(levels int, innermost props) props {
	for range levels {
		innermost = props{Type: "object", Properties: map[string]props{"a": innermost}}
	}
	return innermost
}

func rules(count int, rule func(index int) string) (all apiextensionsv1.ValidationRules) {
	for i := range count {
		all = append(all, apiextensionsv1.ValidationRule{Rule: rule(i)})
	}
	return all
}

func values(count int) (all []apiextensionsv1.JSON) {
	for i := range count {
		all = append(all, apiextensionsv1.JSON{Raw: fmt.Appendf(nil, "%q", fmt.Sprint(i))})
	}
	return all
}

// Any schema of a target is either compared in limited time, or rejected with the name of the exceeded limit.
func TestHostileSchemas(t *testing.T) {
	numbered := func(format string) func(int) string {
		return func(i int) string { return fmt.Sprintf(format, i) }
	}
	for name, test := range map[string]struct {
		content props
		// limit is the name of the exceeded limit; empty if the schema is compared.
		limit string
	}{
		"nothing":                      {props{}, ""},
		"a large kind":                 {props{Properties: fields(20_000, text)}, ""},
		"3,000 rules on one field":     {props{Properties: fields(1, text), XValidations: rules(3000, numbered("self.f0 != '%d'"))}, "rules"},
		"20,000 rules on 20,000":       {props{Properties: fields(20_000, func(int) props { return props{Type: "string", XValidations: rules(1, numbered("self != 'x'"))} })}, "rules"},
		"as many rules as there may":   {props{Properties: fields(1, text), XValidations: rules(1000, numbered("self.f0 != '%d'"))}, ""},
		"rules that all are wrong":     {props{Properties: fields(1, text), XValidations: rules(1000, numbered("self.nothing%d"))}, ""},
		"rules too dear together":      {props{Properties: fields(100, expensiveSchema)}, ""},
		"rules at many levels":         {manyLevels(60, 9_000), "fields that rules look at"},
		"a rule of a megabyte":         {props{XValidations: rules(1, func(int) string { return "true" + strings.Repeat(" || true", 1<<17) })}, "characters in one rule"},
		"many long rules":              {props{XValidations: rules(100, func(int) string { return "true" + strings.Repeat(" || true", 900) })}, "characters in all rules"},
		"a rule that is nested":        {props{XValidations: rules(1, func(int) string { return strings.Repeat("(", 4000) + "true" + strings.Repeat(")", 4000) })}, "brackets within each other in a rule"},
		"lists in lists in a rule":     {props{XValidations: rules(1, func(int) string { return strings.Repeat("[", 200) + "1" + strings.Repeat("]", 200) + ".size() > 0" })}, "brackets within each other in a rule"},
		"lists in lists, as may be":    {props{XValidations: rules(20, func(int) string { return strings.Repeat("[", 24) + "1" + strings.Repeat("]", 24) + ".size() > 0" })}, ""},
		"a message expression":         {props{XValidations: apiextensionsv1.ValidationRules{{Rule: "true", MessageExpression: strings.Repeat("'a' + ", 20_000) + "'a'"}}}, "characters in one rule"},
		"100,000 fields":               {props{Properties: fields(100_000, text)}, "fields"},
		"fields in fields":             {nested(500, props{Type: "string"}), "levels of fields"},
		"lists in lists":               {props{Properties: map[string]props{"a": lists(500)}}, "levels of fields"},
		"alternatives without end":     {props{AnyOf: alternatives(100_000)}, "fields"},
		"alternatives in alternatives": {props{AllOf: []props{inAllOf(300)}}, "levels of fields"},
		"an enum of 100,000":           {props{Properties: map[string]props{"a": {Type: "string", Enum: values(100_000)}}}, "values in enums"},
		"many enums":                   {props{Properties: fields(200, func(int) props { return props{Type: "string", Enum: values(256)} })}, "values in enums"},
		"a pattern that repeats":       {props{Properties: fields(1, pattern(strings.Repeat("(?:abcdefghij)", 50)+"{1000}"))}, ""},
		"a pattern that unfolds":       {props{Properties: fields(1, pattern("(?:"+strings.Repeat("abcdefghij", 100)+"){1000}"))}, "steps in the patterns"},
		"many that unfold":             {props{Properties: fields(100, pattern("(?:abcdefghij){1000}"))}, "steps in the patterns"},
		"a pattern of a megabyte":      {props{Properties: fields(1, pattern(strings.Repeat("a", 1<<20)))}, "characters in one pattern"},
		"a pattern that backtracks":    {props{Properties: fields(1, pattern("^(a+)+$"))}, ""},
		"a pattern that is none":       {props{Properties: fields(1, pattern("(a{1000}){1000}["))}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			version := spec(test.content)
			notes, err := structural.Sanitize(t.Context(), version)
			tooLarge, isTooLarge := errors.AsType[*structural.TooLargeError](err)
			switch {
			case test.limit == "" && isTooLarge:
				t.Errorf("it is within the limits, and refused: %v", err)
			case test.limit != "" && (!isTooLarge || tooLarge.What != test.limit):
				t.Errorf("want the limit of %s, got %v", test.limit, err)
			case test.limit == "" && err == nil:
				root := version.Schema.OpenAPIV3Schema
				if findings := compatibility.Compare(t.Context(), root, root); len(findings) > 0 {
					t.Errorf("it does not fit into itself: %v", findings[0])
				}
			}
			for _, note := range notes {
				if len(note.String()) > 2000 {
					t.Errorf("a note of %d bytes", len(note.String()))
				}
			}
		})
	}
}

// expensiveSchema returns a list with a rule whose cost alone is just within the limit.
func expensiveSchema(index int) props {
	items := &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &props{Type: "string", MaxLength: new(int64(20))}}
	return props{Type: "array", MaxItems: new(int64(100_000)), Items: items, XValidations: rules(1, func(int) string {
		return fmt.Sprintf("self.all(x, x.startsWith('a%d') || x.endsWith('b'))", index)
	})}
}

// manyLevels returns a schema with a rule at every level that iterates over all leaves.
func manyLevels(levels, count int) props {
	node := props{Type: "object", Properties: fields(count, text)}
	for range levels {
		node = props{Type: "object", Properties: map[string]props{"a": node}, XValidations: rules(1, func(int) string { return "has(self.a)" })}
	}
	return node
}

func lists(levels int) props {
	node := props{Type: "string"}
	for range levels {
		node = props{Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: new(node)}}
	}
	return node
}

func alternatives(count int) []props {
	all := make([]props, count)
	for i := range all {
		all[i].Required = []string{"a"}
	}
	return all
}

func inAllOf(levels int) props {
	node := props{Required: []string{"a"}}
	for range levels {
		node = props{AllOf: []props{node}}
	}
	return node
}

func pattern(text string) func(int) props {
	return func(int) props { return props{Type: "string", Pattern: text} }
}

// If one side names fields and the other allows any, the same schema is compared with each field; that comparison is
// limited too.
func TestHostileComparisons(t *testing.T) {
	branches := alternatives(300)
	for i := range branches {
		branches[i] = props{Required: []string{fmt.Sprint(i)}, Properties: fields(30, text)}
	}
	anyOf := func(value props) *props {
		return &props{Type: "object", AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{Allows: true, Schema: &value}}
	}
	named := &props{Type: "object", Properties: fields(20_000, text)}
	for name, test := range map[string][2]*props{
		"alternatives with each field": {anyOf(props{Type: "object", AnyOf: branches}), named},
		"an enum with each field":      {anyOf(props{Type: "string", Enum: values(256), Pattern: "(?:abcdefghij){900}"}), named},
		"rules with each field":        {anyOf(props{Type: "string"}), anyOf(props{Type: "string", XValidations: rules(1000, func(i int) string { return fmt.Sprint(i) })})},
		"fields with each field":       {anyOf(props{Type: "object", Properties: maps.Clone(named.Properties)}), named},
	} {
		t.Run(name, func(t *testing.T) {
			for _, pair := range [][2]*props{test, {test[1], test[0]}} {
				if findings := compatibility.Compare(t.Context(), pair[0], pair[1]); len(findings) > 60 {
					t.Errorf("%d findings", len(findings))
				}
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if findings := compatibility.Compare(ctx, named, named); len(findings) == 0 {
		t.Error("an aborted comparison reports that all fields fit")
	}
}

// Documents are limited in size, in depth, and in the size to which small ones expand.
func TestHostileDocuments(t *testing.T) {
	kind := structural.Kind{GroupVersionKind: schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Thing"}, Plural: "things"}
	document := func(thing string, more ...string) []byte {
		return []byte(`{"components":{"schemas":{"Thing":{"type":"object","x-kubernetes-group-version-kind":[{"group":"example.com","version":"v1","kind":"Thing"}],` +
			`"properties":{"metadata":{"default":{}},"a":` + thing + `}}` + strings.Join(more, "") + `}}}`)
	}
	chain := func(count int, format string) (all string) {
		var text strings.Builder
		for i := range count {
			fmt.Fprintf(&text, `,"t%d":`+format, i, i+1)
		}
		return text.String()
	}
	const reference = `{"$ref":"#/components/schemas/t0"}`
	enum := `,"t0":{"type":"string","enum":["` + strings.Repeat("a", 1<<20) + `"]}`
	for name, test := range map[string]struct {
		document []byte
		limit    string
	}{
		"nothing special":         {document(`{"type":"string"}`), ""},
		"too many bytes":          {document(`{"type":"string"}`, `,"x":{"description":"`+strings.Repeat("a", structural.DocumentBytes)+`"}`), "bytes"},
		"deep JSON":               {document(strings.Repeat(`{"a":`, 100_000) + "1" + strings.Repeat("}", 100_000)), "levels of JSON"},
		"deep lists":              {document(strings.Repeat(`[`, 100_000)), "levels of JSON"},
		"brackets in a text":      {document(`{"type":"string","description":"` + strings.Repeat(`[\"`, 10_000) + `"}`), ""},
		"a type in itself":        {document(`{"$ref":"#/components/schemas/Thing"}`), ""},
		"a reference to itself":   {document(reference, `,"t0":{"$ref":"#/components/schemas/t0"}`), ""},
		"a long chain":            {document(reference, chain(10_000, `{"$ref":"#/components/schemas/t%d"}`)), ""},
		"types in types":          {document(reference, chain(10_000, `{"type":"object","properties":{"a":{"$ref":"#/components/schemas/t%d"}}}`)), "types within each other"},
		"one large type 99 times": {document(`{"type":"object","properties":{`+strings.TrimSuffix(strings.Repeat(`"f":`+reference+`,`, 1), ",")+many(99, reference)+`}}`, enum), "bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := structural.Schema(t.Context(), test.document, kind)
			tooLarge, isTooLarge := errors.AsType[*structural.TooLargeError](err)
			if isTooLarge != (test.limit != "") || isTooLarge && tooLarge.What != test.limit {
				t.Errorf("want the limit of %q, got %v", test.limit, err)
			}
		})
	}
}

func many(count int, field string) string {
	var text strings.Builder
	for i := range count {
		fmt.Fprintf(&text, `,"f%d":%s`, i, field)
	}
	return text.String()
}
