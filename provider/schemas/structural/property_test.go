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
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"testing"

	"github.com/synchub-dev/synchub/provider/schemas/structural"
)

// documents generates OpenAPI documents of Go types that no server would publish, with every keyword anywhere.
type documents struct{ *rand.Rand }

func (d documents) any(choices ...any) any { return choices[d.IntN(len(choices))] }

func (d documents) maybe() bool { return d.IntN(4) == 0 }

func (d documents) rarely() bool { return d.IntN(16) == 0 }

// node returns a schema that may refer to the types a, b and c.
func (d documents) node(depth int) map[string]any {
	node := map[string]any{}
	if d.IntN(8) > 0 {
		node["type"] = d.any("object", "object", "array", "string", "integer", "number", "boolean")
	}
	keywords := map[string][]any{
		"description": {"text"}, "nullable": {true}, "default": {map[string]any{}, "", 0, []any{}, map[string]any{"a": 1}},
		"format": {"byte", "int32", "date-time", "none"}, "enum": {[]any{"a", "b"}, []any{""}, []any{1, nil}}, "pattern": {"a+", "("}, "title": {"t"},
		"minimum": {1}, "exclusiveMaximum": {true}, "maxLength": {3, -1}, "minItems": {1}, "uniqueItems": {true}, "maxProperties": {2}, "multipleOf": {0.5},
		"required": {[]any{"a"}, []any{"none", "b"}}, "$ref": {"#/components/schemas/a", "#/components/schemas/b", "#/components/schemas/none"},
		"x-kubernetes-list-type": {"map", "set", "atomic", "none"}, "x-kubernetes-list-map-keys": {[]any{"a"}, []any{"a", "b"}, []any{"none"}},
		"x-kubernetes-map-type": {"atomic", "granular"}, "x-kubernetes-patch-strategy": {"merge", "replace"}, "x-kubernetes-patch-merge-key": {"a", "none"},
		"x-kubernetes-preserve-unknown-fields": {true, false}, "x-kubernetes-int-or-string": {true},
		"x-kubernetes-validations": {[]any{map[string]any{"rule": "self == oldSelf"}}, []any{map[string]any{"rule": "none("}}},
		"additionalProperties":     {true, false},
	}
	for _, keyword := range slices.Sorted(maps.Keys(keywords)) {
		if d.rarely() || keyword == "description" {
			node[keyword] = d.any(keywords[keyword]...)
		}
	}
	if depth > 0 {
		d.nest(node, depth-1)
	}
	return node
}

func (d documents) nest(node map[string]any, depth int) {
	if node["type"] == "object" && !d.maybe() {
		properties := map[string]any{}
		for _, name := range []string{"a", "b", "status", "metadata", "$ref"}[:1+d.IntN(5)] {
			properties[name] = d.node(depth)
		}
		node["properties"] = properties
	}
	if node["type"] == "array" && !d.maybe() {
		node["items"] = d.node(depth)
	}
	if d.maybe() {
		node["additionalProperties"] = d.node(depth)
	}
	for _, combinator := range []string{"allOf", "anyOf", "oneOf"} {
		if d.rarely() {
			branches := []any{d.node(0), d.node(depth)}
			node[combinator] = branches[:1+d.IntN(2)]
		}
	}
	if d.rarely() {
		node["not"] = d.node(depth)
	}
}

func (d documents) document(t *testing.T) []byte {
	t.Helper()
	root := d.node(3)
	root["type"] = "object"
	for _, impossible := range []string{"$ref", "allOf", "x-kubernetes-int-or-string"} {
		delete(root, impossible)
	}
	properties, _ := root["properties"].(map[string]any)
	if properties == nil {
		properties = map[string]any{}
	}
	properties["metadata"] = map[string]any{"type": "object", "default": map[string]any{}}
	root["properties"] = properties
	root["x-kubernetes-group-version-kind"] = []any{map[string]any{"group": thing.Group, "version": thing.Version, "kind": thing.Kind}}
	content, err := json.Marshal(map[string]any{"components": map[string]any{"schemas": map[string]any{
		"thing": root, "a": d.node(2), "b": d.node(2),
	}}})
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// Every document of Go types converts to a schema that kcp accepts, and always to the same one.
func TestEveryDocumentOfGoTypesHasASchema(t *testing.T) {
	for seed := range uint64(2000) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			t.Parallel()
			document := documents{rand.New(rand.NewPCG(seed, 0))}.document(t) //nolint:gosec // the same each time, on purpose
			kind := thing
			kind.Status, kind.Scale = seed%2 == 0, seed%3 == 0
			version, notes, err := structural.Schema(t.Context(), document, kind)
			if err != nil {
				t.Fatalf("%v of %s", err, document)
			}
			requireValid(t, version)
			again, sameNotes, err := structural.Schema(t.Context(), document, kind)
			if err != nil || !reflect.DeepEqual(again, version) || !reflect.DeepEqual(sameNotes, notes) {
				t.Errorf("the second time differs: %v of %s", err, document)
			}
		})
	}
}
