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

package fieldpath

import (
	"slices"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// IsIn reports whether the set of a managedFields entry has a field at the path or below it. It does not find fields inside a
// value that the entry owns as a whole (an atomic list).
func (p Path) IsIn(set *fieldpath.Set) bool {
	return len(p.matchingPaths(set)) > 0
}

// RemoveFrom returns the set without the fields at the path or below it.
func (p Path) RemoveFrom(set *fieldpath.Set) *fieldpath.Set {
	found := p.matchingPaths(set)
	if len(found) == 0 {
		return set
	}
	return set.RecursiveDifference(fieldpath.NewSet(found...))
}

// OverlapsField reports whether a field of managedFields is at the path, below it or above it.
func (p Path) OverlapsField(field fieldpath.Path) bool {
	common := min(len(p.steps), len(field))
	for index := range common {
		if !p.steps[index].matchesElement(field[index]) {
			return false
		}
	}
	return common > 0
}

// AddTo returns the set with the field at the path, which includes everything below it. It returns the set unchanged if the path
// leads through a list.
func (p Path) AddTo(set *fieldpath.Set) *fieldpath.Set {
	elements := make(fieldpath.Path, 0, len(p.steps))
	for _, one := range p.steps {
		if one.kind != field {
			return set
		}
		elements = append(elements, fieldpath.FieldNameElement(one.name))
	}
	return set.Union(fieldpath.NewSet(elements))
}

// matchingPaths returns the roots of the set's fields at the path or below it.
func (p Path) matchingPaths(set *fieldpath.Set) []fieldpath.Path {
	if set == nil || len(p.steps) == 0 {
		return nil
	}
	return appendPaths(nil, set, p.steps, nil)
}

func appendPaths(paths []fieldpath.Path, set *fieldpath.Set, steps []step, at fieldpath.Path) []fieldpath.Path {
	matchingElements(set, steps[0]).Iterate(func(element fieldpath.PathElement) {
		here := append(slices.Clip(at), element)
		if len(steps) == 1 {
			paths = append(paths, here)
			return
		}
		if children, ok := set.Children.Get(element); ok {
			paths = appendPaths(paths, children, steps[1:], here)
		}
	})
	return paths
}

// matchingElements returns the elements of a set that a step matches.
func matchingElements(set *fieldpath.Set, next step) *fieldpath.PathElementSet {
	chosen := &fieldpath.PathElementSet{}
	choose := func(element fieldpath.PathElement) {
		if next.matchesElement(element) {
			chosen.Insert(element)
		}
	}
	set.Members.Iterate(choose)
	set.Children.Iterate(choose)
	return chosen
}

func (s step) matchesElement(element fieldpath.PathElement) bool {
	switch s.kind {
	case field:
		return element.FieldName != nil && *element.FieldName == s.name
	case filter:
		if element.Key == nil {
			return false
		}
		for _, key := range *element.Key {
			if key.Name == s.name {
				return s.hasValue(key.Value.Unstructured())
			}
		}
		return false
	default:
		return element.FieldName == nil
	}
}
