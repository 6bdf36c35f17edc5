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
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	smdpath "sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/synchub-dev/synchub/controllers/plan/fieldpath"
)

// OwnsAny reports whether fieldsV1, the hub's managedFields entry, owns any of the paths. An entry that cannot be parsed owns
// none.
func OwnsAny(fieldsV1 []byte, paths []fieldpath.Path) bool {
	owned, err := parseSet(fieldsV1)
	return err == nil && slices.ContainsFunc(paths, func(path fieldpath.Path) bool { return path.IsIn(owned) })
}

// RelinquishFields returns the managedFields without the given paths in the manager's applied fields. It returns false and the
// unchanged entries if the manager owns none of them. The fields keep their values and their other owners, if any.
func RelinquishFields(entries []metav1.ManagedFieldsEntry, manager string, paths []fieldpath.Path) ([]metav1.ManagedFieldsEntry, bool) {
	var kept []metav1.ManagedFieldsEntry
	changed := false
	for _, entry := range entries {
		if isApplyEntry(entry, manager) {
			if rest, ok := removePaths(entry, paths); ok {
				entry, changed = rest, true
			}
		}
		kept = append(kept, entry)
	}
	if !changed {
		return entries, false
	}
	return kept, true
}

func removePaths(entry metav1.ManagedFieldsEntry, paths []fieldpath.Path) (metav1.ManagedFieldsEntry, bool) {
	fields, ok := fieldSetOf(entry)
	if !ok {
		return entry, false
	}
	rest := fields
	for _, path := range paths {
		rest = path.RemoveFrom(rest)
	}
	if rest.Equals(fields) {
		return entry, false
	}
	return withFields(entry, rest)
}

// TakeFields returns the managedFields with the fields at the paths owned by the manager's applied fields alone, so that an apply that
// omits the paths removes them. It returns false and the unchanged entries if the manager has no entry.
func TakeFields(entries []metav1.ManagedFieldsEntry, manager string, paths []fieldpath.Path) ([]metav1.ManagedFieldsEntry, bool) {
	var kept []metav1.ManagedFieldsEntry
	ours := -1
	for _, entry := range entries {
		switch {
		case isApplyEntry(entry, manager):
			ours = len(kept)
		case entry.Subresource == "":
			entry, _ = removePaths(entry, paths)
			if fields, ok := fieldSetOf(entry); ok && fields.Empty() {
				continue
			}
		}
		kept = append(kept, entry)
	}
	if ours < 0 {
		return entries, false
	}
	applied, ok := fieldSetOf(kept[ours])
	if !ok {
		return entries, false
	}
	for _, path := range paths {
		applied = path.AddTo(applied)
	}
	if kept[ours], ok = withFields(kept[ours], applied); !ok {
		return entries, false
	}
	return kept, true
}

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
	return withFields(one, fields.Union(more))
}

func isApplyEntry(entry metav1.ManagedFieldsEntry, manager string) bool {
	return entry.Manager == manager && entry.Operation == metav1.ManagedFieldsOperationApply && entry.Subresource == ""
}

// fieldSetOf returns the fields of an entry; ok is false if it has none, or if they cannot be decoded.
func fieldSetOf(entry metav1.ManagedFieldsEntry) (fields *smdpath.Set, ok bool) {
	if entry.FieldsV1 == nil {
		return nil, false
	}
	fields = &smdpath.Set{}
	if err := fields.FromJSON(bytes.NewReader(entry.FieldsV1.GetRawBytes())); err != nil {
		return nil, false
	}
	return fields, true
}

// withFields returns an entry with other fields; ok is false if they cannot be encoded.
func withFields(entry metav1.ManagedFieldsEntry, fields *smdpath.Set) (_ metav1.ManagedFieldsEntry, ok bool) {
	data, err := fields.ToJSON()
	if err != nil {
		return entry, false
	}
	entry.FieldsV1 = metav1.NewFieldsV1(string(data))
	return entry, true
}
