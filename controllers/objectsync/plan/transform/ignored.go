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
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/synchub-dev/synchub/controllers/objectsync/plan/fieldpath"
	"github.com/synchub-dev/synchub/controllers/objectsync/plan/ownership"
)

// IgnoredField is a field that is left to the target.
type IgnoredField struct {
	Path fieldpath.Path
	// OnCreate is true if the field is set when the object is created.
	OnCreate bool
}

// removeIgnored removes what is ignored from the content, and returns the content as it is to be created, nil if that is the
// same.
func removeIgnored(content map[string]any, ignored []IgnoredField) (first map[string]any) {
	if len(ignored) == 0 {
		return nil
	}
	whole := (&unstructured.Unstructured{Object: content}).DeepCopy().Object
	differs := false
	for _, field := range ignored {
		if field.Path.Delete(content) && field.OnCreate {
			differs = true
		}
		if !field.OnCreate {
			field.Path.Delete(whole)
		}
	}
	if !differs {
		return nil
	}
	return whole
}

// formatIgnored returns the fields as a mark names them.
func formatIgnored(ignored []IgnoredField) string {
	paths := make([]string, 0, len(ignored))
	for _, field := range ignored {
		paths = append(paths, field.Path.String())
	}
	return strings.Join(paths, ignoredSeparator)
}

// ignoredSeparator stands between paths. One with a line break in it is not understood again, which costs a write.
const ignoredSeparator = "\n"

// IgnoredAtMark returns the fields that were ignored when an object with the mark was made; ok is false if the mark
// cannot be understood.
func IgnoredAtMark(mark ownership.Mark) (ignored []IgnoredField, ok bool) {
	if mark.Ignored == "" {
		return nil, true
	}
	for text := range strings.SplitSeq(mark.Ignored, ignoredSeparator) {
		parsed, err := fieldpath.Parse(text)
		if err != nil {
			return nil, false
		}
		ignored = append(ignored, IgnoredField{Path: parsed, OnCreate: true})
	}
	return ignored, true
}

// UnionIgnored returns the fields of both lists, those of the first as they are there.
func UnionIgnored(first, second []IgnoredField) []IgnoredField {
	all := append([]IgnoredField(nil), first...)
	known := map[string]bool{}
	for _, field := range first {
		known[field.Path.String()] = true
	}
	for _, field := range second {
		if !known[field.Path.String()] {
			all = append(all, field)
		}
	}
	return all
}
