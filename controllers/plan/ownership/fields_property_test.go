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
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/synchub-dev/synchub/controllers/plan/ownership"
	"github.com/synchub-dev/synchub/test/fixtures"
)

func setOf(t *testing.T, entry []byte) *fieldpath.Set {
	t.Helper()
	set := &fieldpath.Set{}
	if err := set.FromJSON(bytes.NewReader(entry)); err != nil {
		t.Fatal(err)
	}
	return set
}

func entryOf(t *testing.T, set *fieldpath.Set) []byte {
	t.Helper()
	entry, err := set.ToJSON()
	if err != nil {
		t.Fatal(err)
	}
	return entry
}

// leaves returns the paths with nothing below them, whose loss must be reported.
func leaves(set *fieldpath.Set) []fieldpath.Path {
	var paths []fieldpath.Path
	for path := range set.Leaves().All() {
		paths = append(paths, path.Copy())
	}
	return paths
}

// reported returns the path that reports the loss of a leaf: its highest ancestor without anything left in the entry.
func reported(entry *fieldpath.Set, leaf fieldpath.Path) string {
	below := entry
	for length, element := range leaf {
		children, ok := below.Children.Get(element)
		if !ok {
			return leaf[:length+1].String()
		}
		below = children
	}
	return leaf.String()
}

// If the hub's entry loses a single leaf, exactly this loss is reported.
func TestEveryLostLeafIsReported(t *testing.T) {
	for name, text := range manifests {
		t.Run(name, func(t *testing.T) {
			desired := fixtures.Map(t, text)
			server := newServer(t, desired)
			server.apply(hubManager, desired)
			whole := setOf(t, server.entry())
			all := leaves(whole)
			if len(all) == 0 {
				t.Fatal("the entry is empty")
			}
			for _, leaf := range all {
				if emptyList(desired, leaf) {
					continue
				}
				rest := whole.Leaves().Difference(fieldpath.NewSet(leaf))
				got := unowned(t, desired, entryOf(t, rest))
				if want := []string{reported(rest, leaf)}; !slices.Equal(numbered(got), numbered(want)) {
					t.Errorf("without %s: want %v, got %v", leaf, want, got)
				}
			}
		})
	}
}

// emptyList reports whether the desired value of a leaf is an empty list: its loss is not drift.
func emptyList(desired any, leaf fieldpath.Path) bool {
	for _, element := range leaf {
		switch typed := desired.(type) {
		case map[string]any:
			if element.FieldName == nil {
				return false
			}
			desired = typed[*element.FieldName]
		case []any:
			index := slices.IndexFunc(typed, func(item any) bool { return isItem(element, item) })
			if index < 0 {
				return false
			}
			desired = typed[index]
		}
	}
	list, ok := desired.([]any)
	return ok && len(list) == 0
}

func isItem(element fieldpath.PathElement, item any) bool {
	fields, ok := item.(map[string]any)
	if !ok || element.Key == nil {
		return false
	}
	for _, key := range *element.Key {
		val, ok := fields[key.Name]
		if !ok && key.Name == "protocol" {
			val = "TCP"
		}
		if fmt.Sprint(val) != fmt.Sprint(key.Value.Unstructured()) {
			return false
		}
	}
	return true
}

// No path is unowned if and only if the entry has every field that an apply of the object would record.
func TestUnownedIffNotInTheEntry(t *testing.T) {
	parser, err := typed.NewParser(allSorts)
	if err != nil {
		t.Fatal(err)
	}
	lost := 0
	for seed := range uint64(700) {
		g := seeded(seed)
		desired := g.object()
		value, err := parser.Type("root").FromUnstructured(desired)
		if err != nil {
			t.Fatalf("%v\n%v", err, desired)
		}
		whole, err := value.ToFieldSet()
		if err != nil {
			t.Fatal(err)
		}
		if got := unowned(t, desired, entryOf(t, whole)); len(got) > 0 {
			t.Fatalf("seed %d: %v uncovered by the whole entry %s\nof %v", seed, got, whole, desired)
		}
		others := fieldpath.NewSet(fieldpath.MakePathOrDie("theirs"), fieldpath.MakePathOrDie("spec", "theirs"), fieldpath.MakePathOrDie("data", "theirs"))
		if got := unowned(t, desired, entryOf(t, whole.Union(others))); len(got) > 0 {
			t.Fatalf("seed %d: %v uncovered when the entry holds more", seed, got)
		}

		rest := whole
		var removed []fieldpath.Path
		for _, leaf := range leaves(whole) {
			if g.IntN(8) == 0 && !emptyList(desired, leaf) {
				rest = rest.Leaves().Difference(fieldpath.NewSet(leaf))
				removed = append(removed, leaf)
			}
		}
		lost += len(removed)
		var want []string
		for _, leaf := range removed {
			want = append(want, reported(rest, leaf))
		}
		slices.Sort(want)
		want = slices.Compact(want)
		if got := unowned(t, desired, entryOf(t, rest)); !slices.Equal(numbered(got), numbered(want)) {
			t.Fatalf("seed %d: without %v: want %v, got %v\n%v", seed, removed, want, got, desired)
		}
	}
	if lost < 1000 {
		t.Errorf("only %d leaves were ever removed", lost)
	}
}

// numbered replaces the last step of a path to a port by its index: a port without a protocol is reported by index.
func numbered(paths []string) []string {
	result := make([]string, len(paths))
	for index, path := range paths {
		if position := strings.LastIndex(path, ".ports["); position >= 0 && strings.HasSuffix(path, "]") {
			path = path[:position] + ".ports[…]"
		}
		result[index] = path
	}
	slices.Sort(result)
	return result
}

func FuzzUnownedPaths(f *testing.F) {
	f.Add(`{"data":{"a":"b"}}`, []byte(`{"f:data":{"f:a":{}}}`))
	f.Add(`{"spec":{"ports":[{"port":80},{"port":80,"protocol":"UDP"}]}}`, []byte(`{"f:spec":{"f:ports":{"k:{\"port\":80,\"protocol\":\"TCP\"}":{".":{},"f:port":{}}}}}`))
	f.Add(`{"set":["a",1,null,{},[]]}`, []byte(`{"f:set":{"v:\"a\"":{},"v:1":{},"v:null":{},"v:{}":{},"v:[]":{},"i:0":{},"k:{}":{},"f:x":{}}}`))
	f.Add(`{"metadata":{"labels":{"a":"b"},"annotations":[]},"status":1}`, []byte(`{"f:metadata":{".":{},"f:labels":{}}}`))
	f.Add(`{"metadata":"x","":{"":[[]]}}`, []byte(`{"f:":{"f:":{"x:":{}}}}`))
	f.Add(`{"a":[{"k":1}]}`, []byte(`{"f:a":{"k:{\"k\":{\"x\":[1]}}":{},"k:null":{},"k:1":{}}}`))
	f.Add(`{"set":[{"a":1,"b":2},[{"a":1,"b":2}]]}`, []byte(`{"f:set":{"v:{\"a\":1}":{}}}`))
	f.Add(`{"a":1}`, []byte(`null`))
	f.Add(`{"a":1}`, []byte(`{"f:a":[]}`))
	f.Fuzz(func(t *testing.T, object string, entry []byte) {
		desired := &unstructured.Unstructured{}
		if err := desired.UnmarshalJSON([]byte(`{"apiVersion":"v1","kind":"Any"` + strings.Replace(object, "{", ",", 1))); err != nil {
			return
		}
		before := desired.DeepCopy()
		first, err := ownership.UnownedPaths(desired.Object, entry)
		if err != nil {
			return
		}
		if !slices.IsSorted(first) {
			t.Errorf("not sorted: %v", first)
		}
		if second, err := ownership.UnownedPaths(before.Object, entry); err != nil || !slices.Equal(first, second) {
			t.Errorf("%v, then %v, %v", first, second, err)
		}
		for _, path := range first {
			if !strings.HasPrefix(path, ".") || path == ".kind" || path == ".apiVersion" || path == ".status" {
				t.Errorf("reported %q", path)
			}
		}
		holders, err := ownership.ManagersOf(desired.Object, []metav1.ManagedFieldsEntry{{Manager: "self", FieldsV1: metav1.NewFieldsV1(string(entry))}}, first)
		if err != nil || len(holders) > 0 {
			t.Errorf("an entry holds what it does not cover: %v, %v", holders, err)
		}
	})
}

func BenchmarkUnownedPaths(b *testing.B) {
	list, entry := make([]any, 10000), fieldpath.NewSet()
	for index := range list {
		name := fmt.Sprint("item-", (index*7919)%len(list))
		list[index] = map[string]any{"name": name, "value": "x"}
		element := fieldpath.KeyByFields("name", name)
		for _, field := range []any{"name", "value"} {
			entry.Insert(fieldpath.MakePathOrDie("list", element, field))
		}
		entry.Insert(fieldpath.MakePathOrDie("list", element))
	}
	fields, err := entry.ToJSON()
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		paths, err := ownership.UnownedPaths(map[string]any{"list": list}, fields)
		if err != nil || len(paths) > 0 {
			b.Fatal(paths, err)
		}
	}
}
