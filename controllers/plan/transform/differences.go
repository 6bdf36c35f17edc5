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

package transform

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	smdpath "sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/plan/ownership"
)

// Difference is a field of the desired object that has another value on the target.
type Difference struct {
	Path string
	// Managers are the field managers of the field, beside the hub's. There are none if the target does not have the field.
	Managers []string
	// Desired and Observed are the values on both sides. IsAbsent is true if the target does not have the field.
	Desired, Observed any
	IsAbsent          bool
}

// Drift returns the sorted differences at paths that [ownership.UnownedPaths] returned for the live object, or for an earlier version of
// it. A field that another manager set to the desired value is no difference.
func Drift(desired map[string]any, live *unstructured.Unstructured, manager string, paths []string) ([]Difference, error) {
	values, err := ownership.UnownedValues(desired, ownership.AppliedFields(live, manager))
	if err != nil {
		return nil, err
	}
	entries := live.GetManagedFields()
	var differences []Difference
	for _, field := range values {
		path := field.Path.String()
		if !slices.Contains(paths, path) {
			continue
		}
		observed, _ := ownership.ValueAt(live.Object, field.Path)
		// Without a field of the hub's in it, a map is one part.
		reportMissing(field.Desired, observed, field.Path, func(path smdpath.Path, desired, observed any) {
			if one, isDifferent := newDifference(path, desired, observed); isDifferent {
				differences = append(differences, one)
			}
		})
	}
	for i := range differences {
		managers, err := ownership.ManagersOf(desired, entries, []string{differences[i].Path})
		if err != nil {
			return nil, err
		}
		differences[i].Managers = withoutManager(managers, manager)
	}
	sortDifferences(differences)
	return differences, nil
}

// newDifference returns the difference of two values. isDifferent is false if it is only one of notation, or of the hub's marks.
func newDifference(path smdpath.Path, desired, observed any) (difference Difference, isDifferent bool) {
	difference = Difference{Path: path.String(), Desired: desired, Observed: observed, IsAbsent: observed == nil}
	isNotation := observed != nil && isSameQuantity(fmt.Sprint(desired), fmt.Sprint(observed))
	return difference, !isNotation && !strings.Contains(difference.Path, synchubv1alpha1.GroupName+"/")
}

// AdoptionChanges returns the sorted fields that the hub would change if it took over the live object. applied is the result of a dry run
// of that.
func AdoptionChanges(applied, live *unstructured.Unstructured, ignored []IgnoredField, manager string) []Difference {
	entries := live.GetManagedFields()
	var differences []Difference
	reportMissingFields(ComparableContent(applied, ignored), ComparableContent(live, ignored), func(path smdpath.Path, desired, actual any) {
		if one, isDifferent := newDifference(path, desired, actual); isDifferent {
			one.Managers = withoutManager(ownership.ManagersAt(entries, path), manager)
			differences = append(differences, one)
		}
	})
	sortDifferences(differences)
	return differences
}

func withoutManager(managers []string, manager string) []string {
	return slices.DeleteFunc(managers, func(one string) bool { return one == manager })
}

func sortDifferences(differences []Difference) {
	slices.SortFunc(differences, func(a, b Difference) int { return cmp.Compare(a.Path, b.Path) })
}
