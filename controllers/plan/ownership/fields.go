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
	"maps"
	"slices"

	"k8s.io/utils/lru"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// UnownedPaths returns the sorted paths of desired that applied, the result of [AppliedFields] for the live object, lacks. It fails
// if applied cannot be decoded.
//
// When another writer changes a field that the hub applied, the hub's entry loses the field. When the server only normalizes a
// value, the entry keeps the field. So an unowned path is drift, and a differing value of an owned path is not. The entry
// contains the keys of each list, so UnownedPaths needs no schema. The desired item may lack keys that the server defaulted (a
// port's protocol).
//
// UnownedPaths also accepts an entry that the API server wrote. Then it cannot detect the loss of all fields of a map that is the
// value of a key.
//
// It compares only fields that server-side apply records: not apiVersion, kind and status, and of metadata only labels and
// annotations.
func UnownedPaths(desired map[string]any, applied []byte) ([]string, error) {
	gaps, err := unownedParts(desired, applied)
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

// NullsOfOthers returns the sorted paths where the desired object has a null, and another manager has filled the map or list of
// the live object. An API server keeps such a map or list when a null is applied. applied is the result of [AppliedFields].
func NullsOfOthers(desired map[string]any, applied []byte) ([]string, error) {
	gaps, err := unownedParts(desired, applied)
	if err != nil {
		return nil, fmt.Errorf("cannot read our managedFields entry: %w", err)
	}
	var paths []string
	for _, gap := range gaps {
		if gap.below != nil && gap.below.Members.Has(foreignPathElement) {
			paths = append(paths, gap.path)
		}
	}
	slices.Sort(paths)
	return paths, nil
}

// UnownedValue is a part of the desired object that another manager may own.
type UnownedValue struct {
	Path    fieldpath.Path
	Desired any
}

// UnownedValues returns the parts that [UnownedPaths] names, in no order.
func UnownedValues(desired map[string]any, applied []byte) (values []UnownedValue, err error) {
	owned, err := parseSet(applied)
	if err != nil {
		return nil, fmt.Errorf("cannot read our managedFields entry: %w", err)
	}
	reportUnownedInMap(managedPart(desired), owned, nil, func(path fieldpath.Path, desired any, _ *fieldpath.Set) {
		values = append(values, UnownedValue{path.Copy(), desired})
	})
	return values, nil
}

// ValueAt returns the value at a path of a live object; ok is false if there is none. It finds no items by their positions, which may
// differ from those in the desired object.
func ValueAt(live any, path fieldpath.Path) (found any, ok bool) {
	for _, element := range path {
		switch typed := live.(type) {
		case map[string]any:
			if element.FieldName == nil {
				return nil, false
			}
			live, ok = typed[*element.FieldName]
		case []any:
			position := slices.IndexFunc(typed, func(item any) bool { return isItemAt(element, item) })
			if ok = position >= 0; ok {
				live = typed[position]
			}
		default:
			return nil, false
		}
		if !ok {
			return nil, false
		}
	}
	return live, true
}

// isItemAt reports whether an element that is a value, or a key, is the element of a list's item.
func isItemAt(element fieldpath.PathElement, item any) bool {
	found, ok := elementOf(item, element)
	return ok && (element.Key != nil || element.Value != nil) && found.Equals(element)
}

// unownedPart is a part of the desired object that the entry does not own, reported at its root.
type unownedPart struct {
	path string
	// hasChildren is true if the part is a map or list.
	hasChildren bool
	// below are the fields that the entry owns below the part if the part is no map or list; otherwise nil.
	below *fieldpath.Set
}

// setCache caches parsed entries by their text. Objects from one template have equal entries, and parsing is most of the cost
// of comparing an object with the desired one. The sets are shared and must not be changed. Long texts are not cached, so that
// no tenant's objects fill the memory; the cache takes tens of MiB at most.
var setCache = lru.New(128)

// maxCachedSetBytes is the length of the longest text that is cached; a Deployment's has about 2,000 bytes.
const maxCachedSetBytes = 8 << 10

func parseSet(fieldsV1 []byte) (*fieldpath.Set, error) {
	text := string(fieldsV1)
	if known, ok := setCache.Get(text); ok {
		return known.(*fieldpath.Set), nil
	}
	set := &fieldpath.Set{}
	if len(fieldsV1) > 0 {
		if err := set.FromJSON(bytes.NewReader(fieldsV1)); err != nil {
			return nil, err
		}
	}
	if len(text) <= maxCachedSetBytes {
		setCache.Add(text, set)
	}
	return set, nil
}

func unownedParts(desired map[string]any, fieldsV1 []byte) ([]unownedPart, error) {
	owned, err := parseSet(fieldsV1)
	if err != nil {
		return nil, err
	}
	var gaps []unownedPart
	reportUnownedInMap(managedPart(desired), owned, nil, func(path fieldpath.Path, desired any, below *fieldpath.Set) {
		_, isMap := desired.(map[string]any)
		_, isList := desired.([]any)
		gaps = append(gaps, unownedPart{path: path.String(), hasChildren: isMap || isList, below: below})
	})
	return gaps, nil
}

// managedPart returns the part of an object that managedFields can name.
func managedPart(object map[string]any) map[string]any {
	result := make(map[string]any, len(object))
	for key, val := range object {
		switch key {
		case "apiVersion", "kind", "status":
		case "metadata":
			metadata, _ := val.(map[string]any)
			kept := map[string]any{}
			for _, field := range []string{"labels", "annotations"} {
				entries, _ := metadata[field].(map[string]any)
				if entries = withoutIdentity(entries); len(entries) > 0 {
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

// withoutIdentity removes [IdentityAnnotation], which a copy that was only created lacks: the hub makes no write only to add it.
func withoutIdentity(entries map[string]any) map[string]any {
	if _, ok := entries[IdentityAnnotation]; !ok {
		return entries
	}
	kept := maps.Clone(entries)
	delete(kept, IdentityAnnotation)
	return kept
}

// reportFunc reports a part that is not owned. below are the owned fields below it if the part is no map or list. The function
// must not keep the path, which is overwritten afterwards.
type reportFunc func(path fieldpath.Path, desired any, below *fieldpath.Set)

func reportUnowned(desired any, element fieldpath.PathElement, owned *fieldpath.Set, path fieldpath.Path, report reportFunc) {
	children, ok := owned.Children.Get(element)
	if !ok || children.Empty() {
		// Scalars, atomic lists and maps, and empty ones are owned as a whole.
		if !owned.Members.Has(element) && !ownsNothingWhenApplied(desired) {
			report(path, desired, nil)
		}
		return
	}
	switch typed := desired.(type) {
	case map[string]any:
		reportUnownedInMap(typed, children, path, report)
	case []any:
		reportUnownedInList(typed, children, path, report)
	default:
		// A null stays in the entry when another manager replaces it by a map.
		if !owned.Members.Has(element) || desired == nil && children.Members.Has(foreignPathElement) {
			report(path, desired, children)
		}
	}
}

// These are the parsed completedElement and foreignElement.
var completedPathElement, foreignPathElement = fieldpath.IndexElement(-1), fieldpath.IndexElement(-2)

// IsEmptyValue reports whether an API server may drop a value: null, an empty list or a map of only such values.
func IsEmptyValue(desired any) bool {
	switch typed := desired.(type) {
	case nil:
		return true
	case []any:
		return len(typed) == 0
	case map[string]any:
		for _, val := range typed {
			if !IsEmptyValue(val) {
				return false
			}
		}
		return true
	default:
		return false
	}
}

// ownsNothingWhenApplied reports whether applying a value may leave no trace in the entry. An empty keyed list leaves none. An
// empty atomic list does, but its entry is the same after another writer filled the list, such as the rules of an aggregated
// ClusterRole. That is no drift either.
func ownsNothingWhenApplied(desired any) bool {
	switch typed := desired.(type) {
	case []any:
		return len(typed) == 0
	case map[string]any:
		for _, val := range typed {
			if !ownsNothingWhenApplied(val) {
				return false
			}
		}
		return len(typed) > 0
	default:
		return false
	}
}

func reportUnownedInMap(desired map[string]any, owned *fieldpath.Set, path fieldpath.Path, report reportFunc) {
	completed := owned.Members.Has(completedPathElement)
	for key, val := range desired {
		if completed && IsEmptyValue(val) {
			// The API server may drop it from an atomic map.
			continue
		}
		element := fieldpath.FieldNameElement(key)
		reportUnowned(val, element, owned, append(path, element), report)
	}
}

func reportUnownedInList(desired []any, owned *fieldpath.Set, path fieldpath.Path, report reportFunc) {
	// All elements of one list have the same form.
	var sample fieldpath.PathElement
	forEachElement(owned, func(element fieldpath.PathElement) { sample = element })
	var named fieldpath.PathElementSet
	var defaulted []int
	for index, item := range desired {
		element, ok := elementOf(item, sample)
		if !ok {
			defaulted = append(defaulted, index)
			continue
		}
		named.Insert(element)
		reportUnowned(item, element, owned, append(path, displayElement(element, index)), report)
	}
	if len(defaulted) == 0 {
		return
	}
	// Items that leave a key to the server's default come last, so that they cannot take the element of an item that sets it.
	var free []fieldpath.PathElement
	forEachElement(owned, func(element fieldpath.PathElement) {
		if !named.Has(element) {
			named.Insert(element)
			free = append(free, element)
		}
	})
	for _, index := range defaulted {
		item := desired[index]
		position := slices.IndexFunc(free, func(element fieldpath.PathElement) bool { return mayBeItem(element, item) })
		if position < 0 {
			report(append(path, fieldpath.IndexElement(index)), item, nil)
			continue
		}
		element := free[position]
		free = slices.Delete(free, position, position+1)
		reportUnowned(item, element, owned, append(path, displayElement(element, index)), report)
	}
}

// forEachElement visits the elements of a list, some twice. The owner of an item's field need not own the item.
func forEachElement(list *fieldpath.Set, do func(fieldpath.PathElement)) {
	list.Members.Iterate(do)
	list.Children.Iterate(do)
}

// elementOf returns the path element of an item in a list whose elements have the form of sample; false if the item lacks a
// key.
func elementOf(item any, sample fieldpath.PathElement) (fieldpath.PathElement, bool) {
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

// displayElement returns the element for an item in a displayed path: its key, or its index if the key has values other than
// scalars.
func displayElement(element fieldpath.PathElement, index int) fieldpath.PathElement {
	isScalar := func(val value.Value) bool { return !val.IsMap() && !val.IsList() }
	if element.Value != nil && isScalar(*element.Value) {
		return element
	}
	if element.Key != nil && !slices.ContainsFunc(*element.Key, func(field value.Field) bool { return !isScalar(field.Value) }) {
		return element
	}
	return fieldpath.IndexElement(index)
}

// mayBeItem reports whether an element of the entry can be the item, some of whose keys the server may have defaulted.
func mayBeItem(element fieldpath.PathElement, item any) bool {
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
