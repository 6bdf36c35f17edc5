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
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/test/fixtures"
)

// emptied returns the JSON pointers of the fields to empty on the server.
func (s *customServer) emptied(desired map[string]any) map[string]any {
	fields := ownership.EmptiedFields(s.live, desired, hubManager)
	delete(fields, "/metadata/managedFields")
	return fields
}

// empty empties fields like the API server after the hub's patch.
func (s *customServer) empty(fields map[string]any) {
	s.t.Helper()
	s.update(hubManager, func(object map[string]any) { maps.Copy(object, replace(s.t, object, fields)) })
}

// replace returns the object with new values at JSON pointers.
func replace(t testing.TB, object, values map[string]any) map[string]any {
	t.Helper()
	text, _ := json.Marshal(values)
	replaced := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(object)}
	var plain map[string]any
	if err := json.Unmarshal(text, &plain); err != nil {
		t.Fatal(err)
	}
	for pointer, value := range plain {
		path := pathTo(replaced.Object, pointer)
		if !exists(replaced.Object, path) {
			t.Fatalf("nothing is at %s of %v", pointer, object)
		}
		setAt(replaced.Object, path, value)
	}
	return replaced.Object
}

// othersOwnBelow reports whether a manager other than the hub owns a field below a path of keys. The hub may own a key, and
// another manager the fields in it: then the schema decides whether an apply without the key removes them.
func othersOwnBelow(t *testing.T, object *unstructured.Unstructured, path []any) bool {
	t.Helper()
	elements := make([]any, len(path))
	for index, step := range path {
		elements[index] = "f:" + step.(string)
	}
	return slices.ContainsFunc(object.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool {
		fields := map[string]any{}
		if err := json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields); err != nil {
			t.Fatal(err)
		}
		return entry.Manager != hubManager && exists(fields, elements) && len(valueAt(fields, elements).(map[string]any)) > 0
	})
}

// pathTo returns the path of a JSON pointer.
func pathTo(value any, pointer string) (path []any) {
	for step := range strings.SplitSeq(pointer[1:], "/") {
		key := strings.NewReplacer("~1", "/", "~0", "~").Replace(step)
		switch typed := value.(type) {
		case []any:
			index, err := strconv.Atoi(key)
			if err != nil || index >= len(typed) {
				return append(path, key)
			}
			value, path = typed[index], append(path, index)
		case map[string]any:
			value, path = typed[key], append(path, key)
		default:
			path = append(path, key)
		}
	}
	return path
}

func TestEmptiedFields(t *testing.T) {
	for name, test := range map[string]struct {
		before, after string
		others        func(*customServer)
		want          map[string]any
		// unseen is true if only the target's object shows that a field is emptied.
		unseen bool
	}{
		"a map":                  {before: "values: {a: {b: c}}", after: "values: {a: {}}", want: map[string]any{"/values/a": map[string]any{}}},
		"the topmost one":        {before: "values: {a: {b: c}}", after: "values: {}", want: map[string]any{"/values": map[string]any{}}},
		"a map that gets a key":  {before: "values: {a: {b: c}}", after: "values: {a: {d: {}}}"},
		"a map that keeps a key": {before: "values: {a: {b: c, d: e}}", after: "values: {a: {b: c}}"},
		"a removed map":          {before: "values: {a: {b: c}, d: e}", after: "values: {d: e}"},
		"a map that becomes null": {
			before: "values: {a: {b: c}}", after: "values: {a: null}",
		},
		"a map that becomes a list": {before: "spec: {nested: {a: {b: {c: d}}}}", after: "spec: {nested: {a: {}}}", want: map[string]any{"/spec/nested/a": map[string]any{}}},
		"an empty map":              {before: "values: {a: {}}", after: "values: {a: {}}"},
		"an atomic map":             {before: "spec: {atoms: {a: {b: c}}}", after: "spec: {atoms: {a: {}}}"},
		"an atomic list":            {before: "values: {a: [b]}", after: "values: {a: []}"},
		"a set":                     {before: "spec: {sets: {a: [b]}}", after: "spec: {sets: {a: []}}", want: map[string]any{"/spec/sets/a": []any{}}},
		"a keyed list":              {before: "spec: {list: [{name: web}]}", after: "spec: {list: []}", want: map[string]any{"/spec/list": []any{}}},
		"the map of an item":        {before: "spec: {list: [{name: web}, {name: db, values: {a: b}}]}", after: "spec: {list: [{name: db, values: {}}]}", want: map[string]any{"/spec/list/1/values": map[string]any{}}},
		"awkward keys":              {before: `values: {"a/b": {"~1": {"": {x: y}}}}`, after: `values: {"a/b": {"~1": {"": {}}}}`, want: map[string]any{"/values/a~1b/~01/": map[string]any{}}},
		"several":                   {before: "values: {a: {b: c}, d: {e: f}}, spec: {values: {x: y}}", after: "values: {a: {}, d: {}}, spec: {values: {}}", want: map[string]any{"/values/a": map[string]any{}, "/values/d": map[string]any{}, "/spec/values": map[string]any{}}},
		"a field that is named like metadata": {
			before: "values: {metadata: {labels: {a: b}}}", after: "values: {metadata: {labels: {}}}", want: map[string]any{"/values/metadata/labels": map[string]any{}},
		},
		"a default":                        {before: "spec: {shops: {a: {port: 80}}}", after: "spec: {shops: {a: {}}}"},
		"the hub's own value of a default": {before: "spec: {shops: {a: {port: 80, protocol: UDP}}}", after: "spec: {shops: {a: {}}}", want: map[string]any{"/spec/shops/a": map[string]any{}}},
		"another's key": {
			before: "values: {a: {b: c}}", after: "values: {a: {}}",
			others: func(s *customServer) { s.update("other", set("values", "a", "d")("e")) },
		},
		"another's key in a key of the hub's": {
			before: "values: {a: {b: {c: d}}}", after: "values: {a: {}}", want: map[string]any{"/values/a": map[string]any{}},
			others: func(s *customServer) { s.update("other", set("values", "a", "b", "x")("e")) },
		},
		"another's key in a field of an object": {
			before: "spec: {values: {b: c}}", after: "spec: {}",
			others: func(s *customServer) { s.update("other", set("spec", "values", "x")("e")) },
		},
		"another's key in another map": {
			before: "values: {a: {b: c}, d: {e: f}}", after: "values: {a: {}, d: {}}", want: map[string]any{"/values/d": map[string]any{}},
			others: func(s *customServer) { s.update("other", set("values", "a", "x")("y")) },
		},
		"a shared key": {
			before: "values: {a: {b: c}}", after: "values: {a: {}}",
			others: func(s *customServer) { s.apply("other", customObject(s.t, "values: {a: {b: c}}")) },
		},
		"a shared map": {
			before: "values: {a: {b: c}}", after: "values: {a: {}}", want: map[string]any{"/values/a": map[string]any{}},
			others: func(s *customServer) { s.apply("other", customObject(s.t, "values: {a: {}}")) },
		},
		"a map that stays for another": {
			before: "values: {a: {b: c}, d: e}", after: "values: {d: e}", want: map[string]any{"/values/a": map[string]any{}}, unseen: true,
			others: func(s *customServer) { s.apply("other", customObject(s.t, "values: {a: {}}")) },
		},
		"a deep map that stays for another": {
			before: "values: {a: {b: {c: d}}}", after: "spec: {list: []}", want: map[string]any{"/values/a/b": map[string]any{}}, unseen: true,
			others: func(s *customServer) { s.apply("other", customObject(s.t, "values: {a: {b: {}}}")) },
		},
		"another's value of the hub's key": {
			before: "values: {a: {b: c}}", after: "values: {a: {}}",
			others: func(s *customServer) { s.update("other", set("values", "a", "b")("evil")) },
		},
		"an entry that cannot be read": {
			before: "values: {a: {b: c}}", after: "values: {a: {}}",
			others: func(s *customServer) {
				s.live.SetManagedFields(append(s.live.GetManagedFields(), metav1.ManagedFieldsEntry{Manager: "other", FieldsV1: metav1.NewFieldsV1("[]")}))
			},
		},
		"an object that the hub has not applied": {
			before: "values: {a: {b: c}}", after: "values: {a: {}}",
			others: func(s *customServer) { s.live.SetManagedFields(nil) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			server, desired := newCustomServer(t), customObject(t, test.after)
			server.apply(hubManager, customObject(t, test.before))
			if test.others != nil {
				test.others(server)
			}
			applied := ownership.AppliedFields(server.live, hubManager)
			if got := server.emptied(desired); !maps.EqualFunc(got, test.want, func(a, b any) bool { return reflect.DeepEqual(a, b) }) {
				t.Errorf("want %v, got %v", test.want, got)
			}
			if empties, err := ownership.Empties(desired, applied); err != nil || len(test.want) > 0 && empties == test.unseen {
				t.Errorf("empties: %v, %v", empties, err)
			}
		})
	}
}

// On API servers that empty maps correctly, the patch makes no difference. On other API servers, nothing is left to empty.
func TestEmptiedFieldsChangeLikeAnApply(t *testing.T) {
	emptied := 0
	for seed := range uint64(1500) {
		g := seeded(seed)
		server, before := newCustomServer(t), customObject(t, "values: {}")
		setAt(before, []any{"metadata", "labels"}, map[string]any{"owner": "hub"})
		for range 3 {
			at(t, before, "values")[g.name()] = g.values(4)
		}
		server.apply(hubManager, before)
		paths := pathsOf(before["values"], []any{"values"})
		for range g.IntN(3) {
			g.write(server, paths[g.IntN(len(paths))])
		}
		desired := g.emptied(before, paths)

		direct := *server
		direct.live = server.live.DeepCopy()
		direct.apply(hubManager, desired)
		fields := ownership.EmptiedFields(server.live, desired, hubManager)
		checkEmpties(t, server, desired, fields)
		if len(fields) > 0 {
			emptied++
			server.empty(fields)
		}
		patched := server.live.DeepCopy()
		server.apply(hubManager, desired)
		if !reflect.DeepEqual(server.live.Object["values"], direct.live.Object["values"]) {
			t.Errorf("want %v, got %v", direct.live.Object["values"], server.live.Object["values"])
		}
		if got, want := ownersOf(t, server.live), ownersOf(t, direct.live); !reflect.DeepEqual(got, want) {
			t.Errorf("want the owners %v, got %v", want, got)
		}
		if paths := emptiedBetween(t, patched, server.live); len(paths) > 0 {
			t.Errorf("the apply empties %v", paths)
		}
		if t.Failed() {
			t.Fatalf("seed %d\nfields %v\ndesired %v\npatched %v", seed, fields, desired["values"], patched.Object["values"])
		}
	}
	if emptied < 200 {
		t.Errorf("only %d objects had maps to empty", emptied)
	}
}

// write changes the value at a path as another manager, by an apply or an update.
func (g generator) write(server *customServer, path []any) {
	next := []any{"x", map[string]any{}, map[string]any{"other": "x"}}[g.IntN(3)]
	if object, ok := nested(server.t, path, next); ok && g.IntN(3) == 0 {
		server.apply("applier", object)
		return
	}
	server.update("somebody", func(object map[string]any) {
		if exists(object, path) && len(path) > 1 {
			object["values"] = setAt(object["values"], path[1:], next)
		}
	})
}

// emptied returns the object with some values emptied or removed.
func (g generator) emptied(object map[string]any, paths [][]any) map[string]any {
	result := runtime.DeepCopyJSON(object)
	for range 1 + g.IntN(3) {
		path, next := paths[g.IntN(len(paths))], []any{map[string]any{}, map[string]any{}, absent}[g.IntN(3)]
		switch {
		case !exists(result, path):
		case len(path) > 1:
			result["values"] = setAt(result["values"], path[1:], next)
		case next != absent:
			result["values"] = next
		}
	}
	return result
}

// checkEmpties fails the test unless the hub's cache shows each desired map that must be emptied.
func checkEmpties(t *testing.T, server *customServer, desired, fields map[string]any) {
	t.Helper()
	empties, err := ownership.Empties(desired, ownership.AppliedFields(server.live, hubManager))
	if err != nil {
		t.Error(err)
	}
	for pointer := range fields {
		if !empties && pointer != "/metadata/managedFields" && exists(desired, pathTo(server.live.Object, pointer)) {
			t.Errorf("%s is to be emptied, and the cache does not show that", pointer)
		}
	}
}

// emptiedBetween returns the paths of maps that became empty, outside of lists, if only the hub owned fields in them.
func emptiedBetween(t *testing.T, before, after *unstructured.Unstructured) (paths [][]any) {
	t.Helper()
	for _, path := range pathsOf(after.Object["values"], []any{"values"}) {
		if slices.ContainsFunc(path, func(step any) bool { _, isIndex := step.(int); return isIndex }) {
			continue // the list is replaced as a whole
		}
		is, _ := valueAt(after.Object, path).(map[string]any)
		if was, _ := valueAt(before.Object, path).(map[string]any); is != nil && len(is) == 0 && len(was) > 0 && !othersOwnBelow(t, before, path) {
			paths = append(paths, path)
		}
	}
	return paths
}

// nested returns an object with the value at a path of keys; false if the path leads through a list.
func nested(tb testing.TB, path []any, value any) (map[string]any, bool) {
	tb.Helper()
	for _, step := range slices.Backward(path) {
		key, ok := step.(string)
		if !ok {
			return nil, false
		}
		value = map[string]any{key: value}
	}
	object := customObject(tb, "")
	maps.Copy(object, value.(map[string]any))
	return object, true
}

// valueAt returns the value at an existing path.
func valueAt(value any, path []any) any {
	for _, step := range path {
		switch typed := value.(type) {
		case map[string]any:
			value = typed[step.(string)]
		case []any:
			value = typed[step.(int)]
		}
	}
	return value
}

// Without an empty map or list in the desired object, Empties reads and allocates nothing.
func TestEmptiesCostsNothing(t *testing.T) {
	none := []byte("no entry")
	for _, kind := range fixtures.All() {
		desired := kind.MailboxObject(t).Object
		if made := testing.AllocsPerRun(10, func() { _, _ = ownership.Empties(desired, none) }); made > 0 {
			t.Errorf("%s: %v allocations", kind.Kind, made)
		}
	}
	if _, err := ownership.Empties(map[string]any{"spec": map[string]any{}}, none); err == nil {
		t.Error("an entry that is none was read")
	}
}

func FuzzEmptiedFields(f *testing.F) {
	f.Add([]byte(`{"f:spec":{"f:b":{"f:c":{}}}}`), []byte(`{"f:spec":{"f:b":{}}}`), `{"b":{"c":1}}`, `{"b":{}}`)
	f.Add([]byte(`{"f:spec":{"f:l":{"k:{\"n\":\"x\",\"p\":1}":{".":{},"f:v":{"f:~/":{}}}}}}`), []byte(`{"f:spec":{}}`), `{"l":[null,"x",{"n":"x","p":1,"v":{"~/":[]}}]}`, `{"l":[{"n":"x","v":{}}]}`)
	f.Add([]byte(`{"f:spec":{"v:1":{"f:x":{}},"i:0":{"f:x":{}},".":{}}}`), []byte(`{}`), `[{"x":1}]`, `[]`)
	f.Fuzz(func(t *testing.T, ours, theirs []byte, content, wanted string) {
		object := &unstructured.Unstructured{}
		var desired any
		if json.Unmarshal([]byte(wanted), &desired) != nil || object.UnmarshalJSON([]byte(`{"apiVersion":"v1","kind":"Any","metadata":{"managedFields":[
			{"manager":"`+hubManager+`","operation":"Apply","fieldsV1":`+string(ours)+`},{"manager":"x","operation":"Update","fieldsV1":`+string(theirs)+`}]},"spec":`+content+`}`)) != nil {
			return
		}
		before := object.DeepCopy()
		fields := ownership.EmptiedFields(object, map[string]any{"spec": desired}, hubManager)
		if !reflect.DeepEqual(before, object) {
			t.Error("the object changed")
		}
		if len(fields) > 0 {
			replace(t, object.Object, fields)
		}
		_, _ = ownership.Empties(map[string]any{"spec": desired}, ours)
	})
}

// ownersOf returns the fields of each manager, as text.
func ownersOf(t *testing.T, object *unstructured.Unstructured) map[string]string {
	t.Helper()
	owners := map[string]string{}
	for _, entry := range object.GetManagedFields() {
		set := &fieldpath.Set{}
		if !read(set, entry.FieldsV1.GetRawString()) {
			t.Fatal("an entry cannot be read")
		}
		owners[entry.Manager+"/"+string(entry.Operation)] = set.String()
	}
	return owners
}
