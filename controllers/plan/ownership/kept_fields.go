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
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	smdpath "sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// KeptField is a field that the hub no longer applies, and that stays because other managers own a part of it.
type KeptField struct {
	Path     smdpath.Path
	Managers []string
}

// KeptFields returns the fields that the last apply gave up and that stay on the live object, which is the response to it. before
// is the result of [AppliedFields] for the object before the apply. Items of lists do not stay: an apply that omits an item
// removes the whole item.
func KeptFields(before []byte, live *unstructured.Unstructured, manager string) ([]KeptField, error) {
	former, err := parseSet(before)
	if err != nil {
		return nil, fmt.Errorf("cannot read our former managedFields entry: %w", err)
	}
	now, err := parseSet(AppliedFields(live, manager))
	if err != nil {
		return nil, fmt.Errorf("cannot read our managedFields entry: %w", err)
	}
	roots := omittedRoots(former, now)
	if roots.Empty() {
		return nil, nil
	}
	var kept []KeptField
	for root := range roots.All() {
		field := KeptField{Path: root.Copy()}
		for _, entry := range live.GetManagedFields() {
			fields, ok := fieldSetOf(entry)
			if ok && entry.Subresource == "" && entry.Manager != manager && hasAnyAt(fields, root) && !slices.Contains(field.Managers, entry.Manager) {
				field.Managers = append(field.Managers, entry.Manager)
			}
		}
		if len(field.Managers) > 0 {
			kept = append(kept, field)
		}
	}
	return kept, nil
}

// omittedRoots returns the roots of the parts of a set that another set does not have, except items of lists.
func omittedRoots(former, now *smdpath.Set) *smdpath.Set {
	roots := &smdpath.Set{}
	for path := range former.Difference(now).All() {
		for length := 1; length <= len(path); length++ {
			if hasAnyAt(now, path[:length]) {
				continue
			}
			if path[length-1].FieldName != nil {
				roots.Insert(path[:length])
			}
			break
		}
	}
	return roots
}

// hasAnyAt reports whether a set has the path or a path below it.
func hasAnyAt(set *smdpath.Set, path smdpath.Path) bool {
	for index, element := range path {
		children, ok := set.Children.Get(element)
		if index == len(path)-1 {
			return ok || set.Members.Has(element)
		}
		if !ok {
			return false
		}
		set = children
	}
	return false
}
