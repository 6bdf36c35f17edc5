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

package fieldpath_test

import (
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	smdpath "sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/synchub-dev/synchub/controllers/plan/fieldpath"
)

// set decodes a managedFields entry's fieldsV1.
func set(t testing.TB, fieldsV1 string) *smdpath.Set {
	t.Helper()
	result := &smdpath.Set{}
	if err := result.FromJSON(strings.NewReader(fieldsV1)); err != nil {
		t.Fatal(err)
	}
	return result
}

func write(t testing.TB, fields *smdpath.Set) string {
	t.Helper()
	text, err := fields.ToJSON()
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

const entry = `{
	"f:metadata":{"f:labels":{"f:app.io/name":{},"f:tier":{}},"f:finalizers":{".":{},"v:\"a.io/x\"":{}}},
	"f:spec":{"f:replicas":{},"f:selector":{},
		"f:containers":{
			"k:{\"name\":\"app\"}":{".":{},"f:image":{},"f:ports":{"k:{\"containerPort\":80,\"protocol\":\"TCP\"}":{".":{},"f:containerPort":{}}}},
			"k:{\"name\":\"side\"}":{"f:image":{}}},
		"f:list":{"i:0":{},"i:2":{"f:a":{}}},
		"f:nested":{"f:set":{".":{},"v:1":{},"v:2":{},"v:3":{}}}}}`

func TestIsInAndRemoveFrom(t *testing.T) {
	tests := map[string]struct {
		path string
		// gone must be in the entry and not in the result. Empty means that the path is not in the entry.
		gone []string
	}{
		"a leaf":                      {path: "spec.replicas", gone: []string{`"f:replicas":{},`}},
		"a quoted name":               {path: "metadata.labels['app.io/name']", gone: []string{`"f:app.io/name":{},`}},
		"a map":                       {path: "metadata.labels", gone: []string{`,"f:labels":{"f:app.io/name":{},"f:tier":{}}`}},
		"a field of an item by key":   {path: `spec.containers[?(@.name=="side")].image`, gone: []string{`,"k:{\"name\":\"side\"}":{"f:image":{}}`}},
		"an item by key":              {path: `spec.containers[?(@.name=="side")]`, gone: []string{`,"k:{\"name\":\"side\"}":{"f:image":{}}`}},
		"a number as key":             {path: `spec.containers[*].ports[?(@.containerPort=="80")]`, gone: []string{`,"f:ports":{"k:{\"containerPort\":80,\"protocol\":\"TCP\"}":{".":{},"f:containerPort":{}}}`}},
		"another key of the same":     {path: `spec.containers[*].ports[?(@.protocol=="TCP")].containerPort`, gone: []string{`".":{},"f:containerPort":{}`}},
		"a field of all items":        {path: "spec.containers[*].ports", gone: []string{`,"f:ports":{"k:{\"containerPort\":80,\"protocol\":\"TCP\"}":{".":{},"f:containerPort":{}}}`}},
		"a place means any item":      {path: "spec.containers[7].ports", gone: []string{`,"f:ports":{"k:{\"containerPort\":80,\"protocol\":\"TCP\"}":{".":{},"f:containerPort":{}}}`}},
		"items of a set":              {path: "metadata.finalizers[*]", gone: []string{`".":{},"v:\"a.io/x\"":{}`}},
		"several items of a set":      {path: "spec.nested.set[*]", gone: []string{`".":{},"v:1":{},"v:2":{},"v:3":{}`}},
		"a field of items by place":   {path: "spec.list[0].a", gone: []string{`,"i:2":{"f:a":{}}`}},
		"a missing field":             {path: "spec.other"},
		"a field that is not below":   {path: "spec.replicas.a"},
		"an item that is not there":   {path: `spec.containers[?(@.name=="x")]`},
		"an item by what is no key":   {path: `spec.containers[?(@.image=="x")]`},
		"an item of a set by a field": {path: `metadata.finalizers[?(@.name=="a.io/x")]`},
		"items of a map":              {path: "metadata.labels[*]"},
		"a field in a list":           {path: "spec.containers.image"},
	}
	whole := write(t, set(t, entry))
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			fields := set(t, entry)
			followed := mustParse(t, test.path)
			if got := followed.IsIn(fields); got != (len(test.gone) > 0) {
				t.Errorf("within: %v", got)
			}
			want := whole
			for _, gone := range test.gone {
				if !strings.Contains(want, gone) {
					t.Fatalf("%s is not in %s", gone, want)
				}
				want = strings.Replace(want, gone, "", 1)
			}
			rest := followed.RemoveFrom(fields)
			if got := write(t, rest); got != want {
				t.Errorf("want %s\ngot  %s", want, got)
			}
			if followed.IsIn(rest) {
				t.Error("still within")
			}
			if got := write(t, fields); got != whole {
				t.Errorf("the set itself changed: %s", got)
			}
		})
	}
}

func TestRemoveFromEmptiesParents(t *testing.T) {
	rest := mustParse(t, "spec.replicas").RemoveFrom(set(t, `{"f:spec":{"f:replicas":{}}}`))
	if !rest.Empty() {
		t.Errorf("left %s", rest)
	}
	if rest := mustParse(t, "a").RemoveFrom(nil); rest != nil {
		t.Errorf("made %s of nothing", rest)
	}
	if mustParse(t, "a").IsIn(nil) || mustParse(t, "a").IsIn(&smdpath.Set{}) {
		t.Error("within nothing")
	}
}

// The result is the same as after checking every path of the set on its own.
func TestRemoveFromKeepsOtherPaths(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 0)) //nolint:gosec // the same sets in every run
	element := func() smdpath.PathElement {
		switch random.IntN(7) {
		case 0:
			return smdpath.KeyElementByFields("n", []string{"x", "y"}[random.IntN(2)])
		case 1:
			return smdpath.KeyElementByFields("m", "1", "n", "x")
		case 2:
			return smdpath.IndexElement(random.IntN(2))
		default:
			return smdpath.FieldNameElement([]string{"a", "b", "c"}[random.IntN(3)])
		}
	}
	steps := []string{".a", ".b", ".c", "[*]", "[0]", `[?(@.n=="x")]`, `[?(@.m=="1")]`}
	within := 0
	for range 5000 {
		fields := smdpath.NewSet()
		for range random.IntN(16) {
			inserted := smdpath.Path{smdpath.FieldNameElement("a")}
			for range random.IntN(6) {
				inserted = append(inserted, element())
			}
			fields.Insert(inserted)
		}
		chosen := []string{}
		for range random.IntN(5) {
			chosen = append(chosen, steps[random.IntN(len(steps))])
		}
		followed := mustParse(t, "a"+strings.Join(chosen, ""))
		want, found := smdpath.NewSet(), false
		fields.Iterate(func(candidate smdpath.Path) {
			if beginsWith(candidate[1:], chosen) {
				found = true
				return
			}
			want.Insert(candidate.Copy())
		})
		if got := followed.IsIn(fields); got != found {
			t.Fatalf("%s within %s: %v", followed, fields, got)
		}
		if got := followed.RemoveFrom(fields); !got.Equals(want) {
			t.Fatalf("without %s of %s\nwant %s\ngot  %s", followed, fields, want, got)
		}
		if found {
			within++
		}
	}
	if within < 500 || within > 4500 {
		t.Errorf("%d of 5000 were within: that tries too little", within)
	}
}

func beginsWith(candidate smdpath.Path, steps []string) bool {
	if len(candidate) < len(steps) {
		return false
	}
	for position, step := range steps {
		text := candidate[position].String()
		isField := strings.HasPrefix(text, ".")
		switch step {
		case "[*]", "[0]":
			if isField {
				return false
			}
		case `[?(@.n=="x")]`:
			if !strings.Contains(text, `n="x"`) {
				return false
			}
		case `[?(@.m=="1")]`:
			if !strings.Contains(text, `m="1"`) {
				return false
			}
		default:
			if text != step {
				return false
			}
		}
	}
	return true
}

func TestPathsAreEqualByValue(t *testing.T) {
	one, two := mustParse(t, `a[?(@.b=='c')]['d']`), mustParse(t, `a[?(@.b=="c")].d`)
	if !reflect.DeepEqual(one, two) || reflect.DeepEqual(one, fieldpath.Path{}) {
		t.Errorf("%v and %v", one, two)
	}
}
