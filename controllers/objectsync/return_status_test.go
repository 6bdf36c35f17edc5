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

package objectsync

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/synchub-dev/synchub/controllers/internal/writes"
	"github.com/synchub-dev/synchub/controllers/plan/transform"
)

func TestStatusPatch(t *testing.T) {
	for name, test := range map[string]struct{ current, wanted, want string }{
		"the first status":       {`{}`, `{"ready": 1}`, `{"ready": 1}`},
		"nothing changes":        {`{"ready": 1}`, `{"ready": 1}`, ``},
		"nothing at all":         {`{}`, `{}`, ``},
		"a change":               {`{"ready": 1, "all": 2}`, `{"ready": 2, "all": 2}`, `{"ready": 2}`},
		"an addition":            {`{"ready": 1}`, `{"ready": 1, "all": 2}`, `{"all": 2}`},
		"a removal":              {`{"ready": 1, "all": 2}`, `{"ready": 1}`, `{"all": null}`},
		"the end of the status":  {`{"ready": 1, "all": {"x": 2}}`, `{}`, `{"ready": null, "all": null}`},
		"a change below":         {`{"a": {"b": {"c": 1, "d": 2}}}`, `{"a": {"b": {"c": 3, "e": 4}}}`, `{"a": {"b": {"c": 3, "d": null, "e": 4}}}`},
		"a map is emptied":       {`{"a": {"b": 1}}`, `{"a": {}}`, `{"a": {"b": null}}`},
		"an empty map":           {`{}`, `{"a": {}}`, `{"a": {}}`},
		"a list travels whole":   {`{"a": [{"type": "x", "status": "1"}, 2]}`, `{"a": [{"type": "x", "status": "2"}, 2]}`, `{"a": [{"type": "x", "status": "2"}, 2]}`},
		"an item is removed":     {`{"a": [1, 2]}`, `{"a": [1]}`, `{"a": [1]}`},
		"another type":           {`{"a": "text"}`, `{"a": {"b": true}}`, `{"a": {"b": true}}`},
		"from a map to a number": {`{"a": {"b": true}}`, `{"a": 1}`, `{"a": 1}`},
		"large numbers":          {`{"a": 9007199254740992, "b": 1}`, `{"a": 9007199254740993, "b": 1}`, `{"a": 9007199254740993}`},
		"markup stays text":      {`{}`, `{"a": "<b>&"}`, `{"a": "<b>&"}`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := writes.StatusPatch("the-uid", decode(t, test.current), decode(t, test.wanted))
			if err != nil {
				t.Fatal(err)
			}
			want := map[string]any{"metadata": map[string]any{"uid": "the-uid"}}
			if test.want != "" {
				want["status"] = decode(t, test.want)
			}
			if got.Type != types.MergePatchType || !reflect.DeepEqual(decode(t, string(got.Data)), want) {
				t.Errorf("want %v, got %s %s", want, got.Type, got.Data)
			}
		})
	}
}

// decode reads a JSON object as a client does.
func decode(t *testing.T, text string) map[string]any {
	t.Helper()
	var object map[string]any
	if err := json.Unmarshal([]byte(text), &object); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return object
}

func TestStatusOf(t *testing.T) {
	for name, test := range map[string]struct{ status, want any }{
		"none":               {nil, map[string]any{}},
		"empty":              {map[string]any{}, map[string]any{}},
		"text":               {"text", map[string]any{}},
		"a list":             {[]any{"text"}, map[string]any{}},
		"fields":             {map[string]any{"a": int64(1), "b": map[string]any{}}, map[string]any{"a": int64(1), "b": map[string]any{}}},
		"nulls":              {map[string]any{"a": nil, "b": map[string]any{"c": nil, "d": "x"}}, map[string]any{"a": nil, "b": map[string]any{"c": nil, "d": "x"}}},
		"nulls within lists": {map[string]any{"a": []any{map[string]any{"b": nil, "c": "x"}, nil, []any{nil}}}, map[string]any{"a": []any{map[string]any{"b": nil, "c": "x"}, nil, []any{nil}}}},
	} {
		t.Run(name, func(t *testing.T) {
			before := fmt.Sprintf("%#v", test.status)
			if got := transform.StatusOf(test.status); !reflect.DeepEqual(got, test.want) {
				t.Errorf("want %v, got %v", test.want, got)
			}
			if after := fmt.Sprintf("%#v", test.status); after != before {
				t.Errorf("what the cache holds was changed: %s, then %s", before, after)
			}
		})
	}
}

// randomValue returns any JSON value, of few names and values, so that two of them often have much in common.
func randomValue(random *rand.Rand, depth int) any {
	choices := 8
	if depth == 0 {
		choices = 6
	}
	switch random.IntN(choices) {
	case 0:
		return nil
	case 1:
		return random.IntN(2) == 0
	case 2:
		return int64(random.IntN(3))
	case 3:
		return int64(1)<<53 + int64(random.IntN(3))
	case 4:
		return 0.5 + float64(random.IntN(2))
	case 5:
		return []string{"", "x", "<&>é"}[random.IntN(3)]
	case 6:
		list := make([]any, random.IntN(3))
		for i := range list {
			list[i] = randomValue(random, depth-1)
		}
		return list
	default:
		return randomMap(random, depth-1)
	}
}

func randomMap(random *rand.Rand, depth int) map[string]any {
	fields := map[string]any{}
	for _, name := range []string{"a", "b", "c", "~/"} {
		if random.IntN(2) == 0 {
			fields[name] = randomValue(random, depth)
		}
	}
	return fields
}

func TestEqualStatus(t *testing.T) {
	for name, test := range map[string]struct {
		first, second string
		want          bool
	}{
		"both empty":                {`{}`, `{}`, true},
		"equal":                     {`{"a": [{"b": 1}, null]}`, `{"a": [{"b": 1}, null]}`, true},
		"a null and nothing":        {`{"a": null}`, `{}`, true},
		"a null and nothing, below": {`{"a": [{"b": null}]}`, `{"a": [{}]}`, true},
		"a null and a value":        {`{"a": null}`, `{"a": 1}`, false},
		"a null and an empty map":   {`{"a": null}`, `{"a": {}}`, false},
		"an empty map and nothing":  {`{"a": {}}`, `{}`, false},
		"a shorter list":            {`{"a": [1, null]}`, `{"a": [1]}`, false},
		"a field more":              {`{"a": {"b": 1}}`, `{"a": {"b": 1, "c": 1}}`, false},
		"another type":              {`{"a": {}}`, `{"a": []}`, false},
	} {
		for _, pair := range [][2]string{{test.first, test.second}, {test.second, test.first}} {
			if got := transform.EqualStatus(decode(t, pair[0]), decode(t, pair[1])); got != test.want {
				t.Errorf("%s: %s and %s are equal: %v", name, pair[0], pair[1], got)
			}
		}
	}
}

// applyPatch applies a patch as an API server does.
func applyPatch(t *testing.T, stored []byte, patch writes.Patch) []byte {
	t.Helper()
	if patch.Type == types.MergePatchType {
		patched, err := jsonpatch.MergePatch(stored, patch.Data)
		if err != nil {
			t.Fatal(err)
		}
		return patched
	}
	operations, err := jsonpatch.DecodePatch(patch.Data)
	if err != nil {
		t.Fatal(err)
	}
	patched, err := operations.Apply(stored)
	if err != nil {
		t.Fatal(err)
	}
	return patched
}

// The patch makes the one status the other, nulls included, touches nothing else, and carries the UID.
func TestStatusPatchOfAnything(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // repeatable values
	merges := 0
	for range 3000 {
		cached, returned := randomMap(random, 3), randomMap(random, 3)
		if random.IntN(4) == 0 {
			returned = withoutNullFields(returned).(map[string]any)
		}
		current, wanted := transform.StatusOf(cached), transform.StatusOf(returned)
		patch, err := writes.StatusPatch("u", current, wanted)
		if err != nil {
			t.Fatal(err)
		}
		if patch.Type == types.MergePatchType {
			merges++
		}
		stored, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": "v", "name": "x"}, "spec": cached, "status": cached})
		if err != nil {
			t.Fatal(err)
		}
		got, want := decode(t, string(applyPatch(t, stored, patch))), decode(t, string(stored))
		want["metadata"].(map[string]any)["uid"] = "u"
		if status := transform.StatusOf(got["status"]); !transform.EqualStatus(status, wanted) || patch.Type == types.JSONPatchType && !reflect.DeepEqual(status, wanted) {
			t.Fatalf("from %#v\nwant %#v\ngot  %#v\nby   %s", cached, wanted, status, patch.Data)
		}
		delete(got, "status")
		delete(want, "status")
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("the patch %s changes more than the status: %v", patch.Data, got)
		}
	}
	if merges < 500 {
		t.Errorf("only %d merge patches", merges)
	}
}

func withoutNullFields(value any) any {
	switch typed := value.(type) {
	case map[string]any:
		for name, field := range typed {
			if field == nil {
				delete(typed, name)
				continue
			}
			withoutNullFields(field)
		}
	case []any:
		for _, item := range typed {
			withoutNullFields(item)
		}
	}
	return value
}
