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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// TakeOwnership returns the managedFields of an object in which no other manager's update owns a field that the manager applies.
// It returns false and the unchanged entries if that is already so.
//
// An apply removes an omitted field only if no other manager owns the field. The creator of an adopted object owns all its
// fields, so a field removed from the source would stay on the target. For an applied list item, TakeOwnership takes all fields,
// even defaulted ones. Otherwise a part of the item would stay.
//
// Other managers keep fields that they apply, and fields of subresources. TakeOwnership drops an empty entry, and does not change
// an entry that it cannot decode.
func TakeOwnership(entries []metav1.ManagedFieldsEntry, manager string) ([]metav1.ManagedFieldsEntry, bool) {
	applied := &fieldpath.Set{}
	for _, entry := range entries {
		if isApplyEntry(entry, manager) {
			if fields, ok := fieldSetOf(entry); ok {
				applied = applied.Union(fields)
			}
		}
	}
	above := ancestors(applied)
	var kept []metav1.ManagedFieldsEntry
	changed := false
	for _, entry := range entries {
		rest, taken := removeApplied(entry, applied, above)
		changed = changed || taken
		if rest != nil {
			kept = append(kept, *rest)
		}
	}
	if !changed {
		return entries, false
	}
	return kept, true
}

// removeApplied returns the entry without the applied fields, nil if nothing is left, and whether it had any.
func removeApplied(entry metav1.ManagedFieldsEntry, applied, ancestors *fieldpath.Set) (*metav1.ManagedFieldsEntry, bool) {
	if entry.Operation != metav1.ManagedFieldsOperationUpdate || entry.Subresource != "" {
		return &entry, false
	}
	fields, ok := fieldSetOf(entry)
	if !ok {
		return &entry, false
	}
	rest := fields.RecursiveDifference(applied)
	// An update owns each map that it wrote in addition to the content, an apply does not. If only the content were taken, the
	// empty map would stay, and for an API server an empty emptyDir differs from an absent one.
	for empty := rest.Leaves().Intersection(ancestors); !empty.Empty(); empty = rest.Leaves().Intersection(ancestors) {
		rest = rest.Difference(empty)
	}
	if rest.Equals(fields) {
		return &entry, false
	}
	if rest.Empty() {
		return nil, true
	}
	entry, ok = withFields(entry, rest)
	return &entry, ok
}

// ancestors returns the parents of all paths of the set.
func ancestors(set *fieldpath.Set) *fieldpath.Set {
	above := &fieldpath.Set{}
	for path := range set.All() {
		for length := 1; length < len(path); length++ {
			above.Insert(path[:length])
		}
	}
	return above
}
