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

package ownership

import (
	"bytes"
	"fmt"
	"slices"

	"k8s.io/utils/lru"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// Uncovered returns the paths of desired that fieldsV1, our managedFields entry on the live object, does not hold.
//
// When somebody else changes a field that we applied, our entry loses it; when the server merely writes a value in
// another form, the entry keeps it. So an uncovered path is drift, and a differing value of a covered path is not.
// The entry itself shows how each list is keyed, so no schema is needed. Keys that the server defaulted (a port's
// protocol) may be missing from the desired item.
//
// One loss cannot be seen, because an atomic map that is still ours looks the same: that of every field of a map which
// is itself the value of a key (a map of objects, or anything without a schema).
//
// Only what server-side apply records is looked at: not apiVersion, kind, status, and of metadata only labels and
// annotations. The result is sorted.
func Uncovered(desired map[string]any, fieldsV1 []byte) ([]string, error) {
	gaps, err := gapsOf(desired, fieldsV1)
	if err != nil {
		return nil, fmt.Errorf("cannot read our managedFields entry: %w", err)
	}
	var missing []string
	for _, gap := range gaps {
		missing = append(missing, gap.path)
	}
	slices.Sort(missing)
	return missing, nil
}

// gap is a part of the desired object that an entry does not hold, reported at its root.
type gap struct {
	path string
	// deep is true if the part has parts of its own.
	deep bool
}

// recentSets are the entries that were read last, by their text. Objects of one make have the same, and to read it is most of
// what it takes to compare an object with what it is to be. They are read by many at once and changed by nobody. Long ones are
// not kept, so that nobody's objects fill the memory; what is kept takes tens of MiB at most.
var recentSets = lru.New(128)

// longestSet is the length in bytes of the longest text that is kept; that of a Deployment has about 2,000.
const longestSet = 8 << 10

func readSet(fieldsV1 []byte) (*fieldpath.Set, error) {
	text := string(fieldsV1)
	if known, ok := recentSets.Get(text); ok {
		return known.(*fieldpath.Set), nil
	}
	set := &fieldpath.Set{}
	if len(fieldsV1) > 0 {
		if err := set.FromJSON(bytes.NewReader(fieldsV1)); err != nil {
			return nil, err
		}
	}
	if len(text) <= longestSet {
		recentSets.Add(text, set)
	}
	return set, nil
}

func gapsOf(desired map[string]any, fieldsV1 []byte) ([]gap, error) {
	owned, err := readSet(fieldsV1)
	if err != nil {
		return nil, err
	}
	var gaps []gap
	uncoveredMap(recorded(desired), owned, nil, func(path fieldpath.Path, desired any) {
		_, isMap := desired.(map[string]any)
		_, isList := desired.([]any)
		gaps = append(gaps, gap{path: path.String(), deep: isMap || isList})
	})
	return gaps, nil
}

// recorded is the part of an object that managedFields speak of.
func recorded(object map[string]any) map[string]any {
	result := make(map[string]any, len(object))
	for key, val := range object {
		switch key {
		case "apiVersion", "kind", "status":
		case "metadata":
			metadata, _ := val.(map[string]any)
			kept := map[string]any{}
			for _, field := range []string{"labels", "annotations"} {
				if entries, ok := metadata[field].(map[string]any); ok && len(entries) > 0 {
					kept[field] = entries
				}
			}
			if len(kept) > 0 {
				result[key] = kept
			}
		default:
			result[key] = val
		}
	}
	return result
}

// reporter must not keep the path: it is written over afterwards.
type reporter func(path fieldpath.Path, desired any)

func uncovered(desired any, element fieldpath.PathElement, owned *fieldpath.Set, path fieldpath.Path, report reporter) {
	children, ok := owned.Children.Get(element)
	if !ok || children.Empty() {
		// A scalar, an atomic list or map, or an empty one: owned as a whole or not at all.
		if !owned.Members.Has(element) && !claimsNothing(desired) {
			report(path, desired)
		}
		return
	}
	switch typed := desired.(type) {
	case map[string]any:
		uncoveredMap(typed, children, path, report)
	case []any:
		uncoveredList(typed, children, path, report)
	default:
		if !owned.Members.Has(element) {
			report(path, desired)
		}
	}
}

// claimsNothing tells whether an apply of a value may leave no trace in the entry: that of an empty list does not if the
// list is keyed. An atomic list leaves one, but if it is empty and somebody else filled it (as the rules of an
// aggregated ClusterRole are), it looks the same, and that is no drift either.
func claimsNothing(desired any) bool {
	switch typed := desired.(type) {
	case []any:
		return len(typed) == 0
	case map[string]any:
		for _, val := range typed {
			if !claimsNothing(val) {
				return false
			}
		}
		return len(typed) > 0
	default:
		return false
	}
}

func uncoveredMap(desired map[string]any, owned *fieldpath.Set, path fieldpath.Path, report reporter) {
	for key, val := range desired {
		element := fieldpath.FieldNameElement(key)
		uncovered(val, element, owned, append(path, element), report)
	}
}

func uncoveredList(desired []any, owned *fieldpath.Set, path fieldpath.Path, report reporter) {
	// All elements are called alike.
	var sample fieldpath.PathElement
	eachElement(owned, func(element fieldpath.PathElement) { sample = element })
	var named fieldpath.PathElementSet
	var defaulted []int
	for index, item := range desired {
		element, ok := identity(item, sample)
		if !ok {
			defaulted = append(defaulted, index)
			continue
		}
		named.Insert(element)
		uncovered(item, element, owned, append(path, step(element, index)), report)
	}
	if len(defaulted) == 0 {
		return
	}
	// An item that leaves a key to the server comes last, so that it cannot take the place of one that names it.
	var free []fieldpath.PathElement
	eachElement(owned, func(element fieldpath.PathElement) {
		if !named.Has(element) {
			named.Insert(element)
			free = append(free, element)
		}
	})
	for _, index := range defaulted {
		item := desired[index]
		position := slices.IndexFunc(free, func(element fieldpath.PathElement) bool { return canBe(element, item) })
		if position < 0 {
			report(append(path, fieldpath.IndexElement(index)), item)
			continue
		}
		element := free[position]
		free = slices.Delete(free, position, position+1)
		uncovered(item, element, owned, append(path, step(element, index)), report)
	}
}

// eachElement goes through the elements of a list, through some twice. Who owns a field of an item need not own the item.
func eachElement(list *fieldpath.Set, do func(fieldpath.PathElement)) {
	list.Members.Iterate(do)
	list.Children.Iterate(do)
}

// identity returns what an item is called in a list whose elements are called like sample. It fails if the item lacks a
// key.
func identity(item any, sample fieldpath.PathElement) (fieldpath.PathElement, bool) {
	if sample.Key == nil {
		return fieldpath.ValueElement(value.NewValueInterface(item)), true
	}
	fields, _ := item.(map[string]any)
	key := make(value.FieldList, 0, len(*sample.Key))
	for _, field := range *sample.Key {
		val, ok := fields[field.Name]
		if !ok {
			return fieldpath.PathElement{}, false
		}
		key = append(key, value.Field{Name: field.Name, Value: value.NewValueInterface(val)})
	}
	return fieldpath.KeyElement(key...), true
}

// step is how an item is shown in a path: by what it is called, or by its place if it is called by more than scalars.
func step(element fieldpath.PathElement, index int) fieldpath.PathElement {
	isScalar := func(val value.Value) bool { return !val.IsMap() && !val.IsList() }
	if element.Value != nil && isScalar(*element.Value) {
		return element
	}
	if element.Key != nil && !slices.ContainsFunc(*element.Key, func(field value.Field) bool { return !isScalar(field.Value) }) {
		return element
	}
	return fieldpath.IndexElement(index)
}

// canBe tells whether a list element of a managedFields entry can be the item, some of whose keys the server defaulted.
func canBe(element fieldpath.PathElement, item any) bool {
	fields, ok := item.(map[string]any)
	if !ok || element.Key == nil {
		return false
	}
	for _, key := range *element.Key {
		if val, ok := fields[key.Name]; ok && !value.Equals(key.Value, value.NewValueInterface(val)) {
			return false
		}
	}
	return true
}
