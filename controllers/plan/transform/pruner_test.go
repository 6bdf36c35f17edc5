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

package transform_test

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/synchub-dev/synchub/controllers/plan/transform"
	"github.com/synchub-dev/synchub/test/fixtures"
)

func TestPruner(t *testing.T) {
	const schema = `{type: object, properties: {metadata: {type: object}, status: {type: object, properties: {phase: {type: string}}}, spec: {type: object, properties: {
		a: {type: string}, free: {type: object, x-kubernetes-preserve-unknown-fields: true, properties: {strict: {type: object}}},
		list: {type: array, items: {type: object, properties: {a: {type: string}}}}, map: {type: object, additionalProperties: {type: object, properties: {a: {type: string}}}},
		nullable: {type: string, nullable: true}, template: {type: object, x-kubernetes-embedded-resource: true, properties: {spec: {type: object}}}}}}}`
	kept := transform.NewPruner(fixtures.Decode[*apiextensionsv1.JSONSchemaProps](t, schema))
	for name, test := range map[string]struct {
		object  string
		dropped []string
	}{
		"all that is described":    {"{apiVersion: v1, kind: A, metadata: {labels: {b: c}}, spec: {a: x, list: [{a: x}], map: {b: {a: x}}}, status: {phase: x}}", nil},
		"a field that is not":      {"{spec: {a: x, b: x}}", []string{"spec.b"}},
		"at the root":              {"{data: {b: x}}", []string{"data"}},
		"in a list":                {"{spec: {list: [{a: x, b: x}, {b: x}]}}", []string{"spec.list[].b"}},
		"in a map":                 {"{spec: {map: {one: {b: x}}}}", []string{"spec.map.one.b"}},
		"where all is kept":        {"{spec: {free: {b: {c: x}}}}", nil},
		"below where all is kept":  {"{spec: {free: {strict: {b: x}}}}", []string{"spec.free.strict.b"}},
		"in a resource":            {"{spec: {template: {apiVersion: v1, kind: B, metadata: {name: x}, spec: {b: x}, b: x}}}", []string{"spec.template.b", "spec.template.spec.b"}},
		"nulls":                    {"{spec: {a: null, nullable: null, free: {b: null}, list: [null, {a: null}]}}", nil},
		"where a text is expected": {"{spec: {a: {b: x}}}", []string{"spec.a.b"}},
	} {
		t.Run(name, func(t *testing.T) {
			object := map[string]any{}
			if err := yaml.Unmarshal([]byte(test.object), &object); err != nil {
				t.Fatal(err)
			}
			before := runtime.DeepCopyJSON(object)
			pruned, dropped := kept.Prune(object)
			if !slices.Equal(dropped, test.dropped) || !reflect.DeepEqual(object, before) {
				t.Errorf("want %q dropped, got %q; was %v, is %v", test.dropped, dropped, before, object)
			}
			if again, dropped := kept.Prune(pruned); len(dropped) > 0 || !reflect.DeepEqual(again, pruned) {
				t.Errorf("the second time %q is dropped", dropped)
			}
		})
	}
	if same, dropped := (*transform.Pruner)(nil).Prune(map[string]any{"a": "b"}); len(dropped) > 0 || len(same) != 1 {
		t.Error("without a schema something is dropped")
	}
	if status, dropped := kept.PruneStatus(map[string]any{"phase": "x", "b": "x"}); len(status) != 1 || !slices.Equal(dropped, []string{"status.b"}) {
		t.Errorf("of a status %v is kept and %q dropped", status, dropped)
	}
	without := transform.NewPruner(fixtures.Decode[*apiextensionsv1.JSONSchemaProps](t, "{type: object, properties: {spec: {type: object}}}"))
	for name, test := range map[string]struct {
		status  map[string]any
		dropped []string
	}{
		"none": {nil, nil}, "empty": {map[string]any{}, nil}, "content": {map[string]any{"phase": "x"}, []string{"status"}},
	} {
		if status, dropped := without.PruneStatus(test.status); len(status) > 0 || !slices.Equal(dropped, test.dropped) {
			t.Errorf("%s: of a status that the schema does not have %v is kept and %q dropped", name, status, dropped)
		}
	}
}

// The Pruner keeps the same fields as API servers, for any schema and object.
func TestPrunerKeepsLikeServers(t *testing.T) {
	for seed := range uint64(2000) {
		random := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // the same each time, on purpose
		schema := randomSchema(random, 4)
		schema.Type = "object"
		var internal apiextensions.JSONSchemaProps
		if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(&schema, &internal, nil); err != nil {
			t.Fatal(err)
		}
		structural, err := structuralschema.NewStructural(&internal)
		if err != nil {
			continue
		}
		object, ok := randomValue(random, 5).(map[string]any)
		if !ok {
			continue
		}
		want := runtime.DeepCopyJSON(object)
		pruning.Prune(want, structural, true)
		defaulting.PruneNonNullableNullsWithoutDefaults(want, structural)
		got, _ := transform.NewPruner(&schema).Prune(object)
		// API servers keep the metadata of an embedded resource, but its nulls only if the schema allows them.
		if got, want := withoutNullsInMetadata(got), withoutNullsInMetadata(want); !reflect.DeepEqual(got, want) {
			t.Fatalf("seed %d: want %v, got %v of %v by %+v", seed, want, got, object, schema)
		}
	}
}

func withoutNullsInMetadata(value any) any {
	switch typed := value.(type) {
	case map[string]any:
		result := map[string]any{}
		for name, item := range typed {
			if slices.Contains([]string{"kind", "metadata"}, name) {
				item = withoutNulls(item)
			}
			if result[name] = withoutNullsInMetadata(item); result[name] == nil && slices.Contains([]string{"kind", "metadata"}, name) {
				delete(result, name)
			}
		}
		return result
	case []any:
		result := []any{}
		for _, item := range typed {
			result = append(result, withoutNullsInMetadata(item))
		}
		return result
	default:
		return value
	}
}

var someNames = []string{"a", "b", "kind", "metadata"}

func randomSchema(random *rand.Rand, depth int) apiextensionsv1.JSONSchemaProps {
	s := apiextensionsv1.JSONSchemaProps{Nullable: random.IntN(2) == 0}
	if depth == 0 {
		return s
	}
	switch random.IntN(4) {
	case 0:
		s.Type = "array"
		s.Items = &apiextensionsv1.JSONSchemaPropsOrArray{Schema: new(randomSchema(random, depth-1))}
	case 1:
		s.Type = "object"
		s.AdditionalProperties = &apiextensionsv1.JSONSchemaPropsOrBool{Allows: true, Schema: new(randomSchema(random, depth-1))}
	default:
		s.Type, s.Properties = "object", map[string]apiextensionsv1.JSONSchemaProps{}
		for _, name := range someNames {
			if random.IntN(2) == 0 {
				s.Properties[name] = randomSchema(random, depth-1)
			}
		}
	}
	if random.IntN(4) == 0 && s.AdditionalProperties == nil {
		s.XPreserveUnknownFields = new(true)
	}
	s.XEmbeddedResource = random.IntN(4) == 0 && s.Properties != nil
	return s
}

func randomValue(random *rand.Rand, depth int) any {
	kind := random.IntN(4)
	switch {
	case random.IntN(6) == 0:
		return nil
	case depth == 0 || kind == 0:
		return "x"
	case kind == 1:
		return []any{randomValue(random, depth-1), randomValue(random, depth-1)}
	default:
		object := map[string]any{}
		for _, name := range someNames {
			if random.IntN(2) == 0 {
				object[name] = randomValue(random, depth-1)
			}
		}
		return object
	}
}
