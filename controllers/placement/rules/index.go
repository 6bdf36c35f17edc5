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

package rules

import (
	"slices"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// maxEntries bounds the entries of an index, and so its memory: users write the lists of names. Further tests are tried for each object.
const maxEntries = 65_536

// Index finds the placements that select an object without trying each of them. Each test is indexed under the first of names, labels,
// namespaces and resources that it restricts. An object can match only tests under its own values, and unindexed ones. The index is
// immutable. The zero Index has no placements.
type Index struct {
	placements []*Placement
	// The maps contain positions of placements by a property of their tests. unindexed have a test without such
	// a property.
	byName, byNamespace, byResource map[string][]int
	byLabel                         map[string]map[string][]int
	unindexed                       []int
	entries                         int
}

// NewIndex returns an index of some placements.
func NewIndex(placements []*Placement) *Index {
	index := &Index{
		placements: placements,
		byName:     map[string][]int{}, byNamespace: map[string][]int{}, byResource: map[string][]int{}, byLabel: map[string]map[string][]int{},
	}
	for position, placement := range placements {
		for i := range placement.tests {
			index.insert(&placement.tests[i], position)
		}
	}
	return index
}

func (x *Index) insert(t *test, position int) {
	required, hasLabels := requiredLabels(t.labels)
	switch {
	case x.entries >= maxEntries:
		x.unindexed = append(x.unindexed, position)
	case len(t.names) > 0:
		x.addTo(x.byName, t.names, position)
	case hasLabels:
		for key, values := range required {
			if x.byLabel[key] == nil {
				x.byLabel[key] = map[string][]int{}
			}
			x.addTo(x.byLabel[key], values, position)
		}
	case len(t.namespaces) > 0:
		x.addTo(x.byNamespace, t.namespaces, position)
	case len(t.resources) > 0:
		x.addTo(x.byResource, t.resources, position)
	default:
		x.unindexed = append(x.unindexed, position)
	}
}

func (x *Index) addTo(index map[string][]int, values set, position int) {
	x.entries += len(values)
	for value := range values {
		index[value] = append(index[value], position)
	}
}

// requiredLabels returns a set of labels: each object that one of the selectors matches has at least one of
// them. ok is false if there is no such set.
func requiredLabels(selectors []labels.Selector) (required map[string]set, ok bool) {
	required = map[string]set{}
	for _, selector := range selectors {
		requirements, _ := selector.Requirements()
		exact := slices.IndexFunc(requirements, func(of labels.Requirement) bool {
			return slices.Contains([]selection.Operator{selection.In, selection.Equals, selection.DoubleEquals}, of.Operator())
		})
		if exact < 0 {
			return nil, false
		}
		key := requirements[exact].Key()
		if required[key] == nil {
			required[key] = set{}
		}
		for value := range requirements[exact].Values() {
			required[key][value] = struct{}{}
		}
	}
	return required, len(required) > 0
}

// PlacementsFor returns the positions of the placements that select an object, in ascending order. known is false if
// unknown labels of its Namespace could add further placements.
func (x *Index) PlacementsFor(object *Object) (selected []int, known bool) {
	candidates := slices.Concat(x.byName[object.Name], x.byNamespace[object.Namespace], x.byResource[object.Resource], x.unindexed)
	for key, byValue := range x.byLabel {
		if object.Labels.Has(key) {
			candidates = append(candidates, byValue[object.Labels.Get(key)]...)
		}
	}
	slices.Sort(candidates)
	known = true
	for _, position := range slices.Compact(candidates) {
		is, decided := x.placements[position].Selects(object)
		if is {
			selected = append(selected, position)
		}
		known = known && decided
	}
	return selected, known
}
