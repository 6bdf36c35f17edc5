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

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	smdpath "sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/synchub-dev/synchub/controllers/plan/fieldpath"
)

// OwnsAny reports whether fieldsV1, the hub's managedFields entry, owns any of the paths. An entry that cannot be parsed owns
// none.
func OwnsAny(fieldsV1 []byte, paths []fieldpath.Path) bool {
	held := &smdpath.Set{}
	if len(fieldsV1) == 0 || held.FromJSON(bytes.NewReader(fieldsV1)) != nil {
		return false
	}
	for _, path := range paths {
		if path.IsIn(held) {
			return true
		}
	}
	return false
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
	data, err := rest.ToJSON()
	if err != nil {
		return entry, false
	}
	entry.FieldsV1 = metav1.NewFieldsV1(string(data))
	return entry, true
}
