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
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	gosync "sync"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/test/fixtures"
)

// customTypes has maps with objects as values, maps and lists of each type, and free-form fields.
const customTypes = typed.YAMLObject(`
types:
- name: root
  map:
    fields:
    - {name: apiVersion, type: {scalar: string}}
    - {name: kind, type: {scalar: string}}
    - {name: metadata, type: {namedType: __untyped_deduced_}}
    - {name: values, type: {namedType: __untyped_deduced_}}
    - {name: spec, type: {namedType: spec}}
- name: spec
  map:
    fields:
    - {name: values, type: {namedType: __untyped_deduced_}}
    - {name: shops, type: {map: {elementType: {namedType: shop}}}}
    - {name: nested, type: {map: {elementType: {map: {elementType: {map: {elementType: {scalar: string}}}}}}}}
    - {name: atoms, type: {map: {elementType: {map: {elementType: {scalar: string}, elementRelationship: atomic}}}}}
    - {name: lists, type: {map: {elementType: {list: {elementType: {namedType: shop}, elementRelationship: associative, keys: [name]}}}}}
    - {name: sets, type: {map: {elementType: {list: {elementType: {scalar: string}, elementRelationship: associative}}}}}
    - {name: list, type: {list: {elementType: {namedType: shop}, elementRelationship: associative, keys: [name]}}}
- name: shop
  map:
    fields:
    - {name: name, type: {scalar: string}}
    - {name: port, type: {scalar: numeric}}
    - {name: protocol, type: {scalar: string}}
    - {name: selector, type: {map: {elementType: {scalar: string}, elementRelationship: atomic}}}
    - {name: values, type: {namedType: __untyped_deduced_}}
- name: __untyped_atomic_
  scalar: untyped
  list: {elementType: {namedType: __untyped_atomic_}, elementRelationship: atomic}
  map: {elementType: {namedType: __untyped_atomic_}, elementRelationship: atomic}
- name: __untyped_deduced_
  scalar: untyped
  list: {elementType: {namedType: __untyped_atomic_}, elementRelationship: atomic}
  map: {elementType: {namedType: __untyped_deduced_}, elementRelationship: separable}
`)

// customServer has one custom resource and writes its managedFields like API servers.
type customServer struct {
	t      testing.TB
	fields *managedfields.FieldManager
	live   *unstructured.Unstructured
}

type customConverter struct{ typed.ParseableType }

func (c customConverter) ObjectToTyped(object runtime.Object, options ...typed.ValidationOptions) (*typed.TypedValue, error) {
	return c.FromUnstructured(object.(*unstructured.Unstructured).Object, options...)
}

func (customConverter) TypedToObject(value *typed.TypedValue) (runtime.Object, error) {
	return &unstructured.Unstructured{Object: value.AsValue().Unstructured().(map[string]any)}, nil
}

// shopDefaulter sets the default of each shop's protocol.
type shopDefaulter struct{}

func (shopDefaulter) Default(object runtime.Object) {
	spec, _ := object.(*unstructured.Unstructured).Object["spec"].(map[string]any)
	shops, _ := spec["shops"].(map[string]any)
	for _, shop := range shops {
		if fields, ok := shop.(map[string]any); ok && fields["protocol"] == nil {
			fields["protocol"] = "TCP"
		}
	}
}

// parsedCustomTypes are the custom types, parsed once for the thousands of servers of the tests.
var parsedCustomTypes = gosync.OnceValues(func() (*typed.Parser, error) { return typed.NewParser(customTypes) })

func newCustomServer(tb testing.TB) *customServer {
	tb.Helper()
	parser, err := parsedCustomTypes()
	if err != nil {
		tb.Fatal(err)
	}
	gvk := schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Any"}
	fields, err := managedfields.NewDefaultCRDFieldManager(customConverter{parser.Type("root")}, unstructuredConverter{}, shopDefaulter{}, unstructuredCreator{}, gvk, gvk.GroupVersion(), "", nil)
	if err != nil {
		tb.Fatal(err)
	}
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(gvk)
	return &customServer{t: tb, fields: fields, live: live}
}

type unstructuredConverter struct{ runtime.ObjectConvertor }

func (unstructuredConverter) ConvertToVersion(in runtime.Object, _ runtime.GroupVersioner) (runtime.Object, error) {
	return in, nil
}

type unstructuredCreator struct{}

func (unstructuredCreator) New(kind schema.GroupVersionKind) (runtime.Object, error) {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	return object, nil
}

func (s *customServer) apply(manager string, desired map[string]any) {
	s.t.Helper()
	live, err := s.fields.Apply(s.live, &unstructured.Unstructured{Object: runtime.DeepCopyJSON(desired)}, manager, true)
	if err != nil {
		s.t.Fatalf("the apply by %s is refused: %v", manager, err)
	}
	s.live = live.(*unstructured.Unstructured)
	shopDefaulter{}.Default(s.live)
}

func (s *customServer) update(manager string, change func(object map[string]any)) {
	s.t.Helper()
	next := s.live.DeepCopy()
	change(next.Object)
	shopDefaulter{}.Default(next)
	live, err := s.fields.Update(s.live, next, manager)
	if err != nil {
		s.t.Fatalf("the update by %s is refused: %v", manager, err)
	}
	s.live = live.(*unstructured.Unstructured)
}

func (s *customServer) unowned(desired map[string]any) []string {
	s.t.Helper()
	paths, err := ownership.UnownedPaths(desired, ownership.AppliedFields(s.live, hubManager))
	if err != nil {
		s.t.Fatal(err)
	}
	return paths
}

func customObject(tb testing.TB, text string) map[string]any {
	tb.Helper()
	return fixtures.Map(tb, "{apiVersion: example.org/v1, kind: Any, metadata: {name: a}, "+text+"}")
}

func set(path ...any) func(value any) func(map[string]any) {
	return func(value any) func(map[string]any) {
		return func(object map[string]any) { setAt(object, path, value) }
	}
}

// setAt replaces the value at a path, or removes it if next is absent.
func setAt(value any, path []any, next any) any {
	if len(path) == 0 {
		return next
	}
	switch typed := value.(type) {
	case map[string]any:
		key := path[0].(string)
		if result := setAt(typed[key], path[1:], next); result == absent {
			delete(typed, key)
		} else {
			typed[key] = result
		}
	case []any:
		index := path[0].(int)
		result := setAt(typed[index], path[1:], next)
		if result == absent {
			return slices.Delete(typed, index, index+1)
		}
		typed[index] = result
	}
	return value
}

var absent any = struct{ absent bool }{true}

// When another client changes a map or list that is the value of a key, it is drift if the hub's value is gone.
func TestDriftInNestedMaps(t *testing.T) {
	const content = `spec: {
		values: {image: {tag: "1"}, replicas: {web: 1, db: 2}, deep: {deeper: {deepest: {key: a}}}, hosts: {names: [a, b]}, flags: {enabled: false, text: ""}},
		shops: {here: {name: here, port: 80, selector: {app: web}, values: {image: {tag: "1"}}}, there: {port: 81}},
		nested: {a: {b: {c: d}}},
		atoms: {a: {b: c}},
		lists: {a: [{name: web, port: 80, values: {image: {tag: "1"}}}], b: [{name: db}]},
		sets: {a: [u, v]},
		list: [{name: web, values: {image: {tag: "1"}}}],
	}, values: {nothing: null, deep: {nothing: null, list: [a, null]}}`
	for name, test := range map[string]struct {
		change func(map[string]any)
		want   []string
	}{
		"the only key":                  {set("spec", "values", "image", "tag")("evil"), []string{".spec.values.image.tag"}},
		"the only key is removed":       {set("spec", "values", "image", "tag")(absent), []string{".spec.values.image.tag"}},
		"the only key is replaced":      {set("spec", "values", "image")(map[string]any{"other": "x"}), []string{".spec.values.image.tag"}},
		"the map is emptied":            {set("spec", "values", "image")(map[string]any{}), []string{".spec.values.image.tag"}},
		"the map becomes null":          {set("spec", "values", "image")(nil), []string{".spec.values.image.tag"}},
		"the map becomes a text":        {set("spec", "values", "image")("x"), []string{".spec.values.image"}},
		"the map becomes a list":        {set("spec", "values", "image")([]any{"x"}), []string{".spec.values.image"}},
		"the map is removed":            {set("spec", "values", "image")(absent), []string{".spec.values.image"}},
		"all keys":                      {set("spec", "values", "replicas")(map[string]any{"web": int64(7), "db": int64(7)}), []string{".spec.values.replicas.db", ".spec.values.replicas.web"}},
		"one of two keys":               {set("spec", "values", "replicas", "web")(int64(7)), []string{".spec.values.replicas.web"}},
		"a deep key":                    {set("spec", "values", "deep", "deeper", "deepest", "key")("b"), []string{".spec.values.deep.deeper.deepest.key"}},
		"a deep map":                    {set("spec", "values", "deep", "deeper")(map[string]any{}), []string{".spec.values.deep.deeper.deepest"}},
		"a list":                        {set("spec", "values", "hosts", "names")([]any{"a"}), []string{".spec.values.hosts.names"}},
		"a list's item":                 {set("spec", "values", "hosts", "names", 1)("c"), []string{".spec.values.hosts.names"}},
		"zero values go":                {set("spec", "values", "flags")(map[string]any{}), []string{".spec.values.flags.enabled", ".spec.values.flags.text"}},
		"a field of an object":          {set("spec", "shops", "there", "port")(int64(82)), []string{".spec.shops.there.port"}},
		"an object's field is removed":  {set("spec", "shops", "there", "port")(absent), []string{".spec.shops.there.port"}},
		"an atomic map of an object":    {set("spec", "shops", "here", "selector", "app")("db"), []string{".spec.shops.here.selector"}},
		"a map of an object":            {set("spec", "shops", "here", "values", "image", "tag")("2"), []string{".spec.shops.here.values.image.tag"}},
		"maps of maps of maps":          {set("spec", "nested", "a", "b", "c")("e"), []string{".spec.nested.a.b.c"}},
		"maps of maps of maps, emptied": {set("spec", "nested", "a", "b", "c")(absent), []string{".spec.nested.a.b.c"}},
		"an atomic map":                 {set("spec", "atoms", "a", "b")("d"), []string{".spec.atoms"}},
		"the list of a key":             {set("spec", "lists", "a", 0)(map[string]any{"name": "evil"}), []string{".spec.lists.a[0]"}},
		"a field of an item":            {set("spec", "lists", "a", 0, "port")(int64(81)), []string{`.spec.lists.a[name="web"].port`}},
		"the only item is removed":      {set("spec", "lists", "b", 0)(absent), []string{".spec.lists.b[0]"}},
		"a set":                         {set("spec", "sets", "a")([]any{"z"}), []string{`.spec.sets.a[="u"]`, `.spec.sets.a[="v"]`}},
		"a set, emptied":                {set("spec", "sets", "a")([]any{}), []string{`.spec.sets.a[="u"]`, `.spec.sets.a[="v"]`}},
		"a map of an item":              {set("spec", "list", 0, "values", "image", "tag")("2"), []string{`.spec.list[name="web"].values.image.tag`}},
		"a map of an item, emptied":     {set("spec", "list", 0, "values", "image", "tag")(absent), []string{`.spec.list[name="web"].values.image.tag`}},
		"a null":                        {set("values", "nothing")("x"), []string{".values.nothing"}},
		"a null becomes a map":          {set("values", "nothing")(map[string]any{"x": "y"}), []string{".values.nothing"}},
		"a null becomes an empty map":   {set("values", "nothing")(map[string]any{}), []string{".values.nothing"}},
		"a null becomes a list":         {set("values", "nothing")([]any{"x"}), []string{".values.nothing"}},
		"a null is removed":             {set("values", "nothing")(absent), []string{".values.nothing"}},
		"a deep null becomes a map":     {set("values", "deep", "nothing")(map[string]any{"x": map[string]any{}}), []string{".values.deep.nothing"}},
		"a null of a list":              {set("values", "deep", "list", 1)("x"), []string{".values.deep.list"}},
		"nothing":                       {func(map[string]any) {}, nil},
		"another key":                   {set("spec", "values", "image", "other")("x"), nil},
		"another key in an object":      {set("spec", "shops", "there", "protocol")("UDP"), nil},
		"another map":                   {set("spec", "values", "other")(map[string]any{"x": "y"}), nil},
	} {
		t.Run(name, func(t *testing.T) {
			server, desired := newCustomServer(t), customObject(t, content)
			server.apply(hubManager, desired)
			if got := server.unowned(desired); len(got) > 0 {
				t.Fatalf("unowned right after the apply: %v", got)
			}
			server.update("somebody", test.change)
			if got := server.unowned(desired); !slices.Equal(got, test.want) {
				t.Errorf("want %v, got %v\n%s", test.want, got, ownership.AppliedFields(server.live, hubManager))
			}
			server.apply(hubManager, desired)
			nulls, err := ownership.NullsOfOthers(desired, ownership.AppliedFields(server.live, hubManager))
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(name, "null becomes a map") {
				// An apply cannot repair a null under another manager's value.
				if !slices.Equal(nulls, test.want) {
					t.Errorf("want nulls over other managers' fields at %v, got %v", test.want, nulls)
				}
				if managers, err := ownership.ManagersOf(desired, server.live.GetManagedFields(), nulls); err != nil || !slices.Contains(managers, "somebody") {
					t.Errorf("got the managers %v, %v", managers, err)
				}
				return
			}
			if len(nulls) > 0 {
				t.Errorf("nulls over other managers' fields: %v", nulls)
			}
			if got := server.unowned(desired); len(got) > 0 {
				t.Errorf("unowned after the repair: %v", got)
			}
			delete(at(t, desired, "spec"), "sets") // other managers' items stay
			if lost := differing(desired["spec"], server.live.Object["spec"], ""); len(lost) > 0 {
				t.Errorf("not repaired: %v", lost)
			}
		})
	}
}

// differing returns the paths of desired values that live does not have. A live map may have more entries.
func differing(desired, live any, path string) (paths []string) {
	wanted, ok := desired.(map[string]any)
	if !ok {
		if list, ok := desired.([]any); ok {
			return differingItems(list, live, path)
		}
		if !reflect.DeepEqual(desired, live) {
			return []string{path}
		}
		return nil
	}
	fields, ok := live.(map[string]any)
	if !ok {
		return []string{path}
	}
	for key, value := range wanted {
		if _, ok := fields[key]; !ok {
			paths = append(paths, path+"."+key)
			continue
		}
		paths = append(paths, differing(value, fields[key], path+"."+key)...)
	}
	return paths
}

// differingItems compares the items of a list by name, or by position if they have no names.
func differingItems(wanted []any, live any, path string) (paths []string) {
	items, _ := live.([]any)
	for index, item := range wanted {
		fields, _ := item.(map[string]any)
		if fields["name"] == nil {
			if !reflect.DeepEqual(wanted, live) {
				return []string{path}
			}
			return nil
		}
		found := slices.IndexFunc(items, func(other any) bool {
			names, ok := other.(map[string]any)
			return ok && names["name"] == fields["name"]
		})
		if found < 0 {
			paths = append(paths, fmt.Sprintf("%s[%d]", path, index))
			continue
		}
		paths = append(paths, differing(item, items[found], fmt.Sprintf("%s[%d]", path, index))...)
	}
	return paths
}

// values returns a random free-form value without empty maps and lists.
func (g generator) values(depth int) any {
	switch kind := g.IntN(6); {
	case kind == 0 && depth > 0:
		items := []any{}
		for range 1 + g.IntN(2) {
			items = append(items, g.values(depth-1))
		}
		return items
	case kind < 4 && depth > 0:
		fields := map[string]any{}
		for range 1 + g.IntN(3) {
			fields[g.name()] = g.values(depth - 1)
		}
		return fields
	default:
		return []any{g.name(), int64(g.IntN(3)), g.IntN(2) == 0, "", nil}[g.IntN(5)]
	}
}

// pathsOf returns the paths of all values.
func pathsOf(value any, path []any) [][]any {
	paths := [][]any{path}
	switch typed := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(typed)) {
			paths = append(paths, pathsOf(typed[key], append(slices.Clone(path), key))...)
		}
	case []any:
		for index, item := range typed {
			paths = append(paths, pathsOf(item, append(slices.Clone(path), index))...)
		}
	}
	return paths
}

// Each change of a value by another manager is drift, and nothing else is.
func TestEachChangeIsDrift(t *testing.T) {
	drifted := 0
	for seed := range uint64(600) {
		g := seeded(seed)
		desired := customObject(t, "values: {}")
		for range 3 {
			at(t, desired, "values")[g.name()] = g.values(4)
		}
		server := newCustomServer(t)
		server.apply(hubManager, desired)
		if got := server.unowned(desired); len(got) > 0 {
			t.Fatalf("seed %d: %v unowned right after the apply of %v", seed, got, desired)
		}
		all := pathsOf(desired["values"], []any{"values"})
		// A value that was changed and restored belongs to the other manager.
		var lost, strictly []string
		for range 1 + g.IntN(3) {
			place := all[g.IntN(len(all)-1)+1]
			server.update("somebody", func(object map[string]any) {
				if !exists(object, place) {
					return
				}
				next := []any{absent, nil, "evil", map[string]any{}, []any{}, map[string]any{"evil": "x"}, g.values(2)}[g.IntN(7)]
				object["values"] = setAt(object["values"], place[1:], next)
			})
			strictly = append(strictly, differing(desired["values"], server.live.Object["values"], "")...)
			lost = append(lost, differing(withoutNulls(desired["values"]), server.live.Object["values"], "")...)
		}
		got := server.unowned(desired)
		if len(lost) > 0 && len(got) == 0 || len(got) > 0 && len(strictly) == 0 {
			t.Fatalf("seed %d: lost %v, reported %v\ndesired %v\nlive    %v\napplied %s", seed, lost, got, desired, server.live.Object["values"], ownership.AppliedFields(server.live, hubManager))
		}
		if len(lost) == 0 {
			continue
		}
		drifted++
	}
	if drifted < 300 {
		t.Errorf("only %d changes were drift", drifted)
	}
}

// withoutNulls removes the nulls of maps, and maps with only nulls. If they are removed with their map, this is no drift.
func withoutNulls(value any) any {
	fields, ok := value.(map[string]any)
	if !ok {
		return value
	}
	result := map[string]any{}
	for key, item := range fields {
		below := withoutNulls(item)
		if fields, ok := below.(map[string]any); item != nil && (!ok || len(fields) > 0) {
			result[key] = below
		}
	}
	return result
}

// exists reports whether an object has a value at the path.
func exists(value any, path []any) bool {
	for _, step := range path {
		switch typed := value.(type) {
		case map[string]any:
			key, ok := step.(string)
			if value, ok = typed[key], ok && hasKey(typed, key); !ok {
				return false
			}
		case []any:
			index, ok := step.(int)
			if !ok || index >= len(typed) {
				return false
			}
			value = typed[index]
		default:
			return false
		}
	}
	return true
}

func hasKey(fields map[string]any, key string) bool {
	_, ok := fields[key]
	return ok
}

// Right after an apply, no path may be unowned, for any object. Otherwise the hub would write endlessly.
func TestNoUnownedFieldsAfterAnApplyOfTypedValues(t *testing.T) {
	for name, text := range manifests {
		desired := fixtures.Map(t, text)
		server := newServer(t, desired)
		server.apply(hubManager, desired)
		applied := ownership.AppliedFields(&unstructured.Unstructured{Object: server.object()}, hubManager)
		if got := unowned(t, desired, applied); len(got) > 0 {
			t.Errorf("%s: %v\n%s", name, got, applied)
		}
	}
}

func FuzzAppliedFields(f *testing.F) {
	f.Add([]byte(`{"f:a":{"f:b":{}}}`), []byte(`{"f:a":{}}`), `{"a":{"b":null}}`)
	f.Add([]byte(`{"f:l":{"k:{\"n\":\"x\",\"p\":1}":{".":{},"f:v":{}}}}`), []byte(`{"f:l":{"k:{\"n\":\"x\",\"p\":1}":{"f:v":{"f:w":{}}}}}`), `{"l":[{"n":"x","p":1,"v":{"w":[]}},null,"x"]}`)
	f.Add([]byte(`{"f:l":{"k:{\"n\":{}}":{}, "k:[":{}, "v:1":{}, "i:0":{}, ".":[]}}`), []byte(`[]`), `{"l":[{"n":{}}]}`)
	f.Fuzz(func(t *testing.T, ours, theirs []byte, content string) {
		object := &unstructured.Unstructured{}
		if object.UnmarshalJSON([]byte(`{"apiVersion":"v1","kind":"Any","metadata":{"managedFields":[
			{"manager":"`+hubManager+`","operation":"Apply","fieldsV1":`+string(ours)+`},{"manager":"x","operation":"Update","fieldsV1":`+string(theirs)+`}]},"spec":`+content+`}`)) != nil {
			return
		}
		before := object.DeepCopy()
		applied := ownership.AppliedFields(object, hubManager)
		if !reflect.DeepEqual(before, object) {
			t.Error("the object changed")
		}
		whole, completed := &fieldpath.Set{}, &fieldpath.Set{}
		if applied == nil || !read(whole, string(ours)) {
			return
		}
		if !read(completed, string(applied)) || !whole.Difference(completed).Empty() {
			t.Errorf("%s became %s", ours, applied)
		}
	})
}
