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

package ownership_test

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/synchub-dev/synchub/controllers/plan/ownership"
)

func hash(t *testing.T, key string, desired map[string]any) string {
	t.Helper()
	result, err := ownership.NewHasher([]byte(key)).Hash(desired)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func TestHash(t *testing.T) {
	object := func(change func(map[string]any)) map[string]any {
		result := map[string]any{"kind": "Secret", "data": map[string]any{"a": "eA==", "b": "eQ=="}, "list": []any{int64(1), int64(2)}}
		change(result)
		return result
	}
	original := hash(t, "key", object(func(map[string]any) {}))
	if again := hash(t, "key", object(func(map[string]any) {})); again != original {
		t.Errorf("one object has the hashes %s and %s", original, again)
	}
	seen := map[string]string{original: "the original"}
	for name, other := range map[string]string{
		"another key":           hash(t, "key2", object(func(map[string]any) {})),
		"no key":                hash(t, "", object(func(map[string]any) {})),
		"another value":         hash(t, "key", object(func(o map[string]any) { o["data"].(map[string]any)["a"] = "eQ==" })),
		"another name":          hash(t, "key", object(func(o map[string]any) { o["data"] = map[string]any{"a": "eA==", "c": "eQ=="} })),
		"one field less":        hash(t, "key", object(func(o map[string]any) { delete(o, "kind") })),
		"one field more":        hash(t, "key", object(func(o map[string]any) { o["empty"] = map[string]any{} })),
		"another order of list": hash(t, "key", object(func(o map[string]any) { o["list"] = []any{int64(2), int64(1)} })),
		"another type":          hash(t, "key", object(func(o map[string]any) { o["list"] = []any{"1", int64(2)} })),
		"nothing":               hash(t, "key", nil),
		"empty":                 hash(t, "key", map[string]any{}),
	} {
		if twin, taken := seen[other]; taken {
			t.Errorf("%s has the same hash as %s", name, twin)
		}
		seen[other] = name
		if !strings.HasPrefix(other, "1:") {
			t.Errorf("%s: the hash %s does not contain its version", name, other)
		}
		if strings.Contains(other, "eA==") {
			t.Errorf("%s: the hash %s shows the content", name, other)
		}
	}
}

func TestHashRefusesNonJSONValues(t *testing.T) {
	if result, err := ownership.NewHasher([]byte("key")).Hash(map[string]any{"ratio": math.NaN()}); err == nil {
		t.Errorf("hashed NaN to %s", result)
	}
}

func FuzzHash(f *testing.F) {
	f.Add([]byte("key"), `{"a":1,"b":{"c":[1,2,{"d":null}],"e":"x"}}`)
	f.Add([]byte{}, `{}`)
	f.Add([]byte("k"), `{"a":"<&>\u2028","":1e300}`)
	f.Fuzz(func(t *testing.T, key []byte, text string) {
		var object map[string]any
		if json.Unmarshal([]byte(text), &object) != nil || object == nil {
			return
		}
		original := hash(t, string(key), object)
		if other := hash(t, string(key), rebuilt(object).(map[string]any)); other != original {
			t.Errorf("%s: the hash depends on how the maps were made", text)
		}
		if other := hash(t, string(key)+"x", object); other == original {
			t.Errorf("%s: the hash does not depend on the key", text)
		}
		changed := maps.Clone(object)
		changed["added"+text] = true
		if other := hash(t, string(key), changed); other == original {
			t.Errorf("%s: the hash does not depend on the content", text)
		}
	})
}

// rebuilt returns a copy with maps filled in another order.
func rebuilt(value any) any {
	switch typed := value.(type) {
	case map[string]any:
		keys := make([]string, 0, len(typed))
		for key := range typed {
			keys = append(keys, key)
		}
		result := map[string]any{}
		for _, key := range slices.Backward(keys) {
			result[key] = rebuilt(typed[key])
		}
		return result
	case []any:
		result := make([]any, len(typed))
		for index := range typed {
			result[index] = rebuilt(typed[index])
		}
		return result
	default:
		return value
	}
}
