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
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// No API server writes these elements. completedElement is a child of each leaf that [AppliedFields] completed. foreignElement is
// a child of each such leaf if another manager owns fields below it.
const (
	completedElement = "i:-1"
	foreignElement   = "i:-2"
)

// AppliedFields returns the fields that the manager applied to a live object and still owns, as FieldsV1.
//
// The manager's managedFields entry is ambiguous. A map that is the value of a key, such as image in {values: {image: {tag:
// v1}}}, is an element itself. When another writer changes all its keys, "f:image": {} remains. An atomic map that the manager
// owns as a whole has the same element. The live object resolves the ambiguity: AppliedFields adds the keys of the live map to
// such a leaf, and no keys if another manager owns fields below it. It completes the leaf of a list only if the live list is
// empty, or if another manager owns items.
func AppliedFields(object *unstructured.Unstructured, manager string) []byte {
	var ours map[string]any
	writer, _ := appliedWriters.Get().(*appliedWriter)
	defer appliedWriters.Put(writer)
	defer writer.reset()
	for _, item := range managedFieldsOf(object) {
		entry, _ := item.(map[string]any)
		fields, ok := entry["fieldsV1"].(map[string]any)
		switch {
		case !ok:
		case ours == nil && isAppliedBy(entry, manager):
			ours = fields
		default:
			writer.others = append(writer.others, fields)
		}
	}
	if ours == nil {
		return nil
	}
	writer.write(ours, object.Object)
	return bytes.Clone(writer.text)
}

func managedFieldsOf(object *unstructured.Unstructured) []any {
	metadata, _ := object.Object["metadata"].(map[string]any)
	entries, _ := metadata["managedFields"].([]any)
	return entries
}

// AppliedAt returns when the manager last applied a change to the object; ok is false if it has no entry. The time is zero if the entry
// does not have one.
func AppliedAt(object *unstructured.Unstructured, manager string) (at time.Time, ok bool) {
	for _, item := range managedFieldsOf(object) {
		if entry, _ := item.(map[string]any); isAppliedBy(entry, manager) {
			text, _ := entry["time"].(string)
			at, _ = time.Parse(time.RFC3339, text)
			return at, true
		}
	}
	return time.Time{}, false
}

func isAppliedBy(entry map[string]any, manager string) bool {
	subresource, _ := entry["subresource"].(string)
	return entry["manager"] == manager && entry["operation"] == string(metav1.ManagedFieldsOperationApply) && subresource == ""
}

// appliedWriter writes an entry, and completes the leaves whose live values are maps, lists or nulls. It runs for each event, so it
// allocates little.
type appliedWriter struct {
	text []byte
	// The entries of the other managers.
	others []map[string]any
	// path has the elements that lead to the field that is being written.
	path []string
	// elements is a stack with the elements of each level.
	elements []string
}

var appliedWriters = sync.Pool{New: func() any { return &appliedWriter{} }}

// reset makes the writer ready for another object.
func (w *appliedWriter) reset() {
	clear(w.others)
	clear(w.path[:cap(w.path)])
	clear(w.elements[:cap(w.elements)])
	w.text, w.others, w.path, w.elements = w.text[:0], w.others[:0], w.path[:0], w.elements[:0]
}

// write writes the fields of the map or list at the path, which has the live value.
func (w *appliedWriter) write(fields map[string]any, live any) {
	start := len(w.elements)
	for element := range fields {
		w.elements = append(w.elements, element)
	}
	elements := w.elements[start:]
	slices.Sort(elements)
	items := itemsByElement(elements, live)
	w.text = append(w.text, '{')
	for index, element := range elements {
		if index > 0 {
			w.text = append(w.text, ',')
		}
		w.text = append(appendString(w.text, element), ':')
		w.path = append(w.path, element)
		below, _ := fields[element].(map[string]any)
		w.writeElement(below, liveValue(element, live, items))
		w.path = w.path[:len(w.path)-1]
	}
	w.text = append(w.text, '}')
	w.elements = w.elements[:start]
}

func (w *appliedWriter) writeElement(fields map[string]any, live any) {
	if !isLeaf(fields) {
		w.write(fields, live)
		return
	}
	keys, isMap := live.(map[string]any)
	items, isList := live.([]any)
	switch {
	case len(keys)+len(items) > 0 && w.othersOwnBelow():
		w.text = append(w.text, `{".":{},"`+completedElement+`":{},"`+foreignElement+`":{}}`...)
	case isMap, isList && len(items) == 0, live == nil:
		w.writeCompleted(keys)
	default:
		w.text = append(w.text, "{}"...)
	}
}

// writeCompleted writes a leaf with keys. The manager owns all of them.
func (w *appliedWriter) writeCompleted(keys map[string]any) {
	w.text = append(w.text, `{".":{},"`+completedElement+`":{}`...)
	start := len(w.elements)
	for key := range keys {
		w.elements = append(w.elements, key)
	}
	names := w.elements[start:]
	slices.Sort(names)
	for _, name := range names {
		w.text = append(appendString(append(w.text, ','), "f:"+name), ':')
		if below, ok := keys[name].(map[string]any); ok {
			w.writeCompleted(below)
			continue
		}
		w.text = append(w.text, "{}"...)
	}
	w.text = append(w.text, '}')
	w.elements = w.elements[:start]
}

// othersOwnBelow reports whether another manager owns a field below the path.
func (w *appliedWriter) othersOwnBelow() bool {
	for _, fields := range w.others {
		for _, element := range w.path {
			fields, _ = fields[element].(map[string]any)
		}
		if !isLeaf(fields) {
			return true
		}
	}
	return false
}

// isLeaf reports whether nothing below a field is owned.
func isLeaf(fields map[string]any) bool {
	_, member := fields["."]
	return len(fields) == 0 || member && len(fields) == 1
}

// unknown is the live value of elements that are not fields, and of fields that the object does not have.
type unknown struct{}

// liveValue returns the value of an element of a live map, or of a live list with these items.
func liveValue(element string, live any, items map[string]any) any {
	if values, ok := live.(map[string]any); ok && strings.HasPrefix(element, "f:") {
		if value, ok := values[element[len("f:"):]]; ok {
			return value
		}
		return unknown{}
	}
	if item, ok := items[element]; ok {
		return item
	}
	return unknown{}
}

// itemsByElement returns the items of a live list that has keys. Items with scalars only are left out, since they have no ambiguous
// leaves.
func itemsByElement(elements []string, live any) map[string]any {
	list, ok := live.([]any)
	if !ok || !slices.ContainsFunc(list, hasComplexFields) {
		return nil
	}
	index := slices.IndexFunc(elements, func(element string) bool { return strings.HasPrefix(element, "k:{") })
	if index < 0 {
		return nil
	}
	keys := keyNames(elements[index])
	items := make(map[string]any)
	for _, item := range list {
		if fields, ok := item.(map[string]any); ok && hasComplexFields(item) {
			items[keyElement(keys, fields)] = item
		}
	}
	return items
}

func hasComplexFields(item any) bool {
	fields, _ := item.(map[string]any)
	for _, value := range fields {
		switch value.(type) {
		case map[string]any, []any, nil:
			return true
		}
	}
	return false
}

// keyNames returns the names of the keys of a list's element, such as k:{"containerPort":80,"protocol":"TCP"}.
func keyNames(element string) (names []string) {
	decoder := json.NewDecoder(strings.NewReader(element[len("k:"):]))
	// The tokens are the brace, and then names and values by turns.
	for position := 0; ; position++ {
		token, err := decoder.Token()
		if err != nil {
			return names
		}
		if name, ok := token.(string); ok && position%2 == 1 {
			names = append(names, name)
		}
	}
}

// keyElement returns the element of an item, as API servers write it.
func keyElement(keys []string, item map[string]any) string {
	text := []byte("k:{")
	for index, key := range keys {
		if index > 0 {
			text = append(text, ',')
		}
		text = append(appendString(text, key), ':')
		switch typed := item[key].(type) {
		case string:
			text = appendString(text, typed)
		case int64:
			text = strconv.AppendInt(text, typed, 10)
		case bool:
			text = strconv.AppendBool(text, typed)
		default:
			encoded, _ := json.Marshal(typed)
			text = append(text, encoded...)
		}
	}
	return string(append(text, '}'))
}

// appendString appends a JSON string, as [json.Marshal] writes it.
func appendString(text []byte, value string) []byte {
	for _, char := range []byte(value) {
		if char < ' ' || char > '~' || char == '<' || char == '>' || char == '&' {
			encoded, _ := json.Marshal(value)
			return append(text, encoded...)
		}
	}
	text = append(text, '"')
	for _, char := range []byte(value) {
		if char == '"' || char == '\\' {
			text = append(text, '\\')
		}
		text = append(text, char)
	}
	return append(text, '"')
}
