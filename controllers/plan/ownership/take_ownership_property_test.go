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
	"reflect"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/synchub-dev/synchub/controllers/plan/ownership"
)

// checkTakeOwnership checks the invariants for any two sets: no other manager owns an applied field afterwards, and TakeOwnership
// took only these fields, fields below them, and maps that would be left empty.
func checkTakeOwnership(t *testing.T, applied, updated *fieldpath.Set) {
	t.Helper()
	ours := entry(hubManager, metav1.ManagedFieldsOperationApply, "", string(entryOf(t, applied)))
	theirs := entry("x", metav1.ManagedFieldsOperationUpdate, "", string(entryOf(t, updated)))
	before := []metav1.ManagedFieldsEntry{theirs, ours}
	after, changed := ownership.TakeOwnership(slices.Clone(before), hubManager)
	if again, twice := ownership.TakeOwnership(slices.Clone(after), hubManager); twice || !reflect.DeepEqual(again, after) {
		t.Errorf("something is left to take: %v, then %v", after, again)
	}
	if !slices.ContainsFunc(after, func(entry metav1.ManagedFieldsEntry) bool { return reflect.DeepEqual(entry, ours) }) {
		t.Errorf("our own entry changed: %v", after)
	}
	rest := &fieldpath.Set{}
	for _, entry := range after {
		if entry.Manager == "x" {
			rest = setOf(t, entry.FieldsV1.GetRawBytes())
		}
	}
	if changed == rest.Equals(updated) {
		t.Errorf("changed: %v, but of %s there is %s", changed, updated, rest)
	}
	if both := rest.Intersection(applied); !both.Empty() {
		t.Errorf("still owned by two: %s", both)
	}
	if more := rest.Difference(updated); !more.Empty() {
		t.Errorf("gave away %s", more)
	}
	for path := range updated.Difference(rest).All() {
		if !within(applied, path) && !above(applied, path) {
			t.Errorf("took %s", path)
		}
		if !within(applied, path) && above(rest, path) {
			t.Errorf("took the map %s of which %s is left", path, rest)
		}
	}
}

// within reports whether the set has the path or a path above it.
func within(set *fieldpath.Set, path fieldpath.Path) bool {
	for length := 1; length <= len(path); length++ {
		if set.Has(path[:length]) {
			return true
		}
	}
	return false
}

// above reports whether the set has a path below this one.
func above(set *fieldpath.Set, path fieldpath.Path) bool {
	for _, element := range path {
		set = set.WithPrefix(element)
	}
	return !set.Empty()
}

func TestTakeOwnershipOfAnything(t *testing.T) {
	parser, err := typed.NewParser(allSorts)
	if err != nil {
		t.Fatal(err)
	}
	fields := func(object map[string]any) *fieldpath.Set {
		value, err := parser.Type("root").FromUnstructured(object)
		if err != nil {
			t.Fatal(err)
		}
		set, err := value.ToFieldSet()
		if err != nil {
			t.Fatal(err)
		}
		return set
	}
	for seed := range uint64(600) {
		g := seeded(seed)
		ours, theirs := fields(g.object()), fields(g.object())
		if g.IntN(2) == 0 {
			theirs = theirs.Union(ours)
		}
		if ours.Empty() || theirs.Empty() {
			continue
		}
		// An update also owns its maps.
		withMaps := theirs.Copy()
		for path := range theirs.All() {
			for length := 1; length < len(path); length++ {
				if g.IntN(2) == 0 {
					withMaps.Insert(path[:length].Copy())
				}
			}
		}
		checkTakeOwnership(t, ours, withMaps)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func FuzzTakeOwnership(f *testing.F) {
	f.Add(`{"f:data":{"f:a":{}}}`, `{"f:data":{".":{},"f:a":{},"f:b":{}}}`)
	f.Add(`{"f:l":{"k:{\"n\":1}":{".":{},"f:n":{}},"v:1":{},"i:0":{}}}`, `{".":{},"f:l":{".":{},"k:{\"n\":1}":{"f:x":{}},"v:1":{},"i:0":{}}}`)
	f.Add(`{}`, `{"f:":{}}`)
	f.Add(`{".":{}}`, `{"f:a":{".":{}}}`)
	f.Add(`{`, `{"f:a":null}`)
	f.Fuzz(func(t *testing.T, ours, theirs string) {
		entries := []metav1.ManagedFieldsEntry{
			entry("x", metav1.ManagedFieldsOperationUpdate, "", theirs), entry(hubManager, metav1.ManagedFieldsOperationApply, "", ours),
		}
		before := slices.Clone(entries)
		if got, changed := ownership.TakeOwnership(entries, hubManager); !changed && !reflect.DeepEqual(got, entries) || !reflect.DeepEqual(entries, before) {
			t.Errorf("%v became %v", before, got)
		}
		applied, updated := &fieldpath.Set{}, &fieldpath.Set{}
		if read(applied, ours) && read(updated, theirs) && !applied.Empty() && !updated.Empty() {
			checkTakeOwnership(t, applied, updated)
		}
	})
}

func read(set *fieldpath.Set, fields string) bool {
	return set.FromJSON(strings.NewReader(fields)) == nil
}
