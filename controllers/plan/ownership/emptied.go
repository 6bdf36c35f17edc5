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
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Empties reports whether applying the desired object removes all entries that the manager applied to a map or list, while the
// empty map or list stays. applied is the result of [AppliedFields] for the live object. An object without empty maps and lists
// costs nothing.
//
// Most API servers replace such a map or list by null: all but those with structured-merge-diff 6.3.2, 6.4.0 or 6.4.1. They refuse that,
// store the null, or set the default.
func Empties(desired map[string]any, applied []byte) (bool, error) {
	if len(applied) == 0 || !hasEmptyFields(desired) {
		return false, nil
	}
	owned, err := parseSet(applied)
	if err != nil {
		return false, err
	}
	return emptiesAny(managedPart(desired), owned), nil
}

// hasEmptyFields reports whether an object has an empty map or list outside of its metadata and status.
func hasEmptyFields(object map[string]any) bool {
	for field, value := range object {
		if field != "metadata" && field != "status" && hasEmpty(value) {
			return true
		}
	}
	return false
}

func hasEmpty(value any) bool {
	switch typed := value.(type) {
	case map[string]any:
		for _, field := range typed {
			if hasEmpty(field) {
				return true
			}
		}
		return len(typed) == 0
	case []any:
		return len(typed) == 0 || slices.ContainsFunc(typed, hasEmpty)
	default:
		return false
	}
}

// emptiesAny reports whether a desired map or list has an empty one, at any depth, whose parts are owned.
func emptiesAny(desired any, owned *fieldpath.Set) bool {
	found := false
	owned.Children.Iterate(func(element fieldpath.PathElement) {
		below, _ := owned.Children.Get(element)
		switch child, ok := desiredChild(desired, element); {
		case found || !ok || below.Members.Has(completedPathElement):
			// The entry owns an atomic map as a whole, which is replaced.
		case isEmptyContainer(child):
			found = true
		default:
			found = emptiesAny(child, below)
		}
	})
	return found
}

// EmptiedFields returns new values of fields of the live object, by their JSON pointers. They empty each map and list that an
// apply of the desired object would leave empty, but not remove: the desired object has it, or another manager owns the map or
// list itself. Maps and lists with entries or items of other managers are not included. EmptiedFields returns nil if there are
// none.
//
// The fields include managedFields, because the API server may fill an empty map with defaults, and would remove them in the
// apply that follows if the manager owned them. Both requests together have the result that the apply alone should have.
func EmptiedFields(live *unstructured.Unstructured, desired map[string]any, manager string) map[string]any {
	entries := live.GetManagedFields()
	search := emptiedSearch{fields: map[string]any{}}
	var ours *fieldpath.Set
	var others []*fieldpath.Set
	position := 0
	for index, entry := range entries {
		fields, ok := fieldSetOf(entry)
		switch {
		case !ok:
			// The entry has an owner, but its fields cannot be decoded.
			return nil
		case isApplyEntry(entry, manager):
			ours, position = fields, index
		default:
			others = append(others, fields)
		}
	}
	if ours == nil {
		return nil
	}
	search.visit(ours, others, managedPart(live.Object), managedPart(desired), "", nil)
	if len(search.paths) == 0 {
		return nil
	}
	var ok bool
	if entries[position], ok = withFields(entries[position], ours.RecursiveDifference(fieldpath.NewSet(search.paths...))); !ok {
		return nil
	}
	search.fields["/metadata/managedFields"] = entries
	return search.fields
}

type emptiedSearch struct {
	fields map[string]any
	paths  []fieldpath.Path
}

// visit visits the parts of a live map or list that the manager owns. desired is nil if the desired object does not have it.
func (s *emptiedSearch) visit(ours *fieldpath.Set, others []*fieldpath.Set, live, desired any, pointer string, path fieldpath.Path) {
	ours.Children.Iterate(func(element fieldpath.PathElement) {
		value, step, ok := liveChild(live, element)
		if !ok {
			return
		}
		below, _ := ours.Children.Get(element)
		child, isDesired := desiredChild(desired, element)
		stays := isDesired && isEmptyContainer(child) || !isDesired && isMember(others, element)
		pointer, path, others := pointer+"/"+step, append(slices.Clip(path), element), childrenOf(others, element)
		if stays && element.FieldName != nil && removesAll(value, below, others) {
			s.fields[pointer] = emptyLike(value)
			s.paths = append(s.paths, path)
			return
		}
		s.visit(below, others, value, child, pointer, path)
	})
}

func isEmptyContainer(value any) bool {
	switch typed := value.(type) {
	case map[string]any:
		return len(typed) == 0
	case []any:
		return len(typed) == 0
	default:
		return false
	}
}

func emptyLike(value any) any {
	if _, ok := value.([]any); ok {
		return []any{}
	}
	return map[string]any{}
}

// removesAll reports whether a live map or list becomes empty when the fields in ours, which the manager owns, are no longer
// applied.
func removesAll(live any, ours *fieldpath.Set, others []*fieldpath.Set) bool {
	switch typed := live.(type) {
	case map[string]any:
		for key, value := range typed {
			if !removes(fieldpath.FieldNameElement(key), value, ours, others) {
				return false
			}
		}
	case []any:
		var sample fieldpath.PathElement
		forEachElement(ours, func(element fieldpath.PathElement) { sample = element })
		for _, item := range typed {
			if element, ok := elementOf(item, sample); !ok || !removes(element, item, ours, others) {
				return false
			}
		}
	}
	return true
}

// removes reports whether an element of a live map or list is removed when the fields in ours are no longer applied. An API
// server removes an entry of a map, and an item of a list, with all fields in it, even fields of other managers. It removes a
// field of an object only if the field becomes empty.
func removes(element fieldpath.PathElement, live any, ours *fieldpath.Set, others []*fieldpath.Set) bool {
	_, isContainer := ours.Children.Get(element)
	switch {
	case isMember(others, element):
		return false
	case ours.Members.Has(element) && isContainer:
		return true
	default:
		return len(childrenOf(others, element)) == 0 && ownsAll(ours, element, live)
	}
}

// ownsAll reports whether the set owns all parts of a live value.
func ownsAll(owned *fieldpath.Set, element fieldpath.PathElement, live any) bool {
	all := true
	reportUnowned(live, element, owned, nil, func(fieldpath.Path, any, *fieldpath.Set) { all = false })
	return all
}

func isMember(sets []*fieldpath.Set, element fieldpath.PathElement) bool {
	return slices.ContainsFunc(sets, func(set *fieldpath.Set) bool { return set.Members.Has(element) })
}

func childrenOf(sets []*fieldpath.Set, element fieldpath.PathElement) (children []*fieldpath.Set) {
	for _, set := range sets {
		if below, ok := set.Children.Get(element); ok && !below.Empty() {
			children = append(children, below)
		}
	}
	return children
}

// liveChild returns the map or list at an element of a live map or list, and the element's step in a JSON pointer.
func liveChild(live any, element fieldpath.PathElement) (value any, step string, ok bool) {
	switch typed := live.(type) {
	case map[string]any:
		if element.FieldName != nil {
			value, step = typed[*element.FieldName], jsonPointerEscaper.Replace(*element.FieldName)
		}
	case []any:
		if index := itemIndex(typed, element); index >= 0 {
			value, step = typed[index], strconv.Itoa(index)
		}
	}
	switch value.(type) {
	case map[string]any, []any:
		return value, step, !isEmptyContainer(value)
	default:
		return nil, "", false
	}
}

var jsonPointerEscaper = strings.NewReplacer("~", "~0", "/", "~1")

// desiredChild returns the value at an element of a desired map or list.
func desiredChild(desired any, element fieldpath.PathElement) (value any, ok bool) {
	switch typed := desired.(type) {
	case map[string]any:
		if element.FieldName != nil {
			value, ok = typed[*element.FieldName]
		}
	case []any:
		if index := itemIndex(typed, element); index >= 0 {
			return typed[index], true
		}
	}
	return value, ok
}

// itemIndex returns the index of a list's item that has the keys of an element, otherwise of an item that leaves a key to the
// server's default; -1 if there is none.
func itemIndex(list []any, element fieldpath.PathElement) int {
	if element.Key == nil {
		return -1
	}
	index := slices.IndexFunc(list, func(item any) bool {
		found, ok := elementOf(item, element)
		return ok && found.Equals(element)
	})
	if index >= 0 {
		return index
	}
	return slices.IndexFunc(list, func(item any) bool { return mayBeItem(element, item) })
}
