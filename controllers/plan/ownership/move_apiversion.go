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

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MoveAPIVersion returns the managedFields with all fields of one apiVersion moved to another, for the same managers. It
// returns false and the unchanged entries if there are none, or if they cannot be parsed.
func MoveAPIVersion(entries []metav1.ManagedFieldsEntry, from, to string) ([]metav1.ManagedFieldsEntry, bool) {
	var moved []metav1.ManagedFieldsEntry
	changed := false
	for _, entry := range entries {
		if entry.APIVersion == from {
			entry.APIVersion, changed = to, true
		}
		// The API server would read only one of two entries of one manager and version.
		same := slices.IndexFunc(moved, func(other metav1.ManagedFieldsEntry) bool {
			return other.Manager == entry.Manager && other.Operation == entry.Operation && other.Subresource == entry.Subresource && other.APIVersion == entry.APIVersion
		})
		if same < 0 {
			moved = append(moved, entry)
			continue
		}
		union, ok := mergeEntries(moved[same], entry)
		if !ok {
			return entries, false
		}
		moved[same] = union
	}
	if !changed {
		return entries, false
	}
	return moved, true
}

// mergeEntries returns the first entry with the fields of both.
func mergeEntries(one, other metav1.ManagedFieldsEntry) (metav1.ManagedFieldsEntry, bool) {
	fields, ok := fieldSetOf(one)
	more, alsoOK := fieldSetOf(other)
	if !ok || !alsoOK {
		return one, false
	}
	data, err := fields.Union(more).ToJSON()
	if err != nil {
		return one, false
	}
	one.FieldsV1 = metav1.NewFieldsV1(string(data))
	return one, true
}
