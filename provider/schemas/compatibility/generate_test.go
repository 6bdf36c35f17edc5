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
	"encoding/json"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// random generates schemas, and values for them, from a few words, so that values often fit.
type random struct {
	*rand.Rand
	t testing.TB
}

func (r random) of(choices ...any) any { return choices[r.IntN(len(choices))] }

func (r random) rarely() bool { return r.IntN(6) == 0 }

func (r random) object() map[string]any {
	return map[string]any{"type": "object", "properties": map[string]any{"spec": r.node(3)}}
}

func (r random) node(depth int) map[string]any {
	node := map[string]any{}
	switch kind := r.of("string", "string", "integer", "number", "boolean", "object", "object", "array", "any", "intOrString"); {
	case depth == 0 && (kind == "object" || kind == "array"):
		node["type"] = "string"
	case kind == "any":
		node["x-kubernetes-preserve-unknown-fields"] = true
	case kind == "intOrString":
		node["x-kubernetes-int-or-string"] = true
	default:
		node["type"] = kind
	}
	if r.rarely() {
		node["nullable"] = true
	}
	switch node["type"] {
	case "object":
		r.fields(node, depth)
	case "array":
		r.items(node, depth)
	}
	for range r.IntN(3) {
		r.restrict(node)
	}
	return node
}

func (r random) fields(node map[string]any, depth int) {
	switch r.IntN(5) {
	case 0:
		node["additionalProperties"] = r.node(depth - 1)
	case 1:
		node["x-kubernetes-preserve-unknown-fields"] = true
	case 2:
		if r.rarely() {
			node["x-kubernetes-embedded-resource"], node["x-kubernetes-preserve-unknown-fields"] = true, true
		} else if r.rarely() {
			node["additionalProperties"] = true
		}
	}
	if _, wild := node["additionalProperties"]; wild {
		return
	}
	properties := map[string]any{}
	for _, name := range []string{"a", "b", "c"} {
		if r.IntN(2) == 0 {
			property := r.node(depth - 1)
			if r.rarely() {
				r.fillIn(property)
			}
			properties[name] = property
		}
	}
	node["properties"] = properties
}

// fillIn gives a property a default that a server would accept.
func (r random) fillIn(property map[string]any) {
	value := map[string]any{"spec": r.value(property)}
	schema := map[string]any{"type": "object", "properties": map[string]any{"spec": property}}
	if _, err := newServer(r.t, parse(r.t, schema)).accept(normal(value)); err == nil && value["spec"] != nil {
		property["default"] = value["spec"]
	}
}

func (r random) items(node map[string]any, depth int) {
	item := r.node(depth - 1)
	node["items"] = item
	switch r.IntN(4) {
	case 0:
		node["items"] = map[string]any{"type": r.of("string", "integer")}
		node["x-kubernetes-list-type"] = "set"
	case 1:
		key := map[string]any{"type": "string"}
		node["items"] = map[string]any{"type": "object", "required": []any{"a"}, "properties": map[string]any{"a": key, "b": r.node(0)}}
		node["x-kubernetes-list-type"], node["x-kubernetes-list-map-keys"] = "map", []any{"a"}
		if r.IntN(2) == 0 {
			key["default"] = "a"
			node["items"].(map[string]any)["properties"].(map[string]any)["c"] = map[string]any{"type": "string"}
			node["items"].(map[string]any)["required"] = []any{"a", "c"}
			node["x-kubernetes-list-map-keys"] = []any{"a", "c"}
		}
	}
}

// restrict adds one keyword that restricts values.
func (r random) restrict(node map[string]any) {
	restrictions := map[string][]any{
		"enum":    {[]any{"a", "ab"}, []any{"a"}, []any{1, 2}, []any{"a", "ab", "abc"}, []any{1.5}, []any{true}},
		"minimum": {0, 1, 1.5, -1, 3e9}, "maximum": {2, 1, 5, 2.5, 100}, "exclusiveMinimum": {true}, "exclusiveMaximum": {true}, "multipleOf": {1, 2, 4, 0.5},
		"minLength": {0, 1, 2}, "maxLength": {1, 2, 9}, "pattern": {"^a", "b$", "^a"}, "format": {"ipv4", "date-time", "int32", "int64", "float", "uuid", "unknown", "byte"},
		"minItems": {0, 1}, "maxItems": {1, 2}, "uniqueItems": {true}, "minProperties": {0, 1}, "maxProperties": {1, 2},
		"required": {[]any{"a"}, []any{"a", "b"}, []any{"c"}},
		"anyOf":    {[]any{map[string]any{"required": []any{"a"}}, map[string]any{"required": []any{"b"}}}, []any{map[string]any{"minimum": 1}, map[string]any{"pattern": "a"}}},
		"oneOf":    {[]any{map[string]any{"required": []any{"a"}}, map[string]any{"required": []any{"b"}}}},
		"allOf":    {[]any{map[string]any{"maxLength": 2}}, []any{map[string]any{"maxLength": 2}, map[string]any{"minProperties": 1}}},
		"not":      {map[string]any{"enum": []any{"a"}}, map[string]any{"required": []any{"a"}}},
	}
	keyword := r.of(toAny(slices.Sorted(maps.Keys(restrictions)))...).(string)
	node[keyword] = r.of(restrictions[keyword]...)
}

func toAny(names []string) (all []any) {
	for _, name := range names {
		all = append(all, name)
	}
	return all
}

// change changes one part of a copy of a schema: it removes or adds a keyword, or generates a new part.
func (r random) change(schema map[string]any) map[string]any {
	changed := runtime.DeepCopyJSON(normal(schema))
	node := changed["properties"].(map[string]any)["spec"].(map[string]any)
	for r.IntN(2) == 0 {
		below := nodesBelow(node)
		if len(below) == 0 {
			break
		}
		node = below[r.IntN(len(below))]
	}
	switch r.IntN(4) {
	case 0:
		r.restrict(node)
	case 1, 2:
		keywords := slices.Sorted(maps.Keys(node))
		for _, kept := range []string{"type", "items", "x-kubernetes-int-or-string", "x-kubernetes-list-map-keys", "x-kubernetes-list-type", "x-kubernetes-preserve-unknown-fields"} {
			keywords = slices.DeleteFunc(keywords, func(keyword string) bool { return keyword == kept })
		}
		if len(keywords) > 0 {
			delete(node, keywords[r.IntN(len(keywords))])
		}
	case 3:
		made := r.node(2)
		clear(node)
		maps.Copy(node, made)
	}
	if spec := changed["properties"].(map[string]any)["spec"].(map[string]any); !r.defaultsFit(spec) {
		return schema
	}
	return changed
}

// defaultsFit reports whether a server would accept the defaults below a node.
func (r random) defaultsFit(node map[string]any) bool {
	if value, ok := node["default"]; ok {
		schema := map[string]any{"type": "object", "properties": map[string]any{"spec": node}}
		if _, err := newServer(r.t, parse(r.t, schema)).accept(normal(map[string]any{"spec": value})); err != nil {
			return false
		}
	}
	for _, below := range nodesBelow(node) {
		if !r.defaultsFit(below) {
			return false
		}
	}
	return true
}

func nodesBelow(node map[string]any) (all []map[string]any) {
	properties, _ := node["properties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		all = append(all, properties[name].(map[string]any))
	}
	for _, keyword := range []string{"items", "additionalProperties"} {
		if below, ok := node[keyword].(map[string]any); ok {
			all = append(all, below)
		}
	}
	return all
}

// kind returns the kind of a value that often fits a schema.
func (r random) kind(node map[string]any) any {
	kind := node["type"]
	if node["x-kubernetes-int-or-string"] == true {
		kind = r.of("integer", "string")
	}
	if kind == nil || r.IntN(30) == 0 {
		kind = r.of("object", "array", "string", "integer", "number", "boolean", "null")
	}
	if kind == "array" && node["type"] == "string" {
		kind = "string" // a server accepts a list for a string with a format, which nobody intends
	}
	return kind
}

// value returns a value that often fits a schema.
func (r random) value(node map[string]any) any {
	if enum, ok := node["enum"].([]any); ok && !r.rarely() {
		return r.of(enum...)
	}
	if node["nullable"] == true && r.rarely() {
		return nil
	}
	switch r.kind(node) {
	case "object":
		return r.fieldValues(node)
	case "array":
		items, _ := node["items"].(map[string]any)
		values := []any{}
		for range r.IntN(4) {
			values = append(values, r.value(items))
		}
		return values
	case "string":
		return r.of("", "a", "ab", "abc", "b", "1.2.3.4", "2014-12-15T19:30:20.000Z", "xyz")
	case "integer":
		return r.of(0, 1, 2, 3, 4, -1, 7, 97, 1<<40, 1.0, 4.0)
	case "number":
		return r.of(0, 1, 0.5, 1.5, 2.5, 4, 1e39, -1)
	case "boolean":
		return r.of(true, false)
	default:
		return nil
	}
}

func (r random) fieldValues(node map[string]any) map[string]any {
	values := map[string]any{}
	properties, _ := node["properties"].(map[string]any)
	required, _ := node["required"].([]any)
	for _, name := range []string{"a", "b", "c", "d"} {
		property, known := properties[name].(map[string]any)
		if !known {
			property, _ = node["additionalProperties"].(map[string]any)
		}
		isRequired := slices.Contains(required, any(name))
		if isRequired || (known || property != nil) && r.IntN(3) > 0 || r.IntN(4) == 0 {
			values[name] = r.value(property)
		}
	}
	if node["x-kubernetes-embedded-resource"] == true {
		values["apiVersion"], values["kind"], values["metadata"] = "v1", "Kind", map[string]any{"name": "a"}
	}
	return values
}

// normal returns a value as a server decodes it.
func normal(value map[string]any) map[string]any {
	raw, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	var decoded map[string]any
	if err := utiljson.Unmarshal(raw, &decoded); err != nil {
		panic(err)
	}
	return decoded
}

func parse(t testing.TB, schema any) *apiextensionsv1.JSONSchemaProps {
	t.Helper()
	raw, err := json.Marshal(schema)
	if err != nil {
		t.Fatal(err)
	}
	parsed := &apiextensionsv1.JSONSchemaProps{}
	if err := json.Unmarshal(raw, parsed); err != nil {
		t.Fatal(err)
	}
	return parsed
}
