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
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/synchub-dev/synchub/controllers/plan/transform"
	"github.com/synchub-dev/synchub/test/fixtures"
)

func TestMissingPaths(t *testing.T) {
	const desired = `
apiVersion: example.com/v1
kind: Any
metadata: {name: a, namespace: b, labels: {a: x, app.kubernetes.io/name: y}, annotations: {note: ""}}
spec: {number: 1, ratio: 0.5, flag: false, text: x, empty: "", map: {}, list: [], items: [{name: a, value: 1}, {name: b}], deep: {er: {still: x}}}
data: {a.b: c}
nulls: {a: null, list: [a, null]}
status: {phase: x}
`
	for name, test := range map[string]struct {
		change func(object map[string]any)
		want   []string
	}{
		"nothing": {func(map[string]any) {}, nil},
		"what is not looked at": {func(object map[string]any) {
			object["apiVersion"], object["kind"] = "v2", "Other"
			object["metadata"].(map[string]any)["name"] = "other"
			delete(object, "status")
		}, nil},
		"more than is desired": {func(object map[string]any) {
			object["more"] = "x"
			object["metadata"].(map[string]any)["labels"].(map[string]any)["more"] = "x"
			object["metadata"].(map[string]any)["uid"] = "x"
			spec := object["spec"].(map[string]any)
			spec["more"] = "x"
			spec["map"].(map[string]any)["more"] = "x"
			spec["items"].([]any)[1].(map[string]any)["more"] = "x"
		}, nil},
		"numbers written otherwise": {func(object map[string]any) {
			spec := object["spec"].(map[string]any)
			spec["number"] = 1.0
			spec["items"].([]any)[0].(map[string]any)["value"] = 1.0
		}, nil},
		"empty ones dropped": {func(object map[string]any) {
			spec := object["spec"].(map[string]any)
			delete(spec, "map")
			spec["list"] = nil
		}, nil},
		"another number":          {func(object map[string]any) { object["spec"].(map[string]any)["number"] = int64(2) }, []string{".spec.number"}},
		"another type":            {func(object map[string]any) { object["spec"].(map[string]any)["number"] = "1" }, []string{".spec.number"}},
		"an empty text":           {func(object map[string]any) { delete(object["spec"].(map[string]any), "empty") }, []string{".spec.empty"}},
		"a false flag":            {func(object map[string]any) { delete(object["spec"].(map[string]any), "flag") }, []string{".spec.flag"}},
		"a fraction":              {func(object map[string]any) { object["spec"].(map[string]any)["ratio"] = 0.25 }, []string{".spec.ratio"}},
		"a null that has a value": {func(object map[string]any) { object["nulls"].(map[string]any)["a"] = "x" }, []string{".nulls.a"}},
		"a null of a list":        {func(object map[string]any) { object["nulls"].(map[string]any)["list"] = []any{"a"} }, []string{".nulls.list"}},
		"a null dropped":          {func(object map[string]any) { delete(object["nulls"].(map[string]any), "a") }, nil},
		"a deep one": {func(object map[string]any) {
			object["spec"].(map[string]any)["deep"].(map[string]any)["er"] = map[string]any{}
		}, []string{".spec.deep.er.still"}},
		"a map":                     {func(object map[string]any) { delete(object["spec"].(map[string]any), "deep") }, []string{".spec.deep"}},
		"a map that is none":        {func(object map[string]any) { object["spec"].(map[string]any)["deep"] = "x" }, []string{".spec.deep"}},
		"an empty map that is none": {func(object map[string]any) { object["spec"].(map[string]any)["map"] = "x" }, []string{".spec.map"}},
		"a list that is none":       {func(object map[string]any) { object["spec"].(map[string]any)["items"] = "x" }, []string{".spec.items"}},
		"a list filled":             {func(object map[string]any) { object["spec"].(map[string]any)["list"] = []any{"x"} }, []string{".spec.list"}},
		"an item more": {func(object map[string]any) {
			spec := object["spec"].(map[string]any)
			spec["items"] = append(spec["items"].([]any), "x")
		}, []string{".spec.items"}},
		"an item less": {func(object map[string]any) {
			spec := object["spec"].(map[string]any)
			spec["items"] = spec["items"].([]any)[:1]
		}, []string{".spec.items"}},
		"items in another order": {func(object map[string]any) { slices.Reverse(object["spec"].(map[string]any)["items"].([]any)) },
			[]string{".spec.items[0].name", ".spec.items[0].value", ".spec.items[1].name"}},
		"labels and annotations": {func(object map[string]any) {
			metadata := object["metadata"].(map[string]any)
			metadata["labels"].(map[string]any)["app.kubernetes.io/name"] = "z"
			delete(metadata, "annotations")
		}, []string{".metadata.annotations", ".metadata.labels.app.kubernetes.io/name"}},
		"everything": {func(object map[string]any) { clear(object) },
			[]string{".data", ".metadata.annotations", ".metadata.labels", ".nulls", ".spec"}},
	} {
		t.Run(name, func(t *testing.T) {
			wanted, actual := fixtures.Object(t, desired).Object, fixtures.Object(t, desired).Object
			test.change(actual)
			if got := transform.MissingPaths(wanted, actual); !slices.Equal(got, test.want) {
				t.Errorf("want %v, got %v", test.want, got)
			}
		})
	}
	if got := transform.MissingPaths(nil, nil); len(got) > 0 {
		t.Errorf("of nothing there is missing %v", got)
	}
}

// checkMissing checks the invariants for any two objects.
func checkMissing(t *testing.T, desired, actual map[string]any) {
	t.Helper()
	desiredBefore, actualBefore := runtime.DeepCopyJSON(desired), runtime.DeepCopyJSON(actual)
	got := transform.MissingPaths(desired, actual)
	if !reflect.DeepEqual(desired, desiredBefore) || !reflect.DeepEqual(actual, actualBefore) {
		t.Fatal("an object was changed")
	}
	if !slices.IsSorted(got) {
		t.Errorf("not sorted: %v", got)
	}
	if again := transform.MissingPaths(desiredBefore, actualBefore); !slices.Equal(got, again) {
		t.Errorf("%v, then %v", got, again)
	}
	if of := transform.MissingPaths(desired, desiredBefore); len(of) > 0 {
		t.Errorf("of %v itself %v is missing", desired, of)
	}
	if of := transform.MissingPaths(nil, actual); len(of) > 0 {
		t.Errorf("of nothing %v is missing", of)
	}
	// After writing desired over the other object, no path is missing.
	written := runtime.DeepCopyJSON(actual)
	overwrite(written, runtime.DeepCopyJSON(desired))
	if of := transform.MissingPaths(desired, written); len(of) > 0 {
		t.Errorf("%v is missing after all of %v was written: %v", of, desired, written)
	}
}

// overwrite makes the changes of an update with all of desired.
func overwrite(actual, desired map[string]any) {
	for key, value := range desired {
		below, isMap := value.(map[string]any)
		current, wasMap := actual[key].(map[string]any)
		if isMap && wasMap {
			overwrite(current, below)
		} else {
			actual[key] = value
		}
	}
}

func TestMissingPathsOfAnything(t *testing.T) {
	for seed := range uint64(1500) {
		g := seeded(seed)
		desired, actual := g.source().Object, g.source().Object
		if g.IntN(2) == 0 {
			merged := runtime.DeepCopyJSON(desired)
			maps.Copy(merged, actual)
			actual = merged
		}
		checkMissing(t, desired, actual)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func FuzzMissingPaths(f *testing.F) {
	f.Add(`{"spec":{"a":1,"b":[{}],"c":{}}}`, `{"spec":{"a":1.0,"b":[{}]}}`)
	f.Add(`{"metadata":{"labels":[]},"":null}`, `{"metadata":7}`)
	for seed := range uint64(10) {
		desired, _ := json.Marshal(seeded(seed).source().Object)
		actual, _ := json.Marshal(seeded(seed + 100).source().Object)
		f.Add(string(desired), string(actual))
	}
	f.Fuzz(func(t *testing.T, desiredText, actualText string) {
		var desired, actual map[string]any
		if utiljson.Unmarshal([]byte(desiredText), &desired) == nil && utiljson.Unmarshal([]byte(actualText), &actual) == nil && desired != nil && actual != nil {
			checkMissing(t, desired, actual)
		}
	})
}
