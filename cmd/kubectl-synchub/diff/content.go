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

package diff

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/synchub-dev/synchub/controllers/plan/fieldpath"
	"github.com/synchub-dev/synchub/controllers/plan/transform"
)

// content returns what people compare of an object: all but the hub's marks, ignored fields, and what differs from cluster to cluster
// for the same object.
func content(object *unstructured.Unstructured, ignored []transform.IgnoredField) map[string]any {
	compared := transform.ComparableContent(object, ignored)
	for _, field := range []string{"uid", "creationTimestamp", "selfLink"} {
		unstructured.RemoveNestedField(compared, "metadata", field)
	}
	if len(ignored) > 0 {
		// The hub gives ignored fields up before it applies, and the dry run does not show that: a map or list of nothing else is
		// empty on one side, and absent on the other.
		withoutEmpty(compared)
	}
	return compared
}

// withoutEmpty removes empty maps and lists from a map, and reports whether it is empty itself.
func withoutEmpty(content map[string]any) bool {
	for key, value := range content {
		entries, isMap := value.(map[string]any)
		items, isList := value.([]any)
		if isMap && withoutEmpty(entries) || isList && len(items) == 0 {
			delete(content, key)
		}
	}
	return len(content) == 0
}

// withoutRandom removes from a new object what the server draws by lot, unless the desired object has it: the UID in fields and labels
// of Jobs, the addresses and ports of Services.
func withoutRandom(made map[string]any, desired *unstructured.Unstructured, uid string) map[string]any {
	if uid != "" {
		made, _ = withoutText(made, uid).(map[string]any)
	}
	if made["kind"] != "Service" || made["apiVersion"] != "v1" {
		return made
	}
	spec, _ := made["spec"].(map[string]any)
	own, _ := desired.Object["spec"].(map[string]any)
	for _, field := range []string{"clusterIP", "clusterIPs", "healthCheckNodePort"} {
		if _, ok := own[field]; !ok {
			delete(spec, field)
		}
	}
	ports, _ := spec["ports"].([]any)
	given, _ := own["ports"].([]any)
	for i, port := range ports {
		if i >= len(given) || !hasField(given[i], "nodePort") {
			delete(port.(map[string]any), "nodePort")
		}
	}
	return made
}

func hasField(value any, field string) bool {
	entries, _ := value.(map[string]any)
	_, ok := entries[field]
	return ok
}

// withoutText returns a value whose texts have a placeholder instead of a generated one.
func withoutText(value any, generated string) any {
	switch typed := value.(type) {
	case string:
		return strings.ReplaceAll(typed, generated, "(generated)")
	case map[string]any:
		for key, entry := range typed {
			typed[key] = withoutText(entry, generated)
		}
	case []any:
		for i := range typed {
			typed[i] = withoutText(typed[i], generated)
		}
	}
	return value
}

// Field is a field that differs.
type Field struct {
	// Path is the path of the field. Before and After are absent if the object does not have the field then.
	Path   string `json:"path"`
	Before any    `json:"before,omitempty"`
	After  any    `json:"after,omitempty"`
}

// fieldsOf returns the fields in which two contents differ, sorted. Of lists of different lengths it returns the whole list.
func fieldsOf(from, to map[string]any) (fields []Field) {
	compare(fieldpath.Path{}, from, to, &fields)
	slices.SortFunc(fields, func(a, b Field) int { return strings.Compare(a.Path, b.Path) })
	return fields
}

func compare(path fieldpath.Path, from, to any, into *[]Field) {
	if reflect.DeepEqual(from, to) {
		return
	}
	one, isMap := from.(map[string]any)
	other, areMaps := to.(map[string]any)
	if isMap && areMaps {
		for key := range one {
			compare(path.Child(key), one[key], other[key], into)
		}
		for key := range other {
			if _, ok := one[key]; !ok {
				compare(path.Child(key), nil, other[key], into)
			}
		}
		return
	}
	items, isList := from.([]any)
	others, areLists := to.([]any)
	if isList && areLists && len(items) == len(others) {
		for i := range items {
			compareItem(path, i, items[i], others[i], into)
		}
		return
	}
	*into = append(*into, Field{Path: path.String(), Before: from, After: to})
}

// compareItem compares the items of two lists at a position.
func compareItem(path fieldpath.Path, position int, from, to any, into *[]Field) {
	var fields []Field
	compare(fieldpath.Path{}, from, to, &fields)
	for _, field := range fields {
		separator := "."
		if field.Path == "" || strings.HasPrefix(field.Path, "[") {
			separator = ""
		}
		field.Path = fmt.Sprintf("%s[%d]%s%s", path, position, separator, strings.TrimPrefix(field.Path, "."))
		*into = append(*into, field)
	}
}
