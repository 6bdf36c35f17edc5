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
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	smdpath "sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// ManagersOf returns the field managers that own any of the paths that [UnownedPaths] reported, or fields below one.
func ManagersOf(desired map[string]any, entries []metav1.ManagedFieldsEntry, paths []string) ([]string, error) {
	var holders []string
	for _, entry := range entries {
		if entry.FieldsV1 == nil {
			continue
		}
		gaps, err := unownedParts(desired, entry.FieldsV1.GetRawBytes())
		if err != nil {
			return nil, fmt.Errorf("cannot read the managedFields entry of %s: %w", entry.Manager, err)
		}
		holds := slices.ContainsFunc(paths, func(path string) bool {
			return !slices.ContainsFunc(gaps, func(gap unownedPart) bool { return gap.contains(path) && gap.below == nil })
		})
		if holds && !slices.Contains(holders, entry.Manager) {
			holders = append(holders, entry.Manager)
		}
	}
	return holders, nil
}

// ManagersAt returns the field managers that own a field at the path or below it. At a list, they own any of its items.
func ManagersAt(entries []metav1.ManagedFieldsEntry, path smdpath.Path) (holders []string) {
	if position := slices.IndexFunc(path, func(element smdpath.PathElement) bool { return element.FieldName == nil }); position >= 0 {
		path = path[:position]
	}
	for _, entry := range entries {
		fields, ok := fieldSetOf(entry)
		if ok && entry.Subresource == "" && hasAnyAt(fields, path) && !slices.Contains(holders, entry.Manager) {
			holders = append(holders, entry.Manager)
		}
	}
	return holders
}

// contains reports whether the path is inside the part. The label "app" is not the root of the label "app.kubernetes.io/name".
func (g unownedPart) contains(path string) bool {
	rest, ok := strings.CutPrefix(path, g.path)
	return ok && (rest == "" || g.hasChildren && strings.ContainsRune(".[", rune(rest[0])))
}
