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
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	kubejson "k8s.io/apimachinery/pkg/util/json"

	"github.com/synchub-dev/synchub/controllers/plan/fieldpath"
	"github.com/synchub-dev/synchub/test/fixtures"
)

const workload = `{
	"kind": "Deployment",
	"metadata": {"name": "n", "labels": {"app.io/name": "a", "tier": "b"}},
	"spec": {"replicas": 3, "ratio": 0.5, "paused": false, "nothing": null, "empty": {}, "none": [],
		"containers": [
			{"name": "app", "image": "one", "args": ["x", "y"], "port": 80},
			{"name": "side", "image": "two", "port": 80.5, "ready": true},
			{"name": "app", "image": "three", "args": ["z"]},
			"no map"],
		"grid": [[1, 2], [3]]}}`

func TestValues(t *testing.T) {
	tests := map[string]struct{ path, want string }{
		"a number":                       {"spec.replicas", `[3]`},
		"a fraction":                     {"spec.ratio", `[0.5]`},
		"a map":                          {"metadata.labels", `[{"app.io/name":"a","tier":"b"}]`},
		"a quoted name":                  {"metadata.labels['app.io/name']", `["a"]`},
		"a null":                         {"spec.nothing", `[null]`},
		"below a null":                   {"spec.nothing.a", `[]`},
		"a missing field":                {"spec.template.spec", `[]`},
		"an item":                        {"spec.containers[1].image", `["two"]`},
		"an item beyond the end":         {"spec.containers[4]", `[]`},
		"all items":                      {"spec.containers[*].image", `["one","two","three"]`},
		"items of items, in their order": {"spec.containers[*].args[*]", `["x","y","z"]`},
		"items of an empty list":         {"spec.none[*]", `[]`},
		"lists in lists":                 {"spec.grid[*][0]", `[1,3]`},
		"items by a text":                {`spec.containers[?(@.name=="app")].image`, `["one","three"]`},
		"items by a whole number":        {`spec.containers[?(@.port=="80")].image`, `["one"]`},
		"items by a fraction":            {`spec.containers[?(@.port=="80.5")].image`, `["two"]`},
		"items by a boolean":             {`spec.containers[?(@.ready=="true")].image`, `["two"]`},
		"items by a list":                {`spec.containers[?(@.args=="x")].image`, `[]`},
		"items by a missing field":       {`spec.containers[?(@.missing=="")].image`, `[]`},
		"a name in a list":               {"spec.containers.image", `[]`},
		"an item of a map":               {"spec[0]", `[]`},
		"all items of a map":             {"metadata.labels[*]", `[]`},
		"items of a map by a field":      {`metadata[?(@.name=="n")]`, `[]`},
		"a name in a text":               {"kind.a", `[]`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			object := fixtures.Map(t, workload)
			got, err := json.Marshal(append([]any{}, mustParse(t, test.path).Values(object)...))
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != test.want {
				t.Errorf("want %s, got %s", test.want, got)
			}
			if !reflect.DeepEqual(object, fixtures.Map(t, workload)) {
				t.Error("the object changed")
			}
		})
	}
}

func TestDelete(t *testing.T) {
	tests := map[string]struct{ object, path, want string }{
		"a field":                      {`{"a":{"b":1,"c":2}}`, "a.b", `{"a":{"c":2}}`},
		"the last field of a map":      {`{"a":{"b":1}}`, "a.b", `{"a":{}}`},
		"a field of the object":        {`{"a":1}`, "a", `{}`},
		"a null":                       {`{"a":null,"b":1}`, "a", `{"b":1}`},
		"an item":                      {`{"a":[1,2,3]}`, "a[1]", `{"a":[1,3]}`},
		"all items":                    {`{"a":[1,2]}`, "a[*]", `{"a":[]}`},
		"items by a field":             {`{"a":[{"n":"x"},{"n":"y"},{"n":"x"}]}`, `a[?(@.n=="x")]`, `{"a":[{"n":"y"}]}`},
		"a field of all items":         {`{"a":[{"n":"x","m":1},{"n":"y"}]}`, "a[*].m", `{"a":[{"n":"x"},{"n":"y"}]}`},
		"an item of each of the items": {`{"a":[[1,2],[3],"x"]}`, "a[*][0]", `{"a":[[2],[],"x"]}`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			object := fixtures.Map(t, test.object)
			if !mustParse(t, test.path).Delete(object) {
				t.Error("nothing was there")
			}
			if want := fixtures.Map(t, test.want); !reflect.DeepEqual(object, want) {
				t.Errorf("want %v, got %v", want, object)
			}
			if mustParse(t, test.path).Delete(object) && !strings.HasSuffix(test.path, "]") {
				t.Error("it is still there")
			}
		})
	}
	for _, nowhere := range []string{"b", "a.c", "a.b.c", "a[0]", "l.x", "l[3]", `l[?(@.n=="x")]`, "n.a", "n[*]", "e[*]"} {
		object := fixtures.Map(t, `{"a":{"b":1},"l":[1,2],"n":null,"e":[]}`)
		before := runtime.DeepCopyJSON(object)
		if mustParse(t, nowhere).Delete(object) || !reflect.DeepEqual(object, before) {
			t.Errorf("%s leads nowhere, but removed something: %v", nowhere, object)
		}
	}
}

func TestChange(t *testing.T) {
	tests := map[string]struct {
		object, path string
		create       bool
		want         string
		// calls are the values for which Change calls the function.
		calls string
	}{
		"a field":                         {object: `{"a":{"b":1}}`, path: "a.b", want: `{"a":{"b":"new"}}`, calls: "1"},
		"a null":                          {object: `{"a":null}`, path: "a", want: `{"a":"new"}`, calls: "<nil>"},
		"all items":                       {object: `{"a":[1,2]}`, path: "a[*]", want: `{"a":["new","new"]}`, calls: "1 2"},
		"items by a field":                {object: `{"a":[{"n":"x","v":1},{"n":"y","v":2}]}`, path: `a[?(@.n=="y")].v`, want: `{"a":[{"n":"x","v":1},{"n":"y","v":"new"}]}`, calls: "2"},
		"a missing field":                 {object: `{"a":{}}`, path: "a.b", want: `{"a":{}}`},
		"a missing field, created":        {object: `{"a":{"c":1}}`, path: "a.b", create: true, want: `{"a":{"c":1,"b":"new"}}`, calls: "missing"},
		"missing parents":                 {object: `{}`, path: "a.b.c", want: `{}`},
		"missing parents, created":        {object: `{}`, path: "a.b['c.d']", create: true, want: `{"a":{"b":{"c.d":"new"}}}`, calls: "missing"},
		"a null parent, created":          {object: `{"a":null}`, path: "a.b", create: true, want: `{"a":{"b":"new"}}`, calls: "missing"},
		"a null parent":                   {object: `{"a":null}`, path: "a.b", want: `{"a":null}`},
		"a field of items, created":       {object: `{"a":[{},{"b":1}]}`, path: "a[*].b", create: true, want: `{"a":[{"b":"new"},{"b":"new"}]}`, calls: "missing 1"},
		"a missing list, not created":     {object: `{"s":{}}`, path: "s.a[*].b", create: true, want: `{"s":{}}`},
		"a missing parent of a list":      {object: `{}`, path: "s.a[0]", create: true, want: `{}`},
		"an empty list":                   {object: `{"a":[]}`, path: "a[*]", create: true, want: `{"a":[]}`},
		"a missing item":                  {object: `{"a":[1]}`, path: "a[1]", create: true, want: `{"a":[1]}`},
		"a missing item by its field":     {object: `{"a":[{"n":"x"}]}`, path: `a[?(@.n=="y")].v`, create: true, want: `{"a":[{"n":"x"}]}`},
		"through a text":                  {object: `{"a":"x"}`, path: "a.b", want: `{"a":"x"}`},
		"through a list, as if it a map":  {object: `{"a":[1]}`, path: "a.b", want: `{"a":[1]}`},
		"through a map, as if it a list":  {object: `{"a":{"b":1}}`, path: "a[*]", want: `{"a":{"b":1}}`},
		"an item of a list within a list": {object: `{"a":[[1,2],[3]]}`, path: "a[*][1]", want: `{"a":[[1,"new"],[3]]}`, calls: "2"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			object := fixtures.Map(t, test.object)
			var calls []string
			err := mustParse(t, test.path).Change(object, test.create, func(value any, present bool) (any, error) {
				if !present && value != nil {
					t.Errorf("missing, but %v", value)
				}
				call := fmt.Sprint(value)
				if !present {
					call = "missing"
				}
				calls = append(calls, call)
				if !reflect.DeepEqual(object, fixtures.Map(t, test.object)) {
					t.Errorf("the object has changed before all was asked for: %v", object)
				}
				return "new", nil
			})
			if err != nil {
				t.Fatal(err)
			}
			if want := fixtures.Map(t, test.want); !reflect.DeepEqual(object, want) {
				t.Errorf("want %v, got %v", want, object)
			}
			if got := strings.Join(calls, " "); got != test.calls {
				t.Errorf("want to be asked for %q, was for %q", test.calls, got)
			}
		})
	}
}

func TestChangeToAbsent(t *testing.T) {
	tests := map[string]struct{ object, path, want string }{
		"a field":             {`{"a":{"b":1}}`, "a.b", `{"a":{}}`},
		"an item":             {`{"a":[1,2]}`, "a[0]", `{"a":[2]}`},
		"a missing field":     {`{"a":{}}`, "a.b", `{"a":{}}`},
		"with its parents":    {`{}`, "a.b.c", `{}`},
		"below a null parent": {`{"a":null}`, "a.b.c", `{"a":null}`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			object := fixtures.Map(t, test.object)
			if err := mustParse(t, test.path).Change(object, true, func(any, bool) (any, error) { return fieldpath.Absent, nil }); err != nil {
				t.Fatal(err)
			}
			if want := fixtures.Map(t, test.want); !reflect.DeepEqual(object, want) {
				t.Errorf("want %v, got %v", want, object)
			}
		})
	}
}

func TestChangeFails(t *testing.T) {
	own := errors.New("own")
	tests := map[string]struct{ object, path, place, message string }{
		"through a text":           {`{"a":{"b":"x"}}`, "a.b.c", "a.b", "a.b: is text, but the path needs a map here"},
		"through a number":         {`{"a":1}`, "a.b", "a", "is a number"},
		"through a boolean":        {`{"a":true}`, "a[0]", "a", "is a boolean, but the path needs a list"},
		"through a list":           {`{"a":[{"b":1}]}`, "a.b", "a", "is a list, but the path needs a map"},
		"through a map":            {`{"a":{"b":{}}}`, "a.b[*].c", "a.b", "is a map, but the path needs a list"},
		"through an item":          {`{"a":[{"b":{}},{"b":[]}]}`, "a[*].b.c", "a[1].b", "is a list"},
		"the change":               {`{"a":[{"n":"x"},{"n":"y","v":1}]}`, `a[?(@.n=="y")].v`, "a[1].v", "a[1].v: own"},
		"the change, of a missing": {`{}`, "a.b['c.d']", "a.b['c.d']", "a.b['c.d']: own"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			object := fixtures.Map(t, test.object)
			err := mustParse(t, test.path).Change(object, true, func(value any, present bool) (any, error) {
				if value == int64(1) || !present && len(object) == 0 {
					return nil, own
				}
				return "new", nil
			})
			placed, ok := errors.AsType[*fieldpath.Error](err)
			if !ok {
				t.Fatalf("want an error with a place, got %v", err)
			}
			if placed.Location != test.place || !strings.Contains(err.Error(), test.message) {
				t.Errorf("want %q at %s, got at %s: %v", test.message, test.place, placed.Location, err)
			}
			if strings.HasPrefix(name, "the change") && !errors.Is(err, own) {
				t.Errorf("the cause is lost: %v", err)
			}
			if !reflect.DeepEqual(object, fixtures.Map(t, test.object)) {
				t.Errorf("the object changed: %v", object)
			}
		})
	}
}

// For any object: nothing panics, Values returns the results of Delete and Change, and values outside of the path do not change.
func FuzzObject(f *testing.F) {
	for _, text := range []string{"spec.containers[*].args[0]", "spec.none[*]", "spec.grid[*][*]", `spec.containers[?(@.name=="app")].image`, "spec.new.field", "kind.a", "spec.containers[*]"} {
		f.Add(workload, text)
	}
	f.Add(`{"a":null}`, "a.b")
	f.Add(`{"a":[null,{"b":null}]}`, "a[*].b.c")
	f.Fuzz(func(t *testing.T, document, text string) {
		parsed, err := fieldpath.Parse(text)
		if err != nil {
			return
		}
		var object map[string]any
		if kubejson.Unmarshal([]byte(document), &object) != nil || object == nil {
			return
		}
		values := parsed.Values(object)

		kept := runtime.DeepCopyJSON(object)
		if err := parsed.Change(kept, false, func(value any, _ bool) (any, error) { return value, nil }); err != nil || !reflect.DeepEqual(kept, object) {
			t.Errorf("nothing was to change: %v, %v", kept, err)
		}

		created := runtime.DeepCopyJSON(object)
		var seen []any
		err = parsed.Change(created, true, func(value any, present bool) (any, error) {
			if present {
				seen = append(seen, value)
			}
			return "new", nil
		})
		if err != nil && !reflect.DeepEqual(created, object) {
			t.Errorf("changed in spite of %v", err)
		}
		if err == nil {
			if !slices.EqualFunc(seen, values, func(a, b any) bool { return reflect.DeepEqual(a, b) }) {
				t.Errorf("values %v, but asked to change %v", values, seen)
			}
			for _, value := range parsed.Values(created) {
				// A filter by the changed value may no longer match the item.
				if value != "new" {
					t.Errorf("%v was left of %v", value, created)
				}
			}
		}

		removed := runtime.DeepCopyJSON(object)
		if parsed.Delete(removed) != (len(values) > 0) {
			t.Errorf("%d values", len(values))
		}
	})
}
