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
	"slices"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/synchub-dev/synchub/controllers/plan/ownership"
)

// MissingPaths returns the sorted paths of the values in desired that actual does not have. It is for mailboxes, where the hub
// has no managedFields entry (see [ownership.UnownedPaths]).
//
// A map may have more entries than desired. A list must have equal items in equal order. Numbers are equal in any notation. A null,
// an empty map and an empty list may be absent, since an API server may drop them.
//
// It compares only fields that the hub writes: not apiVersion, kind and status, and of metadata only labels and annotations.
func MissingPaths(desired, actual map[string]any) []string {
	var missing []string
	reportMissingFields(desired, actual, func(path fieldpath.Path, _, _ any) { missing = append(missing, path.String()) })
	slices.Sort(missing)
	return missing
}

// reportMissingFields reports the paths of [MissingPaths], with the values on both sides. The function must not keep a path, which is
// overwritten afterwards.
func reportMissingFields(desired, actual map[string]any, report func(path fieldpath.Path, desired, actual any)) {
	for key, wanted := range desired {
		path := fieldpath.Path{fieldpath.FieldNameElement(key)}
		switch key {
		case "apiVersion", "kind", "status":
		case "metadata":
			wanted, _ := wanted.(map[string]any)
			held, _ := actual[key].(map[string]any)
			for _, field := range []string{"labels", "annotations"} {
				if entries, ok := wanted[field]; ok && entries != nil {
					reportMissing(entries, held[field], append(path, fieldpath.FieldNameElement(field)), report)
				}
			}
		default:
			reportMissing(wanted, actual[key], path, report)
		}
	}
}

func reportMissing(desired, actual any, path fieldpath.Path, report func(path fieldpath.Path, desired, actual any)) {
	if actual == nil {
		if !ownership.IsEmptyValue(desired) {
			report(path, desired, actual)
		}
		return
	}
	switch wanted := desired.(type) {
	case map[string]any:
		held, ok := actual.(map[string]any)
		if !ok {
			report(path, desired, actual)
			return
		}
		for key, item := range wanted {
			reportMissing(item, held[key], append(path, fieldpath.FieldNameElement(key)), report)
		}
	case []any:
		held, ok := actual.([]any)
		if !ok || len(held) != len(wanted) {
			report(path, desired, actual)
			return
		}
		for index, item := range wanted {
			reportMissing(item, held[index], append(path, fieldpath.IndexElement(index)), report)
		}
	default:
		if !value.Equals(value.NewValueInterface(desired), value.NewValueInterface(actual)) {
			report(path, desired, actual)
		}
	}
}
